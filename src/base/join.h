/*
** Join: what the library and a client that joins its process agree on: the ELF
** note by which the client finds the library in the process's memory, the state
** that both of them read and write, and the steps of joining (RFC 8).
**
** The client writes the state only while the thread that will run the entry is
** stopped, and only while no earlier attach is under way: the entry is not
** running, and the door is gone. From then on the library writes it.
*/
#ifndef LJP_JOIN_H
#define LJP_JOIN_H

#include <stdint.h>

/* Of the note and the state. */
enum { LJP_JOIN_VERSION = 2 };

/* The stack of the entry. On top lies the signal frame. */
enum { LJP_JOIN_STACK_BYTES = 64 << 10, LJP_JOIN_FRAME_BYTES = 24 << 10 };

/* The descriptor of the note. All but the version are distances from the
** member itself, since nobody relocates a note. The entry ends with the system
** call that returns to the thread. */
struct ljp_join_note {
  uint32_t version;
  int32_t entry, end, state, stack_top, shown;
};

#define LJP_JOIN_STEP_LIST(_)                                                  \
  _(IDLE, 0)                                                                   \
  _(ENTERED, 1) /* a thread runs the entry */                                  \
  _(LEFT, 2)    /* it does nothing more there but return */

#define LJP_JOIN_DOOR_LIST(_)                                                  \
  _(GONE, 0)                                                                   \
  _(COMING, 1) /* the entry has made the thread */                             \
  _(READY, 2)  /* the socket can be taken */                                   \
  _(FAILED, 3) /* `error` says why; the door is gone */

enum ljp_join_step {
#define LJP_X(name, number) LJP_JOIN_##name = number,
  LJP_JOIN_STEP_LIST(LJP_X)
#undef LJP_X
};

enum ljp_join_door {
#define LJP_X(name, number) LJP_JOIN_DOOR_##name = number,
  LJP_JOIN_DOOR_LIST(LJP_X)
#undef LJP_X
};

struct ljp_join_state {
  uint32_t attach;  /* the client's number for this attach; not 0 */
  uint32_t linger;  /* the entry waits a while before it returns */
  uint32_t step;    /* by the entry */
  int32_t pid, tid; /* of the thread, in its own namespace; by both */
  /* By the entry and the door. */
  uint32_t door;
  int32_t error;    /* an errno */
  int32_t fd;       /* the client's end of the socket, in the process's table */
  uint64_t left_ns; /* CLOCK_MONOTONIC: when the entry had done its work */
};

_Static_assert(sizeof(struct ljp_join_note) == 24, "layout of the note");
_Static_assert(sizeof(struct ljp_join_state) == 40, "layout of the state");

/* How long a door waits for the client. A client that comes later makes another
** visit. */
enum { LJP_JOIN_PATIENCE_MS = 2000 };

/* Debug builds can be made to misbehave at each step; see join_step.c. */
#ifdef LJP_DEBUG
void ljp_join_step(const char *name);
#else
#define ljp_join_step(name) ((void)0)
#endif

#endif
