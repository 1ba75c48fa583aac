/*
** Names of numbers, from the lists of format.h; lines for frames.
*/
#include "parsers/stream/names.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/status.h"

#define NAME(name, number, text)                                               \
  case number:                                                                 \
    return text;
#define NAMES(function, list)                                                  \
  const char *function(uint64_t number)                                        \
  {                                                                            \
    switch (number) {                                                          \
      list(NAME)                                                               \
    }                                                                          \
    return NULL;                                                               \
  }

NAMES(ljp_name_cut, LJP_CUT_LIST)
NAMES(ljp_name_vmstate, LJP_VMSTATE_LIST)
NAMES(ljp_name_mem_op, LJP_MEM_OP_LIST)
NAMES(ljp_name_mem_type, LJP_MEM_TYPE_LIST)
NAMES(ljp_name_mem_flag, LJP_MEM_FLAG_LIST)
NAMES(ljp_name_gap, LJP_GAP_LIST)
NAMES(ljp_name_bad, LJP_BAD_LIST)
NAMES(ljp_name_loss, LJP_LOSS_LIST)
NAMES(ljp_name_exact, LJP_EXACT_LIST)
static NAMES(name_producer, LJP_PRODUCER_LIST) static NAMES(name_gc_phase, LJP_GC_PHASE_LIST) static NAMES(name_trace_what, LJP_TRACE_WHAT_LIST) static NAMES(
    name_interval_why,
    LJP_INTERVAL_WHY_LIST) static NAMES(name_epoch_why,
                                        LJP_EPOCH_WHY_LIST) static NAMES(name_note,
                                                                         LJP_NOTE_LIST) static NAMES(name_status,
                                                                                                     LJP_STATUS_LIST)

    const char *ljp_name_record(uint64_t tag)
{
  switch (tag) {
#define LJP_X(name, number, text, event) NAME(name, number, text)
    LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  }
  return NULL;
}

const char *ljp_name_frame_kind(uint64_t kind)
{
  switch (kind) {
#define LJP_X(name, number, shape, text) NAME(name, number, text)
    LJP_FRAME_KIND_LIST(LJP_X)
#undef LJP_X
  }
  return NULL;
}

const char *ljp_name_shown(enum ljp_show show, uint64_t number)
{
  switch (show) {
  case LJP_SHOW_RECORD:
    return ljp_name_record(number);
  case LJP_SHOW_PRODUCER:
    return name_producer(number);
  case LJP_SHOW_VMSTATE:
    return ljp_name_vmstate(number);
  case LJP_SHOW_GC_PHASE:
    return name_gc_phase(number);
  case LJP_SHOW_TRACE_WHAT:
    return name_trace_what(number);
  case LJP_SHOW_INTERVAL_WHY:
    return name_interval_why(number);
  case LJP_SHOW_EPOCH_WHY:
    return name_epoch_why(number);
  case LJP_SHOW_NOTE:
    return name_note(number);
  case LJP_SHOW_LOSS:
    return ljp_name_loss(number);
  case LJP_SHOW_STATUS:
    return name_status(number);
  case LJP_SHOW_DEC:
  case LJP_SHOW_HEX:
  case LJP_SHOW_TEXT:
  case LJP_SHOW_BYTES:
    break;
  }
  return NULL;
}

void ljp_frame_view(const struct ljp_model *model,
                    const struct ljp_rec_node *node,
                    struct ljp_frame_view *view)
{
  *view = (struct ljp_frame_view){.node = node};
  switch (node->kind) {
  case LJP_FRAME_LUA:
  case LJP_FRAME_LUA_INLINED:
    view->proto = ljp_model_proto(model, node->ref);
    view->missing = !view->proto;
    break;
  case LJP_FRAME_CFUNC:
  case LJP_FRAME_HOST:
  case LJP_FRAME_VM:
    view->module = node->ref ? ljp_model_module(model, node->ref) : NULL;
    view->missing = node->ref && !view->module;
    break;
  case LJP_FRAME_BUILTIN:
    view->builtin = ljp_model_builtin(model, node->value);
    view->missing = !view->builtin;
    break;
  case LJP_FRAME_TRACE:
    view->trace = ljp_model_trace(model, node->value);
    view->missing = !view->trace;
    break;
  }
}

