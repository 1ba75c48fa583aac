/*
** misc.getmetrics() and luaM_metrics(), with profilers or without. On the VM's
** own thread.
*/
#include "profilers/api/lmisclib.h"
#include "profilers/api/lua_tables.h"
#include "src/luajit/metrics.h"

void luaM_metrics(lua_State *L, struct luam_Metrics *metrics)
{
  struct ljp_metrics m;
  ljp_guest_metrics(L, &m);
#define LJP_X(name) metrics->name = (__typeof__(metrics->name))m.name;
  LJP_METRICS_LIST(LJP_X)
#undef LJP_X
}

int ljp_getmetrics(lua_State *L)
{
  struct ljp_metrics m;
  enum {
#define LJP_X(name) +1
    FIELDS = LJP_METRICS_LIST(LJP_X)
#undef LJP_X
  };
  lua_createtable(L, 0, FIELDS);
  ljp_guest_metrics(L, &m);
#define LJP_X(name)                                                            \
  lua_pushnumber(L, (lua_Number)m.name);                                       \
  lua_setfield(L, -2, #name);
  LJP_METRICS_LIST(LJP_X)
#undef LJP_X
  return 1;
}
