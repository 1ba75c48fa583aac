/*
** The symbols of a file of format ljm; see ljm.h. An event is about to name a
** function, a trace or C code: each function here returns the address or number
** for it, and first writes the symbol if the file does not have it yet.
**
** Addresses of Lua functions are made of the writer's numbers
** (proto_numbers.h), so no two functions of a file have the same address.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/varint.h"
#include "src/writer/writer_impl.h"

_Static_assert(LJP_LJM_SYMBOL_BYTES >=
                   1 + 3 * LJP_VARINT_MAX_BYTES + LJP_NAME_BYTES,
               "a symbol fits");

/* -- Bytes ----------------------------------------------------------------- */

static uint8_t *symbols_begin(struct ljp_ljm *ljm, enum ljp_ljs_kind kind,
                              uint64_t key)
{
  /* As an event's source, a kind of symbol has another number. */
  static const uint8_t heads[] = {
      [LJP_LJS_LFUNC] = LJP_LJM_SYMBOL | LJP_LJM_LFUNC << LJP_LJM_SOURCE_SHIFT,
      [LJP_LJS_CFUNC] = LJP_LJM_SYMBOL | LJP_LJM_CFUNC << LJP_LJM_SOURCE_SHIFT,
      [LJP_LJS_TRACE] = LJP_LJM_SYMBOL | LJP_LJM_TRACE << LJP_LJM_SOURCE_SHIFT,
  };
  uint8_t *p = ljm->data + ljm->len;
  *p++ = heads[kind];
  return ljp_put_varint(p, key);
}

static void symbols_end(struct ljp_ljm *ljm, const uint8_t *p)
{
  ljm->len = (size_t)(p - ljm->data);
}

static uint8_t *symbols_put_text(uint8_t *p, const char *text)
{
  const size_t len = strnlen(text, LJP_NAME_BYTES);
  p = ljp_put_varint(p, len);
  memcpy(p, text, len);
  return p + len;
}

static void symbols_put_cfunc(struct ljp_ljm *ljm, uint64_t address,
                              const char *name)
{
  uint8_t *p = symbols_begin(ljm, LJP_LJS_CFUNC, address);
  symbols_end(ljm, symbols_put_text(p, name));
}

/* -- Lua functions and builtins -------------------------------------------- */

static uint64_t symbols_function_address(uint32_t number)
{
  return LJP_TARANTOOL_FUNCTIONS + (uint64_t)number * LJP_TARANTOOL_STEP;
}

static void symbols_put_function(struct ljp_ljm *ljm, uint32_t number,
                                 const char *chunk, uint64_t line)
{
  uint8_t *p =
      symbols_begin(ljm, LJP_LJS_LFUNC, symbols_function_address(number));
  p = symbols_put_text(p, chunk);
  symbols_end(ljm, ljp_put_varint(p, line));
}

/* The number of a Lua function; 0 stands for all unknown ones. */
static uint32_t symbols_function(struct ljp_writer *w, uint32_t ref)
{
  static const char unknown[] = "(unknown Lua function)";
  const struct ljp_describe *d = &w->options.describe;
  struct ljp_proto_info info;
  uint32_t number = ref ? ljp_proto_number_find(&w->proto_numbers, ref) : 0;
  if (LJP_LIKELY(number))
    return number;
  memset(&info, 0, sizeof info);
  if (ref && d->proto && d->proto(d->ctx, ref, &info) && info.id)
    number = ljp_proto_number_give(&w->proto_numbers, ref);
  if (!number && w->ljm->unknown_function)
    return 0;
  if (number && !(info.flags & LJP_PROTO_UNKNOWN))
    symbols_put_function(w->ljm, number, info.chunk,
                         ljp_tarantool_line(info.first_line));
  else
    symbols_put_function(w->ljm, number, unknown, 0);
  w->ljm->unknown_function |= !number;
  return number;
}

uint64_t ljp_ljm_function(struct ljp_writer *w, uint32_t ref)
{
  return symbols_function_address(symbols_function(w, ref));
}

