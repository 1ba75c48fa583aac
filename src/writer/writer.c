/*
** Rounds: draining the rings, losses, file segments, the end. See writer.h.
** Invariant: outside of a drain the builder's producer is 0, the writer itself.
*/
#include "src/writer/writer_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/base/zeroed.h"
#include "src/writer/process.h"

static void writer_add_fact(void *ctx, const char *key, const char *value)
{
  ljp_writer_add_info(ctx, key, value);
}

enum ljp_status ljp_writer_new(struct ljp_writer **out, struct ljp_sink *sink,
                               const struct ljp_writer_options *options)
{
  struct ljp_writer *w = ljp_zeroed_new(sizeof *w);
  if (!w)
    return LJP_ERR_MEM;
  w->options = *options;
  w->sink = sink;
  if (!w->options.max_nodes)
    w->options.max_nodes = LJP_DEFAULT_MAX_NODES;
  if (!w->options.epoch_bytes)
    w->options.epoch_bytes = LJP_DEFAULT_EPOCH_BYTES;
  if (!w->options.epoch_ns)
    w->options.epoch_ns = LJP_DEFAULT_EPOCH_NS;
  w->held.wanted =
      (options->segment_bytes || options->segment_ns || options->ring_bytes) &&
      !options->ljm;
  uint64_t stream = w->options.stream;
  if (!stream && getrandom(&stream, sizeof stream, GRND_NONBLOCK) !=
                     (ssize_t)sizeof stream)
    stream = ljp_clock_of(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
  ljp_modules_init(&w->modules);
  enum ljp_status status = ljp_builder_init(&w->builder);
  if (!status)
    status = ljp_intern_init(&w->nodes, w->options.max_nodes);
  if (!status)
    status = ljp_defs_init(&w->defs);
  if (!status)
    status = ljp_proto_numbers_init(&w->proto_numbers);
  if (!status)
    status = ljp_block_out_init(&w->out, w->options.ljm ? NULL : sink,
                                w->options.zstd_level, w->options.zstd_ready,
                                stream | 1);
  if (!status && w->options.ljm) {
    w->options.epoch_ns = UINT64_MAX; /* ljm has no epochs. */
    status = ljp_ljm_new(&w->ljm);
  }
  if (status) {
    ljp_writer_free(w);
    return status;
  }
  *out = w;
  return LJP_OK;
}

void ljp_writer_free(struct ljp_writer *w)
{
  if (!w)
    return;
  while (w->sources) {
    struct ljp_source *source = w->sources;
    w->sources = source->next;
    free(source->numbered);
    free(source);
  }
  ljp_builder_fini(&w->builder);
  ljp_intern_fini(&w->nodes);
  if (w->defs.slots)
    ljp_defs_fini(&w->defs);
  ljp_proto_numbers_fini(&w->proto_numbers);
  ljp_held_fini(&w->held);
  ljp_modules_fini(&w->modules);
  ljp_block_out_fini(&w->out);
  ljp_ljm_free(w->ljm);
  ljp_zeroed_free(w, sizeof *w);
}

/* Relaxed: a figure for the status. */
static void writer_tell_bytes(struct ljp_writer *w)
{
  atomic_store_explicit(&w->bytes, w->sink->file.whole_bytes,
                        memory_order_relaxed);
}

enum ljp_status ljp_writer_start(struct ljp_writer *w, uint64_t now_ns)
{
  w->now_ns = now_ns;
  ljp_writer_plan_segment(w);
  w->out.status = ljp_sink_open(w->sink);
  if (w->out.status)
    return w->out.status;
  if (w->ljm) {
    ljp_ljm_begin(w);
  } else if (!ljp_writer_begin_epoch(w, LJP_EPOCH_START)) {
    if (!w->options.put_process)
      ljp_process_facts(writer_add_fact, w);
    ljp_writer_update_modules(w);
    ljp_writer_put_block(w, 0);
  }
  w->size_limit = UINT64_MAX;
  w->segment_head_bytes = w->sink->file.whole_bytes;
  writer_tell_bytes(w);
  return w->out.status;
}

/* -- One producer ---------------------------------------------------------- */

void ljp_writer_release(struct ljp_producer *p, uint64_t pos)
{
  ljp_ring_release(&p->ring, pos);
  /* Relaxed: a waiter that we do not see looks again after a millisecond. */
  if (atomic_load_explicit(&p->waiting, memory_order_relaxed)) {
    atomic_fetch_add_explicit(&p->space, 1, memory_order_release);
    ljp_futex_wake(&p->space);
  }
}

static void writer_drain_source(struct ljp_writer *w, struct ljp_source *s,
                                uint64_t end)
{
  struct ljp_ring *ring = &s->producer->ring;
  uint64_t pos = ljp_ring_tail(ring), released = pos;
  const struct ljp_ring_entry *e;
  ljp_assert(pos <= end && !w->builder.producer);
  if (pos == end)
    return;
  if (w->ljm) {
    ljp_ljm_drain(w, s, end);
    return;
  }
  w->builder.producer = s->producer->id;
  w->out.unwritten = 0;
  while ((e = ljp_ring_next(ring, &pos, end))) {
    if (ljp_builder_full(&w->builder))
      ljp_writer_put_block(w, 0);
    if (w->out.epoch_bytes >= w->options.epoch_bytes)
      ljp_writer_begin_epoch(w, LJP_EPOCH_SIZE);
    else if (w->defs.bytes > LJP_MAX_DEFS_BYTES)
      ljp_writer_begin_epoch(w, LJP_EPOCH_TABLE);
    ljp_writer_rotate_within(w);
    if (w->out.status && e->type != LJP_ENTRY_LABELS) {
      s->own_loss[LJP_LOSS_WRITE_ERROR]++;
      ljp_writer_hold_lost(w, e);
    } else if (e->type == LJP_ENTRY_BRIEF) {
      uint64_t until = released + LJP_RELEASE_BYTES;
      pos -= e->size;
      ljp_writer_take_briefs(w, s, ring, &pos, until < end ? until : end);
    } else {
      ljp_writer_take(w, s, e);
    }
    if (pos - released >= LJP_RELEASE_BYTES) {
      ljp_writer_release(s->producer, pos);
      released = pos;
    }
  }
  ljp_assert(pos == end);
  ljp_writer_release(s->producer, pos);
  ljp_writer_put_block(w, 0);
  s->own_loss[LJP_LOSS_WRITE_ERROR] += w->out.unwritten;
  w->builder.producer = 0;
}

static void writer_put_losses(struct ljp_writer *w, struct ljp_source *s)
{
  struct ljp_producer *p = s->producer;
  for (unsigned reason = 1; reason < LJP_LOSS_COUNT; reason++) {
    uint64_t lost = s->own_loss[reason];
    /* Relaxed: counters. The next round sees what we miss now. */
    if (p)
      lost += atomic_load_explicit(&p->lost[reason], memory_order_relaxed);
    if (lost == s->lost[reason])
      continue;
    s->lost[reason] = lost;
    struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
    ljp_body_u(b, s->id);
    ljp_body_u(b, reason);
    ljp_body_u(b, lost);
    ljp_writer_put_event(w, LJP_REC_LOSS);
  }
  uint64_t overruns = s->own_overruns;
  if (p)
    overruns = atomic_load_explicit(&p->overruns, memory_order_relaxed);
  if (overruns != s->overruns) {
    s->overruns = overruns;
    struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
    ljp_body_u(b, s->id);
    ljp_body_u(b, overruns);
    ljp_writer_put_event(w, LJP_REC_OVERRUN);
  }
}

/* -- A round --------------------------------------------------------------- */

void ljp_writer_begin(struct ljp_writer *w, uint64_t now_ns)
{
  if (w->options.describe.round)
    w->options.describe.round(w->options.describe.ctx);
  for (struct ljp_source *s = w->sources; s; s = s->next)
    if (s->producer)
      s->end = ljp_ring_head(&s->producer->ring);
  /* Heads first, modules second: every entry that this round drains was pushed
  ** before the look at the modules. */
  w->now_ns = now_ns;
  w->builder.producer = 0;
  ljp_writer_look_at_limit(w);
  ljp_writer_update_modules(w);
  if (w->ljm)
    ljp_ljm_update_modules(w);
}

void ljp_writer_drain(struct ljp_writer *w)
{
  ljp_writer_put_block(w, 0); /* The round's definitions come first. */
  for (struct ljp_source *s = w->sources; s; s = s->next)
    if (s->producer)
      writer_drain_source(w, s, s->end);
}

/* The source stays, with all losses, until the round's end has written them. */
void ljp_writer_retire(struct ljp_writer *w, struct ljp_producer *p)
{
  struct ljp_source *s = w->sources;
  while (s && s->producer != p)
    s = s->next;
  if (s) {
    ljp_writer_put_block(w, 0);
    writer_drain_source(w, s, ljp_ring_head(&p->ring));
    writer_put_losses(w, s);
    memcpy(s->own_loss, s->lost, sizeof s->own_loss);
    s->own_overruns = s->overruns;
    s->producer = NULL;
  }
  struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_PRODUCER, p->id);
  if (def)
    def->ended = true;
}

