/*
** A container without /proc: before the first VM, or from some moment on.
** zoo: cases late early
*/
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

static bool hide(void)
{
  if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
    return false;
  return (!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || true) &&
         !mount("none", "/proc", "tmpfs", 0, NULL);
}

int main(int argc, char **argv)
{
  bool early = argc > 1 && !strcmp(argv[1], "early");
  if (early && !hide())
    zoo_skip("no mount namespaces for this user");
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  if (!early && !hide())
    zoo_skip("no mount namespaces for this user");
  zoo_say("/proc/self is %s", access("/proc/self", F_OK) ? "gone" : "there");
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  zoo_say("thread %ld", zoo_result(zoo_worker(ZOO_ROUNDS / 2)));
  lua_close(L);
  return 0;
}
