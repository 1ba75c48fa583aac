/*
** Assigns nodes and rows of the profile to groups, and sums up each group. A
** group of frames has a self and a total; in a group of rows both are equal.
*/
#include "tools/report/groups.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/base/index.h"
#include "parsers/profile/labels.h"
#include "src/base/assert.h"

enum { NONE = UINT32_MAX };

bool ljp_by_of_frame(enum ljp_by by)
{
  switch (by) {
#define LJP_X(name, option, of_frame)                                          \
  case LJP_BY_##name:                                                          \
    return of_frame;
    LJP_BY_LIST(LJP_X)
#undef LJP_X
  }
  return false;
}

const char *ljp_by_text(enum ljp_by by)
{
  switch (by) {
#define LJP_X(name, option, of_frame)                                          \
  case LJP_BY_##name:                                                          \
    return option;
    LJP_BY_LIST(LJP_X)
#undef LJP_X
  }
  return "";
}

/* Numbers keys in the order of their first use. */
struct keys {
  struct ljp_index index;
  uint64_t *keys;
  uint32_t *first;
  uint32_t count, room, first_room;
};

static bool group_number(struct keys *k, uint64_t key, uint32_t first,
                         uint32_t *id)
{
  if (!ljp_index_reserve(&k->index) ||
      !ljp_array_reserve(&k->keys, k->count, &k->room, sizeof *k->keys) ||
      !ljp_array_reserve(&k->first, k->count, &k->first_room, sizeof *k->first))
    return false;
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(key, 0));
  struct ljp_index_slot *slot = ljp_index_at(&k->index, hash);
  for (; slot->item; slot = ljp_index_next(&k->index, slot))
    if (slot->hash == hash && k->keys[slot->item - 1] == key) {
      *id = slot->item - 1;
      return true;
    }
  ljp_index_put(&k->index, slot, hash, k->count);
  k->keys[k->count] = key;
  k->first[k->count] = first;
  *id = k->count++;
  return true;
}

static void group_keys_fini(struct keys *k)
{
  ljp_index_fini(&k->index);
  free(k->keys);
  free(k->first);
}

static bool group_has_no_place(unsigned kind)
{
  return kind == LJP_FRAME_BUILTIN || kind == LJP_FRAME_KERNEL;
}

/* Marks keys that are functions, beside keys of lines and files. */
#define OF_FUNCTION (UINT64_C(1) << 63)

/* Finds the key of a frame's group. False: the frame has no group of its own,
** and counts for its caller. */
static bool group_frame_key(const struct ljp_report *r, uint32_t frame,
                            uint64_t *key)
{
  const struct ljp_profile_frame *f = &r->p->frames[frame];
  bool own = f->file && (r->c_lines || !ljp_group_is_code(f->kind));
  *key = OF_FUNCTION | f->function;
  switch (r->by) {
  case LJP_BY_LINE:
    if (own && f->line)
      *key = (uint64_t)f->file << 32 | f->line;
    else if (ljp_group_is_code(f->kind) || group_has_no_place(f->kind))
      return false;
    return true;
  case LJP_BY_FILE:
    if (own)
      *key = f->file;
    else if (ljp_group_is_code(f->kind) || group_has_no_place(f->kind))
      return false;
    return true;
  case LJP_BY_MODULE:
    if (ljp_group_is_code(f->kind) && f->module)
      *key = r->p->modules[f->module].path;
    else if (ljp_group_is_lua(f->kind) || f->kind == LJP_FRAME_TRACE)
      *key = OF_FUNCTION >> 1;
    else if (f->kind == LJP_FRAME_BUILTIN)
      *key = (OF_FUNCTION >> 1) + 1;
    return true;
  case LJP_BY_KIND:
    *key = f->kind;
    return true;
  default:
    if (r->lines)
      *key = (uint64_t)f->function << 32 | f->line;
    return true;
  }
}

