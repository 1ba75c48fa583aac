/*
** The export of samples for Tarantool's sysprof tools. Their format has the
** guest frames and the host frames of a sample in two lists, and knows nothing
** but the trace of a sample in compiled code. A function has one address, which
** is its number (tarantool.h); a line is that of the definition. One thread.
**
** The format has Tarantool's numbers for builtins. A builtin that Tarantool
** does not have is written like a Lua function that is named after it.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/index.h"
#include "parsers/profile/plain_names.h"
#include "parsers/tarantool/builtins.h"
#include "tools/export/tarantool.h"
#include "tools/shared/command.h"

struct sysprof {
  struct ljp_export *e;
  uint32_t *shown;    /* By function: a frame that stands for it, + 1. */
  uint64_t *numbers;  /* By trace: the number that it is written with. */
  uint32_t *builtins; /* By function: Tarantool's number; 0: none. */
  struct ljp_tarantool_traces traces;
  struct ljp_index
      starts; /* Of p->traces: the first with a number and start. */
  uint32_t path[LJP_EXPORT_DEPTH];
  uint64_t samples, compiled, without_guest;
};

static const struct ljp_profile_frame *sysprof_frame_of(const struct sysprof *l,
                                                        uint32_t node)
{
  return &l->e->p->frames[l->e->p->nodes[node].frame];
}

static uint64_t sysprof_address(const struct ljp_profile_frame *frame)
{
  return LJP_TARANTOOL_FUNCTIONS +
         (uint64_t)frame->function * LJP_TARANTOOL_STEP;
}

static bool sysprof_is_lua(const struct ljp_profile_frame *frame)
{
  return frame->kind == LJP_FRAME_LUA || frame->kind == LJP_FRAME_LUA_INLINED;
}

/* Tarantool's number of a builtin; 0: there is none of this name. */
static uint32_t sysprof_builtin(const struct ljp_profile *p,
                                const struct ljp_profile_frame *frame)
{
  enum { MOST = 1024 };
  struct ljp_str name = ljp_profile_str(p, frame->name);
  for (uint32_t n = 2; name.len && n < MOST; n++) {
    const char *theirs = ljp_tarantool_builtin(n), *plain;
    if (theirs && (plain = ljp_plain_name(
                       ljp_str(theirs, (uint32_t)strlen(theirs)))) != NULL)
      theirs = plain;
    if (theirs && strlen(theirs) == name.len &&
        memcmp(theirs, name.data, name.len) == 0)
      return n;
  }
  return 0;
}

static bool sysprof_is_guest(const struct ljp_profile_frame *frame)
{
  return sysprof_is_lua(frame) || frame->kind == LJP_FRAME_BUILTIN ||
         frame->kind == LJP_FRAME_CFUNC;
}

static bool sysprof_is_host(const struct ljp_profile_frame *frame)
{
  switch (frame->kind) {
  case LJP_FRAME_HOST:
  case LJP_FRAME_VM:
  case LJP_FRAME_KERNEL:
  case LJP_FRAME_PROFILER:
    return true;
  }
  return false;
}

/* The nodes of a row, leaf first, in l->path. */
static uint32_t sysprof_path(struct sysprof *l,
                             const struct ljp_profile_row *row)
{
  uint32_t count = 0;
  for (uint32_t at = row->node; at && count < LJP_EXPORT_DEPTH;
       at = l->e->p->nodes[at].parent)
    l->path[count++] = at;
  return count;
}

