/*
** Arena: pieces of memory filled from their front, and a hash table with open
** addressing over the definitions. One thread an arena.
*/
#include "parsers/stream/arena.h"

#include <stdlib.h>

#include "src/base/assert.h"

struct ljp_arena_piece {
  struct ljp_arena_piece *next;
  size_t size, used;
  uint64_t data[];
};

#ifdef LJP_DEBUG
#define PIECE_BYTES 256u
#define FIRST_SLOTS 2u
#else
#define PIECE_BYTES 65536u
#define FIRST_SLOTS 256u
#endif

void ljp_arena_init(struct ljp_arena *arena, size_t limit)
{
  *arena = (struct ljp_arena){.limit = limit};
}

void ljp_arena_fini(struct ljp_arena *arena)
{
  while (arena->pieces) {
    struct ljp_arena_piece *next = arena->pieces->next;
    free(arena->pieces);
    arena->pieces = next;
  }
  free(arena->slots);
  ljp_arena_init(arena, arena->limit);
}

/* Whether the arena may take that many more bytes. */
static bool arena_fits(const struct ljp_arena *arena, size_t more)
{
  return more <= arena->limit && arena->bytes <= arena->limit - more;
}

void *ljp_arena_take(struct ljp_arena *arena, size_t size, bool *no_memory)
{
  struct ljp_arena_piece *piece = arena->pieces;
  size = (size + 7) & ~(size_t)7;
  if (!piece || piece->size - piece->used < size) {
    size_t room = size > PIECE_BYTES ? size : PIECE_BYTES;
    if (!arena_fits(arena, room + sizeof *piece))
      return NULL;
    piece = malloc(sizeof *piece + room);
    if (!piece) {
      *no_memory = true;
      return NULL;
    }
    *piece = (struct ljp_arena_piece){.next = arena->pieces, .size = room};
    arena->pieces = piece;
    arena->bytes += room + sizeof *piece;
  }
  void *p = (char *)piece->data + piece->used;
  piece->used += size;
  ljp_assert(piece->used <= piece->size && arena->bytes <= arena->limit);
  return p;
}

/* The slot that holds the key, or the free slot where it belongs. */
static struct ljp_arena_slot *arena_slot(const struct ljp_arena *arena,
                                         uint32_t tag, uint64_t id)
{
  uint64_t hash = (id ^ (uint64_t)tag << 56) * UINT64_C(0x9e3779b97f4a7c15);
  size_t mask = arena->slot_count - 1;
  size_t i = (size_t)(hash >> 32) & mask;
  while (arena->slots[i].tag &&
         (arena->slots[i].tag != tag || arena->slots[i].id != id))
    i = (i + 1) & mask;
  return &arena->slots[i];
}

void *ljp_arena_find(const struct ljp_arena *arena, uint32_t tag, uint64_t id)
{
  return arena->slot_count ? arena_slot(arena, tag, id)->value : NULL;
}

static bool arena_grow(struct ljp_arena *arena, bool *no_memory)
{
  struct ljp_arena bigger = *arena;
  bigger.slot_count = arena->slot_count ? arena->slot_count * 2 : FIRST_SLOTS;
  size_t bytes = bigger.slot_count * sizeof *bigger.slots;
  if (!arena_fits(arena, bytes)) /* Old and new exist together for a moment. */
    return false;
  bigger.slots = calloc(bigger.slot_count, sizeof *bigger.slots);
  if (!bigger.slots) {
    *no_memory = true;
    return false;
  }
  for (size_t i = 0; i < arena->slot_count; i++)
    if (arena->slots[i].tag)
      *arena_slot(&bigger, arena->slots[i].tag, arena->slots[i].id) =
          arena->slots[i];
  free(arena->slots);
  arena->bytes += bytes - arena->slot_count * sizeof *arena->slots;
  arena->slots = bigger.slots;
  arena->slot_count = bigger.slot_count;
  return true;
}

bool ljp_arena_put(struct ljp_arena *arena, uint32_t tag, uint64_t id,
                   void *value, bool *no_memory)
{
  if (arena->used_slots * 2 >= arena->slot_count &&
      !arena_grow(arena, no_memory))
    return false;
  struct ljp_arena_slot *slot = arena_slot(arena, tag, id);
  if (!slot->tag)
    arena->used_slots++;
  ljp_assert(tag && arena->used_slots * 2 <= arena->slot_count);
  *slot = (struct ljp_arena_slot){id, tag, value};
  return true;
}
