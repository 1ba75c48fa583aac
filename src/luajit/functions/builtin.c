/*
** Names of builtins by number, as LuaJIT's own library definitions give them.
** Runs anywhere.
*/
#define LUA_CORE

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_ff.h"

#include "src/luajit/functions.h"

enum { RAW = 40, LONGEST = 56 };

/* Arrays, because pointers would be relocated whenever the library is
** loaded. */
static const char builtin_raw_names[][RAW] = {
#define FFDEF(name) #name,
#include "lj_ffdef.h"
#undef FFDEF
};
enum { COUNT = sizeof builtin_raw_names / sizeof builtin_raw_names[0] };

static char builtin_names[COUNT][LONGEST];

/* lj_ffdef.h says table_sort. Names of the base library have no prefix, but may
** have an underscore. The first matching prefix is replaced. */
static const struct {
  char raw[16], shown[LONGEST - RAW];
} builtin_prefixes[] = {
    {"io_method_", "file:"},
    {"buffer_method_", "buffer:"},
    {"ffi_meta_", "ffi.meta."},
    {"ffi_clib_", "ffi.clib."},
    {"ffi_callback_", "ffi.callback:"},
    {"jit_util_", "jit.util."},
    {"jit_opt_", "jit.opt."},
    {"jit_profile_", "jit.profile."},
    {"coroutine_", "coroutine."},
    {"math_", "math."},
    {"bit_", "bit."},
    {"string_", "string."},
    {"table_", "table."},
    {"io_", "io."},
    {"os_", "os."},
    {"debug_", "debug."},
    {"jit_", "jit."},
    {"ffi_", "ffi."},
    {"package_", "package."},
    {"buffer_", "buffer."},
    {"thread_", "thread."},
};

static void builtin_make_names(void)
{
  for (unsigned i = 0; i < COUNT; i++) {
    const char *raw = builtin_raw_names[i], *shown = "";
    for (unsigned p = 0;
         p < sizeof builtin_prefixes / sizeof builtin_prefixes[0]; p++) {
      size_t length = strlen(builtin_prefixes[p].raw);
      if (strncmp(raw, builtin_prefixes[p].raw, length) == 0 && raw[length]) {
        shown = builtin_prefixes[p].shown;
        raw += length;
        break;
      }
    }
    snprintf(builtin_names[i], LONGEST, "%s%.*s", shown, RAW - 1, raw);
  }
}

const char *ljp_guest_builtin(uint32_t ffid)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, builtin_make_names);
  /* FF_LUA and FF_C come first and are no builtins. */
  return ffid > FF_C && ffid - FF_C - 1 < COUNT ? builtin_names[ffid - FF_C - 1]
                                                : NULL;
}
