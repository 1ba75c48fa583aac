/*
** The C part of the ground truth, a Lua module: work in user space and in the
** kernel, and the thread's CPU clock.
*/
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "test/truth/frame.h"

/* clock(): CPU seconds of this thread. */
static int truth_clock(lua_State *L)
{
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  lua_pushnumber(L, (double)t.tv_sec + (double)t.tv_nsec * 1e-9);
  return 1;
}

/* Both take a number of steps and return a number that depends on all of
** them. */
static int truth_spin(lua_State *L)
{
  uint32_t n = (uint32_t)luaL_checkinteger(L, 1), x = 2463534242u;
  for (uint32_t i = 0; i < n * 100; i++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  lua_pushnumber(L, x);
  return 1;
}

static int truth_divide(lua_State *L)
{
  uint32_t n = (uint32_t)luaL_checkinteger(L, 1);
  volatile double x = 1e300;
  for (uint32_t i = 0; i < n * 20; i++)
    x = x / 1.000001 + 1;
  lua_pushnumber(L, x);
  return 1;
}

/* read_zero(n): nearly all of its time is spent in the kernel. */
static int truth_read_zero(lua_State *L)
{
  static char page[1 << 16];
  static int fd = -1;
  int n = (int)luaL_checkinteger(L, 1);
  double sum = 0;
  if (fd < 0)
    fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < n; i++)
    sum += (double)read(fd, page, sizeof page);
  lua_pushnumber(L, sum);
  return 1;
}

static const luaL_Reg functions[] = {{"clock", truth_clock},
                                     {"spin", truth_spin},
                                     {"divide", truth_divide},
                                     {"read_zero", truth_read_zero},
                                     {NULL, NULL}};

/* frame(name): the text of a frame of that function. */
static int truth_frame(lua_State *L)
{
  return truth_push_function(L, functions, luaL_checkstring(L, 1));
}

__attribute__((visibility("default"))) int luaopen_truth_module(lua_State *L);

int luaopen_truth_module(lua_State *L)
{
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_pushcfunction(L, truth_frame);
  lua_setfield(L, -2, "frame");
  return 1;
}
