/*
** Reads what the program's processes told while they ran
** (profilers/api/told.h): the reason, if nothing was recorded.
*/
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/record/record.h"
#include "tools/shared/command.h"

void ljp_record_listen(struct ljp_record_plan *plan)
{
  plan->told_pid = getpid();
  if (pipe2(plan->told, O_CLOEXEC | O_NONBLOCK) ||
      fstat(plan->told[1], &plan->told_pipe))
    plan->told[0] = plan->told[1] = -1;
}

/* Reads what was told. Returns how many processes have loaded the library; *own:
** whether the program itself has; refused: why a session was refused, or empty. */
static unsigned told_read(struct ljp_record_plan *plan, bool *own,
                          char *refused, size_t room)
{
  unsigned loaded = 0;
  FILE *f = plan->told[0] < 0 ? NULL : fdopen(plan->told[0], "r");
  char line[1024], *rest;
  *own = false;
  *refused = '\0';
  while (f && fgets(line, sizeof line, f)) {
    long pid = strtol(line + 1, &rest, 10);
    rest[strcspn(rest, "\n")] = '\0';
    loaded += line[0] == 'L';
    *own |= line[0] == 'L' && pid == (long)plan->program_pid;
    if (line[0] == 'R' && !*refused)
      snprintf(refused, room, "%s", *rest ? rest + 1 : "");
  }
  if (f)
    fclose(f);
  plan->told[0] = -1;
  return loaded;
}

void ljp_record_tell_nothing(struct ljp_record_plan *plan)
{
  const char *program = plan->program[0];
  char refused[1024];
  bool own;
  unsigned loaded = told_read(plan, &own, refused, sizeof refused);
  if (*refused)
    ljp_command_error("record", "nothing was recorded: %s", refused);
  else if (own)
    ljp_command_error("record",
                      "nothing was recorded: %s loaded our "
                      "libluajit-5.1.so.2, but opened the libraries of no VM%s",
                      program,
                      plan->children ? ""
                                     : " (--children also records processes "
                                       "that it starts)");
  else if (loaded)
    ljp_command_error("record",
                      "nothing was recorded: not %s, but processes that it "
                      "started loaded our libluajit-5.1.so.2%s",
                      program,
                      plan->children ? "" : " (--children records them)");
  else
    ljp_command_error("record",
                      "nothing was recorded: %s did not load our "
                      "libluajit-5.1.so.2 (is LuaJIT linked into it "
                      "statically, or found by a path of its own?)",
                      program);
}
