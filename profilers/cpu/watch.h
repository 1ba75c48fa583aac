/*
** The watcher of a wall-clock session: a thread of ours that looks at the
** session's threads, so that waiting threads have samples, too. The watcher
** only reads: no signal reaches a waiting thread, so no wait ends early. RFC 2
** has the rules.
**
** A look first reads the thread's CPU clock. If it has not advanced, the thread
** has not run since the last look, and is where it was. Otherwise the
** look asks the kernel for the thread's place, walks its stack from there, and
** reads the clock again: if it has advanced, the place is discarded.
**
** The life cycle calls these functions under the lock of the CPU profiler,
** except ljp_watch_round().
*/
#ifndef LJP_WATCH_H
#define LJP_WATCH_H

#include "profilers/cpu/sampler.h"

struct ljp_session;

/* Starts the watcher. period_ns: between two looks at a thread, at least.
** most: the share of a CPU that it may use, at most; 0: no limit. Returns an
** errno, or 0. */
int ljp_watch_start(struct ljp_session *session, uint64_t period_ns,
                    double most);
/* Ends it. All threads must have been dropped. */
void ljp_watch_stop(void);

/* Begins to watch the thread of a sampler, whose accounts have just begun.
** Returns an errno, or 0. */
int ljp_watch_add(struct ljp_sampler *s);
/* The counts of a watched thread so far. */
struct ljp_sampler_counts *ljp_watch_counts(struct ljp_sampler *s);

/* Looks for the last time, at *until_ns, and reports what is left. why: the
** reason for which no sample stands for the rest of the time. Returns the
** counts. */
struct ljp_sampler_counts *ljp_watch_end(struct ljp_sampler *s,
                                         enum ljp_unsampled why,
                                         uint64_t *until_ns);
/* Forgets the thread. */
void ljp_watch_drop(struct ljp_sampler *s);

/* Begins each round of the writer, with no lock held. What was found before a
** prototype was freed is then in a ring, before the writer notes which
** prototypes have been freed (RFC 3). Also tells of time whose place could not
** be read. */
void ljp_watch_round(void);

/* CPU time of the watcher so far. */
uint64_t ljp_watch_cpu_ns(void);

/* In a fork's child, which has no watcher: forgets all threads. */
void ljp_watch_forked(bool recording);

#endif
