/*
** Recording: whether a stream's file is still being written. Only /proc is
** asked: nothing waits, and the process notices nothing. Any thread.
*/
#ifndef LJP_PARSERS_RECORDING_H
#define LJP_PARSERS_RECORDING_H

#include "parsers/stream/item.h"

/* Whether a file that has no end is still being written. fd: the file; bytes:
** how many of it were read; process: the one that began the session, NULL: not
** known.
**
** True if the file has grown since it was read, or if the process has the file
** open for writing and is older than the session: then its number cannot have
** passed to another process. False if this cannot be known: the file is a pipe, or
** the process belongs to another user or another PID namespace. */
bool ljp_recording(const struct ljp_rec_process *process, int fd,
                   uint64_t bytes);

#endif
