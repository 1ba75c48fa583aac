/*
** ljprof record -p: records a program that runs already. The session is in
** the program; this process makes the file, waits for the end, and then reports
** what was recorded, as after a program that it has run itself.
*/
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/join/family.h"
#include "tools/join/nameless.h"
#include "tools/join/session.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

/* The program's name is used where otherwise the name of its file is. A program
** that has no number here is called by its socket: "app" for /run/app.sock. */
static void joined_name(struct ljp_record_plan *plan,
                        const struct ljp_goal *goal, pid_t pid,
                        char name[LJP_COMM_BYTES], char *program[2])
{
  struct ljp_proc_status status;
  if (pid && ljp_proc_status(pid, 0, &status)) {
    snprintf(name, LJP_COMM_BYTES, "%s", status.comm);
  } else if (goal->door) {
    const char *slash = strrchr(goal->door, '/');
    snprintf(name, LJP_COMM_BYTES, "%s", slash + 1);
    char *dot = strrchr(name, '.');
    if (dot && dot > name)
      *dot = '\0';
  } else {
    snprintf(name, LJP_COMM_BYTES, "%d", (int)pid);
  }
  for (char *p = name; *p; p++)
    if (*p == '/' || *p <= ' ')
      *p = '_';
  program[0] = name;
  program[1] = NULL;
  plan->program = program;
  plan->program_pid = pid;
  plan->told[0] = plan->told[1] = -1;
}

static uint32_t joined_keep(const struct ljp_record_plan *plan)
{
  const char *keep = plan->set.value[LJP_SETTING_KEEP];
  return keep ? (uint32_t)strtoul(keep, NULL, 10) : 0;
}

static uint64_t joined_ms(double seconds)
{
  return (uint64_t)(seconds * 1000 + 0.5);
}

int ljp_record_session(const struct ljp_record_plan *plan,
                       struct ljp_talk *talk, int fd,
                       void (*started)(void *ctx), void *ctx,
                       enum ljp_join_end *end)
{
  static char request[LJP_JOIN_MESSAGE_BYTES];
  struct ljp_join_session session = {
      .command = "record",
      .path = plan->path,
      .fd = fd,
      .force = plan->force,
      .rotates = ljp_record_rotates(plan),
      .keep = joined_keep(plan),
      .also = plan->also,
      .snapshot_last = ljp_record_snapshots(plan),
      .snapshot_every_ms = joined_ms(ljp_record_snapshot_every(plan)),
      .duration_ms = joined_ms(ljp_record_duration(plan)),
      .started = started,
      .started_ctx = ctx,
      .request = request};
  if (session.snapshot_last)
    session.snapshot_end_ms = joined_ms(ljp_record_duration(plan));
  if (!ljp_record_joined_request(plan, request, sizeof request)) {
    ljp_command_error("record", "%s: the name is too long", plan->path);
    return LJP_EXIT_FAILED;
  }
  return ljp_join_session_run(talk, &session, end);
}

/* The file that is to be written. -1: go on; else the exit code. */
static int joined_output(struct ljp_record_plan *plan,
                         struct ljp_nameless *file)
{
  file->fd = -1;
  if (!plan->set.value[LJP_SETTING_REPORT] || plan->output)
    return ljp_record_find_output(plan);
  int code = ljp_nameless_open(file, "record");
  if (code < 0)
    snprintf(plan->path, sizeof plan->path, "%.*s", (int)sizeof plan->path - 1,
             file->shown);
  return code;
}

/* Can its children be found, if they are asked for? */
static int joined_children(const struct ljp_record_plan *plan, pid_t pid)
{
  if (!plan->children || (pid && ljp_family_can()))
    return -1;
  if (pid)
    ljp_command_error("record", "--children: this kernel does not tell the "
                                "children of a process (CONFIG_PROC_CHILDREN)");
  else
    ljp_command_error("record",
                      "--children: %s is in another namespace of processes, so "
                      "its children cannot be found: run ljprof there",
                      plan->pid);
  return LJP_EXIT_FAILED;
}

