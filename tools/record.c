/*
** ljprof record: runs a program with our library in place of its own
** libluajit-5.1.so.2 and a session that begins with its first VM.
**
** The program finds our library by LD_LIBRARY_PATH and what to record by
** LJPROF_RECORD (profilers/autostart.c reads it). It keeps its standard input
** and output, its process group and its exit status; we wait, and say on
** standard error what came out.
*/
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "parsers/reader.h"
#include "tools/command.h"

static const char help[] =
    "Usage: ljprof record [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "Runs a program that uses LuaJIT as a shared library, with ours in its\n"
    "place, and records it from its first VM to its end.\n\n"
    "  -o FILE           the stream (default: PROGRAM.ljp)\n"
    "  --force           replace FILE if it is there\n"
    "  --interval MS     milliseconds between samples, 0.05 to 60000 "
    "(default 1)\n"
    "  --event EVENT     cpu (default), or wall: threads that wait, too\n"
    "  --memory          allocations as well, sampled\n"
    "  --sample BYTES    ... one sample in so many bytes (default 524288)\n"
    "  --every           ... every allocation instead\n"
    "  --native          ... with C frames in their stacks\n"
    "  --no-cpu          no CPU samples (with --memory)\n"
    "  --children        programs and forks that it starts, too: each into\n"
    "                    FILE.PID\n"
    "  --jitdump         jit-PID.dump and /tmp/perf-PID.map for perf\n"
    "  --compress N      level of zstd compression, 1 to 19 (default: none)\n"
    "  --embed-symbols   put the names of machine code into FILE, so that it\n"
    "                    reads the same on another machine\n"
    "  --help            this text\n\n"
    "Exit code: that of the program (128 and more: ended by a signal); 1 if\n"
    "it went well but nothing was recorded, 2 called wrongly, 126 and 127 if\n"
    "it could not be run.\n";

enum { EXIT_CANNOT_RUN = 126, EXIT_NO_PROGRAM = 127 };

struct plan {
  const char *output, *interval, *event, *sample, *compress;
  bool force, memory, every, native, no_cpu, children, embed, jitdump;
  char **program;
  char path[PATH_MAX]; /* absolute: the program may change its folder */
  struct stat before;  /* what stood there; st_ino 0: nothing */
  struct timespec began;
};

/* -- Options ------------------------------------------------------------------ */

static int misuse(const char *option, const char *value, const char *wants)
{
  ljp_command_error("record", "%s is '%s', but wants %s", option, value, wants);
  return LJP_EXIT_USAGE;
}

static int contradiction(const char *text)
{
  ljp_command_error("record", "%s", text);
  return LJP_EXIT_USAGE;
}

static bool number_within(const char *text, double low, double high)
{
  char *end;
  double number = strtod(text, &end);
  /* false for NaN */
  return end != text && !*end && number >= low && number <= high;
}

static bool whole_within(const char *text, double low, double high)
{
  return text[strspn(text, "0123456789")] == '\0' &&
         number_within(text, low, high);
}

static int check_values(const struct plan *plan)
{
  if (plan->interval && !number_within(plan->interval, 0.05, 60000))
    return misuse("--interval", plan->interval,
                  "milliseconds, a number from 0.05 to 60000");
  if (plan->event && strcmp(plan->event, "cpu") != 0 &&
      strcmp(plan->event, "wall") != 0)
    return misuse("--event", plan->event, "cpu or wall");
  if (plan->sample && !whole_within(plan->sample, 1, 1e12))
    return misuse("--sample", plan->sample, "a whole number of bytes");
  if (plan->compress && !whole_within(plan->compress, 1, 19))
    return misuse("--compress", plan->compress, "a whole number from 1 to 19");
  if (plan->sample && plan->every)
    return contradiction("--sample and --every contradict each other");
  if (!plan->memory && (plan->sample || plan->every || plan->native))
    return contradiction("--sample, --every and --native are about --memory, "
                         "which is not given");
  if (!plan->memory && plan->no_cpu)
    return contradiction("--no-cpu without --memory records nothing");
  if (plan->no_cpu && (plan->interval || plan->event || plan->jitdump))
    return contradiction("--interval, --event and --jitdump are about CPU "
                         "samples, but --no-cpu is given");
  return -1;
}

static int read_options(struct plan *plan, int argc, char **argv)
{
  const struct ljp_flag flags[] = {{"-o", NULL, &plan->output},
                                   {"--output", NULL, &plan->output},
                                   {"--force", &plan->force, NULL},
                                   {"--interval", NULL, &plan->interval},
                                   {"--event", NULL, &plan->event},
                                   {"--memory", &plan->memory, NULL},
                                   {"--sample", NULL, &plan->sample},
                                   {"--every", &plan->every, NULL},
                                   {"--native", &plan->native, NULL},
                                   {"--no-cpu", &plan->no_cpu, NULL},
                                   {"--children", &plan->children, NULL},
                                   {"--jitdump", &plan->jitdump, NULL},
                                   {"--compress", NULL, &plan->compress},
                                   {"--embed-symbols", &plan->embed, NULL}};
  int code = ljp_command_program("record", help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &plan->program);
  return code < 0 ? check_values(plan) : code;
}

