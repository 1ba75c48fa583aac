/*
** Prints the call tree: from the outermost frames inwards or, bottom-up, from
** the innermost frames to their callers. Siblings that belong to one group form
** one branch.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/base/index.h"
#include "src/base/assert.h"
#include "tools/report/groups.h"

#define MAX_BRANCHES (1u << 25)

struct branch {
  uint32_t parent, group;
  uint32_t child, sibling; /* Largest first; 0: none. */
  struct ljp_value total, self;
};

struct tree {
  const struct ljp_report *r;
  struct ljp_groups groups;
  struct branch *list; /* [0] is the root. */
  uint32_t count, room;
  struct ljp_index index;
  uint32_t *order;
};

static bool calls_branch(struct tree *t, uint32_t parent, uint32_t group,
                         uint32_t *id)
{
  if (t->count >= MAX_BRANCHES || !ljp_index_reserve(&t->index) ||
      !ljp_array_reserve(&t->list, t->count, &t->room, sizeof *t->list))
    return false;
  uint32_t hash =
      ljp_hash_finish(ljp_hash_mix((uint64_t)parent << 32 | group, 1));
  struct ljp_index_slot *slot = ljp_index_at(&t->index, hash);
  for (; slot->item; slot = ljp_index_next(&t->index, slot)) {
    const struct branch *b = &t->list[slot->item - 1];
    if (slot->hash == hash && b->parent == parent && b->group == group) {
      *id = slot->item - 1;
      return true;
    }
  }
  ljp_index_put(&t->index, slot, hash, t->count);
  t->list[t->count] = (struct branch){.parent = parent, .group = group};
  ljp_assert(parent <= t->count);
  *id = t->count++;
  return true;
}

static bool calls_grow_down(struct tree *t)
{
  const struct ljp_profile *p = t->r->p;
  uint32_t *map = calloc(p->node_count, sizeof *map);
  uint8_t *used = calloc(p->node_count, 1);
  bool ok = map && used;
  for (uint32_t i = p->node_count; ok && i-- > 1;) {
    const struct ljp_value *v = ljp_select_node(&t->r->select, i);
    used[i] |= v->count || v->weight;
    used[p->nodes[i].parent] |= used[i];
  }
  for (uint32_t i = 1; ok && i < p->node_count; i++) {
    uint32_t parent = map[p->nodes[i].parent];
    if (!used[i])
      continue;
    /* A frame without a group of its own belongs to its caller. */
    if (p->nodes[i].parent &&
        t->groups.of_node[i] == t->groups.of_node[p->nodes[i].parent] &&
        t->r->by != LJP_BY_FUNCTION)
      map[i] = parent;
    else
      ok = calls_branch(t, parent, t->groups.of_node[i], &map[i]);
    if (ok)
      ljp_value_add(&t->list[map[i]].self, ljp_select_node(&t->r->select, i));
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

static bool calls_grow_up(struct tree *t)
{
  const struct ljp_profile *p = t->r->p;
  ljp_value_add(&t->list[0].total, &t->r->select.total);
  for (uint32_t i = 1; i < p->node_count; i++) {
    const struct ljp_value *v = ljp_select_node(&t->r->select, i);
    uint32_t at = 0;
    if (!v->count && !v->weight)
      continue;
    for (uint32_t n = i; n; n = p->nodes[n].parent) {
      if (!calls_branch(t, at, t->groups.of_node[n], &at))
        return false;
      ljp_value_add(&t->list[at].total, v);
    }
    ljp_value_add(&t->list[at].self,
                  v); /* For bottom-up, self counts stacks that begin here. */
  }
  return true;
}

static const struct branch *calls_sort_list;

static int calls_compare(const void *a, const void *b)
{
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  const struct branch *x = &calls_sort_list[i], *y = &calls_sort_list[k];
  if (x->total.weight != y->total.weight)
    return x->total.weight < y->total.weight ? -1 : 1;
  if (x->total.count != y->total.count)
    return x->total.count < y->total.count ? -1 : 1;
  return i > k ? -1 : 1;
}

/* Links children to their parents, largest first. */
static bool calls_link(struct tree *t)
{
  t->order = malloc(t->count * sizeof *t->order);
  if (!t->order)
    return false;
  for (uint32_t i = 0; i < t->count; i++)
    t->order[i] = i;
  calls_sort_list = t->list;
  qsort(t->order, t->count, sizeof *t->order, calls_compare);
  for (uint32_t i = 0; i < t->count; i++) {
    struct branch *b = &t->list[t->order[i]];
    if (t->order[i]) {
      b->sibling = t->list[b->parent].child;
      t->list[b->parent].child = t->order[i];
    }
  }
  return true;
}

static bool calls_is_shown(const struct tree *t, uint32_t at)
{
  return ljp_percent(t->r, &t->list[at].total) >= t->r->min_percent;
}

static void calls_print_branch(const struct tree *t, uint32_t at,
                               unsigned depth, bool first)
{
  const struct ljp_report *r = t->r;
  const struct branch *b = &t->list[at];
  char name[4096], amount[24];
  ljp_group_name(r, &t->groups, b->group, name, sizeof name);
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

static void calls_print(const struct tree *t)
{
  const struct ljp_report *r = t->r;
  uint32_t at = t->list[0].child, hidden = 0;
  unsigned depth = 0;
  bool first = true;
  if (!r->json)
    ljp_print_format(r->out, "%10s %7s %10s  %s\n", "total", "%",
                     r->bottom_up ? "begins" : "self",
                     r->bottom_up ? "function, with its callers below"
                                  : "function");
  while (at) {
    bool show = r->json || calls_is_shown(t, at);
    if (show)
      calls_print_branch(t, at, depth, first);
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
    ljp_print_format(
        r->out, "\n%u branch%s below %g %% not shown (--min 0 shows all)\n",
        hidden, hidden == 1 ? "" : "es", r->min_percent);
}

bool ljp_report_tree(const struct ljp_report *r)
{
  struct tree t = {.r = r};
  uint32_t root;
  bool ok = ljp_groups_make(r, &t.groups) &&
            calls_branch(&t, 0, UINT32_MAX, &root) &&
            (r->bottom_up ? calls_grow_up(&t) : calls_grow_down(&t)) &&
            calls_link(&t);
  if (ok)
    calls_print(&t);
  ljp_groups_fini(&t.groups);
  ljp_index_fini(&t.index);
  free(t.list);
  free(t.order);
  return ok;
}
