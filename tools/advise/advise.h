/*
** Advise: what `ljprof advise` knows about a profile, and what it says.
**
**   facts     collected once: what the program did, by Lua line and kind of work
**             (facts.c, names.c), memory by site (memory.c), given-up recordings
**             (traces.c)
**   rules     one function a rule reads the facts and adds findings (rules_*.c);
**             the table of rules is LJP_ADVISE_LIST
**   findings  sorted and filtered (findings.c), printed (text.c, json.c,
**             sarif.c)
**
** A finding has two figures. Its *evidence* is what was seen of the fault
** itself. Its *bound* is all that the remedy can save, so it includes what the
** fault causes elsewhere, such as the collector's work. doc/guide/advice.md
** explains both. One thread.
*/
#ifndef LJP_TOOLS_ADVISE_H
#define LJP_TOOLS_ADVISE_H

#include <stdbool.h>

#include "parsers/base/index.h"
#include "parsers/profile/profile.h"
#include "tools/shared/print.h"

/* Fewer samples, or looks at waiting threads, are not judged. */
#define LJP_ADVISE_SAMPLES 100

/* Kinds of findings: name, section of the guide, smallest evidence in percent
** that is worth a finding, title, what to change. The name is part of the
** output's contract (doc/reference/json.md). */
#define LJP_ADVISE_LIST(_)                                                     \
  _(ABORT, "interpreted", "recording-given-up", 5,                             \
    "runs interpreted: the trace compiler gave up", "see the reason")          \
  _(BLACKLIST, "blacklisted", "blacklisted", 5,                                \
    "runs interpreted: the trace compiler will not try again",                 \
    "record the program from its start: the finding then says why, and "       \
    "what to change")                                                          \
  _(EXITS, "exits", "exits-without-side-trace", 5,                             \
    "compiled code is left again and again",                                   \
    "keep the types and branches of this loop steady, or remove what keeps "   \
    "its side traces from being compiled")                                     \
  _(TRACES, "too-many-traces", "too-many-traces", 5,                           \
    "traces are compiled and thrown away again",                               \
    "raise the limits, for example jit.opt.start(\"maxtrace=16000\", "         \
    "\"maxmcode=81920\"), and do not generate the same code again")            \
  _(STITCH, "stitching", "stitching", 3,                                       \
    "compiled code stops at a function that cannot be compiled",               \
    "use functions here that the compiler knows, or call this one outside "    \
    "the loop")                                                                \
  _(SORT, "sort-comparator", "sort-with-a-comparator", 5,                      \
    "table.sort calls a Lua function for each comparison",                     \
    "sort plain keys without a comparator, or sort less often")                \
  _(CALLBACK, "callback", "callbacks-from-c", 5, "C code calls back into Lua", \
    "do the loop in Lua and let it call C, or pass whole batches to one call") \
  _(CONCAT, "concat-loop", "concatenation-in-a-loop", 5,                       \
    "a long string is copied again for each piece that is added",              \
    "collect the pieces in a table and call table.concat once, or use a "      \
    "string.buffer")                                                           \
  _(STRINGS, "built-strings", "strings-built-in-loops", 10,                    \
    "short strings are built again and again",                                 \
    "if they are keys: use nested tables or numbers as keys; else build each " \
    "string once and keep it")                                                 \
  _(SHIFT, "shifting", "elements-moved-one-by-one", 25,                        \
    "elements of a table are moved, one by one",                               \
    "add and remove at the end; for a queue, keep the indices of its first "   \
    "and last element")                                                        \
  _(GROW, "growing-tables", "tables-that-grow", 10,                            \
    "tables grow step by step",                                                \
    "create the table with its size (require \"table.new\"), count its "       \
    "elements in a variable, or reuse the table")                              \
  _(TABLES, "temporary-tables", "temporary-tables", 5,                         \
    "tables are created in a hot place",                                       \
    "reuse tables, or pass the values as arguments and results")               \
  _(CLOSURES, "closures", "closures-in-hot-loops", 5,                          \
    "functions are created in a hot place",                                    \
    "define the function once, outside, and pass what it needs as arguments")  \
  _(PAIRS, "pairs", "pairs-on-arrays", 25,                                     \
    "time goes into walking tables with pairs or next",                        \
    "if the tables are arrays: for i = 1, #t do, or ipairs")                   \
  _(ERRORS, "errors", "errors-in-the-hot-path", 10,                            \
    "errors are thrown and caught again and again",                            \
    "return nil and a message in place of error() where failure is common")    \
  _(GC, "gc-pressure", "garbage", 15, "the collector takes much of the time",  \
    "allocate less here: change objects in place, or use them again")          \
  _(COLLECT, "collectgarbage", "calls-of-collectgarbage", 5,                   \
    "collectgarbage() takes much of the time",                                 \
    "let LuaJIT decide when to collect; if memory then grows too far, make "   \
    "the pause shorter: collectgarbage(\"setpause\", 150)")                    \
  _(KERNEL, "kernel", "time-in-the-kernel", 10,                                \
    "time is spent in system calls",                                           \
    "make fewer and larger calls: buffer, batch, or keep the result")          \
  _(LOCK, "lock", "waiting-for-locks", 10, "threads wait for a lock",          \
    "hold the lock for a shorter time, or divide what it protects")            \
  _(LEAK, "growing-memory", "memory-that-only-grows", 10,                      \
    "memory grows throughout the recording",                                   \
    "find what still refers to these objects; limit it, or remove them there") \
  _(COROUTINES, "coroutines", "coroutines-that-never-end", 10,                 \
    "coroutines are created and never end",                                    \
    "let them return, and drop every reference to those that are not resumed " \
    "again")

