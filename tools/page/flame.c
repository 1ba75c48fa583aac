/*
** ljprof flame: parses the options, and writes the page or a drawing.
*/
#include <inttypes.h>
#include <string.h>

#include "parsers/stream/reader.h"
#include "tools/page/heap.h"
#include "tools/page/html.h"
#include "tools/page/load.h"
#include "tools/page/sources.h"
#include "tools/page/svg.h"
#include "tools/shared/command.h"
#include "tools/shared/labels.h"
#include "tools/shared/outfile.h"
#include "tools/shared/progress.h"
#include "tools/shared/time_range.h"

static const char help[] =
    "Usage: ljprof flame FILE -o PAGE.html [OPTION]...\n"
    "       ljprof flame FILE -o DRAWING.svg [OPTION]...\n"
    "Makes a flame graph: a page for any browser, or a static drawing.\n"
    "\n"
    "The page is one file that needs no network. It has every view that the "
    "file\n"
    "has data for (CPU, wall clock, allocations, live memory, leaks, GC cost, "
    "JIT\n"
    "states; of a heap snapshot: what retains memory, and the references that "
    "hold\n"
    "it), search, zoom, a timeline and a table; press '?' in it for a list "
    "of\n"
    "keys.\n"
    "\n"
    "  -o, --output PATH   write to PATH ('-': standard output)\n"
    "  --force             replace PATH if it exists\n"
    "  --svg               make a drawing of one view, for documents, even if "
    "PATH\n"
    "                      does not end in .svg\n"
    "  --view NAME         draw this view: cpu, wall, alloc, live, leaks, "
    "gc-cost,\n"
    "                      retained, references (default: the first that the "
    "file has)\n"
    "  --source DIR        include the text of measured lines of Lua files "
    "below\n"
    "                      DIR (default: no source text)\n"
    "  --thread NAME       show one thread, by name, number or OS number\n"
    "  --label KEY=VALUE   show what has this label; several: all of them; "
    "KEY=: "
    "without KEY\n"
    "  --by label:KEY      divide all stacks by the value of a label, as their "
    "outermost\n"
    "                      frames\n"
    "  --time A..B         show what happened from A to B seconds after the "
    "start; omit\n"
    "                      either for no limit\n"
    "  --native            show machine code (default: a page has both views, "
    "with a\n"
    "                      switch; a drawing has that of the program's "
    "functions)\n"
    "  --no-symbols        do not look up names of machine code\n"
    "  --help              show this help\n"
    "\n"
    "Losses, cut stacks and gaps are listed at the top of the page.\n"
    "\n"
    "Exit code: 0 success, 1 failure, 2 wrong usage.\n";

static const struct {
  const char *id;
} flame_views[] = {
#define LJP_X(key, id, name, unit, counts) {id},
    LJP_PAGE_VIEW_LIST(LJP_X)
#undef LJP_X
};

struct options {
  const char *file, *output, *view, *thread, *source, *time;
  struct ljp_label_options labels;
  uint64_t from_ns, to_ns;
  bool force, svg, no_symbols, native;
};

/* The option that selects a part of the events by who caused them; NULL: none. */
static const char *flame_part(const struct options *o)
{
  return o->thread ? "--thread" : o->labels.labels[0] ? "--label" : NULL;
}

