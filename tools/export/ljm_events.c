/*
** Takes memory events for the format ljm (ljm.h). One thread.
*/
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "src/base/assert.h"
#include "src/base/varint.h"
#include "tools/export/ljm.h"

struct ljp_ljm *ljp_ljm_new(void)
{
  struct ljp_ljm *ljm = calloc(1, sizeof *ljm);
  int error = ENOMEM;
  if (ljm && !ljp_strings_init(&ljm->strings, 1u << 28) &&
      ljp_array_reserve(&ljm->entries, 0, &ljm->room, sizeof *ljm->entries)) {
    ljm->entries[ljm->count++] = (struct ljp_ljm_entry){.kind = LJP_LJM_AT_VM};
    if ((ljm->spool = tmpfile()))
      return ljm;
    error = errno;
  }
  ljp_ljm_free(ljm);
  errno = error;
  return NULL;
}

void ljp_ljm_free(struct ljp_ljm *ljm)
{
  if (!ljm)
    return;
  if (ljm->spool)
    fclose(ljm->spool);
  ljp_strings_fini(&ljm->strings);
  ljp_index_fini(&ljm->index);
  free(ljm->traces.taken);
  free(ljm->entries);
  free(ljm);
}

static bool ljm_entry(struct ljp_ljm *ljm, const struct ljp_model *model,
                      unsigned kind, uint64_t ref, uint64_t value,
                      uint32_t *at);

static bool ljm_keep(struct ljp_ljm *ljm, struct ljp_str s, uint32_t *text)
{
  enum ljp_status status = ljp_strings_add(&ljm->strings, s, text);
  if (status == LJP_ERR_LIMIT)
    *text = 0;
  return status != LJP_ERR_MEM;
}

static bool ljm_keep_text(struct ljp_ljm *ljm, const char *text, uint32_t *id)
{
  return ljm_keep(ljm, ljp_str(text, strlen(text)), id);
}

static bool ljm_fill_function(struct ljp_ljm *ljm,
                              const struct ljp_model *model,
                              struct ljp_ljm_entry *e)
{
  const struct ljp_rec_proto *proto = ljp_model_proto(model, e->ref);
  e->address = LJP_TARANTOOL_FUNCTIONS + ljm->count * LJP_TARANTOOL_STEP;
  if (!proto || (proto->flags & LJP_PROTO_UNKNOWN))
    return ljm_keep_text(ljm, "(unknown Lua function)", &e->text);
  e->line = ljp_tarantool_line(proto->first_line);
  return ljm_keep(ljm, proto->chunk, &e->text);
}

static bool ljm_fill_builtin(struct ljp_ljm *ljm, const struct ljp_model *model,
                             struct ljp_ljm_entry *e)
{
  const struct ljp_rec_builtin *builtin = ljp_model_builtin(model, e->value);
  e->address = LJP_TARANTOOL_BUILTINS +
               (uint64_t)(uint32_t)e->value * LJP_TARANTOOL_STEP;
  return builtin ? ljm_keep(ljm, builtin->name, &e->text)
                 : ljm_keep_text(ljm, "(unknown builtin)", &e->text);
}

static bool ljm_fill_module(struct ljp_ljm *ljm, const struct ljp_model *model,
                            struct ljp_ljm_entry *e)
{
  const struct ljp_rec_module *module = ljp_model_module(model, e->ref);
  if (!module)
    return ljm_keep_text(ljm, "(unknown module)", &e->text);
  e->address = module->bias;
  e->span = module->size;
  e->flags = module->flags;
  return ljm_keep(ljm, module->path, &e->text) &&
         ljm_keep(ljm, module->build_id, &e->build_id);
}

static bool ljm_fill_code(struct ljp_ljm *ljm, const struct ljp_model *model,
                          struct ljp_ljm_entry *e)
{
  e->address = e->value;
  if (!e->ref)
    return true;
  if (!ljm_entry(ljm, model, LJP_LJM_MODULE, e->ref, 0, &e->owner))
    return false;
  e->address += ljm->entries[e->owner].address;
  return true;
}

static bool ljm_fill_trace(struct ljp_ljm *ljm, const struct ljp_model *model,
                           struct ljp_ljm_entry *e)
{
  const struct ljp_rec_trace *trace = ljp_model_trace(model, e->value);
  if (!trace || !trace->number) {
    e->kind = LJP_LJM_AT_VM; /* Its definition was lost in a gap. */
    return true;
  }
  uint32_t start;
  uint64_t line = trace->line < UINT32_MAX ? trace->line : 0;
  if (!ljm_entry(ljm, model, LJP_LJM_FUNCTION, trace->proto, 0, &start) ||
      !ljm_entry(ljm, model, LJP_LJM_START, start, trace->number << 32 | line,
                 &start))
    return false;
  e->number = ljm->entries[start].number;
  return true;
}

static bool ljm_fill_start(struct ljp_ljm *ljm, struct ljp_ljm_entry *e)
{
  e->owner = (uint32_t)e->ref;
  e->line = e->value & UINT32_MAX;
  return ljp_tarantool_number(&ljm->traces, e->value >> 32, &e->number);
}

static bool ljm_fill(struct ljp_ljm *ljm, const struct ljp_model *model,
                     struct ljp_ljm_entry *e)
{
  switch (e->kind) {
  case LJP_LJM_FUNCTION:
    return ljm_fill_function(ljm, model, e);
  case LJP_LJM_MODULE:
    return ljm_fill_module(ljm, model, e);
  case LJP_LJM_START:
    return ljm_fill_start(ljm, e);
  case LJP_FRAME_LUA:
    e->line = e->value;
    return ljm_entry(ljm, model, LJP_LJM_FUNCTION, e->ref, 0, &e->owner);
  case LJP_FRAME_BUILTIN:
    return ljm_fill_builtin(ljm, model, e);
  case LJP_FRAME_CFUNC:
    return ljm_fill_code(ljm, model, e);
  default:
    ljp_assert(e->kind == LJP_FRAME_TRACE);
    return ljm_fill_trace(ljm, model, e);
  }
}

