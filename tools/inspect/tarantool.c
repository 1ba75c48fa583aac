/*
** Shows files of Tarantool's profilers as they are: every symbol and event with
** its addresses and numbers.
*/
#include "tools/inspect/tarantool.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "parsers/tarantool/builtins.h"
#include "parsers/tarantool/walk.h"
#include "tools/shared/command.h"
#include "tools/shared/show.h"

/* Tarantool's own words for the numbers of each list of
** src/base/tarantool.h. */
#define LJP_X(name, number, text, ...) [number] = text,
static const char *const state_names[] = {LJP_LJP_STATE_LIST(LJP_X)};
static const char *const symbol_names[] = {LJP_LJS_LIST(LJP_X)};
static const char *const kind_names[] = {LJP_LJM_KIND_LIST(LJP_X)};
static const char *const source_names[] = {LJP_LJM_SOURCE_LIST(LJP_X)};
#undef LJP_X

int ljp_inspect_open(const char *command, const char *file,
                     struct ljp_input *input, bool *tarantool)
{
  char why[LJP_INPUT_ERROR_BYTES];
  if (ljp_input_open(input, file, why)) {
    ljp_command_error(command, "%s: %s", file, why);
    return LJP_EXIT_FAILED;
  }
  ssize_t head = ljp_input_peek(input);
  if (head < 0) {
    ljp_command_error(command, "%s: cannot read: %s", file, strerror(errno));
    ljp_input_close(input);
    return LJP_EXIT_FAILED;
  }
  *tarantool = ljp_tarantool_begins(input->peeked, (size_t)head);
  return LJP_EXIT_OK;
}

/* A line; Tarantool's library functions in bytecode have none. */
static void tarantool_show_line(struct ljp_shower *show, uint64_t line)
{
  if (line <= INT32_MAX)
    ljp_show_number(show, "line", line);
}

static void tarantool_show_symbol(struct ljp_shower *show,
                                  const struct ljp_tarantool_symbol *s)
{
  ljp_show_listed(show, "kind", symbol_names[s->kind], 0);
  if (s->kind == LJP_LJS_TRACE) {
    ljp_show_number(show, "trace", s->key);
    ljp_show_address(show, "proto", s->proto);
  } else {
    ljp_show_address(show, s->kind == LJP_LJS_LFUNC ? "proto" : "address",
                     s->key);
    ljp_show_string(show, s->kind == LJP_LJS_LFUNC ? "chunk" : "name", s->text);
  }
  if (s->kind != LJP_LJS_CFUNC)
    tarantool_show_line(show, s->line);
}

static void tarantool_show_memory(struct ljp_shower *show,
                                  const struct ljp_tarantool_memory *m)
{
  ljp_show_listed(show, "source", source_names[m->source], 0);
  if (m->source == LJP_LJM_TRACE)
    ljp_show_number(show, "trace", m->place);
  else if (m->source != LJP_LJM_INTERNAL)
    ljp_show_address(show, m->source == LJP_LJM_LFUNC ? "proto" : "function",
                     m->place);
  if (m->source == LJP_LJM_LFUNC)
    tarantool_show_line(show, m->line);
  if (m->kind == LJP_LJM_REALLOC) {
    ljp_show_address(show, "old_address", m->old_address);
    ljp_show_number(show, "old_size", m->old_size);
  }
  bool freed = m->kind == LJP_LJM_FREE;
  ljp_show_address(show, freed ? "old_address" : "address", m->address);
  ljp_show_number(show, freed ? "old_size" : "size", m->size);
}

static void tarantool_show_frame(struct ljp_shower *show,
                                 const struct ljp_tarantool_frame *f)
{
  const char *builtin = ljp_tarantool_builtin(f->number);
  ljp_show_item(show);
  switch (f->kind) {
  case LJP_LJP_FRAME_BUILTIN:
    ljp_show_number(show, "builtin", f->number);
    if (builtin)
      ljp_show_string(show, "name", ljp_str(builtin, strlen(builtin)));
    break;
  case LJP_LJP_FRAME_C:
    ljp_show_address(show, "function", f->number);
    break;
  default:
    ljp_show_address(show, "proto", f->number);
    tarantool_show_line(show, f->line);
  }
  ljp_show_item_end(show);
}

/* The same for people: L0x40a1b8:3 C0x55d0 tostring. */
static void tarantool_print_frame(struct ljp_print *out,
                                  const struct ljp_tarantool_frame *f,
                                  bool first)
{
  const char *builtin = ljp_tarantool_builtin(f->number);
  ljp_print_str(out, first ? "" : " ");
  if (f->kind == LJP_LJP_FRAME_BUILTIN && builtin)
    ljp_print_str(out, builtin);
  else if (f->kind == LJP_LJP_FRAME_BUILTIN)
    ljp_print_format(out, "builtin:%" PRIu64, f->number);
  else
    ljp_print_format(out, "%s0x%" PRIx64,
                     f->kind == LJP_LJP_FRAME_C ? "C:" : "Lua:", f->number);
  if (f->kind == LJP_LJP_FRAME_LUA && f->line <= INT32_MAX)
    ljp_print_format(out, ":%" PRIu64, f->line);
}

