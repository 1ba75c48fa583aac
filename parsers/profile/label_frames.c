/*
** Frames of labels: gives each stack of a finished profile one more outermost
** frame, "KEY=VALUE", so that every view is divided by the values of the key and
** still adds up to the same totals. One thread a profile.
*/
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/labels.h"
#include "parsers/profile/pass.h"
#include "parsers/profile/tables.h"
#include "src/base/assert.h"

#define NO_LABEL "(none)"

struct label_frames {
  struct ljp_profile *p;
  struct ljp_tables old;
  uint32_t key;
  uint32_t *nodes;  /* By set of labels: the node of its frame; 0: none yet. */
  uint32_t *frames; /* By old frame: the new one, + 1. */
  uint32_t *path;
  uint32_t path_room;
};

/* Finds or adds the node of a value's frame. */
static enum ljp_status label_node(struct label_frames *l, uint32_t labels,
                                  uint32_t *node)
{
  struct ljp_profile *p = l->p;
  struct ljp_profile_frame f = {.kind = LJP_FRAME_LABELS};
  const struct ljp_str key = ljp_profile_str(p, l->key);
  uint32_t number = ljp_labels_value(p, labels, l->key), frame;
  struct ljp_str value = ljp_profile_str(p, number);
  enum ljp_status status;
  if ((*node = l->nodes[labels]))
    return LJP_OK;
  if (!number)
    value = (struct ljp_str){NO_LABEL, sizeof NO_LABEL - 1};
  size_t room = (size_t)key.len + 1 + value.len;
  char *text = malloc(room);
  if (!text)
    return LJP_ERR_MEM;
  memcpy(text, key.data, key.len);
  text[key.len] = '=';
  memcpy(text + key.len + 1, value.data, value.len);
  if (room > LJP_STRING_MAX_BYTES)
    room = LJP_STRING_MAX_BYTES;
  status = ljp_profile_intern_string(p, (struct ljp_str){text, (uint32_t)room},
                                     &f.name);
  free(text);
  if (status || (status = ljp_profile_intern_frame(p, &f, &frame)) ||
      (status = ljp_profile_intern_node(p, 0, frame, node)))
    return status;
  l->nodes[labels] = *node;
  return LJP_OK;
}

/* Adds the frames of an old node to the new node *to. */
static enum ljp_status label_stack(struct label_frames *l, uint32_t node,
                                   uint32_t *to)
{
  const struct ljp_tables *old = &l->old;
  enum ljp_status status;
  uint32_t depth = 0, at = *to;
  for (; node; node = old->nodes[node].parent) {
    const uint32_t from = old->nodes[node].frame;
    if (!ljp_array_reserve(&l->path, depth, &l->path_room, sizeof *l->path))
      return LJP_ERR_MEM;
    if (!l->frames[from]) {
      uint32_t frame;
      if ((status = ljp_profile_intern_frame(l->p, &old->frames[from], &frame)))
        return status;
      l->frames[from] = frame + 1;
    }
    l->path[depth++] = l->frames[from] - 1;
  }
  while (depth)
    if ((status = ljp_profile_intern_node(l->p, at, l->path[--depth], &at)))
      return status;
  *to = at;
  return LJP_OK;
}

static enum ljp_status label_tables(struct label_frames *l, uint32_t *row_map)
{
  struct ljp_profile *p = l->p;
  /* With their numbers: LJP_NODE_TOO_MANY may be needed. */
  static const uint8_t own[] = {LJP_FRAME_ROOT, LJP_FRAME_NO_STACK,
                                LJP_FRAME_LOST, LJP_FRAME_TOO_MANY};
  enum ljp_status status;
  uint32_t frame, node;
  for (unsigned i = 0; i < sizeof own; i++) {
    struct ljp_profile_frame f = {.kind = own[i]};
    if ((status = ljp_profile_intern_frame(p, &f, &frame)) ||
        (status = ljp_profile_intern_node(p, 0, frame, &node)))
      return status;
    ljp_assert(frame == i && node == i);
  }
  for (uint32_t i = 0; i < l->old.row_count; i++) {
    struct ljp_profile_row *row = &l->old.rows[i];
    if ((status = label_node(l, p->contexts[row->context].labels, &node)) ||
        (status = label_stack(l, row->node, &node)))
      return status;
    row->node = node;
  }
  for (uint32_t i = 0; i < p->trace_event_count; i++) {
    node = 0; /* Trace events have no labels. */
    if ((status = label_stack(l, p->trace_events[i].stack, &node)))
      return status;
    p->trace_events[i].stack = node;
  }
  return ljp_tables_move_rows(p, &l->old, row_map);
}

enum ljp_status ljp_profile_frame_labels(struct ljp_profile *p)
{
  struct ljp_profile_pass *pass = p->pass;
  struct label_frames l = {.p = p};
  const char *key = p->options.label_key;
  enum ljp_status status = LJP_ERR_MEM;
  uint32_t *row_map =
      ljp_pages_items((size_t)p->row_count + 1, sizeof *row_map);
  l.key = ljp_labels_key(p, (struct ljp_str){key, (uint32_t)strlen(key)});
  l.nodes = calloc(p->label_count, sizeof *l.nodes);
  l.frames = calloc((size_t)p->frame_count + 1, sizeof *l.frames);
  if (row_map && l.nodes && l.frames) {
    ljp_index_fini(&pass->frame_index);
    ljp_index_fini(&pass->node_index);
    ljp_index_fini(&pass->row_index);
    ljp_tables_take(p, &l.old);
    status = label_tables(&l, row_map);
    ljp_tables_free(&l.old);
  }
  free(p->functions);
  p->functions = NULL;
  p->function_count = pass->function_room = 0;
  if (!status && !(status = ljp_profile_number_functions(p))) {
    for (uint32_t i = 0; i < p->point_count; i++)
      p->points[i].row = row_map[p->points[i].row];
    ljp_profile_move_births(p, row_map);
  }
  free(row_map);
  free(l.nodes);
  free(l.frames);
  free(l.path);
  return status;
}
