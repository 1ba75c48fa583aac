/*
** A host that makes threads for pieces of work as lua-nginx-module does: from the VM's
** main thread, each with an owner, below a coroutine that runs. The threads inherit the
** labels of that coroutine, even if finalizers have run on the main thread meanwhile.
**
** Exit code 77: this LuaJIT knows no owners.
*/
#include <dlfcn.h>

#include "test/support/host_vm.h"

static lua_State *main_thread;
static void (*set_owner)(lua_State *L, void *owner);

/* owned(f): a thread that will run f. */
static int owned(lua_State *L)
{
  static int owner;
  lua_State *co = lua_newthread(main_thread);
  set_owner(co, &owner);
  lua_xmove(main_thread, L, 1);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  return 1;
}

int main(void)
{
  void *symbol = dlsym(RTLD_DEFAULT, "lua_setexdata");
  if (!symbol)
    return 77;
  memcpy(&set_owner, &symbol, sizeof set_owner);
  main_thread = new_vm();
  lua_register(main_thread, "owned", owned);
  lua_State *co = lua_newthread(main_thread);
  if (luaL_loadstring(
          co, "misc.profile.label { route = '/a' } "
              "local finalized = 0 "
              "local function finalizer() finalized = finalized + 1 end "
              "for i = 1, 20000 do "
              "  local proxy = newproxy(true) "
              "  getmetatable(proxy).__gc = finalizer "
              "  local thread = owned(misc.profile.labels) "
              "  local _, labels = coroutine.resume(thread) "
              "  assert(labels.route == '/a', 'thread ' .. i) "
              "end "
              "assert(finalized > 1000)") ||
      lua_resume(co, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(co, -1));
    return 1;
  }
  lua_close(main_thread);
  return 0;
}
