/*
** Names of chunks; see chunk_names.h.
*/
#include "src/luajit/functions/chunk_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct ljp_chunk_name **names;
static uint32_t count, slots;
static struct ljp_chunk_name *last; /* the one asked for last: usually again */
static size_t dead_bytes;

static size_t bytes_of(const struct ljp_chunk_name *chunk)
{
  return sizeof *chunk + chunk->length + 1;
}

static void grow(void)
{
  uint32_t more = slots ? slots * 2 : 64;
  struct ljp_chunk_name **fresh = calloc(more, sizeof *fresh);
  if (!fresh)
    return; /* longer chains, nothing worse */
  for (uint32_t i = 0; i < slots; i++) {
    for (struct ljp_chunk_name *n = names[i], *next; n; n = next) {
      next = n->next;
      n->next = fresh[n->hash & (more - 1)];
      fresh[n->hash & (more - 1)] = n;
    }
  }
  free(names);
  names = fresh;
  slots = more;
}

static bool is(const struct ljp_chunk_name *chunk, const char *name,
               size_t length)
{
  return chunk->length == length && memcmp(chunk->name, name, length) == 0;
}

static struct ljp_chunk_name *use(struct ljp_chunk_name *chunk)
{
  chunk->users++;
  if (chunk->alive++ == 0)
    dead_bytes -= bytes_of(chunk);
  return last = chunk;
}

struct ljp_chunk_name *ljp_chunk_name_get(const char *name, size_t length,
                                          uint32_t hash)
{
  if (last && is(last, name, length))
    return use(last);
  if (count >= slots)
    grow();
  if (!slots)
    return NULL;
  struct ljp_chunk_name **slot = &names[hash & (slots - 1)];
  for (struct ljp_chunk_name *n = *slot; n; n = n->next)
    if (n->hash == hash && is(n, name, length))
      return use(n);
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
  count++;
  return last = n;
}

void ljp_chunk_name_dies(struct ljp_chunk_name *chunk)
{
  if (chunk && --chunk->alive == 0)
    dead_bytes += bytes_of(chunk);
}

void ljp_chunk_name_put(struct ljp_chunk_name *chunk)
{
  if (!chunk || --chunk->users)
    return;
  struct ljp_chunk_name **at = &names[chunk->hash & (slots - 1)];
  while (*at != chunk)
    at = &(*at)->next;
  *at = chunk->next;
  if (last == chunk)
    last = NULL;
  count--;
  dead_bytes -= bytes_of(chunk);
  free(chunk);
}

size_t ljp_chunk_names_dead_bytes(void)
{
  return dead_bytes;
}
