/*
** What the library costs in memory while no profiler runs. For ./run bench off
** and e2e/off_memory, with the patched library or its unpatched twin.
**
**   bench_off_memory [session]
**
** Prints a line for each thing that a program has many of: its name, their
** number, and for one of them the bytes of the VM's heap, the bytes of malloc()
** outside of the heap, and the growth of the resident set. The heap is counted
** by an allocator of the VM, malloc() by functions of this program that take
** its place: with the 8 bytes and the rounding that glibc adds to a request.
** What is garbage is collected first.
**
** "session": a session of the CPU profiler is started and stopped before the
** functions are loaded, and once more before the count. So what sessions leave
** of each function is counted, too.
*/
#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

/* -- Counting -------------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static _Atomic int64_t memory_malloc;
static int64_t memory_heap;
static bool memory_inside; /* a request of the VM's heap */

static void *memory_count(void *p, int sign)
{
  if (p && !memory_inside)
    memory_malloc += sign * (int64_t)(malloc_usable_size(p) + sizeof(size_t));
  return p;
}

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
  return memory_count(__libc_malloc(size), 1);
}

void *calloc(size_t count, size_t size)
{
  return memory_count(__libc_calloc(count, size), 1);
}

void *realloc(void *p, size_t size)
{
  memory_count(p, -1);
  void *fresh = __libc_realloc(p, size);
  return memory_count(fresh || !size ? fresh : p, 1) == fresh ? fresh : NULL;
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
  *out = memory_count(__libc_memalign(alignment, size), 1);
  return *out ? 0 : 12; /* ENOMEM */
}

void free(void *p)
{
  memory_count(p, -1);
  __libc_free(p);
}

#pragma GCC visibility pop

static void *memory_allocate(void *ctx, void *p, size_t old, size_t wanted)
{
  (void)ctx;
  memory_inside = true;
  void *fresh = NULL;
  if (wanted)
    fresh = __libc_realloc(p, wanted);
  else
    __libc_free(p);
  memory_inside = false;
  if (fresh || !wanted)
    memory_heap += (int64_t)wanted - (p ? (int64_t)old : 0);
  return fresh;
}

static int64_t memory_resident(void)
{
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%*s %ld", &pages) != 1)
    exit(1);
  fclose(f);
  return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* -- What is counted ------------------------------------------------------- */

enum { FUNCTIONS = 31, CHUNKS = 1009, TRACES = 997, VMS = 101, ALL_DONE = 77 };

static void memory_run(lua_State *L, const char *code)
{
  if (luaL_dostring(L, code)) {
    fprintf(stderr, "bench_off_memory: %s\n", lua_tostring(L, -1));
    exit(1);
  }
}

static lua_State *memory_open(void)
{
  lua_State *L = lua_newstate(memory_allocate, NULL);
  if (!L)
    exit(1);
  luaL_openlibs(L);
  return L;
}

static void memory_collect(lua_State *L)
{
  lua_gc(L, LUA_GCCOLLECT, 0);
  lua_gc(L, LUA_GCCOLLECT, 0);
}

/* Loads CHUNKS chunks with FUNCTIONS functions each, and keeps the functions.
** What a function's head and its end are in the chunk: %d is its number in the
** chunk, %s the number of the chunk. */
static const struct {
  const char *what, *first, *head, *end, *last;
} memory_kinds[] = {
    /* Elements of an array have no name. */
    {"unnamed function", "local t = {}", "t[%d] = function()", "end",
     "return t"},
    /* The chunk is freed: its functions' names must be kept. All chunks have
    ** the same, as in a program with many VMs. */
    {"function of a module", "local M = {}", "function M.handle_%d()", "end",
     "return M"},
    /* Each name exists once. */
    {"function, other name", "local M = {}", "function M.n%d_%s()", "end",
     "return M"},
    /* The function around it stays. */
    {"function inside", "return function() local t = {}", "t[%d] = function()",
     "end", "return t end"},
};

enum { INSIDE = 3 };

static void memory_load(lua_State *L, int kind, int chunk)
{
  luaL_Buffer b;
  char text[128], number[16];
  snprintf(number, sizeof number, "%d", chunk);
  luaL_buffinit(L, &b);
  luaL_addstring(&b, memory_kinds[kind].first);
  for (int i = 1; i <= FUNCTIONS; i++) {
    luaL_addstring(&b, "\n");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, memory_kinds[kind].head, i, number);
#pragma GCC diagnostic pop
    luaL_addstring(&b, text);
    snprintf(text, sizeof text, " return %d ", i);
    luaL_addstring(&b, text);
    luaL_addstring(&b, memory_kinds[kind].end);
  }
  luaL_addstring(&b, "\n");
  luaL_addstring(&b, memory_kinds[kind].last);
  luaL_pushresult(&b);
  size_t size;
  const char *code = lua_tolstring(L, -1, &size);
  if (luaL_loadbuffer(L, code, size, "@chunk.lua"))
    exit(1);
  lua_call(L, 0, 1);
  lua_rawseti(L, 1, chunk);
  lua_settop(L, 1);
}

