/*
** The tab Retained: the tree of dominators from the top, boxes that retain most
** first, until there are enough of them. An object that is held by one of its own
** kind in the same way, as in a linked list, goes into the same box.
*/
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/base/index.h"
#include "parsers/base/pages.h"
#include "tools/heap/tree.h"
#include "tools/page/heap.h"

enum {
  RETAINED_GROUPS = 1 << 16, /* Of a box; others get none of their own. */
  RETAINED_WAY = 1000        /* Steps of a way that is shown. */
};

/* Objects of one box: a list through retained.next. */
struct group {
  uint64_t key;
  uint64_t sum; /* What they retain. */
  uint32_t head, count;
  uint32_t box, depth;
};

struct retained {
  struct ljp_page_heap *h;
  const struct ljp_graph *g;
  struct ljp_heap_tree tree;
  uint32_t *next; /* By node; 0: none. */
  struct group *groups;
  uint32_t group_count, group_room;
  struct ljp_index index; /* Over groups. */
  struct group *queue;    /* A heap: what retains most first. */
  uint32_t queue_count, queue_room;
  uint32_t boxes;
};

/* -- Queue ----------------------------------------------------------------- */

static bool retained_push(struct retained *r, struct group group)
{
  if (!ljp_array_reserve(&r->queue, r->queue_count, &r->queue_room,
                         sizeof *r->queue))
    return false;
  uint32_t at = r->queue_count++;
  for (; at && r->queue[(at - 1) / 2].sum < group.sum; at = (at - 1) / 2)
    r->queue[at] = r->queue[(at - 1) / 2];
  r->queue[at] = group;
  return true;
}

static struct group retained_pop(struct retained *r)
{
  struct group top = r->queue[0], last = r->queue[--r->queue_count];
  uint32_t at = 0;
  for (uint32_t down; (down = at * 2 + 1) < r->queue_count; at = down) {
    if (down + 1 < r->queue_count &&
        r->queue[down + 1].sum > r->queue[down].sum)
      down++;
    if (r->queue[down].sum <= last.sum)
      break;
    r->queue[at] = r->queue[down];
  }
  r->queue[at] = last;
  return top;
}

/* -- Groups ---------------------------------------------------------------- */

static bool retained_has_step(const struct ljp_graph *g, uint32_t node)
{
  return g->holder[node] == g->dominator[node];
}

/* Same kind, held in the same way. Where that is not by the node that dominates
** it, the whole way counts. */
static uint64_t retained_key(const struct retained *r, uint32_t node)
{
  const struct ljp_heap_ways *ways = &r->h->ways;
  uint32_t way = ways->of[node];
  uint64_t step = retained_has_step(r->g, node)
                      ? ljp_hash_mix(ways->list[way].key, 1)
                      : ljp_hash_mix(way, 2);
  return ljp_hash_mix(step, r->h->kinds.of[node]) | 1;
}

/* NULL: no memory. Group 0 is for what gets no box. */
static struct group *retained_group(struct retained *r, uint64_t key,
                                    uint64_t bytes)
{
  uint32_t hash = ljp_hash_finish(key);
  if (!ljp_index_reserve(&r->index))
    return NULL;
  struct ljp_index_slot *slot = ljp_index_at(&r->index, hash);
  for (; slot->item; slot = ljp_index_next(&r->index, slot))
    if (slot->hash == hash && r->groups[slot->item - 1].key == key)
      return &r->groups[slot->item - 1];
  if (r->group_count >= RETAINED_GROUPS &&
      bytes < r->h->bytes / LJP_PAGE_HEAP_PARTS)
    return &r->groups[0];
  if (!ljp_array_reserve(&r->groups, r->group_count, &r->group_room,
                         sizeof *r->groups))
    return NULL;
  r->groups[r->group_count] = (struct group){.key = key};
  ljp_index_put(&r->index, slot, hash, r->group_count);
  return &r->groups[r->group_count++];
}

static bool retained_begin(struct retained *r)
{
  if (r->index.count > 1024)
    ljp_index_fini(&r->index);
  else if (r->index.count)
    memset(r->index.slots, 0, r->index.count * sizeof *r->index.slots);
  r->index.used = 0;
  r->group_count = 1;
  if (!ljp_array_reserve(&r->groups, 0, &r->group_room, sizeof *r->groups))
    return false;
  r->groups[0] = (struct group){.key = 0};
  return true;
}

/* Puts what a node dominates into groups; what belongs to the box itself goes
** before *rest. */
static bool retained_add(struct retained *r, uint32_t node, uint64_t key,
                         uint32_t *rest)
{
  for (uint32_t c = r->tree.child[node]; c; c = r->tree.sibling[c]) {
    uint64_t own_key = retained_key(r, c);
    if (!node && ljp_page_heap_is_part(r->g, c))
      continue;
    if (own_key == key) {
      r->next[c] = *rest;
      *rest = c;
      continue;
    }
    struct group *group = retained_group(r, own_key, r->g->retained[c]);
    if (!group)
      return false;
    r->next[c] = group->head;
    group->head = c;
    group->sum += r->g->retained[c];
    group->count++;
  }
  return true;
}

