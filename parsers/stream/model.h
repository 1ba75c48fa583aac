/*
** The model: what ids mean, by the definitions read so far. It holds the
** definitions of the current epoch and, to fill holes that lost blocks left,
** of the one before (ids are never used again, so an old definition is never
** wrong). Memory is bounded by LJP_MODEL_MAX_BYTES, whatever the input says.
**
** Pointers got from it are valid until the reader's next step.
*/
#ifndef LJP_PARSERS_MODEL_H
#define LJP_PARSERS_MODEL_H

#include "parsers/stream/arena.h"
#include "parsers/stream/item.h"
#include "src/base/status.h"

/* Per epoch. The writer begins a new one after 64 MiB, uncompressed, at the
** latest; a definition in memory is larger than on disk, hence the room. */
#ifdef LJP_DEBUG /* So that tests reach it. */
#define LJP_MODEL_EPOCH_BYTES (16u << 20)
#else
#define LJP_MODEL_EPOCH_BYTES (192u << 20)
#endif
#define LJP_MODEL_NODES_BYTES                                                  \
  (LJP_EPOCH_MAX_NODES * sizeof(struct ljp_rec_node))
#define LJP_MODEL_MAX_BYTES (2 * LJP_MODEL_EPOCH_BYTES + LJP_MODEL_NODES_BYTES)

/* Nodes live in pages that are made when first needed. */
#define LJP_MODEL_PAGE_NODES 1024u
#define LJP_MODEL_PAGES (LJP_EPOCH_MAX_NODES / LJP_MODEL_PAGE_NODES)

struct ljp_model {
  struct ljp_arena epochs[2];                  /* [0] the current one. */
  struct ljp_rec_node *pages[LJP_MODEL_PAGES]; /* By low bits of the id. */
  uint64_t first_node;                         /* Of the epoch; 0: not known. */
  uint32_t epoch;
  bool lossy; /* Something of the epoch was lost or could not be used. */
};

void ljp_model_init(struct ljp_model *model);
void ljp_model_fini(struct ljp_model *model);

/* A block with another epoch begins. whole: from its first block on. */
void ljp_model_epoch(struct ljp_model *model, uint32_t epoch, bool whole);

/* Takes a definition in. LJP_ERR_LIMIT: there is no more room for it;
** LJP_ERR_FORMAT: a node that lies outside the epoch's range. */
enum ljp_status ljp_model_define(struct ljp_model *model,
                                 const struct ljp_item *item);

/* Makes the page of a node and defines it. */
enum ljp_status ljp_model_page(struct ljp_model *model,
                               const struct ljp_rec_node *node);

/* The same as ljp_model_define for a node alone. */
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
  /* Field by field: they have just been written, one by one. */
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
  _(BUILTIN, builtin)
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

/* How a stack ended that was followed from its leaf. */
enum ljp_stack_end {
  LJP_STACK_WHOLE, /* At a root. */
  LJP_STACK_LOST,  /* At a node that is not defined. */
  LJP_STACK_DEEP   /* At the format's limit of frames. */
};

/*
** Fills frames[LJP_STACK_MAX_FRAMES], leaf first, and *count. Stack 0 has no
** frames and is whole.
*/
enum ljp_stack_end ljp_model_stack(const struct ljp_model *model,
                                   uint64_t stack,
                                   const struct ljp_rec_node **frames,
                                   unsigned *count);

#endif
