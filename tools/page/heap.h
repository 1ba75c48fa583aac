/*
** Heap: the tabs of a page that show a heap snapshot.
**
** Retained: the tree of dominators. What stands on a box would go with it.
** References: shortest paths from a root, merged where they differ only in what
** ways.h merges; a box has the bytes of what is held on this way.
**
** In both, objects that are held in the same way and are of the same kind are one
** box. The number of boxes is bounded: what is left out is summed up in boxes
** that say so. One thread.
*/
#ifndef LJP_TOOLS_PAGE_HEAP_H
#define LJP_TOOLS_PAGE_HEAP_H

#include "tools/heap/ways.h"
#include "tools/page/page.h"

/* Shared by heap.c and heap_retained.c. */
struct ljp_page_heap {
  struct ljp_page *page;
  const struct ljp_graph *g;
  struct ljp_heap_kinds kinds;
  struct ljp_heap_ways ways; /* Each node that is held has been asked for. */
  uint32_t *depth;           /* By way. */
  uint64_t bytes;            /* Of all objects that are held. */
  uint32_t paths;            /* For ljp_heap_kind_name(). */
};

#ifdef LJP_DEBUG /* Small, so that tests reach it. */
#define LJP_PAGE_HEAP_BOXES 500u
#define LJP_PAGE_HEAP_PARTS 1000u
#define LJP_PAGE_HEAP_DEPTH 30u
#else
#define LJP_PAGE_HEAP_BOXES 20000u
/* What has less than this part of all bytes gets no box of its own. */
#define LJP_PAGE_HEAP_PARTS 20000u
#define LJP_PAGE_HEAP_DEPTH 200u
#endif

enum ljp_page_heap_rest {
  LJP_PAGE_HEAP_SMALLER,
  LJP_PAGE_HEAP_DEEPER,
  LJP_PAGE_HEAP_VM
};

/* Adds both tabs, and facts about the snapshot. LJP_ERR_MEM. */
enum ljp_status ljp_page_heap(struct ljp_page *page, const struct ljp_graph *g);

/* A box for `count` objects like the example; step: how they are held. */
uint32_t ljp_page_heap_box(struct ljp_page_heap *h, uint32_t parent,
                           uint32_t example, uint64_t count,
                           const struct ljp_heap_text *step);
/* A box for what has none of its own. */
uint32_t ljp_page_heap_rest(struct ljp_page_heap *h, uint32_t parent,
                            enum ljp_page_heap_rest rest);
void ljp_page_heap_row(struct ljp_page_heap *h, enum ljp_page_view view,
                       uint32_t box, uint64_t objects, uint64_t bytes);
/* A part of the VM that holds others: what it holds stands in its place. */
bool ljp_page_heap_is_part(const struct ljp_graph *g, uint32_t node);

enum ljp_status ljp_page_heap_retained(struct ljp_page_heap *h);

#endif
