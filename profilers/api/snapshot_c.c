/*
** luaM_heap_snapshot: the C interface of lmisclib.h. On the VM's own thread.
*/
#include <errno.h>

#include "profilers/api/c_result.h"
#include "profilers/api/lmisclib.h"
#include "profilers/memory/heap_snapshot.h"
#include "profilers/session/side_run.h"
#include "src/luajit/snapshot.h"

int luaM_heap_snapshot(lua_State *L, const char *path,
                       const struct luam_Heap_Options *opt)
{
  struct ljp_heap_snapshot_options options;
  struct ljp_snapshot_result result;
  struct ljp_failure why;
  ljp_side_bind();
  ljp_heap_snapshot_options_init(&options);
  options.path = path;
  if (opt) {
    options.text_limit = opt->strings;
    options.wait = opt->wait;
    options.in_place = opt->in_place;
  }
  if (!L || (path && !*path) || options.text_limit > LJP_HEAP_TEXT_MAX_BYTES) {
    errno = EINVAL;
    return PROFILE_ERRUSE;
  }
  if (!ljp_guest_settled(L)) { /* Another thread runs it, or the collector. */
    errno = EPERM;
    return PROFILE_ERRRUN;
  }
  return ljp_c_result(ljp_heap_snapshot(L, &options, &result, &why), &why);
}
