/*
** Frames as text. Any thread.
*/
#include "parsers/profile/frame_name.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parsers/stream/names.h"

/* A line in room bytes. len is the length of the whole line, even if it is
** longer than the room. */
struct line {
  char *out;
  size_t room, len;
};

static void name_add_bytes(struct line *line, const char *data, size_t n)
{
  if (line->len < line->room) {
    size_t left = line->room - line->len;
    memcpy(line->out + line->len, data, n < left ? n : left);
  }
  line->len += n;
}

static void name_add_str(struct line *line, struct ljp_str s)
{
  if (s.len)
    name_add_bytes(line, s.data, s.len);
}

__attribute__((format(printf, 2, 3))) static void
name_add(struct line *line, const char *format, ...)
{
  char text[128]; /* Only our own texts and numbers come here. */
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (n > 0)
    name_add_bytes(line, text, (size_t)n < sizeof text ? (size_t)n : 127);
}

static size_t name_end(struct line *line)
{
  if (line->room)
    line->out[line->len < line->room ? line->len : line->room - 1] = '\0';
  return line->len;
}

const char *ljp_profile_kind_text(unsigned kind)
{
  switch (kind) {
  case LJP_FRAME_NO_STACK:
    return "no stack";
  case LJP_FRAME_LOST:
    return "lost";
  case LJP_FRAME_TOO_MANY:
    return "beyond the limit";
  case LJP_FRAME_BEFORE:
    return "before the session";
  case LJP_FRAME_UNRECORDED:
    return "not recorded";
  case LJP_FRAME_COLLECTOR:
    return "garbage collector";
  case LJP_FRAME_OUTSIDE:
    return "outside Lua";
  case LJP_FRAME_ROOT:
    return "root";
  }
  const char *text = ljp_name_frame_kind(kind);
  return text ? text : "unknown";
}

const char *ljp_profile_state_text(unsigned state)
{
  return state == LJP_STATE_LUA ? "Lua" : ljp_name_vmstate(state);
}

/* Machine code: the name, or module and address. */
static void name_add_code(struct line *line, const struct ljp_profile *p,
                          const struct ljp_profile_frame *f)
{
  struct ljp_str path = ljp_profile_str(p, p->modules[f->module].path);
  if (f->name) {
    name_add_str(line, ljp_profile_str(p, f->name));
  } else if (f->module && f->kind == LJP_FRAME_CFUNC && !f->offset) {
    name_add(line, "(function of ");
    name_add_str(line, ljp_base_name(path));
    name_add(line, ")");
  } else if (f->module) {
    if (path.len)
      name_add_str(line, ljp_base_name(path));
    else
      name_add(line, "(module without a path)");
    name_add(line, "+0x%" PRIx64, f->offset);
  } else {
    name_add(line,
             f->flags & LJP_PROFILE_UNKNOWN ? "(unknown module)+0x%" PRIx64
                                            : "0x%" PRIx64,
             f->offset);
  }
}

static bool name_is_lua(unsigned kind)
{
  return kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED;
}

static void name_add_function(struct line *line, const struct ljp_profile *p,
                              const struct ljp_profile_frame *f)
{
  const char *cut;
  switch (f->kind) {
  case LJP_FRAME_LUA:
  case LJP_FRAME_LUA_INLINED:
    if ((f->flags & LJP_PROFILE_UNKNOWN) && f->offset)
      name_add(line, "(unknown Lua function %" PRIu64 ")", f->offset);
    else if (f->flags & LJP_PROFILE_UNKNOWN)
      name_add(line, "(unknown Lua function)");
    else if (f->name)
      name_add_str(line, ljp_profile_str(p, f->name));
    else
      name_add(line, "function");
    return;
  case LJP_FRAME_BUILTIN:
    if (f->name)
      name_add_str(line, ljp_profile_str(p, f->name));
    else
      name_add(line, "(unknown builtin %" PRIu64 ")", f->offset);
    return;
  case LJP_FRAME_CFUNC:
  case LJP_FRAME_HOST:
  case LJP_FRAME_VM:
    name_add_code(line, p, f);
    return;
  case LJP_FRAME_TRACE:
    name_add(line,
             f->flags & LJP_PROFILE_UNKNOWN ? "(unknown trace %" PRIu64 ")"
                                            : "trace %" PRIu64,
             f->offset);
    return;
  case LJP_FRAME_KERNEL:
    if (f->offset)
      name_add(line, "[kernel]+0x%" PRIx64, f->offset);
    else
      name_add(line, "[kernel]");
    return;
  case LJP_FRAME_PROFILER:
    name_add(line, "[profiler]");
    return;
  case LJP_FRAME_CUT:
    cut = ljp_name_cut(f->offset);
    if (cut)
      name_add(line, "(cut: %s)", cut);
    else
      name_add(line, "(cut: reason %" PRIu64 ")", f->offset);
    return;
  case LJP_FRAME_LABELS:
    name_add_str(line, ljp_profile_str(p, f->name));
    return;
  case LJP_FRAME_NO_STACK:
    name_add(line, "(no stack)");
    return;
  case LJP_FRAME_LOST:
    name_add(line, "(unknown: lost in a gap)");
    return;
  case LJP_FRAME_TOO_MANY:
    name_add(line, "(beyond the limit of stacks)");
    return;
  case LJP_FRAME_BEFORE:
    name_add(line, "(allocated before the session)");
    return;
  case LJP_FRAME_UNRECORDED:
    name_add(line, "(memory that is not recorded)");
    return;
  case LJP_FRAME_COLLECTOR:
    name_add(line, "[garbage collector]");
    return;
  case LJP_FRAME_OUTSIDE:
    name_add(line, "[outside Lua]");
    return;
  case LJP_FRAME_ROOT:
    name_add(line, "all");
    return;
  default:
    name_add(line, "(frame of kind %u: %" PRIu64 ")", f->kind, f->offset);
  }
}

