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

#include "src/luajit/guest.h"

/* What can be marked at most; beyond, code has no mark and is shown by its
** snapshot, and the trace counts in ljp_guest_jit_counts. */
enum {
  LJP_MARKS_MAX = 8192,             /* of one trace, while it is recorded */
  LJP_CHAINS_MAX = 1024,            /* different chains in one trace */
  LJP_MARKS_TOTAL_BYTES = 64 << 20, /* of the whole process */
  LJP_TRACES_WAITING = 65536        /* records that a writer may ask about */
};

/* A frame of a chain without its line: the function, and the frame that called
** it, with the line of the call. Number 0 is no chain. */
struct ljp_chain {
  uint32_t function; /* prototype reference, or LJP_CHAIN_BUILTIN | ffid */
  uint32_t line;     /* in the caller */
  uint32_t caller;   /* 0: the frame at the trace's BASE */
};
#define LJP_CHAIN_BUILTIN 0x80000000u

/* Marks of a trace, in order of address: for each a varint of the bytes since
** the one before; a varint of twice the zigzag difference of lines, plus 1 if
** the chain is another one: then a varint of its number follows. */
struct ljp_marks {
  uint32_t chains; /* chain[1 ... chains] stand behind this header */
  uint32_t bytes;  /* of marks, behind the chains */
};

struct ljp_trace {
  uint64_t id;        /* never used twice in a process */
  const void *object; /* the GCtrace; NULL once its code has been freed */
  uint64_t code;      /* address */
  uint32_t code_bytes;
  uint32_t place_line;
  uint32_t place_ref;      /* prototype */
  struct ljp_marks *marks; /* NULL: none */
  uint64_t parent, root, link;
  uint32_t vm, number, parent_exit;
  uint32_t ir_count, marks_count, snapshots;
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

/* A mark while its trace is recorded. */
struct ljp_mark {
  uint32_t ref; /* the first IR instruction that it stands for */
  uint32_t chain;
  const uint32_t *pc;  /* of the innermost function, NULL: a builtin */
  const uint8_t *code; /* set by the assembler */
};

/* A chain while its trace is recorded. */
struct ljp_live_chain {
  const void *proto; /* GCproto of a Lua function */
  uint32_t function;
  uint32_t caller;
  const uint32_t *call; /* the instruction that called, NULL: none */
};

/* One VM's. Made at its first trace, never given back, used again by the next
** VM of the same record. */
struct ljp_jit {
  struct ljp_code_map *_Atomic map;

  struct ljp_mark *mark;
  uint32_t marks, mark_capacity;
  uint32_t recorded;  /* of them noted by the recorder, before any copy */
  uint32_t copy_next; /* the mark that the copied instruction comes to next */
  uint32_t code_left; /* marks that have no code yet */
  uint32_t code_ref;  /* where the assembler is */
  bool full;

  struct ljp_live_chain *chain;
  uint32_t chains, chain_capacity;
  uint32_t now; /* chain of the frame that is being recorded, 0: not known */
  uint32_t now_slot;
  const void *now_function;
};

/* Whether marks are made now: built in, and while a session runs; LJPROF_MARKERS
** in the environment makes that always (1) or never (0). */
bool ljp_marks_wanted(void);

/* The finished marks of the trace; how many, and whether a bound was met, go
** into its record. NULL: none. */
struct ljp_marks *ljp_marks_finish(struct ljp_jit *jit,
                                   struct ljp_trace *trace);
void ljp_marks_free(struct ljp_marks *marks);
uint64_t ljp_marks_bytes(void); /* of all traces that are alive */

/* Calls with the record of that id, under the lock that keeps it and (while
** it has an object) its code and marks. False: there is none. */
bool ljp_traces_with(uint64_t id,
                     void (*use)(const struct ljp_trace *trace, void *ctx),
                     void *ctx);

/* Why recording was given up, as text. */
struct jit_State;
enum { LJP_TRACE_REASON_BYTES = 192 };
void ljp_trace_reason(struct jit_State *J, uint32_t error, char *text,
                      size_t room);

/* Start recording a trace; false if there is no memory. */
bool ljp_marks_begin(struct ljp_jit *jit);

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
