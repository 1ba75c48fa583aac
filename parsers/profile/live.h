/*
** The table of blocks of memory that live, while a stream is read: by
** address. A block takes 32 bytes (40 in sampled streams) and its share of a
** hash table of 8 bytes a place, at most 3/4 full: at most 61 bytes when
** full to 3/8 right after the table grew. Addresses come from the input: two
** may be alike, none is believed. One thread a table.
*/
#ifndef LJP_PARSERS_PROFILE_LIVE_H
#define LJP_PARSERS_PROFILE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "parsers/profile/estimate.h"
#include "src/base/status.h"

struct ljp_live_block {
  uint64_t address, size;
  uint32_t memory; /* Where it was allocated; LJP_LIVE_UNWANTED: left out. */
  uint32_t cycle;  /* GC cycle of its VM then. */
  uint32_t ms;     /* Time since the origin, saturating. */
  uint32_t mark;   /* Marks that had been set. */
};
#define LJP_LIVE_UNWANTED UINT32_MAX

#ifdef LJP_DEBUG
#define LJP_LIVE_CHUNK 4u
#else
#define LJP_LIVE_CHUNK 65536u
#endif

struct ljp_live_slot {
  uint32_t tag, block; /* block + 1; 0: free. */
};

struct ljp_live {
  struct ljp_live_block **chunks;
  uint64_t **weights; /* By chunk, made when one is not 0. */
  uint32_t chunk_count, chunk_room;
  uint32_t used, free; /* Blocks ever taken; list of free ones, + 1. */
  uint32_t count;
  struct ljp_live_slot *slots;
  uint32_t slot_count;
  uint64_t seed;

  uint32_t *cycles; /* GC cycles, by VM. */
  uint32_t cycle_room;
  uint32_t since_mark; /* Blocks from this mark on are recent. */

  uint64_t objects, bytes, most_bytes, fall;
  struct ljp_estimate estimate; /* Of these objects and bytes. */
  bool falling;
};

void ljp_live_fini(struct ljp_live *live);

/* Block + 1 of an address; 0: none. */
uint32_t ljp_live_find(const struct ljp_live *live, uint64_t address);

/* Hints that the address will be looked for: soon, and a little later, when
** its slot has come from memory. Then the block that it may be; 0: none. */
void ljp_live_soon(const struct ljp_live *live, uint64_t address);
uint32_t ljp_live_sooner(const struct ljp_live *live, uint64_t address);

/* Takes a block in whose address is not there. LJP_ERR_MEM. */
enum ljp_status ljp_live_add(struct ljp_live *live,
                             const struct ljp_live_block *block,
                             uint64_t weight);
void ljp_live_remove(struct ljp_live *live, uint32_t block);
void ljp_live_clear(struct ljp_live *live);

static inline struct ljp_live_block *ljp_live_block(const struct ljp_live *live,
                                                    uint32_t block)
{
  return &live->chunks[(block - 1) / LJP_LIVE_CHUNK]
                      [(block - 1) % LJP_LIVE_CHUNK];
}

/* 0: it stands for itself. */
static inline uint64_t ljp_live_weight(const struct ljp_live *live,
                                       uint32_t block)
{
  const uint64_t *weights = live->weights[(block - 1) / LJP_LIVE_CHUNK];
  return weights ? weights[(block - 1) % LJP_LIVE_CHUNK] : 0;
}

#endif
