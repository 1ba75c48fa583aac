/*
** Takes chance out of runs of luajit that are compared with each other:
** preloaded into both, it lets them start from the same state. For benchmarks
** only; harmless in other programs (valgrind's launcher is a shell script).
**
** - LuaJIT's getrandom() is answered with bytes that follow from
**   LJP_BENCH_SEED: hash seeds and the places of machine code.
** - With LJP_BENCH_EVEN=1, VM memory lies at the same addresses whatever the
**   size of the library, and where the library has no "misc", luaL_openlibs
**   opens one of the same names (that of a build without profilers). Thus the
**   strings, tables and addresses that a script finds are equal on both sides,
**   to the bit; without this, a few strings more at the start move string ids
**   and the phase of the GC for the rest of the run.
**
** Nothing of Lua is linked: what is needed is looked up when it is called.
*/
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

#define PRELOADED __attribute__((visibility("default")))

/* profilers/api/lua_api.c, compiled under this name for this file. */
int even_luaopen_misc(lua_State *L);

static bool wanted(void)
{
  const char *text = getenv("LJP_BENCH_EVEN");
  return text && strcmp(text, "1") == 0 && dlsym(RTLD_DEFAULT, "lua_newstate");
}

long syscall(long number, ...);
PRELOADED long syscall(long number, ...)
{
  if (number != SYS_getrandom) {
    errno = ENOSYS;
    return -1;
  }
  va_list args;
  va_start(args, number);
  unsigned char *bytes = va_arg(args, unsigned char *);
  size_t size = va_arg(args, size_t);
  va_end(args);
  const char *text = getenv("LJP_BENCH_SEED");
  unsigned state = text ? (unsigned)atoi(text) : 1;
  for (size_t i = 0; i < size; i++) {
    state = state * 1103515245u + 12345u;
    bytes[i] = (unsigned char)(state >> 16);
  }
  return (long)size;
}

/*
** Memory of the VM lies in places that depend on what was asked for and given
** back before, and on nothing else: in the GiB in which the library lies, so
** that machine code reaches it, as it would by itself. Objects (asked for
** without a place) from half a GiB on upwards, never used again; machine code
** (asked for in a random place) from three quarters on, in the first slots
** that are free. Without the latter, a random place that happens to be taken
** costs one more random number, and all that follow are others: whether a
** trace is tried again is drawn from them, too.
*/
enum { SLOT_BYTES = 0x10000, SLOTS = 2048 };
static bool slots[SLOTS];

static uintptr_t region(unsigned quarters)
{
  const uintptr_t gib = (uintptr_t)1 << 30;
  uintptr_t vm = (uintptr_t)dlsym(RTLD_DEFAULT, "lua_newstate");
  return (vm & ~(gib - 1)) + quarters * (gib / 4);
}

static void *code_place(size_t count)
{
  size_t run = 0;
  for (size_t i = 0; i < SLOTS; i++) {
    run = slots[i] ? 0 : run + 1;
    if (run < count)
      continue;
    size_t first = i + 1 - count;
    memset(slots + first, true, count);
    return (void *)(region(3) + first * SLOT_BYTES);
  }
  return NULL;
}

PRELOADED void *mmap64(void *address, size_t size, int access, int flags,
                       int file, off64_t offset)
{
  static void *(*real)(void *, size_t, int, int, int, off64_t);
  static uintptr_t next;
  if (!real) {
    void *found = dlsym(RTLD_NEXT, "mmap64");
    memcpy(&real, &found, sizeof real);
  }
  size_t count = (size + SLOT_BYTES - 1) / SLOT_BYTES;
  if ((flags & MAP_ANONYMOUS) && !(flags & MAP_FIXED) && wanted()) {
    if (address) {
      address = code_place(count);
    } else {
      if (!next)
        next = region(2);
      address = (void *)next;
      next += count * SLOT_BYTES;
    }
  }
  return real(address, size, access, flags, file, offset);
}

PRELOADED int munmap(void *address, size_t size)
{
  static int (*real)(void *, size_t);
  if (!real) {
    void *found = dlsym(RTLD_NEXT, "munmap");
    memcpy(&real, &found, sizeof real);
  }
  uintptr_t offset = (uintptr_t)address - region(3);
  if (wanted() && offset / SLOT_BYTES < SLOTS)
    memset(slots + offset / SLOT_BYTES, false,
           (size + SLOT_BYTES - 1) / SLOT_BYTES);
  return real(address, size);
}

PRELOADED void *mmap(void *address, size_t size, int access, int flags,
                     int file, off_t offset)
{
  return mmap64(address, size, access, flags, file, offset);
}

static lua_CFunction function(const char *name)
{
  void *found = dlsym(RTLD_DEFAULT, name);
  lua_CFunction f = NULL;
  memcpy(&f, &found, sizeof f);
  return f;
}

/* As the library's own, but for the order: "misc" after all others. */
PRELOADED void luaL_openlibs(lua_State *L)
{
  static const char *const names[][2] = {
      {"", "luaopen_base"},       {"package", "luaopen_package"},
      {"table", "luaopen_table"}, {"io", "luaopen_io"},
      {"os", "luaopen_os"},       {"string", "luaopen_string"},
      {"math", "luaopen_math"},   {"debug", "luaopen_debug"},
      {"bit", "luaopen_bit"},     {"jit", "luaopen_jit"},
      {"misc", "luaopen_misc"},
  };
  if (!wanted()) {
    void (*real)(lua_State *) = NULL;
    void *found = dlsym(RTLD_NEXT, "luaL_openlibs");
    memcpy(&real, &found, sizeof real);
    real(L);
    return;
  }
  luaL_findtable(L, LUA_REGISTRYINDEX, "_PRELOAD", 1);
  lua_pushcfunction(L, function("luaopen_ffi"));
  lua_setfield(L, -2, "ffi");
  lua_pop(L, 1);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    lua_CFunction open = function(names[i][1]);
    lua_pushcfunction(L, open ? open : even_luaopen_misc);
    lua_pushstring(L, names[i][0]);
    lua_call(L, 1, 0);
  }
}