static void name_add_place(struct line *line, const struct ljp_profile *p,
                           const struct ljp_profile_frame *f, unsigned how)
{
  /* Where the current line is not known, that of the definition is shown. */
  uint32_t at = (how & LJP_NAME_LINES) && f->line ? f->line : f->first_line;
  switch (f->kind) {
  case LJP_FRAME_LUA:
  case LJP_FRAME_LUA_INLINED:
    if (f->flags & LJP_PROFILE_UNKNOWN)
      return;
    if (f->file)
      name_add_str(line, ljp_profile_str(p, f->file));
    else
      name_add(line, "?");
    if (at)
      name_add(line, ":%" PRIu32, at);
    return;
  case LJP_FRAME_TRACE:
    if (f->file) {
      name_add_str(line, ljp_profile_str(p, f->file));
      if (f->first_line)
        name_add(line, ":%" PRIu32, f->first_line);
    }
    return;
  case LJP_FRAME_CFUNC:
  case LJP_FRAME_HOST:
  case LJP_FRAME_VM:
    if (f->file && f->line && (how & LJP_NAME_C_LINES)) {
      name_add_str(line, ljp_profile_str(p, f->file));
      name_add(line, ":%" PRIu32, f->line);
    } else if (f->module) {
      name_add_str(
          line, ljp_base_name(ljp_profile_str(p, p->modules[f->module].path)));
    }
  }
}

static const struct ljp_profile_frame *name_frame(const struct ljp_profile *p,
                                                  uint32_t frame)
{
  return &p->frames[frame < p->frame_count ? frame : 0];
}

size_t ljp_frame_function_text(const struct ljp_profile *p, uint32_t frame,
                               char *out, size_t room)
{
  struct line line = {out, room, 0};
  name_add_function(&line, p, name_frame(p, frame));
  return name_end(&line);
}

size_t ljp_frame_place_text(const struct ljp_profile *p, uint32_t frame,
                            unsigned how, char *out, size_t room)
{
  struct line line = {out, room, 0};
  name_add_place(&line, p, name_frame(p, frame), how);
  return name_end(&line);
}

size_t ljp_frame_name(const struct ljp_profile *p, uint32_t frame, unsigned how,
                      char *out, size_t room)
{
  const struct ljp_profile_frame *f = name_frame(p, frame);
  struct line line = {out, room, 0};
  name_add_function(&line, p, f);
  bool c_line = (how & LJP_NAME_C_LINES) && f->name && f->file && f->line;
  if ((name_is_lua(f->kind) && !(f->flags & LJP_PROFILE_UNKNOWN)) ||
      (f->kind == LJP_FRAME_TRACE && f->file) ||
      (!name_is_lua(f->kind) && c_line)) {
    name_add(&line, " ");
    name_add_place(&line, p, f, how);
  }
  if (how & LJP_NAME_SUFFIX) {
    if (f->kind == LJP_FRAME_LUA_INLINED)
      name_add(&line, f->flags & LJP_PROFILE_INLINED ? "_[i]" : "_[j]");
    else if (f->kind == LJP_FRAME_TRACE)
      name_add(&line, "_[j]");
    else if (f->kind == LJP_FRAME_KERNEL)
      name_add(&line, "_[k]");
  }
  return name_end(&line);
}

size_t ljp_function_name(const struct ljp_profile *p, uint32_t function,
                         char *out, size_t room)
{
  return ljp_frame_name(
      p, p->functions[function < p->function_count ? function : 0].frame, 0,
      out, room);
}
