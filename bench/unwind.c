/*
** What host unwinding costs: a walk of 27 frames by compiled tables and by
** interpreting the CFI, and for comparison by glibc's backtrace() and libunwind
** (with its cache warm), borrowing a map, starting with large libraries loaded,
** compiling their tables, and the size of a row.
** Usage: bench_unwind [LIBRARY...] (default: the first six of a list of large
** libraries that are installed)
*/
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "profilers/unwind/unwind.h"
#include "profilers/unwind/table.h"
#include "profilers/unwind/map.h"
#include "src/base/clock.h"
#include "src/base/saferead.h"

enum { FRAMES = 27, WALKS = 20000, OTHERS_WALKS = 1000, REPEATS = 7 };

static struct ljp_unwind *unwinder;
static ucontext_t here;
static unsigned walked;

static uint64_t walk_ns(void)
{
  uint64_t best = UINT64_MAX;
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    uint64_t start = ljp_clock_ns();
    for (int i = 0; i < WALKS; i++) {
      const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
      struct ljp_unwind_room room;
      struct ljp_regs regs;
      ljp_regs_from_context(&regs, &here, &room);
      for (walked = 0; walked < FRAMES && !ljp_unwind_step(map, &regs);
           walked++)
        ;
      ljp_unwind_release(unwinder, map);
    }
    uint64_t took = ljp_clock_ns() - start;
    best = took < best ? took : best;
  }
  return best / WALKS;
}

/* The walk of others: backtrace() from this function, libunwind from the context.
** libunwind has a backtrace() of its own, which is not the one that is meant. */
static uint64_t others_ns(bool libunwind)
{
  static int (*glibc_backtrace)(void **, int);
  void *libc = dlopen("libc.so.6", RTLD_LAZY);
  if (libc)
    *(void **)&glibc_backtrace = dlsym(libc, "backtrace");
  uint64_t best = UINT64_MAX;
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    uint64_t start = ljp_clock_ns();
    for (int i = 0; i < OTHERS_WALKS; i++) {
      unw_cursor_t cursor;
      void *frames[FRAMES];
      if (!libunwind) {
        walked = (unsigned)glibc_backtrace(frames, FRAMES);
        continue;
      }
      unw_init_local2(&cursor, &here, UNW_INIT_SIGNAL_FRAME);
      for (walked = 0; walked < FRAMES && unw_step(&cursor) > 0; walked++)
        ;
    }
    uint64_t took = ljp_clock_ns() - start;
    best = took < best ? took : best;
  }
  return best / OTHERS_WALKS;
}

static uint64_t acquire_ps(void)
{
  uint64_t start = ljp_clock_ns();
  for (int i = 0; i < 1000000; i++)
    ljp_unwind_release(unwinder, ljp_unwind_acquire(unwinder));
  return (ljp_clock_ns() - start) / 1000;
}

static void report(const char *how, uint64_t ns)
{
  printf("walk of %u frames, %s: %lu ns, %.1f ns a step\n", walked, how,
         (unsigned long)ns, (double)ns / walked);
}

/* Calls work at a depth of frames, where it also takes the context from which
** the walks begin. */
static __attribute__((noinline)) int descend(int depth, int (*work)(void))
{
  volatile int kept = depth;
  if (depth == 0) {
    getcontext(&here);
    return work();
  }
  return descend(depth - 1, work) + kept;
}

static int measure(void)
{
  static bool tables;
  report(tables ? "by table" : "interpreting", walk_ns());
  tables = true;
  return 0;
}

static int measure_others(void)
{
  report("by glibc's backtrace()", others_ns(false));
  report("by libunwind", others_ns(true));
  return 0;
}

static void compile(const char *name, struct ljp_unwind_object *object)
{
  struct ljp_unwind_table *table = NULL;
  uint64_t start = ljp_clock_ns();
  struct ljp_unwind_job *job = ljp_unwind_job_new(object);
  if (job)
    ljp_unwind_job_run(job, UINT64_MAX, NULL, &table);
  uint64_t took = ljp_clock_ns() - start;
  if (!table)
    return;
  uint64_t bytes = ljp_unwind_table_bytes(table);
  printf("compile %-34s %8.2f ms %8lu fdes %8u rows %6u rules %5.1f bytes a "
         "row\n",
         name, (double)took / 1e6, (unsigned long)object->index_count,
         table->rows, table->rules_used, (double)bytes / table->rows);
  ljp_unwind_table_free(table);
}

static void compile_all(void)
{
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  for (uint32_t i = 0; i < map->objects_count; i++) {
    struct ljp_unwind_object *object = map->objects[i];
    Dl_info info;
    const char *name = "?";
    if (dladdr((void *)(uintptr_t)object->header, &info) && info.dli_fname)
      name = info.dli_fname;
    const char *slash = strrchr(name, '/');
    if (object->index_count)
      compile(slash ? slash + 1 : name, object);
  }
  ljp_unwind_release(unwinder, map);
}

int main(int argc, char **argv)
{
  static const char *const known[] = {
      "libLLVM-15.so.1",      "libLLVM-14.so.1", "libclang-14.so.14.0.6",
      "libpython3.11.so.1.0", "libz3.so.4",      "libcrypto.so.3",
      "libperl.so.5.36",      "libstdc++.so.6",  "libicui18n.so.72"};
  int loaded = 0;
  if (argc > 1)
    for (int i = 1; i < argc; i++)
      loaded += dlopen(argv[i], RTLD_LAZY) != NULL;
  else
    for (size_t i = 0; i < sizeof known / sizeof *known && loaded < 6; i++)
      if (dlopen(known[i], RTLD_LAZY | RTLD_LOCAL)) {
        printf("loaded %s\n", known[i]);
        loaded++;
      }
  if (ljp_saferead_install())
    return 1;
  uint64_t start = ljp_clock_ns();
  if (ljp_unwind_new(&unwinder))
    return 1;
  uint64_t took = ljp_clock_ns() - start;
  struct ljp_unwind_stats stats;
  ljp_unwind_stats(unwinder, &stats);
  printf("start with %d libraries, %u objects: %.3f ms\n", loaded,
         stats.objects, (double)took / 1e6);
  descend(FRAMES + 3, measure);
  ljp_unwind_poll(unwinder, 0);
  descend(FRAMES + 3, measure);
  descend(FRAMES + 3, measure_others);
  printf("borrow and release a map: %.2f ns\n", (double)acquire_ps() / 1000);
  start = ljp_clock_ns();
  for (int i = 0; i < 100; i++)
    ljp_unwind_poll(unwinder, 0);
  printf("a round with nothing to do: %.1f us\n",
         (double)(ljp_clock_ns() - start) / 1e5);
  compile_all();
  ljp_unwind_free(unwinder);
  ljp_saferead_remove();
  return 0;
}
