/*
** A host that closes every descriptor that it does not know, as daemons do, and
** then opens files of its own, which get the numbers that were freed.
** zoo: cases early late
** zoo: unclosed late
*/
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { FILES = 23, LINE = 16, LINES = 31 };

static void close_all(void)
{
  if (syscall(SYS_close_range, 3, ~0U, 0))
    zoo_skip("this kernel has no close_range");
}

int main(int argc, char **argv)
{
  bool early = argc > 1 && !strcmp(argv[1], "early");
  int files[FILES];
  char name[32], line[LINE + 1], text[LINE * LINES + 1];
  if (early)
    close_all();
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  if (!early)
    close_all();
  for (int i = 0; i < FILES; i++) {
    snprintf(name, sizeof name, "file%d", i);
    files[i] = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    zoo_need(files[i] >= 0, "open");
  }
  for (int n = 0; n < LINES; n++) {
    zoo_work(L, 1);
    for (int i = 0; i < FILES; i++) {
      snprintf(line, sizeof line, "%6d %8d\n", i, n);
      zoo_need(write(files[i], line, LINE) == LINE, "write");
    }
  }
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  zoo_work_alone(1);
  for (int i = 0; i < FILES; i++) {
    ssize_t got = pread(files[i], text, sizeof text, 0);
    bool good = got == (ssize_t)sizeof text - 1;
    for (int n = 0; good && n < LINES; n++) {
      snprintf(line, sizeof line, "%6d %8d\n", i, n);
      good = !memcmp(text + n * LINE, line, LINE);
    }
    if (!good)
      zoo_say("file %d has other contents (%zd bytes)", i, got);
    zoo_need(!close(files[i]), "close");
  }
  lua_close(L);
  zoo_say("files checked");
  return 0;
}
