/*
** See growth.h.
*/
#include "tools/heap/growth.h"

#include <stdlib.h>

#include "parsers/base/array.h"

static uint64_t growth_hash(const struct ljp_heap_text *name)
{
  uint64_t hash = ljp_hash_mix(name->len, 1);
  for (size_t i = 0; i < name->len; i++)
    hash = ljp_hash_mix(hash, (unsigned char)name->data[i]);
  return hash;
}

bool ljp_heap_growth_add(struct ljp_heap_growth *growth,
                         const struct ljp_heap_text *name,
                         enum ljp_heap_side side, uint32_t example,
                         uint64_t objects, uint64_t bytes)
{
  uint32_t id = ljp_heap_ids_add(&growth->ids, growth_hash(name));
  if (id == LJP_HEAP_NO_ID ||
      !ljp_array_reserve(&growth->list, id, &growth->room,
                         sizeof *growth->list))
    return false;
  if (id == growth->count)
    growth->list[growth->count++] =
        (struct ljp_heap_growth_row){.name = growth->ids.keys[id]};
  struct ljp_heap_growth_row *row = &growth->list[id];
  row->objects[side] += objects;
  row->bytes[side] += bytes;
  row->example = example;
  row->side = (uint8_t)side;
  return true;
}

void ljp_heap_growth_fini(struct ljp_heap_growth *growth)
{
  free(growth->list);
  ljp_heap_ids_fini(&growth->ids);
  growth->list = NULL;
}

static int growth_by_change(const void *a, const void *b)
{
  const struct ljp_heap_growth_row *x = a, *y = b;
  int64_t of_x =
      (int64_t)(x->bytes[LJP_HEAP_AFTER] - x->bytes[LJP_HEAP_BEFORE]);
  int64_t of_y =
      (int64_t)(y->bytes[LJP_HEAP_AFTER] - y->bytes[LJP_HEAP_BEFORE]);
  if (of_x != of_y)
    return of_x < of_y ? 1 : -1;
  return x->name < y->name ? -1 : x->name > y->name;
}

void ljp_heap_growth_sort(struct ljp_heap_growth *growth)
{
  ljp_heap_ids_fini(&growth->ids);
  if (growth->count)
    qsort(growth->list, growth->count, sizeof *growth->list, growth_by_change);
}
