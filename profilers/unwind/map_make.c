/*
** The writer's side of maps: makes, publishes and frees them.
**
** A map never changes once it is published. When the loader's counters have
** moved, a new map is made. It shares the objects that are still loaded, is
** put into a free slot, and becomes current. A slot is free when it is not
** current and its count of users is zero: then no handler can come to use it
** any more (ljp_unwind_acquire says why). If none is free, the change waits
** for the next round.
** Safety: writer's side.
*/
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "profilers/unwind/table.h"
#include "profilers/unwind/writer.h"
#include "src/base/assert.h"
#include "src/base/saferead.h"

struct ljp_unwind_map *ljp_unwind_current_map(struct ljp_unwind *unwind)
{
  return unwind->slots[atomic_load(&unwind->current)].map;
}

void ljp_unwind_map_free(struct ljp_unwind *unwind, struct ljp_unwind_map *map)
{
  struct ljp_unwind_writer *writer = unwind->writer;
  if (!map)
    return;
  for (uint32_t i = 0; i < map->objects_count; i++) {
    struct ljp_unwind_object *object = map->objects[i];
    ljp_assert(object->refs > 0);
    if (--object->refs)
      continue;
    if (writer->job && ljp_unwind_job_object(writer->job) == object) {
      ljp_unwind_job_free(writer->job);
      writer->job = NULL;
    }
    ljp_unwind_object_free(object);
  }
  free(map->objects);
  free(map->ranges);
  free(map);
}

/* -- Making a map ---------------------------------------------------------- */

/* Is the module the object that an older map knows? */
static bool map_object_matches(const struct ljp_unwind_object *object,
                               const struct ljp_unwind_module *module)
{
  uint64_t word;
  if (object->lo != module->lo || object->hi != module->hi)
    return false;
  if (!object->header)
    return !module->header;
  if (!atomic_load_explicit(&object->ready, memory_order_relaxed))
    return object->header == module->header;
  return object->header == module->header &&
         ljp_safe_load((const void *)(uintptr_t)ljp_unwind_witness_address(
                           object->header),
                       &word) &&
         word == object->witness;
}

static struct ljp_unwind_object *
map_share_object(struct ljp_unwind *unwind, struct ljp_unwind_module module)
{
  const struct ljp_unwind_map *old = ljp_unwind_current_map(unwind);
  struct ljp_unwind_writer *writer = unwind->writer;
  uint64_t frames = 0, own = (uintptr_t)&map_share_object;
  if (!module.header && module.lo <= own && own < module.hi) {
    if (!writer->asked)
      writer->registered = ljp_unwind_registered_frames(&module);
    writer->asked = true;
    module.header = frames = writer->registered;
  }
  for (uint32_t i = 0; old && i < old->objects_count; i++)
    if (map_object_matches(old->objects[i], &module))
      return old->objects[i];
  return ljp_unwind_object_new(module.lo, module.hi, module.header, frames);
}

static int map_by_address(const void *a, const void *b)
{
  uint64_t x = ((const struct ljp_unwind_range *)a)->lo;
  uint64_t y = ((const struct ljp_unwind_range *)b)->lo;
  return (x > y) - (x < y);
}

/* Sorts the ranges and drops those that overlap. Overlap has never been seen,
** but a step relies on disjoint ranges. */
static uint32_t map_sort_ranges(struct ljp_unwind_range *ranges, uint32_t count)
{
  uint32_t kept = 0;
  if (count)
    qsort(ranges, count, sizeof *ranges, map_by_address);
  for (uint32_t i = 0; i < count; i++)
    if (ranges[i].lo < ranges[i].hi &&
        (!kept || ranges[i].lo >= ranges[kept - 1].hi))
      ranges[kept++] = ranges[i];
  return kept;
}

/* For a debug build: are the ranges sorted, disjoint, and inside their
** objects? */
static inline bool map_is_sorted(const struct ljp_unwind_map *map)
{
  for (uint32_t i = 0; i < map->ranges_count; i++) {
    const struct ljp_unwind_range *range = &map->ranges[i];
    if (range->lo >= range->hi || range->lo < range->object->lo ||
        range->hi > range->object->hi || (i && range[-1].hi > range->lo))
      return false;
  }
  return true;
}

