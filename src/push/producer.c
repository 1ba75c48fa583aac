/*
** The pushes. LJP_SIGSAFE throughout: no libc call but memcpy, no lock, and a
** system call only to wake the writer of a half-full ring.
** Invariant: stack[0..depth) is what the writer knows as this producer's last
** stack; a record that is lost resets depth and mem_time to 0, so that the next
** one is given in full.
*/
#include "src/push/producer_impl.h"

#include <string.h>

#include "src/base/futex.h"

enum { LOOK_BYTES = 4096 }; /* in between, when the ring is half full */

LJP_SIGSAFE void ljp_count_loss(struct ljp_producer *p, enum ljp_loss reason,
                                uint64_t count)
{
  /* Relaxed and atomic as a whole: a counter, and a signal may come between. */
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
  /* Relaxed: a hint; what is pushed too late is drained or counted. */
  return atomic_load_explicit(&p->active, memory_order_relaxed);
}

const _Atomic bool *ljp_producer_active_flag(const struct ljp_producer *p)
{
  return &p->active;
}

LJP_SIGSAFE void ljp_producer_wake(struct ljp_producer *p)
{
  /* acq_rel so that the writer, having seen 1, sees the head. */
  if (!atomic_exchange_explicit(&p->wake->word, 1, memory_order_acq_rel))
    ljp_futex_wake(&p->wake->word);
}

LJP_SIGSAFE static void nudge(struct ljp_producer *p)
{
  /* Relaxed look: once asked for, further pushes cost one load. One that sees
  ** what is gone already leaves it to the next. */
  if (!atomic_load_explicit(&p->wake->word, memory_order_relaxed))
    ljp_producer_wake(p);
}

/* busy is a matter between a thread and its own signals: relaxed loads and
** stores, fenced against the compiler. */
LJP_SIGSAFE static bool enter(struct ljp_producer *p)
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
LJP_SIGSAFE static void forget(struct ljp_producer *p)
{
  p->depth = 0;
  p->mem_time = 0;
}

LJP_SIGSAFE static void leave(struct ljp_producer *p)
{
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&p->busy, false, memory_order_relaxed);
}

LJP_SIGSAFE static struct ljp_ring_record *room(struct ljp_producer *p,
                                                size_t size)
{
  if (LJP_UNLIKELY(size > ljp_ring_max_record(&p->ring))) {
    ljp_count_loss(p, LJP_LOSS_TOO_BIG, 1);
    return NULL;
  }
  struct ljp_ring_record *record = ljp_ring_reserve(&p->ring, (uint32_t)size);
  if (LJP_UNLIKELY(!record))
    ljp_count_loss(p, LJP_LOSS_RING_FULL, 1);
  return record;
}

LJP_SIGSAFE static void publish(struct ljp_producer *p)
{
  ljp_ring_commit(&p->ring);
  if (LJP_UNLIKELY(ljp_ring_fuller_than(&p->ring, p->half)))
    nudge(p);
}

LJP_SIGSAFE bool ljp_producer_look(struct ljp_producer *p)
{
  struct ljp_ring *ring = &p->ring;
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  /* From any place before these, a multiple of 8, a brief event ends in time: at
  ** the ring's end, and at the tail. */
  uint64_t end = (head | (ring->capacity - 1)) - 7;
  uint64_t look_at = head;
  if (ljp_ring_fuller_than(ring, p->half)) {
    nudge(p);
    uint64_t room = ring->tail_seen + ring->capacity - head;
    if (room >= sizeof(struct ljp_ring_brief))
      look_at += room - 8 < LOOK_BYTES ? room - 8 : LOOK_BYTES;
  } else {
    look_at = ring->tail_seen + p->half + 8; /* there it is not fuller yet */
  }
  p->look_at = look_at < end ? look_at : end;
  return head < p->look_at;
}

/* How many frames from the root are as in the stack before. Four at a time:
** this is most of what a push of the same stack costs. */
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

/* Writes the n new frames (leaf first) root first, here and into the ring. */
LJP_SIGSAFE static void put_frames(struct ljp_producer *p,
                                   uint64_t *restrict out, unsigned keep,
                                   const uint64_t *restrict frames, unsigned n)
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

LJP_SIGSAFE bool ljp_push_sample(struct ljp_producer *p,
                                 const struct ljp_sample *s,
                                 const uint64_t *frames, unsigned n)
{
  struct ljp_ring_sample *out = NULL;
  if (!enter(p))
    return false;
  if (LJP_UNLIKELY(n > LJP_STACK_MAX_FRAMES)) {
    ljp_count_loss(p, LJP_LOSS_TOO_BIG, 1);
  } else {
    unsigned keep = ljp_producer_common(p, frames, n);
    out = (void *)room(p, sizeof *out + 8 * (size_t)(n - keep));
    if (LJP_LIKELY(out != NULL)) {
      out->head.type = LJP_RING_SAMPLE;
      out->head.a = s->vmstate;
      out->head.b = s->cut;
      out->time_ns = s->time_ns;
      out->weight = s->weight;
      out->vm = s->vm;
      out->keep = (uint16_t)keep;
      out->n = (uint16_t)(n - keep);
      put_frames(p, out->frames, keep, frames, n - keep);
      publish(p);
    }
  }
  if (!out)
    forget(p);
  leave(p);
  return out != NULL;
}