uint64_t ljp_ljm_builtin(struct ljp_writer *w, uint64_t ffid)
{
  const struct ljp_describe *d = &w->options.describe;
  const uint64_t bit = UINT64_C(1) << ffid % 64;
  const uint64_t address =
      LJP_TARANTOOL_BUILTINS + (uint64_t)(uint32_t)ffid * LJP_TARANTOOL_STEP;
  char name[LJP_NAME_BYTES] = "(unknown builtin)";
  if (ffid >= 64 * LJP_LJM_BUILTIN_WORDS)
    return 0;
  if (w->ljm->builtins[ffid / 64] & bit)
    return address;
  w->ljm->builtins[ffid / 64] |= bit;
  if (d->builtin)
    d->builtin(d->ctx, ffid, name);
  symbols_put_cfunc(w->ljm, address, name);
  return address;
}

/* -- C functions ----------------------------------------------------------- */

/* The function's name, or its place in its file. */
static void symbols_cfunc_name(struct ljp_writer *w,
                               const struct ljp_module *module,
                               uint64_t address, char name[LJP_NAME_BYTES])
{
  const char *known = module ? ljp_elf_modules_name(&w->ljm->names, module->id,
                                                    address - module->bias)
                             : NULL;
  const char *file = module ? strrchr(module->path, '/') : NULL;
  if (known)
    snprintf(name, LJP_NAME_BYTES, "%s", known);
  else if (module)
    snprintf(name, LJP_NAME_BYTES, "%s+0x%" PRIx64,
             file ? file + 1 : module->path, address - module->bias);
  else
    snprintf(name, LJP_NAME_BYTES, "0x%" PRIx64, address);
}

uint64_t ljp_ljm_cfunc(struct ljp_writer *w, uint64_t address, uint64_t time_ns)
{
  char name[LJP_NAME_BYTES];
  bool settled = true;
  const size_t at =
      (address * UINT64_C(0x9e3779b97f4a7c15) >> 40) % LJP_LJM_CACHED_CFUNCS;
  if (LJP_LIKELY(w->ljm->cached_cfuncs[at].address == address &&
                 w->ljm->cached_cfuncs[at].generation == w->modules.generation))
    return address;
  const struct ljp_module *module =
      ljp_modules_find(&w->modules, address, time_ns, &settled);
  symbols_cfunc_name(w, module, address, name);
  symbols_put_cfunc(w->ljm, address, name);
  w->ljm->cached_cfuncs[at].address = settled ? address : 0;
  w->ljm->cached_cfuncs[at].generation = w->modules.generation;
  return address;
}

/* -- Traces ---------------------------------------------------------------- */

/* The number in the file of a trace that starts there. 0: no memory. */
static uint64_t symbols_trace_number(struct ljp_ljm *ljm, uint64_t number,
                                     uint32_t function, uint32_t line)
{
  uint64_t given;
  if (!ljm->starts)
    ljm->starts =
        calloc((size_t)LJP_TARANTOOL_TRACE_NUMBERS, sizeof *ljm->starts);
  if (!ljm->starts)
    return 0;
  struct ljp_ljm_start *start =
      &ljm->starts[ljp_tarantool_short_number(number)];
  if (start->given && start->function == function && start->line == line)
    return start->given;
  if (!ljp_tarantool_number(&ljm->traces, number, &given))
    return 0;
  *start = (struct ljp_ljm_start){function, line, given};
  uint8_t *p = symbols_begin(ljm, LJP_LJS_TRACE, given);
  p = ljp_put_varint(p, symbols_function_address(function));
  symbols_end(ljm, ljp_put_varint(p, line));
  return given;
}

uint64_t ljp_ljm_trace(struct ljp_writer *w, uint64_t id)
{
  const struct ljp_describe *d = &w->options.describe;
  const size_t at = id % LJP_LJM_CACHED_TRACES;
  struct ljp_trace_info info;
  if (LJP_LIKELY(w->ljm->cached_traces[at].id == id && id))
    return w->ljm->cached_traces[at].given;
  memset(&info, 0, sizeof info);
  if (!d->trace || !d->trace(d->ctx, id, &info) || !info.number)
    return 0;
  const uint32_t ref = info.place ? ljp_frame_proto_ref(info.place) : 0;
  const uint32_t line = info.place ? ljp_frame_line(info.place) : 0;
  const uint64_t given =
      symbols_trace_number(w->ljm, info.number, symbols_function(w, ref), line);
  w->ljm->cached_traces[at].id = given ? id : 0;
  w->ljm->cached_traces[at].given = given;
  return given;
}
