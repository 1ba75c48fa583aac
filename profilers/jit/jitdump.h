/*
** Jitdump: compiled code in files for other profilers. jit-PID.dump has perf's
** jitdump format, version 1 (code, lines, times of CLOCK_MONOTONIC);
** /tmp/perf-PID.map has addresses and names. See doc/guide/perf.md.
**
** The thread that has compiled a trace writes it immediately, because the code
** may be freed soon. No signal handler may call this. Calls must not overlap:
** either the caller holds the lock of trace_events.c, or no trace can be made
** yet.
*/
#ifndef LJP_JITDUMP_H
#define LJP_JITDUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/session/failure.h"

/* Begins both files, or continues those of an earlier session of this process.
** On failure neither is open. */
enum ljp_status ljp_jitdump_open(struct ljp_failure *why);
bool ljp_jitdump_is_open(void);

/* Ends the files. undo: the session did not start; new files are removed, and
** others are as before. */
void ljp_jitdump_close(bool undo);

/* Adds a trace. NULL, or the text of an error, after which no trace is
** added. */
const char *ljp_jitdump_add(uint64_t id);

/* In a fork's child: the files are the parent's. */
void ljp_jitdump_forked(void);

#endif
