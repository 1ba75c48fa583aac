/*
** Interning of the profile. One thread a profile.
*/
#include "parsers/profile/intern.h"

#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/pass.h"
#include "src/base/assert.h"

#define TOO_MANY_NAMES "(name beyond the limit of names)"

/* Makes room for one more in the array p->members; false: no memory. */
#define RESERVE(p, member)                                                     \
  ljp_array_reserve(&(p)->member##s, (p)->member##_count,                      \
                    &(p)->pass->member##_room, sizeof *(p)->member##s)

enum ljp_status ljp_profile_intern_string(struct ljp_profile *p,
                                          struct ljp_str s, uint32_t *id)
{
  enum ljp_status status = ljp_strings_add(&p->strings, s, id);
  if (status == LJP_ERR_LIMIT) {
    *id = p->pass->too_many_names;
    return LJP_OK;
  }
  return status;
}

bool ljp_profile_same_frame(const struct ljp_profile_frame *a,
                            const struct ljp_profile_frame *b)
{
  return a->kind == b->kind && a->flags == b->flags && a->name == b->name &&
         a->file == b->file && a->first_line == b->first_line &&
         a->line == b->line && a->module == b->module && a->trace == b->trace &&
         a->offset == b->offset;
}

/* Whether a kind is the profile's own: at most one frame has it. */
static bool intern_is_own_kind(unsigned kind)
{
  return kind >= LJP_FRAME_NO_STACK && kind <= LJP_FRAME_ROOT;
}

enum ljp_status ljp_profile_intern_frame(struct ljp_profile *p,
                                         const struct ljp_profile_frame *frame,
                                         uint32_t *id)
{
  struct ljp_index *index = &p->pass->frame_index;
  if (!ljp_index_reserve(index) || !RESERVE(p, frame))
    return LJP_ERR_MEM;
  uint64_t h = ljp_hash_mix(p->strings.seed, frame->offset);
  h = ljp_hash_mix(h, (uint64_t)frame->name << 32 | frame->file);
  h = ljp_hash_mix(h, (uint64_t)frame->first_line << 32 | frame->line);
  h = ljp_hash_mix(h, (uint64_t)frame->module << 16 | frame->kind << 8 |
                          frame->flags);
  if (frame->trace)
    h = ljp_hash_mix(h, frame->trace);
  uint32_t hash = ljp_hash_finish(h);
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot))
    if (slot->hash == hash &&
        ljp_profile_same_frame(&p->frames[slot->item - 1], frame)) {
      *id = slot->item - 1;
      return LJP_OK;
    }
  if (p->frame_count >= LJP_PROFILE_MAX_FRAMES &&
      !intern_is_own_kind(frame->kind)) {
    struct ljp_profile_frame rest = {.kind = LJP_FRAME_TOO_MANY};
    return ljp_profile_intern_frame(p, &rest, id);
  }
  ljp_index_put(index, slot, hash, p->frame_count);
  p->frames[p->frame_count] = *frame;
  *id = p->frame_count++;
  return LJP_OK;
}

/* -- Nodes -------------------------------------------------------------------
** Most new nodes come with all nodes below them, as the rest of a new stack. So
** most nodes follow their parent in the table. Such a node is found there, and
** is not in the index, which has all other nodes. */

static enum ljp_status intern_add_node(struct ljp_profile *p, uint32_t parent,
                                       uint32_t frame)
{
  if (!RESERVE(p, node))
    return LJP_ERR_MEM;
  ljp_assert(frame < p->frame_count);
  ljp_assert(parent < p->node_count || !p->node_count);
  p->nodes[p->node_count++] = (struct ljp_profile_node){parent, frame};
  return LJP_OK;
}

/* Finds or adds a node that does not follow its parent. */
static enum ljp_status intern_indexed_node(struct ljp_profile *p,
                                           uint32_t parent, uint32_t frame,
                                           uint32_t *id)
{
  struct ljp_index *index = &p->pass->node_index;
  if (!ljp_index_reserve(index))
    return LJP_ERR_MEM;
  uint64_t h = ljp_hash_mix(p->strings.seed, (uint64_t)parent << 32 | frame);
  uint32_t hash = ljp_hash_finish(h);
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot)) {
    const struct ljp_profile_node *node = &p->nodes[slot->item - 1];
    if (slot->hash == hash && node->parent == parent && node->frame == frame) {
      *id = slot->item - 1;
      return LJP_OK;
    }
  }
  if (p->node_count >= LJP_PROFILE_MAX_NODES) {
    *id = LJP_NODE_TOO_MANY;
    return LJP_OK;
  }
  *id = p->node_count;
  enum ljp_status status = intern_add_node(p, parent, frame);
  if (!status)
    ljp_index_put(index, slot, hash, *id);
  return status;
}

