/*
** Outfile: an output file that appears only when it is complete (newfile.h). An
** existing file is kept unless force is set; then the new one takes over its
** mode and owner. "-" is standard output; devices and pipes are written
** directly. Only one output file may be open at a time: if a signal ends the
** command, its handler removes the temporary file, where one is needed.
*/
#ifndef LJP_TOOLS_OUTFILE_H
#define LJP_TOOLS_OUTFILE_H

#include <stdbool.h>

#include "src/base/newfile.h"

struct ljp_outfile {
  int fd;                 /* Write to this descriptor. */
  const char *command;    /* For error messages. */
  const char *name;       /* The path as the user wrote it. */
  struct ljp_newfile new; /* Hidden: not written directly. */
  bool force;
};

/* -1: go on and write to out->fd; else the exit code after reporting the
** error. */
int ljp_outfile_open(struct ljp_outfile *out, const char *command,
                     const char *path, bool force);

/* Completes the file. error: errno of an earlier failed write, or 0. Returns
** the exit code after reporting the error. A closed pipe on standard output is
** not an error. */
int ljp_outfile_commit(struct ljp_outfile *out, int error);

/* Discards the output and frees everything. */
void ljp_outfile_abort(struct ljp_outfile *out);

#endif
