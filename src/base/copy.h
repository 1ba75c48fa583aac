/*
** Copies of this process by a raw clone(), for which no handlers of fork() run.
** A copy has one thread, and memory as its parent's threads left it: locks may
** be taken that nobody will release. Each part that has such locks registers a
** function that makes them new.
**
** Any thread may call this; no signal handler may.
*/
#ifndef LJP_COPY_H
#define LJP_COPY_H

/* For one function of each part; parts that others use come first. Takes no
** memory. Only before the process has a thread of ours, or under a lock. */
void ljp_copy_on_notice(void (*copied)(void));

/* From now on a copy can be told from this process. fork() calls it again in a
** child. */
void ljp_copy_watch(void);

/* If this process is a copy and has not noticed that yet: calls the registered
** functions. */
void ljp_copy_notice(void);

#endif
