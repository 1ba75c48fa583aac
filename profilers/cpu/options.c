/*
** The options that a session of the CPU profiler has unless somebody chooses
** others; see sysprof.h.
*/
#include <stdlib.h>
#include <string.h>

#include "profilers/cpu/sysprof.h"

void ljp_sysprof_options_init(struct ljp_sysprof_options *o)
{
  memset(o, 0, sizeof *o);
  o->mode = LJP_SAMPLER_STACKS;
  o->interval_ns = LJP_INTERVAL_DEFAULT_NS;
  o->max_overhead = 0.05;
  o->depth = LJP_STACK_MAX_FRAMES;
  const char *jitdump = secure_getenv("LJPROF_JITDUMP");
  o->jitdump = jitdump && strcmp(jitdump, "1") == 0;
}
