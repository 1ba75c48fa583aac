/*
** The code of a trace, and the function and line of each part of it, for files
** that other profilers read. Not for handlers, because it takes a lock.
*/
#define LUA_CORE

#include <string.h>

#include "src/luajit/traces/trace.h"

/* How many offsets of a trace are looked up at most. */
enum { LOOKS = 16384 };

struct lines_request {
  uint8_t *code;
  size_t code_bytes;
  struct ljp_guest_line *lines;
  size_t room, count;
};

/* The innermost Lua function and its line. False: they are not known here. */
static bool lines_place_at(const struct ljp_trace *trace, uint32_t offset,
                           struct ljp_guest_line *place)
{
  uint32_t number, line;
  struct ljp_chain chain;
  if (!ljp_trace_marker(trace, offset, &number, &line))
    return false;
  for (int i = 0; i < LJP_SHIFTS_MAX; i++) {
    if (!ljp_trace_chain(trace, number, &chain))
      return false;
    if (!(chain.function & LJP_CHAIN_BUILTIN)) {
      *place = (struct ljp_guest_line){offset, chain.function, line};
      return true;
    }
    number = chain.caller;
    line = chain.line;
  }
  return false;
}

static void lines_copy_code(const struct ljp_trace *trace, void *ctx)
{
  struct lines_request *r = ctx;
  struct ljp_guest_line place = {0, trace->place_ref, trace->place_line};
  uint32_t bytes = trace->code_bytes, step = bytes / LOOKS + 1;
  if (!trace->object || bytes > r->code_bytes || !r->room)
    return;
  /* The code stays mapped: before the VM's thread unmaps it, it frees the
  ** entry, for which it needs the lock that we hold. */
  memcpy(r->code, (const void *)(uintptr_t)trace->code, bytes);
  r->code_bytes = bytes;
  r->lines[r->count++] = place;
  for (uint32_t offset = 0; offset < bytes && r->count < r->room;
       offset += step) {
    struct ljp_guest_line *last = &r->lines[r->count - 1];
    if (!lines_place_at(trace, offset, &place) ||
        (place.function == last->function && place.line == last->line))
      continue;
    if (!offset)
      *last = place;
    else
      r->lines[r->count++] = place;
  }
}

bool ljp_guest_trace_code(uint64_t id, uint8_t *code, size_t *code_bytes,
                          struct ljp_guest_line *lines, size_t *line_count)
{
  struct lines_request r = {.code = code,
                            .code_bytes = *code_bytes,
                            .lines = lines,
                            .room = *line_count};
  if (!ljp_traces_with(id, lines_copy_code, &r) || !r.count)
    return false;
  *code_bytes = r.code_bytes;
  *line_count = r.count;
  return true;
}
