/*
** Stopper: a thread that ends a session when its time is over. It begins with
** the session, because the host may forbid new threads later, and never keeps
** the process from ending. Ordinary code of any thread.
*/
#ifndef LJP_STOPPER_H
#define LJP_STOPPER_H

#include <stdint.h>

#include "profilers/session/failure.h"
#include "src/session/session.h"

struct ljp_stopper;

/* At until_ns the thread calls stop. Another thread may stop the session at the
** same time and start the next one: stop compares itself with the stopper that
** the running session has. Returns 0 or an errno; *out is NULL then. */
int ljp_stopper_start(struct ljp_stopper **out, uint64_t until_ns,
                      void (*stop)(const struct ljp_stopper *itself));

/* There is no stopper, because of this errno: why the session is refused. */
enum ljp_status ljp_stopper_refused(struct ljp_failure *why, int error);
/* The same in a child of fork(), whose session goes on, and says so. 0: there is
** one. */
void ljp_stopper_missing(struct ljp_session *session, int error);

/* The session has ended: the thread ends soon. It may be the calling thread. */
void ljp_stopper_end(struct ljp_stopper **stopper);

/* In the child of a fork, which does not have the thread. */
void ljp_stopper_forked(struct ljp_stopper **stopper);

#endif
