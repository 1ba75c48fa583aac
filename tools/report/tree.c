/*
** The tree of calls: from the outermost frame inwards, or (bottom up) from
** where the time was spent to its callers. Frames that are one item of the
** report become one branch.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/table.h"
#include "tools/report/report.h"

#define MAX_BRANCHES (1u << 25)

struct branch {
  uint32_t parent, item;
  uint32_t child, sibling; /* Largest first; 0: none. */
  struct ljp_value total, self;
};

struct tree {
  const struct ljp_report *r;
  struct ljp_items items;
  struct branch *list; /* [0]: all. */
  uint32_t count, room;
  struct ljp_index index;
  uint32_t *order;
};

static bool branch(struct tree *t, uint32_t parent, uint32_t item, uint32_t *id)
{
  if (t->count >= MAX_BRANCHES || !ljp_index_reserve(&t->index) ||
      !ljp_array_reserve(&t->list, t->count, &t->room, sizeof *t->list))
    return false;
  uint32_t hash = ljp_hash_end(ljp_mix((uint64_t)parent << 32 | item, 1));
  struct ljp_index_slot *slot = ljp_index_at(&t->index, hash);
  for (; slot->item; slot = ljp_index_next(&t->index, slot)) {
    const struct branch *b = &t->list[slot->item - 1];
    if (slot->hash == hash && b->parent == parent && b->item == item) {
      *id = slot->item - 1;
      return true;
    }
  }
  ljp_index_put(&t->index, slot, hash, t->count);
  t->list[t->count] = (struct branch){.parent = parent, .item = item};
  *id = t->count++;
  return true;
}

static bool grow_down(struct tree *t)
{
  const struct ljp_profile *p = t->r->p;
  uint32_t *map = calloc(p->node_count, sizeof *map);
  uint8_t *used = calloc(p->node_count, 1);
  bool ok = map && used;
  for (uint32_t i = p->node_count; ok && i-- > 1;) {
    const struct ljp_value *v = &t->r->select.nodes[i];
    used[i] |= v->count || v->weight;
    used[p->nodes[i].parent] |= used[i];
  }
  for (uint32_t i = 1; ok && i < p->node_count; i++) {
    uint32_t parent = map[p->nodes[i].parent];
    if (!used[i])
      continue;
    /* What has no item of its own is its caller's. */
    if (p->nodes[i].parent &&
        t->items.of_node[i] == t->items.of_node[p->nodes[i].parent] &&
        t->r->by != LJP_BY_FUNCTION)
      map[i] = parent;
    else
      ok = branch(t, parent, t->items.of_node[i], &map[i]);
    if (ok)
      ljp_value_add(&t->list[map[i]].self, &t->r->select.nodes[i]);
  }
  free(map);
  free(used);
  for (uint32_t i = t->count; ok && i-- > 0;) {
    ljp_value_add(&t->list[i].total, &t->list[i].self);
    if (i)
      ljp_value_add(&t->list[t->list[i].parent].total, &t->list[i].total);
  }
  return ok;
}

static bool grow_up(struct tree *t)
{
  const struct ljp_profile *p = t->r->p;
  ljp_value_add(&t->list[0].total, &t->r->select.total);
  for (uint32_t i = 1; i < p->node_count; i++) {
    const struct ljp_value *v = &t->r->select.nodes[i];
    uint32_t at = 0;
    if (!v->count && !v->weight)
      continue;
    for (uint32_t n = i; n; n = p->nodes[n].parent) {
      if (!branch(t, at, t->items.of_node[n], &at))
        return false;
      ljp_value_add(&t->list[at].total, v);
    }
    ljp_value_add(&t->list[at].self, v); /* Where the stacks begin. */
  }
  return true;
}

static const struct branch *sort_list;

static int compare(const void *a, const void *b)
{
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  const struct branch *x = &sort_list[i], *y = &sort_list[k];
  if (x->total.weight != y->total.weight)
    return x->total.weight < y->total.weight ? -1 : 1;
  if (x->total.count != y->total.count)
    return x->total.count < y->total.count ? -1 : 1;
  return i > k ? -1 : 1;
}

