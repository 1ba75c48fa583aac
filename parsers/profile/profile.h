/*
** The profile: what one or several streams say, summed up in one pass, as the
** views need it. Frames and stacks have small dense numbers that mean the
** same over all epochs, segments and inputs; nothing is joined by comparing
** names but functions (see below).
**
**   p = ljp_profile_new(&options);
**   ljp_profile_add(p, &reader);      once for each input
**   ljp_profile_finish(p);            symbols; from now on read the arrays
**   ljp_profile_free(p);
**
** Everything below stands still after ljp_profile_finish() and is for reading
** only. What is counted once is counted in exactly one row: the sums over all
** rows are the totals, whatever was lost, unknown or too much. Memory is
** bounded by the LJP_PROFILE_MAX_* below and a table of live blocks; what goes
** beyond them is counted under a frame that says so. One thread a profile.
*/
#ifndef LJP_PARSERS_PROFILE_H
#define LJP_PARSERS_PROFILE_H

#include "parsers/base/strings.h"
#include "parsers/profile/estimate.h"
#include "parsers/stream/reader.h"
#include "parsers/symbols/symbols.h"

#ifdef LJP_DEBUG /* So that tests reach them. */
#define LJP_PROFILE_MAX_NODES (1u << 14)
#define LJP_PROFILE_MAX_ROWS (1u << 14)
#define LJP_PROFILE_MAX_FRAMES (1u << 13)
#define LJP_PROFILE_MAX_CONTEXTS (1u << 10)
#define LJP_PROFILE_MAX_STRING_BYTES (1u << 22)
#define LJP_PROFILE_MAX_EVENTS (1u << 10)
#define LJP_PROFILE_MAX_POINTS (1u << 10)
#else
#define LJP_PROFILE_MAX_NODES (1u << 23)
#define LJP_PROFILE_MAX_ROWS (1u << 23)
#define LJP_PROFILE_MAX_FRAMES (1u << 22)
#define LJP_PROFILE_MAX_CONTEXTS (1u << 16)
#define LJP_PROFILE_MAX_STRING_BYTES (1u << 28)
#define LJP_PROFILE_MAX_EVENTS (1u << 18) /* Of each of gc, marks, traces. */
#define LJP_PROFILE_MAX_POINTS (1u << 21)
#endif

/* Kinds beyond those of the format: frames that no program has. */
enum ljp_profile_kind {
  LJP_FRAME_NO_STACK = 16, /* The event came without a stack. */
  LJP_FRAME_LOST,          /* What stands below was lost in a gap. */
  LJP_FRAME_TOO_MANY,      /* Beyond the limits above. */
  LJP_FRAME_BEFORE,        /* Memory that was allocated before the session. */
  LJP_FRAME_ROOT           /* Of node 0 only. */
};

/* Flags of a frame; bits 0-3 are those of the format (LJP_FRAME_TAIL ...). */
#define LJP_PROFILE_CALLER 0x10u /* offset is a return address. */
#define LJP_PROFILE_INLINED                                                    \
  0x20u /* LUA_INLINED: inlined by the frame below it into compiled code. */
#define LJP_PROFILE_INLINED_C                                                  \
  0x40u /* HOST ...: inlined by the node above it (its parent), which has the  \
        ** same module and offset. */
#define LJP_PROFILE_UNKNOWN 0x80u /* What it refers to is not defined. */

/* A frame: of one place in one function. Two nodes with the same frame are the
** same place. Numbers of strings: ljp_profile_str(). */
struct ljp_profile_frame {
  uint32_t name;       /* Of the function; 0: not known. */
  uint32_t file;       /* Lua: as shown, without '@'. C: by debug info. 0. */
  uint32_t first_line; /* Lua: of the definition. TRACE: of its start. */
  uint32_t line;       /* Current line; 0: not known. */
  uint32_t module;     /* In modules[]; 0: none. */
  uint32_t function;   /* In functions[]. */
  uint32_t trace;      /* TRACE: in traces[]. */
  uint64_t offset;     /* Address in the module's file; other kinds: the number
                       ** (builtin id, trace number, cut reason ...). */
  uint8_t kind;        /* enum ljp_frame_kind or ljp_profile_kind. */
  uint8_t flags;
};

