/*
** ljprof jitdump -p PID: what perf needs to name compiled code of a running
** program, until Ctrl-C. In the program a session without samples runs; its own
** stream goes nowhere.
*/
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/join/session.h"
#include "tools/shared/command.h"

static const char jitdump_help[] =
    "Usage: ljprof jitdump -p PID [OPTION]...\n"
    "Writes jit-PID.dump and /tmp/perf-PID.map for perf: the compiled code "
    "that the\n"
    "running program PID has, and the code that it compiles until Ctrl-C. The "
    "program\n"
    "runs on. perf must use the same clock (perf record -k mono).\n"
    "\n"
    "  -p, --pid PID     the program: its number (see ljprof list), or the "
    "path of the\n"
    "                    socket at which it listens (LJPROF_LISTEN)\n"
    "  -o, --output DIR  the folder for jit-PID.dump (default: JITDUMPDIR, "
    "else the\n"
    "                    current one)\n"
    "  --duration TIME   end after TIME (10, 500ms, 5m, 1h)\n"
    "  --force           replace files of an earlier run\n"
    "  --help            show this help\n"
    "\n"
    "Exit code: 0 success, 1 the program cannot be joined, or a CPU session or "
    "one of\n"
    "another ljprof runs in it, 2 wrong usage.\n";

static const char jitdump_name[] = "jitdump";

enum { PATH_BYTES = 4096 };

struct jitdump {
  const char *pid, *folder, *duration;
  bool force;
  double seconds; /* 0: no limit */
  char path[2][PATH_BYTES];
  int fd[2];                    /* -1: not made */
  char old[2][PATH_BYTES + 32]; /* where the earlier files are meanwhile; "":
                                ** there are none */
};

/* -- Arguments ------------------------------------------------------------- */

static bool jitdump_time(const char *text, double *seconds)
{
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"", 1}, {"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
  char *end;
  double number = strtod(text, &end);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (*text >= '0' && *text <= '9' && strcmp(end, units[i].name) == 0) {
      *seconds = number * units[i].seconds;
      return *seconds >= 0.001 && *seconds <= 1e9;
    }
  return false;
}

static int jitdump_parse(struct jitdump *j, int argc, char **argv,
                         struct ljp_goal *goal)
{
  const struct ljp_flag flags[] = {
      {"-p", NULL, &j->pid},        {"--pid", NULL, &j->pid},
      {"-o", NULL, &j->folder},     {"--output", NULL, &j->folder},
      {"--force", &j->force, NULL}, {"--duration", NULL, &j->duration},
  };
  struct stat st;
  int code = ljp_command_plain(jitdump_name, jitdump_help, argc, argv, flags,
                               sizeof flags / sizeof *flags);
  if (code < 0)
    code = ljp_talk_goal(jitdump_name, j->pid, goal);
  if (code >= 0)
    return code;
  if (j->duration && !jitdump_time(j->duration, &j->seconds)) {
    ljp_command_error(jitdump_name,
                      "--duration is '%s', but must be a time such as 10, "
                      "500ms, 5m or 1h",
                      j->duration);
    return LJP_EXIT_USAGE;
  }
  if (!j->folder)
    j->folder = getenv("JITDUMPDIR");
  if (!j->folder || !*j->folder)
    j->folder = ".";
  if (strlen(j->folder) > PATH_BYTES - 64 || stat(j->folder, &st) ||
      !S_ISDIR(st.st_mode)) {
    ljp_command_error(jitdump_name,
                      "%s: is not a folder: choose one with -o DIR", j->folder);
    return LJP_EXIT_FAILED;
  }
  return -1;
}

/* -- Files ----------------------------------------------------------------- */

/* The number that the program itself has. 0: it says what cannot be. */
static unsigned long jitdump_number(const struct ljp_talk *talk)
{
  struct ljp_proc_status status;
  /* The answer to hello has it, too, but may be anything. */
  uint64_t told = talk->message.number[1];
  if (talk->pid && ljp_proc_status(talk->pid, 0, &status))
    return (unsigned long)status.ns_pid;
  if (told && told <= INT32_MAX)
    return (unsigned long)told;
  ljp_command_error(jitdump_name,
                    "%s says that its number is %" PRIu64
                    ", which cannot be: run ljprof in its namespace",
                    talk->name, told);
  return 0;
}

