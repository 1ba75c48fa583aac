/*
** Stacks as JSON.
*/
#include <inttypes.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "tools/stacks/stacks.h"

/* What is open: its commas. */
struct json {
  struct ljp_print *out;
  bool entry, frame, local; /* there was one before */
  bool in_entry, in_frame, in_locals;
};

static void json_text(struct ljp_print *out, const char *key, const char *text)
{
  ljp_print_format(out, "\"%s\":", key);
  ljp_print_json(out, ljp_str(text, strlen(text)));
}

static void json_end_frame(struct json *j)
{
  if (j->in_locals)
    ljp_print_str(j->out, "]");
  if (j->in_frame)
    ljp_print_str(j->out, "}");
  j->in_frame = j->in_locals = j->local = false;
}

static void json_end_entry(struct json *j)
{
  json_end_frame(j);
  if (j->in_entry)
    ljp_print_str(j->out, "]}");
  j->in_entry = j->frame = false;
}

static void json_begin_entry(struct json *j)
{
  json_end_entry(j);
  ljp_print_str(j->out, j->entry ? ",\n{" : "\n{");
  j->entry = j->in_entry = true;
}

/* How the frames of an entry begin. */
static void json_frames(struct json *j, uint64_t cut, uint64_t flags)
{
  const char *why = cut ? ljp_name_cut(cut) : NULL;
  ljp_print_format(j->out, ",\"changing\":%s",
                   flags & LJP_STACKS_CHANGING ? "true" : "false");
  if (cut) {
    ljp_print_str(j->out, ",");
    json_text(j->out, "cut", why ? why : "cut");
  }
  ljp_print_str(j->out, ",\"frames\":[");
}

static void json_thread(struct json *j, const struct ljp_stacks_text_line *line)
{
  const char *how = ljp_name_vmstate(line->number[3]);
  json_begin_entry(j);
  ljp_print_format(j->out, "\"tid\":%" PRIu64 ",", line->number[0]);
  json_text(j->out, "name", line->text[7]);
  ljp_print_str(j->out, ",");
  json_text(j->out, "state", line->text[1]);
  ljp_print_str(j->out, ",");
  json_text(j->out, "wchan", line->text[6]);
  ljp_print_format(j->out, ",\"vm\":%" PRIu64 ",", line->number[2]);
  json_text(j->out, "vm_state", how ? how : "unknown");
  ljp_print_format(j->out, ",\"read\":%s",
                   line->number[5] & LJP_STACKS_RUNS ? "false" : "true");
  json_frames(j, line->number[4], line->number[5]);
}

static void json_coroutine(struct json *j,
                           const struct ljp_stacks_text_line *line)
{
  json_begin_entry(j);
  ljp_print_format(
      j->out, "\"address\":\"0x%" PRIx64 "\",\"vm\":%" PRIu64 ",\"started\":%s",
      line->number[1], line->number[0], line->number[2] ? "true" : "false");
  json_frames(j, line->number[3], line->number[4]);
}

static const char *json_kind(const struct ljp_stacks_text_line *line)
{
  switch (line->kind) {
  case LJP_STACKS_LUA:
    return line->number[5] ? "inlined" : "Lua";
  case LJP_STACKS_BUILTIN:
    return "builtin";
  case LJP_STACKS_C:
    return "C";
  case LJP_STACKS_VM:
    return "VM";
  case LJP_STACKS_GAP:
    return "gap";
  default:
    return "host";
  }
}

static void json_frame(struct json *j, const struct ljp_stacks_text_line *line)
{
  char text[1024];
  json_end_frame(j);
  ljp_print_str(j->out, j->frame ? ",\n {" : "\n {");
  j->frame = j->in_frame = true;
  json_text(j->out, "kind", json_kind(line));
  ljp_stacks_function(line, text, sizeof text);
  ljp_print_str(j->out, ",");
  json_text(j->out, "function", text);
  ljp_stacks_place(line, text, sizeof text);
  ljp_print_str(j->out, ",");
  json_text(j->out, "place", text);
}

static void json_local(struct json *j, const struct ljp_stacks_text_line *line)
{
  if (!j->in_frame)
    return;
  ljp_print_str(j->out, !j->in_locals ? ",\"locals\":[{" : ",{");
  j->in_locals = true;
  json_text(j->out, "name", line->text[0]);
  ljp_print_str(j->out, ",");
  json_text(j->out, "value", line->text[1]);
  ljp_print_str(j->out, "}");
}

void ljp_stacks_show_json(struct ljp_print *out, const struct ljp_talk *talk,
                          const struct ljp_stacks_lines *lines)
{
  struct json j = {.out = out};
  bool coroutines = false;
  ljp_print_format(out, "{\"pid\":%d,", (int)talk->pid);
  json_text(out, "program", talk->comm);
  ljp_print_str(out, ",\"threads\":[");
  for (size_t i = 0; i < lines->count; i++) {
    const struct ljp_stacks_text_line *line = &lines->list[i];
    bool begins =
        line->kind == LJP_STACKS_COROUTINE || line->kind == LJP_STACKS_END;
    if (begins && !coroutines) {
      json_end_entry(&j);
      ljp_print_str(out, "],\n\"coroutines\":[");
      coroutines = true;
      j.entry = false;
    }
    if (line->kind == LJP_STACKS_THREAD && !coroutines)
      json_thread(&j, line);
    else if (line->kind == LJP_STACKS_COROUTINE)
      json_coroutine(&j, line);
    else if (line->kind == LJP_STACKS_LOCAL)
      json_local(&j, line);
    else if (line->kind == LJP_STACKS_END)
      break;
    else if (j.in_entry)
      json_frame(&j, line);
  }
  json_end_entry(&j);
  ljp_print_format(out, "],\n\"objects\":%" PRIu64 ",\"all_objects\":%s}\n",
                   lines->list[lines->count - 1].number[0],
                   lines->list[lines->count - 1].number[1] ? "true" : "false");
}
