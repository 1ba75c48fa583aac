/*
** The writer's side of views: makes, publishes and frees them.
**
** A view never changes once it is published. When the loader's counters have
** moved, a new view is made. It shares the objects that are still loaded, is
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

struct ljp_unwind_view *ljp_unwind_current_view(struct ljp_unwind *unwind)
{
  return unwind->slots[atomic_load(&unwind->current)].view;
}

void ljp_unwind_view_free(struct ljp_unwind *unwind,
                          struct ljp_unwind_view *view)
{
  struct ljp_unwind_writer *writer = unwind->writer;
  if (!view)
    return;
  for (uint32_t i = 0; i < view->objects_count; i++) {
    struct ljp_unwind_object *object = view->objects[i];
    ljp_assert(object->refs > 0);
    if (--object->refs)
      continue;
    if (writer->job && ljp_unwind_job_object(writer->job) == object) {
      ljp_unwind_job_free(writer->job);
      writer->job = NULL;
    }
    ljp_unwind_object_free(object);
  }
  free(view->objects);
  free(view->ranges);
  free(view);
}

/* -- Making a view --------------------------------------------------------- */

/* Is the module the object that an older view knows? */
static bool view_object_matches(const struct ljp_unwind_object *object,
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
view_share_object(const struct ljp_unwind_view *old,
                  const struct ljp_unwind_module *module)
{
  for (uint32_t i = 0; old && i < old->objects_count; i++)
    if (view_object_matches(old->objects[i], module))
      return old->objects[i];
  return ljp_unwind_object_new(module->lo, module->hi, module->header);
}

static int view_by_address(const void *a, const void *b)
{
  uint64_t x = ((const struct ljp_unwind_range *)a)->lo;
  uint64_t y = ((const struct ljp_unwind_range *)b)->lo;
  return (x > y) - (x < y);
}

/* Sorts the ranges and drops those that overlap. Overlap has never been seen,
** but a step relies on disjoint ranges. */
static uint32_t view_sort_ranges(struct ljp_unwind_range *ranges,
                                 uint32_t count)
{
  uint32_t kept = 0;
  if (count)
    qsort(ranges, count, sizeof *ranges, view_by_address);
  for (uint32_t i = 0; i < count; i++)
    if (ranges[i].lo < ranges[i].hi &&
        (!kept || ranges[i].lo >= ranges[kept - 1].hi))
      ranges[kept++] = ranges[i];
  return kept;
}

/* For a debug build: are the ranges sorted, disjoint, and inside their
** objects? */
static inline bool view_is_sorted(const struct ljp_unwind_view *view)
{
  for (uint32_t i = 0; i < view->ranges_count; i++) {
    const struct ljp_unwind_range *range = &view->ranges[i];
    if (range->lo >= range->hi || range->lo < range->object->lo ||
        range->hi > range->object->hi || (i && range[-1].hi > range->lo))
      return false;
  }
  return true;
}

/* Is the object's header read when the view is made? Those of the program, of
** libc and of this library are: they surely matter, and are in memory already.
** The others may have to come from the disk, so the writer reads them in its
** rounds. Without a finder there is no way to step through an unread object. */
static bool view_reads_now(const struct ljp_unwind *unwind,
                           const struct ljp_unwind_object *object)
{
  const uint64_t known[] = {getauxval(AT_ENTRY), (uintptr_t)&view_reads_now,
                            (uintptr_t)&memcpy};
  bool matters = !unwind->writer->finder;
  for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
    matters = matters || (known[i] >= object->lo && known[i] < object->hi);
  return matters;
}

/* Takes over the listing's ranges. */
static struct ljp_unwind_view *view_make(struct ljp_unwind *unwind,
                                         struct ljp_unwind_listing *listing)
{
  struct ljp_unwind_view *view = calloc(1, sizeof *view);
  if (!view)
    return NULL;
  view->wants_poll = &unwind->wants_poll;
  view->finder = unwind->writer->finder;
  view->objects = calloc(listing->modules_count + 1, sizeof *view->objects);
  if (!view->objects)
    goto fail;
  for (uint32_t i = 0; i < listing->modules_count; i++) {
    struct ljp_unwind_object *object = view_share_object(
        ljp_unwind_current_view(unwind), &listing->modules[i]);
    if (!object)
      goto fail;
    object->refs++;
    view->objects[view->objects_count++] = object;
    if (view_reads_now(unwind, object) && !ljp_unwind_object_read(object))
      goto fail;
  }
  view->ranges = listing->ranges;
  listing->ranges = NULL;
  for (uint32_t i = 0; i < listing->ranges_count; i++)
    view->ranges[i].object = view->objects[(uintptr_t)view->ranges[i].object];
  view->ranges_count = view_sort_ranges(view->ranges, listing->ranges_count);
  ljp_assert(view_is_sorted(view));
  return view;
fail:
  ljp_unwind_view_free(unwind, view);
  return NULL;
}

/* -- Publishing it --------------------------------------------------------- */

/* Frees retired views that no handler uses; returns a free slot, or -1. */
static int view_sweep(struct ljp_unwind *unwind)
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
    ljp_unwind_view_free(unwind, slot->view);
    slot->view = NULL;
    free_slot = (int)i;
  }
  return free_slot;
}

static void view_publish(struct ljp_unwind *unwind,
                         struct ljp_unwind_view *view, unsigned slot)
{
  /* Counts the views of all unwinders that there ever were, because a walk may
  ** be remembered for longer than its unwinder lives. */
  static _Atomic uint64_t serial;
  ljp_assert(slot != atomic_load(&unwind->current) &&
             !unwind->slots[slot].view);
  view->slot = slot;
  view->serial = atomic_fetch_add(&serial, 1) + 1;
  unwind->slots[slot].view = view;
  atomic_store_explicit(&unwind->current, slot, memory_order_seq_cst);
  atomic_store_explicit(&unwind->serial, view->serial, memory_order_release);
  unwind->writer->stats.views++;
}

enum ljp_status ljp_unwind_update_view(struct ljp_unwind *unwind)
{
  struct ljp_unwind_writer *writer = unwind->writer;
  struct ljp_unwind_counters now = {0, 0};
  int slot = view_sweep(unwind);
  ljp_unwind_count_loaded(&now);
  if (ljp_unwind_current_view(unwind) && now.adds == writer->counters.adds &&
      now.subs == writer->counters.subs)
    return LJP_OK;
  if (slot < 0)
    return LJP_OK;
  struct ljp_unwind_listing listing = {0};
  struct ljp_unwind_view *view =
      ljp_unwind_list_loaded(&listing) ? view_make(unwind, &listing) : NULL;
  if (view) {
    view_publish(unwind, view, (unsigned)slot);
    writer->counters = listing.counters;
  }
  ljp_unwind_listing_fini(&listing);
  return view ? LJP_OK : LJP_ERR_MEM;
}
