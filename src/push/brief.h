/*
** The inline pushes of memory events. Most of what a profiler of every event
** pushes is brief: an allocation or a free with the time and the VM of the memory
** event before, and a stack that has a number. It takes two words in the ring.
** Most of the rest differs only by the top of its stack. Ordinary code only.
*/
#ifndef LJP_BRIEF_H
#define LJP_BRIEF_H

#include "src/push/producer_state.h"

/* VM state, operation and type of an event as they stand in the first word of
** its entry, which is written at once. */
static inline uint64_t ljp_brief_kinds(uint8_t vmstate, uint8_t op,
                                       uint8_t what)
{
#define LJP_BRIEF_SHIFT(field) (8 * offsetof(struct ljp_brief_entry, field))
  return (uint64_t)vmstate << LJP_BRIEF_SHIFT(vmstate) |
         (uint64_t)op << LJP_BRIEF_SHIFT(op) |
         (uint64_t)what << LJP_BRIEF_SHIFT(what);
}
_Static_assert(offsetof(struct ljp_mem_entry, vmstate) ==
                       offsetof(struct ljp_brief_entry, vmstate) &&
                   offsetof(struct ljp_mem_entry, op) ==
                       offsetof(struct ljp_brief_entry, op) &&
                   offsetof(struct ljp_mem_entry, what) ==
                       offsetof(struct ljp_brief_entry, what),
               "ljp_brief_kinds() serves both");
_Static_assert(offsetof(struct ljp_ring_entry, size) == 0 &&
                   offsetof(struct ljp_ring_entry, type) == 4,
               "size and type make the first word");

/* To be added to the kinds of a brief event: the number of its stack. */
static inline uint64_t ljp_brief_number(unsigned number)
{
  return (uint64_t)number << (LJP_BRIEF_SHIFT(op) + 1);
}

/* Pushes an event whose VM and, without a number, stack are those of this
** producer's memory event before. The caller makes sure of that, and that the
** producer is active.
** False: the event is not in the ring and not lost yet. Try again after
** ljp_brief_look(), or push it in any other way. */
static inline bool ljp_push_mem_brief(struct ljp_producer *p, uint64_t time_ns,
                                      uint64_t address, uint64_t size,
                                      uint64_t kinds)
{
  struct ljp_ring *ring = &p->ring;
  /* Relaxed: only this side writes it. busy: see producer_enter(). */
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  if (LJP_UNLIKELY(time_ns != p->mem_time ||
                   (size | address >> 32) > LJP_BRIEF_SIZE_MAX ||
                   head >= p->look_at ||
                   atomic_load_explicit(&p->busy, memory_order_relaxed)))
    return false;
  atomic_store_explicit(&p->busy, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  struct ljp_brief_entry *out =
      (void *)(ring->data + (head & (ring->capacity - 1)));
  ljp_assert((head & (ring->capacity - 1)) + sizeof *out <= ring->capacity);
  ljp_assert(head + sizeof *out - ring->tail_seen <= ring->capacity);
  const uint64_t first =
      sizeof(struct ljp_brief_entry) | (uint64_t)LJP_ENTRY_BRIEF << 32 | kinds;
  memcpy(&out->head, &first, sizeof first);
  out->block = ljp_brief_block(address, size);
  /* Release: as in ljp_ring_commit(). */
  atomic_store_explicit(&ring->head, head + sizeof *out, memory_order_release);
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&p->busy, false, memory_order_relaxed);
  return true;
}

/* The number of frames, counted from the root, that are the same as in this
** producer's last stack. The first `same` are, unless a push has been lost. */
static inline unsigned ljp_push_common(const struct ljp_producer *p,
                                       const uint64_t *stack, unsigned n,
                                       unsigned same)
{
  unsigned max = n < p->depth ? n : p->depth;
  unsigned keep = same <= p->depth ? same : 0;
  while (keep < max && p->stack[keep] == stack[keep])
    keep++;
  return keep;
}

/* Pushes an event with its whole stack, root first, of which the first `same`
** frames are those of this producer's last stack; or (stack NULL) with the stack
** that has the number n. Not for events with a weight. False: as above. */
static inline bool ljp_push_mem_top(struct ljp_producer *p,
                                    const struct ljp_mem *m,
                                    const uint64_t *stack, unsigned n,
                                    unsigned same)
{
  struct ljp_ring *ring = &p->ring;
  struct ljp_mem_entry *out;
  ljp_assert(!m->weight);
  ljp_assert(same <= n && n <= LJP_STACK_MAX_FRAMES);
  const unsigned keep =
      stack ? ljp_push_common(p, stack, n, same) : LJP_KEEP_NUMBER;
  const unsigned fresh = stack ? n - keep : 0;
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  uint64_t size = ljp_mem_entry_bytes(m, fresh);
  /* A brief event that begins before look_at ends at look_at + 8 or before;
  ** this one has to end there, too. */
  if (LJP_UNLIKELY(head + size > p->look_at + 8 ||
                   atomic_load_explicit(&p->busy, memory_order_relaxed)))
    return false;
  atomic_store_explicit(&p->busy, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  out = (void *)(ring->data + (head & (ring->capacity - 1)));
  ljp_assert((head & (ring->capacity - 1)) + size <= ring->capacity);
  ljp_assert(head + size - ring->tail_seen <= ring->capacity);
  const uint64_t first = size | (uint64_t)LJP_ENTRY_MEM << 32 |
                         ljp_brief_kinds(m->vmstate, m->op, m->what);
  memcpy(&out->head, &first, sizeof first);
  out->time_ns = m->time_ns;
  out->address = m->address;
  out->bytes = m->size;
  out->vm = m->vm;
  out->keep = (uint16_t)keep;
  out->n = (uint16_t)(stack ? fresh : n);
  const struct ljp_mem_parts parts = ljp_mem_entry_parts(out, m->op);
  if (parts.old)
    *parts.old = (struct ljp_mem_entry_old){.address = m->old_address,
                                            .bytes = m->old_size};
  if (stack) {
    for (unsigned i = keep; i < n; i++)
      parts.frames[i - keep] = p->stack[i] = stack[i];
    p->depth = n;
  }
  p->mem_time = m->time_ns;
  /* Release: as in ljp_ring_commit(). */
  atomic_store_explicit(&ring->head, head + size, memory_order_release);
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&p->busy, false, memory_order_relaxed);
  return true;
}

/* Call after a push from above has failed. True: it failed for want of room,
** and now there is some. */
static inline bool ljp_brief_look(struct ljp_producer *p)
{
  if (atomic_load_explicit(&p->ring.head, memory_order_relaxed) < p->look_at ||
      atomic_load_explicit(&p->busy, memory_order_relaxed))
    return false;
  atomic_store_explicit(&p->busy, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  bool room = ljp_producer_look(p);
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&p->busy, false, memory_order_relaxed);
  return room;
}

#endif