enum ljp_advise_kind {
#define LJP_X(name, ...) LJP_ADVISE_##name,
  LJP_ADVISE_LIST(LJP_X)
#undef LJP_X
      LJP_ADVISE_KINDS
};

/* What a thread did when a sample was taken. A sample has exactly one. */
enum advise_work {
  WORK_OTHER,
  WORK_COMPILED,
  WORK_INTERPRETED,
  WORK_CALLED, /* In a builtin or C function that Lua called. */
  WORK_COMPILER,
  WORK_EXIT,
  WORK_GC,
  WORK_KERNEL,
  WORK_LOCK,
  WORK_WAIT,
  WORK_CALLBACK,
  WORK_STRING,
  WORK_GROW,
  WORK_LENGTH,
  WORK_TABLE,
  WORK_CLOSURE,
  WORK_NEXT,
  WORK_THROW,
  WORKS
};
#define WORK_BIT(work) (1u << WORK_##work)
#define WORK_ALL ((1u << WORKS) - 1)

/* What the names of VM functions between the leaf and the innermost Lua
** function tell (names.c). */
enum advise_mark {
  MARK_GC = 1u << 0,
  MARK_KERNEL = 1u << 1,
  MARK_EXIT = 1u << 2,
  MARK_LOCK = 1u << 3,
  MARK_CALLBACK = 1u << 4,
  MARK_STRING = 1u << 5,
  MARK_GROW = 1u << 6,
  MARK_TABLE = 1u << 7,
  MARK_CLOSURE = 1u << 8,
  MARK_NEXT = 1u << 9,
  MARK_COPY = 1u << 10,
  MARK_CALL = 1u << 11, /* C code calls Lua through the C API. */
  MARK_LENGTH = 1u << 12,
  MARK_THROW = 1u << 13,
  MARK_FREE = 1u << 14, /* Memory is freed. */
  MARK_NEW = 1u << 15,  /* Memory is allocated. */
  MARK_LIVE = 1u << 16  /* The collector marks what is alive. */
};

/* A sample of a waiting thread stands for the whole wait: the watcher has seen
** it in each of its looks, so these are what the error depends on. */
struct advise_value {
  uint64_t count, weight, looks;
};

/* A node of the stack tree, seen from its innermost Lua function. */
struct advise_node {
  uint32_t lua;    /* Node of that function; 0: none. */
  uint32_t callee; /* Node of the builtin or C function that it called. */
  uint32_t trace;  /* The trace that runs it, in traces[]; 0: none. */
  uint32_t marks;
  bool compiled;
};

/* What was counted at one line with one callee and one kind of work. */
struct advise_cell {
  uint32_t frame, callee; /* Frames; 0: none. */
  uint8_t work;
  bool copies; /* The work was to copy bytes. */
  struct advise_value value;
};

/* Tables and their parts, as types of memory. */
#define ADVISE_TABLE_TYPES                                                     \
  (1u << LJP_MEM_TYPE_TABLE | 1u << LJP_MEM_TYPE_ARRAY_PART |                  \
   1u << LJP_MEM_TYPE_HASH_PART)

