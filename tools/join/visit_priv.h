/*
** Inside of a visit: what visit.c (which thread, and what is waited for),
** stop.c (one thread) and carry.c (into the entry and back) share.
*/
#ifndef LJP_TOOLS_VISIT_PRIV_H
#define LJP_TOOLS_VISIT_PRIV_H

#include "src/base/join.h"
#include "tools/join/frame.h"
#include "tools/join/moment.h"
#include "tools/join/visit.h"

struct ljp_visitor {
  pid_t pid, ns_pid;
  int memory; /* see ljp_memory_open() */
  const struct ljp_join_place *note;
  const struct ljp_maps *maps;
  struct ljp_code code;
  struct ljp_visit *visit;
  uint64_t stopped_ns; /* when the thread had stopped */
  uint64_t looked;     /* how many times one had, and was examined */
};

/* Why a thread cannot be had just now. */
enum ljp_stop {
  LJP_STOP_GOOD,
  LJP_STOP_GONE,    /* it has ended, or executed another program */
  LJP_STOP_REFUSED, /* it may not be traced */
  LJP_STOP_LATE,    /* it does not stop */
  LJP_STOP_HALTED,  /* it is stopped by a signal */
};

/* Traces the thread, without stopping it. */
enum ljp_stop ljp_stop_seize(pid_t tid);
/* Stops a thread that is traced, within 100 ms. Signals that come first are
** passed on. */
enum ljp_stop ljp_stop_thread(pid_t tid);
/* Lets threads go on that are traced and have stopped by themselves. To be
** called while the caller waits for something else. */
void ljp_stop_serve(void);
/* Lets a stopped thread go, for good, or traced on. A wait that the stop has ended
** begins again. */
void ljp_stop_release(pid_t tid);
void ljp_stop_resume(pid_t tid);
/* A signal is to be delivered: the call that was interrupted is not to be made
** again then. */
bool ljp_stop_has_signal(pid_t tid);
/* Waits a while for threads that were late, and lets them go on. */
void ljp_stop_settle(void);

uint64_t ljp_visit_now(void);
bool ljp_visit_state(const struct ljp_visitor *v, struct ljp_join_state *out);

/* Is a thread that is here in the entry, or in what the entry calls? It needs its
** frame until it has returned. */
bool ljp_carry_inside(const struct ljp_visitor *v, uint64_t rip, uint64_t rsp);

/* The thread is stopped and traced: makes it run the entry, if the moment is
** safe, and lets it go. ns_tid: its number in its own namespace. NULL, or why
** not; then nothing has changed. */
const char *ljp_carry(struct ljp_visitor *v, pid_t tid, pid_t ns_tid);

#endif
