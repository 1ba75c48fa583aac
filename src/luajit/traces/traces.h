/*
** Traces: what the profiler knows of each piece of compiled code, and the marks
** by which a machine address becomes a chain of inlined functions with lines.
** doc/rfc/0004-traces.md.
**
** Mental picture: each VM has a struct ljp_jit, with the marks of the trace that
** is being recorded, and a map of its code: areas in order of address, each
** with its traces in order of address (LuaJIT fills an area from its end down,
** so a new trace is always appended). The hooks (traces.c, marks.c) change it on
** the VM's own thread; the handler reads it (trace_find.c) on the same
** thread, between two instructions of the hooks: each change is one store of a
** pointer or a count after what it leads to is complete, and memory is given
** back only after nothing leads to it. All the same the handler reads through
** fault-safe loads and checks what it finds, so that even a wrong idea of
** whose code is running can never crash.
**
** A trace's record lives until its code is freed, and, while somebody holds
** (a session runs), as long as a writer may still ask about its id.
*/
#ifndef LJP_TRACES_H
#define LJP_TRACES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/sigsafe.h"
#include "src/luajit/traces.h"

/* What can be marked at most; beyond, code has no mark and is shown by its
** snapshot, and the trace counts in ljp_guest_jit_counts. */
enum {
  LJP_MARKS_MAX = 8192,             /* of one trace, while it is recorded */
  LJP_FIRST_MARK = 2,               /* before it no mark is noted */
  LJP_SHIFTS_MAX = 2048,            /* of one trace */
  LJP_MARKS_TOTAL_BYTES = 64 << 20, /* of the whole process */
  LJP_TRACES_WAITING = 65536        /* records that a writer may ask about */
};

/* A frame of a chain without its line: the function, and the frame that called
** it, with the line of the call. Number 0 is no chain. */
struct ljp_chain {
  uint32_t function; /* prototype reference, or LJP_CHAIN_BUILTIN | ffid */
  uint32_t line;     /* in the caller */
  uint32_t caller;   /* 0: the frame at the trace's BASE */
  uint32_t at_base;  /* with caller 0: whose place a tail call gave it, that is,
                     ** what lies in memory there (as function); 0: its own */
};
#define LJP_CHAIN_BUILTIN 0x80000000u

/* The IR from this reference on stems from that instruction. */
struct ljp_mark {
  uint32_t pc; /* low half of its address */
  uint32_t ref;
};

/* Marks from this one on are of a frame of that function, whose BASE is in that
** slot: it was called, or returned to. Its prototype lives as long as the
** trace: where the compiler relies on what function it met, it keeps that
** alive. */
struct ljp_shift {
  uint64_t function; /* GCproto; 0: a builtin, or (ref 0) nothing is known */
  uint32_t ref;      /* as function of a chain */
  uint16_t mark, slot;
};

/* LuaJIT's reference of a trace's BASE, from which on there are instructions. */
#define LJP_REF_BASE 0x8000u

/* What the compiler noted of a trace, as it is: this head and then arrays, by
** number from 0 or by IR reference from REF_BASE. Offsets: ljp_marks_at(). */
struct ljp_marks {
  uint32_t bytes; /* of all */
  uint16_t marks, shifts;
  uint16_t given; /* shifts to frames that were there when recording began */
  uint16_t refs;  /* of which it is known where their code ends */
  uint16_t loop;  /* reference of the LOOP, 0: none */
};
#define LJP_MARKS_ARRAYS(_)                                                    \
  _(SHIFTS, struct ljp_shift, shifts)                                          \
  _(MARKS, struct ljp_mark, marks) /* the first are none */                    \
  _(CODE, uint16_t, refs)   /* low bits of the address, 0: not visited */      \
  _(COPIES, uint16_t, loop) /* the reference at which its copy begins */
enum ljp_marks_array {
#define LJP_ENUM(name, type, count) LJP_MARKS_##name,
  LJP_MARKS_ARRAYS(LJP_ENUM)
#undef LJP_ENUM
      LJP_MARKS_END
};

