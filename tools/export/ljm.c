/*
** The export of memory events for Tarantool's memprof tools. Their format says
** where an event happened, as one line, C function or trace; it has no stacks.
**
** Pass 1 (ljp_ljm_take, for each event): its place becomes an entry, which is
** found again by its key; place and sizes go into the temporary file. Pass 2
** (ljp_export_ljm): the table of symbols, then the events from the temporary
** file with the addresses of their places. One thread.
*/
#include "tools/export/ljm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/base/index.h"
#include "parsers/base/strings.h"
#include "parsers/stream/names.h"
#include "src/base/assert.h"
#include "src/base/varint.h"
#include "tools/export/tarantool.h"
#include "tools/shared/command.h"

/* Kinds of entries: frame kinds of the format, and two more. */
enum { LJM_INTERNAL = 0x40, LJM_FUNCTION };

/* A place, or a Lua function that places and traces refer to. The first three
** members are the key: as in a stack node, or the id of the function. */
struct entry {
  uint64_t ref, value;
  uint8_t kind;
  uint32_t function; /* LUA, TRACE: the entry of the function. */
  uint32_t text;     /* LJM_FUNCTION: chunk; BUILTIN: name; CFUNC: module. */
  uint32_t symbols;  /* CFUNC, in pass 2: handle of its module; 0: none. */
  uint32_t build_id; /* CFUNC: of its module, as the next two. */
  uint64_t span, flags;
  uint64_t address, line, number;
};

enum { LJM_CACHE = 4096 };
struct cached {
  uint64_t stack;
  uint32_t entry; /* + 1; 0: free. */
  bool compiled;
};

struct ljp_ljm {
  FILE *spool;
  struct entry *entries; /* [0]: INTERNAL. */
  uint32_t count, room;
  struct ljp_index index;
  struct ljp_strings strings;
  struct ljp_tarantool_traces traces;
  struct cached cache[LJM_CACHE];
  uint64_t events, failed;
};

struct ljp_ljm *ljp_ljm_new(void)
{
  struct ljp_ljm *ljm = calloc(1, sizeof *ljm);
  if (!ljm)
    return NULL;
  ljm->spool = tmpfile();
  if (ljm->spool && !ljp_strings_init(&ljm->strings, 1u << 28) &&
      ljp_array_reserve(&ljm->entries, 0, &ljm->room, sizeof *ljm->entries)) {
    ljm->entries[ljm->count++] = (struct entry){.kind = LJM_INTERNAL};
    return ljm;
  }
  int error = errno;
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

/* -- Pass 1 ----------------------------------------------------------------- */

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
                              const struct ljp_model *model, struct entry *e)
{
  const struct ljp_rec_proto *proto = ljp_model_proto(model, e->ref);
  e->address = LJP_TARANTOOL_FUNCTIONS + ljm->count * LJP_TARANTOOL_STEP;
  if (!proto || !proto->chunk.len)
    return ljm_keep_text(ljm, "(unknown Lua function)", &e->text);
  e->line = proto->first_line;
  return ljm_keep(ljm, proto->chunk, &e->text);
}

static bool ljm_fill_builtin(struct ljp_ljm *ljm, const struct ljp_model *model,
                             struct entry *e)
{
  const struct ljp_rec_builtin *builtin = ljp_model_builtin(model, e->value);
  e->address = LJP_TARANTOOL_BUILTINS + e->value * LJP_TARANTOOL_STEP;
  return builtin ? ljm_keep(ljm, builtin->name, &e->text)
                 : ljm_keep_text(ljm, "(unknown builtin)", &e->text);
}

static bool ljm_fill_code(struct ljp_ljm *ljm, const struct ljp_model *model,
                          struct entry *e)
{
  const struct ljp_rec_module *module =
      e->ref ? ljp_model_module(model, e->ref) : NULL;
  e->address = e->value + (module ? module->bias : 0);
  if (!module)
    return ljm_keep_text(ljm, e->ref ? "(unknown module)" : "", &e->text);
  e->span = module->size;
  e->flags = module->flags;
  return ljm_keep(ljm, module->path, &e->text) &&
         ljm_keep(ljm, module->build_id, &e->build_id);
}