/* The state that a sample is written with, since some have no guest frames. */
static unsigned sysprof_state(const struct sysprof *l, unsigned state,
                              uint32_t count, uint32_t *trace)
{
  static const uint8_t hosts[] = {[LJP_VMSTATE_GC] = LJP_LJP_GC,
                                  [LJP_VMSTATE_EXIT] = LJP_LJP_EXIT,
                                  [LJP_VMSTATE_RECORD] = LJP_LJP_RECORD,
                                  [LJP_VMSTATE_OPT] = LJP_LJP_OPT,
                                  [LJP_VMSTATE_ASM] = LJP_LJP_ASM};
  *trace = 0;
  if (state < sizeof hosts && hosts[state])
    return hosts[state];
  for (uint32_t i = 0; i < count && state == LJP_VMSTATE_TRACE && !*trace; i++)
    if (sysprof_frame_of(l, l->path[i])->kind == LJP_FRAME_TRACE)
      *trace = sysprof_frame_of(l, l->path[i])->trace;
  if (*trace && l->e->p->traces[*trace].number)
    return LJP_LJP_TRACE;
  for (uint32_t i = 0; i < count; i++) {
    const struct ljp_profile_frame *frame = sysprof_frame_of(l, l->path[i]);
    if (frame->kind == LJP_FRAME_BUILTIN)
      return LJP_LJP_FFUNC;
    if (sysprof_is_guest(frame))
      return sysprof_is_lua(frame) ? LJP_LJP_LFUNC : LJP_LJP_CFUNC;
  }
  return LJP_LJP_INTERP;
}

/* -- The table of symbols -------------------------------------------------- */

/* Gives a trace a number: that of an earlier one if both have the same number
** and start at the same line. */
static bool sysprof_number(struct sysprof *l, uint32_t at)
{
  const struct ljp_profile_trace *list = l->e->p->traces, *trace = &list[at];
  uint64_t key = (uint64_t)trace->number << 32 | trace->line;
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(key, trace->file));
  struct ljp_index_slot *slot;
  if (!ljp_index_reserve(&l->starts))
    return false;
  for (slot = ljp_index_at(&l->starts, hash); slot->item;
       slot = ljp_index_next(&l->starts, slot)) {
    const struct ljp_profile_trace *other = &list[slot->item - 1];
    if (slot->hash == hash && other->number == trace->number &&
        other->line == trace->line && other->file == trace->file &&
        other->first_line == trace->first_line) {
      l->numbers[at] = l->numbers[slot->item - 1];
      return true;
    }
  }
  ljp_index_put(&l->starts, slot, hash, at);
  return ljp_tarantool_number(&l->traces, trace->number, &l->numbers[at]);
}

/* Notes which functions and traces samples refer to. false: no memory. */
static bool sysprof_collect(struct sysprof *l)
{
  const struct ljp_profile *p = l->e->p;
  uint32_t trace;
  for (uint32_t r = 0; r < p->row_count; r++) {
    const struct ljp_profile_row *row = &p->rows[r];
    if (!ljp_export_value(l->e, r, l->e->value))
      continue;
    uint32_t count = sysprof_path(l, row);
    for (uint32_t i = 0; i < count; i++) {
      const struct ljp_profile_frame *frame = sysprof_frame_of(l, l->path[i]);
      if (!sysprof_is_guest(frame) && !sysprof_is_host(frame))
        continue;
      if (!l->shown[frame->function] && frame->kind == LJP_FRAME_BUILTIN)
        l->builtins[frame->function] = sysprof_builtin(p, frame);
      l->shown[frame->function] = p->nodes[l->path[i]].frame + 1;
    }
    if (sysprof_state(l, p->contexts[row->context].state, count, &trace) ==
            LJP_LJP_TRACE &&
        !l->numbers[trace] && !sysprof_number(l, trace))
      return false;
  }
  return true;
}

/* A function of a file has the file's chunk name. A library function that
** LuaJIT has as bytecode has its name as the chunk's source, and no line. */
static void sysprof_put_function(struct ljp_print *out, uint64_t address,
                                 struct ljp_str file, uint64_t line)
{
  char chunk[LJP_FRAME_NAME_BYTES];
  static const char string[] = "[string \"";
  bool of_file = file.len && *file.data != '[';
  if (line == UINT32_MAX && file.len > sizeof string + 1 &&
      memcmp(file.data, string, sizeof string - 1) == 0)
    file = ljp_str(file.data + sizeof string - 1, file.len - sizeof string - 1);
  int n = snprintf(chunk, sizeof chunk, "%s%.*s", of_file ? "@" : "",
                   (int)file.len, file.len ? file.data : "?");
  size_t len = n < 0                      ? 0
               : (size_t)n < sizeof chunk ? (size_t)n
                                          : sizeof chunk - 1;
  ljp_tarantool_put_lfunc(out, address, ljp_str(chunk, len),
                          ljp_tarantool_line(line));
}

