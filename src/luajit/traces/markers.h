/*
** Markers: what the trace compiler leaves so that machine code can be traced
** back to functions and lines (RFC 4). markers.c makes them, on the VM's own
** thread, inside its compiler; marker_find.c reads them, and may run in a
** handler.
**
** The arrays of a finished trace are plain copies of those that the compiler
** filled. Their meaning is worked out only when it is needed.
*/
#ifndef LJP_MARKERS_H
#define LJP_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/sigsafe.h"

/* Code beyond these bounds has no marker and is shown by its snapshot. The
** trace then counts in ljp_guest_jit_counts.truncated. */
enum {
  LJP_MARKERS_MAX = 8192,             /* of one trace, while it is recorded */
  LJP_FIRST_MARKER = 2,               /* numbers below it are no markers */
  LJP_SHIFTS_MAX = 2048,              /* of one trace */
  LJP_MARKERS_TOTAL_BYTES = 64 << 20, /* of the whole process */
};

/* The IR from this reference on stems from that instruction. */
struct ljp_marker {
  uint32_t pc; /* low half of its address */
  uint32_t ref;
};

/* From this marker on, markers belong to a frame of that function, whose BASE
** is in that slot: the function was called, or returned to. Its prototype lives
** as long as the trace, because the compiler keeps alive each function that the
** code depends on. */
struct ljp_shift {
  uint64_t function; /* GCproto; 0: a builtin, or (ref 0) nothing is known */
  uint32_t ref;      /* as `function` in struct ljp_chain */
  uint16_t marker, slot;
};

/* LuaJIT's reference of a trace's BASE; instructions begin there. */
#define LJP_REF_BASE 0x8000u

/* The markers of a trace: this head, then arrays, indexed by number from 0 or
** by IR reference from REF_BASE. ljp_markers_at() gives their offsets. */
struct ljp_markers {
  uint32_t bytes; /* of the head and all arrays */
  uint16_t markers, shifts;
  uint16_t given; /* shifts to frames that were there when recording began */
  uint16_t refs;  /* references whose end of code is known */
  uint16_t loop;  /* reference of the LOOP, 0: none */
};
#define LJP_MARKER_ARRAYS(_)                                                   \
  _(SHIFTS, struct ljp_shift, shifts)                                          \
  _(MARKERS, struct ljp_marker, markers) /* the first are none */              \
  _(CODE, uint16_t, refs)   /* low bits of the address, 0: not visited */      \
  _(COPIES, uint16_t, loop) /* the reference at which its copy begins */
enum ljp_marker_array {
#define LJP_ENUM(name, type, count) LJP_MARKERS_##name,
  LJP_MARKER_ARRAYS(LJP_ENUM)
#undef LJP_ENUM
      LJP_MARKERS_END
};

/* Where an array begins; LJP_MARKERS_END: the total size. */
LJP_SIGSAFE static inline size_t ljp_markers_at(const struct ljp_markers *head,
                                                enum ljp_marker_array which)
{
  size_t at = sizeof *head;
#define LJP_ADD(name, type, count)                                             \
  if (which > LJP_MARKERS_##name)                                              \
    at += head->count * sizeof(type);
  LJP_MARKER_ARRAYS(LJP_ADD)
#undef LJP_ADD
  return at;
}

/* -- Making markers (markers.c) -------------------------------------------- */

struct jit_State;
struct ljp_jit;

/* Are markers made? Yes, unless the build left them out or the environment has
** LJPROF_MARKERS=0. */
bool ljp_markers_wanted(void);

/* Call when a trace is about to be recorded. */
void ljp_markers_begin(struct ljp_jit *jit, struct jit_State *J);

/* Call when the trace has been compiled or given up. J->ljp must not be used any
** more. Takes LJP_LOCK_TRACES. */
void ljp_markers_end(struct ljp_jit *jit);

/* Call when the trace is done. Returns the bytes that its markers need; 0:
** there are none. If a bound is the reason, jit->full is set. */
size_t ljp_markers_measure(struct ljp_jit *jit, const struct jit_State *J,
                           struct ljp_markers *head);
/* The number of these markers. */
uint32_t ljp_markers_count(const struct ljp_jit *jit,
                           const struct ljp_markers *head);
void ljp_markers_copy(const struct ljp_jit *jit, const struct ljp_markers *head,
                      struct ljp_markers *out);
/* Call before the memory of a copy is freed. NULL does nothing. */
void ljp_markers_free(const struct ljp_markers *markers);
/* The bytes of the markers of all traces that are alive. */
uint64_t ljp_markers_bytes(void);

/* -- Reading markers (marker_find.c) --------------------------------------- */

struct ljp_trace;

/* A frame of a chain without its line: the function, and the frame that called
** it, with the line of the call. Number 0 is no chain. */
struct ljp_chain {
  uint32_t function; /* prototype reference, or LJP_CHAIN_BUILTIN | ffid */
  uint32_t line;     /* in the caller */
  uint32_t caller;   /* 0: the frame at the trace's BASE */
  uint32_t at_base;  /* with caller 0: the function that lies in memory at BASE,
                     ** if a tail call has taken its place; else 0 */
};
#define LJP_CHAIN_BUILTIN 0x80000000u

/* The marker at an offset of the trace's code: the innermost chain and line. */
LJP_SIGSAFE bool ljp_trace_marker(const struct ljp_trace *trace,
                                  uint32_t offset, uint32_t *chain,
                                  uint32_t *line);
LJP_SIGSAFE bool ljp_trace_chain(const struct ljp_trace *trace, uint32_t number,
                                 struct ljp_chain *chain);

#endif
