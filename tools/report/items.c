/*
** Items: what a report's rows are, their self and total.
*/
#include "tools/report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/frame_name.h"
#include "parsers/stream/names.h"
#include "parsers/profile/table.h"

#define NONE UINT32_MAX

/* Whether items are of frames. */
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

/* Numbers for keys in the order in which they come. */
struct keys {
  struct ljp_index index;
  uint64_t *keys;
  uint32_t *first;
  uint32_t count, room, first_room;
};

static bool number(struct keys *k, uint64_t key, uint32_t first, uint32_t *id)
{
  if (!ljp_index_reserve(&k->index) ||
      !ljp_array_reserve(&k->keys, k->count, &k->room, sizeof *k->keys) ||
      !ljp_array_reserve(&k->first, k->count, &k->first_room, sizeof *k->first))
    return false;
  uint32_t hash = ljp_hash_end(ljp_mix(key, 0));
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

static void keys_fini(struct keys *k)
{
  ljp_index_fini(&k->index);
  free(k->keys);
  free(k->first);
}

static bool is_code(unsigned kind)
{
  return kind == LJP_FRAME_CFUNC || kind == LJP_FRAME_HOST ||
         kind == LJP_FRAME_VM;
}

static bool has_no_place(unsigned kind)
{
  return kind == LJP_FRAME_BUILTIN || kind == LJP_FRAME_KERNEL ||
         kind == LJP_FRAME_PROFILER;
}

static bool is_lua(unsigned kind)
{
  return kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED;
}

/* Keys of functions stand beside those of lines and files. */
#define OF_FUNCTION (UINT64_C(1) << 63)

/* What a frame's item is; false: it has none of its own and counts for the
** one that called it. */
static bool frame_key(const struct ljp_report *r, uint32_t frame, uint64_t *key)
{
  const struct ljp_profile_frame *f = &r->p->frames[frame];
  bool own = f->file && (r->c_lines || !is_code(f->kind));
  *key = OF_FUNCTION | f->function;
  switch (r->by) {
  case LJP_BY_LINE:
    if (own && f->line)
      *key = (uint64_t)f->file << 32 | f->line;
    else if (is_code(f->kind) || has_no_place(f->kind))
      return false;
    return true;
  case LJP_BY_FILE:
    if (own)
      *key = f->file;
    else if (is_code(f->kind) || has_no_place(f->kind))
      return false;
    return true;
  case LJP_BY_MODULE:
    if (is_code(f->kind) && f->module)
      *key = r->p->modules[f->module].path;
    else if (is_lua(f->kind) || f->kind == LJP_FRAME_TRACE)
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

/* By node: the item of its frame. */
static bool frame_items(const struct ljp_report *r, struct keys *k,
                        uint32_t *of_node)
{
  const struct ljp_profile *p = r->p;
  uint32_t *of_frame = malloc(p->frame_count * sizeof *of_frame);
  bool ok = of_frame != NULL;
  uint64_t key;
  for (uint32_t i = 0; ok && i < p->frame_count; i++) {
    of_frame[i] = NONE;
    if (p->frames[i].kind != LJP_FRAME_ROOT && frame_key(r, i, &key))
      ok = number(k, key, i, &of_frame[i]);
  }
  for (uint32_t i = 1; ok && i < p->node_count; i++) {
    const struct ljp_profile_node *node = &p->nodes[i];
    of_node[i] = of_frame[node->frame];
    if (of_node[i] == NONE)
      of_node[i] = of_node[node->parent];
    if (of_node[i] == NONE) /* Nobody called it: it stands for itself. */
      ok = number(k, OF_FUNCTION | p->frames[node->frame].function, node->frame,
                  &of_node[i]);
  }
  free(of_frame);
  return ok;
}

/* Totals: a stack counts once for each item that stands in it. Nodes are gone
** through as a tree, knowing which items are open. */
static bool totals(const struct ljp_report *r, struct ljp_items *items)
{
  const struct ljp_profile *p = r->p;
  struct ljp_value *sums = malloc(p->node_count * sizeof *sums);
  uint32_t *child = calloc(p->node_count, sizeof *child);
  uint32_t *sibling = calloc(p->node_count, sizeof *sibling);
  uint32_t *open = calloc((size_t)items->count + 1, sizeof *open);
  bool ok = sums && child && sibling && open;
  if (ok) {
    memcpy(sums, r->select.nodes, p->node_count * sizeof *sums);
    for (uint32_t i = p->node_count; i-- > 1;) {
      uint32_t parent = p->nodes[i].parent;
      ljp_value_add(&sums[parent], &sums[i]);
      sibling[i] = child[parent];
      child[parent] = i;
    }
    for (uint32_t at = child[0]; at;) {
      uint32_t item = items->of_node[at];
      if (!open[item]++) {
        ljp_value_add(&items->values[item].total, &sums[at]);
      }
      if (child[at]) {
        at = child[at];
        continue;
      }
      while (at && !sibling[at]) {
        open[items->of_node[at]]--;
        at = p->nodes[at].parent;
      }
      if (at) {
        open[items->of_node[at]]--;
        at = sibling[at];
      }
    }
  }
  free(sums);
  free(child);
  free(sibling);
  free(open);
  return ok;
}

static bool row_key(const struct ljp_report *r,
                    const struct ljp_profile_row *row, const uint32_t *trace,
                    uint32_t *key)
{
  const struct ljp_profile_context *c = &r->p->contexts[row->context];
  switch (r->by) {
  case LJP_BY_TRACE:
    *key = trace[row->node];
    return true;
  case LJP_BY_STACK:
    *key = row->node;
    return true;
  case LJP_BY_THREAD:
    *key = c->thread;
    return true;
  case LJP_BY_VM:
    *key = c->vm;
    return true;
  case LJP_BY_STATE:
    *key = c->state;
    return true;
  case LJP_BY_TYPE:
    *key = c->type;
    return true;
  default:
    return false;
  }
}

/* By node: a frame of the innermost trace, for each trace the same one, however
** exactly it was known; 0: none. */
static bool trace_frames(const struct ljp_profile *p, uint32_t **trace)
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

/* Items that are of rows, not of frames: self and total are one. */
static bool row_items(const struct ljp_report *r, struct keys *k,
                      struct ljp_items *items)
{
  const struct ljp_profile *p = r->p;
  uint32_t *of_row = malloc(((size_t)p->row_count + 1) * sizeof *of_row);
  uint32_t *trace = NULL, key = 0;
  bool ok = of_row && (r->by != LJP_BY_TRACE || trace_frames(p, &trace));
  for (uint32_t i = 0; ok && i < p->row_count; i++) {
    const struct ljp_value *v = &r->select.rows[i];
    of_row[i] = NONE;
    if ((v->count || v->weight) && row_key(r, &p->rows[i], trace, &key))
      ok = number(k, key, key, &of_row[i]);
  }
  items->count = k->count;
  items->values = calloc((size_t)k->count + 1, sizeof *items->values);
  ok = ok && items->values;
  for (uint32_t i = 0; ok && i < p->row_count; i++)
    if (of_row[i] != NONE) {
      ljp_value_add(&items->values[of_row[i]].self, &r->select.rows[i]);
      items->values[of_row[i]].total = items->values[of_row[i]].self;
    }
  free(of_row);
  free(trace);
  return ok;
}

bool ljp_items_make(const struct ljp_report *r, struct ljp_items *items)
{
  const struct ljp_profile *p = r->p;
  struct keys k = {0};
  bool ok;
  *items = (struct ljp_items){0};
  if (ljp_by_of_frame(r->by)) {
    items->of_node = malloc(p->node_count * sizeof *items->of_node);
    if (items->of_node)
      items->of_node[0] = NONE;
    ok = items->of_node && frame_items(r, &k, items->of_node);
    items->count = k.count;
    items->values = calloc((size_t)k.count + 1, sizeof *items->values);
    ok = ok && items->values;
    for (uint32_t i = 1; ok && i < p->node_count; i++)
      ljp_value_add(&items->values[items->of_node[i]].self,
                    &r->select.nodes[i]);
    ok = ok && totals(r, items);
  } else {
    ok = row_items(r, &k, items);
  }
  items->first = k.first;
  k.first = NULL;
  keys_fini(&k);
  if (!ok)
    ljp_items_fini(items);
  return ok;
}

void ljp_items_fini(struct ljp_items *items)
{
  free(items->values);
  free(items->of_node);
  free(items->first);
  *items = (struct ljp_items){0};
}

static void copy(char *out, size_t room, struct ljp_str s)
{
  size_t n = s.len < room - 1 ? s.len : room - 1;
  if (n)
    memcpy(out, s.data, n);
  out[n] = '\0';
}

static void named(const struct ljp_profile *p, uint32_t name, uint64_t id,
                  const char *what, char *out, size_t room)
{
  struct ljp_str s = ljp_profile_str(p, name);
  if (!id)
    snprintf(out, room, "(unknown %s)", what);
  else if (s.len)
    snprintf(out, room, "%s %" PRIu64 " (%.*s)", what, id, (int)s.len, s.data);
  else
    snprintf(out, room, "%s %" PRIu64, what, id);
}

void ljp_item_name(const struct ljp_report *r, const struct ljp_items *items,
                   uint32_t item, char *out, size_t room)
{
  const struct ljp_profile *p = r->p;
  uint32_t first = items->first[item];
  const struct ljp_profile_frame *f;
  const char *text;
  switch (r->by) {
  case LJP_BY_FUNCTION:
    ljp_frame_name(p, first, r->lines ? LJP_NAME_LINES | LJP_NAME_C_LINES : 0,
                   out, room);
    return;
  case LJP_BY_LINE:
    f = &p->frames[first];
    if (f->file && f->line && (r->c_lines || !is_code(f->kind)))
      ljp_frame_place_text(p, first, LJP_NAME_LINES | LJP_NAME_C_LINES, out,
                           room);
    else
      ljp_frame_name(p, first, 0, out, room);
    return;
  case LJP_BY_FILE:
    f = &p->frames[first];
    if (f->file && (r->c_lines || !is_code(f->kind)))
      copy(out, room, ljp_profile_str(p, f->file));
    else
      ljp_frame_name(p, first, 0, out, room);
    return;
  case LJP_BY_MODULE:
    f = &p->frames[first];
    if (is_code(f->kind) && f->module)
      copy(out, room, ljp_profile_str(p, p->modules[f->module].path));
    else if (is_lua(f->kind) || f->kind == LJP_FRAME_TRACE)
      snprintf(out, room, "Lua");
    else if (f->kind == LJP_FRAME_BUILTIN)
      snprintf(out, room, "builtins");
    else
      ljp_frame_name(p, first, 0, out, room);
    return;
  case LJP_BY_KIND:
    snprintf(out, room, "%s", ljp_profile_kind_text(p->frames[first].kind));
    return;
  case LJP_BY_TRACE:
    if (first)
      ljp_frame_name(p, first, 0, out, room);
    else
      snprintf(out, room, "(in no known trace)");
    return;
  case LJP_BY_STACK:
    ljp_frame_name(p, p->nodes[first].frame, r->lines ? LJP_NAME_LINES : 0, out,
                   room);
    return;
  case LJP_BY_THREAD:
    named(p, p->threads[first].name, p->threads[first].id, "thread", out, room);
    return;
  case LJP_BY_VM:
    named(p, p->vms[first].name, p->vms[first].id, "VM", out, room);
    return;
  case LJP_BY_STATE:
    text = ljp_name_vmstate(first);
    if (text)
      snprintf(out, room, "%s", text);
    else
      snprintf(out, room, "state %u", first);
    return;
  case LJP_BY_TYPE:
    text = ljp_name_mem_type(first);
    if (text)
      snprintf(out, room, "%s", first ? text : "(type not known)");
    else
      snprintf(out, room, "type %u", first);
    return;
  }
}
