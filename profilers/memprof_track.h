/*
** Blocks that were sampled and live: address -> size and weight. Open
** addressing with linear probing, grown by doubling up to a bound. One thread.
*/
#ifndef LJP_MEMPROF_TRACK_H
#define LJP_MEMPROF_TRACK_H

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

struct ljp_track {
  struct ljp_tracked *slots; /* NULL while there is none */
  uint32_t mask, count;
};

/* False: no room, or no memory. */
bool ljp_track_put(struct ljp_track *track, const struct ljp_tracked *block);

/* Takes it out; false: it is not there. */
bool ljp_track_take(struct ljp_track *track, uint64_t address,
                    struct ljp_tracked *block);

void ljp_track_fini(struct ljp_track *track);

/* Cheap: most blocks that are freed were never sampled. */
static inline uint32_t ljp_track_hash(uint64_t address)
{
  return (uint32_t)((address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static inline bool ljp_track_maybe(const struct ljp_track *track,
                                   uint64_t address)
{
  return track->count &&
         track->slots[ljp_track_hash(address) & track->mask].address;
}

#endif
