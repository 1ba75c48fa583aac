/*
** The model. One thread a model.
**
** Nodes are kept in a table by the low bits of their id. The ids of one epoch
** are within LJP_EPOCH_MAX_NODES of each other (RFC 1, section 4), so they do
** not collide; nodes of older epochs stay until their place is needed. A
** parent's id is smaller than its child's (the decoder checks that), so
** following a stack ends.
*/
#include "parsers/stream/model.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/stream/record.h"
#include "src/base/assert.h"

#define NODE_MASK (LJP_EPOCH_MAX_NODES - 1)
_Static_assert((LJP_EPOCH_MAX_NODES & NODE_MASK) == 0, "a power of two");
_Static_assert(LJP_EPOCH_MAX_NODES % LJP_MODEL_PAGE_NODES == 0, "whole pages");

void ljp_model_init(struct ljp_model *model)
{
  *model = (struct ljp_model){.lossy = true};
  ljp_arena_init(&model->epochs[0], LJP_MODEL_EPOCH_BYTES);
  ljp_arena_init(&model->epochs[1], LJP_MODEL_EPOCH_BYTES);
}

void ljp_model_fini(struct ljp_model *model)
{
  ljp_arena_fini(&model->epochs[0]);
  ljp_arena_fini(&model->epochs[1]);
  for (size_t i = 0; i < LJP_MODEL_PAGES; i++) {
    free(model->pages[i]);
    model->pages[i] = NULL;
  }
}

void ljp_model_epoch(struct ljp_model *model, uint32_t epoch, bool whole)
{
  struct ljp_arena oldest = model->epochs[1];
  ljp_arena_fini(&oldest);
  model->epochs[1] = model->epochs[0];
  model->epochs[0] = oldest;
  model->epoch = epoch;
  model->first_node = 0;
  model->lossy = !whole;
}

/* The key of an INFO: a hash (FNV-1a) of its name. */
static uint64_t model_text_id(const char *text, size_t len)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static const void *model_find(const struct ljp_model *model, uint32_t tag,
                              uint64_t id)
{
  void *value = ljp_arena_find(&model->epochs[0], tag, id);
  return value ? value : ljp_arena_find(&model->epochs[1], tag, id);
}

/* Whether two structs of a record are equal; strings by their content. */
static bool model_same_record(const struct ljp_field *field, unsigned count,
                              const char *a, const char *b)
{
  for (; count; count--, field++) {
    struct ljp_str x, y;
    if (field->type == LJP_FIELD_STR) {
      memcpy(&x, a + field->offset, sizeof x);
      memcpy(&y, b + field->offset, sizeof y);
      if (!ljp_str_same(x, y))
        return false;
    } else if (memcmp(a + field->offset, b + field->offset, 8) != 0) {
      return false;
    }
  }
  return true;
}