/* -1: go on; else the exit code. */
static int flame_parse(struct options *o, int argc, char **argv)
{
  const struct ljp_flag flags[] = {
      {"-o", NULL, &o->output},
      {"--output", NULL, &o->output},
      {"--force", &o->force, NULL},
      {"--svg", &o->svg, NULL},
      {"--view" LJP_PAGE_VIEW_LIST(LJP_PAGE_VIEW_WORD), NULL, &o->view},
      {"--source", NULL, &o->source},
      {"--thread", NULL, &o->thread},
      {"--time", NULL, &o->time},
      LJP_LABEL_FLAGS(o->labels),
      {"--no-symbols", &o->no_symbols, NULL},
      {"--native", &o->native, NULL}};
  int code = ljp_command_options("flame", help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &o->file);
  if (code >= 0)
    return code;
  size_t len = o->output ? strlen(o->output) : 0;
  o->svg |= len > 4 && strcmp(o->output + len - 4, ".svg") == 0;
  bool known = !o->view;
  for (int i = 0; i < LJP_PAGE_VIEWS; i++)
    known = known || strcmp(o->view, flame_views[i].id) == 0;
  if (!o->output)
    ljp_command_error("flame", "no output given (-o PAGE.html; '-': standard "
                               "output)");
  else if (o->view && !o->svg)
    ljp_command_error(
        "flame",
        "--view is for a drawing (-o DRAWING.svg); a page has all views");
  else if (!known)
    ljp_command_error("flame",
                      "unknown view '%s': cpu, wall, alloc, live, leaks, "
                      "gc-cost, retained or references expected",
                      o->view);
  else if (flame_part(o) && o->view &&
           (strcmp(o->view, flame_views[LJP_PAGE_VIEW_RETAINED].id) == 0 ||
            strcmp(o->view, flame_views[LJP_PAGE_VIEW_REFERENCES].id) == 0))
    ljp_command_error("flame",
                      "--view %s shows the whole heap, so %s "
                      "cannot be given with it",
                      o->view, flame_part(o));
  else if ((flame_part(o) || o->time) && o->view &&
           strcmp(o->view, "gc-cost") == 0)
    ljp_command_error("flame",
                      "--view gc-cost divides the collector's time "
                      "over the whole session, so %s cannot be "
                      "given with it",
                      flame_part(o) ? flame_part(o) : "--time");
  else if (!o->time ||
           !ljp_time_range("flame", o->time, &o->from_ns, &o->to_ns))
    return -1;
  return LJP_EXIT_USAGE;
}

/* The view to draw; -1: no data, and the error was reported. */
static int flame_choose_view(const struct options *o,
                             const struct ljp_page *page)
{
  int first = -1;
  for (int i = 0; i < LJP_PAGE_VIEWS; i++) {
    if (o->view && strcmp(o->view, flame_views[i].id) == 0) {
      if (!page->rows[i].count)
        break;
      return i;
    }
    if (page->rows[i].count && first < 0)
      first = i;
  }
  if (!o->view)
    return first < 0 ? LJP_PAGE_VIEW_CPU : first;
  ljp_command_error("flame", "%s has no data for the view '%s'", o->file,
                    o->view);
  return -1;
}

static bool flame_is_empty(const struct ljp_page *page)
{
  for (int i = 0; i < LJP_PAGE_VIEWS; i++)
    if (page->rows[i].count)
      return false;
  return true;
}

static int flame_write(const struct options *o, struct ljp_page *page)
{
  static struct ljp_print out;
  struct ljp_outfile file;
  enum ljp_status status = LJP_OK;
  int view = o->svg ? flame_choose_view(o, page) : 0;
  if (view < 0)
    return LJP_EXIT_FAILED;
  int code = ljp_outfile_open(&file, "flame", o->output, o->force);
  if (code >= 0)
    return code;
  ljp_print_begin(&out, file.fd);
  if (o->svg)
    status = ljp_page_svg(page, (enum ljp_page_view)view,
                          ljp_page_unit(page, (enum ljp_page_view)view), &out);
  else
    ljp_page_html(page, &out);
  status = status ? status : page->failed;
  int error = ljp_print_end(&out);
  if (status) {
    ljp_command_error("flame", "%s: %s", o->file, ljp_status_text(status));
    ljp_outfile_abort(&file);
    return LJP_EXIT_FAILED;
  }
  return ljp_outfile_commit(&file, error);
}