/* -- Where to ------------------------------------------------------------------ */

static int find_output(struct plan *plan)
{
  char folder[PATH_MAX - 300] = "", name[256];
  const char *output = plan->output;
  if (!output) {
    const char *base = strrchr(plan->program[0], '/');
    snprintf(name, sizeof name, "%.200s.ljp",
             base ? base + 1 : plan->program[0]);
    output = name;
  }
  if (output[0] != '/' && !getcwd(folder, sizeof folder)) {
    ljp_command_error("record", "the current folder: %s", strerror(errno));
    return LJP_EXIT_FAILED;
  }
  int n = snprintf(plan->path, sizeof plan->path, "%s%s%s", folder,
                   *folder ? "/" : "", output);
  if (n < 0 || (size_t)n >= sizeof plan->path || !*output) {
    ljp_command_error("record", "%s: %s", output,
                      strerror(*output ? ENAMETOOLONG : ENOENT));
    return LJP_EXIT_FAILED;
  }
  if (lstat(plan->path, &plan->before)) {
    plan->before.st_ino = 0;
  } else if (S_ISDIR(plan->before.st_mode) || !plan->force) {
    ljp_command_error("record", "%s %s", plan->path,
                      S_ISDIR(plan->before.st_mode)
                          ? "is a directory"
                          : "exists; --force replaces it");
    return LJP_EXIT_FAILED;
  }
  return -1;
}

/* -- The program -------------------------------------------------------------- */