static size_t model_record_bytes(uint64_t tag)
{
  switch (tag) {
#define LJP_X(name, member)                                                    \
  case LJP_REC_##name:                                                         \
    return sizeof(struct ljp_rec_##member);
    LJP_FLAT_LIST(LJP_X)
#undef LJP_X
  }
  return 0;
}

/* Copies a definition with its strings into the current epoch. */
static enum ljp_status model_keep(struct ljp_model *model, uint32_t tag,
                                  uint64_t id, const struct ljp_item *item)
{
  struct ljp_arena *arena = &model->epochs[0];
  unsigned count = 0;
  const struct ljp_field *fields = ljp_record_fields(tag, &count);
  const char *from = (const char *)&item->u;
  size_t size = model_record_bytes(tag), total = size;
  bool no_memory = false;
  const char *old = ljp_arena_find(arena, tag, id);
  if (old && model_same_record(fields, count, old, from))
    return LJP_OK;

  struct ljp_str string;
  for (unsigned i = 0; i < count; i++)
    if (fields[i].type == LJP_FIELD_STR) {
      memcpy(&string, from + fields[i].offset, sizeof string);
      total += string.len;
    }
  char *copy = ljp_arena_take(arena, total, &no_memory);
  if (!copy)
    return no_memory ? LJP_ERR_MEM : LJP_ERR_LIMIT;
  memcpy(copy, from, size);
  char *text = copy + size;
  for (unsigned i = 0; i < count; i++)
    if (fields[i].type == LJP_FIELD_STR) {
      memcpy(&string, from + fields[i].offset, sizeof string);
      if (string.len)
        memcpy(text, string.data, string.len);
      string.data = text;
      text += string.len;
      memcpy(copy + fields[i].offset, &string, sizeof string);
    }
  ljp_assert(text == copy + total);
  if (!ljp_arena_put(arena, tag, id, copy, &no_memory))
    return no_memory ? LJP_ERR_MEM : LJP_ERR_LIMIT;
  return LJP_OK;
}

enum ljp_status ljp_model_page(struct ljp_model *model,
                               const struct ljp_rec_node *node)
{
  struct ljp_rec_node **page =
      &model->pages[(node->id & NODE_MASK) / LJP_MODEL_PAGE_NODES];
  ljp_assert(!*page);
  *page = calloc(LJP_MODEL_PAGE_NODES, sizeof **page);
  return *page ? ljp_model_define_node(model, node) : LJP_ERR_MEM;
}

enum ljp_status ljp_model_define(struct ljp_model *model,
                                 const struct ljp_item *item)
{
  switch (item->what) {
  case LJP_REC_NODES:
    return ljp_model_define_node(model, &item->u.node);
  case LJP_REC_EPOCH:
    model->first_node = item->u.epoch.first_node;
    return LJP_OK;
  case LJP_REC_PROCESS:
    return model_keep(model, item->what, 0, item);
  case LJP_REC_INFO:
    return model_keep(
        model, item->what,
        model_text_id(item->u.info.key.data, item->u.info.key.len), item);
  case LJP_REC_BUILTIN:
    return model_keep(model, item->what, item->u.builtin.ffid, item);
  case LJP_REC_LABELS:
    return model_keep(model, item->what, item->u.labels.id, item);
  case LJP_REC_MODULE:
    return model_keep(model, item->what, item->u.module.id, item);
  case LJP_REC_THREAD:
    return model_keep(model, item->what, item->u.thread.id, item);
  case LJP_REC_VM:
    return model_keep(model, item->what, item->u.vm.id, item);
  case LJP_REC_PRODUCER:
    return model_keep(model, item->what, item->u.producer.id, item);
  case LJP_REC_PROTO:
    return model_keep(model, item->what, item->u.proto.id, item);
  case LJP_REC_TRACE:
    return model_keep(model, item->what, item->u.trace.id, item);
  }
  return LJP_OK;
}

#define LJP_X(tag, member)                                                     \
  const struct ljp_rec_##member *ljp_model_##member(                           \
      const struct ljp_model *model, uint64_t id)                              \
  {                                                                            \
    return model_find(model, LJP_REC_##tag, id);                               \
  }
LJP_MODEL_LIST(LJP_X)
#undef LJP_X

const struct ljp_rec_process *ljp_model_process(const struct ljp_model *model)
{
  return model_find(model, LJP_REC_PROCESS, 0);
}

const struct ljp_rec_info *ljp_model_info(const struct ljp_model *model,
                                          const char *key)
{
  size_t len = strlen(key);
  const struct ljp_rec_info *info =
      model_find(model, LJP_REC_INFO, model_text_id(key, len));
  return info && ljp_str_same(info->key, (struct ljp_str){key, (uint32_t)len})
             ? info
             : NULL;
}

const struct ljp_rec_node *ljp_model_node(const struct ljp_model *model,
                                          uint64_t id)
{
  const struct ljp_rec_node *page =
      model->pages[(id & NODE_MASK) / LJP_MODEL_PAGE_NODES];
  if (!page || !id)
    return NULL;
  const struct ljp_rec_node *node = &page[id % LJP_MODEL_PAGE_NODES];
  return node->id == id ? node : NULL;
}

enum ljp_stack_end ljp_model_stack(const struct ljp_model *model,
                                   uint64_t stack,
                                   const struct ljp_rec_node **frames,
                                   unsigned *count)
{
  *count = 0;
  while (stack) {
    const struct ljp_rec_node *node = ljp_model_node(model, stack);
    if (!node)
      return LJP_STACK_LOST;
    if (*count >= LJP_STACK_MAX_FRAMES + (node->kind == LJP_FRAME_LABELS))
      return LJP_STACK_DEEP;
    ljp_assert(node->up < node->id); /* The decoder checks it. */
    frames[(*count)++] = node;
    stack = node->up ? node->id - node->up : 0;
  }
  return LJP_STACK_WHOLE;
}
