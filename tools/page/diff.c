/*
** ljprof diff: parses the options, loads both profiles and chooses the form of
** the comparison.
*/
#include "tools/page/diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/page/html.h"
#include "tools/shared/command.h"
#include "tools/shared/labels.h"
#include "tools/shared/outfile.h"
#include "tools/shared/progress.h"
#include "tools/shared/show.h"
#include "tools/shared/units.h"

static const char help[] =
    "Usage: ljprof diff BEFORE AFTER [OPTION]...\n"
    "       ljprof diff BEFORE AFTER -o PAGE.html [OPTION]...\n"
    "Compares two profiles: totals, functions by their own change and by the\n"
    "change with what they call, and stacks.\n"
    "\n"
    "Programs that ran to their end are compared by total, others (services) "
    "per\n"
    "second of recording; live memory and leaks always as they are at the end. "
    "Each\n"
    "change is shown with its sampling error (3.5 standard errors); changes "
    "within\n"
    "the error are not listed. A function is the same if its name and file "
    "are,\n"
    "whatever its line.\n"
    "\n"
    "  --view NAME         compare cpu, wall, alloc, live or leaks (default: "
    "the\n"
    "                      first that both files have)\n"
    "  --total             compare totals\n"
    "  --per-second        compare values per second of recording\n"
    "  --share             compare shares: values per second of CPU time (or "
    "per\n"
    "                      GiB) measured. For programs that had more or less "
    "of the\n"
    "                      machine, or more or less work\n"
    "  --top N             list at most N functions and N stacks (default 20;\n"
    "                      0: all)\n"
    "  --all               also list changes within the sampling error\n"
    "  --json              write one JSON object with all functions and "
    "stacks\n"
    "  -o, --output PATH   write to PATH (default: standard output). If it "
    "ends in\n"
    "                      .html or .htm: a flame graph page with the changes "
    "as\n"
    "                      colours\n"
    "  --force             replace PATH if it exists\n"
    "  --thread NAME       compare one thread, by name, number or OS number\n"
    "  --label KEY=VALUE   compare what has this label; several: all of them; "
    "KEY=:\n"
    "                      without KEY\n"
    "  --by label:KEY      divide all stacks by the value of a label\n"
    "  --native            compare machine code, too (default: it counts for "
    "the\n"
    "                      function that made it run; a page has both views, "
    "with\n"
    "                      a switch)\n"
    "  --no-symbols        do not look up names of machine code\n"
    "  --help              show this help\n"
    "\n"
    "Exit code: 0 success, 1 failure, 2 wrong usage.\n";

struct options {
  const char *files[2];
  const char *output, *view, *thread, *top_text;
  struct ljp_label_options labels;
  unsigned long top;
  bool json, force, all, no_symbols, html, share, total, per_second, native;
  enum ljp_diff_by by;
};

static int diff_wrong(const char *format, const char *value)
{
  ljp_command_error("diff", format, value);
  return LJP_EXIT_USAGE;
}

static int diff_parse(struct options *o, int argc, char **argv)
{
  const struct ljp_flag flags[] = {
      {"--view cpu wall alloc live leaks", NULL, &o->view},
      {"--top", NULL, &o->top_text},
      {"--all", &o->all, NULL},
      {"--json", &o->json, NULL},
      {"-o", NULL, &o->output},
      {"--output", NULL, &o->output},
      {"--force", &o->force, NULL},
      {"--share", &o->share, NULL},
      {"--total", &o->total, NULL},
      {"--per-second", &o->per_second, NULL},
      {"--thread", NULL, &o->thread},
      {"--no-symbols", &o->no_symbols, NULL},
      {"--native", &o->native, NULL},
      LJP_LABEL_FLAGS(o->labels)};
  unsigned count = 0;
  const char **files = calloc((size_t)argc + 1, sizeof *files);
  if (!files) {
    ljp_command_error("diff", "out of memory");
    return LJP_EXIT_FAILED;
  }
  int code = ljp_command_files("diff", help, argc, argv, flags,
                               sizeof flags / sizeof *flags, files, &count);
  for (unsigned i = 0; i < 2 && i < count; i++)
    o->files[i] = files[i];
  free((void *)files);
  if (code >= 0)
    return code;
  if (count != 2)
    return diff_wrong("%s", count < 2
                                ? "two files are needed: BEFORE and AFTER"
                                : "too many files: BEFORE and AFTER expected");
  if (strcmp(o->files[0], "-") == 0 && strcmp(o->files[1], "-") == 0)
    return diff_wrong("%s", "only one of the files can be standard input");
  if (o->share + o->total + o->per_second > 1)
    return diff_wrong("%s", "only one of --total, --per-second and --share can "
                            "be given");
  o->by = o->share        ? LJP_DIFF_SHARE
          : o->total      ? LJP_DIFF_TOTAL
          : o->per_second ? LJP_DIFF_PER_SECOND
                          : LJP_DIFF_AUTO;
  bool known = !o->view;
  for (int i = 0; i < LJP_PAGE_VIEW_GC_COST; i++)
    known = known || strcmp(o->view, ljp_diff_views[i].id) == 0;
  if (!known)
    return diff_wrong(
        "unknown view '%s': cpu, wall, alloc, live or leaks expected", o->view);
  char *end = NULL;
  o->top = o->top_text ? strtoul(o->top_text, &end, 10) : 20;
  if (end && (*end || end == o->top_text || *o->top_text == '-'))
    return diff_wrong("--top needs a number, not '%s'", o->top_text);
  size_t len = o->output ? strlen(o->output) : 0;
  o->html = (len > 5 && strcmp(o->output + len - 5, ".html") == 0) ||
            (len > 4 && strcmp(o->output + len - 4, ".htm") == 0);
  if (o->html && o->json)
    return diff_wrong(
        "%s", "--json cannot be combined with an output file named .html");
  return -1;
}

