/*
** Live blocks: a pool of blocks in chunks that never move, and a hash table
** with open addressing over it. A removal closes the gap it leaves, so there
** are no tombstones. One thread a table.
*/
#include "parsers/profile/live_blocks.h"

#include <string.h>
#include <sys/random.h>

#include "parsers/base/array.h"
#include "parsers/base/index.h"
#include "parsers/base/pages.h"
#include "src/base/assert.h"

#define UNUSED INT32_MAX /* `mark` of a block in the free list. */
_Static_assert(LJP_LIVE_CHUNK % LJP_LIVE_GROUP == 0, "groups lie in chunks");

void ljp_live_fini(struct ljp_live *live)
{
  for (uint32_t i = 0; i < live->chunk_count; i++) {
    ljp_pages_give_back(live->chunks[i],
                        LJP_LIVE_CHUNK * sizeof **live->chunks);
    free(live->weights[i]);
  }
  free(live->chunks);
  for (uint32_t i = 0; i < live->number_chunks; i++)
    free(live->numbers[i]);
  free(live->numbers);
  free(live->weights);
  free(live->groups);
  ljp_pages_give_back(live->slots,
                      (size_t)live->slot_count * sizeof *live->slots);
  *live = (struct ljp_live){0};
}

/* The hash of an address. It is kept in the slot, so that the table can grow
** and close gaps without reading blocks. */
static uint32_t live_tag(const struct ljp_live *live, uint64_t address)
{
  return ljp_hash_finish(ljp_hash_mix(live->seed, address));
}

/* The slot of an address, or the free slot where it belongs. */
static struct ljp_live_slot *live_slot(const struct ljp_live *live,
                                       uint64_t address)
{
  uint32_t tag = live_tag(live, address), mask = live->slot_count - 1;
  uint32_t at = tag & mask;
  for (; live->slots[at].block; at = (at + 1) & mask)
    if (live->slots[at].tag == tag &&
        ljp_live_block(live, live->slots[at].block)->address == address)
      break;
  return &live->slots[at];
}

uint32_t ljp_live_find(const struct ljp_live *live, uint64_t address)
{
  return live->slot_count ? live_slot(live, address)->block : 0;
}

void ljp_live_prefetch_slot(const struct ljp_live *live, uint64_t address)
{
  if (live->slot_count)
    __builtin_prefetch(
        &live->slots[live_tag(live, address) & (live->slot_count - 1)], 1);
}

uint32_t ljp_live_prefetch_block(const struct ljp_live *live, uint64_t address)
{
  if (!live->slot_count)
    return 0;
  uint32_t tag = live_tag(live, address), mask = live->slot_count - 1;
  for (uint32_t at = tag & mask; live->slots[at].block; at = (at + 1) & mask)
    if (live->slots[at].tag == tag) {
      __builtin_prefetch(ljp_live_block(live, live->slots[at].block), 1);
      return live->slots[at].block;
    }
  return 0;
}

static bool live_grow_slots(struct ljp_live *live)
{
  uint32_t count = live->slot_count ? live->slot_count * 2 : 8;
  struct ljp_live_slot *old = live->slots, *slots;
  uint32_t old_count = live->slot_count;
  if (!count || !(slots = ljp_pages_take((size_t)count * sizeof *slots)))
    return false;
  if (!live->seed &&
      getrandom(&live->seed, sizeof live->seed, GRND_NONBLOCK) < 0)
    live->seed = (uintptr_t)slots;
  live->slots = slots;
  live->slot_count = count;
  for (uint32_t i = 0; i < old_count; i++)
    if (old[i].block) {
      uint32_t at = old[i].tag & (count - 1);
      while (slots[at].block)
        at = (at + 1) & (count - 1);
      slots[at] = old[i];
    }
  ljp_pages_give_back(old, (size_t)old_count * sizeof *old);
  return true;
}

static bool live_grow_chunks(struct ljp_live *live)
{
  uint32_t room = live->chunk_room, same = live->chunk_room;
  if (!ljp_array_reserve(&live->chunks, live->chunk_count, &room,
                         sizeof *live->chunks))
    return false;
  if (!ljp_array_reserve(&live->weights, live->chunk_count, &same,
                         sizeof *live->weights))
    return false; /* chunks then has more room than chunk_room says. */
  live->chunk_room = same;
  live->chunks[live->chunk_count] =
      ljp_pages_take(LJP_LIVE_CHUNK * sizeof **live->chunks);
  if (!live->chunks[live->chunk_count])
    return false;
  live->weights[live->chunk_count++] = NULL;
  return true;
}

