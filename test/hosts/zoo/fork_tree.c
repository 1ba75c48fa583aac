/*
** Processes that fork processes, two hundred in all. Each works a little in the
** VM that it has from its parent. Some end before their first block.
** zoo: children any
** zoo: unclosed
*/
#include <sys/mman.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { DEPTH = 6, FAN = 2 };

/* Returns the number of processes below this one. */
static int grow(lua_State *L, int depth)
{
  int below = 0;
  pid_t children[FAN];
  for (int i = 0; i < FAN && depth; i++) {
    children[i] = fork();
    zoo_need(children[i] >= 0, "fork");
    if (!children[i]) {
      zoo_need(zoo_light(L, depth % 3) >= 0, "work");
      int n = grow(L, depth - 1);
      if (depth % 2)
        lua_close(L);
      _exit(n + 1);
    }
  }
  for (int i = 0; i < FAN && depth; i++)
    below += zoo_wait(children[i]);
  return below;
}

int main(void)
{
  zoo_skip_forks();
  lua_State *L = zoo_vm();
  int n = grow(L, DEPTH);
  zoo_say("%d processes, work %ld", n, zoo_work(L, ZOO_ROUNDS / 2));
  lua_close(L);
  return 0;
}
