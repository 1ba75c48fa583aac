/*
** If `ljprof record` has put our library into LD_PRELOAD for one program only,
** other programs must not keep it: they may have another Lua, with functions of
** the same names. See preloaded.h.
**
** Between `ljprof record` and the program there may be "env", which the first
** line of a script names. It leaves the list as it is. What the program starts
** later has our library in front of its own, if the list is kept for the
** program itself. Such a process executes its file again without the library,
** before it has done anything.
*/
#include "profilers/session/preloaded.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/preload.h"

#define PRELOADED_EXE "/proc/self/exe"

enum {
  BEGIN_LEN = sizeof LJP_PRELOAD_BEGIN - 1,
  WORD_LEN = sizeof LJP_PRELOAD_ONCE - 1
};
_Static_assert(sizeof LJP_PRELOAD_ONCE == sizeof LJP_PRELOAD_SELF &&
                   sizeof LJP_PRELOAD_SELF == sizeof LJP_PRELOAD_KEPT,
               "one word replaces another");

const char *ljp_preloaded_request(const char *request)
{
  if (request && strncmp(request, LJP_PRELOAD_BEGIN, BEGIN_LEN) == 0) {
    request += strcspn(request, ";");
    request += *request == ';';
  }
  return request;
}

/* The list, if our library is the first in it. */
static char *preloaded_list(void)
{
  static const char name[] = "/" LJP_LIBRARY_NAME;
  char *list = secure_getenv("LD_PRELOAD");
  size_t len = list ? strcspn(list, ": ") : 0;
  return len >= sizeof name - 1 && memcmp(list + len - (sizeof name - 1), name,
                                          sizeof name - 1) == 0
             ? list
             : NULL;
}

static void preloaded_take_out(char *list)
{
  size_t len = strcspn(list, ": ");
  if (list[len])
    memmove(list, list + len + 1, strlen(list + len + 1) + 1);
  else
    unsetenv("LD_PRELOAD");
}

/* file: "DEVICE:INODE;". Without /proc nothing but the program is supposed. */
static bool preloaded_is_program(const char *file)
{
  unsigned long long device, inode;
  struct stat st;
  return sscanf(file, LJP_PRELOAD_FILE, &device, &inode) != 2 ||
         stat(PRELOADED_EXE, &st) ||
         (st.st_dev == device && st.st_ino == inode);
}

/* Is the process executing this file? */
static bool preloaded_is_self(const char *path)
{
  struct stat own, st;
  return !stat(PRELOADED_EXE, &own) && !stat(path, &st) &&
         own.st_dev == st.st_dev && own.st_ino == st.st_ino;
}

/* By the name that the process was executed by, so that its name stays the
** same. The name may be that of a script, which is then an argument. */
static void preloaded_execute_again(char **argv)
{
  enum { MAX_SCRIPTS = 12 }; /* five, with an argument each, and more */
  const char *name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
  char path[PATH_MAX];
  /* A loader that was executed itself hides its arguments from us. */
  if (!argv || !argv[0] || !getauxval(AT_BASE))
    return;
  if (name && preloaded_is_self(name))
    execv(name, argv);
  for (int i = 1; name && i < MAX_SCRIPTS && argv[i]; i++)
    if (strcmp(argv[i], name) == 0)
      execv(name, argv + i);
  ssize_t n = readlink(PRELOADED_EXE, path, sizeof path - 1);
  path[n > 0 ? n : 0] = '\0';
  execv(n > 0 && preloaded_is_self(path) ? path : PRELOADED_EXE, argv);
}

bool ljp_preloaded_begin(char **argv)
{
  int before = errno;
  char *request = secure_getenv("LJPROF_RECORD");
  char *list = preloaded_list();
  if (!request || !list || strncmp(request, LJP_PRELOAD_BEGIN, BEGIN_LEN) != 0)
    return true;
  char *word = request + BEGIN_LEN;
  bool program = preloaded_is_program(word + WORD_LEN);
  bool kept = strncmp(word, LJP_PRELOAD_KEPT, WORD_LEN) == 0;
  if (program && strncmp(word, LJP_PRELOAD_SELF, WORD_LEN) == 0)
    memcpy(word, LJP_PRELOAD_KEPT, WORD_LEN);
  else if (kept ? !program : program)
    preloaded_take_out(list);
  if (kept && !program)
    preloaded_execute_again(argv);
  errno = before;
  return program || kept;
}
