/*
** A host with timers of its own: timer_create() with a signal and with a thread,
** timerfd, alarm(). Each must come as often as asked.
*/
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { WANTED = 7 };

static _Atomic int by_signal, by_thread;

static void on_signal(int number)
{
  (void)number;
  atomic_fetch_add(&by_signal, 1);
}

static void on_thread(union sigval value)
{
  (void)value;
  atomic_fetch_add(&by_thread, 1);
}

int main(void)
{
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  struct sigevent signal_event = {.sigev_notify = SIGEV_SIGNAL,
                                  .sigev_signo = SIGRTMIN + 1};
  struct sigevent thread_event = {.sigev_notify = SIGEV_THREAD,
                                  .sigev_notify_function = on_thread};
  struct itimerspec often = {{0, 3000000}, {0, 3000000}};
  timer_t first, second;
  uint64_t expired = 0, by_file = 0;
  lua_State *L = zoo_vm();
  zoo_need(!sigaction(SIGRTMIN + 1, &action, NULL), "sigaction");
  zoo_need(!timer_create(CLOCK_MONOTONIC, &signal_event, &first), "timer");
  zoo_need(!timer_create(CLOCK_MONOTONIC, &thread_event, &second), "timer");
  int file = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  zoo_need(file >= 0 && !timerfd_settime(file, 0, &often, NULL), "timerfd");
  zoo_need(!timer_settime(first, 0, &often, NULL), "timer_settime");
  zoo_need(!timer_settime(second, 0, &often, NULL), "timer_settime");
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  while (atomic_load(&by_signal) < WANTED || atomic_load(&by_thread) < WANTED ||
         by_file < WANTED) {
    zoo_work(L, 1);
    if (read(file, &expired, sizeof expired) == (ssize_t)sizeof expired)
      by_file += expired;
    else
      zoo_need(errno == EINTR, "read");
  }
  zoo_say("each of the timers has come");
  timer_delete(first);
  timer_delete(second);
  lua_close(L);
  return 0;
}