/* Assigns each node to the group of its frame. */
static bool group_number_nodes(const struct ljp_report *r, struct keys *k,
                               uint32_t *of_node)
{
  const struct ljp_profile *p = r->p;
  uint32_t *of_frame = malloc(p->frame_count * sizeof *of_frame);
  bool ok = of_frame != NULL;
  uint64_t key;
  for (uint32_t i = 0; ok && i < p->frame_count; i++) {
    of_frame[i] = NONE;
    if (p->frames[i].kind != LJP_FRAME_ROOT && group_frame_key(r, i, &key))
      ok = group_number(k, key, i, &of_frame[i]);
  }
  for (uint32_t i = 1; ok && i < p->node_count; i++) {
    const struct ljp_profile_node *node = &p->nodes[i];
    of_node[i] = of_frame[node->frame];
    if (of_node[i] == NONE)
      of_node[i] = of_node[node->parent];
    if (of_node[i] ==
        NONE) /* There is no caller: the frame is a group of its own. */
      ok = group_number(k, OF_FUNCTION | p->frames[node->frame].function,
                        node->frame, &of_node[i]);
  }
  free(of_frame);
  return ok;
}

/* -- Totals -----------------------------------------------------------------
** Most nodes follow their parents. The others are branches; only they are
** noted, in a list for each parent. So the walk reads memory one place after
** the other, but for each branch, which is prefetched when the one before it
** begins. */

struct branch {
  uint32_t node, next; /* next of the same parent, + 1; 0: none. */
};

/* A node of the path. */
struct step {
  uint32_t node, group;
  uint32_t branch;                /* The next branch to walk, + 1. */
  uint64_t count, weight, slices; /* Sums of the node and what was walked. */
};

struct totals {
  const struct ljp_report *r;
  struct ljp_groups *groups;
  uint32_t *first; /* By node: its first branch, + 1. */
  struct branch *branches;
  uint32_t branch_count, branch_room;
  uint32_t *open;    /* By group: how many nodes of the path it has. */
  struct step *path; /* From the outermost frame to this one. */
  struct ljp_estimate *estimates; /* Of the path. */
  uint32_t depth, room, estimate_room;
  bool exact; /* No value has an estimate. */
};

static inline bool group_is_branch(const struct ljp_profile *p, uint32_t node)
{
  return p->nodes[node].parent + 1 != node;
}

/* Notes the branches of each node in their order. */
static bool group_find_branches(struct totals *t)
{
  const struct ljp_profile *p = t->r->p;
  for (uint32_t i = p->node_count; i-- > 1;) {
    if (!group_is_branch(p, i))
      continue;
    if (!ljp_array_reserve(&t->branches, t->branch_count, &t->branch_room,
                           sizeof *t->branches))
      return false;
    uint32_t *first = &t->first[p->nodes[i].parent];
    t->branches[t->branch_count] = (struct branch){i, *first};
    *first = ++t->branch_count;
  }
  return true;
}

/* Prefetches what the walk from a branch reads first, and the branch after
** it. */
static inline void group_prefetch(const struct totals *t, uint32_t branch)
{
  enum { LINE = 64, NODES = 16 };
  if (!branch)
    return;
  const struct branch *b = &t->branches[branch - 1];
  const struct ljp_profile_node *nodes = &t->r->p->nodes[b->node];
  for (uint32_t i = 0; i <= NODES; i += LINE / sizeof *t->first) {
    __builtin_prefetch(&t->first[b->node + i]);
    __builtin_prefetch(&t->groups->of_node[b->node + i]);
    __builtin_prefetch(&t->r->select.value_of[b->node + i]);
  }
  for (uint32_t i = 0; i <= NODES; i += LINE / sizeof *nodes)
    __builtin_prefetch(nodes + i);
  if (b->next)
    __builtin_prefetch(&t->branches[b->next - 1]);
}

static inline bool group_enter(struct totals *t, uint32_t node)
{
  if (!ljp_array_reserve(&t->path, t->depth, &t->room, sizeof *t->path) ||
      (!t->exact &&
       !ljp_array_reserve(&t->estimates, t->depth, &t->estimate_room,
                          sizeof *t->estimates)))
    return false;
  const struct ljp_value *self = ljp_select_node(&t->r->select, node);
  uint32_t group = t->groups->of_node[node];
  t->path[t->depth] = (struct step){.node = node,
                                    .group = group,
                                    .branch = t->first[node],
                                    .count = self->count,
                                    .weight = self->weight,
                                    .slices = self->slices};
  if (!t->exact)
    t->estimates[t->depth] = self->estimate;
  t->depth++;
  t->open[group]++;
  return true;
}

