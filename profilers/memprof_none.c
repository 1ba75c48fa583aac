/*
** The memory profiler's C interface in a library without it: every call says
** so. Takes the place of the profiler's own files; may be called from anywhere.
*/
#include <errno.h>

#include "profilers/lmisclib.h"

int luaM_memprof_start(lua_State *L, const struct luam_Memprof_Options *opt)
{
  (void)L;
  (void)opt;
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}

int luaM_memprof_stop(lua_State *L)
{
  (void)L;
  errno = ENOTSUP;
  return PROFILE_ERRUSE;
}
