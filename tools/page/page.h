/*
** Page: the data that is drawn: frames (functions of one kind), a tree of
** stacks, and for each view its rows over time. load.c fills it, html.c and
** svg.c write it, diff_data.c compares two profiles on it.
**
** Frame 0 and node 0 are the root. The parent of a node has a smaller number.
** Equal frames, nodes and contexts are stored once. One thread.
*/
#ifndef LJP_TOOLS_PAGE_H
#define LJP_TOOLS_PAGE_H

#include "parsers/stream/arena.h"
#include "parsers/stream/item.h"
#include "tools/page/rows.h"
#include "tools/shared/print.h"

/* Kinds of frames: key, colour in drawings, name. tools/viewer/data.js has the
** same list. */
#define LJP_PAGE_KIND_LIST(_)                                                  \
  _(ROOT, "#d8dbe0", "All")                                                    \
  _(LUA, "#f3c078", "Lua")                                                     \
  _(JIT, "#9ccd86", "Compiled Lua")                                            \
  _(INLINED, "#84ccb3", "Inlined Lua")                                         \
  _(BUILTIN, "#ebdc6f", "Builtin")                                             \
  _(C, "#93bdec", "C function")                                                \
  _(NATIVE, "#bec8da", "Host")                                                 \
  _(VM, "#c6b3e8", "VM")                                                       \
  _(GC, "#ecaab2", "GC")                                                       \
  _(KERNEL, "#dfb9d4", "Kernel")                                               \
  _(PROFILER, "#c6cdb4", "Profiler")                                           \
  _(CUT, "#d6d6d6", "Cut")                                                     \
  _(TABLE, "#f3c078", "Table")                                                 \
  _(STRING, "#9ccd86", "String")                                               \
  _(FUNCTION, "#93bdec", "Function")                                           \
  _(COROUTINE, "#ecaab2", "Coroutine")                                         \
  _(DATA, "#dfb9d4", "Userdata")                                               \
  _(GROUP, "#c3c6cc", "Group")

enum ljp_page_kind {
#define LJP_X(key, colour, name) LJP_PAGE_##key,
  LJP_PAGE_KIND_LIST(LJP_X)
#undef LJP_X
      LJP_PAGE_KINDS
};

/* Views: key, id, name, unit of weights, name of counts ("": none). */
#define LJP_PAGE_VIEW_LIST(_)                                                  \
  _(CPU, "cpu", "CPU", "ns", "samples")                                        \
  _(WALL, "wall", "Wall clock", "ns", "samples")                               \
  _(ALLOC, "alloc", "Allocations", "bytes", "objects")                         \
  _(LIVE, "live", "Live", "bytes", "objects")                                  \
  _(LEAK, "leaks", "Leaks", "bytes", "objects")                                \
  _(GC_COST, "gc-cost", "GC cost", "ns", "")                                   \
  _(RETAINED, "retained", "Retained", "bytes", "objects")                      \
  _(REFERENCES, "references", "References", "bytes", "objects")

#define LJP_PAGE_VIEW_WORD(key, id, name, unit, counts) " " id

enum ljp_page_view {
#define LJP_X(key, id, name, unit, counts) LJP_PAGE_VIEW_##key,
  LJP_PAGE_VIEW_LIST(LJP_X)
#undef LJP_X
      LJP_PAGE_VIEWS
};

struct ljp_page_frame {
  struct ljp_str name, file, module;
  uint32_t line;
  uint8_t kind; /* enum ljp_page_kind */
};

struct ljp_page_node {
  uint32_t parent, frame, line;
};

struct ljp_page_context {
  struct ljp_str thread, vm, state;
  struct ljp_str labels; /* As in a LABELS record; of what is not known: one
                         ** value of the empty key. */
};

struct ljp_page_point {
  uint64_t time_ns, value;
};

/* A curve over time, such as the heap size of a VM. Long curves are thinned
** out but keep their highest and lowest points. */
struct ljp_page_curve {
  struct ljp_str name;
  struct ljp_page_point *points;
  size_t count, room;
};

struct ljp_page_gc {
  uint64_t start_ns, length_ns;
  uint8_t phase;
};

struct ljp_page_mark {
  uint64_t time_ns;
  struct ljp_str text;
};