/* Gives the owner a group. */
static bool live_take_group(struct ljp_live *live, struct ljp_live_owner *owner,
                            uint32_t number)
{
  uint32_t group = live->free_group;
  if (group) {
    live->free_group = live->groups[group - 1].next;
  } else {
    if ((live->group_count + 1) * LJP_LIVE_GROUP >
            live->chunk_count * LJP_LIVE_CHUNK &&
        !live_grow_chunks(live))
      return false;
    if (!ljp_array_reserve(&live->groups, live->group_count, &live->group_room,
                           sizeof *live->groups))
      return false;
    group = ++live->group_count;
  }
  live->groups[group - 1] =
      (struct ljp_live_group){.owner = number, .next = owner->group};
  owner->group = group;
  owner->used = 0;
  return true;
}

enum ljp_status ljp_live_add(struct ljp_live *live,
                             struct ljp_live_owner *owner, uint32_t number,
                             const struct ljp_live_block *block,
                             uint64_t weight)
{
  uint32_t at = owner->free;
  if (live->count >= live->slot_count / 4 * 3 && !live_grow_slots(live))
    return LJP_ERR_MEM;
  if (!at) {
    if ((!owner->group || owner->used == LJP_LIVE_GROUP) &&
        !live_take_group(live, owner, number))
      return LJP_ERR_MEM;
    at = (owner->group - 1) * LJP_LIVE_GROUP + owner->used + 1;
  }
  ljp_assert(ljp_live_owner_of(live, at) == number);
  uint32_t chunk = (at - 1) / LJP_LIVE_CHUNK;
  if (weight && !live->weights[chunk]) {
    live->weights[chunk] = calloc(LJP_LIVE_CHUNK, sizeof **live->weights);
    if (!live->weights[chunk])
      return LJP_ERR_MEM;
  }
  struct ljp_live_block *to = ljp_live_block(live, at);
  ljp_assert(!owner->free || to->mark == UNUSED);
  if (owner->free)
    owner->free = to->memory;
  else
    owner->used++;
  *to = *block;
  if (live->weights[chunk])
    live->weights[chunk][(at - 1) % LJP_LIVE_CHUNK] = weight;
  struct ljp_live_slot *slot = live_slot(live, block->address);
  ljp_assert(!slot->block);
  *slot = (struct ljp_live_slot){live_tag(live, block->address), at};
  live->count++;
  return LJP_OK;
}

enum ljp_status ljp_live_set_number(struct ljp_live *live, uint32_t block,
                                    uint64_t number)
{
  uint32_t chunk = (block - 1) / LJP_LIVE_CHUNK;
  while (live->number_chunks <= chunk) {
    if (!ljp_array_reserve(&live->numbers, live->number_chunks,
                           &live->number_room, sizeof *live->numbers))
      return LJP_ERR_MEM;
    live->numbers[live->number_chunks++] = NULL;
  }
  if (!live->numbers[chunk])
    live->numbers[chunk] = calloc(LJP_LIVE_CHUNK, sizeof **live->numbers);
  if (!live->numbers[chunk])
    return LJP_ERR_MEM;
  live->numbers[chunk][(block - 1) % LJP_LIVE_CHUNK] = number;
  return LJP_OK;
}

void ljp_live_remove(struct ljp_live *live, struct ljp_live_owner *owner,
                     uint32_t block)
{
  struct ljp_live_block *b = ljp_live_block(live, block);
  uint32_t mask = live->slot_count - 1;
  uint32_t hole = (uint32_t)(live_slot(live, b->address) - live->slots);
  ljp_assert(live->slots[hole].block == block && b->mark != UNUSED);
  /* Close the gap: move back each later entry that may be there. */
  for (uint32_t at = (hole + 1) & mask; live->slots[at].block;
       at = (at + 1) & mask) {
    uint32_t home = live->slots[at].tag & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      live->slots[hole] = live->slots[at];
      hole = at;
    }
  }
  live->slots[hole].block = 0;
  *b = (struct ljp_live_block){.memory = owner->free, .mark = UNUSED};
  owner->free = block;
  live->count--;
}

uint32_t ljp_live_next_of(const struct ljp_live *live,
                          const struct ljp_live_owner *owner,
                          struct ljp_live_walk *walk)
{
  if (!walk->group)
    *walk = (struct ljp_live_walk){.group = owner->group};
  while (walk->group) {
    uint32_t used = walk->group == owner->group ? owner->used : LJP_LIVE_GROUP;
    while (walk->at < used) {
      uint32_t block = (walk->group - 1) * LJP_LIVE_GROUP + ++walk->at;
      if (ljp_live_block(live, block)->mark != UNUSED)
        return block;
    }
    walk->group = live->groups[walk->group - 1].next;
    walk->at = 0;
  }
  return 0;
}

void ljp_live_release(struct ljp_live *live, struct ljp_live_owner *owner)
{
  while (owner->group) {
    uint32_t group = owner->group;
    owner->group = live->groups[group - 1].next;
    live->groups[group - 1].next = live->free_group;
    live->free_group = group;
  }
  *owner = (struct ljp_live_owner){0};
}

void ljp_live_clear(struct ljp_live *live)
{
  live->group_count = live->free_group = live->count = 0;
  if (live->slot_count)
    memset(live->slots, 0, live->slot_count * sizeof *live->slots);
}
