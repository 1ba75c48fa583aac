/*
** Held blocks (held.h): the events that the writer takes add and remove them, and a
** file segment that is not the first begins with them (RFC 1, section 7). Their stacks
** stay when the tables of stacks and definitions are cleared. Writer thread only.
*/
#include <stdlib.h>
#include <string.h>

#include "src/writer/writer_impl.h"

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

/* The event is not written, but the block that was at its address has gone. */
void ljp_writer_hold_lost(struct ljp_writer *w,
                          const struct ljp_ring_entry *entry)
{
  const struct ljp_event_entry *event = (const void *)entry;
  if (entry->type == LJP_ENTRY_MEM && ljp_held_is_kept(&w->held)) {
    const struct ljp_mem mem = ljp_writer_mem_of((const void *)entry);
    if (!(mem.what & LJP_MEM_FAILED))
      ljp_held_take(&w->held, mem.address);
  } else if (entry->type == LJP_ENTRY_EVENT && event->tag == LJP_REC_GC &&
             event->words >= sizeof(struct ljp_gc_fields) / 8) {
    ljp_writer_hold_gc(w, (const void *)event->rest);
  }
}

/* -- The beginning of a file segment ---------------------------------------- */

/* Writes the body as a record behind the nodes that it needs. TOTALS does not count
** it. */
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
  ljp_body_u(b,
             (kept ? LJP_HELD_KEPT : 0) | (vm->closed ? LJP_HELD_CLOSED : 0));
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

/* Writes the blocks of one producer; 0: those of all producers that have ended. */
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

/* -- What the stacks of blocks need ------------------------------------------ */

/* Marks a definition as kept. Returns the bytes of what was not marked before. */
static size_t held_keep_def(struct ljp_writer *w, enum ljp_def_class class,
                            uint64_t key)
{
  struct ljp_def *def = key ? ljp_defs_find(&w->defs, class, key) : NULL;
  if (!def || def->kept)
    return 0;
  def->kept = true;
  return def->len + (class == LJP_DEF_TRACE
                         ? held_keep_def(w, LJP_DEF_PROTO, def->proto)
                         : 0);
}

/* The same for the definition that a stable word names. */
static size_t held_keep_word(struct ljp_writer *w, uint64_t word)
{
  unsigned kind = ljp_frame_kind(word);
  uint64_t number = ljp_frame_payload(word);
  if (ljp_frame_shape(kind) == LJP_SHAPE_LUA)
    return held_keep_def(w, LJP_DEF_PROTO, ljp_frame_proto_ref(word));
  if (ljp_frame_shape(kind) == LJP_SHAPE_ADDR)
    return held_keep_def(w, LJP_DEF_MODULE, ljp_writer_stable_module(word));
  if (kind == LJP_FRAME_TRACE)
    return held_keep_def(w, LJP_DEF_TRACE, number);
  if (kind == LJP_FRAME_LABELS)
    return held_keep_def(w, LJP_DEF_LABELS, number);
  if (kind == LJP_FRAME_BUILTIN)
    return held_keep_def(w, LJP_DEF_BUILTIN, number);
  return 0;
}

static size_t held_keep_words(struct ljp_writer *w, const uint32_t *map)
{
  size_t bytes = 0;
  for (uint32_t i = 0; i < w->nodes.count; i++)
    if (map[i])
      bytes += held_keep_word(w, w->nodes.nodes[i].word);
  return bytes;
}

static void held_unmark_defs(struct ljp_writer *w)
{
  for (uint32_t i = 0; i < w->defs.capacity; i++)
    w->defs.slots[i].kept = false;
}

