/*
** Removes chance from runs of luajit that a benchmark compares: preloaded into
** both, it makes them start from the same state. It is for benchmarks only, and
** harmless in other programs (valgrind's launcher is a shell script).
**
** - It answers LuaJIT's getrandom() with bytes derived from LJP_BENCH_SEED,
**   which decide hash seeds and the addresses of machine code.
** - With LJP_BENCH_EVEN=1, VM memory has the same addresses whatever the size
**   of the library, and where the library has no "misc", luaL_openlibs opens
**   one with the same names (from a build without profilers). So a script finds
**   exactly the same strings, tables and addresses on both sides. Without this,
**   a few more strings at the start change string ids and the phase of the
**   collector for the rest of the run.
**
** The module is not linked with Lua: it looks functions up when it calls them.
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

/* luaopen_misc of profilers/api/lua_api.c, compiled under this name. */
int even_luaopen_misc(lua_State *L);

static bool even_wanted(void)
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
** The addresses of the VM's memory depend only on the requests and releases
** before. They are in the library's own GiB, so that machine code can reach the
** library, as it normally does. Objects (requested without an address) start at
** half of that GiB and go up; their addresses are never used again. Machine
** code (requested at a random address) goes into the first free slots from
** three quarters on. Otherwise a random address that happens to be taken would
** cost one more random number and change all numbers after it, and LuaJIT also
** decides by them whether to try a trace again.
*/
enum { SLOT_BYTES = 0x10000, SLOTS = 2048 };
static bool even_slots[SLOTS];

static uintptr_t even_region(unsigned quarters)
{
  const uintptr_t gib = (uintptr_t)1 << 30;
  uintptr_t vm = (uintptr_t)dlsym(RTLD_DEFAULT, "lua_newstate");
  return (vm & ~(gib - 1)) + quarters * (gib / 4);
}

static void *even_code_place(size_t count)
{
  size_t run = 0;
  for (size_t i = 0; i < SLOTS; i++) {
    run = even_slots[i] ? 0 : run + 1;
    if (run < count)
      continue;
    size_t first = i + 1 - count;
    memset(even_slots + first, true, count);
    return (void *)(even_region(3) + first * SLOT_BYTES);
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
  if ((flags & MAP_ANONYMOUS) && !(flags & MAP_FIXED) && even_wanted()) {
    if (address) {
      address = even_code_place(count);
    } else {
      if (!next)
        next = even_region(2);
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
  uintptr_t offset = (uintptr_t)address - even_region(3);
  if (even_wanted() && offset / SLOT_BYTES < SLOTS)
    memset(even_slots + offset / SLOT_BYTES, false,
           (size + SLOT_BYTES - 1) / SLOT_BYTES);
  return real(address, size);
}

PRELOADED void *mmap(void *address, size_t size, int access, int flags,
                     int file, off_t offset)
{
  return mmap64(address, size, access, flags, file, offset);
}

static lua_CFunction even_function(const char *name)
{
  void *found = dlsym(RTLD_DEFAULT, name);
  lua_CFunction f = NULL;
  memcpy(&f, &found, sizeof f);
  return f;
}

/* Like the library's own, but it opens "misc" after all others. */
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
  if (!even_wanted()) {
    void (*real)(lua_State *) = NULL;
    void *found = dlsym(RTLD_NEXT, "luaL_openlibs");
    memcpy(&real, &found, sizeof real);
    real(L);
    return;
  }
  luaL_findtable(L, LUA_REGISTRYINDEX, "_PRELOAD", 1);
  lua_pushcfunction(L, even_function("luaopen_ffi"));
  lua_setfield(L, -2, "ffi");
  lua_pop(L, 1);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    lua_CFunction open = even_function(names[i][1]);
    lua_pushcfunction(L, open ? open : even_luaopen_misc);
    lua_pushstring(L, names[i][0]);
    lua_call(L, 1, 0);
  }
}
