/*
** VMs of host programs that shell tests run: a chunk that fails ends the
** program.
*/
#ifndef LJP_TEST_HOST_VM_H
#define LJP_TEST_HOST_VM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static inline lua_State *new_vm(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  return L;
}

static inline void run(lua_State *L, const char *code)
{
  if (luaL_loadbuffer(L, code, strlen(code), "=host") ||
      lua_pcall(L, 0, 0, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
}

/* Starts a session of the CPU profiler. */
static inline void start_session(lua_State *L, const char *path,
                                 const char *options)
{
  char code[1024];
  snprintf(code, sizeof code, "assert(misc.sysprof.start{path='%s', %s})", path,
           options);
  run(L, code);
}

#endif