static int diff_report(const struct options *o, struct ljp_diff *d,
                       enum ljp_page_view view)
{
  static struct ljp_print out;
  struct ljp_outfile file = {0};
  struct ljp_diff_lists lists = {0};
  int code = -1;
  if (!o->html) {
    lists.functions = ljp_diff_functions(d, view, &lists.function_count);
    lists.stacks = ljp_diff_stacks(d, view, &lists.stack_count);
    if (lists.functions)
      lists.by_total =
          ljp_diff_functions_by_total(lists.functions, lists.function_count);
    if (!lists.functions || !lists.stacks || !lists.by_total) {
      ljp_command_error("diff", "%s", ljp_status_text(LJP_ERR_MEM));
      code = LJP_EXIT_FAILED;
    }
  }
  if (code < 0)
    code =
        ljp_outfile_open(&file, "diff", o->output ? o->output : "-", o->force);
  if (code < 0) {
    ljp_print_begin(&out, file.fd);
    if (o->html)
      ljp_diff_html(d, &out);
    else if (o->json)
      ljp_diff_json(d, view, &lists, &out);
    else
      ljp_diff_text(d, view, &lists, o->top, o->all, &out);
    code = ljp_outfile_commit(&file, ljp_print_end(&out));
  }
  free(lists.functions);
  free(lists.by_total);
  free(lists.stacks);
  return code;
}

/* The ids of the views with data of a side. */
static const char *diff_held(const struct ljp_diff *d, int side, char *text,
                             size_t room)
{
  size_t n = 0;
  snprintf(text, room, "nothing that can be compared");
  for (int v = 0; v < LJP_PAGE_VIEWS; v++)
    if (d->sums[v][side] > 0 && n < room)
      n += (size_t)snprintf(text + n, room - n, "%s%s", n ? ", " : "",
                            ljp_diff_views[v].id);
  return text;
}

/* Says why there is nothing to compare. */
static void diff_tell_lack(const struct options *o, const struct ljp_diff *d)
{
  char held[2][64];
  const char *before = diff_held(d, 0, held[0], sizeof held[0]);
  const char *after = diff_held(d, 1, held[1], sizeof held[1]);
  if (o->view)
    ljp_command_error("diff",
                      "the view '%s' cannot be compared: %s holds %s%s; %s "
                      "holds %s%s",
                      o->view, o->files[0], before, d->sides[0].damage,
                      o->files[1], after, d->sides[1].damage);
  else
    ljp_command_error("diff",
                      "no kind of data is in both files: %s holds %s%s; %s "
                      "holds %s%s",
                      o->files[0], before, d->sides[0].damage, o->files[1],
                      after, d->sides[1].damage);
}

/* -1: there is nothing to compare; the error was reported. */
static int diff_choose_view(const struct options *o, const struct ljp_diff *d)
{
  for (int v = 0; v < LJP_PAGE_VIEWS; v++) {
    if (!ljp_diff_has(d, (enum ljp_page_view)v) ||
        (o->view && strcmp(o->view, ljp_diff_views[v].id) != 0))
      continue;
    if (ljp_diff_comparable(d, (enum ljp_page_view)v))
      return v;
    ljp_command_error("diff",
                      "%s has no times: it can only be compared by shares "
                      "(--share)",
                      o->files[d->sides[1].untimed]);
    return -1;
  }
  diff_tell_lack(o, d);
  return -1;
}

int ljp_command_diff(int argc, char **argv)
{
  struct options o = {0};
  static struct ljp_diff diff;
  static char error[LJP_READER_ERROR_BYTES + 64];
  struct ljp_profile *profiles[2] = {NULL, NULL};
  int code = diff_parse(&o, argc, argv);
  if (code >= 0)
    return code;
  struct ljp_progress progress;
  struct ljp_profile_options options = {.thread = o.thread,
                                        .no_symbols = o.no_symbols,
                                        .lua_view = !o.native && !o.html,
                                        .progress = ljp_progress_bytes,
                                        .progress_ctx = &progress};
  if ((code = ljp_label_options("diff", &o.labels, &options)))
    return code;
  code = -1;
  for (int i = 0; i < 2 && code < 0; i++) {
    ljp_progress_begin(&progress, o.files[i]);
    bool failed = ljp_profile_load(o.files[i], &options, &profiles[i], error);
    ljp_progress_end(&progress);
    if (failed) {
      ljp_command_error("diff", "%s: %s", o.files[i], error);
      code = LJP_EXIT_FAILED;
    }
  }
  if (code < 0) {
    enum ljp_status status =
        ljp_diff_init(&diff, profiles[0], profiles[1], o.files, o.by);
    if (!status && o.html && !o.native)
      status = ljp_diff_fold(&diff, profiles[0], profiles[1]);
    int view = status ? -1 : diff_choose_view(&o, &diff);
    if (status)
      ljp_command_error("diff", "%s", ljp_status_text(status));
    code = view < 0 ? LJP_EXIT_FAILED
                    : diff_report(&o, &diff, (enum ljp_page_view)view);
    ljp_diff_fini(&diff);
  }
  ljp_profile_free(profiles[0]);
  ljp_profile_free(profiles[1]);
  return code;
}
