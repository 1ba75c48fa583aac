/*
** Names and values of local variables; see coroutines.h. The names are in the
** prototype's own memory block: a list of variables in the order of their first
** instruction, each with its scope (lj_debug.c). It is copied before it is
** read, and the copy's end is never passed.
*/
#define LUA_CORE

#include <stdio.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"

#include "src/luajit/coroutines.h"
#include "src/luajit/frames/walk.h"

enum {
  NAMES_BYTES = 16384, /* of one function; later variables are not shown */
  NAME_BYTES = 64,
  STRING_BYTES = 64,
  VALUE_BYTES = STRING_BYTES * 4 + 64,
  SLOTS = 250
};

/* -- Values ---------------------------------------------------------------- */

static void local_string(uint64_t object, char *out, size_t room)
{
  char text[STRING_BYTES];
  uint32_t len = 0;
  size_t at = 1;
  if (!ljp_load32(object + offsetof(GCstr, len), &len)) {
    snprintf(out, room, "string (unreadable)");
    return;
  }
  size_t wanted = len < sizeof text ? len : sizeof text;
  size_t have = ljp_safe_copy(
      text, (const char *)(uintptr_t)object + sizeof(GCstr), wanted);
  out[0] = '"';
  for (size_t i = 0; i < have; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c < ' ' || c >= 127)
      at += (size_t)snprintf(out + at, room - at, "\\x%02x", c);
    else if (c == '"' || c == '\\')
      at += (size_t)snprintf(out + at, room - at, "\\%c", c);
    else
      out[at++] = (char)c;
  }
  snprintf(out + at, room - at, len > have ? "\"... (%u bytes)" : "\"", len);
}

static void local_value(uint64_t word, char *out, size_t room)
{
  static const char *const names[] = {
      "nil",     "false",  "true",    "lightuserdata", "string",
      "upvalue", "thread", "proto",   "function",      "trace",
      "cdata",   "table",  "userdata"};
  const TValue value = {.u64 = word};
  uint32_t type = ~itype(&value);
  uint64_t object = word & LJ_GCVMASK;
  if (tvisint(&value))
    snprintf(out, room, "%d", intV(&value));
  else if (tvisnum(&value))
    snprintf(out, room, "%.14g", numV(&value));
  else if (type >= sizeof names / sizeof *names)
    snprintf(out, room, "?");
  else if (tvisstr(&value))
    local_string(object, out, room);
  else if (tvispri(&value))
    snprintf(out, room, "%s", names[type]);
  else
    snprintf(out, room, "%s: 0x%llx", names[type], (unsigned long long)object);
}

/* -- Names ----------------------------------------------------------------- */

struct names {
  const uint8_t *at, *end;
};

static bool names_number(struct names *n, uint32_t *out)
{
  uint32_t value = 0;
  for (unsigned shift = 0; n->at < n->end && shift < 32; shift += 7) {
    uint8_t byte = *n->at++;
    value |= (uint32_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = value;
      return true;
    }
  }
  return false;
}

/* Takes the next variable. False: there are no more. */
static bool names_next(struct names *n, char name[NAME_BYTES], uint32_t *begin,
                       uint32_t *length)
{
  static const char *const fixed[] = {
#define LJP_X(name, text) text,
      VARNAMEDEF(LJP_X)
#undef LJP_X
  };
  size_t len = 0;
  if (n->at == n->end || *n->at == VARNAME_END)
    return false;
  if (*n->at < VARNAME__MAX) {
    snprintf(name, NAME_BYTES, "%s", fixed[*n->at++ - 1]);
  } else {
    for (; n->at < n->end && *n->at; n->at++)
      if (len < NAME_BYTES - 1)
        name[len++] = *n->at >= ' ' && *n->at < 127 ? (char)*n->at : '?';
    name[len] = '\0';
    if (n->at == n->end)
      return false;
    n->at++;
  }
  return names_number(n, begin) && names_number(n, length);
}

/* Copies the list of a prototype. False: it has none that can be read. */
static bool names_copy(struct names *n, uint64_t proto, uint8_t room[])
{
  uint64_t list;
  uint32_t size;
  if (!ljp_load32(proto + offsetof(GCproto, sizept), &size) ||
      !ljp_load(proto + offsetof(GCproto, varinfo), &list) ||
      list < proto + sizeof(GCproto) || list >= proto + size)
    return false;
  uint64_t bytes = proto + size - list;
  if (bytes > NAMES_BYTES)
    bytes = NAMES_BYTES;
  n->at = room;
  n->end = room + ljp_safe_copy(room, (const void *)(uintptr_t)list, bytes);
  return n->end > n->at;
}

void ljp_lua_locals(const struct ljp_lua_frame *frame,
                    void (*each)(void *ctx, const char *name,
                                 const char *value),
                    void *ctx)
{
  uint8_t room[NAMES_BYTES];
  char name[NAME_BYTES], text[VALUE_BYTES];
  struct names names;
  uint32_t begin, length, first = 0, slot = 0;
  uint64_t value;
  if (!frame->proto || !frame->pc || !names_copy(&names, frame->proto, room))
    return;
  uint64_t at =
      (frame->pc - frame->proto - sizeof(GCproto)) / sizeof(BCIns) - 1;
  while (slot < SLOTS && names_next(&names, name, &begin, &length)) {
    first += begin;
    if (first > at)
      return;
    if (at >= (uint64_t)first + length)
      continue;
    if (!ljp_load(frame->base + slot++ * sizeof(TValue), &value))
      return;
    local_value(value, text, sizeof text);
    if (name[0] != '(')
      each(ctx, name, text);
  }
}
