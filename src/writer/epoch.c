/*
** Epochs: the block that opens one, and the definitions that are repeated at
** its start (RFC 1, section 4). Writer thread only.
*/
#include "src/writer/process.h"
#include "src/writer/writer_impl.h"

void ljp_writer_put_totals(struct ljp_writer *w)
{
  struct ljp_body *b = ljp_writer_body(w);
  uint64_t n = 0;
#define LJP_X(name, tag, text, event) n += event;
  LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  ljp_body_u(b, n);
#define LJP_X(name, tag, text, event)                                          \
  if (event) {                                                                 \
    ljp_body_u(b, tag);                                                        \
    ljp_body_u(b, w->out.totals[tag]);                                         \
  }
  LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  ljp_writer_put_body(w, LJP_REC_TOTALS);
}

static void epoch_put_process(struct ljp_writer *w)
{
  struct ljp_body *b = ljp_writer_body(w);
  if (w->options.put_process)
    w->options.put_process(b);
  else
    ljp_process_put(b);
  ljp_writer_put_body(w, LJP_REC_PROCESS);
}

/* All definitions of a class whose things have not ended. */
static void epoch_put_class(struct ljp_writer *w, enum ljp_def_class class)
{
  for (uint32_t i = 0; i < w->defs.capacity; i++) {
    struct ljp_def *def = &w->defs.slots[i];
    if (ljp_def_class(def) == class && !def->ended)
      ljp_writer_put_def(w, def);
  }
}

static void epoch_put_losses(struct ljp_writer *w,
                             const struct ljp_source *source)
{
  for (int reason = 1; reason < LJP_LOSS_COUNT; reason++) {
    if (!source->lost[reason])
      continue;
    struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
    ljp_body_u(b, source->id);
    ljp_body_u(b, (uint64_t)reason);
    ljp_body_u(b, source->lost[reason]);
    ljp_writer_put_body(w, LJP_REC_LOSS);
  }
  if (source->overruns) {
    struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
    ljp_body_u(b, source->id);
    ljp_body_u(b, source->overruns);
    ljp_writer_put_body(w, LJP_REC_OVERRUN);
  }
}

enum ljp_status ljp_writer_begin_epoch(struct ljp_writer *w,
                                       enum ljp_epoch_why why)
{
  uint32_t producer = w->builder.producer;
  /* The records in the builder belong to the epoch before. */
  ljp_writer_put_block(w, 0);
  if (why == LJP_EPOCH_TABLE)
    ljp_writer_clear_tables(w);
  else
    ljp_defs_purge(&w->defs, false);
  w->out.epoch++;
  w->out.epoch_bytes = 0;
  w->epoch_start_ns = w->now_ns;
  ljp_builder_reset(&w->builder, 0);
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, w->out.segment);
  ljp_body_u(b, why);
  ljp_body_u(b, w->nodes.base);
  ljp_writer_put_body(w, LJP_REC_EPOCH);
  ljp_writer_put_totals(w);
  epoch_put_process(w);
  /* These three make the key block, which is small. The other definitions may
  ** fill a block and continue in the next. */
  ljp_writer_put_block(w, LJP_BLOCK_KEY);
  epoch_put_class(w, LJP_DEF_INFO);
  epoch_put_class(w, LJP_DEF_MODULE);
  epoch_put_class(w, LJP_DEF_THREAD);
  epoch_put_class(w, LJP_DEF_VM);
  epoch_put_class(w, LJP_DEF_PRODUCER);
  for (const struct ljp_source *s = w->sources; s; s = s->next)
    epoch_put_losses(w, s);
  ljp_writer_put_block(w, 0);
  ljp_builder_reset(&w->builder, producer);
  return w->out.status;
}
