/*
** The Lua library "misc" with its tables sysprof, memprof and profile. Called
** by luaL_openlibs().
*/
#include "lua.h"
#include "lauxlib.h"

#include "profilers/api/autostart.h"
#include "profilers/api/labels_lua.h"
#include "profilers/api/lmisclib.h"
#include "profilers/api/lua_tables.h"

static const struct {
  const char *name;
  const luaL_Reg *functions;
} tables[] = {
    {"sysprof", ljp_sysprof_functions},
    {"memprof", ljp_memprof_functions},
    {"profile", ljp_profile_functions},
};

int luaopen_misc(lua_State *L)
{
  static const luaL_Reg functions[] = {{"getmetrics", ljp_getmetrics},
                                       {NULL, NULL}};
  luaL_register(L, LUAM_MISCLIBNAME, functions);
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
    lua_newtable(L);
    for (const luaL_Reg *f = tables[i].functions; f->name != NULL; f++) {
      lua_pushcfunction(L, f->func);
      lua_setfield(L, -2, f->name);
    }
    if (tables[i].functions == ljp_profile_functions)
      ljp_profile_add_with(L);
    lua_setfield(L, -2, tables[i].name);
  }
  ljp_autostart(L);
  return 1;
}
