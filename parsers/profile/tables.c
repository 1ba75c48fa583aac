/*
** Interning of the profile: frames, nodes, contexts, rows, and what they
** name. What would go beyond a limit gets the place that stands for all such.
*/
#include "parsers/profile/work.h"

#include <string.h>

#define TOO_MANY_NAMES "(name beyond the limit of names)"

/* Whether there is room for one more; `member` as in p->members. */
#define RESERVE(p, member)                                                     \
  ljp_array_reserve(&(p)->member##s, (p)->member##_count,                      \
                    &(p)->work->member##_room, sizeof *(p)->member##s)

enum ljp_status ljp_profile_string(struct ljp_profile *p, struct ljp_str s,
                                   uint32_t *id)
{
  enum ljp_status status = ljp_strings_add(&p->work->strings, s, id);
  if (status == LJP_ERR_LIMIT) {
    *id = p->work->too_many_names;
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

static bool is_own(unsigned kind)
{
  return kind >= LJP_FRAME_NO_STACK && kind <= LJP_FRAME_ROOT;
}

enum ljp_status ljp_profile_frame(struct ljp_profile *p,
                                  const struct ljp_profile_frame *frame,
                                  uint32_t *id)
{
  struct ljp_index *index = &p->work->frame_index;
  if (!ljp_index_reserve(index) || !RESERVE(p, frame))
    return LJP_ERR_MEM;
  uint64_t h = ljp_hash_mix(p->work->strings.seed, frame->offset);
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
  if (p->frame_count >= LJP_PROFILE_MAX_FRAMES && !is_own(frame->kind)) {
    struct ljp_profile_frame rest = {.kind = LJP_FRAME_TOO_MANY};
    return ljp_profile_frame(p, &rest, id);
  }
  ljp_index_put(index, slot, hash, p->frame_count);
  p->frames[p->frame_count] = *frame;
  *id = p->frame_count++;
  return LJP_OK;
}

enum ljp_status ljp_profile_node(struct ljp_profile *p, uint32_t parent,
                                 uint32_t frame, uint32_t *id)
{
  struct ljp_index *index = &p->work->node_index;
  if (!ljp_index_reserve(index) || !RESERVE(p, node))
    return LJP_ERR_MEM;
  uint64_t h =
      ljp_hash_mix(p->work->strings.seed, (uint64_t)parent << 32 | frame);
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
  ljp_index_put(index, slot, hash, p->node_count);
  p->nodes[p->node_count] = (struct ljp_profile_node){parent, frame};
  *id = p->node_count++;
  return LJP_OK;
}

enum ljp_status ljp_profile_context(struct ljp_profile *p,
                                    const struct ljp_profile_context *context,
                                    uint32_t *id)
{
  struct ljp_index *index = &p->work->context_index;
  if (!ljp_index_reserve(index) || !RESERVE(p, context))
    return LJP_ERR_MEM;
  uint64_t h = ljp_hash_mix(p->work->strings.seed,
                            (uint64_t)context->thread << 32 | context->vm);
  h = ljp_hash_mix(h, (uint64_t)context->kind << 24 | context->state << 16 |
                          context->cut << 8 | context->type);
  uint32_t hash = ljp_hash_finish(h);
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot)) {
    const struct ljp_profile_context *c = &p->contexts[slot->item - 1];
    if (slot->hash == hash && c->thread == context->thread &&
        c->vm == context->vm && c->kind == context->kind &&
        c->state == context->state && c->cut == context->cut &&
        c->type == context->type) {
      *id = slot->item - 1;
      return LJP_OK;
    }
  }
  /* Past the limit thread and VM are given up: then there are few. */
  if (p->context_count >= LJP_PROFILE_MAX_CONTEXTS &&
      (context->thread || context->vm || context->type)) {
    struct ljp_profile_context rest = *context;
    rest.thread = rest.vm = rest.type = 0;
    return ljp_profile_context(p, &rest, id);
  }
  ljp_index_put(index, slot, hash, p->context_count);
  p->contexts[p->context_count] = *context;
  *id = p->context_count++;
  return LJP_OK;
}

enum ljp_status ljp_profile_row(struct ljp_profile *p, uint32_t node,
                                uint32_t context, uint32_t *id)
{
  struct ljp_index *index = &p->work->row_index;
  if (!ljp_index_reserve(index) ||
      !ljp_array_reserve_lines(&p->rows, p->row_count, &p->work->row_room,
                               sizeof *p->rows))
    return LJP_ERR_MEM;
  uint64_t h =
      ljp_hash_mix(p->work->strings.seed, (uint64_t)node << 32 | context);
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
    return ljp_profile_row(p, LJP_NODE_TOO_MANY, context, id);
  ljp_index_put(index, slot, hash, p->row_count);
  p->rows[p->row_count] =
      (struct ljp_profile_row){.node = node, .context = context};
  *id = p->row_count++;
  return LJP_OK;
}

/* Threads, VMs and modules are few in honest files, and each takes a whole
** definition: searched from the newest. Hostile ones meet a limit. */
enum { MAX_NAMED = 4096 };

enum ljp_status ljp_profile_thread(struct ljp_profile *p, uint64_t id,
                                   uint32_t *thread)
{
  const struct ljp_rec_thread *t =
      ljp_model_thread(&p->work->reader->model, id);
  *thread = 0;
  if (!id)
    return LJP_OK;
  for (uint32_t i = p->thread_count - 1; i > 0; i--)
    if (p->threads[i].id == id && p->threads[i].source == p->work->source) {
      *thread = i;
      break;
    }
  if (!*thread) {
    if (p->thread_count >= MAX_NAMED)
      return LJP_OK;
    if (!RESERVE(p, thread))
      return LJP_ERR_MEM;
    *thread = p->thread_count++;
    p->threads[*thread] =
        (struct ljp_profile_thread){.source = p->work->source, .id = id};
  }
  if (!t)
    return LJP_OK;
  p->threads[*thread].tid = t->tid;
  return ljp_profile_string(p, t->name, &p->threads[*thread].name);
}

enum ljp_status ljp_profile_vm(struct ljp_profile *p, uint64_t id, uint32_t *vm)
{
  const struct ljp_rec_vm *v = ljp_model_vm(&p->work->reader->model, id);
  *vm = 0;
  if (!id)
    return LJP_OK;
  for (uint32_t i = p->vm_count - 1; i > 0; i--)
    if (p->vms[i].id == id && p->vms[i].source == p->work->source) {
      *vm = i;
      break;
    }
  if (!*vm) {
    if (p->vm_count >= MAX_NAMED)
      return LJP_OK;
    if (!RESERVE(p, vm))
      return LJP_ERR_MEM;
    *vm = p->vm_count++;
    p->vms[*vm] = (struct ljp_profile_vm){.source = p->work->source, .id = id};
  }
  return v ? ljp_profile_string(p, v->name, &p->vms[*vm].name) : LJP_OK;
}

enum ljp_status ljp_profile_module(struct ljp_profile *p, uint64_t id,
                                   uint32_t *module)
{
  const struct ljp_rec_module *m =
      ljp_model_module(&p->work->reader->model, id);
  uint32_t path, build_id;
  enum ljp_status status;
  *module = 0;
  if (!m)
    return LJP_OK;
  if ((status = ljp_profile_string(p, m->path, &path)) ||
      (status = ljp_profile_string(p, m->build_id, &build_id)))
    return status;
  for (uint32_t i = p->module_count - 1; i > 0; i--) {
    const struct ljp_profile_module *old = &p->modules[i];
    if (old->path == path && old->build_id == build_id &&
        old->span == m->size) {
      *module = i;
      return LJP_OK;
    }
  }
  if (p->module_count >= MAX_NAMED)
    return LJP_OK;
  if (!RESERVE(p, module))
    return LJP_ERR_MEM;
  uint32_t symbols =
      ljp_symbols_module(p->symbols, m->path, m->build_id, m->size, m->flags);
  if (!symbols)
    return LJP_ERR_MEM;
  *module = p->module_count++;
  p->modules[*module] = (struct ljp_profile_module){.path = path,
                                                    .build_id = build_id,
                                                    .symbols = symbols,
                                                    .span = m->size,
                                                    .flags = m->flags};
  return LJP_OK;
}

/* Room for one more of memory[]. */
static bool reserve_memory(struct ljp_profile *p)
{
  _Static_assert(sizeof *p->memory % LJP_CACHE_LINE_BYTES == 0, "whole lines");
  return ljp_array_reserve_lines(&p->memory, p->memory_count,
                                 &p->work->memory_room, sizeof *p->memory);
}

enum ljp_status ljp_profile_no_memory(struct ljp_profile *p)
{
  if (!reserve_memory(p))
    return LJP_ERR_MEM;
  p->memory[p->memory_count++] = (struct ljp_profile_memory){0};
  return LJP_OK;
}

/* As many as there are places in memory[]. */
enum ljp_status ljp_profile_estimates(struct ljp_profile *p)
{
  uint32_t room = p->work->memory_room, *have = &p->work->estimate_room;
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

enum ljp_status ljp_profile_row_memory(struct ljp_profile *p, uint32_t row,
                                       uint32_t *memory)
{
  if (LJP_UNLIKELY(!p->rows[row].memory)) {
    if (!reserve_memory(p))
      return LJP_ERR_MEM;
    if (p->estimates && ljp_profile_estimates(p))
      return LJP_ERR_MEM;
    p->memory[p->memory_count] = (struct ljp_profile_memory){
        .row = row, .vm = p->contexts[p->rows[row].context].vm};
    p->rows[row].memory = p->memory_count++;
  }
  *memory = p->rows[row].memory;
  return LJP_OK;
}

enum ljp_status ljp_profile_tables(struct ljp_profile *p)
{
  static const char text[] = TOO_MANY_NAMES;
  static const uint8_t own[] = {LJP_FRAME_ROOT, LJP_FRAME_NO_STACK,
                                LJP_FRAME_LOST, LJP_FRAME_TOO_MANY,
                                LJP_FRAME_BEFORE};
  enum ljp_status status;
  uint32_t id;
  if ((status =
           ljp_strings_init(&p->work->strings, LJP_PROFILE_MAX_STRING_BYTES)) ||
      (status = ljp_profile_string(p, (struct ljp_str){text, sizeof text - 1},
                                   &p->work->too_many_names)))
    return status;
  for (unsigned i = 0; i < sizeof own; i++) {
    struct ljp_profile_frame frame = {.kind = own[i]};
    if ((status = ljp_profile_frame(p, &frame, &id)) ||
        (status = ljp_profile_node(p, 0, id, &id)))
      return status;
  }
  if (!RESERVE(p, thread) || !RESERVE(p, vm) || !RESERVE(p, module) ||
      !RESERVE(p, trace) || ljp_profile_no_memory(p))
    return LJP_ERR_MEM;
  p->traces[p->trace_count++] = (struct ljp_profile_trace){0};
  p->threads[p->thread_count++] = (struct ljp_profile_thread){0};
  p->vms[p->vm_count++] = (struct ljp_profile_vm){0};
  p->modules[p->module_count++] = (struct ljp_profile_module){0};
  p->work->protos = calloc(LJP_PROTO_ENTRIES, sizeof *p->work->protos);
  return p->work->protos ? LJP_OK : LJP_ERR_MEM;
}
