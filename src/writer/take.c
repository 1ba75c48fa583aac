/*
** From one ring record to an event in the block that is being built. See
** writer.h.
** Invariant: a ring record is trusted in its sizes (our own pushes made it) but
** not in its numbers: keep, lengths and tags are checked and a bad one is
** counted.
*/
#include "src/writer/writer_impl.h"

#include <string.h>

enum { STABLE_AT_ONCE = 64 };

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

/* Is the last stack's id good? */
static bool has_last_stack(const struct ljp_writer *w,
                           const struct ljp_source *s)
{
  return s->id_epoch == w->out.epoch && s->valid == s->depth &&
         s->node_generation == w->nodes.generation &&
         s->module_generation == w->modules.generation &&
         s->ref_generation == w->refs.generation;
}

/* It comes with the one that the producer had last, whose references may mean
** something else by now. */
static bool has_no_stack(const struct ljp_mem *mem)
{
  return mem->op == LJP_MEM_FREE && (mem->what & LJP_MEM_SWEPT);
}

void ljp_writer_take_briefs(struct ljp_writer *w, struct ljp_source *s,
                            const struct ljp_ring *ring, uint64_t *pos,
                            uint64_t end)
{
  const struct ljp_ring_brief *r;
  struct ljp_mem *mem = &s->mem;
  bool plain = true;
  do {
    r = (const void *)(ring->data + (*pos & (ring->capacity - 1)));
    if (r->head.type != LJP_RING_BRIEF)
      return;
    mem->address = r->word >> LJP_BRIEF_SIZE_BITS;
    mem->size = r->word & LJP_BRIEF_SIZE_MAX;
    mem->op = r->head.b & 1 ? LJP_MEM_FREE : LJP_MEM_ALLOC;
    mem->vmstate = r->head.a;
    mem->what = r->head.c;
    *pos += sizeof *r;
    uint64_t stack = LJP_STACK_AS_BEFORE;
    if (!has_no_stack(mem)) {
      plain = has_last_stack(w, s);
      stack = s->stack_id;
      if (LJP_UNLIKELY(!plain && !stack_of(w, s, s->depth, 0, NULL,
                                           mem->time_ns, &stack)))
        return;
    }
    ljp_builder_mem(&w->builder, mem, stack);
  } while (plain && *pos < end && !ljp_builder_full(&w->builder));
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
      stack_of(w, s, r->keep, r->n, rest, r->time_ns, &stack))
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

void ljp_writer_take(struct ljp_writer *w, struct ljp_source *s,
                     const struct ljp_ring_record *r)
{
  if (r->type == LJP_RING_SAMPLE)
    take_sample(w, s, (const void *)r);
  else if (r->type == LJP_RING_MEM)
    take_mem(w, s, (const void *)r);
  else
    take_event(w, s, (const void *)r);
}
