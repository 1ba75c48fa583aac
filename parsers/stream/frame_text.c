/*
** Frames of the stream as text. Any thread.
*/
#include "parsers/stream/frame_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parsers/stream/labels.h"
#include "parsers/stream/names.h"

void ljp_frame_resolve(const struct ljp_model *model,
                       const struct ljp_rec_node *node,
                       struct ljp_frame_refs *refs)
{
  *refs = (struct ljp_frame_refs){.node = node};
  switch (node->kind) {
  case LJP_FRAME_LUA:
  case LJP_FRAME_LUA_INLINED:
    refs->proto = ljp_model_proto(model, node->ref);
    refs->missing = !refs->proto;
    break;
  case LJP_FRAME_CFUNC:
  case LJP_FRAME_HOST:
  case LJP_FRAME_VM:
    refs->module = node->ref ? ljp_model_module(model, node->ref) : NULL;
    refs->missing = node->ref && !refs->module;
    break;
  case LJP_FRAME_BUILTIN:
    refs->builtin = ljp_model_builtin(model, node->value);
    refs->missing = !refs->builtin;
    break;
  case LJP_FRAME_TRACE:
    refs->trace = ljp_model_trace(model, node->value);
    refs->missing = !refs->trace;
    break;
  case LJP_FRAME_LABELS:
    refs->labels = ljp_model_labels(model, node->value);
    refs->missing = !refs->labels;
    break;
  }
}

/* A line in room bytes, room > 0. len counts what was written; text beyond
** the room is dropped. Always terminated. */
struct line {
  char *out;
  size_t room, len;
};

__attribute__((format(printf, 2, 3))) static void
text_add(struct line *line, const char *format, ...)
{
  va_list args;
  size_t left = line->room - line->len;
  va_start(args, format);
  int n = vsnprintf(line->out + line->len, left, format, args);
  va_end(args);
  if (n > 0)
    line->len += (size_t)n < left ? (size_t)n : left - 1;
}

/* A string may hold any bytes, NUL too. */
static void text_add_string(struct line *line, struct ljp_str s)
{
  size_t left = line->room - line->len - 1;
  size_t n = s.len < left ? s.len : left;
  if (n)
    memcpy(line->out + line->len, s.data, n);
  line->len += n;
  line->out[line->len] = '\0';
}

static void text_add_chunk(struct line *line, const struct ljp_rec_proto *proto)
{
  char room[LJP_CHUNK_NAME_BYTES];
  if (!(proto->flags & LJP_PROTO_UNKNOWN))
    text_add_string(line, ljp_chunk_name(proto->chunk, room));
  else
    text_add(line, "?");
}

static void text_add_lua(struct line *line, const struct ljp_rec_proto *proto,
                         uint64_t at)
{
  if (proto->first_line == UINT32_MAX) { /* a builtin in bytecode */
    text_add_string(line, proto->chunk);
    return;
  }
  if (proto->flags & LJP_PROTO_MAIN)
    text_add(line, "main chunk ");
  else if (proto->name.len) {
    text_add_string(line, proto->name);
    text_add(line, " ");
  } else {
    text_add(line, "function:%" PRIu64 " ", proto->first_line);
  }
  text_add_chunk(line, proto);
  if (at)
    text_add(line, ":%" PRIu64, at);
}

/* route="/a" tenant="x" */
static void text_add_labels(struct line *line, struct ljp_str set)
{
  struct ljp_str key, value;
  while (ljp_labels_next(&set, &key, &value)) {
    text_add(line, line->len ? " " : "");
    text_add_string(line, key);
    text_add(line, "=\"");
    text_add_string(line, value);
    text_add(line, "\"");
  }
}

size_t ljp_frame_text(const struct ljp_model *model,
                      const struct ljp_frame_refs *refs, char *out, size_t room)
{
  const struct ljp_rec_node *node = refs->node;
  const char *lost = model->lossy ? "unknown (lost in a gap)" : "unknown";
  struct line line = {out, room, 0};
  if (!room)
    return 0;
  *out = '\0';
  if (refs->proto)
    text_add_lua(&line, refs->proto, node->value);
  else if (refs->builtin)
    text_add_string(&line, refs->builtin->name);
  else if (refs->trace) {
    const struct ljp_rec_trace *trace = refs->trace;
    const struct ljp_rec_proto *proto = ljp_model_proto(model, trace->proto);
    text_add(&line, "trace %" PRIu64, trace->number);
    if (proto) {
      text_add(&line, " ");
      text_add_lua(&line, proto, trace->line);
    }
  } else if (refs->labels) {
    text_add_labels(&line, refs->labels->labels);
  } else if (refs->module) {
    text_add_string(&line, ljp_base_name(refs->module->path));
    text_add(&line, "+0x%" PRIx64, node->value);
  } else if (node->kind == LJP_FRAME_CUT) {
    const char *why = ljp_name_cut(node->value);
    if (why)
      text_add(&line, "%s", why);
    else
      text_add(&line, "%" PRIu64, node->value);
  } else if (refs->missing) {
    text_add(&line, "%s", lost);
    if (ljp_frame_shape(node->kind) != LJP_SHAPE_NUM)
      text_add(&line, " %" PRIu64, node->ref);
    text_add(&line,
             node->kind == LJP_FRAME_BUILTIN || node->kind == LJP_FRAME_TRACE ||
                     node->kind == LJP_FRAME_LABELS ||
                     ljp_frame_shape(node->kind) == LJP_SHAPE_LUA
                 ? ":%" PRIu64
                 : "+0x%" PRIx64,
             node->value);
  } else {
    text_add(&line, "0x%" PRIx64, node->value);
  }
  return line.len;
}
