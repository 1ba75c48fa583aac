/*
** A place in compiled code: the trace, the offset in it, and the functions that
** are inlined there. LJP_SIGSAFE.
*/
#ifndef LJP_PLACE_H
#define LJP_PLACE_H

#include "src/luajit/frames/snapshot.h"
#include "src/luajit/frames/walk.h"
#include "src/luajit/traces/trace.h"

/* Where in which trace an address lies, and how exactly that is known. */
struct ljp_place {
  struct ljp_trace trace;
  struct ljp_snapshot snap;
  enum ljp_exact exact;
  uint32_t chain, line; /* exact: by a marker */
  uint32_t offset;      /* in the trace's code */
  bool linked; /* the trace has been left, its frames lie on the Lua stack */
};

/* Finds the rest of the place of an address; place->trace is known.
** interrupted: the address is that of an interrupted instruction, not of a
** call. False: the inlined frames are not known. */
LJP_SIGSAFE bool ljp_place_find(struct ljp_place *place, uint64_t rip,
                                bool interrupted);

/* Appends the frames of a place: the inlined frames, the frame at BASE (which
** is at->base), and the trace. Sets *at to where the frames on the Lua stack
** below begin. *known: *fn is the function at BASE. False: the stack ends
** here. */
LJP_SIGSAFE bool ljp_place_frames(struct ljp_place *place, struct ljp_start *at,
                                  struct ljp_stack *stack,
                                  struct ljp_function *fn, bool *known);

#endif
