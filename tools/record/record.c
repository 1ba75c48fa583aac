/*
** ljprof record: runs a program with our library in place of its
** libluajit-5.1.so.2. A session begins with its first VM.
**
** The program finds our library by LD_LIBRARY_PATH or, where its own search
** path comes before that, by LD_PRELOAD (program.c, loader.c), and what to
** record by LJPROF_RECORD (see profilers/api/autostart.c). It keeps its
** standard input and output, its process group and its exit status. This
** process waits for it and then reports on stderr what was recorded.
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

#include "src/base/preload.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

/* -- The program
** ---------------------------------------------------------------- */

/* Our library is in ../lib of this command's folder, both in the build folder
** and when installed. */
static int record_find_library(struct ljp_record_plan *plan)
{
  char self[PATH_MAX - 64], probe[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = '\0';
  char *slash = strrchr(self, '/');
  if (slash) {
    *slash = '\0';
    snprintf(plan->luajit, sizeof plan->luajit, "%s/luajit", self);
    snprintf(probe, sizeof probe, "%s/../lib/" LJP_LIBRARY_NAME, self);
    if (!access(probe, R_OK)) {
      *strrchr(probe, '/') = '\0';
      if (!realpath(probe, plan->folder))
        snprintf(plan->folder, sizeof plan->folder, "%s", probe);
      return -1;
    }
  }
  ljp_command_error("record", "our libluajit-5.1.so.2 is not in '%s/../lib'",
                    self);
  return LJP_EXIT_FAILED;
}

static bool record_set_environment(const struct ljp_record_plan *plan)
{
  char text[PATH_MAX + 512];
  return ljp_record_set_loader(plan) &&
         ljp_record_request(plan, text, sizeof text) &&
         !setenv("LJPROF_RECORD", text, 1);
}

static pid_t record_child;

static void record_pass_signal(int signal)
{
  kill(record_child, signal);
}

/* The terminal sends these signals to the program, too, and so does who sends
** them to the whole group. Who sends one to this process alone, such as a
** service manager, means the program. */
static void record_pass_alone(int signal, siginfo_t *info, void *context)
{
  int saved = errno;
  (void)context;
  /* A sender in another process namespace has number 0. */
  if (info->si_code <= 0 &&
      (!info->si_pid || getpgid(info->si_pid) != getpgrp()))
    kill(record_child, signal);
  errno = saved;
}

static const struct passed_signal {
  int number;
  bool from_terminal;
} record_passed[] = {{SIGINT, true},  {SIGQUIT, true},  {SIGTERM, false},
                     {SIGHUP, false}, {SIGUSR1, false}, {SIGUSR2, false}};

enum { PASSED_COUNT = sizeof record_passed / sizeof *record_passed };

static void record_pass_signals(struct sigaction before[PASSED_COUNT])
{
  for (int i = 0; i < PASSED_COUNT; i++) {
    struct sigaction pass = {.sa_flags = SA_RESTART};
    if (record_passed[i].from_terminal) {
      pass.sa_sigaction = record_pass_alone;
      pass.sa_flags |= SA_SIGINFO;
    } else {
      pass.sa_handler = record_pass_signal;
    }
    sigaction(record_passed[i].number, NULL, &before[i]);
    /* What this process ignores, the program ignores, too. */
    if (before[i].sa_handler != SIG_IGN)
      sigaction(record_passed[i].number, &pass, NULL);
  }
}

static void record_take_signals(const struct sigaction before[PASSED_COUNT])
{
  for (int i = 0; i < PASSED_COUNT; i++)
    sigaction(record_passed[i].number, &before[i], NULL);
}

/* What SIGCHLD did when this process began: who started it may ignore the
** signal. Then the kernel would keep no exit status of the program. */
static struct sigaction record_sigchld;

static void record_await_children(void)
{
  struct sigaction usual = {.sa_handler = SIG_DFL};
  sigaction(SIGCHLD, &usual, &record_sigchld);
}

/* In the child process. */
static void record_execute(const struct ljp_record_plan *plan, int report)
{
  signal(SIGPIPE, SIG_DFL);
  sigaction(SIGCHLD, &record_sigchld, NULL);
  /* The pipe is closed when the program begins, or carries the errno of
  ** exec. */
  if (fcntl(report, F_SETFD, FD_CLOEXEC) == 0 && record_set_environment(plan))
    execvp(plan->program[0], plan->program);
  else
    errno = ENOMEM;
  int why = errno;
  ssize_t n = write(report, &why, sizeof why);
  _exit(n > 0 ? LJP_EXIT_CANNOT_RUN : LJP_EXIT_NO_PROGRAM);
}

/* Returns the exit code of the program as a shell reports it; -1: it did not
** run. */
static int record_run(const struct ljp_record_plan *plan, int *error)
{
  struct sigaction before[PASSED_COUNT];
  sigset_t all, mask;
  siginfo_t info;
  int status, report[2];
  if (pipe(report)) {
    *error = errno;
    return -1;
  }
  /* A signal waits until there is a program to pass it to. */
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &mask);
  record_child = fork();
  if (record_child == 0) {
    sigprocmask(SIG_SETMASK, &mask, NULL);
    close(report[0]);
    record_execute(plan, report[1]);
  }
  *error = record_child < 0 ? errno : 0;
  if (record_child > 0)
    record_pass_signals(before);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  close(report[1]);
  if (record_child < 0) {
    close(report[0]);
    return -1;
  }
  ssize_t got = read(report[0], error, sizeof *error);
  close(report[0]);
  /* The program's number stays its own as long as a signal is passed to it. */
  while (waitid(P_PID, (id_t)record_child, &info, WEXITED | WNOWAIT) &&
         errno == EINTR)
    ;
  /* The signals end this process again, whatever it does from now on. */
  record_take_signals(before);
  while (waitpid(record_child, &status, 0) < 0 && errno == EINTR)
    ;
  if (got == (ssize_t)sizeof *error)
    return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int ljp_command_record(int argc, char **argv)
{
  static struct ljp_record_plan plan;
  int error;
  int code = ljp_record_options(&plan, argc, argv);
  record_await_children();
  if (code < 0 && plan.pid)
    return ljp_record_joined(&plan);
  if (code < 0)
    code = record_find_library(&plan);
  if (code < 0)
    code = ljp_record_look_up(&plan);
  if (code < 0)
    code = ljp_record_find_output(&plan);
  if (code < 0)
    code = ljp_record_find_program(&plan);
  if (code >= 0)
    return code;
  clock_gettime(CLOCK_REALTIME_COARSE, &plan.began);
  plan.began_mono_ns = ljp_record_now();
  if (ljp_record_duration(&plan) > 0)
    plan.until_ns =
        plan.began_mono_ns + (uint64_t)(ljp_record_duration(&plan) * 1e9);
  ljp_record_listen(&plan);
  code = record_run(&plan, &error);
  plan.ran_on = plan.until_ns && ljp_record_now() >= plan.until_ns;
  if (code < 0) {
    bool there = error == ENOENT && strchr(plan.program[0], '/') &&
                 !access(plan.program[0], F_OK);
    ljp_command_error("record", "%s: %s%s", plan.program[0],
                      there ? "the file is there, but not the interpreter or "
                              "loader that it names: "
                            : "",
                      strerror(error));
    return error == ENOENT ? LJP_EXIT_NO_PROGRAM : LJP_EXIT_CANNOT_RUN;
  }
  plan.program_pid = record_child;
  bool recorded = ljp_record_outcome(&plan);
  return code ? code : recorded ? LJP_EXIT_OK : LJP_EXIT_FAILED;
}