/* Lua functions without a chunk: builtins in bytecode, and unknown ones. */
static uint64_t sysprof_no_line(const struct ljp_profile_frame *frame)
{
  return frame->kind == LJP_FRAME_BUILTIN ? LJP_TARANTOOL_NO_LINE : 0;
}

static void sysprof_put_symbols(const struct sysprof *l)
{
  const struct ljp_profile *p = l->e->p;
  struct ljp_print *out = l->e->out;
  char text[LJP_FRAME_NAME_BYTES];
  ljp_tarantool_put_head(out, LJP_LJS_MAGIC, LJP_LJS_VERSION);
  for (uint32_t i = 0; i < p->function_count; i++) {
    if (!l->shown[i] || l->builtins[i])
      continue;
    uint32_t number = l->shown[i] - 1;
    const struct ljp_profile_frame *frame = &p->frames[number];
    uint64_t address = sysprof_address(frame);
    size_t len = ljp_frame_function_text(p, number, text, sizeof text);
    struct ljp_str name = ljp_str(text, len < sizeof text ? len : sizeof text);
    if (sysprof_is_lua(frame) && frame->file)
      sysprof_put_function(out, address, ljp_profile_str(p, frame->file),
                           frame->first_line);
    else if (sysprof_is_lua(frame) || frame->kind == LJP_FRAME_BUILTIN)
      ljp_tarantool_put_lfunc(out, address, name, sysprof_no_line(frame));
    else
      ljp_tarantool_put_cfunc(out, address, name);
  }
  for (uint32_t i = 0; i < p->trace_count; i++) {
    const struct ljp_profile_trace *trace = &p->traces[i];
    uint64_t address = LJP_TARANTOOL_TRACES + (uint64_t)i * LJP_TARANTOOL_STEP;
    if (!l->numbers[i])
      continue;
    if (!trace->file && trace->name) /* It starts in a builtin in bytecode. */
      ljp_tarantool_put_lfunc(out, address, ljp_profile_str(p, trace->name),
                              LJP_TARANTOOL_NO_LINE);
    else
      sysprof_put_function(out, address, ljp_profile_str(p, trace->file),
                           trace->first_line);
    ljp_tarantool_put_trace(out, l->numbers[i], address, trace->line);
  }
  ljp_tarantool_put_byte(out, LJP_TARANTOOL_END);
}

/* -- Samples --------------------------------------------------------------- */

static void sysprof_put_guest(const struct sysprof *l, uint32_t count)
{
  struct ljp_print *out = l->e->out;
  for (uint32_t i = 0; i < count; i++) {
    const struct ljp_profile_frame *frame = sysprof_frame_of(l, l->path[i]);
    if (!sysprof_is_guest(frame))
      continue;
    bool c = frame->kind == LJP_FRAME_CFUNC;
    if (l->builtins[frame->function]) {
      ljp_tarantool_put_byte(out, LJP_LJP_FRAME_BUILTIN);
      ljp_tarantool_put(out, l->builtins[frame->function]);
      continue;
    }
    ljp_tarantool_put_byte(out, c ? LJP_LJP_FRAME_C : LJP_LJP_FRAME_LUA);
    ljp_tarantool_put(out, sysprof_address(frame));
    if (!c)
      ljp_tarantool_put(out, sysprof_is_lua(frame)
                                 ? ljp_tarantool_line(frame->first_line)
                                 : sysprof_no_line(frame));
  }
  ljp_tarantool_put_byte(out, LJP_TARANTOOL_END);
}

