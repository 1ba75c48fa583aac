/*
** How much memory the markers of traces take: runs each script in a VM of its
** own and counts what is alive when the script ends. For ./run bench trace.
**
**   bench_trace_markers SIZE SCRIPT...
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

#include "src/luajit/traces.h"

struct sums {
  uint64_t traces, ir, code, marks, truncated;
};

static void count(void *ctx, uint64_t id)
{
  uint64_t **ids = ctx;
  *(*ids)++ = id;
}

/* The ids come under the lock that ljp_guest_trace() takes, too. */
static struct sums look(uint64_t alive)
{
  struct sums sums = {0};
  uint64_t *ids = calloc(alive + 1, sizeof *ids), *end = ids;
  if (!ids)
    return sums;
  ljp_guest_traces_each(count, &end);
  for (uint64_t *id = ids; id < end; id++) {
    struct ljp_guest_trace trace;
    if (!ljp_guest_trace(*id, &trace))
      continue;
    sums.traces++;
    sums.ir += trace.ir_count;
    sums.code += trace.code_bytes;
    sums.marks += trace.marks;
    sums.truncated += trace.truncated;
  }
  free(ids);
  return sums;
}

static void show(const char *name, const struct sums *s, uint64_t marks_bytes,
                 uint64_t record_bytes)
{
  double n = s->traces ? (double)s->traces : 1;
  printf("%-22s %7" PRIu64 " %8.1f %8.1f %8.1f %9.1f %9.1f %6" PRIu64 "\n",
         name, s->traces, (double)s->ir / n, (double)s->code / n,
         (double)s->marks / n, (double)marks_bytes / n,
         (double)record_bytes / n, s->truncated);
}

int main(int argc, char **argv)
{
  struct sums all = {0};
  uint64_t all_marks = 0, all_records = 0;
  if (argc < 3) {
    fprintf(stderr, "usage: bench_trace_markers SIZE SCRIPT...\n");
    return 2;
  }
  printf("%-22s %7s %8s %8s %8s %9s %9s %6s\n", "script", "traces", "IR",
         "code B", "marks", "marks B", "record B", "cut");
  for (int i = 2; i < argc; i++) {
    lua_State *L = luaL_newstate();
    const char *slash = strrchr(argv[i], '/');
    struct ljp_guest_jit_counts counts;
    if (!L)
      return 1;
    luaL_openlibs(L);
    lua_createtable(L, 1, 0);
    lua_pushstring(L, argv[1]);
    lua_rawseti(L, -2, 1);
    lua_setglobal(L, "arg");
    if (luaL_dostring(L, "print = function() end") || luaL_dofile(L, argv[i])) {
      fprintf(stderr, "bench_trace_markers: %s\n", lua_tostring(L, -1));
      return 1;
    }
    ljp_guest_jit_counts(&counts);
    struct sums sums = look(counts.alive);
    show(slash ? slash + 1 : argv[i], &sums, counts.marks_bytes,
         counts.record_bytes);
    all.traces += sums.traces;
    all.ir += sums.ir;
    all.code += sums.code;
    all.marks += sums.marks;
    all.truncated += sums.truncated;
    all_marks += counts.marks_bytes;
    all_records += counts.record_bytes;
    lua_close(L);
  }
  show("all, per trace", &all, all_marks, all_records);
  return 0;
}
