/*
** What every profiler takes from the host process: this library stays loaded,
** reads may fault, and unwind tables exist that follow dlopen, dlclose and
** fork. The tables are one set for the process, made by the first session and
** never freed: a late signal handler may still use them.
**
** Any thread may call this; no signal handler may.
*/
#ifndef LJP_HOST_H
#define LJP_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "profilers/session/failure.h"
#include "profilers/unwind/unwind.h"

/* Makes the host ready for walks: installs the fork handlers, pins the library,
** enables fault-safe reads and makes the unwind tables or brings them up to
** date. Needs no lock. Each success is paired with one ljp_host_release(). */
enum ljp_status ljp_host_prepare(struct ljp_failure *why);
/* Gives up the fault-safe reads; everything else stays. */
void ljp_host_release(void);

/* Keeps the library loaded from now on: threads and handlers of ours may run
** long after a dlclose(). */
void ljp_host_pin(void);

/* The unwind tables; NULL before the first ljp_host_prepare(). */
struct ljp_unwind *ljp_host_tables(void);

/* In a round of a writer: brings the tables up to date. Does nothing if another
** thread is updating them. */
enum ljp_status ljp_host_poll_tables(void);

/* While a stop waits for a writer (begin ... end), that writer compiles no
** unwind tables. */
void ljp_host_hurry(bool begin);

/* In a fork's child: the tables are as they were in the parent. */
void ljp_host_forked(void);
/* In a fork's child: the thread id that this thread had in the parent. */
pid_t ljp_host_tid_before_fork(void);

#endif
