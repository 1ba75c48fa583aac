/*
** A thread that takes the process's signals by sigwait(), all of them, while
** others work; and one that reads them from a signalfd.
** zoo: cases sigwait signalfd
*/
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

static sigset_t all;
static bool by_descriptor;

static void *take(void *argument)
{
  int got, descriptor = by_descriptor ? signalfd(-1, &all, 0) : -1;
  (void)argument;
  for (;;) {
    struct signalfd_siginfo info = {0};
    if (descriptor >= 0)
      got = read(descriptor, &info, sizeof info) == (ssize_t)sizeof info
                ? (int)info.ssi_signo
                : -1;
    else if (sigwait(&all, &got))
      got = -1;
    zoo_say("took signal %d", got);
    if (got == SIGTERM)
      return NULL;
  }
}

int main(int argc, char **argv)
{
  by_descriptor = argc > 1 && !strcmp(argv[1], "signalfd");
  lua_State *L = zoo_vm();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  pthread_t waiting = zoo_thread(take, NULL, 0);
  pthread_t working = zoo_worker(ZOO_ROUNDS);
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  zoo_say("thread %ld", zoo_result(working));
  kill(getpid(), SIGTERM);
  zoo_join(waiting);
  lua_close(L);
  return 0;
}
