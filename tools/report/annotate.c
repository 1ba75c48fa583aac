/*
** ljprof annotate: prints the source lines of a file or function with what was
** counted in each. Sources are read from the path in the profile, or from below
** the folder given. Paths come from the profile and are not trusted: only
** regular files are read.
*/
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parsers/profile/frame_name.h"
#include "tools/report/groups.h"
#include "tools/shared/progress.h"

static const char help[] =
    "Usage: ljprof annotate [OPTION]... FILE WHERE\n"
    "Shows source lines with the time or memory of each.\n"
    "\n"
    "WHERE is a source file, SOURCE, or one function in it, SOURCE:FUNCTION "
    "or\n"
    "SOURCE:LINE (the line of its definition), or FUNCTION alone if no other "
    "has its\n"
    "name. SOURCE is a path as the profile has it, or the end of that path.\n"
    "\n"
    "  --cpu --wall --gc-cost --alloc --live --leaks --peak --churn\n"
    "                     what to count, as in 'ljprof report'\n"
    "  --source DIR       look for the source file in DIR\n"
    "  --context N        show N lines around each line that counts (default "
    "3)\n"
    "  --all              show all lines of the file or function\n"
    "  --time A..B --thread T --label KEY=VALUE --focus REGEX --ignore REGEX\n"
    "  --since MARK\n"
    "                     which samples, as in 'ljprof report'\n"
    "  --native           count the collector's work for the lines that "
    "made it run\n"
    "  --no-symbols       do not look up names of machine code\n"
    "  --json             write JSON: totals first, then all rows\n"
    "  --help             show this help\n"
    "\n"
    "self: spent in the line, including the builtins and C functions it "
    "calls,\n"
    "but not the collector.\n"
    "total: spent in the line and in everything it calls.\n"
    "\n"
    "Exit code: 0 success, 1 failure, no such place in the profile or nothing "
    "to\n"
    "show, 2 wrong usage.\n";

struct annotate {
  struct ljp_report r;
  struct ljp_groups groups;      /* One group per line. */
  uint32_t file;                 /* The source file: index of a string. */
  uint32_t first_line, function; /* 0: the whole file. */
  uint32_t most_line,
      last_line;           /* That counts; of the function (0: unknown). */
  uint32_t *group_of_line; /* Group + 1 by line; 0: nothing was counted. */
  unsigned context;
  bool all;
};

static bool annotate_ends_with(struct ljp_str path, const char *end, size_t len)
{
  return path.len >= len && memcmp(path.data + path.len - len, end, len) == 0 &&
         (path.len == len || path.data[path.len - len - 1] == '/');
}

static bool annotate_is_named(const struct ljp_profile *p,
                              const struct ljp_profile_frame *f,
                              const char *want)
{
  struct ljp_str name = ljp_profile_str(p, f->name);
  return name.len == strlen(want) && memcmp(name.data, want, name.len) == 0;
}

/* Finds the Lua functions of a name, wherever they are. Returns how many others
** there are beside the one found. */
static uint32_t annotate_find_function(struct annotate *a, const char *name)
{
  const struct ljp_profile *p = a->r.p;
  uint32_t others = 0;
  for (uint32_t i = 0; i < p->frame_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[i];
    if ((f->kind != LJP_FRAME_LUA && f->kind != LJP_FRAME_LUA_INLINED) ||
        !f->file || !annotate_is_named(p, f, name))
      continue;
    others += a->file && a->function != f->function;
    a->file = f->file;
    a->first_line = f->first_line;
    a->function = f->function;
  }
  return others;
}

/* Says that nothing of the name is in the profile. colon: the last in it. */
static int annotate_no_place(const struct annotate *a, const char *where,
                             const char *colon)
{
  const struct ljp_profile *p = a->r.p;
  bool line = colon && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")];
  bool known = false;
  for (uint32_t i = 0; line && i < p->frame_count; i++)
    known |= p->frames[i].file &&
             annotate_ends_with(ljp_profile_str(p, p->frames[i].file), where,
                                (size_t)(colon - where));
  if (known)
    ljp_command_error("annotate",
                      "%s: no function of the profile begins at %s (to see the "
                      "whole file, type 'ljprof annotate %s %.*s')",
                      a->r.path, where, a->r.path, (int)(colon - where), where);
  else
    ljp_command_error("annotate",
                      "%s: no '%s' in the profile (ljprof report --by file "
                      "lists its files, ljprof report its functions)%s",
                      a->r.path, where, ljp_damage_hint(p));
  return LJP_EXIT_FAILED;
}

