/*
** A host that gives every signal its default action again, at its start and
** before it runs other things, and one that ignores them all.
** zoo: cases default ignore
*/
#include <signal.h>
#include <string.h>

#include "test/hosts/zoo/zoo.h"

int main(int argc, char **argv)
{
  bool ignore = argc > 1 && !strcmp(argv[1], "ignore");
  lua_State *L = zoo_vm();
  for (int turn = 0; turn < 10; turn++) {
    zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 10));
    for (int i = 1; i < NSIG; i++)
      if (!ignore || (i != SIGSEGV && i != SIGBUS && i != SIGCHLD))
        signal(i, ignore ? SIG_IGN : SIG_DFL);
  }
  zoo_say("thread %ld", zoo_result(zoo_worker(ZOO_ROUNDS / 2)));
  lua_close(L);
  return 0;
}
