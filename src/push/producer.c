/*
** The pushes. LJP_SIGSAFE throughout: no libc call but memcpy, no lock, and a
** system call only to wake the writer of a half-full ring.
** Invariant: stack[0..depth) is what the writer knows as this producer's last
** stack. A loss resets depth and mem_time to 0, so that the next entry gives
** its stack and time in full.
*/
#include "src/push/producer_state.h"

#include <string.h>

#include "src/base/futex.h"

enum { LOOK_BYTES = 4096 }; /* Between two looks at a ring half full. */

LJP_SIGSAFE void ljp_count_loss(struct ljp_producer *p, enum ljp_loss reason,
                                uint64_t count)
{
  ljp_assert(reason > 0 && reason < LJP_LOSS_COUNT);
  /* Relaxed, but one atomic step: it is only a counter, and a signal may
  ** interrupt. */
  atomic_fetch_add_explicit(&p->lost[reason], count, memory_order_relaxed);
}

LJP_SIGSAFE void ljp_count_overrun(struct ljp_producer *p, uint64_t count)
{
  atomic_fetch_add_explicit(&p->overruns, count, memory_order_relaxed);
}

LJP_SIGSAFE unsigned ljp_producer_depth(const struct ljp_producer *p)
{
  return p->depth;
}

LJP_SIGSAFE bool ljp_producer_active(const struct ljp_producer *p)
{
  /* Relaxed: a hint. An event that is pushed too late is drained or counted. */
  return atomic_load_explicit(&p->active, memory_order_relaxed);
}

const _Atomic bool *ljp_producer_active_flag(const struct ljp_producer *p)
{
  return &p->active;
}

uint32_t ljp_producer_id(const struct ljp_producer *p)
{
  return p->id;
}

void ljp_producer_let_fill(struct ljp_producer *p)
{
  p->half = p->ring.capacity;
}

LJP_SIGSAFE void ljp_producer_wake(struct ljp_producer *p)
{
  /* acq_rel so that a writer that has seen it also sees the head. A look that
  ** was asked for precedes the wait after the round. */
  if (!atomic_exchange_explicit(&p->wake->word, LJP_WAKE_ROUND,
                                memory_order_acq_rel))
    ljp_futex_wake(&p->wake->word);
}

LJP_SIGSAFE void ljp_producer_ask_look(struct ljp_producer *p)
{
  if (!atomic_fetch_or_explicit(&p->wake->word, LJP_WAKE_LOOK,
                                memory_order_acq_rel))
    ljp_futex_wake(&p->wake->word);
}

LJP_SIGSAFE static void producer_nudge(struct ljp_producer *p)
{
  /* Relaxed: once the writer has been asked to come, further pushes cost one
  ** load. A push that reads an outdated word leaves the waking to the next. */
  if (!(atomic_load_explicit(&p->wake->word, memory_order_relaxed) &
        LJP_WAKE_ROUND))
    ljp_producer_wake(p);
}

/* busy is only shared between a thread and its own signals: relaxed loads and
** stores, fenced against the compiler. */
LJP_SIGSAFE static bool producer_enter(struct ljp_producer *p)
{
  if (LJP_UNLIKELY(!ljp_producer_active(p))) {
    ljp_count_loss(p, LJP_LOSS_STOPPING, 1);
    return false;
  }
  if (LJP_UNLIKELY(atomic_load_explicit(&p->busy, memory_order_relaxed))) {
    ljp_count_loss(p, LJP_LOSS_NESTED, 1);
    return false;
  }
  atomic_store_explicit(&p->busy, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  return true;
}

/* After a loss: the next event is given in full. */
LJP_SIGSAFE static void producer_forget(struct ljp_producer *p)
{
  p->depth = 0;
  p->mem_time = 0;
}

LJP_SIGSAFE static void producer_leave(struct ljp_producer *p)
{
  ljp_assert(p->depth <= LJP_STACK_MAX_FRAMES);
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&p->busy, false, memory_order_relaxed);
}

/* NULL: there is no room, and the loss is counted. */
LJP_SIGSAFE static struct ljp_ring_entry *
producer_reserve(struct ljp_producer *p, size_t size)
{
  if (LJP_UNLIKELY(size > ljp_ring_max_entry(&p->ring))) {
    ljp_count_loss(p, LJP_LOSS_TOO_BIG, 1);
    return NULL;
  }
  struct ljp_ring_entry *entry = ljp_ring_reserve(&p->ring, (uint32_t)size);
  if (LJP_UNLIKELY(!entry))
    ljp_count_loss(p, LJP_LOSS_RING_FULL, 1);
  return entry;
}

