/*
** A Lua module for ./run bench cpu. nest(depth, function) calls the function
** below depth C frames. floor(timer, seconds) makes the kernel send the same
** signals as for the profiler, to a handler that does nothing; floor() ends
** that and returns the number of signals. Their cost is the part of a sample
** that the kernel and the machine take. waiters(count, ms) starts threads that
** wait, again and again for that time or (0) for ever. pingpong(count) lets the
** calling thread wait that often for an answer of another thread, on one CPU.
*/
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"

__attribute__((noinline)) static int nest(lua_State *L, int depth)
{
  volatile int kept = depth;
  if (depth <= 1) {
    lua_call(L, 0, 0);
    return kept;
  }
  return nest(L, depth - 1) + kept;
}

static int frames_nest(lua_State *L)
{
  int depth = (int)luaL_checkinteger(L, 1);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  lua_pushinteger(L, nest(L, depth - 1));
  return 1;
}

static int floor_event = -1, floor_timer[2] = {-1, -1};
static volatile sig_atomic_t floor_signals;
static struct sigaction floor_before;

static void floor_handler(int number)
{
  (void)number;
  floor_signals++;
}

static int floor_perf(long period_ns)
{
  struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = gettid()};
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = (unsigned long)period_ns;
  attr.wakeup_events = 1;
  attr.exclude_hv = 1;
  floor_event =
      (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  return floor_event < 0 || fcntl(floor_event, F_SETSIG, SIGPROF) ||
         fcntl(floor_event, F_SETOWN_EX, &owner) ||
         fcntl(floor_event, F_SETFL, O_ASYNC);
}

static struct timespec span(long ns)
{
  return (struct timespec){ns / 1000000000, ns % 1000000000};
}

/* Two timers in turn, as in profilers/cpu/timer_posix.c. */
static int floor_posix(long period_ns)
{
  struct sigevent how;
  memset(&how, 0, sizeof how);
  how.sigev_notify = SIGEV_THREAD_ID;
  how.sigev_signo = SIGPROF;
  how._sigev_un._tid = gettid();
  for (int i = 0; i < 2; i++) {
    struct itimerspec when = {span(2 * period_ns), span((i + 1) * period_ns)};
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &how, &floor_timer[i]) ||
        syscall(SYS_timer_settime, floor_timer[i], 0, &when, NULL))
      return 1;
  }
  return 0;
}

static int frames_floor(lua_State *L)
{
  if (lua_isnoneornil(L, 1)) {
    if (floor_event >= 0)
      close(floor_event);
    for (int i = 0; i < 2; i++) {
      if (floor_timer[i] >= 0)
        syscall(SYS_timer_delete, floor_timer[i]);
      floor_timer[i] = -1;
    }
    floor_event = -1;
    sigaction(SIGPROF, &floor_before, NULL);
    lua_pushinteger(L, floor_signals);
    return 1;
  }
  struct sigaction act;
  long period_ns = (long)(luaL_checknumber(L, 2) * 1e9);
  memset(&act, 0, sizeof act);
  act.sa_handler = floor_handler;
  act.sa_flags = SA_RESTART;
  floor_signals = 0;
  const char *timer = luaL_checkstring(L, 1);
  if (sigaction(SIGPROF, &act, &floor_before) ||
      (strcmp(timer, "posix") == 0 ? floor_posix(period_ns)
                                   : floor_perf(period_ns)))
    return luaL_error(L, "cannot make the kernel send signals");
  return 0;
}

static useconds_t waiter_us;

static void *waiter_main(void *arg)
{
  for (;;) {
    if (waiter_us)
      usleep(waiter_us);
    else
      pause();
  }
  return arg;
}

static int frames_waiters(lua_State *L)
{
  pthread_t thread;
  int count = (int)luaL_checkinteger(L, 1);
  waiter_us = (useconds_t)(luaL_checknumber(L, 2) * 1000);
  for (int i = 0; i < count; i++)
    if (pthread_create(&thread, NULL, waiter_main, NULL))
      return luaL_error(L, "no thread");
  return 0;
}

static int ping[2], pong[2];

/* Reads a byte from one pipe; returns false if the pipe has ended. */
static bool pingpong_wait(int from)
{
  char byte;
  ssize_t n;
  do
    n = read(from, &byte, 1);
  while (n < 0 && errno == EINTR);
  return n == 1;
}

static void *pingpong_main(void *arg)
{
  while (pingpong_wait(ping[0]) && write(pong[1], "", 1) == 1)
    ;
  return arg;
}

/* The other thread inherits the CPU to which this one is bound. */
static int frames_pingpong(lua_State *L)
{
  int count = (int)luaL_checkinteger(L, 1);
  bool ok = true;
  pthread_t thread;
  cpu_set_t before, one;
  CPU_ZERO(&one);
  CPU_SET((size_t)sched_getcpu(), &one);
  if (sched_getaffinity(0, sizeof before, &before) ||
      sched_setaffinity(0, sizeof one, &one) || pipe(ping) || pipe(pong) ||
      pthread_create(&thread, NULL, pingpong_main, NULL))
    return luaL_error(L, "cannot make a thread that answers");
  for (int i = 0; i < count && ok; i++)
    ok = write(ping[1], "", 1) == 1 && pingpong_wait(pong[0]);
  close(ping[1]);
  pthread_join(thread, NULL);
  close(ping[0]);
  close(pong[0]);
  close(pong[1]);
  sched_setaffinity(0, sizeof before, &before);
  return ok ? 0 : luaL_error(L, "the thread did not answer");
}

__attribute__((visibility("default"))) int luaopen_frames(lua_State *L);

int luaopen_frames(lua_State *L)
{
  lua_newtable(L);
  lua_pushcfunction(L, frames_nest);
  lua_setfield(L, -2, "nest");
  lua_pushcfunction(L, frames_floor);
  lua_setfield(L, -2, "floor");
  lua_pushcfunction(L, frames_waiters);
  lua_setfield(L, -2, "waiters");
  lua_pushcfunction(L, frames_pingpong);
  lua_setfield(L, -2, "pingpong");
  return 1;
}
