/*
** The data behind `ljprof report --jit`: the share of compiled code, traces
** with their side traces, functions, and what the trace compiler gave up.
** jit.c counts samples, jit_events.c evaluates trace events; jit_text.c and
** jit_json.c print the result.
**
** A sample belongs to a trace if its innermost Lua frame runs in that trace.
** Time spent in the trace compiler and in leaving a trace is counted apart.
*/
#ifndef LJP_TOOLS_REPORT_JIT_H
#define LJP_TOOLS_REPORT_JIT_H

#include "tools/report/report.h"

/* What the VM did during a sample: name, key in JSON, text. */
#define LJP_JIT_LIST(_)                                                        \
  _(COMPILED, "compiled", "in compiled code")                                  \
  _(INTERPRETED, "interpreted", "interpreted")                                 \
  _(EXIT, "exits", "leaving traces")                                           \
  _(RECORD, "recording", "recording traces")                                   \
  _(OPT, "optimizing", "optimizing traces")                                    \
  _(ASM, "assembling", "assembling traces")                                    \
  _(GC, "gc", "collecting garbage")                                            \
  _(OTHER, "other", "without a Lua function")

enum ljp_jit_kind {
#define LJP_X(name, key, text) LJP_JIT_##name,
  LJP_JIT_LIST(LJP_X)
#undef LJP_X
      LJP_JIT_KINDS
};

enum ljp_jit_fate { LJP_JIT_ALIVE, LJP_JIT_FREED, LJP_JIT_FLUSHED };

struct ljp_jit_trace {
  struct ljp_value self; /* The trace's code and what it called. */
  struct ljp_value exit; /* Leaving the trace. */
  struct ljp_value tree; /* Both, including all side traces. */
  uint32_t child, sibling;
  uint32_t given_up; /* Aborted recordings that began at one of its exits. */
  uint8_t fate;
  bool shown; /* The stream defines it, or a sample is in it. */
};

/* Where the compiler gave up, or where it will not begin again. */
struct ljp_jit_place {
  uint32_t reason;                       /* String; 0: blacklisted. */
  uint32_t name, file, first_line, line; /* Where the recording began. */
  uint32_t parent, parent_exit;          /* Of a side trace. */
  uint32_t function; /* In functions[]; 0: the function has no samples. */
  uint32_t at;       /* The frame where it gave up; 0: unknown. */
  uint32_t count;
};

struct ljp_jit_reason {
  uint32_t reason, count;
  uint32_t first, places; /* In ljp_jit.places: index, number. */
  /* The time for interpreting and compiling the functions concerned, each
  ** function counted once. */
  struct ljp_value lost;
};

struct ljp_jit {
  struct ljp_value kinds[LJP_JIT_KINDS];
  struct ljp_value (*functions)[LJP_JIT_KINDS]; /* By function. */
  struct ljp_jit_trace *traces;   /* By trace; [0] is the parent of roots. */
  struct ljp_jit_place *places;   /* By reason, most frequent first. */
  struct ljp_jit_reason *reasons; /* Most time lost first. */
  struct ljp_jit_place *blacklisted;
  uint32_t place_count, reason_count, blacklisted_count;
  uint64_t events[8]; /* By enum ljp_trace_what. */
  bool has_events;
};

enum { LJP_JIT_NAME_BYTES = 4096 };

/* jit.c. False: out of memory. */
bool ljp_jit_make(const struct ljp_report *r, struct ljp_jit *jit);
void ljp_jit_fini(struct ljp_jit *jit);
struct ljp_value ljp_jit_sum(const struct ljp_value kinds[LJP_JIT_KINDS]);
void ljp_jit_add(struct ljp_value *to, const struct ljp_value *from);
const char *ljp_jit_fate(const struct ljp_jit_trace *trace);
/* Functions that have samples, most time first. The caller frees the list.
** NULL: out of memory. */
uint32_t *ljp_jit_functions(const struct ljp_report *r,
                            const struct ljp_jit *jit, uint32_t *count);
void ljp_jit_function_name(const struct ljp_report *r, uint32_t function,
                           char name[LJP_JIT_NAME_BYTES]);
/* Calls visit for each trace that is shown, parents first. */
void ljp_jit_each_trace(const struct ljp_report *r, const struct ljp_jit *jit,
                        void (*visit)(void *ctx, uint32_t at, unsigned depth),
                        void *ctx);

/* jit_events.c: called by ljp_jit_make after samples are counted. False: out
** of memory. */
bool ljp_jit_make_events(const struct ljp_profile *p, struct ljp_jit *jit);

/* The two views. False: out of memory. */
bool ljp_jit_text(const struct ljp_report *r, const struct ljp_jit *jit);
bool ljp_jit_json(const struct ljp_report *r, const struct ljp_jit *jit);

#endif
