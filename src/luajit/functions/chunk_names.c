/*
** Names of chunks; see chunk_names.h.
*/
#include "src/luajit/functions/chunk_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"

static struct ljp_chunk_name **chunk_names;
static uint32_t chunk_count, chunk_slots;
static struct ljp_chunk_name
    *chunk_last; /* the name asked for last, usually asked for again */
static size_t chunk_dead_bytes;

static size_t chunk_bytes(const struct ljp_chunk_name *chunk)
{
  return sizeof *chunk + chunk->length + 1;
}

static void chunk_grow(void)
{
  uint32_t more = chunk_slots ? chunk_slots * 2 : 64;
  struct ljp_chunk_name **fresh = calloc(more, sizeof *fresh);
  if (!fresh)
    return; /* the only harm is longer chains */
  for (uint32_t i = 0; i < chunk_slots; i++) {
    for (struct ljp_chunk_name *n = chunk_names[i], *next; n; n = next) {
      next = n->next;
      n->next = fresh[n->hash & (more - 1)];
      fresh[n->hash & (more - 1)] = n;
    }
  }
  free(chunk_names);
  chunk_names = fresh;
  chunk_slots = more;
}

static bool chunk_is(const struct ljp_chunk_name *chunk, const char *name,
                     size_t length)
{
  return chunk->length == length && memcmp(chunk->name, name, length) == 0;
}

static struct ljp_chunk_name *chunk_use(struct ljp_chunk_name *chunk)
{
  chunk->users++;
  if (chunk->alive++ == 0)
    chunk_dead_bytes -= chunk_bytes(chunk);
  return chunk_last = chunk;
}

struct ljp_chunk_name *ljp_chunk_name_get(const char *name, size_t length,
                                          uint32_t hash)
{
  if (chunk_last && chunk_is(chunk_last, name, length))
    return chunk_use(chunk_last);
  if (chunk_count >= chunk_slots)
    chunk_grow();
  if (!chunk_slots)
    return NULL;
  struct ljp_chunk_name **slot = &chunk_names[hash & (chunk_slots - 1)];
  for (struct ljp_chunk_name *n = *slot; n; n = n->next)
    if (n->hash == hash && chunk_is(n, name, length))
      return chunk_use(n);
  struct ljp_chunk_name *n = malloc(sizeof *n + length + 1);
  if (!n)
    return NULL;
  n->users = n->alive = 1;
  n->hash = hash;
  n->length = (uint32_t)length;
  memcpy(n->name, name, length);
  n->name[length] = '\0';
  n->next = *slot;
  *slot = n;
  chunk_count++;
  return chunk_last = n;
}

void ljp_chunk_name_dies(struct ljp_chunk_name *chunk)
{
  ljp_assert(!chunk || chunk->alive > 0);
  if (chunk && --chunk->alive == 0)
    chunk_dead_bytes += chunk_bytes(chunk);
}

void ljp_chunk_name_put(struct ljp_chunk_name *chunk)
{
  ljp_assert(!chunk || chunk->users > chunk->alive);
  if (!chunk || --chunk->users)
    return;
  struct ljp_chunk_name **at = &chunk_names[chunk->hash & (chunk_slots - 1)];
  while (*at != chunk)
    at = &(*at)->next;
  *at = chunk->next;
  if (chunk_last == chunk)
    chunk_last = NULL;
  chunk_dead_bytes -= chunk_bytes(chunk);
  free(chunk);
  if (--chunk_count == 0) {
    free(chunk_names);
    chunk_names = NULL;
    chunk_slots = 0;
  }
}

size_t ljp_chunk_names_dead_bytes(void)
{
  return chunk_dead_bytes;
}
