/*
** What becomes of compiled code, into the stream of the CPU profiler's session:
** traces that are there when it begins, and each that is started, finished,
** given up, flushed or freed while it runs.
**
** Events come from a VM's own thread, inside of its compiler, one VM at a time:
** a lock of our own keeps them apart, and is held for a walk and a push. They
** go into one ring for all VMs; when it is full they are losses.
**
** begin, end and forked are called under the CPU profiler's lock.
*/
#ifndef LJP_TRACE_EVENTS_H
#define LJP_TRACE_EVENTS_H

#include "src/session/session.h"

/* The session runs, and VMs have ids in it. Without memory nothing is told but
** a note. */
void ljp_trace_events_begin(struct ljp_session *session);
/* No event is told after it returns. */
void ljp_trace_events_end(void);
/* In a fork's child; session NULL: it does not record. */
void ljp_trace_events_forked(struct ljp_session *session);

#endif
