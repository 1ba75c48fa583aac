/*
** The writer's side: listing what is loaded, making maps of it, publishing
** them, and freeing those that nobody uses.
** Private to profilers/unwind. Safety: one thread at a time; not from a signal
** handler.
*/
#ifndef LJP_UNWIND_WRITER_H
#define LJP_UNWIND_WRITER_H

#include "profilers/unwind/map.h"

struct ljp_unwind_job;

/* The loader's counters of objects that were added and removed. */
struct ljp_unwind_counters {
  unsigned long long adds, subs;
};

struct ljp_unwind_writer {
  struct ljp_unwind_counters counters; /* as of the current map */
  struct ljp_unwind_job *job;          /* or NULL */
  ljp_unwind_finder *finder;           /* or NULL */
  uint64_t registered; /* .eh_frame of a module without a header, or 0 */
  bool asked;          /* ... is known */
  struct ljp_unwind_stats stats;
};

/* -- loaded.c: what the loader has ----------------------------------------- */

struct ljp_unwind_module {
  uint64_t lo, hi, header;
};

/* The loaded objects, in the loader's order, and their executable segments. The
** `object` of a range is the index of its module. */
struct ljp_unwind_listing {
  struct ljp_unwind_module *modules;
  struct ljp_unwind_range *ranges;
  uint32_t modules_count, modules_room, ranges_count, ranges_room;
  struct ljp_unwind_counters counters;
  bool out_of_memory;
};

/* registered.c: .eh_frame of the module that holds this code, which has no
** header, or 0. */
uint64_t ljp_unwind_registered_frames(const struct ljp_unwind_module *module);

void ljp_unwind_count_loaded(struct ljp_unwind_counters *counters);
/* listing: all zero at first. False if there is no memory. */
bool ljp_unwind_list_loaded(struct ljp_unwind_listing *listing);
void ljp_unwind_listing_fini(struct ljp_unwind_listing *listing);

/* -- map_make.c: maps and their slots -------------------------------------- */

/* NULL only before the first map. */
struct ljp_unwind_map *ljp_unwind_current_map(struct ljp_unwind *unwind);
/* Makes a map of what is loaded, if that has changed, and publishes it. If no
** slot is free, the change waits for the next call. */
enum ljp_status ljp_unwind_update_map(struct ljp_unwind *unwind);
/* Drops a map's claims on its objects; frees it. map may be NULL. */
void ljp_unwind_map_free(struct ljp_unwind *unwind, struct ljp_unwind_map *map);

#endif
