/*
** The frames that keys of Tarantool's files become. One thread a table.
*/
#include "parsers/profile/intern.h"
#include "parsers/profile/pass.h"
#include "parsers/profile/tarantool_symbols.h"
#include "parsers/tarantool/builtins.h"

enum ljp_status ljp_tarantool_frame_lua(struct ljp_tarantool_symbols *s,
                                        struct ljp_profile *p, uint64_t proto,
                                        uint64_t line, uint32_t *frame)
{
  struct ljp_profile_frame f = {.kind = LJP_FRAME_LUA};
  const struct ljp_tarantool_def *def =
      ljp_tarantool_symbols_at(p, &s->protos, proto);
  enum ljp_status status = LJP_OK;
  if (!def)
    return LJP_ERR_MEM;
  f.line = ljp_tarantool_is_builtin(line) ? 0 : (uint32_t)line;
  if (def->builtin) {
    f.kind = LJP_FRAME_BUILTIN;
    f.name = def->file;
    f.line = 0;
  } else if (def->known) {
    f.file = def->file;
    f.first_line = def->line;
    if (!f.first_line)
      status = ljp_tarantool_intern_text(p, "main chunk", &f.name);
  } else {
    f.flags = LJP_PROFILE_UNKNOWN;
    f.offset = proto;
  }
  return status ? status : ljp_profile_intern_frame(p, &f, frame);
}

enum ljp_status ljp_tarantool_frame_c(struct ljp_tarantool_symbols *s,
                                      struct ljp_profile *p, uint8_t kind,
                                      uint64_t address, uint32_t *frame,
                                      uint64_t *start)
{
  struct ljp_profile_frame f = {.kind = kind, .offset = address};
  const struct ljp_cfunc *found;
  enum ljp_status status = ljp_cfuncs_find(&s->cfuncs, address, &found);
  if (status)
    return status;
  s->cfuncs_used = true;
  *start = found ? found->address : 0;
  if (found)
    f.name = found->name;
  return ljp_profile_intern_frame(p, &f, frame);
}

enum ljp_status ljp_tarantool_frame_builtin(struct ljp_profile *p,
                                            uint64_t number, uint32_t *frame)
{
  struct ljp_profile_frame f = {.kind = LJP_FRAME_BUILTIN, .offset = number};
  const char *name = ljp_tarantool_builtin(number);
  enum ljp_status status = LJP_OK;
  if (name)
    status = ljp_tarantool_intern_text(p, name, &f.name);
  else
    f.flags = LJP_PROFILE_UNKNOWN;
  return status ? status : ljp_profile_intern_frame(p, &f, frame);
}

enum ljp_status ljp_tarantool_frame_trace(struct ljp_tarantool_symbols *s,
                                          struct ljp_profile *p,
                                          uint64_t number, uint64_t proto,
                                          uint64_t line, uint32_t *frame)
{
  struct ljp_profile_frame f = {.kind = LJP_FRAME_TRACE, .offset = number};
  struct ljp_tarantool_def own = {.key = number};
  const struct ljp_tarantool_def *def =
      ljp_tarantool_symbols_at(p, &s->traces, number);
  enum ljp_status status = LJP_OK;
  if (!def)
    return LJP_ERR_MEM;
  if (def->known) {
    own = *def;
  } else if (proto) {
    status = ljp_tarantool_symbols_start(s, p, proto, &own);
    own.line = ljp_clamp_u32(line);
  }
  f.trace = own.trace;
  f.file = own.file;
  f.first_line = own.line;
  if (!own.known && !own.file)
    f.flags = LJP_PROFILE_UNKNOWN;
  return status ? status : ljp_profile_intern_frame(p, &f, frame);
}

enum ljp_status ljp_tarantool_frame_internal(struct ljp_profile *p,
                                             uint32_t *frame)
{
  struct ljp_profile_frame f = {.kind = LJP_FRAME_VM};
  enum ljp_status status = ljp_tarantool_intern_text(p, "INTERNAL", &f.name);
  return status ? status : ljp_profile_intern_frame(p, &f, frame);
}