/* Sees whether the file has a heap snapshot. */
static enum ljp_status flame_observe(void *ctx, const struct ljp_reader *reader,
                                     const struct ljp_item *item)
{
  (void)reader;
  if (item->what == LJP_REC_HEAP)
    *(bool *)ctx = true;
  return LJP_OK;
}

/* The tabs of the heap snapshot. Without them the page still has the others. */
static enum ljp_status flame_add_heap(const struct options *o,
                                      struct ljp_page *page)
{
  static struct ljp_graph graph;
  const char *file = strcmp(o->file, "-") == 0 ? "/dev/stdin" : o->file;
  enum ljp_status status = ljp_graph_load(&graph, file, 0);
  if (!status)
    status = ljp_page_heap(page, &graph);
  else if (status != LJP_ERR_MEM)
    ljp_page_notice(
        page, false,
        ljp_page_format(page, "The heap snapshot is not shown: %s%s",
                        strncmp(graph.error, "is ", 3) == 0 ? "the input " : "",
                        graph.error));
  ljp_graph_fini(&graph);
  return status == LJP_ERR_MEM ? status : page->failed;
}

int ljp_command_flame(int argc, char **argv)
{
  bool heap = false;
  struct options o = {0};
  static struct ljp_page page;
  static char error[LJP_READER_ERROR_BYTES + 64];
  struct ljp_profile *profile;
  int code = flame_parse(&o, argc, argv);
  if (code >= 0)
    return code;
  struct ljp_progress progress;
  struct ljp_profile_options options = {.points = true,
                                        .gc_cost = !flame_part(&o) && !o.time,
                                        .thread = o.thread,
                                        .from_ns = o.from_ns,
                                        .to_ns = o.to_ns,
                                        .no_symbols = o.no_symbols,
                                        .lua_view = o.svg && !o.native,
                                        .observe = flame_observe,
                                        .observe_ctx = &heap,
                                        .progress = ljp_progress_bytes,
                                        .progress_ctx = &progress};
  if ((code = ljp_label_options("flame", &o.labels, &options)))
    return code;
  ljp_progress_begin(&progress, o.file);
  bool failed = ljp_profile_load(o.file, &options, &profile, error);
  ljp_progress_end(&progress);
  if (failed) {
    ljp_command_error("flame", "%s: %s", o.file, error);
    return LJP_EXIT_FAILED;
  }
  enum ljp_status status = ljp_page_init(&page);
  if (!status)
    status = ljp_page_load(&page, profile, o.file);
  if (!status && !o.svg && !o.native)
    status = ljp_page_load_lua(&page, profile);
  if (!status && o.source &&
      (status = ljp_page_sources(&page, o.source, profile->origin_wall_ns)) ==
          LJP_ERR_IO) {
    ljp_command_error("flame", "--source %s: cannot read this folder",
                      o.source);
    ljp_profile_free(profile);
    ljp_page_fini(&page);
    return LJP_EXIT_FAILED;
  }
  ljp_profile_free(profile);
  if (!status && o.time)
    ljp_page_notice(
        &page, false,
        ljp_page_format(&page, "Only what happened in the seconds %s", o.time));
  if (!status && heap && !flame_part(&o) && !o.time)
    status = flame_add_heap(&o, &page);
  if (status) {
    ljp_command_error("flame", "%s: %s", o.file, ljp_status_text(status));
    code = LJP_EXIT_FAILED;
  } else if (options.labels.count && flame_is_empty(&page)) {
    ljp_command_error("flame", "%s has no data with these labels%s%s", o.file,
                      o.thread ? " of a thread " : "",
                      o.thread ? o.thread : "");
    code = LJP_EXIT_FAILED;
  } else if (o.thread && flame_is_empty(&page)) {
    ljp_command_error("flame", "%s has no data of a thread '%s'", o.file,
                      o.thread);
    code = LJP_EXIT_FAILED;
  } else {
    code = flame_write(&o, &page);
  }
  ljp_page_fini(&page);
  return code;
}