/* Where an array begins; LJP_MARKS_END: the size of all. */
LJP_SIGSAFE static inline size_t ljp_marks_at(const struct ljp_marks *head,
                                              enum ljp_marks_array which)
{
  size_t at = sizeof *head;
#define LJP_ADD(name, type, count)                                             \
  if (which > LJP_MARKS_##name)                                                \
    at += head->count * sizeof(type);
  LJP_MARKS_ARRAYS(LJP_ADD)
#undef LJP_ADD
  return at;
}

struct ljp_trace {
  uint64_t id;        /* never used twice in a process */
  const void *object; /* the GCtrace; NULL once its code has been freed */
  uint64_t code;      /* address */
  uint32_t code_bytes;
  uint32_t place_line;
  uint32_t place_ref;      /* prototype */
  uint64_t newest;         /* ljp_protos_newest() when it was made */
  struct ljp_marks *marks; /* in the record's memory; NULL: none */
  uint64_t parent, root, link;
  uint32_t vm, number, parent_exit;
  uint32_t ir_count, marks_count, marks_cut, snapshots;
  uint32_t range;      /* of its code, in its area's */
  uint32_t pool_bytes; /* of the record; 0: malloc() gave it */
  uint8_t link_type;
  bool truncated; /* not all code has marks: a bound was met */
  struct ljp_trace *next_by_id, *next_waiting;
};

/* Code of one trace, as an offset into its area. */
struct ljp_code_range {
  uint32_t start, bytes;
  struct ljp_trace *trace; /* NULL: freed by the collector */
};

/* Ranges of one area: the later the lower. */
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

/* One VM's. Made at its first trace, never given back, used again by the next
** VM of the same record. */
struct ljp_jit {
  struct ljp_code_map *_Atomic map;
  struct ljp_code_area *area;   /* of the map: where code goes now */
  struct ljp_trace **by_number; /* those that are alive */
  uint32_t numbers;

  /* Of the trace that is being compiled. */
  struct ljp_notes *notes;      /* marks.c; NULL before the first one */
  struct ljp_shift *next_shift; /* NULL: no marks are made */
  uint32_t code_refs, copied_refs;
  uint32_t given; /* as in struct ljp_marks */
  uint32_t marks; /* where marking was given up; 0: it was not */
  uint32_t cut;   /* marks that were left out since: a bound was met */
  bool full;
};

struct jit_State;

/* Whether marks are made: unless they were left out when this was built, or
** LJPROF_MARKERS=0 stands in the environment. */
bool ljp_marks_wanted(void);

/* A trace is going to be recorded. */
void ljp_marks_begin(struct ljp_jit *jit, struct jit_State *J);

/* Enters a trace's code into the map; false if there is no memory. */
bool ljp_map_add(struct ljp_jit *jit, const struct jit_State *J,
                 struct ljp_trace *trace);
/* Takes a trace out of it that was entered. */
void ljp_map_remove(struct ljp_jit *jit, const struct ljp_trace *trace);

/* Memory of a record with so many bytes of marks, of which nothing but
** pool_bytes is set; under the lock of traces. */
struct ljp_trace *ljp_trace_new(size_t marks_bytes);
void ljp_trace_free(struct ljp_trace *trace);

/* Calls with the record of that id, under the lock that keeps it and (while
** it has an object) its code and marks. False: there is none. */
bool ljp_traces_with(uint64_t id,
                     void (*use)(const struct ljp_trace *trace, void *ctx),
                     void *ctx);

/* Why recording was given up, as text. */
enum { LJP_TRACE_REASON_BYTES = 192 };
void ljp_trace_reason(struct jit_State *J, uint32_t error, char *text,
                      size_t room);

/* It is done: the size of its marks (0: there are none, and if that is due to
** a bound, jit->full), and their copy. */
size_t ljp_marks_measure(struct ljp_jit *jit, const struct jit_State *J,
                         struct ljp_marks *head);
static inline uint32_t ljp_marks_count(const struct ljp_jit *jit,
                                       const struct ljp_marks *head)
{
  /* Where marking was given up stands one that marks nothing. */
  return head->marks ? head->marks - LJP_FIRST_MARK - (jit->marks != 0) : 0;
}
void ljp_marks_take(const struct ljp_jit *jit, const struct ljp_marks *head,
                    struct ljp_marks *out);
void ljp_marks_gone(const struct ljp_marks *marks); /* before they are freed */
uint64_t ljp_marks_bytes(void); /* of all traces that are alive */

/* -- For the handler ---------------------------------------------------------- */

struct ljp_vm;

/* Copies what is known about the trace whose code holds rip. */
LJP_SIGSAFE bool ljp_trace_find(const struct ljp_vm *vm, uint64_t rip,
                                struct ljp_trace *trace);
/* Is rip in one of the areas that hold compiled code? */
LJP_SIGSAFE bool ljp_trace_area(const struct ljp_vm *vm, uint64_t rip);

/* The mark at an offset of its code: the innermost chain and line. */
LJP_SIGSAFE bool ljp_trace_mark(const struct ljp_trace *trace, uint32_t offset,
                                uint32_t *chain, uint32_t *line);
LJP_SIGSAFE bool ljp_trace_chain(const struct ljp_trace *trace, uint32_t number,
                                 struct ljp_chain *chain);

#endif
