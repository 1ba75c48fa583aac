/*
** Changing the map of a VM's compiled code, by which a handler finds a trace
** (map_find.c). trace.h has the picture and the order in which changes are
** published. On the VM's own thread, in the hooks (hooks.c).
*/
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_jit.h"

#include "src/luajit/traces/trace.h"

static struct ljp_code_area *map_area_of(struct ljp_jit *jit, uint64_t address)
{
  struct ljp_code_map *map =
      atomic_load_explicit(&jit->map, memory_order_relaxed);
  for (uint32_t i = 0; map && i < map->count; i++)
    if (address >= map->area[i].low && address < map->area[i].high)
      return &map->area[i];
  return NULL;
}

static struct ljp_code_area *map_add_area(struct ljp_jit *jit, uint64_t low,
                                          uint64_t high)
{
  struct ljp_code_map *old =
      atomic_load_explicit(&jit->map, memory_order_relaxed);
  uint32_t count = old ? old->count : 0, at = 0;
  struct ljp_code_map *map =
      malloc(sizeof *map + (count + 1) * sizeof *map->area);
  if (!map)
    return NULL;
  while (at < count && old->area[at].low < low)
    at++;
  if (at)
    memcpy(map->area, old->area, at * sizeof *map->area);
  if (count > at)
    memcpy(map->area + at + 1, old->area + at,
           (count - at) * sizeof *map->area);
  map->area[at].low = low;
  map->area[at].high = high;
  atomic_init(&map->area[at].ranges, NULL);
  map->count = count + 1;
  /* Release: a handler that sees the map also sees its contents. */
  atomic_store_explicit(&jit->map, map, memory_order_release);
  free(old);
  return &map->area[at];
}

/* The ranges of an area, with room for one more. */
static struct ljp_code_ranges *map_make_room(struct ljp_code_area *area)
{
  struct ljp_code_ranges *old =
      atomic_load_explicit(&area->ranges, memory_order_relaxed);
  uint32_t count =
      old ? atomic_load_explicit(&old->count, memory_order_relaxed) : 0;
  if (old && count < old->capacity)
    return old;
  uint32_t capacity = old ? old->capacity * 2 : 16;
  struct ljp_code_ranges *ranges =
      malloc(sizeof *ranges + capacity * sizeof *ranges->range);
  if (!ranges)
    return NULL;
  atomic_init(&ranges->count, count);
  ranges->capacity = capacity;
  if (count)
    memcpy(ranges->range, old->range, count * sizeof *ranges->range);
  atomic_store_explicit(&area->ranges, ranges, memory_order_release);
  free(old);
  return ranges;
}

static inline bool map_put(struct ljp_code_area *area,
                           struct ljp_code_ranges *ranges, uint32_t count,
                           struct ljp_trace *trace)
{
  uint64_t start = trace->code - area->low;
  if (count && ranges->range[count - 1].start < start)
    return false; /* LuaJIT does not put code there */
  trace->range = count;
  ranges->range[count] = (struct ljp_code_range){
      .start = (uint32_t)start, .bytes = trace->code_bytes, .trace = trace};
  atomic_store_explicit(&ranges->count, count + 1, memory_order_release);
  return true;
}

/* The area is another one than before, or is full. */
__attribute__((noinline)) static bool
map_add_slowly(struct ljp_jit *jit, const jit_State *J, struct ljp_trace *trace)
{
  uint64_t low = (uint64_t)(uintptr_t)J->mcarea;
  struct ljp_code_area *area = jit->area;
  if (!area || area->low != low)
    area = jit->area = map_area_of(jit, trace->code);
  if (!area)
    area = jit->area = map_add_area(jit, low, low + J->szmcarea);
  struct ljp_code_ranges *ranges = area ? map_make_room(area) : NULL;
  return ranges && trace->code >= area->low &&
         map_put(area, ranges,
                 atomic_load_explicit(&ranges->count, memory_order_relaxed),
                 trace);
}

bool ljp_map_add(struct ljp_jit *jit, const jit_State *J,
                 struct ljp_trace *trace)
{
  struct ljp_code_area *area = jit->area;
  if (LJP_LIKELY(area && area->low == (uint64_t)(uintptr_t)J->mcarea &&
                 trace->code >= area->low)) {
    struct ljp_code_ranges *ranges =
        atomic_load_explicit(&area->ranges, memory_order_relaxed);
    uint32_t count =
        ranges ? atomic_load_explicit(&ranges->count, memory_order_relaxed) : 0;
    if (LJP_LIKELY(ranges && count < ranges->capacity))
      return map_put(area, ranges, count, trace);
  }
  return map_add_slowly(jit, J, trace);
}

void ljp_map_remove(struct ljp_jit *jit, const struct ljp_trace *trace)
{
  struct ljp_code_area *area = jit->area;
  if (!area || trace->code - area->low >= area->high - area->low)
    area = map_area_of(jit, trace->code);
  if (area)
    atomic_load_explicit(&area->ranges, memory_order_relaxed)
        ->range[trace->range]
        .trace = NULL;
}
