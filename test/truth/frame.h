/*
** Frames of C functions as truth_judge reads them, for the Lua modules here.
*/
#ifndef TEST_TRUTH_FRAME_H
#define TEST_TRUTH_FRAME_H

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lauxlib.h"
#include "lua.h"

/* A function that has frames and a symbol of its own. */
#define TRUTH_APART __attribute__((noinline, noclone, visibility("default")))

/* Pushes "file+0xADDRESS" of a function, or of all of its instructions
** ("file+0xBEGIN..END"), and returns 1. */
static inline int truth_push_frame(lua_State *L, void *at, bool range)
{
  const ElfW(Sym) *symbol = NULL;
  char text[256];
  Dl_info info;
  if (!at || !dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT))
    return luaL_error(L, "no such function");
  const char *slash = strrchr(info.dli_fname, '/');
  unsigned long address = (unsigned long)((char *)at - (char *)info.dli_fbase);
  int n = snprintf(text, sizeof text, "%s+0x%lx",
                   slash ? slash + 1 : info.dli_fname, address);
  if (range && symbol)
    snprintf(text + n, sizeof text - (size_t)n, "..%lx",
             address + (unsigned long)symbol->st_size);
  lua_pushstring(L, text);
  return 1;
}

/* Pushes the range of a TRUTH_APART function of this module. */
static inline int truth_push_range(lua_State *L, const char *name)
{
  static const char here;
  Dl_info info;
  void *self = dladdr(&here, &info)
                   ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)
                   : NULL;
  return truth_push_frame(L, self ? dlsym(self, name) : NULL, true);
}

/* Pushes a frame of the C function that Lua calls by that name. */
static inline int truth_push_function(lua_State *L, const luaL_Reg *functions,
                                      const char *name)
{
  void *at = NULL;
  for (; functions->name; functions++)
    if (strcmp(functions->name, name) == 0)
      memcpy(&at, &functions->func, sizeof at);
  return truth_push_frame(L, at, false);
}

#endif
