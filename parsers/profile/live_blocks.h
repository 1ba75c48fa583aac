/*
** Live blocks: the table of memory blocks that are allocated and not yet
** freed, by address, while a stream is read. A block takes 32 bytes (40 in
** sampled streams) and its share of a hash table, which has 8 bytes a slot and
** is at least 3/8 full after it grew and at most 3/4: 61 bytes in all at most.
**
** Each block has an owner (a VM), which can release all of its blocks at once.
** So the places of blocks are given out in groups, each to one owner.
**
** Addresses come from the input and are never believed: equal ones may be
** allocated twice. A block is named by its place + 1; 0 means none. One thread
** a table.
*/
#ifndef LJP_PARSERS_PROFILE_LIVE_BLOCKS_H
#define LJP_PARSERS_PROFILE_LIVE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"

struct ljp_live_block {
  uint64_t address, size;
  uint32_t memory;    /* In memory[]: of the row that allocated it. */
  uint32_t cycle;     /* GC cycle of its VM at that time. */
  uint32_t ms;        /* That time, since the origin; saturates. */
  uint32_t mark : 31; /* Number of marks before it. */
  uint32_t held : 1;  /* Its allocation is in a file segment before. */
};
/* memory: the options filter the block out. */
#define LJP_LIVE_UNWANTED UINT32_MAX

#ifdef LJP_DEBUG
#define LJP_LIVE_CHUNK 4u
#else
#define LJP_LIVE_CHUNK 65536u
#endif

/* Blocks in a group. */
#ifdef LJP_DEBUG
#define LJP_LIVE_GROUP 2u
#else
#define LJP_LIVE_GROUP 256u
#endif

/* All zero: an owner without blocks. */
struct ljp_live_owner {
  uint32_t group; /* Newest of its groups, + 1; 0: it has none. */
  uint32_t used;  /* Blocks of that group that were ever used. */
  uint32_t free;  /* First of its free list. */
};

struct ljp_live_group {
  uint32_t owner; /* As ljp_live_add() was told. */
  uint32_t next;  /* Older group of this owner, or next free one; + 1. */
};

struct ljp_live_slot {
  uint32_t tag, block; /* Hash of the address; block, 0: free. */
};

struct ljp_live {
  struct ljp_live_block **chunks; /* Blocks; chunks never move. */
  uint64_t **weights;             /* By chunk; NULL: every weight in it is 0. */
  uint64_t **numbers;             /* The same; see ljp_live_set_number(). */
  uint32_t number_chunks, number_room;
  uint32_t chunk_count, chunk_room;
  struct ljp_live_group *groups;
  uint32_t group_count, group_room;
  uint32_t free_group; /* First of the free groups, + 1. */
  uint32_t count;      /* Live blocks. */
  struct ljp_live_slot *slots;
  uint32_t slot_count; /* A power of two. */
  uint64_t seed;       /* Random: input cannot be made to collide. */
};

void ljp_live_fini(struct ljp_live *live);

/* The block at an address; 0: none. */
uint32_t ljp_live_find(const struct ljp_live *live, uint64_t address);

/* Prefetches what ljp_live_find() will need for an address: first the slot,
** and a little later, when the slot has arrived, the block. Returns the block
** that the slot names, which may be another address's; 0: none. */
void ljp_live_prefetch_slot(const struct ljp_live *live, uint64_t address);
uint32_t ljp_live_prefetch_block(const struct ljp_live *live, uint64_t address);

/* Adds a block whose address is not in the table. LJP_ERR_MEM. owner: the one
** with this number. */
enum ljp_status ljp_live_add(struct ljp_live *live,
                             struct ljp_live_owner *owner, uint32_t number,
                             const struct ljp_live_block *block,
                             uint64_t weight);
/* owner: the block's. */
void ljp_live_remove(struct ljp_live *live, struct ljp_live_owner *owner,
                     uint32_t block);
/* Visits an owner's blocks, each of which the caller may remove before the next
** call. *walk is all zero at first. 0: there are no more. */
struct ljp_live_walk {
  uint32_t group, at; /* + 1; in the group */
};
uint32_t ljp_live_next_of(const struct ljp_live *live,
                          const struct ljp_live_owner *owner,
                          struct ljp_live_walk *walk);
/* Takes all places from an owner that has no block left. */
void ljp_live_release(struct ljp_live *live, struct ljp_live_owner *owner);
/* Removes all blocks. The owners must be cleared, too. */
void ljp_live_clear(struct ljp_live *live);

/* The number of a block's owner. */
static inline uint32_t ljp_live_owner_of(const struct ljp_live *live,
                                         uint32_t block)
{
  return live->groups[(block - 1) / LJP_LIVE_GROUP].owner;
}

static inline struct ljp_live_block *ljp_live_block(const struct ljp_live *live,
                                                    uint32_t block)
{
  return &live->chunks[(block - 1) / LJP_LIVE_CHUNK]
                      [(block - 1) % LJP_LIVE_CHUNK];
}

/* A number that the caller gives a block; 0 until then. Chunks without any
** number take no memory for them. LJP_ERR_MEM. */
enum ljp_status ljp_live_set_number(struct ljp_live *live, uint32_t block,
                                    uint64_t number);
static inline uint64_t ljp_live_number(const struct ljp_live *live,
                                       uint32_t block)
{
  uint32_t chunk = (block - 1) / LJP_LIVE_CHUNK;
  const uint64_t *numbers =
      chunk < live->number_chunks ? live->numbers[chunk] : NULL;
  return numbers ? numbers[(block - 1) % LJP_LIVE_CHUNK] : 0;
}

/* The bytes that a sampled block stands for; 0: it stands for itself. */
static inline uint64_t ljp_live_weight(const struct ljp_live *live,
                                       uint32_t block)
{
  const uint64_t *weights = live->weights[(block - 1) / LJP_LIVE_CHUNK];
  return weights ? weights[(block - 1) % LJP_LIVE_CHUNK] : 0;
}

#endif
