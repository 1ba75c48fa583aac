/*
** Which table an option belongs in, for messages about an option that stands
** in another one.
*/
#ifndef LJP_OPTION_PLACES_H
#define LJP_OPTION_PLACES_H

#include <stdbool.h>
#include <stddef.h>

enum ljp_option_place {
  LJP_PLACE_SYSPROF,     /* misc.sysprof.start{} */
  LJP_PLACE_MEMPROF,     /* misc.memprof.start{} */
  LJP_PLACE_PROFILE,     /* misc.profile.start{} */
  LJP_PLACE_CPU_PART,    /* misc.profile.start{cpu = {}} */
  LJP_PLACE_MEMORY_PART, /* misc.profile.start{memory = {}} */
  LJP_PLACE_SNAPSHOT,    /* misc.memprof.snapshot{} */
};

/* Writes where an option belongs that is not known in this place. False: it is
** not known anywhere. */
bool ljp_option_elsewhere(enum ljp_option_place here, const char *name,
                          char *out, size_t room);

/* Is it an option of CPU samples, of memory, of every session? In sysprof_lua.c,
** memprof_lua.c, output_options.c. */
bool ljp_option_is_cpu(const char *name);
bool ljp_option_is_memory(const char *name);
bool ljp_option_is_session(const char *name);
/* Of a heap snapshot; in snapshot_lua.c. */
bool ljp_option_is_snapshot(const char *name);

#endif
