/*
** Reads what the program's processes told while they ran
** (profilers/session/told.h): the reason, if nothing was recorded.
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

void ljp_record_hear(struct ljp_record_plan *plan, struct ljp_told *told)
{
  FILE *f = plan->told[0] < 0 ? NULL : fdopen(plan->told[0], "r");
  char line[1024], *rest;
  memset(told, 0, sizeof *told);
  while (f && fgets(line, sizeof line, f)) {
    long pid = strtol(line + 1, &rest, 10);
    rest[strcspn(rest, "\n")] = '\0';
    if (line[0] == 'L' && pid == (long)plan->program_pid)
      told->own = true;
    else
      told->others += line[0] == 'L';
    if (line[0] == 'F' && told->forks < LJP_TOLD_FORKS)
      told->forked[told->forks++] = (pid_t)pid;
    if (line[0] == 'A' && *rest && !*told->another)
      snprintf(told->another, sizeof told->another, "%s", rest + 1);
    if (line[0] != 'R' || told->refusals++ >= LJP_TOLD_REFUSALS)
      continue;
    snprintf(told->refused[told->refusals - 1], sizeof told->refused[0], "%s",
             *rest ? rest + 1 : "for an unknown reason");
  }
  if (f)
    fclose(f);
  plan->told[0] = -1;
}

void ljp_record_tell_refusals(const struct ljp_told *told)
{
  for (unsigned i = 0; i < told->refusals && i < LJP_TOLD_REFUSALS; i++)
    ljp_command_error("record", "not recorded: %s", told->refused[i]);
  if (told->refusals > LJP_TOLD_REFUSALS)
    ljp_command_error("record", "%u more processes were not recorded",
                      told->refusals - LJP_TOLD_REFUSALS);
}

void ljp_record_tell_nothing(const struct ljp_record_plan *plan,
                             const struct ljp_told *told)
{
  const char *program = plan->program[0];
  bool once = plan->preload_once && !plan->preload;
  const char *more =
      plan->children
          ? (once ? " (--preload also records other programs that it executes)"
                  : "")
      : once ? " (--children also records processes that it starts, --preload "
               "also other programs that it executes)"
             : " (--children also records processes that it starts)";
  if (plan->pid)
    ljp_command_error("record",
                      "%s is not there any more: it was moved or removed while "
                      "it was written",
                      ljp_record_shown(plan->path));
  else if (told->refusals)
    ljp_command_error("record", "nothing was recorded: %s", told->refused[0]);
  else if (*told->another)
    ljp_command_error("record",
                      "nothing was recorded: %s loaded our "
                      "libluajit-5.1.so.2, but runs the LuaJIT of %s (put a "
                      "link to our library in that place)",
                      program, told->another);
  else if (told->own)
    ljp_command_error("record",
                      "nothing was recorded: %s loaded our "
                      "libluajit-5.1.so.2, but opened the libraries of no "
                      "VM%s",
                      program, more);
  else if (told->others)
    ljp_command_error("record",
                      "nothing was recorded: not %s, but %u process%s that it "
                      "started loaded our libluajit-5.1.so.2%s",
                      program, told->others, told->others == 1 ? "" : "es",
                      plan->children ? "" : " (--children records them)");
  else
    ljp_command_error("record",
                      "nothing was recorded: %s did not load our "
                      "libluajit-5.1.so.2 (is LuaJIT linked into it "
                      "statically?%s)",
                      program,
                      plan->preload ? ""
                                    : " if it has a LuaJIT in a place of its "
                                      "own, use --preload");
}