LJP_SIGSAFE static void producer_publish(struct ljp_producer *p)
{
  ljp_ring_commit(&p->ring);
  if (LJP_UNLIKELY(ljp_ring_fuller_than(&p->ring, p->half)))
    producer_nudge(p);
}

LJP_SIGSAFE bool ljp_producer_look(struct ljp_producer *p)
{
  struct ljp_ring *ring = &p->ring;
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  /* A brief event takes 16 bytes and begins at a multiple of 8. One that begins
  ** before `end` stays within the buffer. */
  uint64_t end = (head | (ring->capacity - 1)) - 7;
  uint64_t look_at = head;
  if (ljp_ring_fuller_than(ring, p->half)) {
    producer_nudge(p);
    uint64_t room = ring->tail_seen + ring->capacity - head;
    if (room >= sizeof(struct ljp_brief_entry))
      look_at += room - 8 < LOOK_BYTES ? room - 8 : LOOK_BYTES;
  } else {
    /* A brief event that begins before this finds the ring at most half full.
    ** */
    look_at = ring->tail_seen + p->half + 8;
  }
  p->look_at = look_at < end ? look_at : end;
  return head < p->look_at;
}

/* Four frames at a time: this loop is most of the cost of a push of the same
** stack. */
LJP_SIGSAFE unsigned ljp_producer_common(const struct ljp_producer *p,
                                         const uint64_t *frames, unsigned n)
{
  unsigned max = n < p->depth ? n : p->depth, keep = 0;
  const uint64_t *f = frames + n, *stack = p->stack;
  for (; keep + 4 <= max; keep += 4, f -= 4)
    if ((stack[keep] ^ f[-1]) | (stack[keep + 1] ^ f[-2]) |
        (stack[keep + 2] ^ f[-3]) | (stack[keep + 3] ^ f[-4]))
      break;
  while (keep < max && stack[keep] == *--f)
    keep++;
  return keep;
}

/* Copies n new frames, given leaf first, to the last stack and to the entry,
** root first. */
LJP_SIGSAFE static void producer_put_leaf_first(struct ljp_producer *p,
                                                uint64_t *restrict out,
                                                unsigned keep,
                                                const uint64_t *restrict frames,
                                                unsigned n)
{
  uint64_t *restrict stack = p->stack + keep;
  const uint64_t *f = frames + n;
  unsigned i = 0;
  for (; i + 4 <= n; i += 4, f -= 4) {
    uint64_t a = f[-1], b = f[-2], c = f[-3], d = f[-4];
    out[i] = stack[i] = a;
    out[i + 1] = stack[i + 1] = b;
    out[i + 2] = stack[i + 2] = c;
    out[i + 3] = stack[i + 3] = d;
  }
  for (; i < n; i++)
    out[i] = stack[i] = *--f;
  p->depth = keep + n;
}

LJP_SIGSAFE static void producer_put_root_first(struct ljp_producer *p,
                                                uint64_t *restrict out,
                                                unsigned keep,
                                                const uint64_t *restrict frames,
                                                unsigned n)
{
  uint64_t *restrict stack = p->stack + keep;
  for (unsigned i = 0; i < n; i++)
    out[i] = stack[i] = frames[i];
  p->depth = keep + n;
}

/* Within a push. */
LJP_SIGSAFE static bool producer_label(struct ljp_producer *p, uint32_t labels)
{
  struct ljp_labels_entry *out =
      (void *)ljp_ring_reserve(&p->ring, sizeof *out);
  if (LJP_UNLIKELY(!out))
    return false;
  out->type = LJP_ENTRY_LABELS;
  out->labels = labels;
  p->labels = labels;
  producer_publish(p);
  return true;
}

LJP_SIGSAFE bool ljp_producer_put_labels(struct ljp_producer *p,
                                         uint32_t labels)
{
  if (!producer_enter(p))
    return false;
  bool done = producer_label(p, labels);
  producer_leave(p);
  return done;
}

