/*
** Asks the program's own loader which LuaJIT the program would get, as ldd
** does: with LD_TRACE_LOADED_OBJECTS set, glibc's loader lists the libraries
** instead of running the program. So nothing here has to know in which order
** the loader looks at RPATH, RUNPATH, its cache and so on.
**
** A program may also load a module later, and LuaJIT with it. The loader looks
** for it in the RPATH of the program, too. Therefore the loader is asked a
** second time, with the bare name of our library in LD_PRELOAD: the loader
** looks for that name in the same places. That only says what might be loaded,
** so it does not count for a program that has another Lua, whose functions have
** the same names.
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
#include "tools/record/image.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

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

enum loader_question {
  LOADER_LUAJIT, /* a LuaJIT that is not ours */
  LOADER_NAMED,  /* the same, for our library's bare name */
  LOADER_USUAL,  /* the same, without our folder in the search path */
  LOADER_LUA     /* a library with another Lua */
};

/* In the child process. */
static void loader_list(const struct ljp_record_plan *plan, const char *program,
                        enum loader_question question, int output)
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
      (question == LOADER_USUAL || ljp_record_set_loader(plan)) &&
      (question != LOADER_NAMED ||
       loader_put_first("LD_PRELOAD", LJP_LIBRARY_NAME)) &&
      !setenv("LD_TRACE_LOADED_OBJECTS", "1", 1))
    execv(program, argv);
  _exit(1);
}

static bool loader_is_foreign(const char *path, const struct stat *ours)
{
  struct stat st;
  const char *base = strrchr(path, '/');
  return base && strncmp(base, "/libluajit", 10) == 0 && !stat(path, &st) &&
         (st.st_dev != ours->st_dev || st.st_ino != ours->st_ino);
}

/* A line is "\tNAME => PATH (0x1234)", "\tPATH (0x1234)" or "\tNAME => not
** found". The path; NULL: none. */
static char *loader_path(char *line)
{
  char *path = strstr(line, " => ");
  path = path ? path + 4 : line + strspn(line, "\t");
  char *end = strstr(path, " (0x");
  if (end)
    *end = '\0';
  return end ? path : NULL;
}

/* The first library that is an answer, of those that the loader lists. False:
** none is. */
static bool loader_ask(enum loader_question question,
                       const struct ljp_record_plan *plan, const char *program,
                       const struct stat *ours, char found[PATH_MAX])
{
  int list[2];
  char *line = NULL;
  size_t room = 0;
  *found = '\0';
  if (pipe2(list, O_CLOEXEC))
    return false;
  pid_t child = fork();
  if (child == 0)
    loader_list(plan, program, question, list[1]);
  close(list[1]);
  FILE *f = fdopen(list[0], "r");
  while (f && getline(&line, &room, f) >= 0) {
    const char *path = loader_path(line);
    if (path && !*found &&
        (question == LOADER_LUA ? ljp_image_has_lua(path)
                                : loader_is_foreign(path, ours)))
      snprintf(found, PATH_MAX, "%s", path);
  }
  free(line);
  if (f)
    fclose(f);
  else
    close(list[0]);
  if (child > 0)
    waitpid(child, NULL, 0);
  return *found;
}

/* Some functions of Lua 5.2 are there only if LuaJIT was built with them. usual:
** the LuaJIT that the program uses otherwise. */
static void loader_compare(const char *usual, const char *ours)
{
  /* The name of such a function, behind its length, in the table from which
  ** LuaJIT makes its libraries. */
  static const char function[] = "\006rawlen";
  bool with = ljp_image_has_text(usual, function);
  if (with != ljp_image_has_text(ours, function))
    ljp_command_note("record",
                     "%s was built %s LUAJIT_ENABLE_LUA52COMPAT, and our "
                     "library was not built so: Lua differs a little, see "
                     "doc/guide/programs.md",
                     usual, with ? "with" : "without");
}

static bool loader_wants_preload(const struct ljp_record_plan *plan,
                                 const char *path, const struct stat *ours,
                                 char luajit[PATH_MAX])
{
  char lua[PATH_MAX];
  if (loader_ask(LOADER_LUAJIT, plan, path, ours, luajit))
    return true;
  if (!loader_ask(LOADER_NAMED, plan, path, ours, luajit))
    return false;
  /* The program may never load that LuaJIT, but ours would in any case take the
  ** place of the functions of another Lua. */
  bool itself = ljp_image_has_lua(path);
  if (!itself && !loader_ask(LOADER_LUA, plan, path, ours, lua))
    return true;
  ljp_command_note("record",
                   "our library is not preloaded, since %s has another Lua: if "
                   "the program opens a module that needs LuaJIT, use "
                   "--preload",
                   itself ? path : lua);
  *luajit = '\0';
  return false;
}

bool ljp_record_ask_loader(const struct ljp_record_plan *plan, const char *path)
{
  char library[PATH_MAX + sizeof LJP_LIBRARY_NAME], luajit[PATH_MAX];
  struct stat ours;
  snprintf(library, sizeof library, "%s/" LJP_LIBRARY_NAME, plan->folder);
  if (stat(library, &ours))
    return false;
  bool preload = loader_wants_preload(plan, path, &ours, luajit);
  if (*luajit || loader_ask(LOADER_USUAL, plan, path, &ours, luajit))
    loader_compare(luajit, library);
  return preload;
}
