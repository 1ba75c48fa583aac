/*
** Writes memory events in the format ljm (ljm.h). One thread.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "tools/export/ljm.h"
#include "tools/shared/command.h"

static struct ljp_str ljm_str(const struct ljp_ljm *ljm, uint32_t text)
{
  return ljm->strings.list[text];
}

/* Looks up the names of C functions: those of events, and all others that the
** modules tell of. */
static enum ljp_status ljm_resolve(struct ljp_ljm *ljm,
                                   struct ljp_symbols *symbols)
{
  enum ljp_status status = LJP_OK;
  for (uint32_t i = 0; i < ljm->count; i++) {
    struct ljp_ljm_entry *e = &ljm->entries[i];
    if (e->kind != LJP_LJM_MODULE || !e->span || (e->flags & LJP_MODULE_VDSO))
      continue;
    e->symbols =
        ljp_symbols_module(symbols, ljm_str(ljm, e->text),
                           ljm_str(ljm, e->build_id), e->span, e->flags);
    if (!e->symbols)
      return LJP_ERR_MEM;
    if ((status = ljp_symbols_want_functions(symbols, e->symbols)))
      return status;
  }
  for (uint32_t i = 0; i < ljm->count; i++) {
    const struct ljp_ljm_entry *e = &ljm->entries[i];
    if (e->kind != LJP_FRAME_CFUNC || !ljm->entries[e->owner].symbols)
      continue;
    status =
        ljp_symbols_want(symbols, ljm->entries[e->owner].symbols, e->value);
    if (status && status != LJP_ERR_LIMIT)
      return status;
  }
  status = ljp_symbols_resolve(symbols);
  return status == LJP_ERR_IO ? LJP_OK : status;
}

static void ljm_put_module(struct ljp_export *e,
                           const struct ljp_ljm_entry *module)
{
  uint64_t address, before = 0;
  const char *name;
  for (size_t n = 0; (name = ljp_symbols_function(
                          e->p->symbols, module->symbols, n, &address));
       n++) {
    if (address != before)
      ljp_tarantool_put_cfunc(e->out, module->address + address,
                              ljp_str(name, strlen(name)));
    before = address;
  }
}

/* The outermost function at the address: the others are inlined into it. */
static void ljm_put_code(const struct ljp_ljm *ljm, struct ljp_export *e,
                         const struct ljp_ljm_entry *entry)
{
  const struct ljp_ljm_entry *module = &ljm->entries[entry->owner];
  const struct ljp_symbol *symbol =
      ljp_symbols_get(e->p->symbols, module->symbols, entry->value);
  char text[LJP_FRAME_NAME_BYTES];
  const char *name = text;
  bool part;
  struct ljp_str path = ljp_base_name(ljm_str(ljm, module->text));
  if (symbol && symbol->count && *symbol->frames[symbol->count - 1].function)
    name = symbol->frames[symbol->count - 1].function;
  else
    snprintf(text, sizeof text, "%.*s%s0x%" PRIx64, (int)path.len,
             path.len ? path.data : "", path.len ? "+" : "", entry->value);
  ljp_tarantool_put_cfunc(e->out, entry->address,
                          ljp_str(name, ljp_symbol_length(name, &part)));
}

static void ljm_put_symbols(const struct ljp_ljm *ljm, struct ljp_export *e)
{
  ljp_tarantool_put_head(e->out, LJP_LJS_MAGIC, LJP_LJS_VERSION);
  for (uint32_t i = 1; i < ljm->count; i++) {
    const struct ljp_ljm_entry *entry = &ljm->entries[i];
    switch (entry->kind) {
    case LJP_LJM_FUNCTION:
      ljp_tarantool_put_lfunc(e->out, entry->address, ljm_str(ljm, entry->text),
                              entry->line);
      break;
    case LJP_LJM_MODULE:
      ljm_put_module(e, entry);
      break;
    case LJP_FRAME_CFUNC: /* After its module: this name is the better one. */
      ljm_put_code(ljm, e, entry);
      break;
    case LJP_FRAME_BUILTIN:
      ljp_tarantool_put_cfunc(e->out, entry->address,
                              ljm_str(ljm, entry->text));
      break;
    case LJP_LJM_START:
      ljp_tarantool_put_trace(e->out, entry->number,
                              ljm->entries[entry->owner].address, entry->line);
    }
  }
  ljp_tarantool_put_byte(e->out, LJP_TARANTOOL_END);
}

static void ljm_put_site(const struct ljp_ljm *ljm, struct ljp_print *out,
                         unsigned kind, const struct ljp_ljm_entry *entry)
{
  switch (entry->kind) {
  case LJP_FRAME_LUA:
    ljp_tarantool_put_byte(out, kind | LJP_LJM_LFUNC << LJP_LJM_SOURCE_SHIFT);
    ljp_tarantool_put(out, ljm->entries[entry->owner].address);
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
  uint64_t op, site, number;
  if (!ljm_get(ljm->spool, &op) || !ljm_get(ljm->spool, &site) ||
      op >= sizeof kinds || site >= ljm->count)
    return false;
  ljm_put_site(ljm, out, kinds[op], &ljm->entries[site]);
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
                     "of the traces with one number, some start elsewhere: "
                     "%" PRIu64 " have numbers above 65535 instead",
                     ljm->traces.changed);
  if (closed && p->vm_count > 2) /* [0] is none. */
    ljp_command_note("export",
                     "%" PRIu64 " VMs were closed: ljm cannot say so, and "
                     "shows the memory that they still had as not freed",
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
  if (!e->no_notices)
    ljm_tell(ljm, e->p);
  e->no_notices = true;
  return LJP_OK;
}
