/*
** Kinds of objects: tables of one shape, closures of one function, coroutines
** that began with one function, everything else by type.
*/
#ifndef LJP_TOOLS_HEAP_KINDS_H
#define LJP_TOOLS_HEAP_KINDS_H

#include "tools/heap/heap.h"
#include "tools/heap/tree.h"

struct ljp_heap_kind {
  struct ljp_heap_group sums;
  uint64_t key;
  uint32_t example; /* An object of this kind. */
};

#define LJP_HEAP_NO_KIND UINT32_MAX

struct ljp_heap_kinds {
  struct ljp_heap_kind *list;
  uint32_t count, room;
  uint32_t *of; /* By node: in list; of node 0: none. */
};

enum ljp_status ljp_heap_kinds_find(const struct ljp_graph *g,
                                    struct ljp_heap_kinds *kinds);
void ljp_heap_kinds_fini(struct ljp_heap_kinds *kinds);

/* Sorts list[], most bytes of their own first. Then of[] is gone. */
void ljp_heap_kinds_sort(struct ljp_heap_kinds *kinds);

/* "table {id, name}", "coroutine of function app.lua:12". */
void ljp_heap_kind_text(const struct ljp_graph *g,
                        const struct ljp_heap_kind *kind,
                        struct ljp_heap_text *t);

/* The same for many kinds. A metatable without a name is told by its path, which
** may be as long as the heap has objects: only for the first *paths of them, or
** fewer if they are long. With LJP_HEAP_KIND_PATHS at first, only long ones are
** left out. */
enum { LJP_HEAP_KIND_PATHS = 1 << 20 };
void ljp_heap_kind_name(const struct ljp_graph *g,
                        const struct ljp_heap_kind *kind, uint32_t *paths,
                        struct ljp_heap_text *t);

#endif
