/*
** Finds the file that a command names, and lets our luajit run it if it is a
** Lua script. If there is no such file, or it cannot be executed, says what to
** type instead.
*/
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/record/record.h"
#include "tools/shared/command.h"

enum { LOOK_UP_HEAD = 128 };

const char *ljp_record_base(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool ljp_record_in_path(const char *name, char out[PATH_MAX])
{
  struct stat st;
  const char *at = getenv("PATH");
  for (at = at ? at : "/bin:/usr/bin"; *name && at; at = strchr(at, ':')) {
    at += *at == ':';
    int n = (int)strcspn(at, ":");
    int size = snprintf(out, PATH_MAX, "%.*s%s%s", n, at, n ? "/" : "", name);
    if (size > 0 && size < PATH_MAX && !stat(out, &st) && S_ISREG(st.st_mode) &&
        !access(out, X_OK))
      return true;
    if (!at[strcspn(at, ":")])
      break;
  }
  return false;
}

/* -- Lua scripts ----------------------------------------------------------- */
static bool look_up_is_script(const char *path, const char *head)
{
  const char *end = strrchr(ljp_record_base(path), '.');
  return (end && strcmp(end, ".lua") == 0) || strncmp(head, "\033LJ", 3) == 0 ||
         (strncmp(head, "#!", 2) == 0 && strstr(head, "lua"));
}

/* The command is LUAJIT SCRIPT ARGUMENT... from now on. */
static int look_up_run_script(struct ljp_record_plan *plan, const char *path)
{
  size_t count = 1;
  if (access(plan->luajit, X_OK)) {
    ljp_command_error("record",
                      "%s is a Lua script, but the luajit that would run it is "
                      "not there: %s: %s",
                      path, plan->luajit, strerror(errno));
    return LJP_EXIT_FAILED;
  }
  while (plan->program[count])
    count++;
  char **program = calloc(count + 2, sizeof *program);
  /* A name that looks like an option to luajit. */
  char *script = malloc(strlen(path) + 3);
  if (!program || !script) {
    free((void *)program);
    free(script);
    ljp_command_error("record", "out of memory");
    return LJP_EXIT_FAILED;
  }
  sprintf(script, "%s%s", *path == '-' ? "./" : "", path);
  program[0] = plan->luajit;
  program[1] = script;
  memcpy((void *)(program + 2), (const void *)(plan->program + 1),
         count * sizeof *program);
  plan->program = program;
  return -1;
}

/* -- What to type instead -------------------------------------------------- */
static int look_up_missing(const struct ljp_record_plan *plan, int error)
{
  const char *name = plan->program[0];
  bool path = strchr(name, '/') != NULL;
  if (!path && strcmp(name, "luajit") == 0)
    ljp_command_error(
        "record",
        "luajit: %s in the folders of PATH: type 'ljprof record %s "
        "...', or only the Lua script",
        strerror(error), plan->luajit);
  else
    ljp_command_error("record", "%s: %s%s", name, strerror(error),
                      path ? "" : " in the folders of PATH or in this folder");
  return error == ENOENT || error == ENOTDIR ? LJP_EXIT_NO_PROGRAM
                                             : LJP_EXIT_CANNOT_RUN;
}

static int look_up_not_executable(const char *name, const struct stat *st)
{
  if (S_ISDIR(st->st_mode))
    ljp_command_error("record",
                      "%s is a folder: type the program or the Lua script in "
                      "it that is to be recorded",
                      name);
  else
    ljp_command_error("record",
                      "%s: %s: the file is not executable: if it is a Lua "
                      "script, type 'ljprof record luajit %s'; if it is a "
                      "program, 'chmod +x %s' first",
                      name, strerror(EACCES), name, name);
  return LJP_EXIT_CANNOT_RUN;
}

static int look_up_not_in_path(const char *name)
{
  ljp_command_error("record",
                    "%s: %s in the folders of PATH: for the one in this folder "
                    "type 'ljprof record ./%s'",
                    name, strerror(ENOENT), name);
  return LJP_EXIT_NO_PROGRAM;
}

/* -- The file -------------------------------------------------------------- */
/* The first bytes of a regular file; "" if they cannot be read. */
static void look_up_head(const char *path, char head[LOOK_UP_HEAD])
{
  struct stat st;
  ssize_t n = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
    n = read(fd, head, LOOK_UP_HEAD - 1);
  head[n > 0 ? n : 0] = '\0';
  head[strcspn(head, "\n")] = '\0';
  if (fd >= 0)
    close(fd);
}

int ljp_record_look_up(struct ljp_record_plan *plan)
{
  char path[PATH_MAX], head[LOOK_UP_HEAD];
  struct stat st;
  char *name = plan->program[0];
  bool slash = strchr(name, '/') != NULL;
  bool found = !slash && ljp_record_in_path(name, path);
  if (!found && (size_t)snprintf(path, sizeof path, "%s%s", slash ? "" : "./",
                                 name) >= sizeof path)
    return look_up_missing(plan, ENAMETOOLONG);
  if (!*name)
    return look_up_missing(plan, ENOENT);
  if (stat(path, &st))
    return look_up_missing(plan, errno);
  if (!slash && !found && S_ISDIR(st.st_mode))
    return look_up_missing(plan, ENOENT);
  look_up_head(path, head);
  bool executable = S_ISREG(st.st_mode) && !access(path, X_OK);
  bool script = S_ISREG(st.st_mode) && look_up_is_script(path, head);
  if (script && !(executable && strncmp(head, "#!", 2) == 0)) {
    if (!access(path, R_OK))
      return look_up_run_script(plan, found || slash ? path : name);
    ljp_command_error("record", "%s: %s", name, strerror(errno));
    return LJP_EXIT_CANNOT_RUN;
  }
  if (!executable)
    return look_up_not_executable(name, &st);
  if (!slash && !found && !script)
    return look_up_not_in_path(name);
  if (!slash && !found)
    plan->program[0] =
        memcpy(plan->here, path, strlen(path) + 1); /* "./NAME" */
  return -1;
}

/* -- Its name -------------------------------------------------------------- */
/* The script that a command luajit is given; NULL: none. */
static const char *look_up_luajit_script(char **argument)
{
  for (; *argument; argument++) {
    const char *a = *argument;
    if (a[0] != '-')
      return a;
    if (a[1] == '-' || !a[1] || a[1] == 'b')
      return NULL;
    /* These take the next argument. */
    if (strchr("elj", a[1]) && !a[2] && !*++argument)
      return NULL;
  }
  return NULL;
}

int ljp_record_program_name(const struct ljp_record_plan *plan, char *out,
                            size_t room)
{
  const char *base = ljp_record_base(plan->program[0]), *script = NULL;
  if (strncmp(base, "luajit", 6) == 0)
    script = look_up_luajit_script(plan->program + 1);
  if (script)
    base = ljp_record_base(script);
  size_t len = strlen(base);
  if (len > 4 && strcmp(base + len - 4, ".lua") == 0)
    len -= 4;
  return snprintf(out, room, "%.*s", len < 180 ? (int)len : 180, base);
}

int ljp_record_default_name(const struct ljp_record_plan *plan, char *out,
                            size_t room)
{
  char name[192], when[32] = "";
  time_t now = time(NULL);
  struct tm local;
  ljp_record_program_name(plan, name, sizeof name);
  if (localtime_r(&now, &local))
    strftime(when, sizeof when, "-%Y%m%d-%H%M%S", &local);
  return snprintf(out, room, "%s%s-%ld.ljp", name, when, (long)getpid());
}
