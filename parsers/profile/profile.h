/*
** The profile: one or several streams, summed up in one pass for the views.
** Frames and stacks have small dense numbers, which mean the same across all
** epochs, file segments and inputs. Only functions are identified by their
** names (see struct ljp_profile_function).
**
**   p = ljp_profile_new(&options);
**   ljp_profile_add(p, &reader);      once for each input
**   ljp_profile_finish(p);            symbols; from now on read the arrays
**   ljp_profile_free(p);
**
** After ljp_profile_finish() the profile is read-only. Each event is counted in
** exactly one row, so the sums over all rows are the totals, even if stacks
** were lost or are unknown or too many. Memory is bounded by the
** LJP_PROFILE_MAX_* below, except for the table of live blocks; what exceeds a
** limit is counted under a frame that says so. One thread a profile.
*/
#ifndef LJP_PARSERS_PROFILE_H
#define LJP_PARSERS_PROFILE_H

#include "parsers/base/strings.h"
#include "parsers/profile/births.h"
#include "parsers/profile/estimate.h"
#include "parsers/stream/balance.h"
#include "parsers/stream/growth.h"
#include "parsers/stream/reader.h"
#include "parsers/symbols/symbols.h"

#ifdef LJP_DEBUG /* Tests reach the limits. */
#define LJP_PROFILE_MAX_NODES (1u << 14)
#define LJP_PROFILE_MAX_ROWS (1u << 14)
#define LJP_PROFILE_MAX_FRAMES (1u << 13)
#define LJP_PROFILE_MAX_CONTEXTS (1u << 10)
#define LJP_PROFILE_MAX_STRING_BYTES (1u << 22)
#define LJP_PROFILE_MAX_EVENTS (1u << 10)
#define LJP_PROFILE_MAX_NOTES 2u
#define LJP_PROFILE_MAX_POINTS (1u << 10)
#define LJP_PROFILE_MAX_LABELS (1u << 6)
#define LJP_PROFILE_MAX_LABEL_PAIRS (1u << 10)
#else
#define LJP_PROFILE_MAX_NODES (1u << 23)
#define LJP_PROFILE_MAX_ROWS (1u << 23)
#define LJP_PROFILE_MAX_FRAMES (1u << 22)
#define LJP_PROFILE_MAX_CONTEXTS (1u << 20)
#define LJP_PROFILE_MAX_STRING_BYTES (1u << 28)
#define LJP_PROFILE_MAX_EVENTS (1u << 18) /* Of gc, marks, traces ... each. */
#define LJP_PROFILE_MAX_NOTES 16u         /* Different warnings and errors. */
#define LJP_PROFILE_MAX_POINTS (1u << 21)
#define LJP_PROFILE_MAX_LABELS (1u << 16) /* Sets. */
#define LJP_PROFILE_MAX_LABEL_PAIRS (1u << 20)
#endif

/* Kinds of frames that the profile adds to those of the format. */
enum ljp_profile_kind {
  LJP_FRAME_NO_STACK = 16, /* For events without a stack. */
  LJP_FRAME_LOST,          /* For the callers that were lost in a gap. */
  LJP_FRAME_TOO_MANY,      /* For stacks beyond the limits above. */
  LJP_FRAME_BEFORE,        /* For memory allocated before the session. */
  LJP_FRAME_UNRECORDED,    /* For memory of VMs without memory events. */
  LJP_FRAME_COLLECTOR,     /* For the collector, in the Lua view. */
  LJP_FRAME_OUTSIDE,       /* For stacks without Lua, in the Lua view. */
  LJP_FRAME_ROOT           /* Of node 0 only. */
};

/* Flags of a frame; bits 0-3 are those of the format (LJP_FRAME_TAIL ...).
**   CALLER     offset is a return address
**   INLINED    LUA_INLINED: inlined into its parent in compiled code
**   INLINED_C  HOST ...: inlined into its parent, which has the same module
**              and offset
**   UNKNOWN    the frame refers to something that is not defined */
#define LJP_PROFILE_CALLER 0x10u
#define LJP_PROFILE_INLINED 0x20u
#define LJP_PROFILE_INLINED_C 0x40u
#define LJP_PROFILE_UNKNOWN 0x80u

