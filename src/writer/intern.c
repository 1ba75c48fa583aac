/*
** See intern.h. Open addressing with linear probing, at most half full.
** Invariant: a child of node p is node p + 1 or has a slot. So of the new
** frames of a stack, only the first may need a slot: the others are added one
** after the other, each right behind its parent.
*/
#include "src/writer/intern.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"

#ifdef LJP_DEBUG
enum { FIRST_CAPACITY = 16 };
#else
enum { FIRST_CAPACITY = 4096 };
#endif

static uint32_t intern_hash(uint32_t parent, uint64_t word)
{
  uint64_t h = (word ^ (uint64_t)parent * UINT64_C(0x9e3779b97f4a7c15)) *
               UINT64_C(0xff51afd7ed558ccd);
  return (uint32_t)(h >> 32) ^ (uint32_t)h >> 7;
}

/* The index of the child that needs no slot. LJP_NO_NODE + 1 is 0. */
static uint32_t intern_slotless_child(uint32_t parent)
{
  return parent + 1;
}

static void intern_put_slot(uint32_t *slots, uint32_t mask,
                            const struct ljp_node *nodes, uint32_t i)
{
  uint32_t at = intern_hash(nodes[i].parent, nodes[i].word) & mask;
  while (slots[at])
    at = (at + 1) & mask;
  slots[at] = i + 1;
}

static bool intern_grow_slots(struct ljp_intern *t, uint32_t count)
{
  uint32_t *slots = calloc(count, sizeof *slots);
  if (!slots)
    return false;
  for (uint32_t i = 0; i < t->count; i++)
    if (i != intern_slotless_child(t->nodes[i].parent))
      intern_put_slot(slots, count - 1, t->nodes, i);
  free(t->slots);
  t->slots = slots;
  t->slot_count = count;
  return true;
}

static bool intern_grow_nodes(struct ljp_intern *t, uint32_t capacity)
{
  struct ljp_node *nodes = realloc(t->nodes, sizeof *nodes * capacity);
  if (!nodes)
    return false;
  t->nodes = nodes;
  t->capacity = capacity;
  return true;
}

/* Returns LJP_NO_NODE if there is no room. */
static uint32_t intern_add(struct ljp_intern *t, uint32_t parent, uint64_t word)
{
  uint32_t i = t->count;
  bool slot = i != intern_slotless_child(parent);
  ljp_assert(i <= t->capacity && (parent == LJP_NO_NODE || parent < i));
  ljp_assert(2 * t->used_slots <= t->slot_count);
  if (i == t->capacity && (i == t->max || !intern_grow_nodes(t, 2 * i)))
    return LJP_NO_NODE;
  if (slot && 2 * (t->used_slots + 1) > t->slot_count &&
      !intern_grow_slots(t, 2 * t->slot_count))
    return LJP_NO_NODE;
  t->nodes[i] = (struct ljp_node){.word = word, .parent = parent};
  if (slot) {
    intern_put_slot(t->slots, t->slot_count - 1, t->nodes, i);
    t->used_slots++;
  }
  t->count++;
  return i;
}

enum ljp_status ljp_intern_init(struct ljp_intern *t, uint32_t max)
{
  ljp_assert(max && (max & (max - 1)) == 0);
  memset(t, 0, sizeof *t);
  t->max = max;
  t->base = 1;
  t->generation = 1;
  uint32_t first = max < FIRST_CAPACITY ? max : FIRST_CAPACITY;
  if (intern_grow_nodes(t, first) && intern_grow_slots(t, first))
    return LJP_OK;
  ljp_intern_fini(t);
  return LJP_ERR_MEM;
}

void ljp_intern_fini(struct ljp_intern *t)
{
  free(t->nodes);
  free(t->slots);
  t->nodes = NULL;
  t->slots = NULL;
}

void ljp_intern_clear(struct ljp_intern *t)
{
  t->base += t->count;
  t->count = t->used_slots = 0;
  t->generation++;
  memset(t->slots, 0, sizeof *t->slots * t->slot_count);
}

/* A kept node moves to the left or stays, so what has not moved yet is not
** overwritten. No table grows. */
void ljp_intern_keep(struct ljp_intern *t, uint32_t *map)
{
  uint32_t count = t->count;
  ljp_intern_clear(t);
  for (uint32_t i = 0; i < count; i++) {
    if (!map[i])
      continue;
    const struct ljp_node node = t->nodes[i];
    uint32_t parent =
        node.parent == LJP_NO_NODE ? LJP_NO_NODE : map[node.parent];
    ljp_assert(t->count <= i);
    map[i] = intern_add(t, parent, node.word);
    ljp_assert(map[i] != LJP_NO_NODE);
  }
}

static bool intern_equal(const struct ljp_intern *t, uint32_t i,
                         uint32_t parent, uint64_t word)
{
  return t->nodes[i].word == word && t->nodes[i].parent == parent;
}

/* Returns LJP_NO_NODE if there is none. */
static uint32_t intern_find(const struct ljp_intern *t, uint32_t parent,
                            uint64_t word)
{
  uint32_t next = intern_slotless_child(parent);
  if (next < t->count && intern_equal(t, next, parent, word))
    return next;
  uint32_t mask = t->slot_count - 1, at = intern_hash(parent, word) & mask;
  for (; t->slots[at]; at = (at + 1) & mask)
    if (intern_equal(t, t->slots[at] - 1, parent, word))
      return t->slots[at] - 1;
  return LJP_NO_NODE;
}

unsigned ljp_intern_path(struct ljp_intern *t, uint32_t parent,
                         const uint64_t *words, unsigned n, uint32_t *chain)
{
  unsigned i;
  for (i = 0; i < n; i++) {
    uint32_t found = intern_find(t, parent, words[i]);
    if (found == LJP_NO_NODE)
      break;
    chain[i] = parent = found;
  }
  /* All others are new, since a node that was just added has no children. */
  for (; i < n; i++) {
    uint32_t added = intern_add(t, parent, words[i]);
    if (added == LJP_NO_NODE)
      break;
    chain[i] = parent = added;
  }
  return i;
}
