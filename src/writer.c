/*
** Draining: from ring records to events in blocks. See writer.h.
** Invariant: a ring record is trusted in its sizes (our own pushes made it) but
** not in its numbers: keep, lengths and tags are checked and a bad one is
** counted.
*/
#include "src/writer_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/clock.h"
#include "src/futex.h"
#include "src/process.h"

enum { RELEASE_BYTES = 16384, STABLE_AT_ONCE = 64 };

static void host_fact(void *ctx, const char *key, const char *value)
{
  ljp_writer_add_info(ctx, key, value);
}

enum ljp_status ljp_writer_new(struct ljp_writer **out, struct ljp_sink *sink,
                               const struct ljp_writer_options *options)
{
  struct ljp_writer *w = calloc(1, sizeof *w);
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
    status = ljp_refs_init(&w->refs);
  if (!status)
    status = ljp_out_init(&w->out, sink, w->options.zstd_level, stream | 1);
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
    free(source);
  }
  ljp_builder_fini(&w->builder);
  ljp_intern_fini(&w->nodes);
  if (w->defs.slots)
    ljp_defs_fini(&w->defs);
  ljp_refs_fini(&w->refs);
  ljp_modules_fini(&w->modules);
  ljp_out_fini(&w->out);
  free(w);
}

enum ljp_status ljp_writer_start(struct ljp_writer *w, uint64_t now_ns)
{
  w->now_ns = w->segment_start_ns = now_ns;
  w->out.status = ljp_sink_open(w->sink, 0);
  if (w->out.status)
    return w->out.status;
  if (!ljp_writer_epoch(w, LJP_EPOCH_START)) {
    if (!w->options.fixed_facts)
      ljp_process_facts(host_fact, w);
    ljp_writer_look(w);
    ljp_writer_block(w, 0);
  }
  return w->out.status;
}

/* -- One record ------------------------------------------------------------ */

/*
** The id of the stack that the record describes; written if this epoch lacks
** it. A table that is full starts a new epoch with an empty one, and the stack
** is interned again from the root.
*/
static bool stack_of(struct ljp_writer *w, struct ljp_source *s, unsigned keep,
                     unsigned n, const uint64_t *words, uint64_t time_ns,
                     uint64_t *id)
{
  if (keep > s->depth || n > LJP_STACK_MAX_FRAMES - keep) {
    s->own_loss[LJP_LOSS_BAD_RECORD]++;
    s->depth = s->valid = s->id_epoch = 0;
    return false;
  }
  s->id_epoch = 0;
  if (n)
    memcpy(s->words + keep, words, 8 * (size_t)n);
  s->depth = keep + n;
  if (s->valid > keep)
    s->valid = keep;
  bool all_settled = true;
  for (int attempt = 0;; attempt++) {
    bool full = false;
    if (s->node_generation != w->nodes.generation ||
        s->module_generation != w->modules.generation ||
        s->ref_generation != w->refs.generation) {
      s->valid = 0;
      s->node_generation = w->nodes.generation;
      s->module_generation = w->modules.generation;
      s->ref_generation = w->refs.generation;
    }
    while (s->valid < s->depth && !full) {
      uint64_t stable[STABLE_AT_ONCE];
      unsigned i = s->valid, more = s->depth - i;
      if (more > STABLE_AT_ONCE)
        more = STABLE_AT_ONCE;
      for (unsigned k = 0; k < more; k++) {
        bool settled;
        stable[k] = ljp_writer_stable(w, s->words[i + k], time_ns, &settled);
        all_settled &= settled;
      }
      s->valid += ljp_intern_path(&w->nodes, i ? s->chain[i - 1] : LJP_NO_NODE,
                                  stable, more, s->chain + i);
      full = s->valid < i + more;
    }
    if (!full)
      break;
    if (attempt) {
      s->own_loss[LJP_LOSS_NO_MEMORY]++;
      s->valid = 0;
      return false;
    }
    ljp_writer_epoch(w, LJP_EPOCH_TABLE);
  }
  uint32_t leaf = s->depth ? s->chain[s->depth - 1] : LJP_NO_NODE;
  *id = ljp_intern_id(&w->nodes, leaf);
  if (leaf != LJP_NO_NODE && w->nodes.nodes[leaf].epoch != w->out.epoch)
    ljp_writer_need_node(w, leaf);
  s->id_epoch = w->out.epoch;
  s->stack_id = *id;
  /* What another time may resolve otherwise is not carried over to it. */
  if (!all_settled)
    s->valid = 0;
  return true;
}

