/*
** A thread that waits, and gets the CPU late because another one works on the
** same CPU with a better priority. So signals of timer posix are often on their
** way to it when its timers are set or deleted: sessions begin and end all the
** time. late_signals FILE SESSIONS prints how many waits ended early, and exits
** with 1 if any did.
*/
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lualib.h"

static _Atomic bool stop;
static _Atomic long waits, ended;

static void stay_on_one_cpu(void)
{
  cpu_set_t all, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof all, &all))
    return;
  for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
    if (CPU_ISSET(i, &all))
      CPU_SET(i, &one);
  sched_setaffinity(0, sizeof one, &one);
}

static void *work(void *arg)
{
  stay_on_one_cpu();
  while (!atomic_load(&stop))
    ;
  return arg;
}

static void *wait(void *arg)
{
  struct epoll_event event;
  int fd = epoll_create1(EPOLL_CLOEXEC);
  stay_on_one_cpu();
  setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
  while (!atomic_load(&stop)) {
    waits++;
    ended += epoll_wait(fd, &event, 1, 20) < 0 && errno == EINTR;
  }
  close(fd);
  return arg;
}

int main(int argc, char **argv)
{
  pthread_t worker, waiter;
  lua_State *L = luaL_newstate();
  if (argc < 3 || !L || pthread_create(&waiter, NULL, wait, NULL) ||
      pthread_create(&worker, NULL, work, NULL))
    return 2;
  luaL_openlibs(L);
  lua_pushstring(L, argv[1]);
  lua_setglobal(L, "file");
  lua_pushinteger(L, atoi(argv[2]));
  lua_setglobal(L, "sessions");
  if (luaL_dostring(
          L, "for _ = 1, sessions do "
             "  assert(misc.sysprof.start({path = file, timer = 'posix', "
             "    interval = 0.25, threads = 'all'})) "
             "  local past = os.clock() + 0.02 repeat until os.clock() > past "
             "  assert(misc.sysprof.stop()) "
             "end")) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return 2;
  }
  atomic_store(&stop, true);
  pthread_join(worker, NULL);
  pthread_join(waiter, NULL);
  lua_close(L);
  printf("%ld waits, %ld ended early\n", waits, ended);
  return ended != 0;
}
