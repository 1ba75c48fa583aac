/*
** ljprof diff: what changed from one session to another, by function and by
** stack, as text, JSON or page.
*/
#include "tools/page/diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/shared/command.h"
#include "tools/shared/outfile.h"
#include "tools/page/write.h"
#include "tools/shared/progress.h"
#include "tools/shared/show.h"
#include "tools/shared/units.h"

static const char help[] =
    "Usage: ljprof diff BEFORE AFTER [OPTION]...\n"
    "       ljprof diff BEFORE AFTER -o PAGE.html [OPTION]...\n"
    "Compares two profiles, by function and by stack. Values are per second "
    "of\n"
    "recording, so that sessions of different length can be compared (live\n"
    "memory and leaks: as they stand at the end). With each change stands the\n"
    "sampling error, two standard errors; what changed by less is not "
    "listed.\n\n"
    "  --view NAME         cpu, wall, alloc, live or leaks (default: the "
    "first\n"
    "                      that both files have)\n"
    "  --share             compare shares: by the second of CPU time (or GiB)\n"
    "                      measured, not of recording; for programs that had\n"
    "                      more or less of the machine, or more or less to do\n"
    "  --top N             lines of each list (default 20; 0: all)\n"
    "  --all               also list what is within the sampling error\n"
    "  --json              one JSON object, all functions and stacks\n"
    "  -o, --output PATH   write the report there; if PATH ends in .html or\n"
    "                      .htm, a flame graph page with the changes as "
    "colours\n"
    "  --force             replace a file that exists\n"
    "  --thread NAME       of one thread, by name, number or OS number\n"
    "  --no-symbols        do not look up names of machine code\n"
    "  --help              this text\n\n"
    "Exit code: 0 compared, 1 not, 2 called wrongly.\n";

static const struct {
  const char *id, *name, *unit;
} views[] = {
#define LJP_X(key, id, name, unit, counts) {id, name, unit},
    LJP_PAGE_VIEW_LIST(LJP_X)
#undef LJP_X
};

struct options {
  const char *files[2];
  const char *output, *view, *thread, *top_text;
  unsigned long top;
  bool json, force, all, no_symbols, html, share;
};

static int wrong(const char *format, const char *value)
{
  ljp_command_error("diff", format, value);
  return LJP_EXIT_USAGE;
}

static int parse(struct options *o, int argc, char **argv)
{
  const struct ljp_flag flags[] = {
      {"--view", NULL, &o->view},     {"--top", NULL, &o->top_text},
      {"--all", &o->all, NULL},       {"--json", &o->json, NULL},
      {"-o", NULL, &o->output},       {"--output", NULL, &o->output},
      {"--force", &o->force, NULL},   {"--share", &o->share, NULL},
      {"--thread", NULL, &o->thread}, {"--no-symbols", &o->no_symbols, NULL}};
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
    return wrong("%s", count < 2 ? "two files are wanted: BEFORE and AFTER"
                                 : "two files are wanted, no more");
  if (strcmp(o->files[0], "-") == 0 && strcmp(o->files[1], "-") == 0)
    return wrong("%s", "only one of the files can be standard input");
  bool known = !o->view;
  for (int i = 0; i < LJP_PAGE_VIEWS; i++)
    known = known || strcmp(o->view, views[i].id) == 0;
  if (!known)
    return wrong("no view is called '%s': cpu, wall, alloc, live or leaks",
                 o->view);
  char *end = NULL;
  o->top = o->top_text ? strtoul(o->top_text, &end, 10) : 20;
  if (end && (*end || end == o->top_text || *o->top_text == '-'))
    return wrong("--top wants a number, not '%s'", o->top_text);
  size_t len = o->output ? strlen(o->output) : 0;
  o->html = (len > 5 && strcmp(o->output + len - 5, ".html") == 0) ||
            (len > 4 && strcmp(o->output + len - 4, ".htm") == 0);
  if (o->html && o->json)
    return wrong("%s", "--json goes to a file of another name than .html");
  return -1;
}

static bool per_second(int view)
{
  return view != LJP_PAGE_VIEW_LIVE && view != LJP_PAGE_VIEW_LEAK;
}

static uint64_t whole(double x)
{
  return x > 0 ? (uint64_t)llround(x) : 0;
}

