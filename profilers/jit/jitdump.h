/*
** Compiled code for other profilers: jit-PID.dump (perf's jitdump format,
** version 1: code, lines, times of CLOCK_MONOTONIC) and /tmp/perf-PID.map
** (addresses and names). doc/guide/perf.md.
**
** Written by the thread that has compiled, when the code is ready: later it may
** be gone. Nothing here is for signal handlers; calls must not overlap
** (trace_events.c's lock, or before anybody listens).
*/
#ifndef LJP_JITDUMP_H
#define LJP_JITDUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/session/failure.h"

/* Begins both files, or goes on with those of an earlier session of this
** process. Neither is opened if one cannot be. */
enum ljp_status ljp_jitdump_open(struct ljp_failure *why);
bool ljp_jitdump_is_open(void);

/* Ends the files. undo: nothing came of the session; new files are removed. */
void ljp_jitdump_close(bool undo);

/* Adds a trace. NULL, or what went wrong: it is the last one then. */
const char *ljp_jitdump_add(uint64_t id);

/* In a fork's child: the files are the parent's. */
void ljp_jitdump_forked(void);

#endif
