/*
** Stacks of the stream to nodes of the profile.
**
** A frame of machine code means different addresses as a leaf (the
** instruction) and as a caller (where it returns to). So each id of the stream
** has two nodes; they differ for such frames only. One thread a profile.
*/
#include "parsers/profile/stack.h"

#include <stdlib.h>

#include "parsers/profile/definitions.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/labels.h"
#include "parsers/profile/pass.h"
#include "parsers/profile/traces.h"
#include "src/base/assert.h"

/* The entry of a stack, emptied if it was another one's or is out of date.
** NULL: no memory. */
static struct ljp_stack_entry *stack_entry(struct ljp_profile *p, uint64_t id)
{
  uint64_t low = id & (LJP_EPOCH_MAX_NODES - 1);
  struct ljp_stack_entry **page = &p->pass->stacks.pages[low / LJP_STACK_PAGE];
  if (LJP_UNLIKELY(!*page)) {
    *page = calloc(LJP_STACK_PAGE, sizeof **page);
    if (!*page)
      return NULL;
  }
  struct ljp_stack_entry *entry = *page + low % LJP_STACK_PAGE;
  if (LJP_UNLIKELY(!ljp_stack_entry_valid(entry, id, p->pass->epoch)))
    *entry = (struct ljp_stack_entry){.id = id};
  return entry;
}

void ljp_stack_map_clear(struct ljp_stack_map *map)
{
  for (size_t i = 0; i < LJP_STACK_PAGES; i++) {
    free(map->pages[i]);
    map->pages[i] = NULL;
  }
}

static enum ljp_status stack_frame_lua(struct ljp_profile *p,
                                       const struct ljp_rec_node *node,
                                       uint32_t parent,
                                       struct ljp_profile_frame *f)
{
  struct ljp_profile_proto proto = {0};
  enum ljp_status status = ljp_profile_find_proto(p, node->ref, &proto);
  if (status)
    return status;
  f->line = ljp_clamp_u32(node->value);
  if (proto.known) {
    f->name = proto.name;
    f->file = proto.file;
    f->first_line = proto.builtin ? LJP_PROFILE_BUILTIN_LINE : proto.first_line;
  } else {
    f->flags |= LJP_PROFILE_UNKNOWN;
    f->offset = node->ref;
  }
  if (node->kind == LJP_FRAME_LUA_INLINED &&
      p->frames[p->nodes[parent].frame].kind == LJP_FRAME_LUA_INLINED)
    f->flags |= LJP_PROFILE_INLINED;
  return LJP_OK;
}

static enum ljp_status stack_frame_trace(struct ljp_profile *p,
                                         const struct ljp_rec_node *node,
                                         struct ljp_profile_frame *f)
{
  const struct ljp_rec_trace *trace =
      ljp_model_trace(&p->pass->reader->model, node->value);
  struct ljp_profile_proto proto = {0};
  f->offset = node->value;
  if (!trace) {
    f->flags |= LJP_PROFILE_UNKNOWN;
    return LJP_OK;
  }
  f->offset = trace->number;
  f->first_line = ljp_clamp_u32(trace->line);
  enum ljp_status status = ljp_profile_find_trace(p, node->value, &f->trace);
  if (status)
    return status;
  status = ljp_profile_find_proto(p, trace->proto, &proto);
  f->file = proto.builtin ? proto.name : proto.file;
  return status;
}

/* The frame of a stack node whose parent is `parent` in the profile. caller:
** it is not the leaf. */
static enum ljp_status stack_frame(struct ljp_profile *p,
                                   const struct ljp_rec_node *node,
                                   uint32_t parent, bool caller, uint32_t *id)
{
  const struct ljp_model *model = &p->pass->reader->model;
  struct ljp_profile_frame f = {.kind = node->kind, .flags = node->flags};
  const struct ljp_rec_builtin *builtin;
  enum ljp_status status = LJP_OK;
  uint32_t labels;
  switch (node->kind) {
  case LJP_FRAME_LUA:
  case LJP_FRAME_LUA_INLINED:
    status = stack_frame_lua(p, node, parent, &f);
    break;
  case LJP_FRAME_HOST:
  case LJP_FRAME_VM:
    if (caller)
      f.flags |= LJP_PROFILE_CALLER;
    /* Fall through. */
  case LJP_FRAME_CFUNC:
    f.offset = node->value;
    status = ljp_profile_find_module(p, node->ref, &f.module);
    if (node->ref && !f.module)
      f.flags |= LJP_PROFILE_UNKNOWN;
    break;
  case LJP_FRAME_BUILTIN:
    f.offset = node->value;
    builtin = ljp_model_builtin(model, node->value);
    if (builtin)
      status = ljp_profile_intern_string(p, builtin->name, &f.name);
    else
      f.flags |= LJP_PROFILE_UNKNOWN;
    break;
  case LJP_FRAME_TRACE:
    status = stack_frame_trace(p, node, &f);
    break;
  case LJP_FRAME_LABELS:
    if ((status = ljp_labels_find(p, node->value, &labels)))
      return status;
    f.offset = labels;
    p->has_labels = true;
    f.flags = labels == LJP_LABELS_LOST ? LJP_PROFILE_UNKNOWN : 0;
    break;
  default:
    f.offset = node->value;
  }
  return status ? status : ljp_profile_intern_frame(p, &f, id);
}

