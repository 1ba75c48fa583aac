/*
** Nameless: a file for a recording that the user wants to see, not to keep. It
** has no name, so nothing is left of it, whatever ends its readers and its
** writer.
*/
#ifndef LJP_TOOLS_NAMELESS_H
#define LJP_TOOLS_NAMELESS_H

#include <limits.h>

enum { LJP_NAMELESS_BYTES = PATH_MAX };

struct ljp_nameless {
  int fd;
  char shown[LJP_NAMELESS_BYTES + 32]; /* for messages: where it is */
  char path[32];                       /* opens it once more, in this process
                                       ** and its children */
};

/* Makes one in TMPDIR, /var/tmp, /tmp or, if none of them can have such files,
** in memory. Its bytes can be freed from the front. -1: made; else the exit code
** after reporting why not. */
int ljp_nameless_open(struct ljp_nameless *file, const char *command);

#endif