/* What a person calls a function: frames that differ in line, offset,
** exactness, or in whether they ran compiled, are of one. The name of a
** function is that of its first frame (ljp_function_name). */
struct ljp_profile_function {
  uint32_t frame; /* One of its frames. */
};

/* A node of the stack tree: parent < child. Node 0 is the root of all, and
** holds no frame; its children are the outermost frames. */
struct ljp_profile_node {
  uint32_t parent, frame;
};

/* Under which circumstances: thread, VM, state, producer. */
struct ljp_profile_context {
  uint32_t thread, vm; /* In threads[], vms[]. */
  uint8_t kind;        /* enum ljp_producer_kind. */
  uint8_t state;       /* enum ljp_vmstate. */
  uint8_t cut;         /* enum ljp_cut: why the walk ended early. */
  uint8_t type;        /* enum ljp_mem_type: what memory is for. */
};

/* What was counted at a stack in a context. Memory rows: of blocks that were
** allocated (or last reallocated) there. */
struct ljp_profile_row {
  uint32_t node, context;
  uint32_t memory; /* In memory[]; 0: none. */
  uint64_t count;  /* Samples; allocations. */
  uint64_t weight; /* Ns; bytes allocated, those of reallocations too. */
};

/*
** Memory of a row. In sampled streams an event stands for more than itself:
** bytes and objects are then estimates without bias; how good they are stands in
** estimates[], at the same place. Objects are kept in 1/LJP_OBJECT parts, so that sums agree however
** they are made. alloc_bytes - free_bytes = live_bytes, and so for objects,
** in each row except the one of blocks from before the session.
*/
#define LJP_OBJECT UINT64_C(65536)
struct ljp_profile_memory {
  /* What most events change stands together, in one line of the cache. Bytes
  ** allocated: and those of reallocations, their new size. */
  uint64_t alloc_objects, alloc_bytes;
  uint64_t live_objects, live_bytes;
  uint64_t free_events;              /* As they stand in the stream. */
  uint64_t free_objects, free_bytes; /* Bytes: and what reallocations and
                                     ** moves took away. */
  uint64_t peak_fall;                /* While reading: mem.c. */
  uint32_t row, vm;                  /* Whose: in rows[], vms[]. */
  uint64_t temporary_objects, temporary_bytes;  /* Freed by the first GC cycle
                                               ** that could. */
  uint64_t realloc_events;                      /* Done at this stack. */
  uint64_t moved_objects_in, moved_objects_out; /* By reallocation. */
  uint64_t peak_objects, peak_bytes;     /* When all together were most. */
  uint64_t old_objects, old_bytes;       /* Live, and survived two of those. */
  uint64_t recent_objects, recent_bytes; /* Live, allocated since the mark
                                         ** asked for (options.since). */
  uint64_t slices;    /* Bit n: of what is live and old, some was allocated in
                   ** the n-th 64th of the session. */
  uint64_t unused[3]; /* To whole lines of the cache. */
};

/* Of what stands in the members of these names. */
#define LJP_ESTIMATES_LIST(_)                                                  \
  _(alloc) _(live) _(peak) _(temporary) _(old) _(recent)
struct ljp_profile_estimates {
#define LJP_X(name) struct ljp_estimate name;
  LJP_ESTIMATES_LIST(LJP_X)
#undef LJP_X
};

/* A row's share of a moment; in order of time. */
struct ljp_profile_point {
  uint32_t tick, row;
  uint32_t count;
  uint8_t live; /* Live at the end, by when it was allocated. */
  uint64_t weight;
};

struct ljp_profile_module {
  uint32_t path, build_id; /* Strings; raw bytes. */
  uint32_t symbols;        /* Handle for ljp_symbols_get(). */
  uint64_t span, flags;
};

