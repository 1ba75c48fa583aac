/*
** Ring: records from one producer (maybe a signal handler) to one consumer.
** Invariants: tail <= head <= tail + capacity; both only grow; every record is
** contiguous, 8-aligned, and whole or absent. A record that would cross the
** end is put at the start, behind a PAD record that fills the rest.
** Safety: reserve and commit are LJP_SIGSAFE and belong to the producer, next
** and release to the consumer. Nothing here blocks or allocates.
*/
#ifndef LJP_RING_H
#define LJP_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/sigsafe.h"

enum { LJP_RING_PAD = 0 }; /* Type of the filler; users' types are not 0. */

struct ljp_ring_record {
  uint32_t size; /* Of the whole record, a multiple of 8. */
  uint8_t type;
  uint8_t a, b, c; /* The user's. */
};
_Static_assert(sizeof(struct ljp_ring_record) == 8, "a PAD fits anywhere");

struct ljp_ring {
  _Alignas(64) _Atomic uint64_t head; /* Written by the producer only. */
  uint64_t tail_seen;                 /* Producer's last look at tail. */
  uint64_t pending;                   /* Head once the reserved is committed. */
  _Alignas(64) _Atomic uint64_t tail; /* Written by the consumer only. */
  _Alignas(64) uint64_t capacity;     /* A power of two. */
  uint8_t *data;
};

/* data: capacity bytes, 8-aligned, outliving the ring. */
static inline void ljp_ring_init(struct ljp_ring *ring, uint8_t *data,
                                 uint64_t capacity)
{
  atomic_init(&ring->head, 0);
  atomic_init(&ring->tail, 0);
  ring->tail_seen = ring->pending = 0;
  ring->capacity = capacity;
  ring->data = data;
}

/* The largest record that surely fits once the ring is empty. */
static inline uint64_t ljp_ring_max_record(const struct ljp_ring *ring)
{
  return ring->capacity / 2;
}

/* Room for a record of size bytes (a multiple of 8), or NULL if full. */
LJP_SIGSAFE static inline struct ljp_ring_record *
ljp_ring_reserve(struct ljp_ring *ring, uint32_t size)
{
  /* Relaxed: only this side writes head. */
  uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  uint64_t offset = head & (ring->capacity - 1);
  uint64_t rest = ring->capacity - offset;
  uint64_t pad = size > rest ? rest : 0;
  if (head + pad + size - ring->tail_seen > ring->capacity) {
    /* Acquire: the consumer's reads of the bytes that we are about to
    ** overwrite came before its release of tail. */
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (head + pad + size - ring->tail_seen > ring->capacity)
      return NULL;
  }
  if (pad) {
    struct ljp_ring_record *filler =
        (struct ljp_ring_record *)(void *)(ring->data + offset);
    filler->size = (uint32_t)pad;
    filler->type = LJP_RING_PAD;
    offset = 0;
  }
  ring->pending = head + pad + size;
  struct ljp_ring_record *record =
      (struct ljp_ring_record *)(void *)(ring->data + offset);
  record->size = size;
  return record;
}

/* Makes the reserved record visible. Without it, nothing was written. */
LJP_SIGSAFE static inline void ljp_ring_commit(struct ljp_ring *ring)
{
  /* Release: the record's bytes are visible before the new head is. */
  atomic_store_explicit(&ring->head, ring->pending, memory_order_release);
}

/* Bytes in use as the producer sees them; looks again only above limit. */
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
** Consumer: the record at *pos, NULL if pos == end; moves *pos past it. Valid
** until ljp_ring_release of a position behind it.
*/
static inline const struct ljp_ring_record *
ljp_ring_next(const struct ljp_ring *ring, uint64_t *pos, uint64_t end)
{
  while (*pos != end) {
    const struct ljp_ring_record *record =
        (const void *)(ring->data + (*pos & (ring->capacity - 1)));
    *pos += record->size;
    if (record->type != LJP_RING_PAD)
      return record;
  }
  return NULL;
}

/* Consumer: gives the bytes before pos back to the producer. */
static inline void ljp_ring_release(struct ljp_ring *ring, uint64_t pos)
{
  /* Release: our reads are done before the producer may overwrite. */
  atomic_store_explicit(&ring->tail, pos, memory_order_release);
}

#endif
