/*
** In a build that counts the lines which run, part of each program: a program whose files
** are limited in size writes no counts. The limit would damage the file that has the counts
** of all earlier programs.
*/
#include <stdlib.h>
#include <sys/resource.h>

static void limit_look(void)
{
  struct rlimit limit;
  if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
    setenv("GCOV_PREFIX", "/dev/null", 1);
}

/* What is registered by atexit() runs before the counts are written. */
static __attribute__((constructor)) void limit_register(void)
{
  atexit(limit_look);
}