LJP_SIGSAFE bool ljp_push_sample(struct ljp_producer *p,
                                 const struct ljp_sample *s,
                                 const uint64_t *frames, unsigned n)
{
  struct ljp_sample_entry *out = NULL;
  if (!producer_enter(p))
    return false;
  if (LJP_UNLIKELY(n > LJP_STACK_MAX_FRAMES)) {
    ljp_count_loss(p, LJP_LOSS_TOO_BIG, 1);
  } else if (LJP_UNLIKELY(s->labels != p->labels) &&
             !producer_label(p, s->labels)) {
    ljp_count_loss(p, LJP_LOSS_RING_FULL, 1);
  } else {
    unsigned keep = ljp_producer_common(p, frames, n);
    out = (void *)producer_reserve(p, sizeof *out + 8 * (size_t)(n - keep));
    if (LJP_LIKELY(out != NULL)) {
      out->type = LJP_ENTRY_SAMPLE;
      out->vmstate = s->vmstate;
      out->cut = s->cut;
      out->time_ns = s->time_ns;
      out->weight = s->weight;
      out->vm = s->vm;
      out->keep = (uint16_t)keep;
      out->n = (uint16_t)(n - keep);
      producer_put_leaf_first(p, out->frames, keep, frames, n - keep);
      producer_publish(p);
    }
  }
  if (!out)
    producer_forget(p);
  producer_leave(p);
  return out != NULL;
}

LJP_SIGSAFE bool ljp_producer_put_mem(struct ljp_producer *p,
                                      const struct ljp_mem *m, unsigned keep,
                                      const uint64_t *frames, unsigned n,
                                      bool root_first, bool *full)
{
  struct ljp_mem_entry *out = NULL;
  const bool numbered = keep == LJP_KEEP_NUMBER;
  const unsigned fresh = numbered ? 0 : n;
  size_t size = ljp_mem_entry_bytes(m, fresh);
  if (!producer_enter(p))
    return false;
  if (LJP_UNLIKELY(!numbered &&
                   (keep > p->depth || n > LJP_STACK_MAX_FRAMES - keep))) {
    ljp_count_loss(p, LJP_LOSS_BAD_RECORD, 1);
  } else {
    if (LJP_LIKELY(size <= ljp_ring_max_entry(&p->ring)))
      out = (void *)ljp_ring_reserve(&p->ring, (uint32_t)size);
    else
      ljp_count_loss(p, LJP_LOSS_TOO_BIG, 1);
    if (LJP_UNLIKELY(!out && size <= ljp_ring_max_entry(&p->ring))) {
      if (full) {
        *full = true;
        producer_leave(p);
        return false;
      }
      ljp_count_loss(p, LJP_LOSS_RING_FULL, 1);
    }
    if (LJP_LIKELY(out != NULL)) {
      uint8_t op = (uint8_t)(m->op | (m->weight ? LJP_MEM_ENTRY_WEIGHTED : 0));
      struct ljp_mem_parts parts = ljp_mem_entry_parts(out, op);
      out->type = LJP_ENTRY_MEM;
      out->vmstate = m->vmstate;
      out->op = op;
      out->what = m->what;
      out->time_ns = m->time_ns;
      out->address = m->address;
      out->bytes = m->size;
      out->vm = m->vm;
      out->keep = (uint16_t)keep;
      out->n = (uint16_t)n;
      if (parts.old)
        *parts.old = (struct ljp_mem_entry_old){.address = m->old_address,
                                                .bytes = m->old_size};
      if (parts.weight)
        *parts.weight = m->weight;
      ljp_assert((uint8_t *)(parts.frames + fresh) == (uint8_t *)out + size);
      if (numbered)
        ;
      else if (root_first)
        producer_put_root_first(p, parts.frames, keep, frames, n);
      else
        producer_put_leaf_first(p, parts.frames, keep, frames, n);
      p->mem_time = m->time_ns;
      producer_publish(p);
    }
  }
  if (!out)
    producer_forget(p);
  producer_leave(p);
  return out != NULL;
}

