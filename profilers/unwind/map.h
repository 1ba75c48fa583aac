/*
** Objects and maps: what is known of the loaded code.
**
** An object is one loaded file (the program, a library). A map leads from code
** addresses to objects; it is one state of what is loaded.
**
** Ownership: a map borrows its objects. An object counts the maps that have
** it (refs, writer's side only) and is freed with the last of them. A table
** belongs to its object, is published in it once, and is freed with it.
** Invariants: nothing that a handler can reach changes, except the atomics
** named here. A map's ranges are sorted and disjoint.
** Private to profilers/unwind.
*/
#ifndef LJP_UNWIND_MAP_H
#define LJP_UNWIND_MAP_H

#include <stdatomic.h>
#include <stddef.h>

#include "profilers/unwind/unwind.h"

struct ljp_unwind_table;
struct dl_find_object;

/* glibc's _dl_find_object. */
typedef int ljp_unwind_finder(void *address, struct dl_find_object *result);

struct ljp_unwind_object {
  uint64_t lo, hi;  /* all its segments; code offsets count from lo */
  uint64_t header;  /* .eh_frame_hdr (or else .eh_frame), or 0: no CFI */
  uint64_t witness; /* the word at ljp_unwind_witness_address(header) */
  uint64_t frames;  /* .eh_frame */
  /* The sorted index: pairs of 32-bit offsets from the header, of code and of
  ** its FDE. The object brings it along, or it is own_index. */
  uint64_t index, index_count;
  int32_t *own_index;
  uint32_t refs;
  /* The header has been read: the fields from witness to own_index are valid.
  ** Until then steps treat the object's code as unknown (fresh.c). */
  _Atomic bool ready;
  _Atomic bool failed; /* could not be compiled; steps go on interpreting */
  _Atomic bool wanted; /* a step has met it */
  _Atomic(struct ljp_unwind_table *) table;
};

struct ljp_unwind_range {
  uint64_t lo, hi; /* an executable segment */
  struct ljp_unwind_object *object;
};

struct ljp_unwind_map {
  _Atomic bool *wants_poll;
  ljp_unwind_finder *finder; /* or NULL; see fresh.c */
  uint32_t ranges_count, objects_count;
  struct ljp_unwind_range *ranges;
  struct ljp_unwind_object **objects;
  unsigned slot;
  uint64_t serial;
};

/* A place for a map. Its counter of users is never freed, so a late handler
** may touch it at any time; see ljp_unwind_acquire. */
enum { LJP_UNWIND_SLOTS = 4 };
struct ljp_unwind_slot {
  _Alignas(64) _Atomic uint64_t users;
  struct ljp_unwind_map *map;
};

struct ljp_unwind_writer;

struct ljp_unwind {
  struct ljp_unwind_slot slots[LJP_UNWIND_SLOTS];
  _Atomic unsigned current; /* slot */
  _Atomic uint64_t serial;  /* of the current map */
  _Atomic bool wants_poll;
  _Atomic uint32_t hurried;
  struct ljp_unwind_writer *writer;
  void *block; /* of memory, in which all this lies */
};

/* The address of the word by which an object is recognised: it holds the number
** of FDEs. */
static inline uint64_t ljp_unwind_witness_address(uint64_t header)
{
  return (header + 8) & ~UINT64_C(7);
}

/* The range that holds an address, or NULL. hint: 1 + the index of the range to
** try first, or 0. */
LJP_SIGSAFE static inline const struct ljp_unwind_range *
ljp_unwind_find_range(const struct ljp_unwind_map *map, uint64_t address,
                      uint32_t hint)
{
  if (hint - 1 < map->ranges_count) {
    const struct ljp_unwind_range *range = &map->ranges[hint - 1];
    if (address - range->lo < range->hi - range->lo)
      return range;
  }
  uint32_t low = 0, high = map->ranges_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (map->ranges[middle].hi <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < map->ranges_count && map->ranges[low].lo <= address)
    return &map->ranges[low];
  return NULL;
}

/* header.c: fills the object from its .eh_frame_hdr; false if that makes no
** sense. */
LJP_SIGSAFE bool ljp_unwind_read_header(struct ljp_unwind_object *object);

/* fresh.c: asks the finder (may be NULL) for the object at pc. The result is
** the caller's own and good for one step. */
LJP_SIGSAFE bool ljp_unwind_find_fresh(ljp_unwind_finder *finder, uint64_t pc,
                                       struct ljp_unwind_object *object);

/* object.c, writer's side. */
/* frames: .eh_frame, if it is known without a header; then header is the
** same. */
struct ljp_unwind_object *ljp_unwind_object_new(uint64_t lo, uint64_t hi,
                                                uint64_t header,
                                                uint64_t frames);
/* Reads the header, which may have to come from the disk. False if there is no
** memory; the object can then be read again later. */
bool ljp_unwind_object_read(struct ljp_unwind_object *object);
void ljp_unwind_object_free(struct ljp_unwind_object *object);

#endif