/* Joins the program, and finds the file: first, if that tells what is wrong
** before anything is stopped; afterwards, if only then the program's name is
** known. -1: done; else the exit code. */
static int joined_begin(struct ljp_record_plan *plan, struct ljp_talk *talk,
                        struct ljp_nameless *file, char name[LJP_COMM_BYTES],
                        char *program[2])
{
  struct ljp_goal goal;
  int code = ljp_talk_goal("record", plan->pid, &goal);
  if (code < 0 && goal.door)
    code = ljp_talk_join(talk, "record", &goal);
  if (code >= 0)
    return code;
  joined_name(plan, &goal, goal.door ? talk->pid : goal.pid, name, program);
  code = joined_children(plan, goal.door ? talk->pid : goal.pid);
  if (code < 0)
    code = joined_output(plan, file);
  if (code < 0 && !goal.door)
    code = ljp_talk_join(talk, "record", &goal);
  else if (code >= 0 && goal.door)
    ljp_talk_leave(talk);
  return code;
}

/* name: of the program, for messages. */
static int joined_report(const struct ljp_record_plan *plan,
                         const struct ljp_nameless *file, const char *name)
{
  static char shown[256];
  char *argv[] = {"report", file->fd < 0 ? (char *)plan->path : "-", NULL};
  snprintf(shown, sizeof shown, "%s", name);
  if (file->fd >= 0) {
    ljp_command_input = shown;
    int in = open(file->path, O_RDONLY | O_CLOEXEC);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0) {
      ljp_command_error("record", "%s: %s", file->shown, strerror(errno));
      return LJP_EXIT_FAILED;
    }
  }
  return ljp_command_report(2, argv);
}

/* Says how the recording has ended, if not as the user has asked. */
static void joined_tell(struct ljp_record_plan *plan, enum ljp_join_end end,
                        double seconds, const char *name)
{
  enum { LATE_S = 1 };
  bool over =
      ljp_record_duration(plan) > 0 && seconds >= ljp_record_duration(plan);
  plan->ran_on = end == LJP_JOIN_BY_OTHERS && over;
  if (ljp_record_snapshots(plan) &&
      seconds > ljp_record_duration(plan) + LATE_S)
    plan->late_s = seconds;
  if (end == LJP_JOIN_BY_OTHERS && !over)
    ljp_command_note("record", "another ljprof has ended the recording, or the "
                               "program is exiting");
  if (end == LJP_JOIN_BY_PROGRAM)
    ljp_command_note("record", "%s has ended, or is another program now", name);
}

/* Of a session that has begun. */
struct joined {
  const struct ljp_record_plan *plan;
  const struct ljp_talk *talk;
  pid_t family; /* see ljp_record_children(); 0: none */
};

static void joined_started(void *ctx)
{
  struct joined *j = ctx;
  ljp_record_drop_segments(j->plan);
  if (j->plan->children)
    j->family = ljp_record_children(j->plan, j->talk);
}

int ljp_record_joined(struct ljp_record_plan *plan)
{
  static struct ljp_talk talk;
  static struct ljp_nameless file;
  char name[LJP_COMM_BYTES], *program[2];
  enum ljp_join_end end;
  int code = joined_begin(plan, &talk, &file, name, program);
  if (code >= 0)
    return code;
  clock_gettime(CLOCK_REALTIME_COARSE, &plan->began);
  uint64_t began_ns = ljp_record_now();
  struct joined joined = {plan, &talk, 0};
  code =
      ljp_record_session(plan, &talk, file.fd, joined_started, &joined, &end);
  ljp_talk_leave(&talk);
  if (code >= 0)
    return code;
  joined_tell(plan, end, (double)(ljp_record_now() - began_ns) / 1e9,
              talk.name);
  if (joined.family > 0)
    ljp_record_children_end(
        joined.family, end == LJP_JOIN_BY_USER || end == LJP_JOIN_BY_ERROR ||
                           end == LJP_JOIN_LEFT_EARLY || plan->ran_on);
  bool recorded = file.fd >= 0 || ljp_record_outcome(plan);
  if (recorded && plan->set.value[LJP_SETTING_REPORT])
    recorded = joined_report(plan, &file, talk.name) == LJP_EXIT_OK;
  return recorded && end != LJP_JOIN_BY_ERROR ? LJP_EXIT_OK : LJP_EXIT_FAILED;
}
