/*
** See tree.h. No recursion: the tree may be as deep as the heap has objects.
*/
#include "tools/heap/tree.h"

#include <stdlib.h>

#include "parsers/base/pages.h"
#include "parsers/heap/dominators.h"

enum ljp_status ljp_heap_tree_init(struct ljp_heap_tree *tree,
                                   const struct ljp_graph *g)
{
  tree->child = ljp_pages_items(g->count, sizeof *tree->child);
  tree->sibling = ljp_pages_items(g->count, sizeof *tree->sibling);
  if (!tree->child || !tree->sibling) {
    ljp_heap_tree_fini(tree);
    return LJP_ERR_MEM;
  }
  for (uint32_t i = g->count - 1; i > 0; i--) {
    uint32_t up = g->dominator[i];
    if (up == LJP_DOMINATED_BY_NONE)
      continue;
    tree->sibling[i] = tree->child[up];
    tree->child[up] = i;
  }
  return LJP_OK;
}

void ljp_heap_tree_fini(struct ljp_heap_tree *tree)
{
  free(tree->child);
  free(tree->sibling);
  *tree = (struct ljp_heap_tree){.child = NULL};
}

struct tree_walk {
  const uint32_t *of;
  char *sums;
  size_t stride;
};

static struct ljp_heap_group *tree_sums(const struct tree_walk *w,
                                        uint32_t node)
{
  uint32_t group = w->of[node];
  return group == LJP_HEAP_NO_GROUP
             ? NULL
             : (struct ljp_heap_group *)(void *)(w->sums + group * w->stride);
}

/* Of the nodes of a group below each other, only the topmost one counts. */
static void tree_enter(const struct tree_walk *w, const struct ljp_graph *g,
                       uint32_t node)
{
  struct ljp_heap_group *sums = tree_sums(w, node);
  if (sums && sums->open++ == 0)
    sums->retained += g->retained[node];
}

static void tree_leave(const struct tree_walk *w, uint32_t node)
{
  struct ljp_heap_group *sums = node ? tree_sums(w, node) : NULL;
  if (sums)
    sums->open--;
}

void ljp_heap_tree_add_up(const struct ljp_heap_tree *tree,
                          const struct ljp_graph *g, const uint32_t *of,
                          void *sums, size_t stride)
{
  const struct tree_walk w = {of, sums, stride};
  for (uint32_t i = 1; i < g->count; i++) {
    struct ljp_heap_group *s = tree_sums(&w, i);
    if (s) {
      uint64_t own = ljp_graph_own(g, i);
      s->objects++;
      s->own += own;
      s->retained += ljp_graph_is_held(g, i) ? 0 : own;
    }
  }
  for (uint32_t node = tree->child[0]; node;) {
    tree_enter(&w, g, node);
    if (tree->child[node]) {
      node = tree->child[node];
      continue;
    }
    tree_leave(&w, node);
    while (node && !tree->sibling[node]) {
      node = g->dominator[node];
      tree_leave(&w, node);
    }
    if (node)
      node = tree->sibling[node];
  }
}
