/*
** Signals of the host's own at a high rate, real-time ones to each thread and
** an interval timer's, while threads make VMs and close them again. Each signal
** that was queued must be handled, and none more than once.
** zoo: glibc musl has no pthread_sigqueue()
*/
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { THREADS = 3, SIGNALS = 2000, VMS = ZOO_SANITIZED ? 8 : 20 };

static _Atomic int handled, alarms, foreign, done;

static void on_queued(int number, siginfo_t *info, void *context)
{
  (void)number;
  (void)context;
  handled++;
  foreign += info->si_code != SI_QUEUE || info->si_value.sival_int != 4711;
}

static void on_alarm(int number)
{
  (void)number;
  alarms++;
}

static void *makes_vms(void *result)
{
  long sum = 0;
  for (int i = 0; i < VMS; i++)
    sum += zoo_work_alone(1);
  *(long *)result = sum;
  done++;
  sigset_t none;
  sigemptyset(&none);
  while (done <= THREADS)
    usleep(1000);
  return result;
}

int main(void)
{
  struct sigaction queued = {.sa_sigaction = on_queued,
                             .sa_flags = SA_SIGINFO | SA_RESTART};
  struct sigaction alarm = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  union sigval value = {.sival_int = 4711};
  pthread_t threads[THREADS];
  long result[THREADS];
  lua_State *L = zoo_vm();
  zoo_need(!sigaction(SIGRTMIN + 4, &queued, NULL) &&
               !sigaction(SIGALRM, &alarm, NULL) &&
               !setitimer(ITIMER_REAL, &often, NULL),
           "signals");
  for (int i = 0; i < THREADS; i++)
    threads[i] = zoo_thread(makes_vms, &result[i], 0);
  for (int i = 0; i < SIGNALS; i++) {
    while (pthread_sigqueue(threads[i % THREADS], SIGRTMIN + 4, value) ==
           EAGAIN)
      usleep(100);
    if (i % 50 == 0)
      zoo_light(L, 1);
  }
  while (done < THREADS || handled < SIGNALS)
    usleep(1000);
  done++;
  for (int i = 0; i < THREADS; i++) {
    zoo_join(threads[i]);
    zoo_say("VMs %ld", result[i]);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  zoo_say("handled %d, others' %d, alarms: %s", handled, foreign,
          alarms ? "yes" : "no");
  lua_close(L);
  return 0;
}