static inline enum ljp_status intern_node(struct ljp_profile *p,
                                          uint32_t parent, uint32_t frame,
                                          uint32_t *id)
{
  const uint32_t next = parent + 1;
  if (next < p->node_count && p->nodes[next].parent == parent &&
      p->nodes[next].frame == frame) {
    *id = next;
    return LJP_OK;
  }
  if (next != p->node_count || next >= LJP_PROFILE_MAX_NODES)
    return intern_indexed_node(p, parent, frame, id);
  *id = next;
  return intern_add_node(p, parent, frame);
}

enum ljp_status ljp_profile_intern_node(struct ljp_profile *p, uint32_t parent,
                                        uint32_t frame, uint32_t *id)
{
  return intern_node(p, parent, frame, id);
}

enum ljp_status ljp_profile_intern_path(struct ljp_profile *p,
                                        const uint32_t *frames, uint32_t count,
                                        uint32_t *id)
{
  enum ljp_status status = LJP_OK;
  uint32_t node = *id;
  for (uint32_t i = 0; i < count && !status; i++) {
    if (LJP_UNLIKELY(node == LJP_NODE_TOO_MANY ||
                     frames[i] == LJP_NODE_TOO_MANY)) {
      node = LJP_NODE_TOO_MANY;
      break;
    }
    status = intern_node(p, node, frames[i], &node);
  }
  *id = node;
  return status;
}

enum ljp_status
ljp_profile_intern_context(struct ljp_profile *p,
                           const struct ljp_profile_context *context,
                           uint32_t *id)
{
  struct ljp_index *index = &p->pass->context_index;
  if (!ljp_index_reserve(index) || !RESERVE(p, context))
    return LJP_ERR_MEM;
  uint64_t h = ljp_hash_mix(p->strings.seed,
                            (uint64_t)context->thread << 32 | context->vm);
  h = ljp_hash_mix(h, (uint64_t)context->kind << 24 | context->state << 16 |
                          context->cut << 8 | context->type);
  if (context->labels)
    h = ljp_hash_mix(h, context->labels);
  uint32_t hash = ljp_hash_finish(h);
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot)) {
    const struct ljp_profile_context *c = &p->contexts[slot->item - 1];
    if (slot->hash == hash && c->thread == context->thread &&
        c->vm == context->vm && c->kind == context->kind &&
        c->state == context->state && c->cut == context->cut &&
        c->type == context->type && c->labels == context->labels) {
      *id = slot->item - 1;
      return LJP_OK;
    }
  }
  /* Beyond the limit, thread, VM, type and labels are dropped: few combinations
  ** of the rest exist. */
  if (p->context_count >= LJP_PROFILE_MAX_CONTEXTS &&
      (context->thread || context->vm || context->type ||
       context->labels >= LJP_LABELS_OWN)) {
    struct ljp_profile_context rest = *context;
    rest.thread = rest.vm = rest.type = 0;
    if (rest.labels >= LJP_LABELS_OWN)
      rest.labels = LJP_LABELS_TOO_MANY;
    return ljp_profile_intern_context(p, &rest, id);
  }
  ljp_index_put(index, slot, hash, p->context_count);
  p->contexts[p->context_count] = *context;
  *id = p->context_count++;
  return LJP_OK;
}

enum ljp_status ljp_profile_intern_row(struct ljp_profile *p, uint32_t node,
                                       uint32_t context, uint32_t *id)
{
  struct ljp_index *index = &p->pass->row_index;
  if (!ljp_index_reserve(index) ||
      !ljp_array_reserve_lines(&p->rows, p->row_count, &p->pass->row_room,
                               sizeof *p->rows))
    return LJP_ERR_MEM;
  uint64_t h = ljp_hash_mix(p->strings.seed, (uint64_t)node << 32 | context);
  uint32_t hash = ljp_hash_finish(h);
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot)) {
    const struct ljp_profile_row *row = &p->rows[slot->item - 1];
    if (slot->hash == hash && row->node == node && row->context == context) {
      *id = slot->item - 1;
      return LJP_OK;
    }
  }
  if (p->row_count >= LJP_PROFILE_MAX_ROWS && node != LJP_NODE_TOO_MANY)
    return ljp_profile_intern_row(p, LJP_NODE_TOO_MANY, context, id);
  ljp_index_put(index, slot, hash, p->row_count);
  p->rows[p->row_count] =
      (struct ljp_profile_row){.node = node, .context = context};
  *id = p->row_count++;
  return LJP_OK;
}