/* Memory allocated at a line for one purpose. */
struct advise_site {
  uint32_t frame;
  uint8_t type; /* enum ljp_mem_type */
  struct ljp_profile_memory memory;
  struct ljp_profile_estimates estimates;
};

/* A recording that was given up, or a function that is blacklisted. */
struct advise_abort {
  const struct advise_reason *reason;       /* NULL: blacklisted. */
  uint32_t file, name, first_line, line;    /* Where the recording began. */
  uint32_t function, at_function, at_frame; /* 0: unknown. */
  uint32_t text, count;                     /* The reason: string. */
};

/* Room for what one question marks or sums up, made once: so questions cannot
** fail. Each question clears what it uses. */
struct advise_room {
  bool *nodes, *more_nodes, *traces;
  uint8_t *functions; /* Bits. */
  uint64_t *sums;     /* By function or frame. */
  uint8_t *lines;     /* Bits. */
  uint32_t line_bytes;
};

struct advise_facts {
  const struct ljp_profile *p;
  bool wall; /* The samples are of wall-clock time. */
  struct advise_value all;
  struct advise_value works[WORKS];
  /* Of WORK_GC below Lua: freeing garbage, and marking what is alive. */
  struct advise_value freed, marked;
  uint32_t *frame_marks;     /* By frame. */
  struct advise_node *nodes; /* By node. */
  struct advise_cell *cells;
  struct advise_site *sites;
  struct advise_abort *aborts;
  uint32_t cell_count, cell_room, site_count, site_room, abort_count;
  struct ljp_index cell_index, site_index;
  uint64_t flushes, limit_aborts, compiled_traces, freed_traces;
  struct advise_room room;
};

struct advise_finding {
  enum ljp_advise_kind kind;
  const struct advise_reason *reason; /* ABORT, or a special remedy; NULL. */
  uint32_t function, frame;           /* The place; frame has the line. */
  uint32_t callee;                    /* Function; 0: none. */
  struct advise_value evidence, bound;
  struct advise_value gc; /* Of the bound: collections. */
  /* Such work in all functions: half of a share is enough for a part of it. */
  struct advise_value whole;
  double percent, error; /* The bound, of the measure. */
  double evidence_percent, evidence_error;
  uint64_t count;          /* Recordings, flushes ... */
  bool memory;             /* The figures are bytes. */
  uint64_t bytes, objects; /* Evidence. */
  uint64_t bound_bytes;
  double bytes_low, bytes_high;
  char text[400]; /* The evidence as a sentence. */
};

struct advise_findings {
  struct advise_finding *list;
  uint32_t count, room;
  bool no_memory;
};

/* An abort reason of LuaJIT: how its text begins, section of the guide, how
** telling it is (0: a consequence of another one, 1: a usual, passing one, 2: a
** cause), what to change. */
struct advise_reason {
  const char *text, *anchor;
  int weight;
  const char *remedy;
};

/* reasons.c: never NULL; the last entry is for reasons not known. */
const struct advise_reason *ljp_advise_reason(struct ljp_str text);
extern const struct advise_reason ljp_advise_reasons[];
extern const unsigned ljp_advise_reason_count;

/* names.c */
bool advise_reads(const struct ljp_profile *p, uint32_t function);
uint32_t ljp_advise_marks(const struct ljp_profile *p,
                          const struct ljp_profile_frame *f);

/* facts.c, memory.c, traces.c. False: out of memory. */
bool ljp_advise_collect(const struct ljp_profile *p, struct advise_facts *a);
void ljp_advise_facts_fini(struct advise_facts *a);
bool ljp_advise_collect_memory(struct advise_facts *a);
bool ljp_advise_collect_traces(struct advise_facts *a);

/* sums.c: questions to the facts. */
void advise_add(struct advise_value *to, struct advise_value value);
/* Sum of the cells at a function (0: all) with one of these kinds of work. */
struct advise_value advise_sum(const struct advise_facts *a, uint32_t function,
                               unsigned works);
/* The line (a frame) and the callee (a function) with most of this work. */
uint32_t advise_line(const struct advise_facts *a, uint32_t function,
                     unsigned works);
uint32_t advise_callee(const struct advise_facts *a, uint32_t function,
                       unsigned works);
/* What the remedy can save at a function (0: all) that has this work: the time
** of the lines where it is done, of the trees of traces in which it is done, and of the
** collections that it causes (*gc alone): those that run in the function, in
** these trees, or in a caller into which the function is inlined. Work of the
** kinds `everywhere` counts wherever it is done. */
struct advise_value advise_bound(const struct advise_facts *a,
                                 uint32_t function, unsigned works,
                                 unsigned everywhere, struct advise_value *gc);
