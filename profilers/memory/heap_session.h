/*
** The link from heap snapshots to the running memory session: where in its
** stream a snapshot goes, when the session itself takes one, and that its end
** waits for those that are on their way (RFC 7, section 6).
**
** Each function takes the memory profiler's lock for a moment; none of them
** waits for a copy of the process, or for the writer, with the lock held.
*/
#ifndef LJP_MEMORY_HEAP_SESSION_H
#define LJP_MEMORY_HEAP_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/session/failure.h"
#include "src/session/session.h"

struct lua_State;

struct ljp_heap_target {
  uint64_t session; /* Its number; other sessions do not get the snapshot. */
  uint64_t number;  /* Of the snapshot. */
  uint32_t vm;      /* The VM's id in the session. */
  int scratch;      /* The file without a name for the copy's records. */
  bool told;        /* A client is told if it is missing: no error of the
                    ** session. */
};

/* On the VM's own thread. */
enum ljp_status ljp_heap_target_open(struct lua_State *L,
                                     struct ljp_heap_target *target,
                                     struct ljp_failure *why);
/* Pushes the snapshot's place among the events. On the VM's own thread. */
void ljp_heap_target_moment(struct lua_State *L,
                            const struct ljp_heap_target *target);
/* The same for a client, into whose file without a name the copy writes: first on
** any thread, then at the moment on the VM's own one, which waits for no lock.
** False: not now. */
enum ljp_status ljp_heap_target_join(struct ljp_heap_target *target,
                                     int scratch, struct ljp_failure *why);
bool ljp_heap_target_meet(struct lua_State *L, struct ljp_heap_target *target);
/* Hands the records over to the session. Any thread. */
enum ljp_status ljp_heap_target_append(const struct ljp_heap_target *target,
                                       const struct ljp_session_heap *heap);
/* Tells in the stream why the snapshot is missing. */
void ljp_heap_target_missing(const struct ljp_heap_target *target,
                             const char *why);

/* The session is about to end, by a call of the program on the thread of this
** VM: takes the last snapshot, if the session wants one of this VM, and waits
** for those that are on their way. */
enum ljp_status ljp_heap_session_last(struct lua_State *L,
                                      struct ljp_failure *why);
/* The same at exit(). */
void ljp_heap_session_exit(void);

/* The same at the end of the session's duration, on a thread of ours: asks the
** VM's thread, and waits for two seconds at most. */
void ljp_heap_session_expire(void);
/* On the VM's thread, when its collector has entered another phase: takes the
** snapshot that is due. That is done at the end of the collector's atomic
** phase, for which LuaJIT makes all threads consistent, in compiled code too: it
** leaves that code before. */
void ljp_heap_session_phase(struct lua_State *L);

#endif