static void take_sample(struct ljp_writer *w, struct ljp_source *s,
                        const struct ljp_ring_sample *r)
{
  uint64_t stack;
  if (!stack_of(w, s, r->keep, r->n, r->frames, r->time_ns, &stack))
    return;
  const struct ljp_sample sample = {.time_ns = r->time_ns,
                                    .weight = r->weight,
                                    .vm = r->vm,
                                    .vmstate = r->head.a,
                                    .cut = r->head.b};
  ljp_builder_sample(&w->builder, &sample, stack);
}

/* Of the same stack as before. */
static bool same_stack(struct ljp_writer *w, struct ljp_source *s,
                       uint64_t time_ns, uint64_t *id)
{
  if (LJP_LIKELY(s->id_epoch == w->out.epoch && s->valid == s->depth &&
                 s->node_generation == w->nodes.generation &&
                 s->module_generation == w->modules.generation &&
                 s->ref_generation == w->refs.generation)) {
    *id = s->stack_id;
    return true;
  }
  return stack_of(w, s, s->depth, 0, NULL, time_ns, id);
}

/* It comes with the one that the producer had last, whose references may mean
** something else by now. */
static bool has_no_stack(const struct ljp_mem *mem)
{
  return mem->op == LJP_MEM_FREE && (mem->what & LJP_MEM_SWEPT);
}

static void take_brief(struct ljp_writer *w, struct ljp_source *s,
                       const struct ljp_ring_brief *r)
{
  struct ljp_mem *mem = &s->mem;
  mem->address = r->word >> LJP_BRIEF_SIZE_BITS;
  mem->size = r->word & LJP_BRIEF_SIZE_MAX;
  mem->op = r->head.b & 1 ? LJP_MEM_FREE : LJP_MEM_ALLOC;
  mem->vmstate = r->head.a;
  mem->what = r->head.c;
  uint64_t stack = LJP_STACK_AS_BEFORE;
  if (LJP_LIKELY(has_no_stack(mem) || same_stack(w, s, mem->time_ns, &stack)))
    ljp_builder_mem(&w->builder, mem, stack);
}

static void take_mem(struct ljp_writer *w, struct ljp_source *s,
                     const struct ljp_ring_mem *r)
{
  const uint64_t *rest = r->rest;
  struct ljp_mem mem = {.time_ns = r->time_ns,
                        .address = r->address,
                        .size = r->size,
                        .vm = r->vm,
                        .op = r->head.b & LJP_MEM_OP_MASK,
                        .vmstate = r->head.a,
                        .what = r->head.c};
  if (mem.op == LJP_MEM_REALLOC) {
    mem.old_address = *rest++;
    mem.old_size = *rest++;
  }
  if (r->head.b & ~LJP_MEM_OP_MASK)
    mem.weight = *rest++;
  s->mem.time_ns = mem.time_ns;
  s->mem.vm = mem.vm;
  uint64_t stack = LJP_STACK_AS_BEFORE;
  bool same = r->n == 0 && r->keep == s->depth;
  if ((same && has_no_stack(&mem)) ||
      (same ? same_stack(w, s, r->time_ns, &stack)
            : stack_of(w, s, r->keep, r->n, rest, r->time_ns, &stack)))
    ljp_builder_mem(&w->builder, &mem, stack);
}

static void put_text(struct ljp_body *b, const struct ljp_ring_event *r)
{
  ljp_body_str(b, (const char *)(r->words + r->head.b + r->n), r->text_bytes,
               LJP_EVENT_MAX_TEXT);
}

/* How many words each event must have at least; 0: not an event of a ring. */
static unsigned words_needed(unsigned tag)
{
  switch (tag) {
  case LJP_REC_GC:
    return 4;
  case LJP_REC_MARK:
    return 3;
  case LJP_REC_TRACE_EVENT:
    return 7;
  case LJP_REC_INTERVAL:
    return 2;
  case LJP_REC_VMSTATE:
  case LJP_REC_NOTE:
    return 1;
  }
  return 0;
}

