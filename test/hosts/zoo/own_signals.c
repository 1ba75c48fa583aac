/*
** A host with signal handlers of its own for signals that profilers use: it
** sends them to itself, counts them, and checks that its handlers stay.
** "early" installs them before the first VM, "late" after it.
** zoo: cases early late
*/
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

static const int ours[] = {SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM,
                           SIGIO,   SIGCHLD, SIGHUP,  SIGTERM};
enum { SIGNALS = sizeof ours / sizeof *ours };
static volatile sig_atomic_t seen[NSIG];

static void count(int number)
{
  errno = E2BIG;
  seen[number]++;
}

static void install(void)
{
  struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
  for (int i = 0; i < SIGNALS; i++)
    zoo_need(!sigaction(ours[i], &action, NULL), "sigaction");
}

int main(int argc, char **argv)
{
  lua_State *L = zoo_vm_and(install, argc, argv);
  for (int turn = 0; turn < 7; turn++) {
    zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 7));
    for (int i = 0; i < SIGNALS; i++)
      raise(ours[i]);
  }
  lua_close(L);
  for (int i = 0; i < SIGNALS; i++) {
    struct sigaction now;
    sigaction(ours[i], NULL, &now);
    zoo_say("signal %d: %d seen, handler %s", ours[i], (int)seen[ours[i]],
            now.sa_handler == count ? "kept" : "replaced");
  }
  return 0;
}
