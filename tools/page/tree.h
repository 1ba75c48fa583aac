/*
** Page tree: the stacks of one view by function, with weights. Lines of one
** function are joined. Node 0 is the root; parents have smaller numbers.
*/
#ifndef LJP_TOOLS_PAGE_TREE_H
#define LJP_TOOLS_PAGE_TREE_H

#include "tools/page/page.h"

struct ljp_page_branch {
  uint32_t parent, frame;
  uint32_t first, next; /* Children, heaviest first; 0: none. */
  uint32_t depth;       /* 0: the root. */
  uint64_t self, total;
  uint64_t start; /* Position on an axis from 0 to the root's total. */
};

struct ljp_page_tree {
  struct ljp_page_branch *nodes;
  uint32_t count;
  uint32_t *of; /* The tree's node of each node of the page. */
};

/* LJP_ERR_MEM. */
enum ljp_status ljp_page_tree_init(struct ljp_page_tree *tree,
                                   const struct ljp_page *page,
                                   enum ljp_page_view view);
void ljp_page_tree_fini(struct ljp_page_tree *tree);

#endif