/* The folder of our library: beside that of this command, built or installed. */
static int find_library(char folder[PATH_MAX])
{
  char self[PATH_MAX - 64], probe[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = '\0';
  char *slash = strrchr(self, '/');
  if (slash) {
    *slash = '\0';
    snprintf(probe, sizeof probe, "%s/../lib/libluajit-5.1.so.2", self);
    if (!access(probe, R_OK)) {
      snprintf(folder, PATH_MAX, "%s/../lib", self);
      return -1;
    }
  }
  ljp_command_error("record", "our libluajit-5.1.so.2 is not in '%s/../lib'",
                    self);
  return LJP_EXIT_FAILED;
}

static bool set_environment(const struct plan *plan, const char *library)
{
  char text[PATH_MAX + 512];
  const char *before = getenv("LD_LIBRARY_PATH");
  size_t room = strlen(library) + (before ? strlen(before) : 0) + 2;
  char *path = malloc(room);
  if (!path)
    return false;
  snprintf(path, room, "%s%s%s", library, before && *before ? ":" : "",
           before ? before : "");
  int failed = setenv("LD_LIBRARY_PATH", path, 1);
  free(path);
  int n = snprintf(text, sizeof text, "pid=%ld;", (long)getpid());
  size_t at = (size_t)n;
#define PUT(...)                                                               \
  at += (size_t)snprintf(text + at, sizeof text - at, __VA_ARGS__)
  if (plan->children)
    PUT("children=true;fork=follow;");
  if (plan->compress)
    PUT("compress=%s;", plan->compress);
  if (plan->jitdump)
    PUT("jitdump=true;");
  if (plan->no_cpu)
    PUT("cpu=false;");
  if (plan->interval)
    PUT("cpu.interval=%s;", plan->interval);
  if (plan->event)
    PUT("cpu.event=%s;", plan->event);
  if (!plan->memory)
    PUT("memory=false;");
  else if (plan->every)
    PUT("memory.every=true;");
  else
    PUT("memory.sample=%s;", plan->sample ? plan->sample : "524288");
  if (plan->native)
    PUT("memory.native=true;");
  PUT("path=%s", plan->path); /* the last one: it may hold any byte */
#undef PUT
  return !failed && at < sizeof text && !setenv("LJPROF_RECORD", text, 1);
}

static pid_t child;

static void pass_on(int signal)
{
  kill(child, signal);
}

/* Exit code of the program as a shell would have it; -1: it did not run. */
static int run(const struct plan *plan, const char *library, int *error)
{
  static const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  struct sigaction ignore = {.sa_handler = SIG_IGN}, keep[2];
  int status, report[2];
  if (pipe(report)) {
    *error = errno;
    return -1;
  }
  /* Those of the terminal go to the program by themselves. */
  sigaction(SIGINT, &ignore, &keep[0]);
  sigaction(SIGQUIT, &ignore, &keep[1]);
  child = fork();
  if (child == 0) {
    sigaction(SIGINT, &keep[0], NULL);
    sigaction(SIGQUIT, &keep[1], NULL);
    signal(SIGPIPE, SIG_DFL);
    close(report[0]);
    /* The pipe closes when the program begins, or tells why it did not. */
    if (fcntl(report[1], F_SETFD, FD_CLOEXEC) == 0 &&
        set_environment(plan, library))
      execvp(plan->program[0], plan->program);
    else
      errno = ENOMEM;
    int why = errno;
    ssize_t n = write(report[1], &why, sizeof why);
    _exit(n > 0 ? EXIT_CANNOT_RUN : EXIT_NO_PROGRAM);
  }
  close(report[1]);
  if (child < 0) {
    *error = errno;
    close(report[0]);
    return -1;
  }
  for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
    struct sigaction pass = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    sigaction(passed[i], &pass, NULL);
  }
  *error = 0;
  ssize_t got = read(report[0], error, sizeof *error);
  close(report[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (got == (ssize_t)sizeof *error)
    return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* -- What came out -------------------------------------------------------------- */

/* A session replaces a file when it has really begun, by another one. */
static bool replaced(const struct plan *plan)
{
  struct stat now;
  return !lstat(plan->path, &now) &&
         (now.st_ino != plan->before.st_ino ||
          now.st_mtim.tv_sec != plan->before.st_mtim.tv_sec ||
          now.st_mtim.tv_nsec != plan->before.st_mtim.tv_nsec);
}

/* Files of children that have come since the program was started. */
static size_t children_of(const struct plan *plan)
{
  char pattern[PATH_MAX + 16];
  glob_t found;
  struct stat st;
  size_t count = 0, len = strlen(plan->path), at = 0;
  for (size_t i = 0; i < len && at + 12 < sizeof pattern; i++) {
    if (strchr("*?[\\", plan->path[i]))
      pattern[at++] = '\\';
    pattern[at++] = plan->path[i];
  }
  memcpy(pattern + at, ".[0-9]*", 8);
  if (glob(pattern, 0, NULL, &found))
    return 0;
  for (size_t i = 0; i < found.gl_pathc; i++)
    count += !stat(found.gl_pathv[i], &st) &&
             (st.st_mtim.tv_sec > plan->began.tv_sec ||
              (st.st_mtim.tv_sec == plan->began.tv_sec &&
               st.st_mtim.tv_nsec >= plan->began.tv_nsec));
  globfree(&found);
  return count;
}

static bool tell(const struct plan *plan)
{
  size_t children = plan->children ? children_of(plan) : 0;
  if (children)
    ljp_command_note("record", "%zu of its children are in %s.PID", children,
                     plan->path);
  if (children && !replaced(plan))
    return true;
  static struct ljp_reader reader;
  const struct ljp_event *event;
  enum ljp_status status = LJP_ERR_IO;
  if (!replaced(plan)) {
    ljp_command_error(
        "record",
        "nothing was recorded: %s opened no LuaJIT VM by our "
        "libluajit-5.1.so.2 (is LuaJIT linked into it statically?)",
        plan->program[0]);
    return false;
  }
  status = ljp_reader_open(&reader, plan->path);
  while (!status && !(status = ljp_reader_next(&reader, &event)) &&
         event->what != LJP_EVENT_FINISH)
    ;
  if (status) {
    ljp_command_error("record", "%s: %s", plan->path, reader.error);
  } else {
    uint64_t lost = 0;
    for (size_t i = 0; i < reader.tally.loss_count; i++)
      if (!reader.tally.losses[i].overrun)
        lost += reader.tally.losses[i].count;
    ljp_command_error("record",
                      "%" PRIu64 " samples, %" PRIu64 " memory events, %" PRIu64
                      " lost%s: %s",
                      reader.tally.read[LJP_REC_SAMPLES],
                      reader.tally.read[LJP_REC_MEM], lost,
                      reader.finish.clean && !reader.finish.gaps
                          ? ""
                          : ", not closed cleanly",
                      plan->path);
  }
  ljp_reader_fini(&reader);
  return !status;
}

int ljp_command_record(int argc, char **argv)
{
  static struct plan plan;
  char library[PATH_MAX];
  int error;
  int code = read_options(&plan, argc, argv);
  if (code < 0)
    code = find_library(library);
  if (code < 0)
    code = find_output(&plan);
  if (code >= 0)
    return code;
  clock_gettime(CLOCK_REALTIME_COARSE, &plan.began);
  code = run(&plan, library, &error);
  if (code < 0) {
    ljp_command_error("record", "%s: %s", plan.program[0], strerror(error));
    return error == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN;
  }
  bool recorded = tell(&plan);
  if (recorded && plan.embed && replaced(&plan)) {
    char *again[] = {"embed", plan.path, NULL};
    recorded = ljp_command_embed(2, again) == LJP_EXIT_OK;
  }
  return code ? code : recorded ? LJP_EXIT_OK : LJP_EXIT_FAILED;
}
