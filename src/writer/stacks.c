/*
** From the frame words of a producer's stack to the id of a node in the stack
** tree, and from a node to its definition. Writer thread only.
** Invariant (RFC 1): whatever an epoch refers to was written in that epoch
** before. A node's `epoch` says so for the node, its payload and its ancestors.
**
** The tree holds stable words (intern.h): a prototype by the writer's number
** for it (proto_numbers.h), an address as module and offset, so that the word
** stays true when the reference is used again or the module is gone.
*/
#include <string.h>

#include "src/writer/writer_impl.h"

/* A stable ADDR payload: bit 55 set, module in bits 35-54, offset below; or,
** with bit 55 clear, an address that belongs to no module. */
#define STABLE_MODULE (UINT64_C(1) << 55)
#define OFFSET_BITS 35
#define OFFSET_MASK ((UINT64_C(1) << OFFSET_BITS) - 1)
#define MODULE_MASK ((1u << 20) - 1)

enum { STABLE_AT_ONCE = 64 };

static uint64_t stacks_stable_address(struct ljp_writer *w, uint64_t word,
                                      uint64_t time_ns, bool *settled)
{
  uint64_t address = ljp_frame_payload(word) & ~STABLE_MODULE;
  uint64_t top = word & ~LJP_FRAME_PAYLOAD_MASK;
  if (w->addresses_generation != w->modules.generation) {
    memset(w->addresses, 0, sizeof w->addresses);
    w->addresses_generation = w->modules.generation;
  }
  size_t at =
      (address * UINT64_C(0x9e3779b97f4a7c15) >> 40) % LJP_ADDRESS_CACHE;
  if (w->addresses[at].word == address && address)
    return top | w->addresses[at].stable;
  uint64_t stable = address;
  const struct ljp_module *m =
      ljp_modules_find(&w->modules, address, time_ns, settled);
  if (m && m->id <= MODULE_MASK && address - m->bias <= OFFSET_MASK)
    stable =
        STABLE_MODULE | (uint64_t)m->id << OFFSET_BITS | (address - m->bias);
  if (*settled) {
    w->addresses[at].word = address;
    w->addresses[at].stable = stable;
  }
  return top | stable;
}

/* *settled: false if the answer may differ for another time. */
static uint64_t stacks_stable(struct ljp_writer *w, uint64_t word,
                              uint64_t time_ns, bool *settled)
{
  enum ljp_frame_shape shape = ljp_frame_shape(ljp_frame_kind(word));
  *settled = true;
  if (shape == LJP_SHAPE_LUA) {
    uint32_t ref = ljp_frame_proto_ref(word);
    uint32_t number = ljp_writer_proto_number(w, ref);
    *settled = number || !ref;
    return ljp_frame_lua((enum ljp_frame_kind)ljp_frame_kind(word),
                         ljp_frame_flags(word), number, ljp_frame_line(word));
  }
  if (shape == LJP_SHAPE_ADDR)
    return stacks_stable_address(w, word, time_ns, settled);
  return word;
}

/* -- Definitions of nodes -------------------------------------------------- */

static void stacks_write_node(struct ljp_writer *w, uint32_t index)
{
  struct ljp_node *node = &w->nodes.nodes[index];
  unsigned kind = ljp_frame_kind(node->word);
  uint64_t first = ljp_frame_payload(node->word), second = 0;
  ljp_assert(node->parent == LJP_NO_NODE ||
             w->nodes.nodes[node->parent].epoch == w->out.epoch);
  switch (ljp_frame_shape(kind)) {
  case LJP_SHAPE_LUA:
    second = ljp_frame_line(node->word);
    first = ljp_writer_need_proto(w, ljp_frame_proto_ref(node->word));
    break;
  case LJP_SHAPE_ADDR:
    second = first & OFFSET_MASK;
    if (first & STABLE_MODULE) {
      first = first >> OFFSET_BITS & MODULE_MASK;
      ljp_writer_put_def(w, ljp_defs_find(&w->defs, LJP_DEF_MODULE, first));
    } else {
      second = first;
      first = 0;
    }
    break;
  case LJP_SHAPE_NUM:
    if (kind == LJP_FRAME_BUILTIN)
      ljp_writer_need_builtin(w, first);
    else if (kind == LJP_FRAME_TRACE)
      ljp_writer_need_trace(w, first);
    break;
  }
  ljp_writer_make_room(w);
  ljp_builder_node(&w->builder, ljp_intern_id(&w->nodes, index),
                   ljp_intern_id(&w->nodes, node->parent), kind,
                   ljp_frame_flags(node->word), first, second);
  node->epoch = w->out.epoch;
}

