/*
** See request_labels.h. lua-nginx-module makes a Lua thread for each handler of a
** request and tells LuaJIT whose it is (lua_setexdata) before it runs. Then the
** variables are read as ngx.var does it, by the function that the module has for
** LuaJIT's FFI.
*/
#include "profilers/session/request_labels.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "src/luajit/vms.h"

/* As resty.core.var declares it. */
typedef int request_variable_get(void *request, const char *name,
                                 size_t name_bytes, char *lowered, int capture,
                                 char **value, size_t *bytes, char **error);

static request_variable_get *_Atomic request_get;

/* The variables, as a set of labels whose values are their names: sets stay, so
** they can change while other threads read them. */
static _Atomic uint32_t request_variables;

/* Begins with the word "HTTP" (ngx_http_request_t); the owner of another module's
** thread does not. */
static bool request_is_http(const void *owner)
{
  return owner && memcmp(owner, "HTTP", 4) == 0;
}

/* The labels of a request. */
static uint32_t request_labels(void *owner)
{
  char values[LJP_REQUEST_VARIABLES][LJP_LABELS_VALUE_BYTES + 1];
  char lowered[LJP_LABELS_VALUE_BYTES + 1];
  request_variable_get *get = atomic_load(&request_get);
  struct ljp_labels variables, labels = {0};
  uint32_t set;
  ljp_labels_get(atomic_load(&request_variables), &variables);
  if (!variables.count || !request_is_http(owner))
    return 0;
  const size_t share = LJP_NAME_BYTES / variables.count;
  for (unsigned i = 0; i < variables.count; i++) {
    const struct ljp_label *v = &variables.list[i];
    const size_t room = share - strlen(v->key) - 2;
    char *value, *error;
    size_t bytes;
    /* Not NGX_OK: the request has no such variable, or is not a real one. */
    if (get(owner, v->value, strlen(v->value), lowered, 0, &value, &bytes,
            &error))
      continue;
    if (bytes > room)
      bytes = room;
    if (bytes > LJP_LABELS_VALUE_BYTES)
      bytes = LJP_LABELS_VALUE_BYTES;
    memcpy(values[i], value, bytes);
    values[i][bytes] = '\0';
    if (values[i][0])
      ljp_labels_put(&labels, v->key, values[i]);
  }
  return ljp_labels_intern(&labels, &set) ? set : 0;
}

int ljp_request_labels_set(const struct ljp_labels *variables)
{
  void *symbol = dlsym(RTLD_DEFAULT, "ngx_http_lua_ffi_var_get");
  request_variable_get *get;
  struct ljp_labels there;
  uint32_t set;
  if (!symbol)
    return ENOTSUP;
  if (!ljp_labels_intern(variables, &set))
    return ENOMEM;
  ljp_labels_get(set, &there);
  if (there.count != variables->count)
    return ENOSPC;
  for (unsigned i = 0; i < there.count; i++)
    if (strcmp(there.list[i].value, variables->list[i].value) != 0)
      return ENOSPC; /* "(other)" */
  memcpy(&get, &symbol, sizeof get);
  atomic_store(&request_get, get);
  atomic_store(&request_variables, set);
  ljp_guest_listen_owners(request_labels);
  return 0;
}
