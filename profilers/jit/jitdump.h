/*
** Jitdump: compiled code in files for other profilers. jit-PID.dump has perf's
** jitdump format, version 1 (code, lines, times of CLOCK_MONOTONIC);
** /tmp/perf-PID.map has addresses and names. See doc/guide/perf.md.
**
** The thread that has compiled a trace writes it immediately, because the code
** may be freed soon. If a client has sent the files, their descriptors are in a
** table that this thread does not have: then the records wait in memory until the
** session's writer writes them. No signal handler may call this. Calls must not overlap:
** either the caller holds the lock of trace_events.c, or no trace can be made
** yet.
*/
#ifndef LJP_JITDUMP_H
#define LJP_JITDUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/session/failure.h"

/* Begins both files, or continues those of an earlier session of this process.
** fds: the dump and the map of a client, which stay the caller's; or NULL. On
** failure neither is open. */
enum ljp_status ljp_jitdump_open(const int *fds, struct ljp_failure *why);
bool ljp_jitdump_is_open(void);
/* Do records wait for the writer? */
bool ljp_jitdump_waits(void);
/* On the writer's thread, what waits is written in three steps, so that no thread
** waits for the client's disk: take it (end: and end the files), write it without
** the lock, and say so. The last step returns NULL, or the text of an error,
** after which no trace is added. */
bool ljp_jitdump_take(bool end);
int ljp_jitdump_write(void);
const char *ljp_jitdump_wrote(int error);
/* Why files of a client are not complete; NULL: they are. */
const char *ljp_jitdump_error(void);

/* Ends the files. undo: the session did not start; new files are removed, and
** others are as before. */
void ljp_jitdump_close(bool undo);

/* Adds a trace. NULL, or the text of an error, after which no trace is
** added. */
const char *ljp_jitdump_add(uint64_t id);

/* In a fork's child: the files are the parent's. */
void ljp_jitdump_forked(void);

#endif