/* Adds the last step of the path to its group and to the step before it. */
static inline void group_leave(struct totals *t)
{
  const struct step *sum = &t->path[--t->depth];
  ljp_assert(t->open[sum->group]);
  if (!--t->open[sum->group]) {
    struct ljp_value *total = &t->groups->values[sum->group].total;
    total->count += sum->count;
    total->weight += sum->weight;
    total->slices |= sum->slices;
    if (!t->exact)
      ljp_estimate_sum(&total->estimate, &t->estimates[t->depth]);
  }
  if (t->depth) {
    struct step *parent = &t->path[t->depth - 1];
    parent->count += sum->count;
    parent->weight += sum->weight;
    parent->slices |= sum->slices;
    if (!t->exact)
      ljp_estimate_sum(&t->estimates[t->depth - 1], &t->estimates[t->depth]);
  }
}

/* Enters a node and those that follow, each below the one before it. The
** branch that comes after them is prefetched: first the note, and a few nodes
** later, when that has arrived, what the note is about. */
static inline bool group_enter_run(struct totals *t, uint32_t node)
{
  enum { LATER = 6 };
  const struct ljp_profile *p = t->r->p;
  uint32_t branch = 0, later = 0;
  do {
    if (!group_enter(t, node))
      return false;
    if (t->first[node]) {
      branch = t->first[node];
      later = LATER;
      __builtin_prefetch(&t->branches[branch - 1]);
    } else if (later && !--later) {
      group_prefetch(t, branch);
    }
  } while (++node < p->node_count && !group_is_branch(p, node));
  if (later)
    group_prefetch(t, branch);
  return true;
}

/* Walks from an outermost frame. */
static bool group_walk(struct totals *t, uint32_t node)
{
  for (;;) {
    if (!group_enter_run(t, node))
      return false;
    while (!t->path[t->depth - 1].branch) {
      group_leave(t);
      if (!t->depth)
        return true;
    }
    const struct branch *branch =
        &t->branches[t->path[t->depth - 1].branch - 1];
    node = branch->node;
    t->path[t->depth - 1].branch = branch->next;
    group_prefetch(t, branch->next);
  }
}

/* Sums up totals. A stack counts once for each group in it, also if the group
** occurs several times. The walk over the tree therefore counts how often each
** group is open. */
static bool group_totals(const struct ljp_report *r, struct ljp_groups *groups)
{
  const struct ljp_profile *p = r->p;
  struct totals t = {.r = r,
                     .groups = groups,
                     .first = ljp_pages_items(p->node_count, sizeof *t.first),
                     .open = calloc((size_t)groups->count + 1, sizeof *t.open),
                     .exact = !p->estimates};
  bool ok = t.first && t.open && group_find_branches(&t);
  if (ok && p->node_count > 1 && !group_is_branch(p, 1))
    ok = group_walk(&t, 1);
  const struct branch *branches = t.branches;
  for (uint32_t i = ok && branches ? t.first[0] : 0; ok && i;
       i = branches[i - 1].next) {
    group_prefetch(&t, branches[i - 1].next);
    ok = group_walk(&t, branches[i - 1].node);
  }
  free(t.first);
  free(t.branches);
  free(t.open);
  free(t.path);
  free(t.estimates);
  return ok;
}

/* of: by node its trace, or by set of labels its value, if that is asked for. */
static bool group_row_key(const struct ljp_report *r,
                          const struct ljp_profile_row *row, const uint32_t *of,
                          uint32_t *key)
{
  const struct ljp_profile_context *c = &r->p->contexts[row->context];
  switch (r->by) {
  case LJP_BY_TRACE:
    *key = of[row->node];
    return true;
  case LJP_BY_STACK:
    *key = row->node;
    return true;
  case LJP_BY_THREAD:
    *key = c->thread;
    return true;
  case LJP_BY_VM:
    *key = c->vm || c->state != LJP_VMSTATE_HOST ? c->vm : r->p->vm_count;
    return true;
  case LJP_BY_STATE:
    *key = c->state;
    return true;
  case LJP_BY_TYPE:
    *key = c->type;
    return true;
  case LJP_BY_LABEL:
    *key = of[c->labels];
    return true;
  default:
    return false;
  }
}

