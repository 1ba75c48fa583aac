/*
** ljprof heap: options, and the choice of a view.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/heap/view.h"
#include "tools/shared/command.h"

static const char help[] =
    "Usage: ljprof heap [OPTION]... FILE\n"
    "Shows what a heap snapshot holds, and what keeps it alive. What an object "
    "retains\n"
    "would go with it: its own bytes, and those of all objects that can be "
    "reached only\n"
    "through it. misc.memprof.snapshot(\"FILE\") writes a snapshot. Without an "
    "option for\n"
    "a view: what keeps the most alive, with a shortest path from a root; "
    "kinds "
    "and\n"
    "types of objects.\n"
    "\n"
    "Views:\n"
    "  --path WHAT         who holds these objects: the ways from a root, with "
    "the\n"
    "                      number of objects for each\n"
    "  --retained-by WHAT  what would go if nothing held these objects, by "
    "kind\n"
    "  --dominators        who keeps what alive, as a tree\n"
    "  --coroutines        coroutines by the stack on which they wait, with "
    "what they\n"
    "                      hold\n"
    "  --strings           strings by what they look like and by who holds "
    "them, and\n"
    "                      the largest\n"
    "\n"
    "WHAT is an address (0x7f0a1c2b4e80, as --json and dump show it) or an "
    "extended\n"
    "regular expression, which is looked for in the contents of strings, in "
    "kinds of\n"
    "objects, and in the keys under which tables hold objects.\n"
    "\n"
    "Options:\n"
    "  --snapshot N  show the Nth snapshot of the file (the last one)\n"
    "  --depth N     levels of --dominators (5)\n"
    "  --top N       rows of a table (20)\n"
    "  --json        write one JSON object\n"
    "  --help        show this help\n"
    "\n"
    "Exit code: 0 success, 1 not readable, damaged or without a snapshot, 2 "
    "wrong usage.\n";

struct heap_options {
  const char *path, *retained_by, *snapshot, *depth, *top;
  bool dominators, coroutines, strings, json;
};

typedef enum ljp_status heap_show(struct ljp_heap_view *v,
                                  struct ljp_heap_show *s);

static bool heap_read_number(const char *option, const char *text,
                             uint32_t most, uint32_t *number)
{
  char *end = NULL;
  unsigned long n = text ? strtoul(text, &end, 10) : 0;
  if (!text)
    return true;
  if (*text < '0' || *text > '9' || *end || n < 1 || n > most) {
    ljp_command_error("heap",
                      "%s wants a number from 1 to %" PRIu32 ", not '%s'",
                      option, most, text);
    return false;
  }
  *number = (uint32_t)n;
  return true;
}

/* NULL: several were asked for, which is reported. */
static heap_show *heap_choose(const struct heap_options *o,
                              const char **pattern)
{
  const struct {
    const char *option;
    bool wanted;
    heap_show *show;
    const char *pattern;
  } views[] = {
      {"--path", o->path != NULL, ljp_heap_paths, o->path},
      {"--retained-by", o->retained_by != NULL, ljp_heap_retained_by,
       o->retained_by},
      {"--dominators", o->dominators, ljp_heap_dominators, NULL},
      {"--coroutines", o->coroutines, ljp_heap_coroutines, NULL},
      {"--strings", o->strings, ljp_heap_strings, NULL},
  };
  const char *chosen = NULL;
  heap_show *show = ljp_heap_overview;
  for (unsigned i = 0; i < sizeof views / sizeof *views; i++) {
    if (!views[i].wanted)
      continue;
    if (chosen) {
      ljp_command_error("heap", "%s and %s are two views: choose one", chosen,
                        views[i].option);
      return NULL;
    }
    chosen = views[i].option;
    show = views[i].show;
    *pattern = views[i].pattern;
  }
  return show;
}

static int heap_fail(const char *file, enum ljp_status status)
{
  if (status == LJP_ERR_USE) /* Reported. */
    return LJP_EXIT_USAGE;
  ljp_command_error("heap", "%s: %s", file, ljp_status_text(status));
  return LJP_EXIT_FAILED;
}

int ljp_command_heap(int argc, char **argv)
{
  static struct ljp_heap_view v;
  static struct ljp_print out;
  struct heap_options o = {.path = NULL};
  struct ljp_heap_show s;
  const char *file;
  uint32_t snapshot = 0;
  const struct ljp_flag flags[] = {
      {"--json", &o.json, NULL},
      {"--top", NULL, &o.top},
      {"--path", NULL, &o.path},
      {"--retained-by", NULL, &o.retained_by},
      {"--dominators", &o.dominators, NULL},
      {"--depth", NULL, &o.depth},
      {"--coroutines", &o.coroutines, NULL},
      {"--strings", &o.strings, NULL},
      {"--snapshot", NULL, &o.snapshot},
  };
  int code = ljp_command_options("heap", help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &file);
  if (code >= 0)
    return code;
  v.top = 20;
  v.depth = 5;
  heap_show *show = heap_choose(&o, &v.pattern);
  if (!show || !heap_read_number("--top", o.top, LJP_HEAP_MAX_TOP, &v.top) ||
      !heap_read_number("--depth", o.depth, LJP_HEAP_MAX_DEPTH, &v.depth) ||
      !heap_read_number("--snapshot", o.snapshot, UINT32_MAX, &snapshot))
    return LJP_EXIT_USAGE;
  if (strcmp(file, "-") == 0)
    file = "/dev/stdin";
  enum ljp_status status = ljp_graph_load(&v.graph, file, snapshot);
  if (status) {
    ljp_command_error("heap", "%s: %s", file, v.graph.error);
    ljp_graph_fini(&v.graph);
    return LJP_EXIT_FAILED;
  }
  ljp_heap_add_up(&v);
  code = ljp_heap_is_whole(&v) ? LJP_EXIT_OK : LJP_EXIT_FAILED;
  ljp_print_begin(&out, 1);
  ljp_heap_show_begin(&s, &out, o.json);
  status = show(&v, &s);
  ljp_heap_show_end(&s);
  if (!status)
    code = ljp_command_end("heap", &out, code);
  else
    code = heap_fail(file, status);
  ljp_graph_fini(&v.graph);
  return code;
}
