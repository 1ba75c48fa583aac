/*
** Held blocks (held.h): the writer's events lead to them, and a file segment that
** is not the first begins with them (RFC 1, section 9). Also the stacks that they
** need when the tables of stacks and definitions are cleared. Writer thread only.
*/
#include <stdlib.h>

#include "src/writer/writer_impl.h"

/* Bytes of a block's records, without its stack: an estimate. */
enum { HELD_BYTES = 40 };

static void held_take_mem(struct ljp_writer *w, const struct ljp_source *s,
                          const struct ljp_mem *mem, uint64_t stack)
{
  if (mem->what & LJP_MEM_FAILED)
    return;
  if (mem->op == LJP_MEM_FREE) {
    ljp_held_take(&w->held, mem->address);
    return;
  }
  if (mem->op != LJP_MEM_ALLOC || !mem->weight) {
    w->held.every = true;
    ljp_held_stop(&w->held);
    return;
  }
  ljp_assert(stack != LJP_STACK_AS_BEFORE);
  const struct ljp_held_block block = {
      .address = mem->address,
      .time_ns = mem->time_ns,
      .size = mem->size,
      .weight = mem->weight,
      .vm = mem->vm,
      .producer = s->id,
      .node = stack ? (uint32_t)(stack - w->nodes.base) : LJP_NO_NODE,
      .state = mem->vmstate,
      .type = mem->what & LJP_MEM_TYPE_MASK};
  ljp_assert(!stack || block.node < w->nodes.count);
  ljp_held_put(&w->held, &block);
}

void ljp_writer_hold_mem(struct ljp_writer *w, const struct ljp_source *s,
                         const struct ljp_mem *mem, uint64_t stack)
{
  if (ljp_held_is_kept(&w->held))
    held_take_mem(w, s, mem, stack);
}

void ljp_writer_hold_gc(struct ljp_writer *w, const struct ljp_gc_fields *gc)
{
  const uint32_t vm = (uint32_t)gc->vm;
  if (gc->phase != LJP_GC_CLOSED) {
    ljp_held_see_cycle(&w->held, vm, gc->cycle);
    return;
  }
  /* VM_CLOSE may have come before. */
  const struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_VM, vm);
  if (def && !def->ended)
    ljp_held_close_vm(&w->held, vm);
  else
    ljp_held_forget_vm(&w->held, vm);
}

/* -- The beginning of a file segment ---------------------------------------- */

/* Writes the body as a record behind the nodes that it needs. It is no event. */
static void held_put_record(struct ljp_writer *w, enum ljp_record tag)
{
  ljp_writer_put_event(w, tag);
  w->builder.events_in_block[tag] = 0;
}

static void held_put_vm(struct ljp_writer *w, bool kept,
                        const struct ljp_held_vm *vm)
{
  struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
  ljp_body_u(b, vm->vm);
  ljp_body_u(b, vm->cycle);
  ljp_body_u(b, kept);
  ljp_body_u(b, kept ? vm->blocks : 0);
  held_put_record(w, LJP_REC_HELD);
}

static void held_put_block(struct ljp_writer *w,
                           const struct ljp_held_block *block)
{
  if (block->node != LJP_NO_NODE)
    ljp_writer_need_node(w, block->node);
  ljp_writer_make_room(w);
  ljp_builder_base(&w->builder, w->now_ns);
  struct ljp_body *b = ljp_writer_timed_body(w, block->time_ns);
  ljp_body_u(b, block->vm);
  ljp_body_u(b, block->address);
  ljp_body_u(b, block->size);
  ljp_body_u(b, block->weight);
  ljp_body_u(b, ljp_intern_id(&w->nodes, block->node));
  ljp_body_u(b, block->type);
  ljp_body_u(b, block->state);
  ljp_body_u(b, block->cycle);
  held_put_record(w, LJP_REC_LIVE);
}

static bool held_has_source(const struct ljp_writer *w, uint32_t producer)
{
  for (const struct ljp_source *s = w->sources; s; s = s->next)
    if (s->producer && s->id == producer)
      return true;
  return false;
}

/* producer: of the blocks' events; 0: of all that have ended. */
static void held_put_blocks(struct ljp_writer *w, uint32_t producer)
{
  const struct ljp_held *held = &w->held;
  ljp_writer_put_block(w, 0);
  ljp_builder_reset(&w->builder, producer);
  for (uint32_t i = 0; i <= held->mask; i++) {
    const struct ljp_held_block *block = &held->slots[i];
    if (block->address && (producer ? block->producer == producer
                                    : !held_has_source(w, block->producer)))
      held_put_block(w, block);
  }
  ljp_writer_put_block(w, 0);
}

