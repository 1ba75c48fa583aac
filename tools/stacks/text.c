/*
** Stacks as text.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "tools/stacks/stacks.h"

static struct ljp_str text_of(const char *text)
{
  return ljp_str(text, strlen(text));
}

/* -- Frames ---------------------------------------------------------------- */

/* A few builtins are Lua functions in bytecode: their chunk is their name. */
static bool text_is_builtin(const struct ljp_stacks_text_line *line)
{
  return line->number[3] == UINT32_MAX;
}

void ljp_stacks_function(const struct ljp_stacks_text_line *line, char *out,
                         size_t room)
{
  switch (line->kind) {
  case LJP_STACKS_LUA:
    if (line->number[4] & LJP_PROTO_UNKNOWN)
      snprintf(out, room, "?");
    else if (line->number[4] & LJP_PROTO_MAIN)
      snprintf(out, room, "main chunk");
    else if (text_is_builtin(line))
      snprintf(out, room, "%s", line->text[1]);
    else if (*line->text[0])
      snprintf(out, room, "%s", line->text[0]);
    else
      snprintf(out, room, "function:%" PRIu64, line->number[3]);
    return;
  case LJP_STACKS_BUILTIN:
  case LJP_STACKS_VM:
    snprintf(out, room, "%s", line->text[0]);
    return;
  default:
    snprintf(out, room, "%s",
             line->symbol && *line->symbol->frames->function
                 ? line->symbol->frames->function
                 : line->place);
  }
}

void ljp_stacks_place(const struct ljp_stacks_text_line *line, char *out,
                      size_t room)
{
  char name[LJP_CHUNK_NAME_BYTES];
  const struct ljp_symbol_frame *frame =
      line->symbol ? line->symbol->frames : NULL;
  *out = '\0';
  if (line->kind == LJP_STACKS_LUA && !text_is_builtin(line)) {
    struct ljp_str chunk = ljp_chunk_name(text_of(line->text[1]), name);
    snprintf(out, room, "%.*s:%" PRIu64, (int)chunk.len, chunk.data,
             line->number[2] ? line->number[2] : line->number[3]);
  } else if (frame && *frame->file && frame->line) {
    struct ljp_str file = ljp_base_name(text_of(frame->file));
    snprintf(out, room, "%.*s:%" PRIu32, (int)file.len, file.data, frame->line);
  } else if (frame && *frame->function) {
    snprintf(out, room, "%.*s", (int)strcspn(line->place, "+"), line->place);
  }
}

static void text_frame(struct ljp_print *out,
                       const struct ljp_stacks_text_line *line)
{
  enum { ROOM = 1024, COLUMN = 36 };
  char function[ROOM], place[ROOM];
  ljp_stacks_function(line, function, sizeof function);
  ljp_stacks_place(line, place, sizeof place);
  ljp_print_str(out, "  ");
  ljp_print_safe(out, text_of(function));
  if (line->kind == LJP_STACKS_BUILTIN)
    snprintf(place, sizeof place, "builtin");
  else if (line->kind == LJP_STACKS_VM)
    snprintf(place, sizeof place, "the VM");
  if (*place) {
    ljp_print_format(
        out, "%*s",
        strlen(function) < COLUMN ? (int)(COLUMN - strlen(function)) : 2, "");
    ljp_print_safe(out, text_of(place));
  }
  ljp_print_str(out, "\n");
}

/* -- Threads and coroutines ------------------------------------------------ */

/* The letters of /proc/PID/stat. */
static const char *text_state(const struct ljp_stacks_text_line *line)
{
  static const struct {
    char letter;
    const char *text;
  } states[] = {{'R', "running"},
                {'S', "waiting"},
                {'D', "waiting, cannot be interrupted"},
                {'T', "stopped"},
                {'t', "stopped by a tracer"},
                {'Z', "ended"}};
  for (size_t i = 0; i < sizeof states / sizeof *states; i++)
    if (*line->text[1] == states[i].letter)
      return states[i].text;
  return "in an unknown state";
}

