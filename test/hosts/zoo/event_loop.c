/*
** An event loop: epoll over a timerfd, a signalfd and an eventfd, with a Lua
** call for each event. No wait may end without an event, and none may be
** missed.
** zoo: glibc musl has no pthread_sigqueue()
*/
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { EVENTS = 100, TIMER, SIGNAL, EVENT, KINDS };

static int fds[KINDS];
static pthread_t loop;

static void *sender(void *arg)
{
  for (uint64_t i = 0; i < EVENTS; i++) {
    union sigval value = {.sival_int = (int)i};
    uint64_t one = 1;
    zoo_need(write(fds[EVENT], &one, sizeof one) == sizeof one, "eventfd");
    zoo_need(!pthread_sigqueue(loop, SIGRTMIN + 3, value), "sigqueue");
    usleep(300);
  }
  return arg;
}

static void watch(int epoll, int kind, int fd)
{
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)kind};
  fds[kind] = fd;
  zoo_need(fd >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll");
}

int main(void)
{
  struct itimerspec each = {{0, 1000000}, {0, 1000000}};
  uint64_t seen[KINDS] = {0}, order = 0, early = 0, n;
  sigset_t set;
  lua_State *L = zoo_vm();
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  loop = pthread_self();
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN + 3);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  watch(epoll, TIMER, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  watch(epoll, SIGNAL, signalfd(-1, &set, SFD_CLOEXEC));
  watch(epoll, EVENT, eventfd(0, EFD_CLOEXEC));
  zoo_need(!timerfd_settime(fds[TIMER], 0, &each, NULL), "timerfd");
  pthread_t other = zoo_thread(sender, NULL, 0);
  while (seen[TIMER] < EVENTS || seen[SIGNAL] < EVENTS ||
         seen[EVENT] < EVENTS) {
    struct epoll_event event;
    struct signalfd_siginfo info;
    int ready = epoll_wait(epoll, &event, 1, -1);
    early += ready != 1;
    if (ready != 1)
      continue;
    int kind = (int)event.data.u32;
    if (kind == SIGNAL) {
      zoo_need(read(fds[kind], &info, sizeof info) == sizeof info, "signalfd");
      order += info.ssi_int == (int)seen[kind];
      n = 1;
    } else {
      zoo_need(read(fds[kind], &n, sizeof n) == sizeof n, "a counter");
    }
    seen[kind] += n;
    zoo_need(zoo_light(L, 1) != 0, "work");
  }
  zoo_join(other);
  zoo_say("signals %d, in order %d, events %d, waits ended early %d",
          (int)seen[SIGNAL], (int)order, (int)seen[EVENT], (int)early);
  lua_close(L);
  return 0;
}