/* Blocks that would take much of what the file segment may have are left out. */
static bool held_fits(const struct ljp_writer *w)
{
  const struct ljp_writer_options *o = &w->options;
  uint64_t bytes = (uint64_t)w->held.count * HELD_BYTES;
  return (!o->segment_bytes || bytes <= o->segment_bytes / 4) &&
         (!o->ring_bytes || bytes <= o->ring_bytes / 32) &&
         (!w->room.most_bytes || bytes <= w->room.most_bytes / 4) &&
         bytes <= w->size_limit / 4;
}

void ljp_writer_put_held(struct ljp_writer *w)
{
  static const struct ljp_held_vm none;
  const struct ljp_held *held = &w->held;
  bool kept = ljp_held_is_kept(held) && held_fits(w);
  if (!held->wanted)
    return;
  if (!held->vm_count)
    held_put_vm(w, kept, &none);
  for (uint32_t i = 0; i < held->vm_count; i++)
    held_put_vm(w, kept, &held->vms[i]);
  ljp_writer_put_block(w, 0);
  if (!kept || !held->count)
    return;
  for (const struct ljp_source *s = w->sources; s; s = s->next)
    if (s->producer && s->producer->kind == LJP_PRODUCER_MEMORY)
      held_put_blocks(w, s->id);
  held_put_blocks(w, 0);
  ljp_builder_reset(&w->builder, 0);
}

/* -- When the tables are cleared --------------------------------------------- */

static void held_keep_def(struct ljp_writer *w, enum ljp_def_class class,
                          uint64_t key)
{
  struct ljp_def *def = key ? ljp_defs_find(&w->defs, class, key) : NULL;
  if (!def)
    return;
  def->kept = true;
  if (class == LJP_DEF_TRACE)
    held_keep_def(w, LJP_DEF_PROTO, def->proto);
}

/* Keeps the definition that a stable word names. */
static void held_keep_word(struct ljp_writer *w, uint64_t word)
{
  unsigned kind = ljp_frame_kind(word);
  uint64_t number = ljp_frame_payload(word);
  if (ljp_frame_shape(kind) == LJP_SHAPE_LUA)
    held_keep_def(w, LJP_DEF_PROTO, ljp_frame_proto_ref(word));
  else if (ljp_frame_shape(kind) == LJP_SHAPE_ADDR)
    held_keep_def(w, LJP_DEF_MODULE, ljp_writer_stable_module(word));
  else if (kind == LJP_FRAME_TRACE)
    held_keep_def(w, LJP_DEF_TRACE, number);
  else if (kind == LJP_FRAME_LABELS)
    held_keep_def(w, LJP_DEF_LABELS, number);
  else if (kind == LJP_FRAME_BUILTIN)
    held_keep_def(w, LJP_DEF_BUILTIN, number);
}

/* Marks the nodes of all held blocks, and their ancestors, in map. Returns how
** many there are. */
static uint32_t held_mark_nodes(const struct ljp_writer *w, uint32_t *map)
{
  const struct ljp_held *held = &w->held;
  uint32_t count = 0;
  for (uint32_t i = 0; held->slots && i <= held->mask; i++)
    if (held->slots[i].address && held->slots[i].node != LJP_NO_NODE)
      map[held->slots[i].node] = 1;
  for (uint32_t i = w->nodes.count; i-- > 0;) {
    uint32_t parent = w->nodes.nodes[i].parent;
    if (map[i] && parent != LJP_NO_NODE)
      map[parent] = 1;
    count += map[i];
  }
  return count;
}

static void held_move_nodes(struct ljp_writer *w, const uint32_t *map)
{
  struct ljp_held *held = &w->held;
  for (uint32_t i = 0; held->slots && i <= held->mask; i++)
    if (held->slots[i].node != LJP_NO_NODE)
      held->slots[i].node = map ? map[held->slots[i].node] : LJP_NO_NODE;
}

/* If the blocks' stacks need much of a table, they lose them: what comes has to
** have room. */
void ljp_writer_clear_tables(struct ljp_writer *w)
{
  uint32_t *map =
      w->held.count ? calloc(w->nodes.count + 1, sizeof *map) : NULL;
  bool keep = map && held_mark_nodes(w, map) <= w->nodes.max / 4;
  for (uint32_t i = 0; keep && i < w->nodes.count; i++)
    if (map[i])
      held_keep_word(w, w->nodes.nodes[i].word);
  ljp_defs_purge(&w->defs, true);
  if (keep && w->defs.bytes > LJP_MAX_DEFS_BYTES / 2) {
    keep = false;
    ljp_defs_purge(&w->defs, true);
  }
  if (keep)
    ljp_intern_keep(&w->nodes, map);
  else
    ljp_intern_clear(&w->nodes);
  held_move_nodes(w, keep ? map : NULL);
  ljp_proto_numbers_clear(&w->proto_numbers);
  free(map);
}
