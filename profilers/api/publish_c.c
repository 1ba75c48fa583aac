/*
** luaM_publish_labels: the C interface of lmisclib.h. On the VM's own thread.
*/
#include <errno.h>

#include "profilers/api/c_result.h"
#include "profilers/api/lmisclib.h"
#include "profilers/session/published.h"
#include "profilers/session/side_run.h"

int luaM_publish_labels(lua_State *L, int on)
{
  struct ljp_failure why;
  enum ljp_status status = LJP_OK;
  ljp_side_bind();
  if (!L) {
    errno = EINVAL;
    return PROFILE_ERRUSE;
  }
  if (on)
    status = ljp_publish_start(L, &why);
  else
    ljp_publish_stop(L);
  return ljp_c_result(status, &why);
}