/* Finds WHERE among the frames. Returns 0, or the exit code after reporting
** the error. */
static int annotate_find_place(struct annotate *a, const char *where)
{
  const struct ljp_profile *p = a->r.p;
  const char *colon = strrchr(where, ':');
  uint32_t whole = 0, part = 0, part_frame = 0, others = 0;
  for (uint32_t i = 0; i < p->frame_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[i];
    struct ljp_str file = ljp_profile_str(p, f->file);
    if (!f->file)
      continue;
    if (annotate_ends_with(file, where, strlen(where))) {
      others += whole && whole != f->file;
      whole = f->file;
    }
    if (!colon || !annotate_ends_with(file, where, (size_t)(colon - where)))
      continue;
    char line[16];
    snprintf(line, sizeof line, "%" PRIu32, f->first_line);
    if (annotate_is_named(p, f, colon + 1) ||
        (f->first_line && strcmp(line, colon + 1) == 0)) {
      others += part && part_frame != f->function;
      part = f->file;
      part_frame = f->function;
      a->first_line = f->first_line;
      a->function = f->function;
    }
  }
  a->file = whole ? whole : part;
  if (whole)
    a->first_line = a->function = 0;
  if (!a->file)
    others = annotate_find_function(a, where);
  if (!a->file)
    return annotate_no_place(a, where, colon);
  for (uint32_t i = 0; i < p->frame_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[i];
    a->r.c_lines |= f->file == a->file && f->kind != LJP_FRAME_LUA &&
                    f->kind != LJP_FRAME_LUA_INLINED &&
                    f->kind != LJP_FRAME_TRACE;
  }
  if (others) {
    ljp_command_error("annotate",
                      "%s: '%s' is ambiguous; give more of the path, or "
                      "SOURCE:LINE of the definition",
                      a->r.path, where);
    return LJP_EXIT_FAILED;
  }
  return 0;
}

/* Maps lines to groups. False: out of memory. */
static bool annotate_find_lines(struct annotate *a)
{
  const struct ljp_profile *p = a->r.p;
  for (uint32_t i = 0; i < p->frame_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[i];
    if (f->file == a->file && (!a->function || f->function == a->function) &&
        f->line > a->most_line && f->line < 10000000)
      a->most_line = f->line;
  }
  a->group_of_line = calloc((size_t)a->most_line + 2, sizeof *a->group_of_line);
  if (!a->group_of_line)
    return false;
  for (uint32_t i = 0; i < a->groups.count; i++) {
    const struct ljp_profile_frame *f = &p->frames[a->groups.first[i]];
    const struct ljp_group_value *v = &a->groups.values[i];
    if (f->file == a->file && f->line && f->line <= a->most_line &&
        (v->total.count || v->total.weight))
      a->group_of_line[f->line] = i + 1;
  }
  if (!a->function)
    return true;
  /* Removes the lines of other functions in the same file. */
  uint8_t *mine = calloc((size_t)a->most_line + 2, 1);
  for (uint32_t i = 0; mine && i < p->frame_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[i];
    if (f->file == a->file && f->function == a->function &&
        f->line <= a->most_line)
      mine[f->line] = 1;
  }
  for (uint32_t line = 0; mine && line <= a->most_line; line++)
    if (!mine[line])
      a->group_of_line[line] = 0;
  free(mine);
  return mine != NULL;
}

/* NULL: there is no such regular file. */
static FILE *annotate_open_source(const struct annotate *a, const char *folder)
{
  struct ljp_str file = ljp_profile_str(a->r.p, a->file);
  struct stat st;
  char path[PATH_MAX];
  size_t len = folder ? strlen(folder) : 0;
  for (uint32_t skip = 0; skip < file.len;) {
    int n = folder
                ? snprintf(path, sizeof path, "%s/%.*s", folder,
                           (int)(file.len - skip), file.data + skip)
                : snprintf(path, sizeof path, "%.*s", (int)file.len, file.data);
    if (n < 0 || (size_t)n >= sizeof path || memchr(file.data, 0, file.len))
      return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
      if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fdopen(fd, "r");
      close(fd);
    }
    if (!folder || !len)
      return NULL;
    /* Tries DIR/path/file, then DIR/file ...: paths differ between machines. */
    const char *slash = memchr(file.data + skip, '/', file.len - skip);
    if (!slash)
      return NULL;
    skip = (uint32_t)(slash + 1 - file.data);
  }
  return NULL;
}