static void writer_forget_retired(struct ljp_writer *w)
{
  struct ljp_source **link = &w->sources, *s;
  while ((s = *link)) {
    if (s->producer) {
      link = &s->next;
    } else {
      *link = s->next;
      free(s->numbered);
      free(s);
    }
  }
}

enum ljp_status ljp_writer_finish(struct ljp_writer *w)
{
  ljp_writer_forget_protos(w);
  for (struct ljp_source *s = w->sources; s; s = s->next)
    writer_put_losses(w, s);
  ljp_writer_put_block(w, 0);
  if (w->out.status && !ljp_writer_rotate_past_limit(w)) {
    if (!ljp_writer_survive_full(w))
      return w->out.status;
    if (w->out.status) /* It still is. The next rounds try again. */
      return LJP_OK;
  }
  ljp_writer_tell_room(w);
  writer_forget_retired(w);
  if (!ljp_writer_rotate(w) &&
      w->now_ns - w->epoch_start_ns >= w->options.epoch_ns)
    ljp_writer_begin_epoch(w, LJP_EPOCH_TIME);
  writer_tell_bytes(w);
  /* If what came last did not fit (the note on a rotation that failed ...), the next
  ** round tries again. */
  return ljp_writer_outlasts_error(w) ? LJP_OK : w->out.status;
}

