/*
** The pass over a stream. Samples and memory events are nearly all of it, so
** they find their row by the map of stacks, without a hash, when the same
** stack comes in the same context.
*/
#include "parsers/profile/work.h"

#include <stdio.h>
#include <string.h>

struct ljp_profile *ljp_profile_new(const struct ljp_profile_options *options)
{
  struct ljp_profile *p = calloc(1, sizeof *p);
  if (!p)
    return NULL;
  if (options)
    p->options = *options;
  p->work = calloc(1, sizeof *p->work);
  if (p->work) {
    p->work->filters_time = p->options.from_ns || p->options.to_ns;
    p->work->map_epoch = 1;
    p->totals.missing_known = true;
    p->options.symbols.no_files |= p->options.no_symbols;
    p->symbols = ljp_symbols_new(&p->options.symbols);
    if (p->symbols && ljp_profile_tables(p) == LJP_OK)
      return p;
  }
  ljp_profile_free(p);
  return NULL;
}

void ljp_profile_free(struct ljp_profile *p)
{
  if (!p)
    return;
  struct ljp_profile_work *w = p->work;
  if (w) {
    ljp_strings_fini(&w->strings);
    ljp_index_fini(&w->frame_index);
    ljp_index_fini(&w->node_index);
    ljp_index_fini(&w->context_index);
    ljp_index_fini(&w->row_index);
    ljp_index_fini(&w->trace_index);
    for (size_t i = 0; i < LJP_MAP_PAGES; i++)
      free(w->map[i]);
    free(w->protos);
    ljp_live_fini(&w->live);
    for (uint32_t i = 0; i < w->notice_count; i++)
      free(w->notices[i]);
    free(w->notices);
    free(w);
  }
  ljp_symbols_free(p->symbols);
  free(p->frames);
  free(p->functions);
  free(p->nodes);
  free(p->contexts);
  free(p->rows);
  free(p->memory);
  free(p->estimates);
  free(p->modules);
  free(p->threads);
  free(p->vms);
  free(p->gc);
  free(p->marks);
  free(p->traces);
  free(p->trace_events);
  free(p->points);
  free(p);
}

struct ljp_str ljp_profile_str(const struct ljp_profile *p, uint32_t string)
{
  const struct ljp_strings *strings = &p->work->strings;
  return string < strings->count ? strings->list[string] : strings->list[0];
}

/* A block begins: whose is it, and is this another session than before? */
static enum ljp_status take_block(struct ljp_profile *p,
                                  const struct ljp_block *block)
{
  struct ljp_profile_work *w = p->work;
  enum ljp_status status;
  w->context_valid = false;
  if (p->options.progress)
    p->options.progress(p->options.progress_ctx, block->offset);
  if (w->begun && block->head.stream == w->stream)
    return LJP_OK;
  if (!w->begun) {
    p->origin_ns = block->head.time_ns;
  } else {
    if ((status = ljp_profile_mem_end(p)))
      return status;
    w->source++;
    for (size_t i = 0; i < LJP_MAP_PAGES; i++) {
      free(w->map[i]);
      w->map[i] = NULL;
    }
  }
  w->begun = true;
  w->stream = block->head.stream;
  p->source_count = w->source + 1;
  return LJP_OK;
}

