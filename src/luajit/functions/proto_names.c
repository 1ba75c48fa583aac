/*
** Names of functions; see proto_names.h.
**
** A program may have many functions and need none of their names for days, so
** names are kept small: in cells of whole units in pages, without malloc()'s
** headers and gaps. The number of a name is the position of its cell, in units.
** Free cells are in lists by their size. When the last name is gone, all pages
** but one are freed.
**
** Invariant: a cell never crosses the end of a page.
*/
#include "src/luajit/functions/proto_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/base/describe.h"

enum {
  UNIT = 4,
  PAGE_BYTES = 4096,
  PAGE_UNITS = PAGE_BYTES / UNIT,
};

struct cell {
  uint32_t next; /* in its hash chain, or in the list of free cells */
  uint32_t users;
  char text[];
};

enum {
  FIRST = 1, /* number 0 is no name */
  LARGEST = (sizeof(struct cell) + LJP_NAME_BYTES + UNIT - 1) / UNIT,
};

static char **names_page;
static uint32_t names_pages, names_pages_room;
static uint32_t names_cut; /* units of the last page that are in use */
static uint32_t names_free[LARGEST + 1]; /* by size */
static uint32_t *names_chains;
static uint32_t names_slots, names_count;

static struct cell *names_at(uint32_t number)
{
  return (struct cell *)(void *)(names_page[number / PAGE_UNITS] +
                                 number % PAGE_UNITS * UNIT);
}

static uint32_t names_units(size_t length)
{
  return (uint32_t)(sizeof(struct cell) + length + 1 + UNIT - 1) / UNIT;
}

static uint32_t names_hash(const char *name, size_t length)
{
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ (uint8_t)name[i]) * 16777619u;
  return hash ^ hash >> 15;
}

static void names_keep(uint32_t number, uint32_t units)
{
  if (units > LARGEST || units * UNIT < sizeof(struct cell))
    return; /* the rest of a page that nothing fits into */
  names_at(number)->next = names_free[units];
  names_free[units] = number;
}

__attribute__((noinline)) static bool names_add_page(void)
{
  if (names_pages == names_pages_room) {
    uint32_t room = names_pages_room ? names_pages_room * 2 : 4;
    if (room > LJP_PROTO_NAMES_END / PAGE_UNITS)
      return false;
    char **fresh = realloc(names_page, room * sizeof *fresh);
    if (!fresh)
      return false;
    names_page = fresh;
    names_pages_room = room;
  }
  char *page = malloc(PAGE_BYTES);
  if (!page)
    return false;
  if (names_pages)
    names_keep((names_pages - 1) * PAGE_UNITS + names_cut,
               PAGE_UNITS - names_cut);
  names_page[names_pages++] = page;
  names_cut = names_pages == 1 ? FIRST : 0;
  return true;
}

static uint32_t names_take(uint32_t units)
{
  uint32_t number = names_free[units];
  if (number) {
    names_free[units] = names_at(number)->next;
    return number;
  }
  if ((!names_pages || PAGE_UNITS - names_cut < units) && !names_add_page())
    return 0;
  number = (names_pages - 1) * PAGE_UNITS + names_cut;
  names_cut += units;
  return number;
}

static void names_grow(void)
{
  uint32_t more = names_slots ? names_slots * 2 : 64;
  uint32_t *fresh = calloc(more, sizeof *fresh);
  if (!fresh)
    return; /* the only harm is longer chains */
  for (uint32_t i = 0; i < names_slots; i++) {
    for (uint32_t n = names_chains[i], next; n; n = next) {
      struct cell *cell = names_at(n);
      uint32_t *chain =
          &fresh[names_hash(cell->text, strlen(cell->text)) & (more - 1)];
      next = cell->next;
      cell->next = *chain;
      *chain = n;
    }
  }
  free(names_chains);
  names_chains = fresh;
  names_slots = more;
}

static void names_give_back(void)
{
  while (names_pages > 1)
    free(names_page[--names_pages]);
  names_cut = FIRST;
  free(names_chains);
  names_chains = NULL;
  names_slots = 0;
  memset(names_free, 0, sizeof names_free);
}

uint32_t ljp_proto_name_get(const char *name, size_t length)
{
  length = strnlen(name, length < LJP_NAME_BYTES ? length : LJP_NAME_BYTES - 1);
  if (names_count >= names_slots * 2)
    names_grow();
  if (!names_slots)
    return 0;
  uint32_t *chain = &names_chains[names_hash(name, length) & (names_slots - 1)];
  for (uint32_t n = *chain; n; n = names_at(n)->next) {
    struct cell *cell = names_at(n);
    if (strncmp(cell->text, name, length) == 0 && !cell->text[length]) {
      cell->users++;
      return n;
    }
  }
  uint32_t number = names_take(names_units(length));
  if (!number)
    return 0;
  struct cell *cell = names_at(number);
  cell->users = 1;
  cell->next = *chain;
  *chain = number;
  memcpy(cell->text, name, length);
  cell->text[length] = '\0';
  names_count++;
  return number;
}

void ljp_proto_name_put(uint32_t number)
{
  if (!number)
    return;
  struct cell *cell = names_at(number);
  ljp_assert(cell->users > 0);
  if (--cell->users)
    return;
  size_t length = strlen(cell->text);
  uint32_t *at =
      &names_chains[names_hash(cell->text, length) & (names_slots - 1)];
  while (*at != number)
    at = &names_at(*at)->next;
  *at = cell->next;
  names_keep(number, names_units(length));
  if (--names_count == 0 && names_pages > 1)
    names_give_back();
}

const char *ljp_proto_name(uint32_t number)
{
  return number ? names_at(number)->text : "";
}