/* A frame: one place in one function. Two nodes with the same frame are the
** same place. Strings are numbers for ljp_profile_str(). */
struct ljp_profile_frame {
  uint32_t name;       /* Of the function; 0: not known. */
  uint32_t file;       /* Lua: without '@'. C: by debug info. 0: not known. */
  uint32_t first_line; /* Lua: of the definition. TRACE: where it starts. */
  uint32_t line;       /* Current line; 0: not known. */
  uint32_t module;     /* In modules[]; 0: none. */
  uint32_t function;   /* In functions[]. */
  uint32_t trace;      /* TRACE: in traces[]. */
  uint64_t offset;     /* Machine code: address in the module's file. Other
                       ** kinds: a number (builtin id, trace number, cut
                       ** reason ...). */
  uint8_t kind;        /* enum ljp_frame_kind or ljp_profile_kind. */
  uint8_t flags;
};

/* A function as people understand it: frames that differ only in line, offset,
** exactness, or in whether they ran compiled, belong to one function. */
struct ljp_profile_function {
  uint32_t frame; /* Its first frame, which names it (ljp_function_name). */
};

/* A node of the stack tree: parent < child. Node 0 is the root; it is not a
** frame of a program. Its children are the outermost frames. */
struct ljp_profile_node {
  uint32_t parent, frame;
};

/* States that the profile adds to those of the format. */
enum ljp_profile_state {
  LJP_STATE_LUA = 255 /* Lua code, interpreted, where the file tells it from the
                     ** interpreter's own work. */
};

/* The circumstances of an event. */
struct ljp_profile_context {
  uint32_t thread, vm; /* In threads[], vms[]. */
  uint8_t kind;        /* enum ljp_producer_kind. */
  uint8_t state;       /* enum ljp_vmstate or ljp_profile_state. */
  uint8_t cut;         /* enum ljp_cut: why the walk ended early. */
  uint8_t type;        /* enum ljp_mem_type: what the memory is for. */
  uint32_t labels;     /* In labels[]. */
};

/* What was counted at a stack in a context. Memory: the blocks that were
** allocated (or last reallocated) there. */
struct ljp_profile_row {
  uint32_t node, context;
  uint32_t memory; /* In memory[]; 0: none. */
  uint64_t count;  /* Samples; allocations. */
  uint64_t weight; /* Nanoseconds; bytes allocated or reallocated. Samples of
                   ** a file without times: their number. */
};

/*
** Memory of a row. In sampled streams an event stands for more than itself;
** bytes and objects are then unbiased estimates, and estimates[] has their
** errors at the same place. Objects are counted in units of 1/LJP_OBJECT, so
** that sums agree in whatever order they are made.
**
** In each row alloc_bytes - free_bytes = live_bytes, except in that of blocks
** allocated before the session, and but for blocks that were alive when the file
** began (totals.held_bytes). For objects, with those that reallocations
** moved in and out, too; but if they are sampled, without: whether a block is
** sampled is decided anew when it is reallocated, so a sampled object counts as
** allocated in the row that allocated or last reallocated it.
*/
#define LJP_OBJECT UINT64_C(65536)
struct ljp_profile_memory {
  /* The members that most events change are in one cache line. */
  uint64_t alloc_objects;
  uint64_t alloc_bytes; /* With the new sizes of reallocations. */
  uint64_t live_objects, live_bytes;
  uint64_t free_events; /* Not scaled up. */
  uint64_t free_objects;
  uint64_t free_bytes; /* With blocks that reallocations took away. */
  uint64_t peak_fall;  /* During the pass: see memory.c. */

  uint32_t row, vm : 31; /* Its row and VM. */
  /* Something live was allocated in the last third of the session. */
  uint32_t late : 1;
  /* Freed before a GC cycle of the VM ended after the allocation. */
  uint64_t temporary_objects, temporary_bytes;
  uint64_t realloc_events;                      /* Done at this stack. */
  uint64_t moved_objects_in, moved_objects_out; /* By reallocations. */
  uint64_t peak_objects, peak_bytes; /* Live at the peak of the whole. */
  /* Live, and two or more GC cycles have ended since the allocation. */
  uint64_t old_objects, old_bytes;
  /* Live, and allocated after the mark options.since. */
  uint64_t recent_objects, recent_bytes;
  /* Bit n: of what is live and old, something was allocated in the n-th 64th
  ** of the session. See LJP_PROFILE_GROWS. */
  uint64_t slices;
  /* Sums over blocks times the collections that they outlived; and the part of
  ** the collector's time (options.gc_cost). */
  uint64_t marked_objects, marked_bytes, gc_ns;
};

/* Memory kept growing if at least this many of its slices are set. What a
** program loads at its start falls into one or two. */
#define LJP_PROFILE_GROWS 8

