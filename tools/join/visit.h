/*
** Visit: makes a thread of a process run the library's entry (RFC 8). It stops
** one thread for a moment, at a moment that is safe, and leaves everything else
** alone.
**
** A visit is done by a child process, so that the kernel takes all back that
** ptrace has done if the client dies, and when the visit is over.
*/
#ifndef LJP_TOOLS_VISIT_H
#define LJP_TOOLS_VISIT_H

#include "tools/join/find.h"

struct ljp_visit {
  bool good;
  int fd;            /* the client's end, in the process's table */
  uint64_t pause_ns; /* the thread was stopped, or in the entry */
  uint64_t stops;    /* threads that were stopped, until a moment was safe */
  pid_t tid;         /* the thread that was chosen */
  char why[800];     /* if it is not good */
};

/* The process has been examined (examine.h), after its memory was opened. */
void ljp_visit_make(struct ljp_visit *visit, pid_t pid, int memory,
                    const struct ljp_join_place *note,
                    const struct ljp_maps *maps);

#endif