/* Whether frames of the kind mean different addresses as leaf and as caller. */
static bool stack_has_address(unsigned kind)
{
  return kind == LJP_FRAME_HOST || kind == LJP_FRAME_VM;
}

/* Whether a definition was missing when the node's frame was made. */
static bool stack_is_lossy(const struct ljp_profile *p, uint32_t node)
{
  return p->frames[p->nodes[node].frame].flags & LJP_PROFILE_UNKNOWN;
}

/* The profile's node for a stack node whose parent is `parent`. */
static enum ljp_status stack_add_frame(struct ljp_profile *p,
                                       const struct ljp_rec_node *rec,
                                       uint32_t parent, bool caller,
                                       uint32_t *node)
{
  uint32_t frame;
  enum ljp_status status = stack_frame(p, rec, parent, caller, &frame);
  if (status)
    return status;
  if (p->frames[frame].kind == LJP_FRAME_TOO_MANY) {
    *node = LJP_NODE_TOO_MANY;
    return LJP_OK;
  }
  return ljp_profile_intern_node(p, parent, frame, node);
}

/* Collects the stack's frames, leaf first, up to a frame that is known as a
** caller. *at is that frame's node (0: the root of all), *epoch how long it is
** valid. *leaf: the entry of the stack itself if that is known; then there is
** nothing else to do. */
static enum ljp_status
stack_collect(struct ljp_profile *p, uint64_t stack,
              const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES],
              unsigned *count, uint32_t *at, uint32_t *epoch,
              struct ljp_stack_entry **leaf)
{
  *count = *at = *epoch = 0;
  *leaf = NULL;
  for (uint64_t id = stack; id;) {
    struct ljp_stack_entry *e = stack_entry(p, id);
    if (!e)
      return LJP_ERR_MEM;
    if (id == stack && e->leaf) {
      *leaf = e;
      return LJP_OK;
    }
    if (id != stack && e->caller) {
      *at = e->caller - 1;
      *epoch = e->epoch;
      return LJP_OK;
    }
    const struct ljp_rec_node *rec =
        ljp_model_node(&p->pass->reader->model, id);
    if (!rec ||
        *count >= LJP_STACK_MAX_FRAMES + (rec->kind == LJP_FRAME_LABELS)) {
      *at = LJP_NODE_LOST;
      *epoch = p->pass->epoch;
      return LJP_OK;
    }
    ljp_assert(rec->up < id || !rec->up); /* The reader checks it. */
    frames[(*count)++] = rec;
    id = rec->up ? id - rec->up : 0;
  }
  return LJP_OK;
}

enum ljp_status ljp_profile_find_stack(struct ljp_profile *p, uint64_t stack,
                                       struct ljp_stack_entry **entry,
                                       uint32_t *node)
{
  const struct ljp_rec_node *frames[LJP_STACK_MAX_NODES];
  struct ljp_stack_entry *e;
  enum ljp_status status;
  unsigned count;
  uint32_t epoch, at;
  *entry = NULL;
  if (!stack) {
    *node = LJP_NODE_NO_STACK;
    return LJP_OK;
  }
  if ((status = stack_collect(p, stack, frames, &count, &at, &epoch, &e)))
    return status;
  if (e) {
    *entry = e;
    *node = e->leaf - 1;
    return LJP_OK;
  }
  /* From the outermost of these frames to the leaf. If the leaf itself is not
  ** defined, there are none. */
  for (unsigned i = count; i-- > 0;) {
    const struct ljp_rec_node *rec = frames[i];
    if ((status = stack_add_frame(p, rec, at, i > 0, &at)))
      return status;
    if (stack_is_lossy(p, at))
      epoch = p->pass->epoch;
    if (!(e = stack_entry(p, rec->id)))
      return LJP_ERR_MEM;
    e->epoch = epoch;
    if (i == 0)
      e->leaf = at + 1;
    if (i > 0 || !stack_has_address(rec->kind))
      e->caller = at + 1;
  }
  *entry = e;
  *node = at;
  return LJP_OK;
}

enum ljp_status ljp_profile_stack_labels(struct ljp_profile *p, uint64_t stack,
                                         uint32_t *labels)
{
  const struct ljp_rec_node *node;
  struct ljp_stack_entry *e;
  enum ljp_status status = LJP_OK;
  uint64_t id = stack;
  *labels = LJP_LABELS_NONE;
  if (!stack)
    return LJP_OK;
  if (!(e = stack_entry(p, stack)))
    return LJP_ERR_MEM;
  if (e->labels) {
    *labels = e->labels - 1;
    return LJP_OK;
  }
  do
    node = ljp_model_node(&p->pass->reader->model, id);
  while (node && node->up && (id -= node->up));
  if (!node)
    *labels = LJP_LABELS_LOST;
  else if (node->kind == LJP_FRAME_LABELS)
    status = ljp_labels_find(p, node->value, labels);
  if (!status && *labels != LJP_LABELS_LOST) /* It may be defined later. */
    e->labels = *labels + 1;
  return status;
}