/* An amount a second; with a sign if it is a change. */
static size_t amount(char *to, size_t room, double x, int view, bool sign)
{
  static struct ljp_print out;
  ljp_print_begin(&out, -1);
  ljp_units_amount(&out, whole(fabs(x)), views[view].unit);
  size_t n = out.len < room - 4 ? out.len : room - 4;
  size_t at = 0;
  if (sign)
    to[at++] = whole(fabs(x)) == 0 ? ' ' : x < 0 ? '-' : '+';
  memcpy(to + at, out.buf, n);
  to[at + n] = 0;
  return at + n;
}

static void cell(struct ljp_print *out, double x, int view, bool sign)
{
  char text[64];
  amount(text, sizeof text, x, view, sign);
  ljp_print_format(out, "%12s", text);
}

static void frame_name(struct ljp_print *out, const struct ljp_page *page,
                       uint32_t frame)
{
  const struct ljp_page_frame *f = &page->frames[frame];
  ljp_print_safe(out, f->name);
  if (f->file.len && f->kind >= LJP_PAGE_LUA && f->kind <= LJP_PAGE_INLINED) {
    ljp_print_str(out, " ");
    ljp_print_safe(out, f->file);
    if (f->line)
      ljp_print_format(out, ":%" PRIu32, f->line);
  }
}

static const char *verdict(const struct ljp_diff_value *v)
{
  if (!ljp_diff_sure(v))
    return "same";
  return v->value[0] <= 0            ? "new"
         : v->value[1] <= 0          ? "gone"
         : v->value[1] > v->value[0] ? "more"
                                     : "less";
}

static void value_line(struct ljp_print *out, const struct ljp_diff_value *v,
                       int view)
{
  cell(out, v->value[1] - v->value[0], view, true);
  cell(out, ljp_diff_error(v), view, false);
  cell(out, v->value[0], view, false);
  cell(out, v->value[1], view, false);
  ljp_print_format(out, "  %-5s ", verdict(v));
}

static void head(struct ljp_print *out, const struct ljp_diff *d, int view)
{
  static const char *const when[] = {"before", "after"};
  for (size_t i = 0; i < d->page.notice_count; i++) {
    ljp_print_str(out, "! ");
    ljp_print_safe(out, d->page.notices[i].text);
    ljp_print_str(out, "\n");
  }
  for (int side = 0; side < 2; side++) {
    const struct ljp_diff_side *s = &d->sides[side];
    ljp_print_format(out, "%-7s", when[side]);
    ljp_print_safe(out, s->file);
    ljp_print_format(out, ": %.3f s, ", s->seconds);
    if (view == LJP_PAGE_VIEW_CPU || view == LJP_PAGE_VIEW_WALL)
      ljp_print_format(out, "%" PRIu64 " samples\n", s->samples);
    else
      ljp_print_format(out, "%" PRIu64 " allocations\n", s->events);
  }
}