/* Until a session runs, the old file is only out of the way. Returns 0 or an
** errno. */
static int jitdump_put_aside(struct jitdump *j, int i)
{
  snprintf(j->old[i], sizeof j->old[i], "%s.ljp-%ld-old", j->path[i],
           (long)getpid());
  if (rename(j->path[i], j->old[i]) == 0)
    return 0;
  j->old[i][0] = '\0';
  return errno == ENOENT ? 0 : errno;
}

/* A session runs: the old files are replaced. */
static void jitdump_drop_old(void *ctx)
{
  struct jitdump *j = ctx;
  for (int i = 0; i < 2; i++) {
    if (j->old[i][0])
      unlink(j->old[i]);
    j->old[i][0] = '\0';
  }
}

/* perf looks for these names. */
static int jitdump_make(struct jitdump *j, unsigned long pid)
{
  int error;
  snprintf(j->path[0], PATH_BYTES, "%s/jit-%lu.dump", j->folder, pid);
  snprintf(j->path[1], PATH_BYTES, "/tmp/perf-%lu.map", pid);
  for (int i = 0; i < 2; i++) {
    if (j->force && (error = jitdump_put_aside(j, i))) {
      ljp_command_error(jitdump_name, "%s: %s", j->path[i], strerror(error));
      return LJP_EXIT_FAILED;
    }
    j->fd[i] = open(j->path[i],
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (j->fd[i] >= 0)
      continue;
    ljp_command_error(jitdump_name, "%s: %s", j->path[i],
                      errno == EEXIST ? "exists (use --force to replace it)"
                                      : strerror(errno));
    return LJP_EXIT_FAILED;
  }
  return -1;
}

/* remove: they are of no use, and the old ones get their names again. */
static void jitdump_close(struct jitdump *j, bool remove)
{
  for (int i = 0; i < 2; i++) {
    if (j->fd[i] >= 0 && remove)
      unlink(j->path[i]);
    if (j->fd[i] >= 0)
      close(j->fd[i]);
    if (j->old[i][0] && rename(j->old[i], j->path[i]))
      ljp_command_error(jitdump_name, "%s, which is the old %s: %s", j->old[i],
                        j->path[i], strerror(errno));
  }
}

/* -1: it has ended in order; else the exit code. */
static int jitdump_run(struct jitdump *j, struct ljp_talk *talk)
{
  char request[128], duration[48] = "";
  enum ljp_join_end end;
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) {
    ljp_command_error(jitdump_name, "/dev/null: %s", strerror(errno));
    return LJP_EXIT_FAILED;
  }
  if (j->seconds > 0)
    snprintf(duration, sizeof duration, "duration=%.3f;", j->seconds);
  snprintf(request, sizeof request,
           "cpu.mode=D;cpu.interval=60000;%spath=/dev/null", duration);
  const struct ljp_join_session session = {.command = jitdump_name,
                                           .path = j->path[0],
                                           .fd = nowhere,
                                           .started = jitdump_drop_old,
                                           .started_ctx = j,
                                           .duration_ms =
                                               (uint64_t)(j->seconds * 1000),
                                           .request = request,
                                           .jitdump = j->fd};
  int code = ljp_join_session_run(talk, &session, &end);
  close(nowhere);
  if (code >= 0)
    return code;
  if (end == LJP_JOIN_BY_PROGRAM)
    ljp_command_note(jitdump_name, "%s has ended, or is another program now",
                     talk->name);
  if (end != LJP_JOIN_BY_ERROR)
    ljp_command_note(jitdump_name, "%s and %s %s", j->path[0], j->path[1],
                     end == LJP_JOIN_BY_USER || end == LJP_JOIN_BY_OTHERS
                         ? "are complete"
                         : "may lack the code that was compiled last");
  return end == LJP_JOIN_BY_ERROR ? LJP_EXIT_FAILED : -1;
}

int ljp_command_jitdump(int argc, char **argv)
{
  static struct ljp_talk talk;
  static struct jitdump j = {.fd = {-1, -1}};
  struct ljp_goal goal;
  struct stat st;
  int code = jitdump_parse(&j, argc, argv, &goal);
  if (code < 0)
    code = ljp_talk_join(&talk, jitdump_name, &goal);
  if (code >= 0)
    return code;
  unsigned long number = jitdump_number(&talk);
  code = number ? jitdump_make(&j, number) : LJP_EXIT_FAILED;
  if (code < 0)
    code = jitdump_run(&j, &talk);
  ljp_talk_leave(&talk);
  bool begun = j.fd[0] >= 0 && !fstat(j.fd[0], &st) && st.st_size > 0;
  jitdump_close(&j, code >= 0 && !begun);
  return code < 0 ? LJP_EXIT_OK : code;
}
