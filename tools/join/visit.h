/*
** Visit: makes a thread of a process run the library's entry (RFC 8). It stops
** one thread for a short time, when that is safe, and leaves everything else
** alone.
**
** A child process does the visit. When it ends, the kernel releases every thread
** that it traced. It also ends if the client dies.
*/
#ifndef LJP_TOOLS_VISIT_H
#define LJP_TOOLS_VISIT_H

#include "tools/join/filter.h"
#include "tools/join/find.h"

struct ljp_visit {
  bool good;
  int fd;            /* the client's end, in the process's table */
  uint64_t pause_ns; /* the thread was stopped, or in the entry */
  uint64_t held_ns;  /* threads that could not be used were stopped, in all */
  uint64_t stops; /* how often a thread was stopped until one could be used */
  pid_t tid;      /* the thread that was chosen */
  enum ljp_filters filters; /* of the threads that have any */
  char why[800];            /* if it is not good */
};

/* The process has been examined (examine.h), after its memory was opened. */
void ljp_visit_make(struct ljp_visit *visit, pid_t pid, int memory,
                    const struct ljp_join_place *note,
                    const struct ljp_maps *maps);

#endif
