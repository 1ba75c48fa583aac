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
#include <stdlib.h>
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
    else if (kind == LJP_FRAME_LABELS)
      ljp_writer_need_labels(w, first);
    break;
  }
  ljp_writer_make_room(w);
  ljp_builder_node(&w->builder, ljp_intern_id(&w->nodes, index),
                   ljp_intern_id(&w->nodes, node->parent), kind,
                   ljp_frame_flags(node->word), first, second);
  node->epoch = w->out.epoch;
}

uint32_t ljp_writer_stable_module(uint64_t word)
{
  uint64_t payload = ljp_frame_payload(word);
  return payload & STABLE_MODULE
             ? (uint32_t)(payload >> OFFSET_BITS) & MODULE_MASK
             : 0;
}

void ljp_writer_need_node(struct ljp_writer *w, uint32_t index)
{
  unsigned n = 0;
  for (uint32_t i = index;
       i != LJP_NO_NODE && w->nodes.nodes[i].epoch != w->out.epoch;
       i = w->nodes.nodes[i].parent) {
    ljp_assert(n <= LJP_STACK_MAX_FRAMES);
    w->path[n++] = i;
  }
  while (n)
    stacks_write_node(w, w->path[--n]);
}

/* -- Stacks ---------------------------------------------------------------- */

/* Finds the node of the labels, if there are any. False: the tree is full. */
static bool stacks_intern_root(struct ljp_writer *w, const struct ljp_source *s,
                               struct ljp_taken_stack *stack)
{
  const uint64_t word = ljp_frame(LJP_FRAME_LABELS, 0, s->labels);
  stack->labels = s->labels;
  stack->root = LJP_NO_NODE;
  return !s->labels ||
         ljp_intern_path(&w->nodes, LJP_NO_NODE, &word, 1, &stack->root) == 1;
}

/* Extends the chain to the whole stack. False: the tree is full. */
static bool stacks_intern(struct ljp_writer *w, const struct ljp_source *s,
                          struct ljp_taken_stack *stack, const uint64_t *words,
                          uint32_t *chain, uint64_t time_ns, bool *all_settled)
{
  if (!ljp_writer_generations_match(w, s, stack)) {
    stack->valid = 0;
    stack->node_generation = w->nodes.generation;
    stack->module_generation = w->modules.generation;
    stack->proto_generation = w->proto_numbers.generation;
  }
  if (!stack->valid && !stacks_intern_root(w, s, stack))
    return false;
  while (stack->valid < stack->depth) {
    uint64_t stable[STABLE_AT_ONCE];
    unsigned i = stack->valid, more = stack->depth - i;
    if (more > STABLE_AT_ONCE)
      more = STABLE_AT_ONCE;
    for (unsigned k = 0; k < more; k++) {
      bool settled;
      stable[k] = stacks_stable(w, words[i + k], time_ns, &settled);
      *all_settled &= settled;
    }
    stack->valid += ljp_intern_path(&w->nodes, i ? chain[i - 1] : stack->root,
                                    stable, more, chain + i);
    if (stack->valid < i + more)
      return false;
  }
  return true;
}

static bool stacks_resolve(struct ljp_writer *w, struct ljp_source *s,
                           struct ljp_taken_stack *stack, const uint64_t *words,
                           uint32_t *chain, uint64_t time_ns, uint64_t *id)
{
  bool all_settled = true;
  stack->id_epoch = 0;
  if (!stacks_intern(w, s, stack, words, chain, time_ns, &all_settled)) {
    /* A new epoch has an empty tree: intern the stack again from its root. */
    ljp_writer_begin_epoch(w, LJP_EPOCH_TABLE);
    if (!stacks_intern(w, s, stack, words, chain, time_ns, &all_settled)) {
      s->own_loss[LJP_LOSS_NO_MEMORY]++;
      stack->valid = 0;
      return false;
    }
  }
  ljp_assert(stack->valid == stack->depth);
  uint32_t leaf = stack->depth ? chain[stack->depth - 1] : stack->root;
  *id = ljp_intern_id(&w->nodes, leaf);
  if (leaf != LJP_NO_NODE && w->nodes.nodes[leaf].epoch != w->out.epoch)
    ljp_writer_need_node(w, leaf);
  stack->id_epoch = w->out.epoch;
  stack->id = *id;
  /* If a word may resolve to something else at another time, the next event
  ** must not use this chain. */
  if (!all_settled)
    stack->valid = 0;
  return true;
}

bool ljp_writer_stack(struct ljp_writer *w, struct ljp_source *s, unsigned keep,
                      unsigned n, const uint64_t *words, uint64_t time_ns,
                      uint64_t *id)
{
  if (!ljp_writer_keep_words(s, keep, n, words)) {
    s->own_loss[LJP_LOSS_BAD_RECORD]++;
    return false;
  }
  return stacks_resolve(w, s, &s->last, s->words, s->chain, time_ns, id);
}

/* -- Numbered stacks ------------------------------------------------------- */

/* Without memory for the numbers, their events are lost. */
void ljp_writer_number_stack(struct ljp_source *s, unsigned number,
                             const uint64_t *words, size_t n)
{
  if (!s->numbered)
    s->numbered = calloc(LJP_NUMBERED_STACKS, sizeof *s->numbered);
  if (!s->numbered)
    return;
  if (number >= LJP_NUMBERED_STACKS || n > LJP_NUMBERED_FRAMES) {
    s->own_loss[LJP_LOSS_BAD_RECORD]++;
    return;
  }
  struct ljp_numbered_stack *numbered = &s->numbered[number];
  numbered->stack = (struct ljp_taken_stack){.depth = (unsigned)n};
  memcpy(numbered->words, words, n * sizeof *words);
}

bool ljp_writer_numbered_stack(struct ljp_writer *w, struct ljp_source *s,
                               unsigned number, uint64_t time_ns, uint64_t *id)
{
  uint32_t chain[LJP_NUMBERED_FRAMES];
  if (number == 0)
    return ljp_writer_stack(w, s, s->last.depth, 0, NULL, time_ns, id);
  if (!s->numbered || number >= LJP_NUMBERED_STACKS) {
    s->own_loss[s->numbered ? LJP_LOSS_BAD_RECORD : LJP_LOSS_NO_MEMORY]++;
    return false;
  }
  struct ljp_numbered_stack *numbered = &s->numbered[number];
  if (LJP_LIKELY(ljp_writer_stack_valid(w, s, &numbered->stack))) {
    *id = numbered->stack.id;
    return true;
  }
  numbered->stack.valid = 0; /* no chain of it is kept */
  return stacks_resolve(w, s, &numbered->stack, numbered->words, chain, time_ns,
                        id);
}