/* Marks the nodes of all held blocks, and their ancestors. Returns how many there
** are. */
static uint32_t held_mark_nodes(const struct ljp_writer *w, uint32_t *map)
{
  const struct ljp_held *held = &w->held;
  uint32_t count = 0;
  memset(map, 0, w->nodes.count * sizeof *map);
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

/* Estimates the bytes that the blocks will take in a file, before compression.
** UINT64_MAX: there is no memory to find out. */
static uint64_t held_bytes(struct ljp_writer *w)
{
  enum { BLOCK_BYTES = 40, NODE_BYTES = 12 };
  uint32_t *map = calloc(w->nodes.count + 1, sizeof *map);
  if (!map)
    return UINT64_MAX;
  uint64_t bytes = (uint64_t)w->held.count * BLOCK_BYTES +
                   (uint64_t)held_mark_nodes(w, map) * NODE_BYTES +
                   held_keep_words(w, map);
  held_unmark_defs(w);
  free(map);
  return bytes;
}

/* Blocks that would take much of what the file segment may have are left out. */
static bool held_fits(struct ljp_writer *w)
{
  const struct ljp_writer_options *o = &w->options;
  uint64_t bytes = held_bytes(w);
  return (!o->segment_bytes || bytes <= o->segment_bytes / 4) &&
         (!o->ring_bytes || bytes <= o->ring_bytes / 32) &&
         (!w->room.most_bytes || bytes <= w->room.most_bytes / 4) &&
         bytes <= w->size_limit / 4;
}

enum ljp_status ljp_writer_put_held(struct ljp_writer *w)
{
  static const struct ljp_held_vm none;
  const struct ljp_held *held = &w->held;
  bool kept = ljp_held_is_kept(held) && held_fits(w);
  if (!held->wanted)
    return LJP_OK;
  if (!held->vm_count)
    held_put_vm(w, kept, &none);
  for (uint32_t i = 0; i < held->vm_count; i++)
    held_put_vm(w, kept, &held->vms[i]);
  ljp_writer_put_block(w, 0);
  if (!kept || !held->count)
    return w->out.status;
  for (const struct ljp_source *s = w->sources; s; s = s->next)
    if (s->producer && s->producer->kind == LJP_PRODUCER_MEMORY)
      held_put_blocks(w, s->id);
  held_put_blocks(w, 0);
  ljp_builder_reset(&w->builder, 0);
  return w->out.status;
}

/* -- When the tables are cleared --------------------------------------------- */

static void held_move_nodes(struct ljp_writer *w, const uint32_t *map)
{
  struct ljp_held *held = &w->held;
  for (uint32_t i = 0; held->slots && i <= held->mask; i++)
    if (held->slots[i].node != LJP_NO_NODE)
      held->slots[i].node = map ? map[held->slots[i].node] : LJP_NO_NODE;
}

/* Leaves only the labels of the blocks' stacks. */
static void held_cut_stacks(struct ljp_writer *w)
{
  struct ljp_held *held = &w->held;
  const struct ljp_node *nodes = w->nodes.nodes;
  for (uint32_t i = 0; held->slots && i <= held->mask; i++) {
    uint32_t node = held->slots[i].address ? held->slots[i].node : LJP_NO_NODE;
    while (node != LJP_NO_NODE && nodes[node].parent != LJP_NO_NODE)
      node = nodes[node].parent;
    if (node != LJP_NO_NODE &&
        ljp_frame_kind(nodes[node].word) != LJP_FRAME_LABELS)
      node = LJP_NO_NODE;
    held->slots[i].node = node;
  }
}

/* Whether the marked nodes and their definitions leave room for what comes. If
** so, the definitions are marked. */
static bool held_leaves_room(struct ljp_writer *w, uint32_t *map)
{
  if (held_mark_nodes(w, map) > w->nodes.max / 4)
    return false;
  if (held_keep_words(w, map) <= LJP_MAX_DEFS_BYTES / 4)
    return true;
  held_unmark_defs(w);
  return false;
}

void ljp_writer_clear_tables(struct ljp_writer *w)
{
  uint32_t *map =
      w->held.count ? calloc(w->nodes.count + 1, sizeof *map) : NULL;
  bool keep = map && held_leaves_room(w, map);
  if (map && !keep) {
    held_cut_stacks(w);
    keep = held_leaves_room(w, map);
  }
  ljp_defs_purge(&w->defs, true);
  if (keep)
    ljp_intern_keep(&w->nodes, map);
  else
    ljp_intern_clear(&w->nodes);
  held_move_nodes(w, keep ? map : NULL);
  ljp_proto_numbers_clear(&w->proto_numbers);
  free(map);
}