struct ljp_page_notice {
  bool error; /* False: a warning. */
  struct ljp_str text;
};

/* A line of source code. */
struct ljp_page_source {
  struct ljp_str file, text;
  uint32_t line;
};

struct ljp_page_fact {
  struct ljp_str name, value;
};

/* Hash index of a list. */
struct ljp_page_index {
  uint32_t *slots; /* Index + 1; 0: free. */
  size_t mask;
};

/* The growing lists: F(type, member). */
#define LJP_PAGE_LISTS(F)                                                      \
  F(struct ljp_page_frame, frame)                                              \
  F(struct ljp_page_node, node)                                                \
  F(struct ljp_page_context, context)                                          \
  F(struct ljp_page_curve, curve)                                              \
  F(struct ljp_page_gc, gc)                                                    \
  F(struct ljp_page_mark, mark)                                                \
  F(struct ljp_page_notice, notice)                                            \
  F(struct ljp_page_fact, fact)

struct ljp_page {
#define LJP_X(type, member)                                                    \
  type *member##s;                                                             \
  size_t member##_count, member##_room;
  LJP_PAGE_LISTS(LJP_X)
#undef LJP_X
  /* By node: the node where its rows count in the Lua view. NULL: the page has
  ** one view only. */
  uint32_t *lua_nodes;
  size_t lua_count; /* Nodes beyond count where they are. */
  /* By node, up to slice_count: the slices of the session in which its leaks
  ** were allocated (see struct ljp_profile_memory). */
  uint64_t *slices;
  size_t slice_count;
  struct ljp_page_source *sources; /* Sorted by file and line. */
  size_t source_count;
  struct ljp_rows rows[LJP_PAGE_VIEWS];
  struct ljp_page_index frame_index, node_index, context_index;
  struct ljp_arena texts;
  struct ljp_str title, subtitle;
  bool estimated;         /* Memory was sampled: values are estimates. */
  bool untimed;           /* The file has no times: samples are counted. */
  bool gc_full;           /* Joining phases does not help any more. */
  uint64_t end_ns;        /* Time from the start of the session to its end. */
  enum ljp_status failed; /* LJP_ERR_MEM: data is missing. */
};

enum ljp_status ljp_page_init(struct ljp_page *page);
void ljp_page_fini(struct ljp_page *page);

/* A copy of the text that lives as long as the page. */
struct ljp_str ljp_page_text(struct ljp_page *page, struct ljp_str text);
__attribute__((format(printf, 2, 3))) struct ljp_str
ljp_page_format(struct ljp_page *page, const char *format, ...);

/* Find or add an element and return its number. Texts are copied. Out of
** memory: 0, and page->failed. */
uint32_t ljp_page_frame(struct ljp_page *page,
                        const struct ljp_page_frame *frame);
uint32_t ljp_page_node(struct ljp_page *page, uint32_t parent, uint32_t frame,
                       uint32_t line);
uint32_t ljp_page_context(struct ljp_page *page,
                          const struct ljp_page_context *context);

/* The unit of a view's weights; "samples" if the file has no times. */
const char *ljp_page_unit(const struct ljp_page *page, enum ljp_page_view view);

void ljp_page_row(struct ljp_page *page, enum ljp_page_view view,
                  uint64_t time_ns, uint32_t node, uint32_t context,
                  uint64_t count, uint64_t weight);
/* Adds a row of leaks. */
void ljp_page_leak(struct ljp_page *page, uint32_t node, uint32_t context,
                   uint64_t count, uint64_t weight, uint64_t slices);
void ljp_page_point(struct ljp_page *page, struct ljp_str curve,
                    uint64_t time_ns, uint64_t value);
void ljp_page_gc(struct ljp_page *page, uint64_t start_ns, uint64_t length_ns,
                 uint8_t phase);
void ljp_page_mark(struct ljp_page *page, uint64_t time_ns,
                   struct ljp_str text);
void ljp_page_notice(struct ljp_page *page, bool error, struct ljp_str text);
void ljp_page_fact(struct ljp_page *page, const char *name,
                   struct ljp_str value);

/* Sorts all rows and rounds their times to ticks of one length. Returns that
** length. */
uint64_t ljp_page_finish(struct ljp_page *page);

#endif