LJP_SIGSAFE bool ljp_producer_put_stack(struct ljp_producer *p, unsigned number,
                                        const uint64_t *frames, unsigned n)
{
  struct ljp_stack_entry *out;
  const size_t size = ljp_stack_entry_bytes(n);
  ljp_assert(number && number < LJP_NUMBERED_STACKS);
  ljp_assert(n <= LJP_NUMBERED_FRAMES);
  if (size > ljp_ring_max_entry(&p->ring) || !producer_enter(p))
    return false;
  out = (void *)ljp_ring_reserve(&p->ring, (uint32_t)size);
  if (LJP_LIKELY(out != NULL)) {
    out->type = LJP_ENTRY_STACK;
    out->number = (uint8_t)number;
    for (unsigned i = 0; i < n; i++)
      out->frames[i] = frames[i];
    producer_publish(p);
  }
  producer_leave(p);
  return out != NULL;
}

LJP_SIGSAFE bool ljp_push_mem_keep(struct ljp_producer *p,
                                   const struct ljp_mem *m, unsigned keep,
                                   const uint64_t *frames, unsigned n,
                                   unsigned *depth)
{
  bool done = ljp_producer_put_mem(p, m, keep, frames, n, false, NULL);
  if (depth)
    *depth = done ? p->depth : 0;
  return done;
}

LJP_SIGSAFE bool ljp_push_mem(struct ljp_producer *p, const struct ljp_mem *m,
                              const uint64_t *frames, unsigned n)
{
  unsigned keep = ljp_producer_common(p, frames, n);
  return ljp_push_mem_keep(p, m, keep, frames, n - keep, NULL);
}

LJP_SIGSAFE static inline __attribute__((always_inline)) bool
producer_put_event(struct ljp_producer *p, enum ljp_record tag,
                   uint64_t time_ns, const void *fields, size_t field_bytes,
                   const char *text, unsigned text_bytes,
                   const uint64_t *frames, unsigned depth)
{
  struct ljp_event_entry *out = NULL;
  size_t words = field_bytes / sizeof *out->rest;
  ljp_assert(field_bytes % sizeof *out->rest == 0);
  if (!producer_enter(p))
    return false;
  if (text_bytes > LJP_EVENT_MAX_TEXT)
    text_bytes = LJP_EVENT_MAX_TEXT;
  if (words > LJP_EVENT_MAX_WORDS || depth > LJP_STACK_MAX_FRAMES) {
    ljp_count_loss(p, LJP_LOSS_BAD_RECORD, 1);
  } else {
    unsigned keep = frames ? ljp_producer_common(p, frames, depth) : 0;
    unsigned fresh = frames ? depth - keep : 0;
    size_t size = sizeof *out + field_bytes + 8 * (size_t)fresh +
                  ((text_bytes + 7u) & ~7u);
    out = (void *)producer_reserve(p, size);
    if (out) {
      out->type = LJP_ENTRY_EVENT;
      out->tag = (uint8_t)tag;
      out->words = (uint8_t)words;
      out->has_stack = frames != NULL;
      out->time_ns = time_ns;
      out->text_bytes = text_bytes;
      out->keep = (uint16_t)keep;
      out->n = (uint16_t)fresh;
      memcpy(out->rest, fields, field_bytes);
      if (frames)
        producer_put_leaf_first(p, out->rest + words, keep, frames, fresh);
      memcpy(out->rest + words + fresh, text, text_bytes);
      producer_publish(p);
    }
  }
  if (!out && frames)
    producer_forget(p);
  producer_leave(p);
  return out != NULL;
}

LJP_SIGSAFE bool ljp_push_event_with_stack(
    struct ljp_producer *p, enum ljp_record tag, uint64_t time_ns,
    const void *fields, size_t field_bytes, const char *text,
    unsigned text_bytes, const uint64_t *frames, unsigned depth)
{
  return producer_put_event(p, tag, time_ns, fields, field_bytes, text,
                            text_bytes, frames, depth);
}

LJP_SIGSAFE bool ljp_push_event(struct ljp_producer *p, enum ljp_record tag,
                                uint64_t time_ns, const void *fields,
                                size_t field_bytes, const char *text,
                                unsigned text_bytes)
{
  return producer_put_event(p, tag, time_ns, fields, field_bytes, text,
                            text_bytes, NULL, 0);
}

LJP_SIGSAFE bool ljp_push_gc_fields(struct ljp_producer *p, uint64_t time_ns,
                                    const struct ljp_gc_fields *fields)
{
  return producer_put_event(p, LJP_REC_GC, time_ns, fields, sizeof *fields, "",
                            0, NULL, 0);
}
