/*
** A host whose watchdog is an interval timer and SIGALRM, and whose handler jumps
** out of a Lua function that takes too long.
*/
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "test/hosts/zoo/zoo.h"

static volatile sig_atomic_t ticks;

static void stop(lua_State *L, lua_Debug *ar)
{
  (void)ar;
  lua_sethook(L, NULL, 0, 0);
  luaL_error(L, "too long");
}

static lua_State *watched;

static void tick(int number)
{
  (void)number;
  ticks++;
  lua_sethook(watched, stop, LUA_MASKCOUNT, 1);
}

int main(void)
{
  struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
  struct itimerval soon = {{0, 0}, {0, 30000}};
  watched = zoo_vm();
  zoo_need(!luaL_dostring(watched, "jit.off()"), "dostring");
  zoo_need(!sigaction(SIGALRM, &action, NULL), "sigaction");
  for (int i = 0; i < 5; i++) {
    int before = ticks;
    zoo_need(!setitimer(ITIMER_REAL, &soon, NULL), "setitimer");
    int failed = luaL_dostring(watched, "while true do light(1) end");
    /* Not the message: a hook that is set within an instruction may make that
    ** one fail, with LuaJIT's own library, too. */
    zoo_say("%s after %d tick", failed ? "an error" : "nothing",
            (int)ticks - before);
    lua_settop(watched, 0);
  }
  zoo_say("work %ld", zoo_work(watched, ZOO_ROUNDS));
  lua_close(watched);
  return 0;
}