/* The errors of the members of struct ljp_profile_memory with these names. */
#define LJP_ESTIMATES_LIST(_)                                                  \
  _(alloc) _(live) _(peak) _(temporary) _(old) _(recent)
struct ljp_profile_estimates {
#define LJP_X(name) struct ljp_estimate name;
  LJP_ESTIMATES_LIST(LJP_X)
#undef LJP_X
};

/* What happened at a row, whichever blocks it was about. Only files of other
** profilers tell it (profile.recorded_by): their frees have a place, too. */
struct ljp_profile_site {
  uint64_t frees, free_bytes;
  uint64_t realloc_bytes, realloc_old_bytes; /* New sizes; old sizes. */
};

/* What was counted at a row in one tick (options.points); sorted by time. */
struct ljp_profile_point {
  uint32_t tick, row;
  uint64_t count; /* Objects: in units of 1/LJP_OBJECT, as in memory[]. */
  uint64_t weight;
  uint8_t live; /* Memory that is live at the end; tick: its allocation. */
};

/* The collector's CPU time (options.gc_cost). */
struct ljp_profile_gc_cost {
  uint64_t samples, mark_ns, sweep_ns;
  uint64_t before_ns;   /* Of that: for memory from before the session. */
  uint64_t unplaced_ns; /* More: of VMs without GC events. */
};

struct ljp_profile_module {
  uint32_t path, build_id; /* Strings of raw bytes. */
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
  /* Live at that time, of what was allocated in the session. */
  uint64_t live_objects, live_bytes;
  struct ljp_estimate estimate;
};

/* A compiled trace. LuaJIT gives the number of a freed trace to another one. */
struct ljp_profile_trace {
  uint64_t id;
  uint64_t code_address, code_bytes;
  uint32_t source, vm, number;
  bool known;                   /* It was defined, not only referred to. */
  bool truncated;               /* Not all of its code has markers. */
  uint32_t parent, parent_exit; /* The exit that it continues; 0: a root. */
  uint32_t root, link;          /* In traces[]; 0: none. */
  uint32_t link_type;           /* String. */
  uint32_t file, name;          /* Of the function where it starts. */
  uint32_t first_line, line;
  uint32_t ir_count, snapshots, marks, marks_cut;
};

/* RFC 1 says which kind of event has which members. */
struct ljp_profile_trace_event {
  uint64_t time_ns;
  uint32_t trace, parent; /* In traces[]; 0: none. */
  uint32_t parent_exit;
  uint32_t vm, file, name; /* Of the prototype; 0: not known. */
  uint32_t first_line, line, reason;
  uint32_t reason_number;
  uint32_t stack; /* Node; 0: none, or options.trace_stacks is not set. */
  uint8_t what;   /* enum ljp_trace_what. */
};

/* A function that LuaJIT had blacklisted when its definition was written. */
struct ljp_profile_blacklisted {
  uint32_t file, name, first_line;
};

/* Sets of labels that the profile adds to those of the file. */
enum ljp_profile_own_labels {
  LJP_LABELS_NONE,
  LJP_LABELS_TOO_MANY, /* Beyond the limit of sets. */
  LJP_LABELS_LOST,     /* Their definition was lost in a gap. */
  LJP_LABELS_OWN       /* How many. */
};

/* A set of labels: `count` of label_pairs[], sorted by key. */
struct ljp_profile_labels {
  uint32_t first, count;
  bool wanted; /* The options select events with these labels. */
};

struct ljp_profile_label_pair {
  uint32_t key, value; /* Strings. */
};

