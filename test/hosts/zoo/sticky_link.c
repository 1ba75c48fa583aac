/*
** The output's name is a link that somebody else has put into a directory that
** everybody may write to: it must not lead to the victim's file. Needs root, to
** be two users.
** zoo: refused Permission denied
*/
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { NOBODY = 65534 };

/* Lets the session write to `path`. */
static void redirect(const char *path)
{
  char text[1024], *request = getenv("LJPROF_RECORD");
  char *at = request ? strstr(request, "path=") : NULL;
  if (!at)
    return;
  snprintf(text, sizeof text, "%.*spath=%s", (int)(at - request), request,
           path);
  setenv("LJPROF_RECORD", text, 1);
}

int main(void)
{
  struct stat st;
  char folder[512], text[600];
  if (getuid() != 0)
    zoo_skip("only root can be two users");
  zoo_need(getcwd(folder, sizeof folder) != NULL, "getcwd");
  zoo_need(!mkdir("shared", 0) && !chmod("shared", 01777), "mkdir");
  int victim = open("victim", O_RDWR | O_CREAT, 0600);
  zoo_need(victim >= 0 && write(victim, "secret", 6) == 6, "write");
  pid_t attacker = fork();
  if (attacker == 0) {
    zoo_need(!setgid(NOBODY) && !setuid(NOBODY), "setuid");
    zoo_need(!symlink("../victim", "shared/out.ljp"), "symlink");
    _exit(0);
  }
  zoo_say("attacker ended with %d", zoo_wait(attacker));
  snprintf(text, sizeof text, "%s/shared/out.ljp", folder);
  redirect(text);
  lua_State *L = zoo_vm();
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  lua_close(L);
  zoo_need(!stat("victim", &st), "stat");
  zoo_say("victim: mode %o, %lld bytes", st.st_mode, (long long)st.st_size);
  zoo_need(!lstat(text, &st), "lstat");
  zoo_say("link: mode %o", st.st_mode);
  return 0;
}
