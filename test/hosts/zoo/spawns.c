/*
** A host that runs other programs by vfork(), posix_spawn() and system() while it
** works. The programs must begin with the signals and descriptors that they
** would have without a profiler.
** zoo: cases vfork spawn system
*/
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { CHILDREN = 23 };
extern char **environ;

/* Prints the descriptors and signals that it has got, if they are not usual. */
static const char script[] =
    "for f in /proc/self/fd/*; do case $f in */[0-4]|*/255) ;; "
    "*) echo descriptor $(readlink $f);; esac; done; "
    "while read a b; do case $a in SigBlk:|SigIgn:) echo $a $b;; esac; "
    "done < /proc/self/status; exit 7";

static int run_one(const char *how)
{
  char *command[] = {"sh", "-c", (char *)(size_t)script, NULL};
  pid_t child;
  if (!strcmp(how, "system")) {
    int status = system(script);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  if (!strcmp(how, "spawn"))
    return posix_spawn(&child, "/bin/sh", NULL, NULL, command, environ)
               ? -1
               : zoo_wait(child);
  child = vfork();
  if (child == 0) {
    execve("/bin/sh", command, environ);
    _exit(126);
  }
  return zoo_wait(child);
}

int main(int argc, char **argv)
{
  lua_State *L = zoo_vm();
  for (int i = 0; i < CHILDREN; i++) {
    long sum = zoo_work(L, ZOO_ROUNDS / CHILDREN);
    zoo_say("work %ld, child ended with %d", sum,
            run_one(argc > 1 ? argv[1] : ""));
  }
  lua_close(L);
  return 0;
}