/* Writes the node and its ancestors, outermost first, unless this epoch has
** them. */
static void stacks_need_node(struct ljp_writer *w, uint32_t index)
{
  unsigned n = 0;
  for (uint32_t i = index;
       i != LJP_NO_NODE && w->nodes.nodes[i].epoch != w->out.epoch;
       i = w->nodes.nodes[i].parent) {
    ljp_assert(n < LJP_STACK_MAX_FRAMES);
    w->path[n++] = i;
  }
  while (n)
    stacks_write_node(w, w->path[--n]);
}

/* -- Stacks ---------------------------------------------------------------- */

/* Extends chain[] to the whole stack. False: the tree is full. */
static bool stacks_intern(struct ljp_writer *w, struct ljp_source *s,
                          uint64_t time_ns, bool *all_settled)
{
  if (!ljp_writer_generations_match(w, s)) {
    s->valid = 0;
    s->node_generation = w->nodes.generation;
    s->module_generation = w->modules.generation;
    s->proto_generation = w->proto_numbers.generation;
  }
  while (s->valid < s->depth) {
    uint64_t stable[STABLE_AT_ONCE];
    unsigned i = s->valid, more = s->depth - i;
    if (more > STABLE_AT_ONCE)
      more = STABLE_AT_ONCE;
    for (unsigned k = 0; k < more; k++) {
      bool settled;
      stable[k] = stacks_stable(w, s->words[i + k], time_ns, &settled);
      *all_settled &= settled;
    }
    s->valid += ljp_intern_path(&w->nodes, i ? s->chain[i - 1] : LJP_NO_NODE,
                                stable, more, s->chain + i);
    if (s->valid < i + more)
      return false;
  }
  return true;
}

bool ljp_writer_stack(struct ljp_writer *w, struct ljp_source *s, unsigned keep,
                      unsigned n, const uint64_t *words, uint64_t time_ns,
                      uint64_t *id)
{
  if (keep > s->depth || n > LJP_STACK_MAX_FRAMES - keep) {
    s->own_loss[LJP_LOSS_BAD_RECORD]++;
    s->depth = s->valid = s->id_epoch = 0;
    return false;
  }
  s->id_epoch = 0;
  if (n)
    memcpy(s->words + keep, words, 8 * (size_t)n);
  s->depth = keep + n;
  if (s->valid > keep)
    s->valid = keep;
  bool all_settled = true;
  if (!stacks_intern(w, s, time_ns, &all_settled)) {
    /* A new epoch has an empty tree: intern the stack again from its root. */
    ljp_writer_begin_epoch(w, LJP_EPOCH_TABLE);
    if (!stacks_intern(w, s, time_ns, &all_settled)) {
      s->own_loss[LJP_LOSS_NO_MEMORY]++;
      s->valid = 0;
      return false;
    }
  }
  ljp_assert(s->valid == s->depth);
  uint32_t leaf = s->depth ? s->chain[s->depth - 1] : LJP_NO_NODE;
  *id = ljp_intern_id(&w->nodes, leaf);
  if (leaf != LJP_NO_NODE && w->nodes.nodes[leaf].epoch != w->out.epoch)
    stacks_need_node(w, leaf);
  s->id_epoch = w->out.epoch;
  s->stack_id = *id;
  /* If a word may resolve to something else at another time, the next event
  ** must not use this chain. */
  if (!all_settled)
    s->valid = 0;
  return true;
}
