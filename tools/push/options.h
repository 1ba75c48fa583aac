/*
** What the command line of the command says.
*/
#ifndef LJP_TOOLS_PUSH_OPTIONS_H
#define LJP_TOOLS_PUSH_OPTIONS_H

#include "tools/push/push.h"

struct ljp_push_command {
  const char *url, *follow, *spool;
  const char **files;
  unsigned file_count;
  uint64_t budget, look_ms;
  const char **words; /* To be freed. */
};

/* Fills push->options, push->http and c. -1, or the exit code. */
int ljp_push_options(int argc, char **argv, struct ljp_push *push,
                     struct ljp_push_command *c);

#endif
