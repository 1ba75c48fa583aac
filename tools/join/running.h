/*
** Running: the programs on this machine that run our library, by what it has in
** their memory (src/base/shown.h). Stops nothing. One thread.
*/
#ifndef LJP_TOOLS_RUNNING_H
#define LJP_TOOLS_RUNNING_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/shown.h"

struct ljp_running {
  pid_t pid;
  const char *state; /* A word: joins, old, newer, stopped, traced. */
  bool known;        /* What follows could be read. */
  uint32_t vms, sessions;
  int32_t client; /* As in struct ljp_shown. */
  char version[sizeof ljp_shown.version];
  char command[200];
};

/* Calls take for each of them, by number. *hidden: processes that could not be
** looked at. Returns 0, or why there is no /proc. */
int ljp_running_each(void (*take)(void *ctx, const struct ljp_running *program),
                     void *ctx, unsigned *hidden);

#endif
