/*
** Runs a command as a child whose output is dropped, and measures what it used.
** For benchmark programs; a run that fails ends them.
*/
#ifndef LJP_BENCH_CHILD_H
#define LJP_BENCH_CHILD_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* CPU seconds that the child used. */
static inline double child_seconds(const struct rusage *used)
{
  return (double)used->ru_utime.tv_sec + (double)used->ru_stime.tv_sec +
         ((double)used->ru_utime.tv_usec + (double)used->ru_stime.tv_usec) *
             1e-6;
}

/* argv[0] is the path of the command. */
static inline void child_run(char *const argv[], struct rusage *used)
{
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    execv(argv[0], argv);
    _exit(127);
  }
  if (pid < 0 || wait4(pid, &status, 0, used) != pid || status != 0) {
    fprintf(stderr, "bench: error: %s failed\n", argv[0]);
    exit(1);
  }
}

/* The path of the command ljprof, which stands beside this program. */
static inline void child_ljprof(char path[4200])
{
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) {
    fprintf(stderr, "bench: error: /proc is not readable\n");
    exit(1);
  }
  self[n] = '\0';
  *strrchr(self, '/') = '\0';
  snprintf(path, 4200, "%s/ljprof", self);
}

#endif
