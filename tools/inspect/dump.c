/*
** ljprof dump: shows every record with all its fields. Stacks are resolved to
** frames.
*/
#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"
#include "tools/inspect/dump.h"
#include "tools/inspect/tarantool.h"
#include "tools/shared/command.h"

static const char help[] =
    "Usage: ljprof dump [--json] FILE\n"
    "Shows every block, definition, event and gap of a stream with all its "
    "fields,\n"
    "in the order of the file. Stacks are shown leaf first.\n"
    "\n"
    "  --json   write one JSON object per line. Numbers that have a name are "
    "shown\n"
    "           by name; addresses and session ids are strings. In a string "
    "that\n"
    "           is not UTF-8 each wrong byte becomes U+FFFD; a second key with "
    "the\n"
    "           suffix \"_hex\" holds its bytes.\n"
    "  --help   show this help\n"
    "\n"
    "Damage is shown where it occurs and skipped. To find out whether a stream "
    "is\n"
    "whole, use 'ljprof check'.\n"
    "\n"
    "Exit code: 0 read to the end, 1 not readable or not a stream, 2 wrong "
    "usage.\n";

int ljp_command_dump(int argc, char **argv)
{
  static struct ljp_reader reader;
  static struct ljp_print out;
  const struct ljp_item *item;
  const char *file;
  bool json = false;
  const struct ljp_flag flags[] = {{"--json", &json, NULL}};
  int code = ljp_command_options("dump", help, argc, argv, flags, 1, &file);
  if (code >= 0)
    return code;
  struct ljp_input input;
  bool tarantool;
  if ((code = ljp_inspect_open("dump", file, &input, &tarantool)))
    return code;
  if (tarantool)
    return ljp_dump_tarantool(file, &input, json);
  enum ljp_status status = ljp_reader_input(&reader, &input);
  ljp_print_begin(&out, 1);
  code = LJP_EXIT_OK;
  while (!status && !out.error) {
    status = ljp_reader_next(&reader, &item);
    if (status)
      break;
    ljp_dump_item(&out, &reader, item, json);
    if (item->what == LJP_ITEM_FINISH)
      break;
  }
  code = ljp_command_end("dump", &out, code);
  if (status) {
    ljp_command_error("dump", "%s: %s", file, reader.error);
    code = LJP_EXIT_FAILED;
  }
  ljp_reader_fini(&reader);
  return code;
}
