/*
** ljprof report: options, and which view they ask for.
*/
#include "tools/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/progress.h"

static const char help[] =
    "Usage: ljprof report [OPTION]... FILE\n"
    "Shows where time was spent or memory allocated, most first.\n\n"
    "What (without one: CPU time, else wall-clock time, else allocations,\n"
    "whichever the file has):\n"
    "  --cpu --wall       samples of the CPU or of the wall-clock timer\n"
    "  --alloc            allocations\n"
    "  --live             what was allocated and lives at the end\n"
    "  --leaks            what lives though two GC cycles could have freed\n"
    "                     it; what went on growing first\n"
    "  --peak             what lived when all was most\n"
    "  --churn            what the first GC cycle freed that could\n"
    "  --since MARK       live, leaks: only what was allocated since the mark\n"
    "How:\n"
    "  --by WHAT          function (default), line, module, file, kind,\n"
    "                     trace, stack, thread, vm, state, type\n"
    "  --tree             calls from the outermost frame inwards\n"
    "  --bottom-up        from where it was spent to the callers\n"
    "  --lines            functions and stacks with current lines\n"
    "  --top N            so many rows (default 40; 0: all)\n"
    "  --min PERCENT      a tree's branches from this share on (default 0.5)\n"
    "  --json             for programs: totals first, then all rows\n"
    "Which:\n"
    "  --time A..B        seconds since the start; either may be left out\n"
    "  --thread T         by name, number, or the system's number\n"
    "  --focus REGEX      stacks with a frame whose name matches\n"
    "  --ignore REGEX     stacks without such a frame\n"
    "  --no-symbols       don't look for names of machine code\n"
    "  --help             this text\n\n"
    "A builtin or C function without a line of its own counts, by line or\n"
    "file, for the line that called it. Exit code: 0 shown, 1 not readable\n"
    "or nothing selected, 2 called wrongly.\n";

struct args {
  bool measures[16];
  bool tree, bottom_up, lines, json, no_symbols;
  const char *by, *top, *min, *time, *thread, *focus, *ignore, *since, *file;
};

static int usage(const char *option, const char *value, const char *wanted)
{
  ljp_command_error("report", "%s: '%s' is not %s", option, value, wanted);
  return LJP_EXIT_USAGE;
}

/* Seconds; false: it is none. */
static bool seconds(const char *text, size_t len, uint64_t *ns)
{
  char copy[32], *end;
  if (len == 0 || len >= sizeof copy)
    return false;
  memcpy(copy, text, len);
  copy[len] = '\0';
  if ((copy[0] < '0' || copy[0] > '9') && copy[0] != '.')
    return false;
  double value = strtod(copy, &end);
  if (*end || !(value >= 0 && value < 9e9))
    return false;
  *ns = (uint64_t)llround(value * 1e9);
  return true;
}

static int time_range(const char *text, struct ljp_profile_options *options)
{
  static const char wanted[] =
      "a range of seconds such as 1.5..3, ..3 or 1.5..";
  const char *dots = strstr(text, "..");
  if (!dots ||
      (dots > text && !seconds(text, (size_t)(dots - text), &options->from_ns)))
    return usage("--time", text, wanted);
  if (dots[2] && !seconds(dots + 2, strlen(dots + 2), &options->to_ns))
    return usage("--time", text, wanted);
  if (dots[2] && options->to_ns <= options->from_ns)
    return usage("--time", text, "a range: its end is not after its begin");
  return 0;
}

static int parse(const struct args *a, struct ljp_report *r,
                 struct ljp_profile_options *options)
{
  char *end;
  r->top = 40;
  r->min_percent = 0.5;
  r->json = a->json;
  r->lines = a->lines;
  r->bottom_up = a->bottom_up;
  r->tree = a->tree || a->bottom_up;
  options->no_symbols = a->no_symbols;
  options->thread = a->thread;
  options->since = a->since;
  if (a->top) {
    errno = 0;
    unsigned long n = strtoul(a->top, &end, 10);
    if (errno || *end || end == a->top || a->top[0] == '-' || n > UINT32_MAX)
      return usage("--top", a->top, "a number of rows");
    r->top = (uint32_t)n;
  }
  if (a->min) {
    r->min_percent = strtod(a->min, &end);
    if (*end || end == a->min || !(r->min_percent >= 0) || r->min_percent > 100)
      return usage("--min", a->min, "a percentage");
  }
  return a->time ? time_range(a->time, options) : 0;
}

/* --by, and whether it goes with what else is asked for. */
static int parse_by(const struct args *a, struct ljp_report *r)
{
  static const char *const names[] = {
#define LJP_X(name, option, of_frame) option,
      LJP_BY_LIST(LJP_X)
#undef LJP_X
  };
  unsigned n = sizeof names / sizeof *names, i = 0;
  if (a->by) {
    while (i < n && strcmp(a->by, names[i]) != 0)
      i++;
    if (i == n)
      return usage("--by", a->by,
                   "one of function, line, module, file, kind, "
                   "trace, stack, thread, vm, state, type");
    r->by = (enum ljp_by)i;
  }
  if (r->tree && !ljp_by_of_frame(r->by)) {
    ljp_command_error("report",
                      "a tree is of functions, lines, files, modules "
                      "or kinds, not of '%s'",
                      a->by);
    return LJP_EXIT_USAGE;
  }
  return 0;
}

