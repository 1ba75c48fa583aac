/*
** Takes the place of publish.c in a build without profilers: nothing is published,
** so patch 0013 never calls these.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_vm.h"

void ljp_hook_enter_call(lua_State *L, TValue *base, int nres1)
{
  lj_vm_call(L, base, nres1);
}

int ljp_hook_enter_pcall(lua_State *L, TValue *base, int nres1, ptrdiff_t ef)
{
  return lj_vm_pcall(L, base, nres1, ef);
}

int ljp_hook_enter_cpcall(lua_State *L, lua_CFunction func, void *ud,
                          lua_CPFunction cp)
{
  return lj_vm_cpcall(L, func, ud, cp);
}

int ljp_hook_enter_resume(lua_State *L, TValue *base, int nres1, ptrdiff_t ef)
{
  return lj_vm_resume(L, base, nres1, ef);
}

_Atomic uint32_t ljp_publishing;