/* Appends to a line that has room bytes; counts what fits. */
struct line {
  char *out;
  size_t room, len;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line,
                                                      const char *format, ...)
{
  va_list args;
  size_t left = line->room - line->len;
  va_start(args, format);
  int n = vsnprintf(line->out + line->len, left, format, args);
  va_end(args);
  if (n > 0)
    line->len += (size_t)n < left ? (size_t)n : left - 1;
}

/* Strings may hold any bytes, NUL too. */
static void add_string(struct line *line, struct ljp_str s)
{
  size_t left = line->room - line->len - 1;
  size_t n = s.len < left ? s.len : left;
  if (n)
    memcpy(line->out + line->len, s.data, n);
  line->len += n;
  line->out[line->len] = '\0';
}

static struct ljp_str base_name(struct ljp_str path)
{
  const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
  if (!slash || slash + 1 == path.data + path.len)
    return path;
  uint32_t skip = (uint32_t)(slash + 1 - path.data);
  return (struct ljp_str){slash + 1, path.len - skip};
}

/* As LuaJIT shows them: a file or a given name, else the source's begin. */
static void add_chunk(struct line *line, struct ljp_str chunk)
{
  if (!chunk.len) {
    add(line, "?");
  } else if (*chunk.data == '@' || *chunk.data == '=') {
    add_string(line, (struct ljp_str){chunk.data + 1, chunk.len - 1});
  } else {
    const char *end = memchr(chunk.data, '\n', chunk.len);
    uint32_t n = end ? (uint32_t)(end - chunk.data) : chunk.len;
    bool cut = end || n > 40;
    add(line, "[string \"");
    add_string(line, (struct ljp_str){chunk.data, n > 40 ? 40 : n});
    add(line, cut ? "...\"]" : "\"]");
  }
}

static void add_lua(struct line *line, const struct ljp_rec_proto *proto,
                    uint64_t at)
{
  if (proto->flags & LJP_PROTO_MAIN)
    add(line, "main chunk ");
  else if (proto->name.len) {
    add_string(line, proto->name);
    add(line, " ");
  } else {
    add(line, "function:%" PRIu64 " ", proto->first_line);
  }
  add_chunk(line, proto->chunk);
  if (at)
    add(line, ":%" PRIu64, at);
}

size_t ljp_frame_text(const struct ljp_model *model,
                      const struct ljp_frame_view *view, char *out, size_t room)
{
  const struct ljp_rec_node *node = view->node;
  const char *lost = model->lossy ? "unknown (lost in a gap)" : "unknown";
  struct line line = {out, room, 0};
  if (!room)
    return 0;
  *out = '\0';
  if (view->proto)
    add_lua(&line, view->proto, node->value);
  else if (view->builtin)
    add_string(&line, view->builtin->name);
  else if (view->trace) {
    const struct ljp_rec_trace *trace = view->trace;
    const struct ljp_rec_proto *proto = ljp_model_proto(model, trace->proto);
    add(&line, "trace %" PRIu64, trace->number);
    if (proto) {
      add(&line, " ");
      add_lua(&line, proto, trace->line);
    }
  } else if (view->module) {
    add_string(&line, base_name(view->module->path));
    add(&line, "+0x%" PRIx64, node->value);
  } else if (node->kind == LJP_FRAME_CUT) {
    const char *why = ljp_name_cut(node->value);
    if (why)
      add(&line, "%s", why);
    else
      add(&line, "%" PRIu64, node->value);
  } else if (view->missing) {
    add(&line, "%s", lost);
    if (ljp_frame_shape(node->kind) != LJP_SHAPE_NUM)
      add(&line, " %" PRIu64, node->ref);
    add(&line,
        node->kind == LJP_FRAME_BUILTIN || node->kind == LJP_FRAME_TRACE ||
                ljp_frame_shape(node->kind) == LJP_SHAPE_LUA
            ? ":%" PRIu64
            : "+0x%" PRIx64,
        node->value);
  } else {
    add(&line, "0x%" PRIx64, node->value);
  }
  return line.len;
}
