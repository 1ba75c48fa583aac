/*
** The model: what ids mean, by the definitions read so far. It holds the
** definitions of the current epoch, and those of the epoch before, which fill
** the holes that lost blocks leave. (Ids are never used again, so an old
** definition is never wrong.) Its memory is bounded by LJP_MODEL_MAX_BYTES,
** whatever the input says.
**
** Pointers returned are valid until the next call of ljp_reader_next(). One
** thread a model.
*/
#ifndef LJP_PARSERS_MODEL_H
#define LJP_PARSERS_MODEL_H

#include "parsers/stream/arena.h"
#include "parsers/stream/item.h"
#include "src/base/status.h"

/* For the definitions of one epoch. The writer begins a new epoch after 64 MiB
** (uncompressed) at the latest; definitions take more space in memory. */
#ifdef LJP_DEBUG /* Tests reach the limit. */
#define LJP_MODEL_EPOCH_BYTES (16u << 20)
#else
#define LJP_MODEL_EPOCH_BYTES (192u << 20)
#endif
#define LJP_MODEL_NODES_BYTES                                                  \
  (LJP_EPOCH_MAX_NODES * sizeof(struct ljp_rec_node))
#define LJP_MODEL_MAX_BYTES (2 * LJP_MODEL_EPOCH_BYTES + LJP_MODEL_NODES_BYTES)

/* Nodes are kept in pages, which are allocated when first needed. */
#define LJP_MODEL_PAGE_NODES 1024u
#define LJP_MODEL_PAGES (LJP_EPOCH_MAX_NODES / LJP_MODEL_PAGE_NODES)

struct ljp_model {
  struct ljp_arena epochs[2];                  /* [0]: the current one. */
  struct ljp_rec_node *pages[LJP_MODEL_PAGES]; /* By low bits of the id. */
  uint64_t first_node; /* First id of the epoch's nodes; 0: not known. */
  uint32_t epoch;
  bool lossy; /* A part of the epoch was lost or could not be used. */
};

void ljp_model_init(struct ljp_model *model);
void ljp_model_fini(struct ljp_model *model);

/* Begins an epoch. whole: this is the first block of the epoch. */
void ljp_model_epoch(struct ljp_model *model, uint32_t epoch, bool whole);

/* Adds a definition; ignores other items. LJP_ERR_LIMIT: there is no room for
** it. LJP_ERR_FORMAT: a node whose id is outside the epoch's range.
** LJP_ERR_MEM. */
enum ljp_status ljp_model_define(struct ljp_model *model,
                                 const struct ljp_item *item);

/* Allocates the page of a node and adds the node. */
enum ljp_status ljp_model_page(struct ljp_model *model,
                               const struct ljp_rec_node *node);

/* Does what ljp_model_define() does, for a node. */
static inline enum ljp_status
ljp_model_define_node(struct ljp_model *model, const struct ljp_rec_node *node)
{
  uint64_t first = model->first_node, id = node->id;
  if (first && (id < first || id - first >= LJP_EPOCH_MAX_NODES))
    return LJP_ERR_FORMAT;
  struct ljp_rec_node *page =
      model->pages[id % LJP_EPOCH_MAX_NODES / LJP_MODEL_PAGE_NODES];
  if (!page)
    return ljp_model_page(model, node);
  /* Field by field: the fields have just been written one by one, and loading
  ** two of them at once would wait for both writes. */
  struct ljp_rec_node *to = &page[id % LJP_MODEL_PAGE_NODES];
  to->id = id;
  to->ref = node->ref;
  to->value = node->value;
  to->up = node->up;
  to->kind = node->kind;
  to->flags = node->flags;
  return LJP_OK;
}

/* NULL: not defined, or its definition was lost. */
#define LJP_MODEL_LIST(_)                                                      \
  _(MODULE, module)                                                            \
  _(THREAD, thread)                                                            \
  _(VM, vm)                                                                    \
  _(PRODUCER, producer)                                                        \
  _(PROTO, proto)                                                              \
  _(TRACE, trace)                                                              \
  _(BUILTIN, builtin)                                                          \
  _(LABELS, labels)
#define LJP_X(tag, member)                                                     \
  const struct ljp_rec_##member *ljp_model_##member(                           \
      const struct ljp_model *model, uint64_t id);
LJP_MODEL_LIST(LJP_X)
#undef LJP_X
const struct ljp_rec_process *ljp_model_process(const struct ljp_model *model);
const struct ljp_rec_info *ljp_model_info(const struct ljp_model *model,
                                          const char *key);
const struct ljp_rec_node *ljp_model_node(const struct ljp_model *model,
                                          uint64_t id);

/* The frames of a stack and its labels. */
#define LJP_STACK_MAX_NODES (LJP_STACK_MAX_FRAMES + 1)

/* Where a stack ended that was followed from its leaf. */
enum ljp_stack_end {
  LJP_STACK_WHOLE, /* At a root. */
  LJP_STACK_LOST,  /* At a node that is not defined. */
  LJP_STACK_DEEP   /* At the format's limit of frames. */
};

/*
** Follows a stack: fills frames[LJP_STACK_MAX_NODES], leaf first, and *count.
** Its labels are the last of them. Stack 0 has no frames and is whole.
*/
enum ljp_stack_end ljp_model_stack(const struct ljp_model *model,
                                   uint64_t stack,
                                   const struct ljp_rec_node **frames,
                                   unsigned *count);

#endif
