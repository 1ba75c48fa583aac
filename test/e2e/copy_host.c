/*
** A host that is copied by a raw clone() while the writer is inside of a libc
** function: our definitions of two of them hold it there. In the copy a session
** ends, and another begins or is refused; neither waits for what only the
** writer could give.
**
** copy_host PATH tables: the writer holds the lock of the unwind tables.
** copy_host PATH loader: the writer holds the loader's lock, too.
*/
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lualib.h"

static const char *hold; /* what the writer is held in; NULL: nothing */
static _Atomic int held, go_on;

static void hold_writer(const char *where)
{
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  if (!hold || strcmp(hold, where) != 0 || strcmp(name, "ljprof-writer") != 0)
    return;
  held = 1;
  while (!go_on)
    usleep(1000);
}

struct listing {
  int (*each)(struct dl_phdr_info *, size_t, void *);
  void *ctx;
};

static int list_one(struct dl_phdr_info *info, size_t size, void *listing)
{
  const struct listing *l = listing;
  hold_writer("loader");
  return l->each(info, size, l->ctx);
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED
int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *),
                    void *ctx)
{
  static __typeof__(&dl_iterate_phdr) libc;
  struct listing listing = {each, ctx};
  if (!libc)
    *(void **)&libc = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  return libc(list_one, &listing);
}

/* The writer calls it with the lock of the tables held. */
EXPORTED
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
  hold_writer("tables");
  return (int)-syscall(SYS_rt_sigprocmask, how, set, before, 8L);
}

static int copied(lua_State *L, const char *path, const char *how)
{
  char text[600];
  alarm(60); /* a copy that waits for ever is ended here */
  hold = NULL;
  snprintf(text, sizeof text,
           "local path, how = '%s', '%s'\n"
           "local ok, why = misc.sysprof.stop()\n"
           "assert(ok == nil and why:find('not running'), why)\n"
           "ok, why = misc.sysprof.start{path = path .. '.anew'}\n"
           "if how == 'loader' then\n"
           "  assert(ok == nil and why:find('copy made by clone'), why)\n"
           "else\n"
           "  assert(ok, why)\n"
           "  assert(misc.sysprof.stop())\n"
           "end\n",
           path, how);
  if (!luaL_dostring(L, text))
    return 7;
  fprintf(stderr, "the copy: %s\n", lua_tostring(L, -1));
  return 1;
}

int main(int argc, char **argv)
{
  char text[600];
  int status;
  if (argc != 3)
    return 2;
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  snprintf(text, sizeof text,
           "assert(misc.sysprof.start{path = '%s', flush = 20})", argv[1]);
  if (luaL_dostring(L, text)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return 1;
  }
  hold = argv[2];
  while (!held)
    usleep(1000);
  pid_t pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
  if (pid == 0)
    _exit(copied(L, argv[1], argv[2]));
  waitpid(pid, &status, 0);
  go_on = 1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
    fprintf(stderr, "%s: the copy ended with %d\n", argv[2], status);
    return 1;
  }
  lua_close(L);
  return 0;
}
