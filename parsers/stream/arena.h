/*
** Arena: the definitions of one epoch with their strings, found by tag and id
** and freed all at once. Invariant: its memory never exceeds the limit given.
** One thread an arena.
*/
#ifndef LJP_PARSERS_ARENA_H
#define LJP_PARSERS_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ljp_arena_piece;

struct ljp_arena_slot {
  uint64_t id;
  uint32_t tag; /* 0: free slot. */
  void *value;
};

struct ljp_arena {
  struct ljp_arena_piece *pieces;
  struct ljp_arena_slot *slots; /* Open addressing, at most half full. */
  size_t slot_count, used_slots;
  size_t bytes, limit;
};

void ljp_arena_init(struct ljp_arena *arena, size_t limit);
void ljp_arena_fini(struct ljp_arena *arena);

/* Memory that is valid as long as the arena, aligned for a uint64_t. NULL: the
** limit is reached, or there is no memory (then *no_memory is set). */
void *ljp_arena_take(struct ljp_arena *arena, size_t size, bool *no_memory);

void *ljp_arena_find(const struct ljp_arena *arena, uint32_t tag, uint64_t id);

/* Sets the value of a key. false: as NULL from ljp_arena_take(). */
bool ljp_arena_put(struct ljp_arena *arena, uint32_t tag, uint64_t id,
                   void *value, bool *no_memory);

#endif
