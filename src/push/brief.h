/*
** The brief memory event: two words in the ring, for an allocation or a free
** with the time, the VM and the stack of the memory event before. Most of what
** a profiler of every event pushes is such, and most of the rest differs by the
** top of its stack; so both are inline. Ordinary code.
*/
#ifndef LJP_BRIEF_H
#define LJP_BRIEF_H

#include "src/push/producer_impl.h"

static inline uint64_t ljp_brief_kinds(uint8_t vmstate, uint8_t op,
                                       uint8_t what)
{
  return (uint64_t)vmstate << 40 | (uint64_t)op << 48 | (uint64_t)what << 56;
}

/* VM and stack are those of this producer's memory event before: that, and that
** the producer is active, is for the caller to know. False: it is not in the
** ring, and nothing is lost yet; try again after ljp_brief_look(), or push it as
** any other. */
static inline bool ljp_push_mem_brief(struct ljp_producer *p, uint64_t time_ns,
                                      uint64_t address, uint64_t size,
                                      uint64_t kinds)
{
  struct ljp_ring *ring = &p->ring;
  /* Relaxed: only this side writes it. busy: see enter() in producer.c. */
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  if (LJP_UNLIKELY(time_ns != p->mem_time ||
                   (size | address >> 32) > LJP_BRIEF_SIZE_MAX ||
                   head >= p->look_at ||
                   atomic_load_explicit(&p->busy, memory_order_relaxed)))
    return false;
  atomic_store_explicit(&p->busy, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  struct ljp_ring_brief *out =
      (void *)(ring->data + (head & (ring->capacity - 1)));
  const uint64_t first =
      sizeof(struct ljp_ring_brief) | (uint64_t)LJP_RING_BRIEF << 32 | kinds;
  memcpy(&out->head, &first, sizeof first);
  out->word = address << LJP_BRIEF_SIZE_BITS | size;
  /* Release: as ljp_ring_commit(). */
  atomic_store_explicit(&ring->head, head + sizeof *out, memory_order_release);
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&p->busy, false, memory_order_relaxed);
  return true;
}

/* A whole memory event, of a stack that is root first; the first `keep` frames are
** those of this producer's last one. As above: what is not pushed is not lost
** yet. No reallocation, nor one with a weight. */
static inline bool ljp_push_mem_top(struct ljp_producer *p,
                                    const struct ljp_mem *m,
                                    const uint64_t *stack, unsigned n,
                                    unsigned keep)
{
  struct ljp_ring *ring = &p->ring;
  struct ljp_ring_mem *out;
  unsigned max = n < p->depth ? n : p->depth;
  while (keep < max && p->stack[keep] == stack[keep])
    keep++;
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  uint64_t size = sizeof *out + 8 * (uint64_t)(n - keep);
  /* Where a brief one would end in time that begins before look_at. */
  if (LJP_UNLIKELY(head + size > p->look_at + 8 || keep > p->depth ||
                   atomic_load_explicit(&p->busy, memory_order_relaxed)))
    return false;
  atomic_store_explicit(&p->busy, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  out = (void *)(ring->data + (head & (ring->capacity - 1)));
  const uint64_t first = size | (uint64_t)LJP_RING_MEM << 32 |
                         ljp_brief_kinds(m->vmstate, m->op, m->what);
  memcpy(&out->head, &first, sizeof first);
  out->time_ns = m->time_ns;
  out->address = m->address;
  out->size = m->size;
  const uint64_t last =
      m->vm | (uint64_t)keep << 32 | (uint64_t)(n - keep) << 48;
  memcpy(&out->vm, &last, sizeof last);
  for (unsigned i = keep; i < n; i++)
    out->rest[i - keep] = p->stack[i] = stack[i];
  p->depth = n;
  p->mem_time = m->time_ns;
  /* Release: as ljp_ring_commit(). */
  atomic_store_explicit(&ring->head, head + size, memory_order_release);
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&p->busy, false, memory_order_relaxed);
  return true;
}

/* After one that did not go: true if that was for want of room, and there is
** some now. */
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
