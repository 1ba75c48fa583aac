/*
** A host that enters an empty folder by chroot() after its start, or whose
** current folder is removed.
** zoo: cases chroot removed
*/
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

int main(int argc, char **argv)
{
  bool jail = argc > 1 && !strcmp(argv[1], "chroot");
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  zoo_need(!mkdir("empty", 0755) && !chdir("empty"), "chdir");
  if (jail && chroot(".") && (unshare(CLONE_NEWUSER) || chroot(".")))
    zoo_skip("no chroot for this user");
  if (!jail)
    zoo_need(!rmdir("../empty"), "rmdir");
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  zoo_say("thread %ld", zoo_result(zoo_worker(ZOO_ROUNDS / 2)));
  lua_close(L);
  return 0;
}