static bool ljm_fill_trace(struct ljp_ljm *ljm, const struct ljp_model *model,
                           struct entry *e)
{
  const struct ljp_rec_trace *trace = ljp_model_trace(model, e->value);
  if (!trace || !trace->number) {
    e->kind = LJM_INTERNAL; /* Its definition was lost in a gap. */
    return true;
  }
  e->line = trace->line;
  return ljp_tarantool_number(&ljm->traces, trace->number, &e->number) &&
         ljm_entry(ljm, model, LJM_FUNCTION, trace->proto, 0, &e->function);
}

static bool ljm_fill(struct ljp_ljm *ljm, const struct ljp_model *model,
                     struct entry *e)
{
  switch (e->kind) {
  case LJM_FUNCTION:
    return ljm_fill_function(ljm, model, e);
  case LJP_FRAME_LUA:
    e->line = e->value;
    return ljm_entry(ljm, model, LJM_FUNCTION, e->ref, 0, &e->function);
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
    const struct entry *e = &ljm->entries[slot->item - 1];
    if (slot->hash == hash && e->ref == ref && e->value == value &&
        e->kind == kind) {
      *at = slot->item - 1;
      return true;
    }
  }
  struct entry e = {.kind = (uint8_t)kind, .ref = ref, .value = value};
  if (!ljm_fill(ljm, model, &e)) /* May add its function: look again. */
    return false;
  if (e.kind == LJM_INTERNAL) {
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

/* The place of a stack: its innermost line, C function or trace. A builtin
** that a Lua function calls belongs to the line of the call. */
static bool ljm_place(struct ljp_ljm *ljm, const struct ljp_model *model,
                      uint64_t stack, bool compiled, uint32_t *at)
{
  const struct ljp_rec_node *node, *builtin = NULL;
  *at = 0;
  for (unsigned depth = 0; stack && depth < LJP_STACK_MAX_FRAMES; depth++) {
    if (!(node = ljp_model_node(model, stack)))
      break;
    stack = node->up ? node->id - node->up : 0;
    switch (node->kind) {
    case LJP_FRAME_TRACE:
      return ljm_entry(ljm, model, LJP_FRAME_TRACE, 0, node->value, at);
    case LJP_FRAME_LUA_INLINED: /* Its trace is further up. */
      compiled = true;
      break;
    case LJP_FRAME_LUA:
      if (!compiled)
        return ljm_entry(ljm, model, LJP_FRAME_LUA, node->ref, node->value, at);
      break;
    case LJP_FRAME_BUILTIN:
      if (!builtin && !compiled)
        builtin = node;
      break;
    case LJP_FRAME_CFUNC:
      if (!builtin && !compiled)
        return ljm_entry(ljm, model, LJP_FRAME_CFUNC, node->ref, node->value,
                         at);
      stack = 0;
      break;
    }
  }
  return !builtin ||
         ljm_entry(ljm, model, LJP_FRAME_BUILTIN, 0, builtin->value, at);
}

/* Whether the VM did this by itself: for its collector or its compiler. What a
** bytecode asks for while it is recorded is the program's. */
static bool ljm_is_internal(const struct ljp_rec_mem *m)
{
  switch (m->state) {
  case LJP_VMSTATE_GC:
  case LJP_VMSTATE_EXIT:
  case LJP_VMSTATE_OPT:
  case LJP_VMSTATE_ASM:
    return true;
  case LJP_VMSTATE_RECORD:
    if (m->type == LJP_MEM_TYPE_NONE || m->type > LJP_MEM_TYPE_STACK)
      return true;
  }
  return m->type == LJP_MEM_TYPE_TRACE || m->type == LJP_MEM_TYPE_COMPILER;
}

static bool ljm_place_of(struct ljp_ljm *ljm, const struct ljp_model *model,
                         const struct ljp_rec_mem *m, uint32_t *at)
{
  bool compiled = m->state == LJP_VMSTATE_TRACE;
  *at = 0;
  if (!m->stack || ljm_is_internal(m))
    return true;
  struct cached *cached = &ljm->cache[m->stack % LJM_CACHE];
  if (cached->entry && cached->stack == m->stack &&
      cached->compiled == compiled) {
    *at = cached->entry - 1;
    return true;
  }
  if (!ljm_place(ljm, model, m->stack, compiled, at))
    return false;
  if (compiled && !*at && !ljm_place(ljm, model, m->stack, false, at))
    return false; /* The trace is not known: the line is. */
  *cached = (struct cached){m->stack, *at + 1, compiled};
  return true;
}

enum ljp_status ljp_ljm_take(void *ctx, const struct ljp_reader *reader,
                             const struct ljp_item *item)
{
  struct ljp_ljm *ljm = ctx;
  const struct ljp_rec_mem *m = &item->u.mem;
  uint8_t bytes[6 * LJP_VARINT_MAX_BYTES], *p = bytes;
  uint32_t place;
  if (m->flags & LJP_MEM_FAILED) {
    ljm->failed++;
    return LJP_OK;
  }
  if (!ljm_place_of(ljm, &reader->model, m, &place))
    return LJP_ERR_MEM;
  uint64_t size = m->weight ? m->weight : m->size;
  p = ljp_put_varint(p, m->op);
  p = ljp_put_varint(p, place);
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

/* -- Pass 2 ----------------------------------------------------------------- */

static struct ljp_str ljm_str(const struct ljp_ljm *ljm, uint32_t text)
{
  return ljm->strings.list[text];
}

/* Looks up the names of C functions. */
static enum ljp_status ljm_resolve(struct ljp_ljm *ljm,
                                   struct ljp_symbols *symbols)
{
  enum ljp_status status;
  for (uint32_t i = 0; i < ljm->count; i++) {
    struct entry *e = &ljm->entries[i];
    if (e->kind != LJP_FRAME_CFUNC || !e->ref || !e->span)
      continue;
    e->symbols =
        ljp_symbols_module(symbols, ljm_str(ljm, e->text),
                           ljm_str(ljm, e->build_id), e->span, e->flags);
    if (!e->symbols)
      return LJP_ERR_MEM;
    status = ljp_symbols_want(symbols, e->symbols, e->value);
    if (status && status != LJP_ERR_LIMIT)
      return status;
  }
  status = ljp_symbols_resolve(symbols);
  return status == LJP_ERR_IO ? LJP_OK : status;
}

/* The outermost function at the address: the others are inlined into it. */
static void ljm_put_code(const struct ljp_ljm *ljm, struct ljp_export *e,
                         const struct entry *entry)
{
  const struct ljp_symbol *symbol =
      entry->symbols
          ? ljp_symbols_get(e->p->symbols, entry->symbols, entry->value)
          : NULL;
  char text[LJP_FRAME_NAME_BYTES];
  const char *name = text;
  struct ljp_str path = ljp_base_name(ljm_str(ljm, entry->text));
  if (symbol && symbol->count && *symbol->frames[symbol->count - 1].function)
    name = symbol->frames[symbol->count - 1].function;
  else
    snprintf(text, sizeof text, "%.*s%s0x%" PRIx64, (int)path.len,
             path.len ? path.data : "", path.len ? "+" : "", entry->value);
  ljp_tarantool_put_cfunc(e->out, entry->address, ljp_str(name, strlen(name)));
}

static void ljm_put_symbols(const struct ljp_ljm *ljm, struct ljp_export *e)
{
  ljp_tarantool_put_head(e->out, LJP_LJS_MAGIC, LJP_LJS_VERSION);
  for (uint32_t i = 1; i < ljm->count; i++) {
    const struct entry *entry = &ljm->entries[i];
    switch (entry->kind) {
    case LJM_FUNCTION:
      ljp_tarantool_put_lfunc(e->out, entry->address, ljm_str(ljm, entry->text),
                              entry->line);
      break;
    case LJP_FRAME_CFUNC:
      ljm_put_code(ljm, e, entry);
      break;
    case LJP_FRAME_BUILTIN:
      ljp_tarantool_put_cfunc(e->out, entry->address,
                              ljm_str(ljm, entry->text));
      break;
    case LJP_FRAME_TRACE:
      ljp_tarantool_put_trace(e->out, entry->number,
                              ljm->entries[entry->function].address,
                              entry->line);
    }
  }
  ljp_tarantool_put_byte(e->out, LJP_TARANTOOL_END);
}

static void ljm_put_place(const struct ljp_ljm *ljm, struct ljp_print *out,
                          unsigned kind, const struct entry *entry)
{
  switch (entry->kind) {
  case LJP_FRAME_LUA:
    ljp_tarantool_put_byte(out, kind | LJP_LJM_LFUNC << LJP_LJM_SOURCE_SHIFT);
    ljp_tarantool_put(out, ljm->entries[entry->function].address);
    ljp_tarantool_put(out, entry->line);
    return;
  case LJP_FRAME_TRACE:
    ljp_tarantool_put_byte(out, kind | LJP_LJM_TRACE << LJP_LJM_SOURCE_SHIFT);
    ljp_tarantool_put(out, entry->number);
    return;
  case LJP_FRAME_CFUNC:
  case LJP_FRAME_BUILTIN:
    ljp_tarantool_put_byte(out, kind | LJP_LJM_CFUNC << LJP_LJM_SOURCE_SHIFT);
    ljp_tarantool_put(out, entry->address);
    return;
  default:
    ljp_tarantool_put_byte(out,
                           kind | LJP_LJM_INTERNAL << LJP_LJM_SOURCE_SHIFT);
  }
}

/* A number of the temporary file; false: the file ends or cannot be read. */
static bool ljm_get(FILE *spool, uint64_t *number)
{
  *number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    int c = getc_unlocked(spool);
    if (c == EOF)
      return false;
    *number |= (uint64_t)(c & 0x7f) << shift;
    if (c < 0x80)
      return true;
  }
  return false;
}

static bool ljm_put_event(const struct ljp_ljm *ljm, struct ljp_print *out)
{
  static const uint8_t kinds[] = {
      [LJP_MEM_ALLOC] = LJP_LJM_ALLOC,
      [LJP_MEM_FREE] = LJP_LJM_FREE,
      [LJP_MEM_REALLOC] = LJP_LJM_REALLOC,
  };
  uint64_t op, place, number;
  if (!ljm_get(ljm->spool, &op) || !ljm_get(ljm->spool, &place) ||
      op >= sizeof kinds || place >= ljm->count)
    return false;
  ljm_put_place(ljm, out, kinds[op], &ljm->entries[place]);
  for (unsigned i = op == LJP_MEM_REALLOC ? 4 : 2; i; i--) {
    if (!ljm_get(ljm->spool, &number))
      return false;
    ljp_tarantool_put(out, number);
  }
  return true;
}

static void ljm_tell(const struct ljp_ljm *ljm, const struct ljp_profile *p)
{
  uint64_t closed = 0;
  for (uint32_t i = 0; i < p->gc_count; i++)
    closed += p->gc[i].phase == LJP_GC_CLOSED;
  ljp_command_note("export", "left out: stacks, times and types. An event of "
                             "ljm has the innermost line, C function or trace");
  if (p->sampled_memory)
    ljp_command_note("export",
                     "the file is sampled: bytes are estimates, and the "
                     "numbers of events are those of the samples");
  if (ljm->failed)
    ljp_command_note("export",
                     "%" PRIu64 " allocations that failed are left out",
                     ljm->failed);
  if (ljm->traces.changed)
    ljp_command_note("export",
                     "%" PRIu64 " traces have a number that another trace has, "
                     "too: they have numbers above 65535",
                     ljm->traces.changed);
  if (closed && p->vm_count > 2) /* [0] is none. */
    ljp_command_note("export",
                     "%" PRIu64 " VMs were closed: ljm cannot say so, and "
                     "shows what they held then as not freed",
                     closed);
}

enum ljp_status ljp_export_ljm(struct ljp_export *e)
{
  struct ljp_ljm *ljm = e->ljm;
  enum ljp_status status = ljm_resolve(ljm, e->p->symbols);
  if (status)
    return status;
  ljm_put_symbols(ljm, e);
  ljp_tarantool_put_head(e->out, LJP_LJM_MAGIC, LJP_LJM_VERSION);
  if (fseek(ljm->spool, 0, SEEK_SET) != 0)
    return LJP_ERR_IO;
  for (uint64_t i = 0; i < ljm->events; i++)
    if (!ljm_put_event(ljm, e->out))
      return LJP_ERR_IO;
  ljp_tarantool_put_byte(e->out, LJP_TARANTOOL_END);
  ljm_tell(ljm, e->p);
  e->no_notices = true;
  return LJP_OK;
}
