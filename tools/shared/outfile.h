/*
** Output files: written aside, in the same folder, and renamed when whole, so
** that nobody ever sees half of one; an existing file is kept unless forced.
** "-" is standard output; devices and pipes are written as they are.
** One output file at a time (a signal that ends the command removes it).
*/
#ifndef LJP_TOOLS_OUTFILE_H
#define LJP_TOOLS_OUTFILE_H

#include <stdbool.h>

struct ljp_outfile {
  int fd;              /* Write here. */
  const char *command; /* For error lines. */
  const char *name;    /* As the user called it. */
  char *path, *temp;   /* NULL: not renamed. */
  bool force;
};

/* -1: go on with out->fd; else the exit code, the error having been told. */
int ljp_outfile_open(struct ljp_outfile *out, const char *command,
                     const char *path, bool force);

/* Puts the file in its place. error: errno of an earlier write that failed,
** or 0. Returns the exit code, errors having been told; a reader of standard
** output that went away is none. */
int ljp_outfile_commit(struct ljp_outfile *out, int error);

/* Leaves nothing behind. */
void ljp_outfile_abort(struct ljp_outfile *out);

#endif