static void annotate_print_line(const struct annotate *a, uint32_t line,
                                struct ljp_str text)
{
  struct ljp_print *out = a->r.out;
  uint32_t group = a->group_of_line[line <= a->most_line ? line : 0];
  char amount[24];
  if (group && line <= a->most_line) {
    const struct ljp_group_value *v = &a->groups.values[group - 1];
    double percent = ljp_percent(&a->r, &v->self);
    if (a->r.color)
      ljp_print_str(out, percent >= 10  ? "\033[31m"
                         : percent >= 1 ? "\033[33m"
                                        : "");
    ljp_amount(&a->r, v->self.weight, amount);
    ljp_print_format(out, "%10s %6.2f%%", amount, percent);
    ljp_amount(&a->r, v->total.weight, amount);
    ljp_print_format(out, " %10s %6.2f%%", amount,
                     ljp_percent(&a->r, &v->total));
    if (a->r.color)
      ljp_print_str(out, "\033[0m");
  } else {
    ljp_print_format(out, "%37s", "");
  }
  ljp_print_format(out, " %5" PRIu32 "  ", line);
  /* Tabs are harmless; other control characters are escaped. */
  for (uint32_t at = 0; at < text.len;) {
    const char *tab = memchr(text.data + at, '\t', text.len - at);
    uint32_t n = tab ? (uint32_t)(tab - text.data) - at : text.len - at;
    ljp_print_source(out, ljp_str(text.data + at, n));
    at += n;
    if (tab) {
      ljp_print_str(out, "    ");
      at++;
    }
  }
  ljp_print_str(out, "\n");
}

/* Whether the line or one near it counts. */
static bool annotate_is_near(const struct annotate *a, uint32_t line)
{
  uint32_t from = line > a->context ? line - a->context : 1;
  if (a->all)
    return true;
  for (uint32_t i = from; i <= line + a->context && i <= a->most_line; i++)
    if (a->group_of_line[i])
      return true;
  return false;
}

static void annotate_text(const struct annotate *a, FILE *source)
{
  struct ljp_print *out = a->r.out;
  char *text = NULL;
  size_t room = 0;
  ssize_t n;
  uint32_t line = 0, shown = 0;
  const uint32_t last = a->last_line ? a->last_line : a->most_line + a->context;
  ljp_print_format(out, "%10s %7s %10s %7s %5s  ", "self", "%", "total", "%",
                   "line");
  ljp_print_safe(out, ljp_profile_str(a->r.p, a->file));
  ljp_print_str(out, source ? "\n" : " (source not found, see --source)\n");
  while (source && (n = getline(&text, &room, source)) >= 0 &&
         line < UINT32_MAX) {
    line++;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
      n--;
    if ((a->function && (line < a->first_line || line > last)) ||
        !annotate_is_near(a, line))
      continue;
    if (shown && line != shown + 1)
      ljp_print_format(out, "%43s\n", "...");
    shown = line;
    annotate_print_line(a, line, ljp_str(text, (size_t)n));
  }
  free(text);
  /* Lines after the end of the source, or all lines if there is no source. */
  bool told = !source;
  for (line++; line <= a->most_line; line++)
    if (a->group_of_line[line]) {
      if (!told)
        ljp_print_str(out, "! the source file has fewer lines than this: it is "
                           "not the one that ran\n");
      told = true;
      annotate_print_line(a, line, ljp_str("", 0));
    }
}

static void annotate_json(const struct annotate *a, FILE *source)
{
  struct ljp_print *out = a->r.out;
  char *text = NULL;
  size_t room = 0;
  bool first = true;
  ljp_report_json_begin(&a->r);
  for (uint32_t line = 1; line <= a->most_line; line++) {
    ssize_t n = source ? getline(&text, &room, source) : -1;
    uint32_t group = a->group_of_line[line];
    if (!group)
      continue;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
      n--;
    ljp_print_format(out, "%s{\"line\":%" PRIu32 ",", first ? "\n" : ",\n",
                     line);
    first = false;
    ljp_json_value(&a->r, "self", &a->groups.values[group - 1].self);
    ljp_print_str(out, ",");
    ljp_json_value(&a->r, "total", &a->groups.values[group - 1].total);
    if (n >= 0) {
      ljp_print_str(out, ",\"source\":");
      ljp_print_json(out, ljp_str(text, (size_t)n));
    }
    ljp_print_str(out, "}");
  }
  free(text);
  ljp_report_json_end(&a->r);
}

