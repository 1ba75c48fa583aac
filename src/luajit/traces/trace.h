/*
** Traces: the table of compiled code, and each VM's map from addresses to
** traces (RFC 4).
**
** Mental picture: each VM has a struct ljp_jit, with the markers of the trace
** that is being recorded, and a map of its code: areas in order of address,
** each with its traces in order of address. (LuaJIT fills an area from its end
** down, so a new trace is always appended.) The hooks (hooks.c, markers.c)
** change the map on the VM's own thread; the handler reads it (map_find.c) on
** the same thread, between two instructions of the hooks. Each change is one
** store of a pointer or a count, made when everything behind it is complete.
** Memory is freed only when nothing leads to it any more. All the same the
** handler uses fault-safe loads and checks what it finds: even if it is wrong
** about whose code is running, it cannot crash.
**
** A trace's entry lives until its code is freed. While a session holds traces,
** the entry lives as long as a writer may still ask about its id.
*/
#ifndef LJP_TRACE_H
#define LJP_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/sigsafe.h"
#include "src/luajit/traces.h"
#include "src/luajit/traces/markers.h"

struct ljp_trace {
  uint64_t id;        /* never used twice in a process */
  const void *object; /* the GCtrace; NULL once its code has been freed */
  uint64_t code;      /* address */
  uint32_t code_bytes;
  uint32_t place_line;
  uint32_t place_ref;          /* prototype */
  uint64_t newest;             /* ljp_protos_newest() when its code was freed */
  struct ljp_markers *markers; /* in the entry's memory; NULL: none */
  uint64_t parent, root, link;
  uint32_t vm, number, parent_exit;
  uint32_t ir_count, markers_count, markers_cut, snapshots;
  uint32_t range;      /* index of its code in its area's ranges */
  uint32_t pool_bytes; /* of the entry; 0: malloc() gave it */
  uint8_t link_type;
  bool truncated; /* not all code has markers: a bound was met */
  struct ljp_trace *next_by_id, *next_waiting;
};

/* Code of one trace, as an offset into its area. */
struct ljp_code_range {
  uint32_t start, bytes;
  struct ljp_trace *trace; /* NULL: freed by the collector */
};

/* Ranges of one area. A later range has lower addresses. */
struct ljp_code_ranges {
  _Atomic uint32_t count;
  uint32_t capacity;
  struct ljp_code_range range[];
};

struct ljp_code_area {
  uint64_t low, high;
  struct ljp_code_ranges *_Atomic ranges;
};

/* Areas in order of address. Replaced, never edited. */
struct ljp_code_map {
  uint32_t count;
  struct ljp_code_area area[];
};

/* The traces of one VM. Made at its first trace, never freed, and used again by
** the next VM with the same entry. */
struct ljp_jit {
  struct ljp_code_map *_Atomic map;
  struct ljp_code_area *area;   /* of the map: where new code goes */
  struct ljp_trace **by_number; /* those that are alive */
  uint32_t numbers;

  /* For the trace that is being compiled; only markers.c uses them. */
  struct ljp_marker_notes *notes; /* NULL: no trace is being compiled */
  struct ljp_shift *next_shift;   /* NULL: no markers are made */
  uint32_t code_refs, copied_refs;
  uint32_t given;   /* as in struct ljp_markers */
  uint32_t markers; /* where marking was given up; 0: it was not */
  uint32_t cut;     /* markers left out since then: a bound was met */
  bool full;
};

struct jit_State;
struct ljp_vm;

/* -- The map of code (map.c) ----------------------------------------------- */

/* Enters a trace's code into the map; false if there is no memory. */
bool ljp_map_add(struct ljp_jit *jit, const struct jit_State *J,
                 struct ljp_trace *trace);
/* Removes a trace from the map. */
void ljp_map_remove(struct ljp_jit *jit, const struct ljp_trace *trace);

/* For the handler (map_find.c): copies what is known about the trace whose code
** holds rip. */
LJP_SIGSAFE bool ljp_trace_find(const struct ljp_vm *vm, uint64_t rip,
                                struct ljp_trace *trace);
/* Is rip in one of the areas that hold compiled code? */
LJP_SIGSAFE bool ljp_trace_area(const struct ljp_vm *vm, uint64_t rip);

/* -- Memory of entries (store.c), under the lock of traces ----------------- */

/* Allocates an entry with that many bytes of markers. Only pool_bytes is
** set. */
struct ljp_trace *ljp_trace_new(size_t marker_bytes);
void ljp_trace_free(struct ljp_trace *trace);

/* -- The table of entries (table.c) ---------------------------------------- */

enum { LJP_TRACES_WAITING = 65536 }; /* entries that a writer may ask about */

/* Gives the entry an id and adds it to the table; false if there is no memory.
** Under the lock of traces. */
bool ljp_traces_enter(struct ljp_trace *trace);
/* Call when the code is gone and no handler can find the entry any more. Under
** the lock of traces. */
void ljp_traces_retire(struct ljp_trace *trace);
/* Counts the markers of code that got no entry as left out. Under the lock of
** traces. */
void ljp_traces_count_cut(uint32_t markers);

/* Makes a call with the entry of that id, under the lock that protects the
** entry and (while it has an object) its code and markers. False: there is
** none. */
bool ljp_traces_with(uint64_t id,
                     void (*use)(const struct ljp_trace *trace, void *ctx),
                     void *ctx);

/* -- Hooks (hooks.c, reason.c) --------------------------------------------- */

/* Call when a VM is gone: forgets its traces. */
void ljp_traces_drop(struct ljp_vm *vm);

/* The reason why recording was aborted, as text. */
enum { LJP_TRACE_REASON_BYTES = 192 };
void ljp_trace_reason(struct jit_State *J, uint32_t error, char *text,
                      size_t room);

#endif
