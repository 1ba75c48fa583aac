/*
** Options of the memory profiler: their defaults, and how the stream has them.
*/
#include <stdio.h>
#include <string.h>

#include "profilers/memory/heap_snapshot.h"
#include "profilers/memory/memprof.h"

void ljp_memprof_options_init(struct ljp_memprof_options *o)
{
  memset(o, 0, sizeof *o);
  o->sample_bytes = LJP_MEMPROF_SAMPLE_BYTES;
  o->depth = LJP_STACK_MAX_FRAMES;
  o->snapshot_text = LJP_HEAP_SNAPSHOT_TEXT;
}

void ljp_memprof_info(struct ljp_session *session,
                      const struct ljp_memprof_options *o)
{
  char text[32] = "every event";
  if (o->sample_bytes)
    snprintf(text, sizeof text, "%llu", (unsigned long long)o->sample_bytes);
  ljp_session_info(session, "option.memory.sample_bytes", text);
  if (o->max_samples) {
    snprintf(text, sizeof text, "%u", o->max_samples);
    ljp_session_info(session, "option.memory.max_samples", text);
  }
  ljp_session_info(session, "option.memory.native",
                   o->native ? "true" : "false");
  ljp_session_info(session, "option.memory.vms", o->all ? "all" : "own");
}