/* Links children to parents, the largest first. */
static bool link_up(struct tree *t)
{
  t->order = malloc(t->count * sizeof *t->order);
  if (!t->order)
    return false;
  for (uint32_t i = 0; i < t->count; i++)
    t->order[i] = i;
  sort_list = t->list;
  qsort(t->order, t->count, sizeof *t->order, compare);
  for (uint32_t i = 0; i < t->count; i++) {
    struct branch *b = &t->list[t->order[i]];
    if (t->order[i]) {
      b->sibling = t->list[b->parent].child;
      t->list[b->parent].child = t->order[i];
    }
  }
  return true;
}

static bool shows(const struct tree *t, uint32_t at)
{
  return ljp_percent(t->r, &t->list[at].total) >= t->r->min_percent;
}

static void print_branch(const struct tree *t, uint32_t at, unsigned depth,
                         bool first)
{
  const struct ljp_report *r = t->r;
  const struct branch *b = &t->list[at];
  char name[4096], amount[24];
  ljp_item_name(r, &t->items, b->item, name, sizeof name);
  if (r->json) {
    ljp_print_format(r->out,
                     "%s{\"id\":%u,\"parent\":%u,\"depth\":%u,\"name\":",
                     first ? "\n" : ",\n", at, b->parent, depth);
    ljp_print_json(r->out, ljp_str(name, strlen(name)));
    ljp_print_str(r->out, ",");
    ljp_json_value(r, "total", &b->total);
    ljp_print_str(r->out, ",");
    ljp_json_value(r, "self", &b->self);
    ljp_print_str(r->out, "}");
    return;
  }
  ljp_amount(r, b->total.weight, amount);
  ljp_print_format(r->out, "%10s %6.2f%%", amount, ljp_percent(r, &b->total));
  ljp_amount(r, b->self.weight, amount);
  ljp_print_format(r->out, " %10s  ", amount);
  for (unsigned i = 0; i < depth && i < 60; i++)
    ljp_print_str(r->out, "| ");
  if (depth > 60)
    ljp_print_format(r->out, "(+%u) ", depth - 60);
  ljp_print_safe(r->out, ljp_str(name, strlen(name)));
  ljp_print_str(r->out, "\n");
}

static void print(const struct tree *t)
{
  const struct ljp_report *r = t->r;
  uint32_t at = t->list[0].child, hidden = 0;
  unsigned depth = 0;
  bool first = true;
  if (!r->json)
    ljp_print_format(r->out, "%10s %7s %10s  %s\n", "total", "%",
                     r->bottom_up ? "begins" : "self",
                     r->bottom_up ? "function, and below it its callers"
                                  : "function");
  while (at) {
    bool show = r->json || shows(t, at);
    if (show)
      print_branch(t, at, depth, first);
    hidden += !show;
    first = false;
    if (show && t->list[at].child) {
      at = t->list[at].child;
      depth++;
      continue;
    }
    while (at && !t->list[at].sibling) {
      at = t->list[at].parent;
      depth -= depth > 0;
    }
    if (at)
      at = t->list[at].sibling;
  }
  if (hidden)
    ljp_print_format(r->out,
                     "\n%u branch%s below %g %% not shown (--min 0: all)\n",
                     hidden, hidden == 1 ? "" : "es", r->min_percent);
}

bool ljp_report_tree(const struct ljp_report *r)
{
  struct tree t = {.r = r};
  uint32_t root;
  bool ok = ljp_items_make(r, &t.items) && branch(&t, 0, UINT32_MAX, &root) &&
            (r->bottom_up ? grow_up(&t) : grow_down(&t)) && link_up(&t);
  if (ok)
    print(&t);
  ljp_items_fini(&t.items);
  ljp_index_fini(&t.index);
  free(t.list);
  free(t.order);
  return ok;
}
