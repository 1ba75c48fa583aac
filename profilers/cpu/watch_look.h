/*
** One look of the watcher at a thread, and what the watcher keeps about the
** thread. See watch.h; RFC 2 says how time is shared out among places.
*/
#ifndef LJP_WATCH_LOOK_H
#define LJP_WATCH_LOOK_H

#include "profilers/cpu/watch_place.h"

/* Sums over looks, in which recent looks count most: v turns after the thread
** woke up, l turns after it had lost its CPU, q ns that it was ready before
** them. */
struct ljp_watch_usual {
  double vv, vl, ll, vq, lq;
};

struct ljp_watch {
  struct ljp_producer *producer; /* NULL in mode "D" */
  struct ljp_sampler_counts counts;

  /* At the last look. */
  uint64_t looked_ns, cpu_ns;
  struct ljp_task_turns turns;
  bool has_turns, waits, gone;
  uint64_t ready_ns;  /* that it was ready, but had no CPU, so far */
  uint64_t since_ns;  /* since when it has been waiting, or running */
  uint64_t gap_ns;    /* from the look before to the first that saw this wait */
  uint64_t wait_ns;   /* of this wait so far */
  bool seen_again;    /* by more than one look */
  uint64_t queued_ns; /* that it has waited for a CPU, told already */
  /* How often it had woken up by the last turn that was looked at; and how long
  ** it is usually ready after it wakes up, before it runs. */
  bool has_woken;
  uint64_t woken, wake_ns;
  struct ljp_watch_usual usual;
  /* Time before the last look, when it was ready but did not run: how long it
  ** had been ready is told when it gets its turn. The rest belongs to a wait:
  ** with `tail`, to the one that was seen last. */
  uint64_t undecided_ns;
  bool tail;

  /* Time that it waited and that was given to no place yet; negative: that was
  ** given to places beforehand. */
  int64_t credit_ns;
  uint64_t pending_ns;    /* given to the place below, not told yet */
  uint64_t told_ns;       /* when that was last told */
  uint64_t unreadable_ns; /* of waits whose place cannot be read */
  uint64_t untold_ns;     /* time that was told as unsampled */
  uint64_t began_ns;
  uint64_t due_ns; /* when the next look is due */
  struct ljp_watch_place *place, *next;
};

void ljp_watch_begin(struct ljp_watch *w, uint64_t now, uint64_t cpu_ns);

/* period_ns: the shortest time to the next look. */
void ljp_watch_look(struct ljp_sampler *s, uint64_t period_ns);

/* Pushes what is pending. */
void ljp_watch_tell(struct ljp_sampler *s, uint64_t now);
/* The same if prototypes have been freed since the place was found. */
void ljp_watch_tell_outdated(struct ljp_sampler *s);

/* The last look; tells all. Returns the time that no sample stands for and
** that is not counted elsewhere. */
uint64_t ljp_watch_finish(struct ljp_sampler *s);

#endif