static void take_event(struct ljp_writer *w, struct ljp_source *s,
                       const struct ljp_ring_event *r)
{
  const uint64_t *v = r->words;
  unsigned tag = r->head.a, n = r->head.b;
  if (!words_needed(tag) || n < words_needed(tag)) {
    s->own_loss[LJP_LOSS_BAD_RECORD]++;
    return;
  }
  uint64_t proto = 0, stack = 0;
  /* First: it may begin an epoch. A stack that is lost leaves the event. */
  if (r->head.c)
    stack_of(w, s, r->keep, r->n, v + n, r->time_ns, &stack);
  if (tag == LJP_REC_TRACE_EVENT) {
    proto = ljp_writer_need_proto(
        w, v[3] ? ljp_writer_proto(w, ljp_frame_proto_ref(v[3])) : 0);
    if ((v[1] == LJP_TRACE_STOP || v[1] == LJP_TRACE_EXISTS) && v[2])
      ljp_writer_need_trace(w, v[2]);
  }
  struct ljp_body *b = ljp_writer_timed(w, r->time_ns);
  switch (tag) {
  case LJP_REC_TRACE_EVENT:
    ljp_body_u(b, v[0]);
    ljp_body_u(b, v[1]);
    ljp_body_u(b, v[2]);
    ljp_body_u(b, proto);
    ljp_body_u(b, v[3] ? ljp_frame_line(v[3]) : 0);
    ljp_body_u(b, v[4]);
    put_text(b, r);
    ljp_body_u(b, v[5]);
    ljp_body_u(b, v[6]);
    ljp_body_u(b, stack);
    break;
  case LJP_REC_VMSTATE:
    ljp_body_u(b, v[0]);
    ljp_body_u(b, n - 1);
    for (unsigned i = 1; i < n; i++) {
      ljp_body_u(b, i - 1);
      ljp_body_u(b, v[i]);
    }
    break;
  case LJP_REC_MARK:
    ljp_body_u(b, v[0]);
    ljp_body_u(b, v[1]);
    ljp_body_s(b, (int64_t)v[2]);
    put_text(b, r);
    break;
  case LJP_REC_NOTE:
    ljp_body_u(b, v[0]);
    put_text(b, r);
    break;
  default: /* GC, INTERVAL: the words as they are. */
    for (unsigned i = 0; i < words_needed(tag); i++)
      ljp_body_u(b, v[i]);
  }
  ljp_writer_put_event(w, (enum ljp_record)tag);
}

/* -- One producer ---------------------------------------------------------- */

static void release(struct ljp_producer *p, uint64_t pos)
{
  ljp_ring_release(&p->ring, pos);
  /* Relaxed: a waiter that we miss looks again after a millisecond. */
  if (atomic_load_explicit(&p->waiting, memory_order_relaxed)) {
    atomic_fetch_add_explicit(&p->space, 1, memory_order_release);
    ljp_futex_wake(&p->space);
  }
}

static void drain(struct ljp_writer *w, struct ljp_source *s, uint64_t end)
{
  struct ljp_ring *ring = &s->producer->ring;
  uint64_t pos = ljp_ring_tail(ring), released = pos;
  const struct ljp_ring_record *r;
  if (pos == end)
    return;
  w->builder.producer = s->producer->id;
  w->out.unwritten = 0;
  while ((r = ljp_ring_next(ring, &pos, end))) {
    if (ljp_builder_full(&w->builder))
      ljp_writer_block(w, 0);
    if (w->out.epoch_bytes >= w->options.epoch_bytes)
      ljp_writer_epoch(w, LJP_EPOCH_SIZE);
    else if (w->defs.bytes > LJP_MAX_DEFS_BYTES)
      ljp_writer_epoch(w, LJP_EPOCH_TABLE);
    if (w->out.status) {
      s->own_loss[LJP_LOSS_WRITE_ERROR]++;
    } else if (r->type == LJP_RING_BRIEF) {
      take_brief(w, s, (const void *)r);
    } else if (r->type == LJP_RING_SAMPLE) {
      take_sample(w, s, (const void *)r);
    } else if (r->type == LJP_RING_MEM) {
      take_mem(w, s, (const void *)r);
    } else {
      take_event(w, s, (const void *)r);
    }
    if (pos - released >= RELEASE_BYTES) {
      release(s->producer, pos);
      released = pos;
    }
  }
  release(s->producer, pos);
  ljp_writer_block(w, 0);
  s->own_loss[LJP_LOSS_WRITE_ERROR] += w->out.unwritten;
  w->builder.producer = 0;
}

