/*
** A daemon that drops root, by setgid() and setuid(), and starts its threads or
** its children with their VMs afterwards. Needs root.
** zoo: cases threads after before
** zoo: may-refuse after
*/
#include <string.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { THREADS = 3, NOBODY = 65534 };

int main(int argc, char **argv)
{
  const char *which = argc > 1 ? argv[1] : "";
  lua_State *L = NULL;
  pthread_t threads[THREADS];
  if (getuid() != 0)
    zoo_skip("only root can change the user");
  if (strcmp(which, "after"))
    L = zoo_vm();
  if (!strcmp(which, "before"))
    zoo_say("as root %ld", zoo_work(L, ZOO_ROUNDS / 2));
  zoo_need(!setgid(NOBODY) && !setuid(NOBODY), "setuid");
  if (!L)
    L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  for (int i = 0; i < THREADS; i++)
    threads[i] = zoo_worker(ZOO_ROUNDS / 2);
  for (int i = 0; i < THREADS; i++)
    zoo_say("thread %ld", zoo_result(threads[i]));
  zoo_say("user %d", (int)getuid());
  lua_close(L);
  return 0;
}
