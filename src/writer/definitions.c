/*
** See definitions.h. Open addressing; a purge rebuilds the table in place.
** Invariant: at most half of the slots are used, so each probe ends.
*/
#include "src/writer/definitions.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"

#ifdef LJP_DEBUG
enum { FIRST_CAPACITY = 8 };
#else
enum { FIRST_CAPACITY = 256 };
#endif

static uint64_t defs_key(enum ljp_def_class class, uint64_t key)
{
  return (uint64_t) class << 60 | (key & ((UINT64_C(1) << 60) - 1));
}

/* The slot with the key, or the empty one where it belongs. */
static struct ljp_def *defs_slot(struct ljp_def *slots, uint32_t capacity,
                                 uint64_t key)
{
  uint32_t mask = capacity - 1;
  uint32_t at = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
  while (slots[at].key && slots[at].key != key)
    at = (at + 1) & mask;
  return &slots[at];
}

enum ljp_status ljp_defs_init(struct ljp_defs *defs)
{
  memset(defs, 0, sizeof *defs);
  defs->slots = calloc(FIRST_CAPACITY, sizeof *defs->slots);
  if (!defs->slots)
    return LJP_ERR_MEM;
  defs->capacity = FIRST_CAPACITY;
  return LJP_OK;
}

void ljp_defs_fini(struct ljp_defs *defs)
{
  for (uint32_t i = 0; i < defs->capacity; i++)
    free(defs->slots[i].record);
  free(defs->slots);
  memset(defs, 0, sizeof *defs);
}

struct ljp_def *ljp_defs_find(struct ljp_defs *defs, enum ljp_def_class class,
                              uint64_t key)
{
  struct ljp_def *def =
      defs_slot(defs->slots, defs->capacity, defs_key(class, key));
  return def->key ? def : NULL;
}

static bool defs_grow(struct ljp_defs *defs, uint32_t capacity)
{
  struct ljp_def *slots = calloc(capacity, sizeof *slots);
  if (!slots)
    return false;
  for (uint32_t i = 0; i < defs->capacity; i++)
    if (defs->slots[i].key)
      *defs_slot(slots, capacity, defs->slots[i].key) = defs->slots[i];
  free(defs->slots);
  defs->slots = slots;
  defs->capacity = capacity;
  return true;
}

struct ljp_def *ljp_defs_put(struct ljp_defs *defs, enum ljp_def_class class,
                             uint64_t key, uint64_t id, const uint8_t *record,
                             size_t len)
{
  ljp_assert(class >= LJP_DEF_PROTO && class <= LJP_DEF_INFO);
  if (2 * (defs->count + 1) > defs->capacity &&
      !defs_grow(defs, 2 * defs->capacity))
    return NULL;
  uint8_t *copy = malloc(len ? len : 1);
  if (!copy)
    return NULL;
  memcpy(copy, record, len);
  struct ljp_def *def =
      defs_slot(defs->slots, defs->capacity, defs_key(class, key));
  if (def->key) {
    defs->bytes -= def->len + LJP_DEF_OVERHEAD;
    free(def->record);
  } else {
    defs->count++;
  }
  *def = (struct ljp_def){.key = defs_key(class, key),
                          .id = id,
                          .record = copy,
                          .len = (uint32_t)len};
  defs->bytes += len + LJP_DEF_OVERHEAD;
  ljp_assert(2 * defs->count <= defs->capacity);
  return def;
}

static bool defs_purgeable(const struct ljp_def *def, bool all_lazy)
{
  uint64_t class = ljp_def_class(def);
  if (!class)
    return false;
  if (all_lazy)
    return def->ended || class <= LJP_DEF_BUILTIN;
  return def->ended && class != LJP_DEF_MODULE;
}

/* A hole breaks probe chains: moves each definition to where it belongs. No
** allocation, so that purging also works when memory is short. */
static void defs_close_holes(struct ljp_defs *defs)
{
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t i = 0; i < defs->capacity; i++) {
      struct ljp_def def = defs->slots[i];
      if (!def.key)
        continue;
      struct ljp_def *to = defs_slot(defs->slots, defs->capacity, def.key);
      if (to == &defs->slots[i])
        continue;
      *to = def;
      memset(&defs->slots[i], 0, sizeof def);
      moved = true;
    }
  }
}

void ljp_defs_purge(struct ljp_defs *defs, bool all_lazy)
{
  bool holes = false;
  for (uint32_t i = 0; i < defs->capacity; i++) {
    struct ljp_def *def = &defs->slots[i];
    if (def->kept || !defs_purgeable(def, all_lazy)) {
      def->kept = false;
      continue;
    }
    free(def->record);
    defs->bytes -= def->len + LJP_DEF_OVERHEAD;
    defs->count--;
    memset(def, 0, sizeof *def);
    holes = true;
  }
  if (holes)
    defs_close_holes(defs);
  ljp_assert(defs->count || !defs->bytes);
}
