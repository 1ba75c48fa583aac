/*
** See intern.h. Open addressing with linear probing, half full at most.
*/
#include "src/intern.h"

#include <stdlib.h>
#include <string.h>

#ifdef LJP_DEBUG
enum { FIRST_CAPACITY = 16 };
#else
enum { FIRST_CAPACITY = 4096 };
#endif

static uint32_t hash(uint32_t parent, uint64_t word)
{
  uint64_t h = (word ^ (uint64_t)parent * UINT64_C(0x9e3779b97f4a7c15)) *
               UINT64_C(0xff51afd7ed558ccd);
  return (uint32_t)(h >> 32) ^ (uint32_t)h >> 7;
}

static enum ljp_status grow(struct ljp_intern *t, uint32_t capacity)
{
  struct ljp_node *nodes = realloc(t->nodes, sizeof *nodes * capacity);
  if (!nodes)
    return LJP_ERR_MEM;
  t->nodes = nodes;
  uint32_t *slots = calloc(capacity, 2 * sizeof *slots);
  if (!slots)
    return LJP_ERR_MEM;
  uint32_t mask = 2 * capacity - 1;
  for (uint32_t i = 0; i < t->count; i++) {
    uint32_t at = hash(nodes[i].parent, nodes[i].word) & mask;
    while (slots[at])
      at = (at + 1) & mask;
    slots[at] = i + 1;
  }
  free(t->slots);
  t->slots = slots;
  t->capacity = capacity;
  return LJP_OK;
}

enum ljp_status ljp_intern_init(struct ljp_intern *t, uint32_t max)
{
  memset(t, 0, sizeof *t);
  t->max = max;
  t->base = 1;
  t->generation = 1;
  enum ljp_status status = grow(t, max < FIRST_CAPACITY ? max : FIRST_CAPACITY);
  if (status)
    ljp_intern_fini(t);
  return status;
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
  t->count = 0;
  t->generation++;
  memset(t->slots, 0, 2 * sizeof *t->slots * t->capacity);
}

uint32_t ljp_intern_node(struct ljp_intern *t, uint32_t parent, uint64_t word)
{
  /* A path was interned from its root in one go: the first child of a node is
  ** mostly the next one in the array. Saves two cache misses a frame. */
  uint32_t guess = parent == LJP_NO_NODE ? 0 : parent + 1;
  if (guess < t->count && t->nodes[guess].word == word &&
      t->nodes[guess].parent == parent)
    return guess;
  uint32_t mask = 2 * t->capacity - 1, at = hash(parent, word) & mask;
  for (; t->slots[at]; at = (at + 1) & mask) {
    const struct ljp_node *node = &t->nodes[t->slots[at] - 1];
    if (node->word == word && node->parent == parent)
      return t->slots[at] - 1;
  }
  if (t->count == t->capacity) {
    if (t->capacity == t->max || grow(t, 2 * t->capacity))
      return LJP_INTERN_FULL;
    mask = 2 * t->capacity - 1;
    at = hash(parent, word) & mask;
    while (t->slots[at])
      at = (at + 1) & mask;
  }
  t->nodes[t->count] = (struct ljp_node){.word = word, .parent = parent};
  t->slots[at] = ++t->count;
  return t->count - 1;
}