/* Sum of the samples whose stack contains the function. */
struct advise_value advise_below(const struct advise_facts *a,
                                 uint32_t function);
/* What code that is not compiled at the function or at `other` (0: none) may
** cost. Code that calls it cannot be compiled either, or not in one piece with
** what it calls: so the samples below the two and below their direct callers
** count, without those in compiled loops (with `loops`: below the two they count
** as well); those of all callers that were not in compiled code; and work of the
** kinds `everywhere`. */
struct advise_value advise_around(const struct advise_facts *a,
                                  uint32_t function, uint32_t other, bool loops,
                                  unsigned everywhere);
/* Whether one of the function's frames is below a frame of `outer`. */
bool advise_runs_below(const struct advise_facts *a, uint32_t function,
                       uint32_t outer);
/* Functions that have this work, most first; at most room. */
uint32_t advise_functions(const struct advise_facts *a, unsigned works,
                          uint32_t *functions, uint32_t room);
/* Whether the function builds trees: it is called by itself when it allocates,
** and the collector finds them alive. Then what it allocates is what it is for.
*/
bool advise_builds(const struct advise_facts *a, uint32_t function,
                   unsigned works);
enum advise_work advise_row_work(const struct advise_facts *a,
                                 const struct ljp_profile_row *row);
struct advise_value advise_row_value(const struct advise_facts *a,
                                     const struct ljp_profile_row *row);
bool advise_is_time(const struct advise_facts *a,
                    const struct ljp_profile_row *row);

/* findings.c. Adds a finding if it is worth it; returns it, or NULL. */
struct advise_finding *advise_found(const struct advise_facts *a,
                                    struct advise_findings *all,
                                    const struct advise_finding *finding);
struct advise_finding *advise_find(const struct advise_findings *all,
                                   enum ljp_advise_kind kind,
                                   uint32_t function);
bool ljp_advise_judge(const struct advise_facts *a,
                      struct advise_findings *all);
void ljp_advise_findings_fini(struct advise_findings *all);
const char *ljp_advise_name(enum ljp_advise_kind kind);
const char *ljp_advise_title(enum ljp_advise_kind kind);
const char *ljp_advise_remedy(const struct advise_finding *f);
const char *ljp_advise_anchor(const struct advise_finding *f);
double ljp_advise_least(enum ljp_advise_kind kind);
const char *ljp_advise_unit(const struct advise_facts *a,
                            const struct advise_finding *f);
#define LJP_ADVISE_PAGE "doc/guide/advice.md"

/* The rules: rules_jit.c, rules_calls.c, rules_work.c, rules_garbage.c,
** rules_memory.c. */
/* clang-format off */
#define LJP_ADVISE_RULE_LIST(_)                                                \
  _(aborts) _(blacklisted) _(sorts) _(api_calls) _(callbacks) _(exits)         \
  _(traces) _(stitching) _(strings) _(formats) _(shifting) _(growing)          \
  _(tables) _(closures) _(pairs) _(kernel) _(locks) _(errors) _(collecting)    \
  _(garbage) _(leaks)
/* clang-format on */
#define LJP_X(name)                                                            \
  void advise_rule_##name(const struct advise_facts *a,                        \
                          struct advise_findings *all);
LJP_ADVISE_RULE_LIST(LJP_X)
#undef LJP_X

/* rules_memory.c: why memory that grows was not found, if it was not; or NULL. */
const char *ljp_advise_memory_note(const struct advise_facts *a,
                                   const struct advise_findings *all);

/* text.c, json.c, sarif.c */
struct advise_output {
  const struct advise_facts *facts;
  const struct advise_findings *findings;
  const char *path;
  struct ljp_print *out;
};

enum { ADVISE_NAME_BYTES = 4096 };
/* The function's name, "" for none; and where a finding is. */
void ljp_advise_function(const struct advise_facts *a, uint32_t function,
                         char name[ADVISE_NAME_BYTES]);
struct ljp_str ljp_advise_file(const struct advise_facts *a,
                               const struct advise_finding *f, uint32_t *line);
void ljp_advise_text(const struct advise_output *o);
void ljp_advise_json(const struct advise_output *o);
void ljp_advise_sarif(const struct advise_output *o);

#endif
