/*
** Asks the program's own loader which LuaJIT the program would get, as ldd
** does: with LD_TRACE_LOADED_OBJECTS set, glibc's loader lists the libraries
** instead of running the program. So nothing here has to know in which order
** the loader looks at RPATH, RUNPATH, its cache and so on.
**
** A program may also load a module later, and LuaJIT with it. The loader looks
** for it in the RPATH of the program, too. Therefore the loader is asked a
** second time, with the bare name of our library in LD_PRELOAD: the loader
** looks for that name in the same places.
*/
#include <fcntl.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/preload.h"
#include "tools/record/record.h"

/* Puts text first into the list that an environment variable holds. */
static bool loader_put_first(const char *variable, const char *text)
{
  const char *before = getenv(variable);
  size_t room = strlen(text) + (before ? strlen(before) : 0) + 2;
  char *list = malloc(room);
  if (!list)
    return false;
  snprintf(list, room, "%s%s%s", text, before && *before ? ":" : "",
           before ? before : "");
  int failed = setenv(variable, list, 1);
  free(list);
  return !failed;
}

bool ljp_record_set_loader(const struct ljp_record_plan *plan)
{
  char library[PATH_MAX + sizeof LJP_LIBRARY_NAME];
  snprintf(library, sizeof library, "%s/" LJP_LIBRARY_NAME, plan->folder);
  return loader_put_first("LD_LIBRARY_PATH", plan->folder) &&
         (!(plan->preload || plan->preload_once) ||
          loader_put_first("LD_PRELOAD", library));
}

/* In the child process. */
static void loader_list(const struct ljp_record_plan *plan, const char *program,
                        bool by_name, int output)
{
  enum { MAX_SECONDS = 20 };
  static const char *const unwanted[] = {"LD_DEBUG", "LD_VERBOSE", "LD_WARN",
                                         "LD_BIND_NOW", "LD_AUDIT"};
  char *argv[] = {(char *)(uintptr_t)program, NULL};
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
    unsetenv(unwanted[i]);
  alarm(MAX_SECONDS);
  if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
      dup2(null, STDERR_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
      ljp_record_set_loader(plan) &&
      (!by_name || loader_put_first("LD_PRELOAD", LJP_LIBRARY_NAME)) &&
      !setenv("LD_TRACE_LOADED_OBJECTS", "1", 1))
    execv(program, argv);
  _exit(1);
}

/* A line is "\tNAME => PATH (0x1234)", "\tPATH (0x1234)" or "\tNAME => not
** found". Is its library a LuaJIT, but not ours? */
static bool loader_is_foreign(char *line, const struct stat *ours)
{
  struct stat st;
  char *path = strstr(line, " => ");
  path = path ? path + 4 : line + strspn(line, "\t");
  char *end = strstr(path, " (0x");
  if (!end)
    return false;
  *end = '\0';
  const char *base = strrchr(path, '/');
  return base && strncmp(base, "/libluajit", 10) == 0 && !stat(path, &st) &&
         (st.st_dev != ours->st_dev || st.st_ino != ours->st_ino);
}

static bool loader_finds_foreign(const struct ljp_record_plan *plan,
                                 const char *program, bool by_name,
                                 const struct stat *ours)
{
  int list[2];
  char *line = NULL;
  size_t room = 0;
  bool found = false;
  if (pipe2(list, O_CLOEXEC))
    return false;
  pid_t child = fork();
  if (child == 0)
    loader_list(plan, program, by_name, list[1]);
  close(list[1]);
  FILE *f = fdopen(list[0], "r");
  while (f && getline(&line, &room, f) >= 0)
    found |= loader_is_foreign(line, ours);
  free(line);
  if (f)
    fclose(f);
  else
    close(list[0]);
  if (child > 0)
    waitpid(child, NULL, 0);
  return found;
}

bool ljp_record_ask_loader(const struct ljp_record_plan *plan, const char *path)
{
  char library[PATH_MAX + sizeof LJP_LIBRARY_NAME];
  struct stat ours;
  snprintf(library, sizeof library, "%s/" LJP_LIBRARY_NAME, plan->folder);
  return !stat(library, &ours) &&
         (loader_finds_foreign(plan, path, false, &ours) ||
          loader_finds_foreign(plan, path, true, &ours));
}
