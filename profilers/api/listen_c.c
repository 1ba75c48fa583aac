/*
** luaM_listen: the C interface of lmisclib.h. Any thread.
*/
#include <errno.h>

#include "profilers/api/c_result.h"
#include "profilers/api/lmisclib.h"
#include "profilers/join/listen.h"
#include "profilers/session/side_run.h"

int luaM_listen(lua_State *L, const char *path)
{
  struct ljp_failure why;
  ljp_side_bind();
  if (!L || (path && !*path)) {
    errno = EINVAL;
    return PROFILE_ERRUSE;
  }
  return ljp_c_result(
      path ? ljp_listen_start(path, NULL, &why) : ljp_listen_stop(&why), &why);
}