struct ljp_profile_totals {
  uint64_t samples, cpu_ns;       /* From CPU producers. */
  uint64_t wall_samples, wall_ns; /* From wall-clock producers. */
  uint64_t alloc_events, free_events, realloc_events; /* In the stream. */
  uint64_t filtered;                 /* Events that the options exclude. */
  uint64_t cut[256];                 /* Samples with a cut stack, by reason. */
  uint64_t no_stack;                 /* Events without a stack. */
  uint64_t lost_stacks;              /* Events whose stack a gap swallowed. */
  uint64_t unnamed;                  /* Functions without a name (RFC 3). */
  uint64_t other_labels;             /* How often values became "(other)". */
  uint64_t too_many;                 /* Events under LJP_FRAME_TOO_MANY. */
  uint64_t too_many_labels;          /* Events with LJP_LABELS_TOO_MANY. */
  uint64_t lost_labels;              /* Events with LJP_LABELS_LOST. */
  uint64_t marks_cut;                /* Markers that traces left out. */
  uint64_t truncated;                /* Traces that left markers out. */
  uint64_t lost[LJP_LOSS_COUNT + 1]; /* Lost before the file, by reason; last:
                                     ** unknown reasons. */
  uint64_t lost_all;
  uint64_t overruns;
  uint64_t swallowed; /* Events that gaps swallowed. */
  uint64_t gaps, gap_bytes, missing_blocks, bad_records;
  uint64_t unclosed, recording; /* Inputs; those that are still recorded. */
  uint64_t continued; /* Inputs that go on in the next file segment. */
  uint64_t later;     /* The file segment that the first input begins with. */
  bool missing_known;
  uint64_t end_status, end_errno;   /* Of a session that an error ended. */
  uint64_t throttled;               /* INTERVAL events with reason THROTTLE. */
  uint64_t dropped_events;          /* gc, marks, traces ... over the limit. */
  struct ljp_profile_memory memory; /* Sums over memory[]. */
  struct ljp_profile_estimates estimates;
  uint64_t double_allocs; /* Allocations at the address of a live block, whose
                          ** free is missing. */
  uint64_t before_frees, before_free_bytes; /* Of blocks allocated before. */
  uint64_t before_reallocs;
  uint64_t later_sessions;           /* That begin with a later file segment. */
  uint64_t held_sessions;            /* Of these: that have HELD. */
  uint64_t held_left_out;            /* HELD without KEPT. */
  uint64_t held_told;                /* Blocks that HELD announces. */
  uint64_t held_read;                /* LIVE records. */
  uint64_t held_objects, held_bytes; /* Of these blocks; as in memory[]. */
  uint64_t failed_allocs; /* Allocations that failed in the program. */
  uint64_t peak_bytes, peak_ns;
};

#define LJP_LABEL_FILTERS 16u
struct ljp_profile_options {
  uint64_t from_ns, to_ns; /* Since the origin; to_ns 0: no end. Memory: what
                           ** was allocated then, whenever it was freed. */
  const char *thread;      /* By name, id ("1"), or OS id; NULL: all. */
  const char *since;       /* A mark's text; recent_* count from there. */
  bool since_old;          /* recent_* and slices: only what is also old. */
  bool no_symbols;
  bool no_samples, no_memory; /* Ignore these events. */
  bool points;
  bool gc_cost;      /* Divide the collector's time among memory[]. */
  bool lua_view;     /* Folds the profile when it is finished. */
  bool trace_stacks; /* Keep the stacks of trace events, even at nodes where
                     ** nothing was counted. */
  bool rates;        /* Of memory, only allocations are counted: no block is
                     ** followed until its free. */
  struct ljp_label_filter {
    const char *list[LJP_LABEL_FILTERS]; /* "KEY=VALUE": only events with all
                                         ** of these. "KEY=": without KEY. */
    unsigned count;
  } labels;
  const char *label_key; /* A key of labels that the file must have. */
  bool label_frames;     /* Puts the value of this key into each stack, as its
                         ** outermost frame. */
  uint64_t births;       /* Collect those of this heap snapshot; 0: of none. */
  struct ljp_symbols_options symbols;
  /* Called now and then with the bytes read so far. NULL: none. */
  void (*progress)(void *ctx, uint64_t bytes);
  void *progress_ctx;
  /* Called for each item but samples, before it is counted. NULL: none. */
  enum ljp_status (*observe)(void *ctx, const struct ljp_reader *reader,
                             const struct ljp_item *item);
  void *observe_ctx;
};

