/*
** Kinds of objects: tables of one shape, closures of one function, coroutines
** that began with one function, everything else by type.
*/
#ifndef LJP_TOOLS_HEAP_KINDS_H
#define LJP_TOOLS_HEAP_KINDS_H

#include "tools/heap/heap.h"

struct ljp_heap_kind {
  uint64_t key;
  uint32_t example; /* An object of this kind. */
  uint32_t open;
  uint64_t objects, own;
  /* The sum of what they retain, each byte once. Objects that only several of
  ** them together keep alive are not in it. */
  uint64_t retained;
};

struct ljp_heap_kinds {
  struct ljp_heap_kind *list; /* Most bytes of their own first. */
  uint32_t count, room;
};

enum ljp_status ljp_heap_kinds_find(const struct ljp_graph *g,
                                    struct ljp_heap_kinds *kinds);
void ljp_heap_kinds_fini(struct ljp_heap_kinds *kinds);

/* "table {id, name}", "coroutine of function app.lua:12". */
void ljp_heap_kind_text(const struct ljp_graph *g,
                        const struct ljp_heap_kind *kind,
                        struct ljp_heap_text *t);

#endif
