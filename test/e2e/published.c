/*
** A library for Lua that shows what the process publishes, read as from outside.
**
**   shown()  the labels of this thread as "key=value,key=value"; nil: none
**   keys()   the keys of the process context, a list; nil: there is no context
**
** Whatever is wrong is an error.
*/
#include <dlfcn.h>

#include "lauxlib.h"
#include "lua.h"
#include "test/support/published.h"

int luaopen_published(lua_State *L);

static int published_shown(lua_State *L)
{
  static _Thread_local struct published_context context;
  char text[PUBLISHED_TEXT];
  const void *const *slot = dlsym(RTLD_DEFAULT, "otel_thread_ctx_v1");
  if (!slot)
    return luaL_error(L, "the variable is not exported");
  if (!*slot)
    return 0;
  const char *wrong = published_read_context(getpid(), &context);
  if (wrong)
    return luaL_error(L, "context: %s", wrong);
  if (!published_labels(getpid(), (uintptr_t)*slot, &context, text))
    return luaL_error(L, "%s", text);
  lua_pushstring(L, text);
  return 1;
}

static int published_keys(lua_State *L)
{
  static _Thread_local struct published_context context;
  const char *wrong = published_read_context(getpid(), &context);
  if (wrong && strcmp(wrong, "none") == 0)
    return 0;
  if (wrong)
    return luaL_error(L, "context: %s", wrong);
  lua_newtable(L);
  for (unsigned i = 0; i < context.count; i++) {
    lua_pushstring(L, context.key[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

__attribute__((visibility("default"))) int luaopen_published(lua_State *L)
{
  static const luaL_Reg functions[] = {
      {"shown", published_shown}, {"keys", published_keys}, {NULL, NULL}};
  lua_newtable(L);
  for (const luaL_Reg *f = functions; f->name; f++) {
    lua_pushcfunction(L, f->func);
    lua_setfield(L, -2, f->name);
  }
  return 1;
}
