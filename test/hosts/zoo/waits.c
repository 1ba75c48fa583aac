/*
** Calls that wait and do not expect to be interrupted, from Lua by the FFI and
** from C, beside a thread that works. Each must end as without a session: when
** its time is over.
*/
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { WAIT_MS = 20 };

static _Atomic bool stop;

static void *busy(void *argument)
{
  lua_State *L = zoo_vm();
  while (!atomic_load(&stop))
    zoo_work(L, 1);
  lua_close(L);
  return argument;
}

static int by_usleep(void)
{
  return usleep(WAIT_MS * 1000);
}

static int by_nanosleep(void)
{
  struct timespec wait = {0, WAIT_MS * 1000000};
  return nanosleep(&wait, NULL);
}

static int by_clock(void)
{
  struct timespec wait = {0, WAIT_MS * 1000000};
  return clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
}

static int by_poll(void)
{
  return poll(NULL, 0, WAIT_MS);
}

static int by_select(void)
{
  struct timeval wait = {0, WAIT_MS * 1000};
  return select(0, NULL, NULL, NULL, &wait);
}

static int by_epoll(void)
{
  struct epoll_event event;
  int descriptor = epoll_create1(0);
  int got = epoll_wait(descriptor, &event, 1, WAIT_MS);
  int error = errno;
  close(descriptor);
  errno = error;
  return got;
}

static int by_semaphore(void)
{
  struct timespec until;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += WAIT_MS * 1000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  int got = sem_timedwait(&semaphore, &until);
  return got && errno == ETIMEDOUT ? 0 : -1;
}

static int by_receive(void)
{
  struct timeval wait = {0, WAIT_MS * 1000};
  int pair[2];
  char byte;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
      setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait))
    return -2;
  ssize_t got = recv(pair[0], &byte, 1, 0);
  int error = errno;
  close(pair[0]);
  close(pair[1]);
  errno = error;
  return got < 0 && errno == EAGAIN ? 0 : -1;
}

static const struct {
  const char *name;
  int (*wait)(void);
} ways[] = {{"usleep", by_usleep},           {"nanosleep", by_nanosleep},
            {"clock_nanosleep", by_clock},   {"poll", by_poll},
            {"select", by_select},           {"epoll_wait", by_epoll},
            {"sem_timedwait", by_semaphore}, {"recv", by_receive}};

static double now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void *wait_all(void *argument)
{
  lua_State *L = zoo_vm();
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    zoo_work(L, 3);
    double before = now_ms();
    errno = 0;
    int got = ways[i].wait();
    int error = errno;
    zoo_say("%s: %d%s%s%s", ways[i].name, got, got ? ", " : "",
            got ? strerror(error) : "",
            now_ms() - before < WAIT_MS - 1 ? ", too early" : "");
  }
  zoo_need(!luaL_dostring(L, "local ffi = require('ffi')\n"
                             "ffi.cdef('int usleep(unsigned);')\n"
                             "return ffi.C.usleep(20000)"),
           "dostring");
  zoo_say("by the FFI: %d", (int)lua_tointeger(L, -1));
  lua_close(L);
  return argument;
}

int main(void)
{
  pthread_t worker = zoo_thread(busy, NULL, 0);
  wait_all(NULL);
  zoo_join(zoo_thread(wait_all, NULL, 0));
  atomic_store(&stop, true);
  zoo_join(worker);
  return 0;
}
