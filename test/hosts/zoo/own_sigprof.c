/*
** A host with a profiler of its own, by setitimer(ITIMER_PROF) and SIGPROF. Its
** handler must go on being called; how often is not checked.
** zoo: cases early late
** zoo: may-refuse early
*/
#include <signal.h>
#include <sys/time.h>

#include "test/hosts/zoo/zoo.h"

static volatile sig_atomic_t seen;

static void count(int number)
{
  (void)number;
  seen = 1;
}

static void install(void)
{
  struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, 5000}, {0, 5000}};
  zoo_need(!sigaction(SIGPROF, &action, NULL), "sigaction");
  zoo_need(!setitimer(ITIMER_PROF, &often, NULL), "setitimer");
}

int main(int argc, char **argv)
{
  struct itimerval never = {{0, 0}, {0, 0}};
  lua_State *L = zoo_vm_and(install, argc, argv);
  seen = 0;
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  for (int i = 0; i < 100 && !seen; i++)
    zoo_work(L, ZOO_ROUNDS / 10);
  zoo_say("own profiler %s", seen ? "called" : "never called");
  zoo_need(!setitimer(ITIMER_PROF, &never, NULL), "setitimer");
  lua_close(L);
  return 0;
}
