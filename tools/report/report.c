/*
** ljprof report: options, and which view they ask for.
*/
#include "tools/report/groups.h"
#include "tools/report/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    "  --jit              the JIT compiler: traces, their side traces, what\n"
    "                     of each function was compiled, what was given up\n"
    "  --lines            functions with current lines (stacks always)\n"
    "  --c-lines          by line, file: C code by its own, see below\n"
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
    "By line or file, builtins and C functions count for the line of Lua that\n"
    "called them; with --c-lines only those that have no line of their own.\n"
    "Exit code: 0 shown, 1 not readable or nothing selected, 2\n"
    "called wrongly.\n";

struct args {
  bool tree, bottom_up, lines, json;
  const char *by, *top, *min, *file;
};

static int report_usage(const char *option, const char *value,
                        const char *wanted)
{
  ljp_command_error("report", "%s: '%s' is not %s", option, value, wanted);
  return LJP_EXIT_USAGE;
}

static int report_parse(const struct args *a, struct ljp_report *r)
{
  char *end;
  r->top = 40;
  r->min_percent = 0.5;
  r->json = a->json;
  r->lines = a->lines;
  r->bottom_up = a->bottom_up;
  r->tree = a->tree || a->bottom_up;
  if (a->top) {
    errno = 0;
    unsigned long n = strtoul(a->top, &end, 10);
    if (errno || *end || end == a->top || a->top[0] == '-' || n > UINT32_MAX)
      return report_usage("--top", a->top, "a number of rows");
    r->top = (uint32_t)n;
  }
  if (a->min) {
    r->min_percent = strtod(a->min, &end);
    if (*end || end == a->min || !(r->min_percent >= 0) || r->min_percent > 100)
      return report_usage("--min", a->min, "a percentage");
  }
  return 0;
}

/* --by, and whether it goes with what else is asked for. */
static int report_parse_by(const struct args *a, struct ljp_report *r)
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
      return report_usage("--by", a->by,
                          "one of function, line, module, file, kind, "
                          "trace, stack, thread, vm, state, type");
    r->by = (enum ljp_by)i;
  }
  if (r->jit && (r->tree || a->by)) {
    ljp_command_error("report", "--jit has rows of its own: not with %s",
                      a->by ? "--by" : "--tree or --bottom-up");
    return LJP_EXIT_USAGE;
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

static bool report_rows(const struct ljp_report *r)
{
  return r->tree ? ljp_report_tree(r) : ljp_report_table(r);
}

static bool report_jit(const struct ljp_report *r)
{
  struct ljp_jit jit;
  if (!ljp_jit_make(r, &jit))
    return false;
  bool ok = r->json ? ljp_jit_json(r, &jit) : ljp_jit_text(r, &jit);
  ljp_jit_fini(&jit);
  return ok;
}

static int report_show(struct ljp_report *r)
{
  const struct ljp_value *all = &r->select.total;
  bool empty = !all->count && !all->weight, ok = true;
  if (r->jit) {
    ok = report_jit(r);
  } else if (r->json) {
    ljp_report_json_begin(r);
    ok = report_rows(r);
    ljp_report_json_end(r);
  } else {
    ljp_report_head(r);
    if (!empty)
      ok = report_rows(r);
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

int ljp_command_report(int argc, char **argv)
{
  static struct ljp_print out;
  struct args a = {0};
  struct ljp_report r = {.out = &out};
  struct ljp_report_options common = {0};
  const struct ljp_flag flags[] = {
      LJP_REPORT_FLAGS(common),
      {"--tree", &a.tree, NULL},
      {"--bottom-up", &a.bottom_up, NULL},
      {"--jit", &common.jit, NULL},
      {"--lines", &a.lines, NULL},
      {"--c-lines", &r.c_lines, NULL},
      {"--json", &a.json, NULL},
      {"--by", NULL, &a.by},
      {"--top", NULL, &a.top},
      {"--min", NULL, &a.min},
  };
  int code = ljp_command_options("report", help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &a.file);
  if (code >= 0)
    return code;
  r.jit = common.jit;
  if ((code = report_parse(&a, &r)) || (code = report_parse_by(&a, &r)) ||
      (code = ljp_report_open(&common, "report", a.file, &r)))
    return code;
  if (!a.by && !r.tree && r.select.measure == LJP_MEASURE_LEAKS)
    r.by = LJP_BY_STACK;
  r.lines |= r.by == LJP_BY_STACK; /* Else different ones look alike. */
  ljp_print_begin(&out, STDOUT_FILENO);
  code = report_show(&r);
  code = ljp_command_end("report", &out, code);
  ljp_report_close(&r);
  return code;
}
