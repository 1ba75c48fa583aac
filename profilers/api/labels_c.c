/*
** luaM_label: the C interface of lmisclib.h. On the VM's own thread.
*/
#include <errno.h>
#include <string.h>

#include "profilers/api/lmisclib.h"
#include "profilers/session/labels.h"
#include "profilers/session/side_run.h"
#include "src/luajit/heap.h"

static bool labels_is_key(const char *key)
{
  return key && *key && strlen(key) <= LJP_LABELS_KEY_BYTES &&
         !strchr(key, '=');
}

int luaM_label(lua_State *L, const char *key, const char *value)
{
  struct ljp_labels labels;
  uint32_t set;
  ljp_side_bind();
  if (!L || !labels_is_key(key) ||
      (value && strlen(value) > LJP_LABELS_VALUE_BYTES)) {
    errno = EINVAL;
    return PROFILE_ERRUSE;
  }
  ljp_labels_get(ljp_guest_labels(L), &labels);
  if (!ljp_labels_put(&labels, key, value) ||
      ljp_labels_bytes(&labels) > LJP_NAME_BYTES) {
    errno = E2BIG;
    return PROFILE_ERRUSE;
  }
  if (!ljp_labels_intern(&labels, &set)) {
    errno = ENOMEM;
    return PROFILE_ERRMEM;
  }
  ljp_guest_set_labels(L, set);
  return PROFILE_SUCCESS;
}
