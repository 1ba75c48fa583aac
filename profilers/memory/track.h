/*
** Sampled blocks that are alive: address -> size and weight. Open addressing
** with linear probing; the table doubles up to a bound. One thread only.
*/
#ifndef LJP_MEMORY_TRACK_H
#define LJP_MEMORY_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  LJP_TRACK_MAX = 1 << 20
}; /* blocks; the table has twice as many slots, of 24 bytes each */

struct ljp_tracked {
  uint64_t address; /* 0: free slot */
  uint64_t size, weight;
};

enum {
  LJP_TRACK_FILTER_BITS = 12,
  LJP_TRACK_WIDE = 8 /* places in the wide filter per slot */
};

/* Two filters, for a host's own allocator, whose blocks cannot carry a flag.
** entry.c asks them about every block that is freed. Each place counts the
** blocks that hash to it; a count of 255 means 255 or more, and stays. The
** small filter stays in the nearest cache, and its hash is a part of the
** address. With a thousand blocks in the table it lets one in five of all other
** blocks pass. The wide filter, which grows with the table, stops most of
** those. */
struct ljp_track {
  _Alignas(64) uint8_t filter[1 << LJP_TRACK_FILTER_BITS];
  uint8_t *wide;             /* NULL until the first block */
  uint32_t wide_shift;       /* of its hash */
  uint32_t mask, count;      /* mask of the slots' indexes; tracked blocks */
  struct ljp_tracked *slots; /* NULL until the first block */
  bool filters;              /* the filters are wanted; set before the first
                             ** put */
};

/* Adds a block, or replaces one with the same address, whose free went unseen.
** False: the table is full, or out of memory. */
bool ljp_track_put(struct ljp_track *track, const struct ljp_tracked *block);

/* Removes a block. False: the table does not have it. */
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