/* before: the error that the writer has met; 0: none. */
static void writer_put_end(struct ljp_writer *w, enum ljp_status before,
                           enum ljp_status status, int error,
                           const char *reason)
{
  ljp_builder_reset(&w->builder, 0);
  w->out.status = LJP_OK;
  for (struct ljp_source *s = w->sources; s; s = s->next) {
    if (before) { /* The LOSS records written last may be in a lost block. */
      memset(s->lost, 0, sizeof s->lost);
      s->overruns = 0;
    }
    writer_put_losses(w, s);
  }
  ljp_writer_put_totals(w);
  struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
  ljp_body_u(b, status);
  ljp_body_u(b, (uint64_t)error);
  ljp_body_str(b, reason, strlen(reason), 256);
  ljp_writer_put_event(w, LJP_REC_END);
  ljp_writer_put_block(w, 0);
}

enum ljp_status ljp_writer_put_end(struct ljp_writer *w)
{
  if (!w->out.status)
    writer_put_end(w, LJP_OK, LJP_OK, 0, "");
  return w->out.status;
}

enum ljp_status ljp_writer_end(struct ljp_writer *w, enum ljp_status status,
                               int error, const char *reason)
{
  enum ljp_status before = w->out.status;
  int before_error = w->sink->error;
  if (w->options.describe.end)
    w->options.describe.end(w->options.describe.ctx);
  if (ljp_sink_hidden(w->sink)) { /* No block is written: replace no file. */
    ljp_sink_close(w->sink);
    return before;
  }
  if (w->ljm) { /* If something could not be written, nothing follows it. */
    if (!before)
      ljp_ljm_end(w);
    writer_tell_bytes(w);
    enum ljp_status closed = ljp_sink_close(w->sink);
    return w->out.status ? w->out.status : closed;
  }
  writer_put_end(w, before, status, error, reason);
  if (before) { /* The error holds even if END was written. */
    w->out.status = before;
    w->sink->error = before_error;
  }
  writer_tell_bytes(w);
  enum ljp_status closed = ljp_sink_close(w->sink);
  return w->out.status ? w->out.status : closed;
}

uint64_t ljp_writer_bytes(const struct ljp_writer *w)
{
  return atomic_load_explicit(&w->bytes, memory_order_relaxed);
}
