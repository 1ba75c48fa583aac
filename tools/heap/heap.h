/*
** What the files of `ljprof heap` share: how objects and the ways to them are
** shown. No other folder includes it.
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

/* A shortest path to the object: "_G.cache.items[17]". */
void ljp_heap_path(const struct ljp_graph *g, uint32_t node,
                   struct ljp_heap_text *t);

#endif
