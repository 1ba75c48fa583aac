/*
** What happens to compiled code, for the stream of a session: the traces that
** exist when it begins, and each that is started, finished, aborted, flushed or
** freed while it runs.
**
** Events come from a VM's own thread, inside of its compiler. A lock keeps the
** VMs apart. All VMs share one ring; an event that finds it full is a counted
** loss.
**
** begin, end and forked are called under the lock of the profiler that owns the
** session, the CPU profiler.
*/
#ifndef LJP_TRACE_EVENTS_H
#define LJP_TRACE_EVENTS_H

#include "src/session/session.h"

/* The session runs, and its VMs have ids. Without memory for that, the stream
** gets an info record instead of events. */
void ljp_trace_events_begin(struct ljp_session *session);
/* No event is pushed after this returns. */
void ljp_trace_events_end(void);
/* In a fork's child; session NULL: the child does not record. */
void ljp_trace_events_forked(struct ljp_session *session);

#endif
