/*
** A host that runs another program in its place while it is busy, as launchers
** and supervisors do: "image" becomes a program without Lua, "children" forks
** children that do so at once.
** zoo: cases image children
** zoo: children any
** zoo: unclosed
*/
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { TIMES = 31, CHILDREN = 47 };

int main(int argc, char **argv)
{
  const char *which = argc > 1 ? argv[1] : "";
  int left = argc > 2 ? atoi(argv[2]) : TIMES;
  char number[16];
  if (!strcmp(which, "children"))
    zoo_skip_forks();
  lua_State *L = zoo_vm();
  if (!strcmp(which, "image")) {
    if (left == 0) {
      zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
      lua_close(L);
      return 0;
    }
    zoo_work(L, 3);
    *number = '0' + (char)(left - 1) / 10;
    number[1] = '0' + (char)(left - 1) % 10;
    number[2] = '\0';
    execl("/proc/self/exe", argv[0], which, number, (char *)NULL);
    zoo_need(false, "exec");
  }
  int ended = 0;
  for (int i = 0; i < CHILDREN; i++) {
    pid_t child = fork();
    if (child == 0) {
      zoo_work(L, 1);
      execl("/bin/true", "true", (char *)NULL);
      _exit(126);
    }
    zoo_work(L, 1);
    ended += zoo_wait(child) == 0;
  }
  zoo_say("%d of %d children ended well", ended, CHILDREN);
  lua_close(L);
  return 0;
}