LJP_SIGSAFE static void put_up(struct ljp_producer *p, uint64_t *restrict out,
                               unsigned keep, const uint64_t *restrict frames,
                               unsigned n)
{
  uint64_t *restrict stack = p->stack + keep;
  for (unsigned i = 0; i < n; i++)
    out[i] = stack[i] = frames[i];
  p->depth = keep + n;
}

LJP_SIGSAFE bool ljp_producer_put_mem(struct ljp_producer *p,
                                      const struct ljp_mem *m, unsigned keep,
                                      const uint64_t *frames, unsigned n,
                                      bool root_first, bool *full)
{
  struct ljp_ring_mem *out = NULL;
  size_t size = ljp_ring_mem_size(m, n);
  if (!enter(p))
    return false;
  if (LJP_UNLIKELY(keep > p->depth || n > LJP_STACK_MAX_FRAMES - keep)) {
    ljp_count_loss(p, LJP_LOSS_BAD_RECORD, 1);
  } else {
    if (LJP_LIKELY(size <= ljp_ring_max_record(&p->ring)))
      out = (void *)ljp_ring_reserve(&p->ring, (uint32_t)size);
    else
      ljp_count_loss(p, LJP_LOSS_TOO_BIG, 1);
    if (LJP_UNLIKELY(!out && size <= ljp_ring_max_record(&p->ring))) {
      if (full) {
        *full = true;
        leave(p);
        return false;
      }
      ljp_count_loss(p, LJP_LOSS_RING_FULL, 1);
    }
    if (LJP_LIKELY(out != NULL)) {
      uint64_t *rest = out->rest;
      out->head.type = LJP_RING_MEM;
      out->head.a = m->vmstate;
      out->head.b = (uint8_t)(m->op | (m->weight != 0) << 2);
      out->head.c = m->what;
      out->time_ns = m->time_ns;
      out->address = m->address;
      out->size = m->size;
      out->vm = m->vm;
      out->keep = (uint16_t)keep;
      out->n = (uint16_t)n;
      if (m->op == LJP_MEM_REALLOC) {
        *rest++ = m->old_address;
        *rest++ = m->old_size;
      }
      if (m->weight)
        *rest++ = m->weight;
      if (root_first)
        put_up(p, rest, keep, frames, n);
      else
        put_frames(p, rest, keep, frames, n);
      p->mem_time = m->time_ns;
      publish(p);
    }
  }
  if (!out)
    forget(p);
  leave(p);
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
push_event(struct ljp_producer *p, enum ljp_record tag, uint64_t time_ns,
           const uint64_t *words, unsigned n, const char *text,
           unsigned text_bytes, const uint64_t *frames, unsigned depth)
{
  struct ljp_ring_event *out = NULL;
  if (!enter(p))
    return false;
  if (text_bytes > LJP_EVENT_MAX_TEXT)
    text_bytes = LJP_EVENT_MAX_TEXT;
  if (n > LJP_EVENT_MAX_WORDS || depth > LJP_STACK_MAX_FRAMES) {
    ljp_count_loss(p, LJP_LOSS_BAD_RECORD, 1);
  } else {
    unsigned keep = frames ? ljp_producer_common(p, frames, depth) : 0;
    unsigned fresh = frames ? depth - keep : 0;
    size_t size =
        sizeof *out + 8 * (size_t)(n + fresh) + ((text_bytes + 7u) & ~7u);
    out = (void *)room(p, size);
    if (out) {
      out->head.type = LJP_RING_EVENT;
      out->head.a = (uint8_t)tag;
      out->head.b = (uint8_t)n;
      out->head.c = frames != NULL;
      out->time_ns = time_ns;
      out->text_bytes = text_bytes;
      out->keep = (uint16_t)keep;
      out->n = (uint16_t)fresh;
      memcpy(out->words, words, 8 * (size_t)n);
      if (frames)
        put_frames(p, out->words + n, keep, frames, fresh);
      memcpy(out->words + n + fresh, text, text_bytes);
      publish(p);
    }
  }
  if (!out && frames)
    forget(p);
  leave(p);
  return out != NULL;
}

LJP_SIGSAFE bool ljp_push_event_at(struct ljp_producer *p, enum ljp_record tag,
                                   uint64_t time_ns, const uint64_t *words,
                                   unsigned n, const char *text,
                                   unsigned text_bytes, const uint64_t *frames,
                                   unsigned depth)
{
  return push_event(p, tag, time_ns, words, n, text, text_bytes, frames, depth);
}

LJP_SIGSAFE bool ljp_push_event(struct ljp_producer *p, enum ljp_record tag,
                                uint64_t time_ns, const uint64_t *words,
                                unsigned n, const char *text,
                                unsigned text_bytes)
{
  return push_event(p, tag, time_ns, words, n, text, text_bytes, NULL, 0);
}

LJP_SIGSAFE bool ljp_push_four_words(struct ljp_producer *p,
                                     enum ljp_record tag, uint64_t time_ns,
                                     const uint64_t *words)
{
  return push_event(p, tag, time_ns, words, 4, "", 0, NULL, 0);
}