/* -- Boxes ----------------------------------------------------------------- */

/* Objects without a box, with all that they retain. */
static void retained_put_rest(struct retained *r, const struct group *group,
                              uint32_t box)
{
  const struct ljp_graph *g = r->g;
  uint64_t objects = 0;
  for (uint32_t top = group->head; top; top = r->next[top]) {
    for (uint32_t at = top;;) {
      objects++;
      if (r->tree.child[at]) {
        at = r->tree.child[at];
        continue;
      }
      while (at != top && !r->tree.sibling[at])
        at = g->dominator[at];
      if (at == top)
        break;
      at = r->tree.sibling[at];
    }
  }
  ljp_page_heap_row(r->h, LJP_PAGE_VIEW_RETAINED, box, objects, group->sum);
}

static uint32_t retained_box(struct retained *r, const struct group *group,
                             uint32_t parent)
{
  const struct ljp_graph *g = r->g;
  struct ljp_heap_text step = {.len = 0};
  uint32_t node = group->head, way = r->h->ways.of[node];
  if (!retained_has_step(g, node)) {
    if (r->h->depth[way] <= RETAINED_WAY)
      ljp_heap_way_text(&r->h->ways, way, &step);
  } else if (group->count == 1) {
    ljp_heap_step(g, g->holder[node], g->held_by[node], &step);
  } else {
    ljp_heap_way_step_text(&r->h->ways, way, &step);
  }
  r->boxes++;
  return ljp_page_heap_box(r->h, parent, node, group->count, &step);
}

static bool retained_put_groups(struct retained *r, const struct group *box)
{
  bool deep = box->depth >= LJP_PAGE_HEAP_DEPTH, ok = true;
  for (uint32_t i = 0; ok && i < r->group_count; i++) {
    struct group group = r->groups[i];
    if (!group.head)
      continue;
    if (i == 0 || deep || r->boxes >= LJP_PAGE_HEAP_BOXES ||
        group.sum < r->h->bytes / LJP_PAGE_HEAP_PARTS) {
      retained_put_rest(r, &group,
                        ljp_page_heap_rest(r->h, box->box,
                                           deep ? LJP_PAGE_HEAP_DEEPER
                                                : LJP_PAGE_HEAP_SMALLER));
      continue;
    }
    group.box = retained_box(r, &group, box->box);
    group.depth = box->depth + 1;
    ok = retained_push(r, group);
  }
  return ok;
}

static bool retained_expand(struct retained *r, const struct group *box)
{
  uint64_t objects = 0, own = 0;
  bool ok = retained_begin(r);
  for (uint32_t at = box->head, rest; ok && at; at = rest) {
    rest = r->next[at];
    objects++;
    own += ljp_graph_own(r->g, at);
    ok = retained_add(r, at, box->key, &rest);
  }
  ljp_page_heap_row(r->h, LJP_PAGE_VIEW_RETAINED, box->box, objects, own);
  return ok && retained_put_groups(r, box);
}

/* What the roots hold: of node 0, and of parts of the VM. */
static bool retained_expand_roots(struct retained *r)
{
  const struct ljp_graph *g = r->g;
  const struct group all = {.key = 0};
  uint64_t parts = 0, own = 0;
  uint32_t none = 0;
  bool ok = retained_begin(r) && retained_add(r, 0, 0, &none);
  for (uint32_t c = r->tree.child[0]; ok && c; c = r->tree.sibling[c]) {
    if (!ljp_page_heap_is_part(g, c))
      continue;
    parts++;
    own += ljp_graph_own(g, c);
    ok = retained_add(r, c, 0, &none);
  }
  if (parts)
    ljp_page_heap_row(r->h, LJP_PAGE_VIEW_RETAINED,
                      ljp_page_heap_rest(r->h, 0, LJP_PAGE_HEAP_VM), parts,
                      own);
  return ok && retained_put_groups(r, &all);
}

enum ljp_status ljp_page_heap_retained(struct ljp_page_heap *h)
{
  struct retained r = {.h = h, .g = h->g};
  enum ljp_status status = ljp_heap_tree_init(&r.tree, h->g);
  r.next = ljp_pages_items(h->g->count, sizeof *r.next);
  bool ok = !status && r.next && retained_expand_roots(&r);
  while (ok && r.queue_count) {
    struct group box = retained_pop(&r);
    ok = retained_expand(&r, &box);
  }
  if (!status)
    ljp_heap_tree_fini(&r.tree);
  ljp_index_fini(&r.index);
  free(r.next);
  free(r.groups);
  free(r.queue);
  return ok ? h->page->failed : LJP_ERR_MEM;
}