static int64_t memory_before[3];

static void memory_begin(void)
{
  memory_before[0] = memory_heap;
  memory_before[1] = memory_malloc;
  memory_before[2] = memory_resident();
}

static void memory_print(const char *what, int count)
{
  int64_t now[] = {memory_heap, memory_malloc, memory_resident()};
  printf("%-24s %6d", what, count);
  for (int i = 0; i < 3; i++)
    printf(" %10.1f", (double)(now[i] - memory_before[i]) / count);
  printf("\n");
  fflush(stdout);
}

static void memory_session(lua_State *L)
{
  memory_run(L, "assert(misc.sysprof.start({ path = '/dev/null' })) "
                "assert(misc.sysprof.stop())");
}

static void memory_functions(int kind, bool session)
{
  lua_State *L = memory_open();
  /* Room for all chunks and strings, so that they count on neither side. */
  memory_run(L, "local t = {} for i = 1, 4096 do t[i] = false end return t");
  memory_load(L, kind, CHUNKS + 1);
  if (session)
    memory_session(L);
  memory_collect(L);
  memory_begin();
  for (int i = 1; i <= CHUNKS; i++)
    memory_load(L, kind, i);
  if (session)
    memory_session(L);
  memory_collect(L);
  /* The function around the last kind is kept, too. */
  int outer = kind == INSIDE ? CHUNKS : 0;
  memory_print(memory_kinds[kind].what, FUNCTIONS * CHUNKS + outer);
  lua_close(L);
}

static void memory_traces(void)
{
  lua_State *L = memory_open();
  char code[256];
  memory_run(L, "jit.on() jit.opt.start('maxtrace=4000', 'hotloop=2', "
                "'maxmcode=8192')");
  memory_run(L, "local t = {} for i = 1, 4096 do t[i] = false end return t");
  for (int i = 0; i <= TRACES; i++) {
    if (i == 1) {
      memory_collect(L);
      memory_begin();
    }
    snprintf(code, sizeof code,
             "local n = 0 return function() for i = 1, 20 do "
             "n = n + bit.bxor(i, %d) end return n end",
             i);
    memory_run(L, code);
    lua_pushvalue(L, -1);
    lua_rawseti(L, 1, i + 1);
    lua_call(L, 0, 0);
    lua_settop(L, 1);
  }
  memory_collect(L);
  memory_print("trace, its function too", TRACES);
  lua_close(L);
}

static void memory_vms(const char *what, const char *code)
{
  lua_State *vm[VMS];
  memory_begin();
  for (int i = 0; i < VMS; i++) {
    vm[i] = memory_open();
    memory_run(vm[i], code);
    memory_collect(vm[i]);
  }
  memory_print(what, VMS);
  for (int i = 0; i < VMS; i++)
    lua_close(vm[i]);
}

/* What a session leaves when it has ended; nothing without the library misc. */
static void memory_rest(void)
{
  lua_State *L = memory_open();
  memory_collect(L);
  memory_begin();
  memory_run(L, "jit.off() if not misc then return end "
                "assert(misc.sysprof.start({ path = '/dev/null' })) "
                "local n = os.clock() + 0.3 while os.clock() < n do end "
                "assert(misc.sysprof.stop())");
  memory_collect(L);
  memory_print("session that has ended", 1);
  lua_close(L);
}

static void memory_measure(int what, bool session)
{
  enum { KINDS = sizeof memory_kinds / sizeof *memory_kinds };
  if (what < KINDS)
    memory_functions(what, session);
  else if (what == KINDS)
    memory_traces();
  else if (what == KINDS + 1)
    memory_vms("VM", "jit.off()");
  else if (what == KINDS + 2)
    memory_vms("VM that compiles",
               "jit.on() local n = 0 for i = 1, 999 do n = n + i end");
  else if (what == KINDS + 3)
    memory_rest();
  else
    exit(ALL_DONE);
}

int main(int argc, char **argv)
{
  bool session = argc > 1 && strcmp(argv[1], "session") == 0;
  if (argc > 2 || (argc == 2 && !session)) {
    fprintf(stderr, "usage: bench_off_memory [session]\n");
    return 2;
  }
  printf("%-24s %6s %10s %10s %10s\n", "what", "count", "heap", "malloc",
         "resident");
  fflush(stdout);
  /* In a process of its own, because tables stay as large as they ever were. */
  for (int what = 0;; what++) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
      memory_measure(what, session);
      return 0;
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
      return 1;
    if (WEXITSTATUS(status))
      return WEXITSTATUS(status) == ALL_DONE ? 0 : 1;
  }
}
