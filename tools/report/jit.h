/*
** What `ljprof report --jit` shows: the share of compiled code, traces with the
** side traces that continue them, functions, and what the compiler gave up.
** jit.c gathers it, jit_show.c shows it.
**
** A stack belongs to a trace if the innermost Lua frame is in one. What the
** compiler itself takes, and what leaving a trace takes, are counted apart.
*/
#ifndef LJP_TOOLS_REPORT_JIT_H
#define LJP_TOOLS_REPORT_JIT_H

#include "tools/report/report.h"

/* Name, key in JSON, text. What a row counts for. */
#define LJP_JIT_LIST(_)                                                        \
  _(COMPILED, "compiled", "in compiled code")                                  \
  _(INTERPRETED, "interpreted", "interpreted")                                 \
  _(EXIT, "exits", "leaving traces")                                           \
  _(RECORD, "recording", "recording traces")                                   \
  _(OPT, "optimizing", "optimizing them")                                      \
  _(ASM, "assembling", "assembling them")                                      \
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
  struct ljp_value self; /* In its code and what it called. */
  struct ljp_value exit; /* In leaving it. */
  struct ljp_value tree; /* Both, with all side traces. */
  uint32_t child, sibling;
  uint32_t blamed; /* Aborts of recordings that began at one of its exits. */
  uint8_t fate;
  bool shown; /* Defined, or sampled. */
};

/* Where the compiler gave up, or will not begin again. */
struct ljp_jit_place {
  uint32_t reason;                       /* String; 0: blacklisted. */
  uint32_t name, file, first_line, line; /* Where it began. */
  uint32_t parent, parent_exit;          /* Of a side trace: whose exit. */
  uint32_t function; /* In functions[]; 0: it has no samples. */
  uint32_t at;       /* Frame where it gave up; 0: not known. */
  uint32_t count;
};

struct ljp_jit_reason {
  uint32_t reason, count;
  uint32_t places; /* How many of them follow, from: */
  uint32_t first;
  struct ljp_value lost; /* Interpreting and compiling the functions where it
                         ** happened; each once. */
};

struct ljp_jit {
  struct ljp_value kinds[LJP_JIT_KINDS];
  struct ljp_value (*functions)[LJP_JIT_KINDS]; /* By function. */
  struct ljp_jit_trace *traces;                 /* By trace; [0]: roots. */
  struct ljp_jit_place *places;                 /* By reason, most first. */
  struct ljp_jit_reason *reasons;               /* Most lost first. */
  struct ljp_jit_place *black;
  uint32_t place_count, reason_count, black_count;
  uint64_t events[8]; /* By enum ljp_trace_what. */
  bool has_events;
};

/* false: no memory. */
bool ljp_jit_make(const struct ljp_report *r, struct ljp_jit *jit);
void ljp_jit_fini(struct ljp_jit *jit);

enum { LJP_JIT_NAME_BYTES = 4096 };

/* jit_show.c. false: no memory. */
bool ljp_jit_show(const struct ljp_report *r);
struct ljp_value ljp_jit_sum(const struct ljp_value kinds[LJP_JIT_KINDS]);
const char *ljp_jit_fate(const struct ljp_jit_trace *trace);
/* Functions that have samples, most first; to be freed. NULL: no memory. */
uint32_t *ljp_jit_functions(const struct ljp_report *r,
                            const struct ljp_jit *jit, uint32_t *count);
void ljp_jit_function_name(const struct ljp_report *r, uint32_t function,
                           char name[LJP_JIT_NAME_BYTES]);
/* Calls for each trace that is shown, parents first, with its depth. */
void ljp_jit_each_trace(const struct ljp_report *r, const struct ljp_jit *jit,
                        void (*visit)(void *ctx, uint32_t at, unsigned depth),
                        void *ctx);

/* jit_json.c. Likewise. */
bool ljp_jit_json(const struct ljp_report *r, const struct ljp_jit *jit);

#endif
