/*
** Ring: a queue of entries from one producer (maybe a signal handler) to one
** consumer.
** Invariants: tail <= head <= tail + capacity; both only grow; every entry is
** contiguous, 8-aligned, and whole or absent. An entry that would cross the
** end of the buffer goes to its start, and a PAD entry fills the gap.
** Safety: reserve and commit are LJP_SIGSAFE and belong to the producer, next
** and release to the consumer. Nothing here blocks or allocates.
*/
#ifndef LJP_RING_H
#define LJP_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/assert.h"
#include "src/base/sigsafe.h"

enum { LJP_RING_PAD = 0 }; /* Type of the filler; other types are not 0. */

struct ljp_ring_entry {
  uint32_t size; /* Of the whole entry in bytes, a multiple of 8. */
  uint8_t type;
  uint8_t own[3]; /* For the type to use. */
};
_Static_assert(sizeof(struct ljp_ring_entry) == 8, "a PAD fits anywhere");

struct ljp_ring {
  _Alignas(64) _Atomic uint64_t head; /* Written by the producer only. */
  uint64_t tail_seen;                 /* Producer's last look at tail. */
  uint64_t pending;                   /* Head after the next commit. */
  _Alignas(64) _Atomic uint64_t tail; /* Written by the consumer only. */
  _Alignas(64) uint64_t capacity;     /* A power of two. */
  uint8_t *data;
};

/* data: capacity bytes, 8-aligned; must outlive the ring. */
static inline void ljp_ring_init(struct ljp_ring *ring, uint8_t *data,
                                 uint64_t capacity)
{
  ljp_assert(capacity && (capacity & (capacity - 1)) == 0);
  ljp_assert(((uintptr_t)data & 7) == 0);
  atomic_init(&ring->head, 0);
  atomic_init(&ring->tail, 0);
  ring->tail_seen = ring->pending = 0;
  ring->capacity = capacity;
  ring->data = data;
}

/* The largest entry that is sure to fit into an empty ring. */
static inline uint64_t ljp_ring_max_entry(const struct ljp_ring *ring)
{
  return ring->capacity / 2;
}

/* Room for an entry of size bytes (a multiple of 8), or NULL if full. */
LJP_SIGSAFE static inline struct ljp_ring_entry *
ljp_ring_reserve(struct ljp_ring *ring, uint32_t size)
{
  ljp_assert(size >= sizeof(struct ljp_ring_entry) && size % 8 == 0);
  /* Relaxed: only this side writes head. */
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  uint64_t offset = head & (ring->capacity - 1);
  uint64_t rest = ring->capacity - offset;
  uint64_t pad = size > rest ? rest : 0;
  ljp_assert(head - ring->tail_seen <= ring->capacity);
  if (head + pad + size - ring->tail_seen > ring->capacity) {
    /* Acquire: the consumer read the bytes that we are about to overwrite
    ** before it released tail. */
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    ljp_assert(ring->tail_seen <= head);
    if (head + pad + size - ring->tail_seen > ring->capacity)
      return NULL;
  }
  if (pad) {
    struct ljp_ring_entry *filler =
        (struct ljp_ring_entry *)(void *)(ring->data + offset);
    filler->size = (uint32_t)pad;
    filler->type = LJP_RING_PAD;
    offset = 0;
  }
  ring->pending = head + pad + size;
  struct ljp_ring_entry *entry =
      (struct ljp_ring_entry *)(void *)(ring->data + offset);
  entry->size = size;
  return entry;
}

/* Publishes the reserved entry. A reservation without commit writes nothing. */
LJP_SIGSAFE static inline void ljp_ring_commit(struct ljp_ring *ring)
{
  ljp_assert(ring->pending >
             atomic_load_explicit(&ring->head, memory_order_relaxed));
  ljp_assert(ring->pending - ring->tail_seen <= ring->capacity);
  /* Release: the entry's bytes are visible before the new head is. */
  atomic_store_explicit(&ring->head, ring->pending, memory_order_release);
}

/* Are more than limit bytes in use, as the producer sees it? Reads the shared
** tail only if the last value seen says so. */
LJP_SIGSAFE static inline bool ljp_ring_fuller_than(struct ljp_ring *ring,
                                                    uint64_t limit)
{
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  if (LJP_LIKELY(head - ring->tail_seen <= limit))
    return false;
  ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
  return head - ring->tail_seen > limit;
}

/* Consumer: everything before the returned position may be read. */
static inline uint64_t ljp_ring_head(struct ljp_ring *ring)
{
  /* Acquire: pairs with the commit's release. */
  return atomic_load_explicit(&ring->head, memory_order_acquire);
}

static inline uint64_t ljp_ring_tail(struct ljp_ring *ring)
{
  /* Relaxed: only the consumer writes it. */
  return atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

/*
** Consumer: the entry at *pos, or NULL if *pos is end; moves *pos past it. The
** entry is valid until a position behind it is released.
*/
static inline const struct ljp_ring_entry *
ljp_ring_next(const struct ljp_ring *ring, uint64_t *pos, uint64_t end)
{
  while (*pos != end) {
    const struct ljp_ring_entry *entry =
        (const void *)(ring->data + (*pos & (ring->capacity - 1)));
    ljp_assert(entry->size >= sizeof *entry && entry->size % 8 == 0);
    ljp_assert(entry->size <= end - *pos);
    *pos += entry->size;
    if (entry->type != LJP_RING_PAD)
      return entry;
  }
  return NULL;
}

/* Consumer: gives the bytes before pos back to the producer. */
static inline void ljp_ring_release(struct ljp_ring *ring, uint64_t pos)
{
  ljp_assert(pos >= ljp_ring_tail(ring) && pos <= ljp_ring_head(ring));
  /* Release: our reads are done before the producer may overwrite. */
  atomic_store_explicit(&ring->tail, pos, memory_order_release);
}

#endif