static void text_report(const struct options *o, const struct ljp_diff *d,
                        int view, const struct ljp_diff_function *f,
                        size_t functions, const struct ljp_diff_stack *s,
                        size_t stacks, struct ljp_print *out)
{
  size_t shown = 0, quiet = 0;
  head(out, d, view);
  const char *rate = !per_second(view)             ? ""
                     : !d->share                   ? " a second of recording"
                     : view == LJP_PAGE_VIEW_ALLOC ? " a GiB"
                                                   : " a second of them";
  char a[64], b[64];
  amount(a, sizeof a, d->sums[view][0], view, false);
  amount(b, sizeof b, d->sums[view][1], view, false);
  ljp_print_format(out,
                   "%s%s: %s before, %s after\n\nfunctions, by their own "
                   "change\n%12s%12s%12s%12s\n",
                   views[view].name, rate, a, b, "change", "+-", "before",
                   "after");
  for (size_t i = 0; i < functions; i++) {
    bool sure = ljp_diff_sure(&f[i].self);
    quiet += !sure;
    if ((!sure && !o->all) || (o->top && shown >= o->top))
      continue;
    shown++;
    value_line(out, &f[i].self, view);
    frame_name(out, &d->page, f[i].frame);
    ljp_print_str(out, "\n");
  }
  if (!shown)
    ljp_print_str(out, "  nothing beyond the sampling error\n");
  size_t sure = functions - quiet;
  if (sure > shown)
    ljp_print_format(out, "  and %zu more (--top 0 lists all)\n", sure - shown);
  if (quiet && !o->all)
    ljp_print_format(out,
                     "  %zu functions changed by less than the sampling "
                     "error (--all lists them)\n",
                     quiet);
  shown = 0;
  ljp_print_str(out, "\nstacks\n");
  for (size_t i = 0; i < stacks && (!o->top || shown < o->top); i++) {
    if (!ljp_diff_sure(&s[i].self) && !o->all)
      break; /* Sure ones come first. */
    shown++;
    value_line(out, &s[i].self, view);
    uint32_t at = s[i].node, path[2048], n = 0;
    for (; at && n < 2048; at = d->page.nodes[at].parent)
      path[n++] = d->page.nodes[at].frame;
    /* The innermost frames tell stacks apart. */
    for (uint32_t k = n < 4 ? n : 4; k-- > 0;) {
      ljp_print_str(out, k + 1 == 4 && n > 4 ? "...;" : "");
      frame_name(out, &d->page, path[k]);
      ljp_print_str(out, k ? ";" : "");
    }
    ljp_print_str(out, "\n");
  }
  if (!shown)
    ljp_print_str(out, "  nothing beyond the sampling error\n");
}

/* Values in JSON are whole: nanoseconds or bytes, a second. */
static void json_value(struct ljp_shower *show, const char *name,
                       const struct ljp_diff_value *v)
{
  char key[40];
#define LJP_MEMBER(suffix, x)                                                  \
  snprintf(key, sizeof key, "%s_" suffix, name);                               \
  ljp_show_signed(show, key, (int64_t)llround(x));
  LJP_MEMBER("before", v->value[0])
  LJP_MEMBER("after", v->value[1])
  LJP_MEMBER("change", v->value[1] - v->value[0])
  LJP_MEMBER("error", ljp_diff_error(v))
#undef LJP_MEMBER
  snprintf(key, sizeof key, "%s_verdict", name);
  ljp_show_listed(show, key, verdict(v), 0);
}

static void json_frame(struct ljp_shower *show, const struct ljp_page *page,
                       uint32_t frame)
{
  static const char *const kinds[] = {
#define LJP_X(key, colour, name) name,
      LJP_PAGE_KIND_LIST(LJP_X)
#undef LJP_X
  };
  const struct ljp_page_frame *f = &page->frames[frame];
  ljp_show_string(show, "name", f->name);
  ljp_show_string(show, "file", f->file);
  ljp_show_number(show, "line", f->line);
  ljp_show_string(show, "module", f->module);
  ljp_show_listed(show, "kind", kinds[f->kind], 0);
}

static void json_side(struct ljp_shower *show, const struct ljp_diff *d,
                      int side, int view)
{
  const struct ljp_diff_side *s = &d->sides[side];
  char key[40];
  const char *when = side ? "after" : "before";
#define LJP_KEY(suffix) (snprintf(key, sizeof key, "%s_" suffix, when), key)
  ljp_show_string(show, LJP_KEY("file"), s->file);
  ljp_show_number(show, LJP_KEY("duration_ns"), whole(s->seconds * 1e9));
  ljp_show_number(show, LJP_KEY("samples"), s->samples);
  ljp_show_number(show, LJP_KEY("alloc_events"), s->events);
  ljp_show_number(show, LJP_KEY("value"), whole(d->sums[view][side]));
#undef LJP_KEY
}