static void tarantool_show_sample(struct ljp_shower *show,
                                  const struct ljp_tarantool_sample *s)
{
  struct ljp_tarantool_walk walk = ljp_tarantool_walk(s);
  struct ljp_tarantool_frame frame;
  uint64_t address;
  ljp_show_listed(show, "state", state_names[s->state], 0);
  if (s->state == LJP_LJP_TRACE) {
    struct ljp_tarantool_trace trace = ljp_tarantool_trace(s);
    ljp_show_number(show, "trace", trace.number);
    ljp_show_address(show, "proto", trace.proto);
    tarantool_show_line(show, trace.line);
    return;
  }
  if (ljp_tarantool_has_guest(s->state)) {
    ljp_show_list(show, "guest");
    for (bool first = true; ljp_tarantool_guest(&walk, &frame); first = false)
      if (show->json)
        tarantool_show_frame(show, &frame);
      else
        tarantool_print_frame(show->out, &frame, first);
    ljp_show_list_end(show);
  }
  ljp_show_list(show, "host");
  for (bool first = true; ljp_tarantool_host(&walk, &address); first = false)
    ljp_print_format(show->out,
                     show->json ? "%s\"0x%" PRIx64 "\"" : "%s0x%" PRIx64,
                     first        ? ""
                     : show->json ? ","
                                  : " ",
                     address);
  ljp_show_list_end(show);
}

static void tarantool_show_finish(struct ljp_shower *show,
                                  const struct ljp_tarantool_reader *r)
{
  ljp_show_number(show, "symbols", r->symbols);
  ljp_show_number(show, r->memory ? "events" : "samples", r->events);
  ljp_show_bool(show, "whole", r->whole);
  if (r->rest)
    ljp_show_number(show, "bytes_behind", r->rest);
  if (!r->whole)
    ljp_show_string(show, "why", ljp_str(r->error, strlen(r->error)));
}

static void tarantool_show(struct ljp_shower *show,
                           const struct ljp_tarantool_reader *r,
                           const struct ljp_tarantool_event *e)
{
  const char *type = e->what == LJP_TARANTOOL_HEAD     ? "part"
                     : e->what == LJP_TARANTOOL_SYMBOL ? "symbol"
                     : e->what == LJP_TARANTOOL_SAMPLE ? "sample"
                     : e->what == LJP_TARANTOOL_FINISH
                         ? "finish"
                         : kind_names[e->u.memory.kind];
  ljp_show_begin(show, type);
  ljp_show_number(show, "offset", e->offset);
  switch (e->what) {
  case LJP_TARANTOOL_HEAD:
    ljp_show_string(show, "format",
                    ljp_str(e->u.head.magic, LJP_TARANTOOL_MAGIC_BYTES));
    ljp_show_number(show, "version", e->u.head.version);
    break;
  case LJP_TARANTOOL_SYMBOL:
    tarantool_show_symbol(show, &e->u.symbol);
    break;
  case LJP_TARANTOOL_MEMORY:
    tarantool_show_memory(show, &e->u.memory);
    break;
  case LJP_TARANTOOL_SAMPLE:
    tarantool_show_sample(show, &e->u.sample);
    break;
  case LJP_TARANTOOL_FINISH:
    tarantool_show_finish(show, r);
    break;
  }
  ljp_show_end(show);
}

int ljp_dump_tarantool(const char *file, const struct ljp_input *input,
                       bool json)
{
  static struct ljp_print out;
  struct ljp_tarantool_reader reader;
  const struct ljp_tarantool_event *e;
  struct ljp_shower show = {.out = &out, .json = json};
  enum ljp_status status = ljp_tarantool_init(&reader, input);
  ljp_print_begin(&out, 1);
  while (!status && !out.error) {
    if ((status = ljp_tarantool_next(&reader, &e)))
      break;
    tarantool_show(&show, &reader, e);
    if (e->what == LJP_TARANTOOL_FINISH)
      break;
  }
  int code = ljp_command_end("dump", &out, LJP_EXIT_OK);
  if (status) {
    ljp_command_error("dump", "%s: a file of Tarantool's profilers: %s", file,
                      reader.error);
    code = LJP_EXIT_FAILED;
  }
  ljp_tarantool_fini(&reader);
  return code;
}

int ljp_check_tarantool(const char *file, const struct ljp_input *input,
                        bool json)
{
  static struct ljp_print out;
  struct ljp_tarantool_reader reader;
  const struct ljp_tarantool_event *e;
  struct ljp_shower show = {.out = &out, .json = json};
  enum ljp_status status = ljp_tarantool_init(&reader, input);
  while (!status && !(status = ljp_tarantool_next(&reader, &e)) &&
         e->what != LJP_TARANTOOL_FINISH)
    continue;
  bool whole = !status && reader.whole && !reader.rest;
  ljp_print_begin(&out, 1);
  if (!status) {
    ljp_show_begin(&show, reader.memory ? "memprof" : "sysprof");
    tarantool_show_finish(&show, &reader);
    ljp_show_end(&show);
  }
  int code =
      ljp_command_end("check", &out, whole ? LJP_EXIT_OK : LJP_EXIT_FAILED);
  if (status) {
    ljp_command_error("check", "%s: a file of Tarantool's profilers: %s", file,
                      reader.error);
    code = LJP_EXIT_FAILED;
  }
  ljp_tarantool_fini(&reader);
  return code;
}