struct ljp_profile_thread {
  uint32_t source, name;
  uint64_t id, tid;
};

struct ljp_profile_vm {
  uint32_t source, name;
  uint64_t id;
  bool has_heap; /* By LuaJIT's own count, in GC records: */
  uint64_t heap_first, heap_last;
};

/* Times are nanoseconds since profile.origin_ns. */
struct ljp_profile_gc {
  uint64_t time_ns, heap_bytes;
  uint32_t vm;
  uint8_t phase;
};

struct ljp_profile_mark {
  uint64_t time_ns;
  int64_t value;
  uint32_t thread, vm, text;
  /* In memory then, of blocks since the session began. */
  uint64_t live_objects, live_bytes;
  struct ljp_estimate estimate;
};

/* A compiled trace. A number may mean several, one after the other. */
struct ljp_profile_trace {
  uint64_t id;
  uint64_t code_address, code_bytes;
  uint32_t source, vm, number;
  bool known;                   /* It was defined; else only named. */
  bool truncated;               /* Not all of its code has marks. */
  uint32_t parent, parent_exit; /* Whose exit it continues; 0: a root. */
  uint32_t root, link;          /* In traces[]; 0: none. */
  uint32_t link_type;           /* String. */
  uint32_t file, name;          /* Of the function where it starts. */
  uint32_t first_line, line;
  uint32_t ir_count, snapshots, marks, marks_cut;
};

/* See RFC 1 for what each of them has. */
struct ljp_profile_trace_event {
  uint64_t time_ns;
  uint32_t trace, parent; /* In traces[]; 0: none. */
  uint32_t parent_exit;
  uint32_t vm, file, name; /* Of the prototype; 0: not known. */
  uint32_t first_line, line, reason;
  uint32_t reason_number;
  uint32_t stack; /* Node of where it happened; 0: none, or not asked for. */
  uint8_t what;   /* enum ljp_trace_what. */
};

struct ljp_profile_totals {
  uint64_t samples, cpu_ns;       /* Of CPU producers. */
  uint64_t wall_samples, wall_ns; /* Of wall-clock producers. */
  uint64_t alloc_events, free_events, realloc_events; /* In the stream. */
  uint64_t filtered;                 /* Events that the options left out. */
  uint64_t cut[256];                 /* Samples, by reason. */
  uint64_t no_stack;                 /* Events without any. */
  uint64_t lost_stacks;              /* Events with a stack lost in a gap. */
  uint64_t unnamed;                  /* Functions without a name (RFC 3). */
  uint64_t too_many;                 /* Events under LJP_FRAME_TOO_MANY. */
  uint64_t marks_cut;                /* Of traces: left out. */
  uint64_t truncated;                /* Traces that are not wholly marked. */
  uint64_t lost[LJP_LOSS_COUNT + 1]; /* Before the file; last: others. */
  uint64_t lost_all;
  uint64_t overruns;
  uint64_t swallowed; /* Events that gaps have swallowed. */
  uint64_t gaps, gap_bytes, missing_blocks, bad_records, unclosed;
  bool missing_known;
  uint64_t end_status, end_errno;   /* Of a session that an error has ended. */
  uint64_t throttled;               /* INTERVAL events of that reason. */
  uint64_t dropped_events;          /* gc, marks, traces: over the limit. */
  struct ljp_profile_memory memory; /* Sums over memory[]. */
  struct ljp_profile_estimates estimates;
  uint64_t double_allocs; /* An address that was live was given out again: its
                           ** free was not seen. */
  uint64_t before_frees, before_free_bytes; /* Of blocks from before. */
  uint64_t before_reallocs;
  uint64_t failed_allocs; /* There was no memory for them. */
  uint64_t peak_bytes, peak_ns;
};

