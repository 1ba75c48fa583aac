/*
** A loaded object's frame information: where it is, and a sorted index of it.
** Most objects bring the index along (.eh_frame_hdr). For the others this file
** makes one of the same form, by reading .eh_frame from end to end.
**
** The object may be unloaded at any moment, since no lock of the loader is
** held: it is read by fault-safe copies.
** Safety: writer's side.
*/
#include <stdlib.h>

#include "profilers/unwind/table.h"
#include "profilers/unwind/map.h"
#include "src/base/assert.h"
#include "src/base/saferead.h"

enum { OBJECT_MAX_SCAN = 16 << 20 };
#ifdef LJP_DEBUG /* So that growth happens in every test. */
enum { OBJECT_FIRST_PAIRS = 1 };
#else
enum { OBJECT_FIRST_PAIRS = 256 };
#endif

struct object_pair {
  int32_t code, fde;
};

static int object_by_code(const void *a, const void *b)
{
  int32_t x = ((const struct object_pair *)a)->code;
  int32_t y = ((const struct object_pair *)b)->code;
  return (x > y) - (x < y);
}

struct object_scan {
  struct object_pair *pairs;
  size_t count, room;
};

static bool object_add_pair(struct object_scan *scan, uint64_t header,
                            uint64_t code, uint64_t fde)
{
  int64_t a = (int64_t)(code - header), b = (int64_t)(fde - header);
  if (a != (int32_t)a || b != (int32_t)b)
    return true;
  if (scan->count == scan->room) {
    size_t room = scan->room ? 2 * scan->room : OBJECT_FIRST_PAIRS;
    struct object_pair *pairs = realloc(scan->pairs, room * sizeof *pairs);
    if (!pairs)
      return false;
    scan->pairs = pairs;
    scan->room = room;
  }
  scan->pairs[scan->count++] = (struct object_pair){(int32_t)a, (int32_t)b};
  return true;
}

/* Reads a copy of .eh_frame up to its terminator, or to the first entry that
** makes no sense. False if there is no memory. */
static bool object_scan_frames(const struct ljp_unwind_object *object,
                               const uint8_t *bytes, size_t size,
                               struct object_scan *scan)
{
  struct ljp_cfi_machine scratch;
  struct ljp_cfi_cie cie;
  struct ljp_cfi_fde fde;
  uint64_t have_cie = 0, length, cie_at;
  for (size_t at = 0; at < size; at += (size_t)length) {
    struct ljp_cfi_span span = {bytes + at, size - at, object->frames + at};
    if (!ljp_cfi_head(&span, &length, &cie_at) || length > span.size)
      break;
    if (!cie_at)
      continue;
    if (cie_at != have_cie) {
      if (cie_at < object->frames || cie_at >= object->frames + at)
        continue;
      struct ljp_cfi_span head = {bytes + (cie_at - object->frames),
                                  size - (size_t)(cie_at - object->frames),
                                  cie_at};
      have_cie = 0;
      if (!ljp_cfi_read_cie(&cie, head, &scratch))
        continue;
      have_cie = cie_at;
    }
    if (ljp_cfi_read_fde(&fde, &cie, span) && fde.start >= object->lo &&
        fde.end <= object->hi &&
        !object_add_pair(scan, object->header, fde.start, span.address))
      return false;
  }
  return true;
}

static bool object_make_index(struct ljp_unwind_object *object)
{
  size_t size = (size_t)(object->hi - object->frames);
  struct object_scan scan = {NULL, 0, 0};
  if (size > OBJECT_MAX_SCAN)
    size = OBJECT_MAX_SCAN;
  uint8_t *bytes = malloc(size);
  if (!bytes)
    return false;
  size = ljp_safe_copy(bytes, (const void *)(uintptr_t)object->frames, size);
  bool ok = object_scan_frames(object, bytes, size, &scan);
  free(bytes);
  if (!ok) {
    free(scan.pairs);
    return false;
  }
  if (scan.count)
    qsort(scan.pairs, scan.count, sizeof *scan.pairs, object_by_code);
  object->own_index = (int32_t *)scan.pairs;
  object->index = (uint64_t)(uintptr_t)scan.pairs;
  object->index_count = scan.count;
  return true;
}

struct ljp_unwind_object *ljp_unwind_object_new(uint64_t lo, uint64_t hi,
                                                uint64_t header,
                                                uint64_t frames)
{
  struct ljp_unwind_object *object = calloc(1, sizeof *object);
  if (!object)
    return NULL;
  object->lo = lo;
  object->hi = hi;
  object->header = header;
  object->frames = frames;
  atomic_store_explicit(&object->ready, !header, memory_order_relaxed);
  return object;
}

bool ljp_unwind_object_read(struct ljp_unwind_object *object)
{
  if (atomic_load_explicit(&object->ready, memory_order_relaxed))
    return true;
  if ((!object->frames && !ljp_unwind_read_header(object)) ||
      !ljp_safe_load(
          (const void *)(uintptr_t)ljp_unwind_witness_address(object->header),
          &object->witness)) {
    object->header = 0;
    object->index_count = 0;
  } else if (!object->index_count && !object_make_index(object))
    return false;
  /* release: a handler that sees this may read the fields above. */
  atomic_store_explicit(&object->ready, true, memory_order_release);
  return true;
}

void ljp_unwind_object_free(struct ljp_unwind_object *object)
{
  if (!object)
    return;
  ljp_assert(object->refs == 0);
  ljp_unwind_table_free(atomic_load(&object->table));
  free(object->own_index);
  free(object);
}
