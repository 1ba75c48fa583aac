/*
** The signals that a user may choose for the profiler, by number or name, with
** the option signal= or `ljprof record --signal`.
*/
#ifndef LJP_SIGNALS_H
#define LJP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <string.h>

#define LJP_SIGNAL_WANTS                                                       \
  "the number or the name of a signal that a program may handle"

/* Not signals that report a fault or cannot be caught. */
static inline bool ljp_signal_usable(int number)
{
  switch (number) {
  case SIGKILL:
  case SIGSTOP:
  case SIGSEGV:
  case SIGBUS:
  case SIGILL:
  case SIGFPE:
  case SIGTRAP:
  case SIGABRT:
    return false;
  }
  /* libc keeps the first two after 31 for itself. */
  return number > 0 && number <= SIGRTMAX &&
         (number < 32 || number >= SIGRTMIN);
}

/* name: "PROF" or "SIGPROF". 0: there is no such signal. */
static inline int ljp_signal_named(const char *name)
{
  if (strncmp(name, "SIG", 3) == 0)
    name += 3;
  for (int i = 1; i < 32; i++) {
    const char *known = sigabbrev_np(i);
    if (known && strcmp(known, name) == 0)
      return i;
  }
  return 0;
}

#endif