/* Makes room for one more in memory[]. */
static bool intern_reserve_memory(struct ljp_profile *p)
{
  _Static_assert(sizeof *p->memory % LJP_CACHE_LINE_BYTES == 0, "whole lines");
  return ljp_array_reserve_lines(&p->memory, p->memory_count,
                                 &p->pass->memory_room, sizeof *p->memory);
}

enum ljp_status ljp_profile_init_memory(struct ljp_profile *p)
{
  if (!intern_reserve_memory(p))
    return LJP_ERR_MEM;
  p->memory[p->memory_count++] = (struct ljp_profile_memory){0};
  return LJP_OK;
}

enum ljp_status ljp_profile_reserve_estimates(struct ljp_profile *p)
{
  uint32_t room = p->pass->memory_room, *have = &p->pass->estimate_room;
  if (LJP_UNLIKELY(*have < room)) {
    struct ljp_profile_estimates *more =
        realloc(p->estimates, room * sizeof *more);
    if (!more)
      return LJP_ERR_MEM;
    memset(more + *have, 0, (room - *have) * sizeof *more);
    p->estimates = more;
    *have = room;
  }
  return LJP_OK;
}

enum ljp_status ljp_profile_reserve_sites(struct ljp_profile *p)
{
  uint32_t room = p->pass->memory_room, *have = &p->pass->site_room;
  if (LJP_UNLIKELY(*have < room)) {
    struct ljp_profile_site *more = realloc(p->sites, room * sizeof *more);
    if (!more)
      return LJP_ERR_MEM;
    memset(more + *have, 0, (room - *have) * sizeof *more);
    p->sites = more;
    *have = room;
  }
  return LJP_OK;
}

enum ljp_status ljp_profile_intern_memory(struct ljp_profile *p, uint32_t row,
                                          uint32_t *memory)
{
  if (LJP_UNLIKELY(!p->rows[row].memory)) {
    if (!intern_reserve_memory(p))
      return LJP_ERR_MEM;
    if ((p->estimates && ljp_profile_reserve_estimates(p)) ||
        (p->sites && ljp_profile_reserve_sites(p)))
      return LJP_ERR_MEM;
    p->memory[p->memory_count] = (struct ljp_profile_memory){
        .row = row, .vm = p->contexts[p->rows[row].context].vm};
    ljp_assert(p->memory_count < p->pass->memory_room);
    p->rows[row].memory = p->memory_count++;
  }
  *memory = p->rows[row].memory;
  return LJP_OK;
}

enum ljp_status ljp_profile_init_nodes(struct ljp_profile *p)
{
  static const uint8_t own[] = {LJP_FRAME_ROOT,   LJP_FRAME_NO_STACK,
                                LJP_FRAME_LOST,   LJP_FRAME_TOO_MANY,
                                LJP_FRAME_BEFORE, LJP_FRAME_UNRECORDED};
  enum ljp_status status;
  uint32_t frame, node;
  for (unsigned i = 0; i < sizeof own; i++) {
    struct ljp_profile_frame f = {.kind = own[i]};
    if ((status = ljp_profile_intern_frame(p, &f, &frame)) ||
        (status = ljp_profile_intern_node(p, 0, frame, &node)))
      return status;
    ljp_assert(frame == i && node == i);
  }
  return ljp_profile_init_memory(p);
}

enum ljp_status ljp_profile_init_intern(struct ljp_profile *p)
{
  static const char text[] = TOO_MANY_NAMES;
  enum ljp_status status;
  if ((status = ljp_strings_init(&p->strings, LJP_PROFILE_MAX_STRING_BYTES)) ||
      (status =
           ljp_profile_intern_string(p, (struct ljp_str){text, sizeof text - 1},
                                     &p->pass->too_many_names)))
    return status;
  return ljp_profile_init_nodes(p);
}
