/*
** See defs.h. Open addressing; purging rebuilds the table in place.
*/
#include "src/writer/defs.h"

#include <stdlib.h>
#include <string.h>

#ifdef LJP_DEBUG
enum { FIRST_CAPACITY = 8 };
#else
enum { FIRST_CAPACITY = 256 };
#endif

static uint64_t make_key(enum ljp_def_class class, uint64_t key)
{
  return (uint64_t) class << 60 | (key & ((UINT64_C(1) << 60) - 1));
}

static struct ljp_def *slot(struct ljp_def *slots, uint32_t capacity,
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
  struct ljp_def *def = slot(defs->slots, defs->capacity, make_key(class, key));
  return def->key ? def : NULL;
}

static bool rehash(struct ljp_defs *defs, uint32_t capacity)
{
  struct ljp_def *slots = calloc(capacity, sizeof *slots);
  if (!slots)
    return false;
  for (uint32_t i = 0; i < defs->capacity; i++)
    if (defs->slots[i].key)
      *slot(slots, capacity, defs->slots[i].key) = defs->slots[i];
  free(defs->slots);
  defs->slots = slots;
  defs->capacity = capacity;
  return true;
}

struct ljp_def *ljp_defs_put(struct ljp_defs *defs, enum ljp_def_class class,
                             uint64_t key, uint64_t id, const uint8_t *record,
                             size_t len)
{
  if (2 * (defs->count + 1) > defs->capacity &&
      !rehash(defs, 2 * defs->capacity))
    return NULL;
  uint8_t *copy = malloc(len ? len : 1);
  if (!copy)
    return NULL;
  memcpy(copy, record, len);
  struct ljp_def *def = slot(defs->slots, defs->capacity, make_key(class, key));
  if (def->key) {
    defs->bytes -= def->len + LJP_DEF_OVERHEAD;
    free(def->record);
  } else {
    defs->count++;
  }
  *def = (struct ljp_def){.key = make_key(class, key),
                          .id = id,
                          .record = copy,
                          .len = (uint32_t)len};
  defs->bytes += len + LJP_DEF_OVERHEAD;
  return def;
}

void ljp_defs_purge(struct ljp_defs *defs, bool all_lazy)
{
  bool holes = false;
  for (uint32_t i = 0; i < defs->capacity; i++) {
    struct ljp_def *def = &defs->slots[i];
    uint64_t class = def->key >> 60;
    if (!def->key || !(all_lazy ? def->ended || class <= LJP_DEF_BUILTIN
                                : def->ended && class != LJP_DEF_MODULE))
      continue;
    free(def->record);
    defs->bytes -= def->len + LJP_DEF_OVERHEAD;
    defs->count--;
    memset(def, 0, sizeof *def);
    holes = true;
  }
  /* A hole breaks probe chains: move every survivor to where it belongs. No
  ** allocation, so that purging also works when memory is short. */
  bool moved = holes;
  while (moved) {
    moved = false;
    for (uint32_t i = 0; i < defs->capacity; i++) {
      struct ljp_def def = defs->slots[i];
      if (!def.key)
        continue;
      struct ljp_def *to = slot(defs->slots, defs->capacity, def.key);
      if (to == &defs->slots[i])
        continue;
      *to = def;
      memset(&defs->slots[i], 0, sizeof def);
      moved = true;
    }
  }
}