static void json_report(const struct ljp_diff *d, int view,
                        const struct ljp_diff_function *f, size_t functions,
                        const struct ljp_diff_stack *s, size_t stacks,
                        struct ljp_print *out)
{
  struct ljp_shower show = {.out = out, .json = true, .first = true};
  ljp_print_str(out, "{\"totals\":{");
  ljp_show_listed(&show, "view", views[view].id, 0);
  ljp_show_listed(&show, "unit", views[view].unit, 0);
  ljp_show_bool(&show, "per_second", per_second(view) && !d->share);
  ljp_show_bool(&show, "share", d->share);
  for (int side = 0; side < 2; side++)
    json_side(&show, d, side, view);
  ljp_print_str(out, "},\"notices\":[");
  for (size_t i = 0; i < d->page.notice_count; i++) {
    ljp_print_str(out, i ? "," : "");
    ljp_print_json(out, d->page.notices[i].text);
  }
  ljp_print_str(out, "],\"rows\":[");
  for (size_t i = 0; i < functions; i++) {
    show.first = i == 0;
    ljp_show_item(&show);
    json_frame(&show, &d->page, f[i].frame);
    json_value(&show, "self", &f[i].self);
    json_value(&show, "total", &f[i].total);
    ljp_show_item_end(&show);
  }
  ljp_print_str(out, "],\"stacks\":[");
  for (size_t i = 0; i < stacks; i++) {
    show.first = i == 0;
    ljp_show_item(&show);
    json_value(&show, "self", &s[i].self);
    ljp_show_list(&show, "frames");
    for (uint32_t at = s[i].node; at; at = d->page.nodes[at].parent) {
      ljp_show_item(&show);
      json_frame(&show, &d->page, d->page.nodes[at].frame);
      ljp_show_item_end(&show);
    }
    ljp_show_list_end(&show);
    ljp_show_item_end(&show);
  }
  ljp_print_str(out, "]}\n");
}

static int report(const struct options *o, struct ljp_diff *d, int view)
{
  static struct ljp_print out;
  struct ljp_outfile file;
  size_t functions = 0, stacks = 0;
  struct ljp_diff_function *f = NULL;
  struct ljp_diff_stack *s = NULL;
  if (!o->html) {
    f = ljp_diff_functions(d, (enum ljp_page_view)view, &functions);
    s = ljp_diff_stacks(d, (enum ljp_page_view)view, &stacks);
  }
  int code = !o->html && (!f || !s)
                 ? LJP_EXIT_FAILED
                 : ljp_outfile_open(&file, "diff", o->output ? o->output : "-",
                                    o->force);
  if (!o->html && (!f || !s))
    ljp_command_error("diff", "%s", ljp_status_text(LJP_ERR_MEM));
  if (code < 0) {
    ljp_print_begin(&out, file.fd);
    if (o->html)
      ljp_diff_html(d, &out);
    else if (o->json)
      json_report(d, view, f, functions, s, stacks, &out);
    else
      text_report(o, d, view, f, functions, s, stacks, &out);
    code = ljp_outfile_commit(&file, ljp_print_end(&out));
  }
  free(f);
  free(s);
  return code;
}

/* -1: there is nothing to compare, which was told. */
static int view_of(const struct options *o, const struct ljp_diff *d)
{
  for (int v = 0; v < LJP_PAGE_VIEWS; v++)
    if (ljp_diff_has(d, (enum ljp_page_view)v) &&
        (!o->view || strcmp(o->view, views[v].id) == 0))
      return v;
  ljp_command_error("diff",
                    "%s and %s do not belong together: %s%s%s is in both",
                    o->files[0], o->files[1],
                    o->view ? "no data of the view '" : "no kind of data",
                    o->view ? o->view : "", o->view ? "'" : "");
  return -1;
}

int ljp_command_diff(int argc, char **argv)
{
  struct options o = {0};
  static struct ljp_diff diff;
  static char error[LJP_READER_ERROR_BYTES + 64];
  struct ljp_profile *profiles[2] = {NULL, NULL};
  int code = parse(&o, argc, argv);
  if (code >= 0)
    return code;
  struct ljp_progress progress;
  struct ljp_profile_options options = {.thread = o.thread,
                                        .no_symbols = o.no_symbols,
                                        .progress = ljp_progress_bytes,
                                        .progress_ctx = &progress};
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
        ljp_diff_init(&diff, profiles[0], profiles[1], o.files, o.share);
    int view = status ? -1 : view_of(&o, &diff);
    if (status)
      ljp_command_error("diff", "%s", ljp_status_text(status));
    code = view < 0 ? LJP_EXIT_FAILED : report(&o, &diff, view);
    ljp_diff_fini(&diff);
  }
  ljp_profile_free(profiles[0]);
  ljp_profile_free(profiles[1]);
  return code;
}
