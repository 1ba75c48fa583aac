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
  "the number or the name (USR2, RTMIN+5) of a signal that a program may "     \
  "handle"

/* "USR1"; "?": the number has no name. */
const char *ljp_signal_name(int number);

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

/* The digits of the text as a number; -1: it is none. */
static inline int ljp_signal_digits(const char *text)
{
  int number = 0;
  if (!*text || strlen(text) > 4 || text[strspn(text, "0123456789")])
    return -1;
  while (*text)
    number = 10 * number + (*text++ - '0');
  return number;
}

/* name: "PROF", "SIGPROF", "27", "RTMIN+5", "RTMAX-2". 0: there is no such
** signal. */
static inline int ljp_signal_named(const char *name)
{
  int number = ljp_signal_digits(name);
  if (number >= 0)
    return number;
  if (strncmp(name, "SIG", 3) == 0)
    name += 3;
  if (strncmp(name, "RTMIN", 5) == 0 || strncmp(name, "RTMAX", 5) == 0) {
    bool least = name[3] == 'I';
    int more = !name[5]                         ? 0
               : name[5] == (least ? '+' : '-') ? ljp_signal_digits(name + 6)
                                                : -1;
    number = least ? SIGRTMIN + more : SIGRTMAX - more;
    return more >= 0 && number >= SIGRTMIN && number <= SIGRTMAX ? number : 0;
  }
  for (int i = 1; i < 32; i++)
    if (strcmp(ljp_signal_name(i), name) == 0)
      return i;
  return 0;
}

#endif