/* No line counts. */
static int annotate_nothing(const struct annotate *a, const char *where)
{
  const bool samples = !ljp_measure_is_memory(a->r.select.measure);
  if (ljp_report_lacks(&a->r)) {
    ljp_command_error("annotate", "%s: %s%s", a->r.path,
                      ljp_report_lacks(&a->r), ljp_damage_hint(a->r.p));
    return LJP_EXIT_FAILED;
  }
  ljp_command_error("annotate", "%s: nothing to show: %s '%s'%s", a->r.path,
                    samples && a->r.p->recorded_by
                        ? "Tarantool's sysprof records no lines, so none is "
                          "known in"
                        : "nothing was counted in the lines of",
                    where,
                    samples && a->r.p->recorded_by
                        ? " (ljprof report has its functions)"
                        : "");
  return LJP_EXIT_FAILED;
}

static bool annotate_is_empty(const struct annotate *a)
{
  for (uint32_t line = 0; line <= a->most_line; line++)
    if (a->group_of_line[line])
      return false;
  return true;
}

/* Lines of Lua are shown in the Lua view, unless native is set; lines of C only
** exist in the native view, in which the report was opened. */
static int annotate_choose_view(struct annotate *a,
                                const struct ljp_report_options *common,
                                bool native, const char *where)
{
  int code = annotate_find_place(a, where);
  if (code || native || a->r.c_lines)
    return code;
  a->file = a->first_line = a->function = 0;
  code = ljp_report_fold(common, "annotate", &a->r);
  return code ? code : annotate_find_place(a, where);
}

static int annotate_show(struct annotate *a, const char *where,
                         const char *folder, const struct ljp_last_lines *lines)
{
  if (!ljp_groups_make(&a->r, &a->groups) || !annotate_find_lines(a)) {
    ljp_command_error("annotate", "out of memory");
    return LJP_EXIT_FAILED;
  }
  a->last_line =
      ljp_last_line(lines, ljp_profile_str(a->r.p, a->file), a->first_line);
  FILE *source = annotate_open_source(a, folder);
  if (a->r.json) {
    annotate_json(a, source);
  } else {
    ljp_report_head(&a->r);
    annotate_text(a, source);
  }
  if (source)
    fclose(source);
  return annotate_is_empty(a) ? annotate_nothing(a, where) : LJP_EXIT_OK;
}

int ljp_command_annotate(int argc, char **argv)
{
  static struct ljp_print out;
  struct ljp_report_options common = {0};
  struct annotate a = {.r = {.out = &out, .by = LJP_BY_LINE}, .context = 3};
  const char *folder = NULL, *context = NULL, *files[256];
  unsigned count = 0;
  const struct ljp_flag flags[] = {
      LJP_REPORT_FLAGS(common),      {"--json", &a.r.json, NULL},
      {"--all", &a.all, NULL},       {"--source", NULL, &folder},
      {"--context", NULL, &context},
  };
  if (argc > 255) {
    ljp_command_error("annotate",
                      "too many arguments: FILE SOURCE[:FUNCTION] expected");
    return LJP_EXIT_USAGE;
  }
  int code = ljp_command_files("annotate", help, argc, argv, flags,
                               sizeof flags / sizeof *flags, files, &count);
  if (code >= 0)
    return code;
  if (count != 2) {
    ljp_command_error("annotate", "a profile and a place are needed: FILE "
                                  "SOURCE[:FUNCTION]");
    return LJP_EXIT_USAGE;
  }
  if (context) {
    char *end;
    unsigned long n = strtoul(context, &end, 10);
    if (*end || end == context || context[0] == '-' || n > 1000000) {
      ljp_command_error("annotate", "--context: '%s' is not a number of lines",
                        context);
      return LJP_EXIT_USAGE;
    }
    a.context = (unsigned)n;
  }
  const bool native = common.native;
  struct ljp_last_lines lines = {.where = files[1]};
  common.native = true;
  common.last_lines = &lines;
  if ((code = ljp_report_open(&common, "annotate", files[0], &a.r))) {
    ljp_last_lines_fini(&lines);
    return code;
  }
  ljp_print_begin(&out, STDOUT_FILENO);
  code = annotate_choose_view(&a, &common, native, files[1]);
  if (!code)
    code = annotate_show(&a, files[1], folder, &lines);
  code = ljp_command_end("annotate", &out, code);
  ljp_groups_fini(&a.groups);
  free(a.group_of_line);
  ljp_last_lines_fini(&lines);
  ljp_report_close(&a.r);
  return code;
}
