/*
** ljprof record -p PID: records a program that runs already. The session is in
** the program; this process makes the file, waits for the end, and then reports
** what was recorded, as after a program that it has run itself.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/join/session.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

/* The program's name stands for the name of its file. */
static void joined_name(struct ljp_record_plan *plan, pid_t pid,
                        char name[LJP_COMM_BYTES], char *program[2])
{
  struct ljp_proc_status status;
  if (!ljp_proc_status(pid, 0, &status))
    snprintf(status.comm, sizeof status.comm, "%d", (int)pid);
  snprintf(name, LJP_COMM_BYTES, "%s", status.comm);
  for (char *p = name; *p; p++)
    if (*p == '/' || *p <= ' ')
      *p = '_';
  program[0] = name;
  program[1] = NULL;
  plan->program = program;
  plan->program_pid = pid;
  plan->told[0] = plan->told[1] = -1;
}

static int joined_record(struct ljp_record_plan *plan, struct ljp_talk *talk,
                         enum ljp_join_end *end)
{
  static char request[LJP_JOIN_MESSAGE_BYTES];
  struct ljp_join_session session = {.command = "record",
                                     .path = plan->path,
                                     .fd = -1,
                                     .force = plan->force,
                                     .request = request};
  if (!ljp_record_joined_request(plan, request, sizeof request)) {
    ljp_command_error("record", "%s: the name is too long", plan->path);
    return LJP_EXIT_FAILED;
  }
  return ljp_join_session_run(talk, &session, end);
}

int ljp_record_joined(struct ljp_record_plan *plan)
{
  static struct ljp_talk talk;
  char name[LJP_COMM_BYTES], *program[2];
  enum ljp_join_end end;
  pid_t pid;
  int code = ljp_talk_pid("record", plan->pid, &pid);
  if (code >= 0)
    return code;
  joined_name(plan, pid, name, program);
  code = ljp_record_find_output(plan);
  if (code < 0)
    code = ljp_talk_join(&talk, "record", pid);
  if (code >= 0)
    return code;
  clock_gettime(CLOCK_REALTIME_COARSE, &plan->began);
  uint64_t began_ns = ljp_record_now();
  code = joined_record(plan, &talk, &end);
  ljp_talk_leave(&talk);
  if (code >= 0)
    return code;
  double seconds = (double)(ljp_record_now() - began_ns) / 1e9;
  bool over =
      ljp_record_duration(plan) > 0 && seconds >= ljp_record_duration(plan);
  plan->ran_on = end == LJP_JOIN_BY_OTHERS && over;
  if (end == LJP_JOIN_BY_OTHERS && !over)
    ljp_command_note("record", "another ljprof has ended the recording");
  if (end == LJP_JOIN_BY_PROGRAM)
    ljp_command_note("record",
                     "process %d (%s) has ended, or is another program now",
                     (int)pid, name);
  bool recorded = ljp_record_outcome(plan);
  return recorded && end != LJP_JOIN_BY_ERROR ? LJP_EXIT_OK : LJP_EXIT_FAILED;
}