static void count_damage(struct ljp_profile *p, const struct ljp_reader *reader)
{
  const struct ljp_finish *f = &reader->finish;
  const struct ljp_tally *tally = &reader->tally;
  struct ljp_profile_totals *t = &p->totals;
  enum { DIGITS = 18 }; /* of a number that cannot overflow */
  uint64_t number = 0;
  t->gaps += f->gaps;
  t->gap_bytes += f->gap_bytes;
  t->missing_blocks += f->missing_blocks;
  t->missing_known = t->missing_known && (f->missing_known || !f->gaps);
  t->bad_records += f->bad_records;
  t->unclosed += !f->clean;
  if (f->closed == LJP_CLOSED_END && f->status) {
    t->end_status = f->status;
    t->end_errno = f->error;
  }
  for (size_t i = 0; i < tally->loss_count; i++) {
    const struct ljp_tally_loss *loss = &tally->losses[i];
    if (loss->overrun) {
      t->overruns += loss->count;
      continue;
    }
    t->lost[loss->reason < LJP_LOSS_COUNT ? loss->reason : LJP_LOSS_COUNT] +=
        loss->count;
    t->lost_all += loss->count;
  }
  for (unsigned tag = 0; tag < LJP_TALLY_TAGS; tag++)
    t->swallowed += tally->swallowed[tag];
  const struct ljp_rec_info *unnamed =
      ljp_model_info(&reader->model, "functions.unnamed");
  for (uint32_t i = 0; unnamed && i < unnamed->value.len && i < DIGITS; i++) {
    unsigned digit = (unsigned)(unnamed->value.data[i] - '0');
    if (digit > 9)
      break;
    number = number * 10 + digit;
  }
  t->unnamed += number;
}

static enum ljp_status fail(struct ljp_profile *p, enum ljp_status status,
                            const char *why)
{
  snprintf(p->error, sizeof p->error, "%s", why);
  return status;
}

enum ljp_status ljp_profile_add(struct ljp_profile *p,
                                struct ljp_reader *reader)
{
  const struct ljp_item *event;
  enum ljp_status status;
  p->work->reader = reader;
  p->work->map_epoch++;
  p->work->context_valid = false;
  while (!(status = ljp_reader_next(reader, &event))) {
    if (LJP_LIKELY(event->what == LJP_REC_SAMPLES)) {
      if (!p->options.no_samples)
        status = ljp_profile_samples(p, reader, event);
    } else if (LJP_LIKELY(event->what == LJP_REC_MEM)) {
      if (!p->options.no_memory)
        status = ljp_profile_take_mem(p, event);
    } else if (!(status = ljp_profile_mem_waiting(p))) {
      if (event->what == LJP_ITEM_FINISH)
        break;
      status = event->what == LJP_ITEM_BLOCK ? take_block(p, event->block)
                                             : ljp_profile_event(p, event);
    }
    if (LJP_UNLIKELY(status))
      return fail(p, status, ljp_status_text(status));
  }
  p->work->reader = NULL;
  if (status)
    return fail(p, status, reader->error);
  count_damage(p, reader);
  return LJP_OK;
}

enum ljp_status ljp_profile_finish(struct ljp_profile *p)
{
  enum ljp_status status;
  if ((status = ljp_profile_mem_end(p)) || (status = ljp_profile_shape(p)) ||
      (status = ljp_profile_notices(p)))
    return fail(p, status, ljp_status_text(status));
  return LJP_OK;
}

enum ljp_status ljp_profile_load(const char *path,
                                 const struct ljp_profile_options *options,
                                 struct ljp_profile **profile,
                                 char error[LJP_READER_ERROR_BYTES + 64])
{
  struct ljp_reader *reader = malloc(sizeof *reader);
  struct ljp_profile *p = ljp_profile_new(options);
  enum ljp_status status = LJP_ERR_MEM;
  *profile = NULL;
  snprintf(error, LJP_READER_ERROR_BYTES + 64, "%s", ljp_status_text(status));
  if (reader && p) {
    status = ljp_reader_open(reader, path);
    if (status) {
      snprintf(error, LJP_READER_ERROR_BYTES + 64, "%s", reader->error);
    } else {
      if (!(status = ljp_profile_add(p, reader)))
        status = ljp_profile_finish(p);
      if (status)
        snprintf(error, LJP_READER_ERROR_BYTES + 64, "%s", p->error);
      ljp_reader_fini(reader);
    }
  }
  free(reader);
  if (status)
    ljp_profile_free(p);
  else
    *profile = p;
  return status;
}
