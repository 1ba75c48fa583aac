/*
** Traces: what is known about each piece of compiled code, and what happens to
** it (RFC 4). Not for handlers, because it takes locks.
*/
#ifndef LJP_GUEST_TRACES_H
#define LJP_GUEST_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/format.h"

struct lua_State;

struct ljp_guest_trace {
  uint64_t id; /* never used twice in a process */
  uint32_t vm, number;
  uint64_t parent, root, link; /* ids, 0: none */
  uint32_t parent_exit;
  const char *link_type;
  uint32_t place_ref, place_line; /* where it starts; 0: function freed */
  uint64_t newest; /* largest prototype id when its references were valid */
  uint64_t code;
  uint32_t code_bytes, ir_count, snapshots, marks;
  uint32_t marks_cut; /* number of markers that were left out */
  bool truncated;     /* a bound was met: not all of its code has markers */
};

/* Describes the trace of an id in a frame word of kind TRACE. A trace is known
** while its code exists, and longer while there is a hold (the bound is
** LJP_TRACES_WAITING). */
bool ljp_guest_trace(uint64_t id, struct ljp_guest_trace *out);
/* *held: whether the caller's one is there. It changes under the lock, which
** fork() takes, so a child knows. */
void ljp_guest_traces_hold(bool *held);
void ljp_guest_traces_release(bool *held);

/* Sums over all traces that the process has made; `alive` and the bytes are of
** the traces that are alive now. */
struct ljp_guest_jit_counts {
  uint64_t made, alive, marks, marks_cut, truncated, marks_bytes, record_bytes;
};
void ljp_guest_jit_counts(struct ljp_guest_jit_counts *out);

/* Visits the ids of all live traces of all VMs, in no order. From any thread.
** `visit` must be quick, because a compiling VM waits for the lock. */
void ljp_guest_traces_each(void (*visit)(void *ctx, uint64_t id), void *ctx);

/* A trace's present code, and what it is made of: from each offset on, the
** innermost Lua function (a prototype reference) and line. The first entry is
** for offset 0. *code_bytes and *line_count: in, the room; out, the number.
** From any thread that may make fault-safe reads. False: the trace is gone, or
** there is no room. */
struct ljp_guest_line {
  uint32_t offset, function, line;
};
bool ljp_guest_trace_code(uint64_t id, uint8_t *code, size_t *code_bytes,
                          struct ljp_guest_line *lines, size_t *line_count);

/* What happens to traces, reported when it happens: on the VM's thread, inside
** its compiler or collector, so the listener must not call into the VM. One
** listener per process; NULL removes it. */
struct ljp_guest_trace_event {
  enum ljp_trace_what what;
  uint32_t vm;
  uint64_t trace, parent;
  uint32_t parent_exit;
  uint32_t place_ref, place_line; /* where the trace starts */
  uint32_t reason;                /* of an abort: LuaJIT's number */
  const char *text;               /* of an abort: the reason as text */
  struct lua_State *L;
};
void ljp_guest_listen_traces(
    void (*listener)(const struct ljp_guest_trace_event *event));

#endif
