/*
** Wishes: changes of a thread's POSIX timers that its own handler makes.
**
** Since Linux 6.13 the kernel drops a signal that is on its way when its timer
** is set or deleted. If the signal has ended a wait by then, the wait fails with
** EINTR, and no handler runs that could make the call again (restart.h). In its
** own handler a thread is in no wait. So a thread that may wait is asked to stop
** its timers itself. Others stop them only where that does no harm, or if the
** thread takes too long.
*/
#ifndef LJP_TIMER_WISH_H
#define LJP_TIMER_WISH_H

#include "profilers/cpu/sampler.h"

enum ljp_timer_wish {
  LJP_WISH_NONE,
  LJP_WISH_PARK,   /* stop both timers, start the third; then NONE */
  LJP_WISH_DELETE, /* of both timers; then DONE */
  LJP_WISH_BUSY,   /* the handler is at it */
  LJP_WISH_DONE
};

/* The handler, after its sample. */
LJP_SIGSAFE void ljp_timer_grant(struct ljp_sampler *s);

LJP_SIGSAFE static inline void ljp_timer_look_for_wish(struct ljp_sampler *s)
{
  uint32_t wish = atomic_load_explicit(&s->wish, memory_order_relaxed);
  if (LJP_UNLIKELY(wish == LJP_WISH_PARK || wish == LJP_WISH_DELETE))
    ljp_timer_grant(s);
}

/* Asks the thread. Returns the wish that it replaces: BUSY if none can be
** replaced now. */
uint32_t ljp_timer_wish(struct ljp_sampler *s, enum ljp_timer_wish wish);

/* Takes the wish back. False: the handler has begun with it, or is done. */
bool ljp_timer_unwish(struct ljp_sampler *s, enum ljp_timer_wish wish);

#endif