/* Is the object's header read when the map is made? Those of the program, of
** libc and of this library are: they surely matter, and are in memory already.
** The others may have to come from the disk, so the writer reads them in its
** rounds. Without a finder there is no way to step through an unread object. */
static bool map_reads_now(const struct ljp_unwind *unwind,
                          const struct ljp_unwind_object *object)
{
  const uint64_t known[] = {getauxval(AT_ENTRY), (uintptr_t)&map_reads_now,
                            (uintptr_t)&memcpy};
  bool matters = !unwind->writer->finder;
  for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
    matters = matters || (known[i] >= object->lo && known[i] < object->hi);
  return matters;
}

/* Takes over the listing's ranges. */
static struct ljp_unwind_map *map_make(struct ljp_unwind *unwind,
                                       struct ljp_unwind_listing *listing)
{
  struct ljp_unwind_map *map = calloc(1, sizeof *map);
  if (!map)
    return NULL;
  map->wants_poll = &unwind->wants_poll;
  map->finder = unwind->writer->finder;
  map->objects = calloc(listing->modules_count + 1, sizeof *map->objects);
  if (!map->objects)
    goto fail;
  for (uint32_t i = 0; i < listing->modules_count; i++) {
    struct ljp_unwind_object *object =
        map_share_object(unwind, listing->modules[i]);
    if (!object)
      goto fail;
    object->refs++;
    map->objects[map->objects_count++] = object;
    if (map_reads_now(unwind, object) && !ljp_unwind_object_read(object))
      goto fail;
  }
  map->ranges = listing->ranges;
  listing->ranges = NULL;
  for (uint32_t i = 0; i < listing->ranges_count; i++)
    map->ranges[i].object = map->objects[(uintptr_t)map->ranges[i].object];
  map->ranges_count = map_sort_ranges(map->ranges, listing->ranges_count);
  ljp_assert(map_is_sorted(map));
  return map;
fail:
  ljp_unwind_map_free(unwind, map);
  return NULL;
}

/* -- Publishing it --------------------------------------------------------- */

/* Frees retired maps that no handler uses; returns a free slot, or -1. */
static int map_sweep(struct ljp_unwind *unwind)
{
  unsigned current = atomic_load(&unwind->current);
  int free_slot = -1;
  for (unsigned i = 0; i < LJP_UNWIND_SLOTS; i++) {
    struct ljp_unwind_slot *slot = &unwind->slots[i];
    if (i == current)
      continue;
    /* seq_cst: see ljp_unwind_acquire. */
    if (atomic_load_explicit(&slot->users, memory_order_seq_cst)) {
      unwind->writer->stats.retired_busy++;
      continue;
    }
    ljp_unwind_map_free(unwind, slot->map);
    slot->map = NULL;
    free_slot = (int)i;
  }
  return free_slot;
}

static void map_publish(struct ljp_unwind *unwind, struct ljp_unwind_map *map,
                        unsigned slot)
{
  /* Counts the maps of all unwinders that there ever were, because a walk may
  ** be remembered for longer than its unwinder lives. */
  static _Atomic uint64_t serial;
  ljp_assert(slot != atomic_load(&unwind->current) && !unwind->slots[slot].map);
  map->slot = slot;
  map->serial = atomic_fetch_add(&serial, 1) + 1;
  unwind->slots[slot].map = map;
  atomic_store_explicit(&unwind->current, slot, memory_order_seq_cst);
  atomic_store_explicit(&unwind->serial, map->serial, memory_order_release);
  unwind->writer->stats.maps++;
}

enum ljp_status ljp_unwind_update_map(struct ljp_unwind *unwind)
{
  struct ljp_unwind_writer *writer = unwind->writer;
  struct ljp_unwind_counters now = {0, 0};
  int slot = map_sweep(unwind);
  ljp_unwind_count_loaded(&now);
  if (ljp_unwind_current_map(unwind) && now.adds == writer->counters.adds &&
      now.subs == writer->counters.subs)
    return LJP_OK;
  if (slot < 0)
    return LJP_OK;
  struct ljp_unwind_listing listing = {0};
  struct ljp_unwind_map *map =
      ljp_unwind_list_loaded(&listing) ? map_make(unwind, &listing) : NULL;
  if (map) {
    map_publish(unwind, map, (unsigned)slot);
    writer->counters = listing.counters;
  }
  ljp_unwind_listing_fini(&listing);
  return map ? LJP_OK : LJP_ERR_MEM;
}
