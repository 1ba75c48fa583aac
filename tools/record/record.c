/*
** ljprof record: runs a program with our library in place of its
** libluajit-5.1.so.2. A session begins with its first VM.
**
** The program finds our library by LD_LIBRARY_PATH, and what to record by
** LJPROF_RECORD (see profilers/api/autostart.c). It keeps its standard input
** and output, its process group and its exit status. This process waits for it
** and then reports on stderr what was recorded.
*/
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/target.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

enum { EXIT_CANNOT_RUN = 126, EXIT_NO_PROGRAM = 127 };

/* -- Output file
** ---------------------------------------------------------------- */

/* The library follows links, and puts the other files of the recording beside
** the file that it finds. */
static void record_follow_links(struct ljp_record_plan *plan)
{
  struct ljp_target found;
  if (ljp_target_find(&found, plan->path))
    return; /* The library says what is wrong. */
  close(found.dir);
  if (!found.there || S_ISREG(found.st.st_mode))
    snprintf(plan->path, sizeof plan->path, "%s", found.path);
  free(found.path);
}

static int record_find_output(struct ljp_record_plan *plan)
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
    ljp_command_error("record", "cannot find the current directory: %s",
                      strerror(errno));
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
    plan->before = (struct stat){0};
  } else if (S_ISDIR(plan->before.st_mode) || !plan->force) {
    ljp_command_error("record", "%s %s", plan->path,
                      S_ISDIR(plan->before.st_mode)
                          ? "is a directory"
                          : "exists (use --force to replace it)");
    return LJP_EXIT_FAILED;
  }
  record_follow_links(plan);
  if (plan->before.st_ino && lstat(plan->path, &plan->before))
    plan->before = (struct stat){0};
  /* plan->began is still 0: segments of any age count. */
  if (ljp_record_rotates(plan) && !plan->force && ljp_record_segments(plan)) {
    ljp_command_error("record",
                      "%s.s1 or another segment exists (use --force to "
                      "replace them)",
                      plan->path);
    return LJP_EXIT_FAILED;
  }
  return -1;
}

/* -- The program
** ---------------------------------------------------------------- */

/* Our library is in ../lib of this command's folder, both in the build folder
** and when installed. */
static int record_find_library(char folder[PATH_MAX])
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

static bool record_set_environment(const struct ljp_record_plan *plan,
                                   const char *library)
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
  return !failed && ljp_record_request(plan, text, sizeof text) &&
         !setenv("LJPROF_RECORD", text, 1);
}

static pid_t record_child;

static void record_pass_signal(int signal)
{
  kill(record_child, signal);
}

/* Returns the exit code of the program as a shell reports it; -1: it did not
** run. */
static int record_run(const struct ljp_record_plan *plan, const char *library,
                      int *error)
{
  static const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  struct sigaction ignore = {.sa_handler = SIG_IGN}, keep[2];
  struct sigaction before[sizeof passed / sizeof *passed];
  int status, report[2];
  if (pipe(report)) {
    *error = errno;
    return -1;
  }
  /* The terminal sends these signals to the program, too. */
  sigaction(SIGINT, &ignore, &keep[0]);
  sigaction(SIGQUIT, &ignore, &keep[1]);
  record_child = fork();
  if (record_child == 0) {
    sigaction(SIGINT, &keep[0], NULL);
    sigaction(SIGQUIT, &keep[1], NULL);
    signal(SIGPIPE, SIG_DFL);
    close(report[0]);
    /* The pipe is closed when the program begins, or carries the errno of
    ** exec. */
    if (fcntl(report[1], F_SETFD, FD_CLOEXEC) == 0 &&
        record_set_environment(plan, library))
      execvp(plan->program[0], plan->program);
    else
      errno = ENOMEM;
    int why = errno;
    ssize_t n = write(report[1], &why, sizeof why);
    _exit(n > 0 ? EXIT_CANNOT_RUN : EXIT_NO_PROGRAM);
  }
  close(report[1]);
  if (record_child < 0) {
    *error = errno;
    close(report[0]);
    return -1;
  }
  for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
    struct sigaction pass = {.sa_handler = record_pass_signal,
                             .sa_flags = SA_RESTART};
    sigaction(passed[i], &pass, &before[i]);
  }
  *error = 0;
  ssize_t got = read(report[0], error, sizeof *error);
  close(report[0]);
  while (waitpid(record_child, &status, 0) < 0 && errno == EINTR)
    ;
  /* The signals end this process again, whatever it does from now on. */
  sigaction(SIGINT, &keep[0], NULL);
  sigaction(SIGQUIT, &keep[1], NULL);
  for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
    sigaction(passed[i], &before[i], NULL);
  if (got == (ssize_t)sizeof *error)
    return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int ljp_command_record(int argc, char **argv)
{
  static struct ljp_record_plan plan;
  char library[PATH_MAX];
  int error;
  int code = ljp_record_options(&plan, argc, argv);
  if (code < 0)
    code = record_find_library(library);
  if (code < 0)
    code = record_find_output(&plan);
  if (code >= 0)
    return code;
  clock_gettime(CLOCK_REALTIME_COARSE, &plan.began);
  code = record_run(&plan, library, &error);
  if (code < 0) {
    ljp_command_error("record", "%s: %s", plan.program[0], strerror(error));
    return error == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN;
  }
  bool recorded = ljp_record_outcome(&plan);
  return code ? code : recorded ? LJP_EXIT_OK : LJP_EXIT_FAILED;
}
