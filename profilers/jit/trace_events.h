/*
** What happens to compiled code, for the stream of a session: the traces that
** exist when it begins, and each that is started, finished, aborted, flushed or
** freed while it runs.
**
** Events come from a VM's own thread, inside its compiler. All VMs share one
** ring, which a lock guards. If the ring is full, the event is a counted loss.
**
** begin, end and forked are called under the lock of the profiler that owns the
** session, the CPU profiler.
*/
#ifndef LJP_TRACE_EVENTS_H
#define LJP_TRACE_EVENTS_H

#include "src/session/session.h"

/* Call when the session runs and its VMs have ids. If memory runs out, the
** stream gets an info record instead of events. */
void ljp_trace_events_begin(struct ljp_session *session);
/* Pushes a mark of the whole session. False: it is lost, or there is no session
** with events. */
bool ljp_trace_events_mark(const char *name, size_t bytes);
/* In a round of the session's writer: writes what waits of a jitdump. */
void ljp_trace_events_round(void);
/* Why a client's jitdump is not complete; NULL: it is. Any thread. */
const char *ljp_trace_events_dump_error(void);
/* Before the end: waits, half a second at most, until the writer has ended the
** jitdump, if that is a client's. */
void ljp_trace_events_settle(struct ljp_session *session);
/* No event is pushed after this returns. undo: the session has been refused
** after all; of the jitdump nothing remains. */
void ljp_trace_events_end(bool undo);
/* In a fork's child; session NULL: the child does not record. */
void ljp_trace_events_forked(struct ljp_session *session);

#endif