static void sysprof_put_host(const struct sysprof *l, uint32_t count)
{
  for (uint32_t i = 0; i < count; i++) {
    const struct ljp_profile_frame *frame = sysprof_frame_of(l, l->path[i]);
    if (sysprof_is_host(frame))
      ljp_tarantool_put(l->e->out, sysprof_address(frame));
  }
  ljp_tarantool_put(l->e->out, 0);
}

static void sysprof_put_row(struct sysprof *l,
                            const struct ljp_profile_row *row, uint64_t samples)
{
  const struct ljp_profile *p = l->e->p;
  struct ljp_print *out = l->e->out;
  uint32_t trace, count = sysprof_path(l, row);
  unsigned state =
      sysprof_state(l, p->contexts[row->context].state, count, &trace);
  bool guest = state == LJP_LJP_LFUNC || state == LJP_LJP_FFUNC ||
               state == LJP_LJP_CFUNC;
  l->samples += samples;
  l->compiled += state == LJP_LJP_TRACE ? samples : 0;
  for (uint32_t i = 0; i < count && !guest && state != LJP_LJP_TRACE; i++)
    if (sysprof_is_guest(sysprof_frame_of(l, l->path[i]))) {
      l->without_guest += samples;
      break;
    }
  for (; samples; samples--) {
    ljp_tarantool_put_byte(out, state);
    if (state == LJP_LJP_TRACE) {
      ljp_tarantool_put(out, l->numbers[trace]);
      ljp_tarantool_put(out, LJP_TARANTOOL_TRACES +
                                 (uint64_t)trace * LJP_TARANTOOL_STEP);
      ljp_tarantool_put(out, p->traces[trace].line);
      continue;
    }
    if (guest)
      sysprof_put_guest(l, count);
    sysprof_put_host(l, count);
  }
}

static void sysprof_tell(const struct sysprof *l)
{
  ljp_command_note("export",
                   "left out: times, threads, current lines, and how host and "
                   "guest frames alternate. Each sample counts as one");
  if (l->compiled)
    ljp_command_note("export",
                     "%" PRIu64 " of %" PRIu64 " samples are in compiled code: "
                     "ljp has their traces only, not their stacks",
                     l->compiled, l->samples);
  if (l->without_guest)
    ljp_command_note("export",
                     "%" PRIu64 " of %" PRIu64 " samples are in the collector "
                     "or the compiler: ljp has only their host frames",
                     l->without_guest, l->samples);
  if (l->traces.changed)
    ljp_command_note("export",
                     "of the traces with one number, some start elsewhere: "
                     "%" PRIu64 " have numbers above 65535 instead",
                     l->traces.changed);
}

enum ljp_status ljp_export_ljp(struct ljp_export *e)
{
  const struct ljp_profile *p = e->p;
  struct sysprof *l = calloc(1, sizeof *l);
  if (!l)
    return LJP_ERR_MEM;
  l->e = e;
  l->shown = calloc(p->function_count + 1, sizeof *l->shown);
  l->numbers = calloc(p->trace_count + 1, sizeof *l->numbers);
  l->builtins = calloc(p->function_count + 1, sizeof *l->builtins);
  bool ok = l->shown && l->numbers && l->builtins;
  ljp_export_start(e);
  if (ok && (ok = sysprof_collect(l))) {
    sysprof_put_symbols(l);
    ljp_tarantool_put_head(e->out, LJP_LJP_MAGIC, LJP_LJP_VERSION);
    for (uint32_t r = 0; r < p->row_count; r++)
      sysprof_put_row(l, &p->rows[r], ljp_export_value(e, r, e->value));
    ljp_tarantool_put_byte(e->out, LJP_TARANTOOL_END);
    if (!e->no_notices)
      sysprof_tell(l);
    e->no_notices = true;
  }
  ljp_index_fini(&l->starts);
  free(l->traces.taken);
  free(l->shown);
  free(l->numbers);
  free(l->builtins);
  free(l);
  return ok ? LJP_OK : LJP_ERR_MEM;
}