static void write_losses(struct ljp_writer *w, struct ljp_source *s)
{
  struct ljp_producer *p = s->producer;
  for (unsigned reason = 1; reason < LJP_LOSS_COUNT; reason++) {
    uint64_t lost = s->own_loss[reason];
    /* Relaxed: counters; what we miss now is seen in the next round. */
    if (p)
      lost += atomic_load_explicit(&p->lost[reason], memory_order_relaxed);
    if (lost == s->lost[reason])
      continue;
    s->lost[reason] = lost;
    struct ljp_body *b = ljp_writer_timed(w, w->now_ns);
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
    struct ljp_body *b = ljp_writer_timed(w, w->now_ns);
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
  /* The look comes after the heads: what is drained was pushed before it. */
  w->now_ns = now_ns;
  w->builder.producer = 0;
  ljp_writer_look(w);
}

void ljp_writer_drain(struct ljp_writer *w)
{
  ljp_writer_block(w, 0); /* Definitions of the round come first. */
  for (struct ljp_source *s = w->sources; s; s = s->next)
    if (s->producer)
      drain(w, s, s->end);
}

/* What it has lost is kept until it is written. */
void ljp_writer_retire(struct ljp_writer *w, struct ljp_producer *p)
{
  struct ljp_source *s = w->sources;
  while (s && s->producer != p)
    s = s->next;
  if (s) {
    ljp_writer_block(w, 0);
    drain(w, s, ljp_ring_head(&p->ring));
    write_losses(w, s);
    memcpy(s->own_loss, s->lost, sizeof s->own_loss);
    s->own_overruns = s->overruns;
    s->producer = NULL;
  }
  struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_PRODUCER, p->id);
  if (def)
    def->ended = true;
}

static void forget_retired(struct ljp_writer *w)
{
  struct ljp_source **link = &w->sources, *s;
  while ((s = *link)) {
    if (s->producer) {
      link = &s->next;
    } else {
      *link = s->next;
      free(s);
    }
  }
}

static void rotate(struct ljp_writer *w)
{
  ljp_writer_put_totals(w);
  struct ljp_body *b = ljp_writer_timed(w, w->now_ns);
  ljp_body_u(b, w->out.segment + 1);
  ljp_writer_put_event(w, LJP_REC_SEGMENT_END);
  if (ljp_writer_block(w, 0))
    return;
  w->out.status = ljp_sink_close(w->sink);
  if (!w->out.status)
    w->out.status = ljp_sink_open(w->sink, ++w->out.segment);
  w->segment_start_ns = w->now_ns;
  if (!w->out.status)
    ljp_writer_epoch(w, LJP_EPOCH_SEGMENT);
  uint32_t keep = w->options.keep_segments;
  if (!w->out.status && keep && w->out.segment >= keep)
    ljp_sink_remove(w->sink, w->out.segment - keep);
}

enum ljp_status ljp_writer_finish(struct ljp_writer *w)
{
  ljp_writer_forget_protos(w);
  for (struct ljp_source *s = w->sources; s; s = s->next)
    write_losses(w, s);
  ljp_writer_block(w, 0);
  const struct ljp_writer_options *o = &w->options;
  if (w->out.status)
    return w->out.status;
  forget_retired(w);
  if ((o->segment_bytes && w->sink->whole_bytes >= o->segment_bytes) ||
      (o->segment_ns && w->now_ns - w->segment_start_ns >= o->segment_ns))
    rotate(w);
  else if (w->now_ns - w->epoch_start_ns >= o->epoch_ns)
    ljp_writer_epoch(w, LJP_EPOCH_TIME);
  return w->out.status;
}

enum ljp_status ljp_writer_end(struct ljp_writer *w, enum ljp_status status,
                               int error, const char *reason)
{
  enum ljp_status before = w->out.status;
  int before_error = w->sink->error;
  if (w->options.describe.end)
    w->options.describe.end(w->options.describe.ctx);
  if (w->sink->temporary) { /* Never shown: nobody's file is replaced by it. */
    ljp_sink_close(w->sink);
    return before;
  }
  ljp_builder_reset(&w->builder, 0);
  w->out.status = LJP_OK;
  for (struct ljp_source *s = w->sources; s; s = s->next) {
    if (before) { /* What was written last may be in a block that was not. */
      memset(s->lost, 0, sizeof s->lost);
      s->overruns = 0;
    }
    write_losses(w, s);
  }
  ljp_writer_put_totals(w);
  struct ljp_body *b = ljp_writer_timed(w, w->now_ns);
  ljp_body_u(b, status);
  ljp_body_u(b, (uint64_t)error);
  ljp_body_str(b, reason, strlen(reason), 256);
  ljp_writer_put_event(w, LJP_REC_END);
  ljp_writer_block(w, 0);
  if (before) { /* That END got through does not undo the error. */
    w->out.status = before;
    w->sink->error = before_error;
  }
  enum ljp_status closed = ljp_sink_close(w->sink);
  return w->out.status ? w->out.status : closed;
}

uint64_t ljp_writer_bytes(const struct ljp_writer *w)
{
  return w->sink->whole_bytes;
}
