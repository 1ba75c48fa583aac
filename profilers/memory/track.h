/*
** Blocks that were sampled and live: address -> size and weight. Open
** addressing with linear probing, grown by doubling up to a bound. One thread.
*/
#ifndef LJP_MEMORY_TRACK_H
#define LJP_MEMORY_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  LJP_TRACK_MAX = 1 << 20
}; /* blocks; 24 bytes each, twice as many slots */

struct ljp_tracked {
  uint64_t address; /* 0: free slot */
  uint64_t size, weight;
};

enum {
  LJP_TRACK_FILTER_BITS = 12,
  LJP_TRACK_WIDE = 8 /* places in the wide filter for each slot */
};

/* Two filters, for an allocator of the host's, whose blocks do not tell themselves
** whether they are here. Asked about every block that is freed (entry.c):
** how many blocks there are at each of their places; 255: or more, for good. The
** first is small, so that it stays in the first cache, and its hash is part of the
** address. With a thousand blocks it lets every fifth one pass for nothing: the
** wide one, which grows with the table, holds most of these up. */
struct ljp_track {
  _Alignas(64) uint8_t filter[1 << LJP_TRACK_FILTER_BITS];
  uint8_t *wide;             /* as long as there is a block */
  uint32_t wide_shift;       /* its hash's */
  uint32_t mask, count;      /* of the slots */
  struct ljp_tracked *slots; /* NULL while there is none */
  bool filters;              /* wanted; set before the first block comes */
};

/* In the place of one of the same address, if there is one: that has gone
** unseen. False: no room, or no memory. */
bool ljp_track_put(struct ljp_track *track, const struct ljp_tracked *block);

/* Takes it out; false: it is not there. */
bool ljp_track_take(struct ljp_track *track, uint64_t address,
                    struct ljp_tracked *block);

void ljp_track_fini(struct ljp_track *track);

static inline uint32_t ljp_track_hash(uint64_t address)
{
  return (uint32_t)((address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static inline uint32_t ljp_track_filter_at(uint64_t address)
{
  return (uint32_t)(address >> 4 & ((1 << LJP_TRACK_FILTER_BITS) - 1));
}

static inline uint32_t ljp_track_wide_at(uint64_t address, uint32_t shift)
{
  return (uint32_t)(address >> 4) * UINT32_C(0x9e3779b1) >> shift;
}

#endif