/* What is measured: asked for, or what the file has. */
static int measure(const struct args *a, const struct ljp_profile *p,
                   enum ljp_measure *chosen)
{
  unsigned count = 0;
  for (unsigned i = 0; i < sizeof a->measures; i++)
    if (a->measures[i]) {
      *chosen = (enum ljp_measure)i;
      count++;
    }
  if (count > 1) {
    ljp_command_error("report", "one of --cpu, --wall, --alloc, --live, "
                                "--leaks, --peak, --churn at a time");
    return LJP_EXIT_USAGE;
  }
  if (!count && p)
    *chosen = p->totals.samples        ? LJP_MEASURE_CPU
              : p->totals.wall_samples ? LJP_MEASURE_WALL
              : p->has_memory          ? LJP_MEASURE_ALLOC
                                       : LJP_MEASURE_CPU;
  return 0;
}

static bool is_terminal(void)
{
  const char *term = getenv("TERM"), *none = getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && !(none && *none) && term &&
         strcmp(term, "dumb") != 0;
}

static int show(struct ljp_report *r)
{
  const struct ljp_value *all = &r->select.total;
  bool empty = !all->count && !all->weight, ok = true;
  if (r->json) {
    ljp_report_json_begin(r);
    ok = r->tree ? ljp_report_tree(r) : ljp_report_table(r);
    ljp_report_json_end(r);
  } else {
    ljp_report_head(r);
    if (!empty)
      ok = r->tree ? ljp_report_tree(r) : ljp_report_table(r);
  }
  if (!ok) {
    ljp_command_error("report", "out of memory");
    return LJP_EXIT_FAILED;
  }
  if (!empty)
    return LJP_EXIT_OK;
  ljp_command_error("report", "%s: nothing to show: no %s%s", r->path,
                    ljp_measure_text(r->select.measure),
                    r->p->totals.filtered || r->p->row_count
                        ? " in what is selected"
                        : " in the file");
  return LJP_EXIT_FAILED;
}

static int report(const struct args *a, struct ljp_report *r,
                  struct ljp_profile_options *options)
{
  struct ljp_select_options select = {.focus = a->focus, .ignore = a->ignore};
  char error[LJP_READER_ERROR_BYTES + 64];
  struct ljp_progress progress;
  int code;
  ljp_progress_begin(&progress, a->file);
  options->progress = ljp_progress_bytes;
  options->progress_ctx = &progress;
  enum ljp_status status = ljp_profile_load(a->file, options, &r->p, error);
  ljp_progress_end(&progress);
  if (status) {
    ljp_command_error("report", "%s: %s", a->file, error);
    return LJP_EXIT_FAILED;
  }
  code = measure(a, r->p, &select.measure);
  if (!a->by && select.measure == LJP_MEASURE_LEAKS)
    r->by = LJP_BY_STACK;
  if (!code)
    code = ljp_select(&r->select, r->p, &select, "report");
  if (!code)
    code = show(r);
  ljp_select_fini(&r->select);
  ljp_profile_free(r->p);
  return code;
}

int ljp_command_report(int argc, char **argv)
{
  static struct ljp_print out;
  struct args a = {0};
  struct ljp_report r = {.out = &out};
  struct ljp_profile_options options = {0};
  enum ljp_measure chosen;
  const struct ljp_flag flags[] = {
#define LJP_X(name, option, count, weight, text)                               \
  {"--" option, &a.measures[LJP_MEASURE_##name], NULL},
      LJP_MEASURE_LIST(LJP_X)
#undef LJP_X
          {"--tree", &a.tree, NULL},
      {"--bottom-up", &a.bottom_up, NULL},
      {"--lines", &a.lines, NULL},
      {"--json", &a.json, NULL},
      {"--no-symbols", &a.no_symbols, NULL},
      {"--by", NULL, &a.by},
      {"--top", NULL, &a.top},
      {"--min", NULL, &a.min},
      {"--time", NULL, &a.time},
      {"--thread", NULL, &a.thread},
      {"--focus", NULL, &a.focus},
      {"--ignore", NULL, &a.ignore},
      {"--since", NULL, &a.since},
  };
  int code = ljp_command_options("report", help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &a.file);
  if (code >= 0)
    return code;
  if ((code = parse(&a, &r, &options)) || (code = parse_by(&a, &r)) ||
      (code = measure(&a, NULL, &chosen)) ||
      (code = ljp_select_check(a.focus, a.ignore, "report")))
    return code;
  r.path = a.file;
  r.color = is_terminal();
  ljp_print_begin(&out, STDOUT_FILENO);
  code = report(&a, &r, &options);
  return ljp_command_end("report", &out, code);
}