/* Finds for each node a frame of its innermost trace; 0: none. A trace always
** yields the same frame, even if its stacks are known with different
** exactness. */
static bool group_trace_frames(const struct ljp_profile *p, uint32_t **trace)
{
  uint32_t *frame = calloc((size_t)p->trace_count + 1, sizeof *frame);
  *trace = calloc(p->node_count, sizeof **trace);
  for (uint32_t i = 1; frame && *trace && i < p->node_count; i++) {
    const struct ljp_profile_node *node = &p->nodes[i];
    const struct ljp_profile_frame *f = &p->frames[node->frame];
    (*trace)[i] = (*trace)[node->parent];
    if (f->kind == LJP_FRAME_TRACE) {
      if (!f->trace || !frame[f->trace])
        frame[f->trace] = node->frame;
      (*trace)[i] = f->trace ? frame[f->trace] : node->frame;
    }
  }
  free(frame);
  return frame && *trace;
}

/* The value of the key in each set of labels. NULL: no memory. */
static uint32_t *group_label_values(const struct ljp_report *r)
{
  const struct ljp_profile *p = r->p;
  uint32_t *value = calloc((size_t)p->label_count + 1, sizeof *value);
  for (uint32_t i = 0; value && i < p->label_count; i++)
    value[i] = ljp_labels_value(p, i, r->label_key);
  return value;
}

/* Groups rows, not frames: self and total are equal. */
static bool group_rows(const struct ljp_report *r, struct keys *k,
                       struct ljp_groups *groups)
{
  const struct ljp_profile *p = r->p;
  uint32_t *of_row = malloc(((size_t)p->row_count + 1) * sizeof *of_row);
  uint32_t *of = NULL, key = 0;
  bool ok = of_row && (r->by != LJP_BY_TRACE || group_trace_frames(p, &of)) &&
            (r->by != LJP_BY_LABEL || (of = group_label_values(r)));
  for (uint32_t i = 0; ok && i < p->row_count; i++) {
    const struct ljp_value *v = &r->select.rows[i];
    of_row[i] = NONE;
    if ((v->count || v->weight) && group_row_key(r, &p->rows[i], of, &key))
      ok = group_number(k, key, key, &of_row[i]);
  }
  groups->count = k->count;
  groups->values = calloc((size_t)k->count + 1, sizeof *groups->values);
  ok = ok && groups->values;
  for (uint32_t i = 0; ok && i < p->row_count; i++)
    if (of_row[i] != NONE) {
      ljp_value_add(&groups->values[of_row[i]].self, &r->select.rows[i]);
      groups->values[of_row[i]].total = groups->values[of_row[i]].self;
    }
  free(of_row);
  free(of);
  return ok;
}

/* Whether the selves of all groups, and what has no stack, add up to the
** total. */
static bool group_adds_up(const struct ljp_report *r,
                          const struct ljp_groups *groups)
{
  uint64_t count = 0, weight = 0;
  if (groups->of_node) {
    count = ljp_select_node(&r->select, 0)->count;
    weight = ljp_select_node(&r->select, 0)->weight;
  }
  for (uint32_t i = 0; i < groups->count; i++) {
    count += groups->values[i].self.count;
    weight += groups->values[i].self.weight;
  }
  return count == r->select.total.count && weight == r->select.total.weight;
}

bool ljp_groups_make(const struct ljp_report *r, struct ljp_groups *groups)
{
  const struct ljp_profile *p = r->p;
  struct keys k = {0};
  bool ok;
  *groups = (struct ljp_groups){0};
  if (ljp_by_of_frame(r->by)) {
    groups->of_node = ljp_pages_items(p->node_count, sizeof *groups->of_node);
    if (groups->of_node)
      groups->of_node[0] = NONE;
    ok = groups->of_node && group_number_nodes(r, &k, groups->of_node);
    groups->count = k.count;
    groups->values = calloc((size_t)k.count + 1, sizeof *groups->values);
    ok = ok && groups->values;
    for (uint32_t i = 1; ok && i < p->node_count; i++)
      if (r->select.value_of[i])
        ljp_value_add(&groups->values[groups->of_node[i]].self,
                      ljp_select_node(&r->select, i));
    ok = ok && group_totals(r, groups);
  } else {
    ok = group_rows(r, &k, groups);
  }
  groups->first = k.first;
  k.first = NULL;
  group_keys_fini(&k);
  ljp_assert(!ok || group_adds_up(r, groups));
  if (!ok)
    ljp_groups_fini(groups);
  return ok;
}

void ljp_groups_fini(struct ljp_groups *groups)
{
  free(groups->values);
  free(groups->of_node);
  free(groups->first);
  *groups = (struct ljp_groups){0};
}
