/*
** A daemon: forks twice, leaves the terminal's session, goes to /, closes all
** descriptors but its output. The VM is made after that ("late") or already in
** the first process ("early"). The processes in between end at once, perhaps
** before they have a file.
** zoo: cases late early
** zoo: children 1 2
** zoo: unclosed
*/
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

int main(int argc, char **argv)
{
  bool early = argc > 1 && !strcmp(argv[1], "early");
  zoo_skip_forks();
  lua_State *L = zoo_vm();
  zoo_say("start %ld", zoo_work(L, ZOO_ROUNDS / 2));
  if (!early) {
    lua_close(L);
    L = NULL;
  }
  pid_t child = fork();
  zoo_need(child >= 0, "fork");
  if (child > 0)
    _exit(zoo_wait(child));
  zoo_need(setsid() > 0, "setsid");
  child = fork();
  zoo_need(child >= 0, "fork");
  if (child > 0)
    _exit(0);
  umask(0);
  zoo_need(!chdir("/"), "chdir");
  for (int i = 3; i < 256; i++)
    close(i);
  if (!L)
    L = zoo_vm();
  zoo_say("daemon %ld", zoo_work(L, ZOO_ROUNDS));
  lua_close(L);
  return 0;
}