/* Finds or adds an entry. false: no memory. */
static bool ljm_entry(struct ljp_ljm *ljm, const struct ljp_model *model,
                      unsigned kind, uint64_t ref, uint64_t value, uint32_t *at)
{
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(ljp_hash_mix(kind, ref), value));
  struct ljp_index_slot *slot;
  if (!ljp_index_reserve(&ljm->index))
    return false;
  for (slot = ljp_index_at(&ljm->index, hash); slot->item;
       slot = ljp_index_next(&ljm->index, slot)) {
    const struct ljp_ljm_entry *e = &ljm->entries[slot->item - 1];
    if (slot->hash == hash && e->ref == ref && e->value == value &&
        e->kind == kind) {
      *at = slot->item - 1;
      return true;
    }
  }
  struct ljp_ljm_entry e = {.kind = (uint8_t)kind, .ref = ref, .value = value};
  if (!ljm_fill(ljm, model, &e)) /* May add its owner: look again. */
    return false;
  if (e.kind == LJP_LJM_AT_VM) {
    *at = 0;
    return true;
  }
  if (!ljp_index_reserve(&ljm->index) ||
      !ljp_array_reserve(&ljm->entries, ljm->count, &ljm->room,
                         sizeof *ljm->entries))
    return false;
  for (slot = ljp_index_at(&ljm->index, hash); slot->item;
       slot = ljp_index_next(&ljm->index, slot))
    ;
  *at = ljm->count++;
  ljm->entries[*at] = e;
  ljp_index_put(&ljm->index, slot, hash, *at);
  return true;
}

/* The site of a stack. */
static bool ljm_site(struct ljp_ljm *ljm, const struct ljp_model *model,
                     uint64_t stack, bool compiled, uint32_t *at)
{
  struct ljp_ljm_search search = {.compiled = compiled};
  const struct ljp_rec_node *node, *builtin = NULL;
  *at = 0;
  for (unsigned depth = 0; stack && depth < LJP_STACK_MAX_FRAMES; depth++) {
    if (!(node = ljp_model_node(model, stack)))
      break;
    stack = node->up ? node->id - node->up : 0;
    switch (ljp_ljm_look(&search, node->kind)) {
    case LJP_LJM_FRAME_FOUND:
      return ljm_entry(ljm, model, node->kind,
                       node->kind == LJP_FRAME_TRACE ? 0 : node->ref,
                       node->value, at);
    case LJP_LJM_FRAME_BUILTIN:
      builtin = node;
      break;
    case LJP_LJM_FRAME_LAST:
      stack = 0;
      break;
    case LJP_LJM_FRAME_NEXT:
      break;
    }
  }
  return !builtin ||
         ljm_entry(ljm, model, LJP_FRAME_BUILTIN, 0, builtin->value, at);
}

static bool ljm_site_of(struct ljp_ljm *ljm, const struct ljp_model *model,
                        const struct ljp_rec_mem *m, uint32_t *at)
{
  bool compiled = m->state == LJP_VMSTATE_TRACE;
  *at = 0;
  if (!m->stack || ljp_ljm_is_internal(m->state, m->type))
    return true;
  struct ljp_ljm_cached *cached = &ljm->cache[m->stack % LJP_LJM_CACHE];
  if (cached->entry && cached->stack == m->stack &&
      cached->compiled == compiled) {
    *at = cached->entry - 1;
    return true;
  }
  if (!ljm_site(ljm, model, m->stack, compiled, at))
    return false;
  if (compiled && !*at && !ljm_site(ljm, model, m->stack, false, at))
    return false; /* The trace is not known: the line is. */
  *cached = (struct ljp_ljm_cached){m->stack, *at + 1, compiled};
  return true;
}

static enum ljp_status ljm_take_event(struct ljp_ljm *ljm,
                                      const struct ljp_model *model,
                                      const struct ljp_rec_mem *m)
{
  uint8_t bytes[6 * LJP_VARINT_MAX_BYTES], *p = bytes;
  uint32_t site;
  if (m->flags & LJP_MEM_FAILED) {
    ljm->failed++;
    return LJP_OK;
  }
  if (!ljm_site_of(ljm, model, m, &site))
    return LJP_ERR_MEM;
  uint64_t size = m->weight ? m->weight : m->size;
  p = ljp_put_varint(p, m->op);
  p = ljp_put_varint(p, site);
  if (m->op == LJP_MEM_REALLOC) {
    p = ljp_put_varint(p, m->old_address);
    p = ljp_put_varint(p, m->old_size);
  }
  p = ljp_put_varint(p, m->address);
  p = ljp_put_varint(p, size);
  ljm->events++;
  return fwrite(bytes, (size_t)(p - bytes), 1, ljm->spool) ? LJP_OK
                                                           : LJP_ERR_IO;
}

enum ljp_status ljp_ljm_take(void *ctx, const struct ljp_reader *reader,
                             const struct ljp_item *item)
{
  uint32_t at;
  if (item->what == LJP_REC_MEM)
    return ljm_take_event(ctx, &reader->model, &item->u.mem);
  if (item->what == LJP_REC_MODULE &&
      !ljm_entry(ctx, &reader->model, LJP_LJM_MODULE, item->u.module.id, 0,
                 &at))
    return LJP_ERR_MEM;
  return LJP_OK;
}