struct ljp_profile_options {
  uint64_t from_ns, to_ns; /* Since the origin; to 0: no end. Memory: what was
                           ** allocated then; frees count at any time. */
  const char *thread;      /* By name, id ("1"), or OS id; NULL: all. */
  const char *since;       /* A mark's text: recent_* count from there. */
  bool since_old;          /* recent_*, slices: what is old, too. */
  bool no_symbols;
  bool no_samples, no_memory; /* Leave these events out. */
  bool points;
  bool trace_stacks; /* Keep the stacks of trace events: nodes that nothing may
                     ** be counted at. */
  struct ljp_symbols_options symbols;
  /* Now and then; bytes read so far. NULL: none. */
  void (*progress)(void *ctx, uint64_t bytes);
  void *progress_ctx;
};

struct ljp_profile {
  struct ljp_profile_options options;
  struct ljp_profile_frame *frames;       /* [0]: of the root. */
  struct ljp_profile_function *functions; /* [0]: of the root. */
  struct ljp_profile_node *nodes;
  struct ljp_profile_context *contexts;
  struct ljp_profile_row *rows;
  struct ljp_profile_memory *memory;       /* [0]: unused. */
  struct ljp_profile_estimates *estimates; /* Beside memory[]; NULL: all that
                                           ** it holds is exact. */
  struct ljp_profile_module *modules;      /* [0]: none. So too: */
  struct ljp_profile_thread *threads;      /* [0]: not known. */
  struct ljp_profile_vm *vms;
  struct ljp_profile_gc *gc;
  struct ljp_profile_mark *marks;
  struct ljp_profile_trace *traces; /* [0]: none. */
  struct ljp_profile_trace_event *trace_events;
  struct ljp_profile_point *points;
  uint32_t frame_count, function_count, node_count, context_count, row_count;
  uint32_t memory_count, module_count, thread_count, vm_count;
  uint32_t gc_count, mark_count, trace_count, trace_event_count, point_count;
  uint64_t origin_ns;      /* CLOCK_MONOTONIC of the first block. */
  uint64_t origin_wall_ns; /* Since 1970; 0: not known. */
  uint64_t end_ns;         /* Since the origin: of the last event. */
  uint64_t tick_ns;        /* Of points. */
  uint64_t interval_ns[8]; /* By producer kind, as first set; 0: none. */
  uint32_t executable, command_line; /* Strings, of the first input. */
  uint32_t source_count;
  uint64_t pid;
  uint64_t sample_bytes; /* The largest that memory was sampled by. */
  bool has_memory, sampled_memory, has_gc;
  struct ljp_profile_totals totals;
  struct ljp_symbols *symbols;
  struct ljp_strings strings; /* See ljp_profile_str(). */
  char **notices;             /* See ljp_profile_notice(). */
  uint32_t notice_count;
  struct ljp_profile_pass *pass; /* Until ljp_profile_finish(). */
  char error[LJP_READER_ERROR_BYTES + 64];
};

/* NULL: no memory. options are copied, its strings borrowed. */
struct ljp_profile *ljp_profile_new(const struct ljp_profile_options *options);
void ljp_profile_free(struct ljp_profile *p);

/* Reads to the end. Damage is no error. On one, p->error says what it was and
** p can only be freed. */
enum ljp_status ljp_profile_add(struct ljp_profile *p,
                                struct ljp_reader *reader);

/* Resolves symbols and makes the arrays what they are described to be. */
enum ljp_status ljp_profile_finish(struct ljp_profile *p);

/* Opens, adds and finishes a file ("-": standard input). *p is NULL on failure
** and error tells. */
enum ljp_status ljp_profile_load(const char *path,
                                 const struct ljp_profile_options *options,
                                 struct ljp_profile **p,
                                 char error[LJP_READER_ERROR_BYTES + 64]);

/* Not terminated in general; valid as long as p. 0 is empty. */
struct ljp_str ljp_profile_str(const struct ljp_profile *p, uint32_t string);

/* What stands at the top of every report: the n-th sentence on losses, cuts,
** gaps, limits, missing symbols; NULL after the last. After finish. */
const char *ljp_profile_notice(const struct ljp_profile *p, uint32_t n);

#endif