static void text_thread(struct ljp_print *out,
                        const struct ljp_stacks_text_line *line)
{
  const char *how = ljp_name_vmstate(line->number[3]);
  ljp_print_format(out, "\nThread %" PRIu64 " \"", line->number[0]);
  ljp_print_safe(out, text_of(line->text[7]));
  ljp_print_format(out, "\": %s", text_state(line));
  if (*line->text[6]) {
    ljp_print_str(out, " in ");
    ljp_print_safe(out, text_of(line->text[6]));
  }
  if (line->number[2])
    ljp_print_format(out, "; VM %" PRIu64, line->number[2]);
  if (line->number[2] && *line->text[1] == 'R' && how)
    ljp_print_format(out, ", %s", how);
  ljp_print_str(out, "\n");
  if (line->number[5] & LJP_STACKS_RUNS)
    ljp_print_str(out, "  (no stack: it runs, and could not be stopped)\n");
  if (line->number[5] & LJP_STACKS_CHANGING)
    ljp_print_str(out, "  (changing: it went on while it was read)\n");
}

static void text_coroutine(struct ljp_print *out,
                           const struct ljp_stacks_text_line *line)
{
  ljp_print_format(out, "\nCoroutine 0x%" PRIx64 " of VM %" PRIu64 ": %s\n",
                   line->number[1], line->number[0],
                   line->number[2] ? "suspended" : "not started");
  if (line->number[4] & LJP_STACKS_CHANGING)
    ljp_print_str(out, "  (changing: it went on while it was read)\n");
}

/* The stack that ends before this line was cut. */
static void text_cut(struct ljp_print *out, uint64_t *cut)
{
  const char *why = *cut ? ljp_name_cut(*cut) : NULL;
  if (*cut)
    ljp_print_format(out, "  ... (%s)\n", why ? why : "cut");
  *cut = 0;
}

static void text_head(struct ljp_print *out, const struct ljp_talk *talk,
                      const struct ljp_stacks_lines *lines)
{
  uint64_t threads = 0, coroutines = 0;
  for (size_t i = 0; i < lines->count; i++) {
    threads += lines->list[i].kind == LJP_STACKS_THREAD;
    coroutines += lines->list[i].kind == LJP_STACKS_COROUTINE;
  }
  ljp_print_safe(out, text_of(talk->name));
  ljp_print_format(
      out, ": %" PRIu64 " thread%s, %" PRIu64 " suspended coroutine%s\n",
      threads, threads == 1 ? "" : "s", coroutines, coroutines == 1 ? "" : "s");
}

void ljp_stacks_show_text(struct ljp_print *out, const struct ljp_talk *talk,
                          const struct ljp_stacks_lines *lines)
{
  uint64_t cut = 0;
  text_head(out, talk, lines);
  for (size_t i = 0; i < lines->count; i++) {
    const struct ljp_stacks_text_line *line = &lines->list[i];
    switch (line->kind) {
    case LJP_STACKS_HEAD:
      break;
    case LJP_STACKS_THREAD:
      text_cut(out, &cut);
      text_thread(out, line);
      cut = line->number[4];
      break;
    case LJP_STACKS_COROUTINE:
      text_cut(out, &cut);
      text_coroutine(out, line);
      cut = line->number[3];
      break;
    case LJP_STACKS_LOCAL:
      ljp_print_str(out, "      ");
      ljp_print_safe(out, text_of(line->text[0]));
      ljp_print_str(out, " = ");
      ljp_print_source(out, text_of(line->text[1]));
      ljp_print_str(out, "\n");
      break;
    case LJP_STACKS_GAP: {
      uint64_t gap = line->number[0];
      text_cut(out, &gap);
      break;
    }
    case LJP_STACKS_END:
      text_cut(out, &cut);
      if (!line->number[1])
        ljp_print_format(out,
                         "\nCoroutines may be missing: the search ended after "
                         "%" PRIu64 " objects.\n",
                         line->number[0]);
      break;
    default:
      text_frame(out, line);
    }
  }
}
