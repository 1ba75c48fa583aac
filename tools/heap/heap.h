/*
** How objects of a heap and the ways to them are shown: by `ljprof heap`, and by
** the views of other folders that show heap snapshots.
*/
#ifndef LJP_TOOLS_HEAP_H
#define LJP_TOOLS_HEAP_H

#include "parsers/heap/graph.h"
#include "tools/shared/print.h"

/* Text that is cut where the room ends; always terminated. */
struct ljp_heap_text {
  char data[1024];
  size_t len;
};

__attribute__((format(printf, 2, 3))) void
ljp_heap_format(struct ljp_heap_text *t, const char *format, ...);
void ljp_heap_bytes(struct ljp_heap_text *t, struct ljp_str s, size_t limit);

/* "table {id, name, ...}", "function app.lua:12", "string \"...\"". */
void ljp_heap_describe(const struct ljp_graph *g, uint32_t node,
                       struct ljp_heap_text *t);

/* Some string keys of a table, in alphabetical order if it has few. with_items:
** also how many items it has, not only whether it has any, and how many objects are
** its keys. */
void ljp_heap_describe_table(const struct ljp_graph *g, uint32_t node,
                             bool with_items, struct ljp_heap_text *t);

/* "function app.lua:12", "string.gmatch" of a builtin. */
void ljp_heap_describe_function(const struct ljp_graph *g, uint32_t node,
                                struct ljp_heap_text *t);

/* "struct point *", "int32_t[100]" of the number of a C type. */
void ljp_heap_describe_ctype(const struct ljp_graph *g, uint32_t number,
                             struct ljp_heap_text *t);

/* The target of the first reference of a kind; 0: there is none. */
uint32_t ljp_heap_follow(const struct ljp_graph *g, uint32_t node,
                         enum ljp_heap_how how);

/* A shortest path to the object: "_G.cache.items[17]". */
void ljp_heap_path(const struct ljp_graph *g, uint32_t node,
                   struct ljp_heap_text *t);

/* Adds one step of a path: by reference `ref` of the node `from`. Only
** "package.loaded" replaces a step, the "registry" before it. */
void ljp_heap_step(const struct ljp_graph *g, uint32_t from, uint32_t ref,
                   struct ljp_heap_text *t);

/* Is this node held by this root? Is it package.loaded? */
bool ljp_heap_is_root(const struct ljp_graph *g, uint32_t node,
                      enum ljp_heap_root root);
bool ljp_heap_is_loaded(const struct ljp_graph *g, uint32_t node);
/* Can Lua code have it after a dot, as in t.name? */
bool ljp_heap_is_name(struct ljp_str s);
/* The FRAME reference to which a LOCAL or SLOT of a thread belongs; UINT32_MAX:
** none. */
uint32_t ljp_heap_frame_of(const struct ljp_graph *g, uint32_t thread,
                           uint32_t ref);

#endif
