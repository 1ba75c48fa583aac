/*
** ljprof dump: every record with every field, stacks resolved to frames.
*/
#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"
#include "tools/shared/command.h"
#include "tools/inspect/dump.h"

static const char help[] =
    "Usage: ljprof dump [--json] FILE\n"
    "Shows every block, definition, event and gap of a stream in the order\n"
    "of the file, with every field. Stacks are shown leaf first.\n\n"
    "  --json   one JSON object a line. Numbers that stand for something are\n"
    "           shown by name if they have one; addresses and session ids are\n"
    "           strings. A string that is not UTF-8 has U+FFFD for each wrong\n"
    "           byte, and stands beside it in hex under its name + \"_hex\".\n"
    "  --help   this text\n\n"
    "Damage is shown where it is and stepped over. Exit code: 0 read to the\n"
    "end, 1 not a stream or not readable, 2 called wrongly. Whether a stream\n"
    "is whole is what 'ljprof check' tells.\n";

int ljp_command_dump(int argc, char **argv)
{
  static struct ljp_reader reader;
  static struct ljp_print out;
  const struct ljp_item *event;
  const char *file;
  bool json = false;
  const struct ljp_flag flags[] = {{"--json", &json, NULL}};
  int code = ljp_command_options("dump", help, argc, argv, flags, 1, &file);
  if (code >= 0)
    return code;
  enum ljp_status status = ljp_reader_open(&reader, file);
  ljp_print_begin(&out, 1);
  code = LJP_EXIT_OK;
  while (!status && !out.error) {
    status = ljp_reader_next(&reader, &event);
    if (status)
      break;
    ljp_dump_event(&out, &reader, event, json);
    if (event->what == LJP_ITEM_FINISH)
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
