/*
** misc.profile.listen: a door by which `ljprof` joins this program. A call that
** fails returns nil, a message and an errno number.
*/
#include "profilers/api/listen_lua.h"

#include "profilers/api/options.h"
#include "profilers/join/listen.h"
#include "profilers/session/side_run.h"

int ljp_profile_listen(lua_State *L)
{
  struct ljp_failure why;
  const char *path = NULL, *wants;
  ljp_side_bind();
  if (lua_gettop(L) != 1 ||
      !(lua_isnil(L, 1) || ljp_option_path(L, &path, &wants)))
    return ljp_options_misused(L,
                               "listen takes the path of a socket, or nil to "
                               "listen no longer");
  enum ljp_status status =
      path ? ljp_listen_start(path, NULL, &why) : ljp_listen_stop(&why);
  if (status)
    return ljp_options_refused(L, status, &why);
  lua_pushboolean(L, 1);
  return 1;
}

void ljp_profile_set_listen(lua_State *L)
{
  char path[LJP_DOOR_PATH_BYTES];
  if (!ljp_listen_path(path))
    return;
  lua_pushstring(L, path);
  lua_setfield(L, -2, "listen");
}