struct ljp_profile {
  struct ljp_profile_options options;
  struct ljp_profile_frame *frames;       /* [0]: of the root. */
  struct ljp_profile_function *functions; /* [0]: of the root. */
  struct ljp_profile_node *nodes;
  struct ljp_profile_context *contexts;
  struct ljp_profile_row *rows;
  struct ljp_profile_memory *memory;       /* [0]: unused. */
  struct ljp_profile_estimates *estimates; /* Parallel to memory[]; NULL: all
                                           ** of memory[] is exact. */
  struct ljp_profile_site *sites; /* Parallel to memory[]; NULL: not told. */
  struct ljp_profile_module *modules; /* [0]: none. */
  struct ljp_profile_thread *threads; /* [0]: not known; so for vms. */
  struct ljp_profile_vm *vms;
  struct ljp_profile_gc *gc;
  struct ljp_profile_mark *marks;
  struct ljp_profile_trace *traces; /* [0]: none. */
  struct ljp_profile_trace_event *trace_events;
  struct ljp_profile_blacklisted *blacklisted;
  struct ljp_profile_labels *labels; /* See enum ljp_profile_own_labels. */
  struct ljp_profile_label_pair *label_pairs;
  struct ljp_profile_point *points;
  uint32_t frame_count, function_count, node_count, context_count, row_count;
  uint32_t memory_count, module_count, thread_count, vm_count;
  uint32_t gc_count, mark_count, trace_count, trace_event_count, point_count;
  uint32_t blacklisted_count, label_count, label_pair_count;
  bool has_labels;                      /* Stacks of the streams have them. */
  uint32_t label_texts[LJP_LABELS_OWN]; /* Strings for values of these. */
  uint64_t origin_ns;      /* CLOCK_MONOTONIC of the first block. */
  uint64_t origin_wall_ns; /* Since 1970; 0: not known. */
  uint64_t end_ns;         /* Since the origin: of the last event. */
  uint64_t tick_ns;        /* Of points. */
  uint64_t interval_ns[8]; /* By producer kind, as first set; 0: none. */
  uint32_t executable, command_line; /* Strings, of the first input. */
  uint32_t source_count;
  uint64_t pid;
  uint64_t sample_bytes; /* Largest mean distance of two memory samples; */
  uint64_t asked_bytes;  /* ... and the one that was asked for. */
  bool has_memory, sampled_memory, has_gc;
  bool ran_to_end;  /* All sessions ended with the program or its VM. */
  bool recorded[8]; /* By producer kind: the file has such a producer, even if
                    ** it has no events of it. */
  bool folded;      /* It is in the Lua view, and that hides machine code. */
  /* The profiler that wrote the file; NULL: ours. The files of others have no
  ** times, threads or process. */
  const char *recorded_by;
  uint64_t source_bytes; /* recorded_by: how much of the file was read. */
  struct ljp_profile_totals totals;
  struct ljp_profile_gc_cost gc_cost;
  struct ljp_births births;      /* options.births */
  struct ljp_balance balance;    /* Of what the options select. */
  struct ljp_growth_sums growth; /* Whatever the options exclude. */
  struct ljp_symbols *symbols;
  struct ljp_strings strings; /* See ljp_profile_str(). */
  char **notices;             /* See ljp_profile_notice(). */
  uint32_t notice_count;
  struct ljp_profile_pass *pass; /* Until ljp_profile_finish(). */
  char error[LJP_READER_ERROR_BYTES + 64];
};

/* NULL: no memory. options are copied; their strings are borrowed until
** ljp_profile_free(). */
struct ljp_profile *ljp_profile_new(const struct ljp_profile_options *options);
void ljp_profile_free(struct ljp_profile *p);

/* Reads an input to its end. Damage is not an error. After an error, p->error
** says what it was, and p can only be freed. */
enum ljp_status ljp_profile_add(struct ljp_profile *p,
                                struct ljp_reader *reader);

/* The same for a file of Tarantool's profilers, which is the only input of its
** profile. */
struct ljp_tarantool_reader;
enum ljp_status ljp_profile_add_tarantool(struct ljp_profile *p,
                                          struct ljp_tarantool_reader *reader);

/* Resolves symbols and completes the arrays. Errors as above. */
enum ljp_status ljp_profile_finish(struct ljp_profile *p);

/* Turns the native view of a finished profile into the Lua view (fold.c). The
** totals do not change. row_map: from an old row to the new one where it is
** counted; zero before, as many as there are rows. NULL: not wanted. After
** LJP_ERR_MEM, p can only be freed. */
enum ljp_status ljp_profile_fold(struct ljp_profile *p, uint32_t *row_map);

/* Opens a file ("-": standard input), adds it and finishes the profile. The
** first bytes tell what wrote the file. On failure *p is NULL and error says
** why. */
enum ljp_status ljp_profile_load(const char *path,
                                 const struct ljp_profile_options *options,
                                 struct ljp_profile **p,
                                 char error[LJP_READER_ERROR_BYTES + 64]);

/* Not always terminated; valid as long as p. String 0 is empty. */
struct ljp_str ljp_profile_str(const struct ljp_profile *p, uint32_t string);

/* The name of a thread or a VM, for a place that shows its number, too: empty if
** the name is only that ("VM 1"), as the library names a VM. what: "VM". */
struct ljp_str ljp_profile_name(const struct ljp_profile *p, uint32_t string,
                                const char *what, uint64_t id);

/* The n-th of the sentences above every report, on losses, cuts, gaps, limits
** and missing symbols; NULL after the last. Call after ljp_profile_finish(). */
const char *ljp_profile_notice(const struct ljp_profile *p, uint32_t n);

#endif
