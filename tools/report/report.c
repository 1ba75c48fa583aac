/*
** ljprof report: parses the options and chooses the view.
*/
#include "tools/report/groups.h"
#include "tools/report/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: ljprof report [OPTION]... FILE\n"
    "Shows where time was spent or memory was allocated, largest first.\n"
    "\n"
    "What to count (default: CPU time, else wall-clock time, else "
    "allocations,\n"
    "whichever the file has):\n"
    "  --cpu, --wall      samples of the CPU timer or of the wall-clock timer\n"
    "  --gc-cost          CPU time of the garbage collector, by what allocated "
    "the\n"
    "                     memory that it marks and sweeps\n"
    "  --alloc            all allocations\n"
    "  --live             memory allocated in the session and live at its end\n"
    "  --leaks            live memory that survived two GC cycles; memory that "
    "kept\n"
    "                     growing comes first\n"
    "  --peak             memory live at the peak\n"
    "  --churn            memory freed by the first GC cycle after its "
    "allocation\n"
    "  --since MARK       with --live or --leaks: only memory allocated since "
    "the\n"
    "                     mark\n"
    "\n"
    "How to show it:\n"
    "  --by WHAT          group by function (default), line, module, file, "
    "kind,\n"
    "                     trace, stack, thread, vm, state, type, or label:KEY: "
    "by the\n"
    "                     value of a label\n"
    "  --tree             call tree, outermost frames first\n"
    "  --bottom-up        call tree from the innermost frames to their "
    "callers\n"
    "  --jit              the JIT compiler: traces with their side traces, "
    "compiled\n"
    "                     share of each function, aborted recordings\n"
    "  --native           show machine code: what the VM, C functions and the "
    "kernel do\n"
    "                     (otherwise that counts for the function of the "
    "program that\n"
    "                     made them run). --jit, --by trace and --c-lines show "
    "it, too\n"
    "  --lines            tell apart the current lines of a function (always "
    "done\n"
    "                     with --by stack)\n"
    "  --c-lines          with --by line or file: count C code for its own "
    "lines\n"
    "  --top N            show at most N rows (default 40, with --json all; 0: "
    "all)\n"
    "  --min PERCENT      hide branches of a tree below this share (default "
    "0.5)\n"
    "  --json             write JSON: totals first, then all rows\n"
    "\n"
    "Which samples:\n"
    "  --time A..B        from A to B seconds after the start; omit either for "
    "no\n"
    "                     limit\n"
    "  --thread T         of one thread, by name, number or OS number\n"
    "  --label KEY=VALUE  with this label; several: with all of them; KEY=: "
    "without\n"
    "                     KEY\n"
    "  --focus REGEX      with a frame whose name matches\n"
    "  --ignore REGEX     without a frame whose name matches\n"
    "  --no-symbols       do not look up names of machine code\n"
    "  --help             show this help\n"
    "\n"
    "By line or file, a builtin or C function counts for the Lua line that "
    "called\n"
    "it. With --c-lines this holds only for code whose own line is unknown.\n"
    "\n"
    "Exit code: 0 success, 1 failure or nothing to show, 2 wrong usage.\n";

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
  r->top = a->json ? 0 : 40;
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

/* Parses --by (*key: of label:KEY) and checks that it can be combined with the other options. */
static int report_parse_by(const struct args *a, struct ljp_report *r,
                           const char **key)
{
  static const char *const names[] = {
#define LJP_X(name, option, of_frame) option,
      LJP_BY_LIST(LJP_X)
#undef LJP_X
  };
  unsigned n = sizeof names / sizeof *names, i = 0;
  if (a->by) {
    if ((*key = ljp_label_key(a->by))) {
      i = LJP_BY_LABEL;
      r->by_text = a->by;
    }
    while (!*key && i < n &&
           (i == LJP_BY_LABEL || strcmp(a->by, names[i]) != 0))
      i++;
    if (i == n)
      return report_usage("--by", a->by,
                          "one of function, line, module, file, kind, "
                          "trace, stack, thread, vm, state, type, label:KEY");
    r->by = (enum ljp_by)i;
  }
  if (r->jit && (r->tree || a->by)) {
    ljp_command_error("report", "--jit cannot be combined with %s",
                      a->by ? "--by" : "--tree or --bottom-up");
    return LJP_EXIT_USAGE;
  }
  if (r->tree && !ljp_by_of_frame(r->by)) {
    ljp_command_error("report",
                      "a tree can show functions, lines, files, modules or "
                      "kinds, but not '%s'",
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
  const char *lacks = empty ? ljp_report_lacks(r) : NULL;
  bool places = r->by == LJP_BY_FUNCTION && !r->tree && !r->jit;
  ok = !places || (r->places = ljp_report_places(r));
  if (!ok) {
    /* Nothing was printed. */
  } else if (r->jit) {
    ok = report_jit(r);
  } else if (r->json) {
    ljp_report_json_begin(r);
    ok = report_rows(r);
    ljp_report_json_end(r);
  } else if (!lacks) {
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
  if (lacks)
    ljp_command_error("report", "%s: %s%s", r->path, lacks,
                      ljp_damage_hint(r->p));
  else
    ljp_command_error("report", "%s: nothing to show: no %s%s%s", r->path,
                      ljp_measure_text(r->select.measure),
                      r->p->totals.filtered || r->p->row_count
                          ? " in what is selected"
                          : " in the file",
                      ljp_damage_hint(r->p));
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
      {"--by" LJP_BY_LIST(LJP_BY_WORD), NULL, &a.by},
      {"--top", NULL, &a.top},
      {"--min", NULL, &a.min},
  };
  int code = ljp_command_options("report", help, argc, argv, flags,
                                 sizeof flags / sizeof *flags, &a.file);
  if (code >= 0)
    return code;
  r.jit = common.jit;
  if ((code = report_parse(&a, &r)) ||
      (code = report_parse_by(&a, &r, &common.label_key)))
    return code;
  common.native |= r.jit || r.by == LJP_BY_TRACE || r.c_lines;
  if ((code = ljp_report_open(&common, "report", a.file, &r)))
    return code;
  if (r.by == LJP_BY_TYPE && !ljp_measure_is_memory(r.select.measure) &&
      r.select.measure != LJP_MEASURE_GC_COST) {
    ljp_command_error("report", "--by type: samples have no type; it groups "
                                "memory (--alloc, --live, --leaks ...)");
    ljp_report_close(&r);
    return LJP_EXIT_USAGE;
  }
  if (!a.by && !r.tree && r.select.measure == LJP_MEASURE_LEAKS)
    r.by = LJP_BY_STACK;
  r.lines |=
      r.by ==
      LJP_BY_STACK; /* Without lines, different stacks would look alike. */
  r.hint = ljp_by_of_frame(r.by) || r.by == LJP_BY_STACK;
  ljp_print_begin(&out, STDOUT_FILENO);
  code = report_show(&r);
  code = ljp_command_end("report", &out, code);
  ljp_report_close(&r);
  return code;
}
