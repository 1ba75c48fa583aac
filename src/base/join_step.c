/*
** Faults at the steps of joining, for tests; only in debug builds.
** LJPROF_JOIN_STEP=NAME:ACTION[,NAME:ACTION...] says what happens when this
** process reaches the step NAME: kill, stop, exit, exec, fork, sleep=MS, or await,
** which makes the file "reached" and goes on when there is a file "passed".
*/
#include "src/base/join.h"

#ifdef LJP_DEBUG

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void step_await(void)
{
  enum { TURNS = 6000, TURN_US = 10000 };
  int fd = open("reached", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (fd >= 0)
    close(fd);
  for (int i = 0; i < TURNS && access("passed", F_OK); i++)
    usleep(TURN_US);
}

static void step_act(const char *action)
{
  static const char sleeping[] = "sleep=";
  if (strncmp(action, "kill", 4) == 0) {
    kill(getpid(), SIGKILL);
  } else if (strncmp(action, "stop", 4) == 0) {
    raise(SIGSTOP);
  } else if (strncmp(action, "exit", 4) == 0) {
    exit(0);
  } else if (strncmp(action, "exec", 4) == 0) {
    execl("/bin/sleep", "sleep", "30", (char *)NULL);
  } else if (strncmp(action, "await", 5) == 0) {
    step_await();
  } else if (strncmp(action, "fork", 4) == 0) {
    pid_t child = fork();
    if (child == 0)
      _exit(0);
    waitpid(child, NULL, 0);
  } else if (strncmp(action, sleeping, sizeof sleeping - 1) == 0) {
    usleep((useconds_t)strtoul(action + sizeof sleeping - 1, NULL, 10) * 1000);
  }
}

void ljp_join_step(const char *name)
{
  const char *at = secure_getenv("LJPROF_JOIN_STEP");
  size_t len = strlen(name);
  while (at && *at) {
    if (strncmp(at, name, len) == 0 && at[len] == ':')
      step_act(at + len + 1);
    at = strchr(at, ',');
    at += at != NULL;
  }
}

#else
typedef int ljp_join_step_unused; /* a file is not empty */
#endif
