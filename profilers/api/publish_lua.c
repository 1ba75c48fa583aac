/*
** misc.profile.publish_labels: shows labels to other profilers (OTEP 4947). A call that
** fails returns nil, a message and an errno number. On the VM's own thread.
*/
#include "profilers/api/publish_lua.h"

#include "profilers/api/options.h"
#include "profilers/session/published.h"
#include "profilers/session/side_run.h"

int ljp_profile_publish_labels(lua_State *L)
{
  struct ljp_failure why;
  enum ljp_status status = LJP_OK;
  ljp_side_bind();
  if (lua_gettop(L) != 1 || !lua_isboolean(L, 1))
    return ljp_options_misused(L, "publish_labels takes true or false");
  if (lua_toboolean(L, 1))
    status = ljp_publish_start(L, &why);
  else
    ljp_publish_stop(L);
  if (status)
    return ljp_options_refused(L, status, &why);
  lua_pushboolean(L, 1);
  return 1;
}

void ljp_profile_set_published(lua_State *L)
{
  struct ljp_publish_status status;
  if (!ljp_publish_status(L, &status))
    return;
  lua_createtable(L, 0, 3);
  ljp_options_set_count(L, "sets", status.sets);
  ljp_options_set_count(L, "keys", status.keys);
  ljp_options_set_count(L, "cut", status.cut);
  lua_setfield(L, -2, "publish_labels");
}
