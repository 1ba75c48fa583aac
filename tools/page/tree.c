/*
** Joins the stacks of a view by function, and sorts children by weight.
*/
#include "tools/page/tree.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"

/* Sorts lists of children by merging: without recursion or memory. */
static uint32_t tree_merge_lists(struct ljp_page_branch *nodes, uint32_t a,
                                 uint32_t b)
{
  uint32_t head = 0, *to = &head;
  while (a && b) {
    uint32_t *from = nodes[a].total >= nodes[b].total ? &a : &b;
    *to = *from;
    to = &nodes[*from].next;
    *from = *to;
  }
  *to = a ? a : b;
  return head;
}

static uint32_t tree_sort_list(struct ljp_page_branch *nodes, uint32_t list)
{
  uint32_t runs[33] = {0}; /* runs[i] is a sorted list of 2^i children. */
  while (list) {
    uint32_t one = list, i = 0;
    list = nodes[one].next;
    nodes[one].next = 0;
    for (; runs[i]; runs[i++] = 0)
      one = tree_merge_lists(nodes, runs[i], one);
    runs[i] = one;
  }
  for (int i = 0; i < 33; i++)
    list = tree_merge_lists(nodes, runs[i], list);
  return list;
}

static void tree_link(struct ljp_page_tree *tree)
{
  for (uint32_t i = tree->count; i-- > 1;) {
    struct ljp_page_branch *b = &tree->nodes[i];
    ljp_assert(b->parent < i);
    tree->nodes[b->parent].total += b->total;
    b->next = tree->nodes[b->parent].first;
    tree->nodes[b->parent].first = i;
  }
  for (uint32_t i = 0; i < tree->count; i++) {
    struct ljp_page_branch *b = &tree->nodes[i];
    uint64_t at = b->start;
    b->first = tree_sort_list(tree->nodes, b->first);
    for (uint32_t c = b->first; c; c = tree->nodes[c].next) {
      tree->nodes[c].depth = b->depth + 1;
      tree->nodes[c].start = at;
      at += tree->nodes[c].total;
    }
    ljp_assert(at - b->start + b->self == b->total);
  }
}

enum ljp_status ljp_page_tree_init(struct ljp_page_tree *tree,
                                   const struct ljp_page *page,
                                   enum ljp_page_view view)
{
  size_t size = 1024;
  while (size < page->node_count * 2)
    size *= 2;
  memset(tree, 0, sizeof *tree);
  tree->nodes = calloc(page->node_count + 1, sizeof *tree->nodes);
  tree->of = calloc(page->node_count + 1, sizeof *tree->of);
  uint32_t *slots = calloc(size, sizeof *slots);
  if (!tree->nodes || !tree->of || !slots) {
    free(slots);
    ljp_page_tree_fini(tree);
    return LJP_ERR_MEM;
  }
  tree->count = 1;
  for (size_t i = 1; i < page->node_count; i++) {
    uint32_t up = tree->of[page->nodes[i].parent];
    uint32_t frame = page->nodes[i].frame;
    uint64_t hash = (up * UINT64_C(0x9e3779b97f4a7c15) ^ frame) *
                    UINT64_C(0xbf58476d1ce4e5b9);
    size_t at = (hash ^ hash >> 31) & (size - 1);
    while (slots[at] && (tree->nodes[slots[at]].parent != up ||
                         tree->nodes[slots[at]].frame != frame))
      at = (at + 1) & (size - 1);
    if (!slots[at]) {
      slots[at] = tree->count++;
      tree->nodes[slots[at]].parent = up;
      tree->nodes[slots[at]].frame = frame;
    }
    tree->of[i] = slots[at];
  }
  free(slots);
  const struct ljp_rows *rows = &page->rows[view];
  for (size_t i = 0; i < rows->count; i++)
    tree->nodes[tree->of[rows->rows[i].node]].self += rows->rows[i].weight;
  for (uint32_t i = 0; i < tree->count; i++)
    tree->nodes[i].total = tree->nodes[i].self;
  tree_link(tree);
  return LJP_OK;
}

void ljp_page_tree_fini(struct ljp_page_tree *tree)
{
  free(tree->nodes);
  free(tree->of);
  memset(tree, 0, sizeof *tree);
}
