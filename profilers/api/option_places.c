/*
** Places of options; see option_places.h.
*/
#include "profilers/api/option_places.h"

#include <stdio.h>
#include <string.h>

bool ljp_option_elsewhere(enum ljp_option_place here, const char *name,
                          char *out, size_t room)
{
  bool cpu = ljp_option_is_cpu(name), memory = ljp_option_is_memory(name);
  bool session = ljp_option_is_session(name);
  bool snapshot = ljp_option_is_snapshot(name);
  bool parts = strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0;
  const char *own = here == LJP_PLACE_CPU_PART ? "cpu" : "memory";
  if (!cpu && !memory && !session && !parts && snapshot) {
    snprintf(out, room, "it is an option of misc.memprof.snapshot");
    return here != LJP_PLACE_SNAPSHOT;
  }
  if (!cpu && !memory && !session && !parts)
    return false;
  switch (here) {
  case LJP_PLACE_SYSPROF:
  case LJP_PLACE_MEMPROF:
    snprintf(out, room, "it is an option of misc.%s.start",
             parts ? "profile"
             : cpu ? "sysprof"
                   : "memprof");
    break;
  case LJP_PLACE_PROFILE:
    if (cpu && memory)
      snprintf(out, room, "it belongs in cpu = {} or memory = {}");
    else
      snprintf(out, room, "it belongs in %s: start{%s = {%s = ...}}",
               cpu ? "cpu" : "memory", cpu ? "cpu" : "memory", name);
    break;
  case LJP_PLACE_CPU_PART:
  case LJP_PLACE_MEMORY_PART:
    if (session || parts)
      snprintf(out, room,
               "it belongs beside %s, not in it: start{%s = ..., %s = {}}", own,
               name, own);
    else
      snprintf(out, room, "it belongs in %s: start{%s = {%s = ...}}",
               cpu ? "cpu" : "memory", cpu ? "cpu" : "memory", name);
    break;
  case LJP_PLACE_SNAPSHOT:
    snprintf(out, room, "it is an option of misc.%s.start",
             parts ? "profile"
             : cpu ? "sysprof"
                   : "memprof");
    break;
  }
  return true;
}
