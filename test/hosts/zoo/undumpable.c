/*
** A process that nobody may trace or dump: its files in /proc belong to root, so
** that it cannot open them itself once it has dropped root.
** zoo: cases before after
** zoo: may-refuse before
*/
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { NOBODY = 65534 };

static void hide(void)
{
  if (getuid() == 0)
    zoo_need(!setgid(NOBODY) && !setuid(NOBODY), "setuid");
  zoo_need(!prctl(PR_SET_DUMPABLE, 0), "prctl");
}

int main(int argc, char **argv)
{
  bool before = argc > 1 && !strcmp(argv[1], "before");
  if (before)
    hide();
  lua_State *L = zoo_vm();
  if (!before)
    hide();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  pthread_t thread = zoo_worker(ZOO_ROUNDS / 2);
  zoo_say("thread %ld", zoo_result(thread));
  zoo_say("readable %d", access("/proc/self/environ", R_OK) == 0);
  lua_close(L);
  return 0;
}
