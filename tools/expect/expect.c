/*
** ljprof expect: checks a profile against budgets. Parses all budgets before it
** reads a file, loads the files that they name, and judges them.
*/
#include "tools/expect/expect.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "tools/shared/command.h"
#include "tools/shared/damage.h"
#include "tools/shared/labels.h"
#include "tools/shared/outfile.h"
#include "tools/shared/progress.h"
#include "tools/shared/related.h"

static const char help[] =
    "Usage: ljprof expect FILE BUDGET... [OPTION]...\n"
    "Checks a profile against budgets, for CI. Prints one line for each.\n"
    "\n"
    "A budget compares a figure with a limit:\n"
    "\n"
    "  'live <= 20 MB'                     the whole file\n"
    "  'own(render) <= 12 %'               a function itself: its share of the "
    "time\n"
    "  'alloc(parse) <= 1.05 * base.ljp'   with what it calls, against another "
    "file\n"
    "\n"
    "Figures: cpu, wall, gc-cost (time); alloc, live, leaks, peak, churn "
    "(memory);\n"
    "samples, duration, unsampled, lost. Those of time and memory may take a "
    "NAME in\n"
    "parentheses: a function (parse, or 'parse app.lua' if there are several), "
    "a\n"
    "file, a line (app.lua:12) or a module.\n"
    "  cpu(NAME)      with what the function calls; cpu.own(NAME) without\n"
    "  total(NAME), own(NAME)\n"
    "                 the same of the CPU time or, if there is none, of the\n"
    "                 wall-clock time\n"
    "  cpu(NAME?)     counts 0 if there is no such name; without '?', the "
    "budget\n"
    "                 cannot be judged then\n"
    "Limits: numbers with a unit (%, ms, MB, MiB, objects, samples ...), "
    "files, and\n"
    "their products, sums and differences.\n"
    "\n"
    "A budget is exceeded if the figure is beyond the limit by more than the\n"
    "sampling error (95 of 100 cases).\n"
    "\n"
    "  --budgets PATH   read more budgets: one in a line, '#' begins a "
    "comment\n"
    "  --strict         a budget must hold whatever the sampling error is\n"
    "  --incomplete     judge a file that is damaged or was not closed\n"
    "  --json           write one JSON object\n"
    "  --junit PATH     also write the results as JUnit's XML\n"
    "  --force          replace PATH of --junit if it exists\n"
    "  --thread NAME    only one thread, by name, number or OS number\n"
    "  --label KEY=VALUE\n"
    "                   only what has this label; several: all of them; KEY=: "
    "without KEY\n"
    "  --native         names may be of machine code, whose work then does not "
    "count\n"
    "                   for the functions that made it run (as report's "
    "--native)\n"
    "  --no-symbols     do not look up names of machine code\n"
    "  --help           show this help\n"
    "\n"
    "Exit code: 0 all budgets hold; 1 one is exceeded; 2 wrong usage, or a "
    "budget\n"
    "that cannot be parsed; 3 one could not be judged: a file cannot be read "
    "or does\n"
    "not hold what it is about.\n";

enum { EXPECT_EXIT_UNKNOWN = 3, EXPECT_FILE_BYTES = 1 << 20 };

struct expect_file {
  char *path;
  struct ljp_profile *p; /* NULL: see why. */
  char why[LJP_READER_ERROR_BYTES + 1100];
};

struct expect {
  const char *path, *budgets, *junit, *thread;
  struct ljp_label_options labels;
  bool json, strict, force, incomplete, no_symbols, native;
  char *text; /* Of the file of budgets, cut into lines. */
  struct ljp_expectation *list;
  unsigned count, room;
  struct expect_file *files; /* [0]: the one to judge; then the bases. */
  unsigned file_count, file_room;
};

static int expect_memory(void)
{
  ljp_command_error("expect", "out of memory");
  return EXPECT_EXIT_UNKNOWN;
}

/* -- Budgets ---------------------------------------------------------------- */

/* Shows a budget that cannot be parsed, and marks the place. */
static void expect_mark(const char *text, const struct ljp_budget_error *error)
{
  static struct ljp_print out;
  unsigned column = 0;
  ljp_print_begin(&out, -1);
  ljp_print_safe(&out, ljp_str(text, error->at));
  for (size_t i = 0; i < out.len; i++)
    column += ((unsigned char)out.buf[i] & 0xc0) != 0x80;
  ljp_print_begin(&out, 2);
  ljp_print_str(&out, "  ");
  ljp_print_safe(&out, ljp_str(text, strnlen(text, LJP_BUDGET_BYTES)));
  ljp_print_format(&out, "\n%*s\n", (int)column + 3, "^");
  ljp_print_end(&out);
}

static int expect_add(struct expect *x, const char *text, const char *where,
                      unsigned line)
{
  struct ljp_budget_error error;
  if (x->count == x->room) {
    unsigned room = x->room ? 2 * x->room : 16;
    struct ljp_expectation *list = realloc(x->list, room * sizeof *list);
    if (!list)
      return expect_memory();
    x->list = list;
    x->room = room;
  }
  struct ljp_expectation *e = &x->list[x->count];
  memset(e, 0, sizeof *e);
  if (ljp_budget_parse(text, &e->budget, &error)) {
    x->count++;
    return -1;
  }
  if (where)
    ljp_command_error("expect", "%s:%u: %s", where, line, error.text);
  else
    ljp_command_error("expect", "budget %u: %s", line, error.text);
  expect_mark(text, &error);
  return LJP_EXIT_USAGE;
}

/* Reads the file of budgets into x->text. -1: done. */
static int expect_read(struct expect *x)
{
  FILE *file = fopen(x->budgets, "r");
  x->text = file ? malloc(EXPECT_FILE_BYTES + 1) : NULL;
  size_t n = x->text ? fread(x->text, 1, EXPECT_FILE_BYTES + 1, file) : 0;
  int code = -1;
  if (!file || (x->text && ferror(file))) {
    ljp_command_error("expect", "%s: %s", x->budgets, strerror(errno));
    code = LJP_EXIT_USAGE;
  } else if (!x->text) {
    code = expect_memory();
  } else if (n > EXPECT_FILE_BYTES || memchr(x->text, 0, n)) {
    ljp_command_error("expect", "%s: not a file of budgets: %s", x->budgets,
                      n > EXPECT_FILE_BYTES ? "larger than 1 MiB"
                                            : "it contains NUL bytes");
    code = LJP_EXIT_USAGE;
  } else {
    x->text[n] = '\0';
  }
  if (file)
    fclose(file);
  return code;
}

/* Cuts a comment and the end of the line off. '#' is part of a name within
** parentheses or quotes, or where no space stands before it. */
static void expect_cut(char *line)
{
  size_t end = 0, depth = 0;
  bool quoted = false;
  for (size_t i = 0; line[i] && line[i] != '\r'; i++) {
    char c = line[i];
    quoted ^= c == '"';
    depth += !quoted && c == '(';
    depth -= !quoted && c == ')' && depth;
    if (c == '#' && !quoted && !depth &&
        (!i || line[i - 1] == ' ' || line[i - 1] == '\t'))
      break;
    if (c != ' ' && c != '\t')
      end = i + 1;
  }
  line[end] = '\0';
}

static int expect_add_lines(struct expect *x)
{
  static const char mark[] = "\xef\xbb\xbf"; /* Some editors begin with it. */
  int code = expect_read(x);
  unsigned number = 0;
  char *line = x->text, *next;
  if (code < 0 && strncmp(line, mark, sizeof mark - 1) == 0)
    line += sizeof mark - 1;
  for (; code < 0 && line; line = next) {
    next = strchr(line, '\n');
    if (next)
      *next++ = '\0';
    number++;
    expect_cut(line);
    line += strspn(line, " \t");
    if (*line)
      code = expect_add(x, line, x->budgets, number);
  }
  return code;
}

/* -- Files ------------------------------------------------------------------ */

static void expect_load(const struct expect *x, struct expect_file *f)
{
  struct ljp_progress progress;
  struct ljp_profile_options options = {.thread = x->thread,
                                        .no_symbols = x->no_symbols,
                                        .lua_view = !x->native,
                                        .gc_cost =
                                            !x->thread && !x->labels.labels[0],
                                        .progress = ljp_progress_bytes,
                                        .progress_ctx = &progress};
  char error[LJP_READER_ERROR_BYTES + 64];
  ljp_label_options("expect", &x->labels, &options); /* They are right. */
  ljp_progress_begin(&progress, f->path);
  if (ljp_profile_load(f->path, &options, &f->p, error))
    snprintf(f->why, sizeof f->why, "%.400s: %s", f->path, error);
  else if (!x->incomplete && !ljp_is_whole(f->p))
    snprintf(f->why, sizeof f->why,
             "%.400s %s (--incomplete judges what it holds)", f->path,
             ljp_is_growing(f->p) ? "is still being recorded"
                                  : "is damaged or was not closed");
  ljp_progress_end(&progress);
}

/* The program and its script. */
static void expect_name(const struct ljp_profile *p, char *out, size_t room)
{
  struct ljp_str program = ljp_related_program(p);
  struct ljp_str script = ljp_related_script(p);
  snprintf(out, room, "%.*s%s%.*s", program.len < 128 ? (int)program.len : 128,
           program.len ? program.data : "", script.len ? " " : "",
           script.len < 128 ? (int)script.len : 128,
           script.len ? script.data : "");
}

/* A base file must be of the program that is judged. */
static enum ljp_status expect_compare(const struct expect_file *judged,
                                      struct expect_file *base)
{
  enum ljp_related related;
  if (!judged->p || !base->p || *base->why)
    return LJP_OK;
  enum ljp_status status = ljp_related(judged->p, base->p, &related);
  if (status || related != LJP_RELATED_NOT)
    return status;
  char names[2][300];
  expect_name(base->p, names[0], sizeof names[0]);
  expect_name(judged->p, names[1], sizeof names[1]);
  snprintf(base->why, sizeof base->why,
           "%.400s is of another program: %s, not %s", base->path, names[0],
           names[1]);
  return LJP_OK;
}

/* Finds or loads a file. NULL: out of memory. */
static struct expect_file *expect_file(struct expect *x, struct ljp_str path)
{
  for (unsigned i = 0; i < x->file_count; i++)
    if (strncmp(x->files[i].path, path.data, path.len) == 0 &&
        x->files[i].path[path.len] == '\0')
      return &x->files[i];
  if (x->file_count == x->file_room) {
    unsigned room = x->file_room ? 2 * x->file_room : 4;
    struct expect_file *files = realloc(x->files, room * sizeof *files);
    if (!files)
      return NULL;
    x->files = files;
    x->file_room = room;
  }
  struct expect_file *f = &x->files[x->file_count];
  memset(f, 0, sizeof *f);
  if (!(f->path = strndup(path.data, path.len)))
    return NULL;
  x->file_count++;
  expect_load(x, f);
  return expect_compare(&x->files[0], f) ? NULL : f;
}

/* -- Judging ---------------------------------------------------------------- */

static enum ljp_status expect_take(const struct expect_file *f,
                                   const struct ljp_budget *b,
                                   struct ljp_figure_value *v)
{
  *v = (struct ljp_figure_value){0};
  if (*f->why) {
    snprintf(v->why, sizeof v->why, "%.*s", (int)sizeof v->why - 1, f->why);
    return LJP_OK;
  }
  return ljp_figure_take(f->p, f->path, b, v);
}

/* Adds up the terms. Their errors are independent. */
static enum ljp_status expect_limit(struct expect *x,
                                    const struct ljp_budget *b,
                                    struct ljp_figure_value *limit)
{
  double below = 0, above = 0;
  *limit = (struct ljp_figure_value){.known = true};
  for (unsigned i = 0; i < b->term_count; i++) {
    const struct ljp_budget_term *t = &b->terms[i];
    struct ljp_figure_value v = {.value = 1, .low = 1, .high = 1};
    if (t->base.len) {
      const struct expect_file *f = expect_file(x, t->base);
      enum ljp_status status = f ? expect_take(f, b, &v) : LJP_ERR_MEM;
      if (status)
        return status;
      if (!v.known) {
        *limit = v;
        return LJP_OK;
      }
      limit->sampled |= v.sampled;
      limit->estimated |= v.estimated;
    }
    double low = t->factor * v.low, high = t->factor * v.high;
    double value = t->factor * v.value;
    limit->value += value;
    below = hypot(below, value - fmin(low, high));
    above = hypot(above, fmax(low, high) - value);
  }
  limit->low = limit->value - below;
  limit->high = limit->value + above;
  if (!isfinite(limit->low) || !isfinite(limit->high)) {
    limit->known = false;
    snprintf(limit->why, sizeof limit->why, "the limit is too large a number");
  }
  return LJP_OK;
}

static enum ljp_status expect_judge(struct expect *x)
{
  struct ljp_str path = ljp_str(x->path, strlen(x->path));
  if (!expect_file(x, path))
    return LJP_ERR_MEM;
  for (unsigned i = 0; i < x->count; i++) {
    struct ljp_expectation *e = &x->list[i];
    enum ljp_status status = expect_take(&x->files[0], &e->budget, &e->value);
    if (!status)
      status = expect_limit(x, &e->budget, &e->limit);
    if (status)
      return status;
    ljp_expect_judge(e, x->strict);
  }
  return LJP_OK;
}

static bool expect_write_junit(const struct expect *x,
                               const struct ljp_expectations *all)
{
  static struct ljp_print out;
  struct ljp_outfile file = {0};
  if (ljp_outfile_open(&file, "expect", x->junit, x->force) >= 0)
    return false;
  ljp_print_begin(&out, file.fd);
  ljp_expect_junit(all, &out);
  return ljp_outfile_commit(&file, ljp_print_end(&out)) == LJP_EXIT_OK;
}

static int expect_run(struct expect *x)
{
  static const int codes[] = {[LJP_VERDICT_HOLDS] = LJP_EXIT_OK,
                              [LJP_VERDICT_EXCEEDED] = LJP_EXIT_FAILED,
                              [LJP_VERDICT_UNKNOWN] = EXPECT_EXIT_UNKNOWN};
  static struct ljp_print out;
  if (expect_judge(x))
    return expect_memory();
  const struct ljp_expectations all = {x->path, x->files[0].p, x->list,
                                       x->count};
  int code = codes[ljp_expect_worst(&all)];
  ljp_print_begin(&out, 1);
  if (x->json)
    ljp_expect_json(&all, &out);
  else
    ljp_expect_text(&all, &out);
  bool written = ljp_command_end("expect", &out, LJP_EXIT_OK) == LJP_EXIT_OK;
  if (x->junit && !expect_write_junit(x, &all))
    written = false;
  return written || code ? code : EXPECT_EXIT_UNKNOWN;
}

/* Whether a budget stands where the file is expected. */
static bool expect_is_budget(const char *path)
{
  struct ljp_budget budget;
  struct ljp_budget_error error;
  return access(path, F_OK) != 0 && ljp_budget_parse(path, &budget, &error);
}

static int expect_parse(struct expect *x, int argc, char **argv)
{
  const struct ljp_flag flags[] = {{"--budgets", NULL, &x->budgets},
                                   {"--strict", &x->strict, NULL},
                                   {"--json", &x->json, NULL},
                                   {"--junit", NULL, &x->junit},
                                   {"--force", &x->force, NULL},
                                   {"--thread", NULL, &x->thread},
                                   LJP_LABEL_FLAG(x->labels),
                                   {"--incomplete", &x->incomplete, NULL},
                                   {"--no-symbols", &x->no_symbols, NULL},
                                   {"--native", &x->native, NULL}};
  unsigned count = 0;
  const char **words = calloc((size_t)argc + 1, sizeof *words);
  if (!words)
    return expect_memory();
  int code = ljp_command_files("expect", help, argc, argv, flags,
                               sizeof flags / sizeof *flags, words, &count);
  x->path = count ? words[0] : "";
  if (code < 0 && expect_is_budget(x->path)) {
    ljp_command_error("expect", "the file comes first, then the budgets: "
                                "ljprof expect FILE BUDGET...");
    code = LJP_EXIT_USAGE;
  }
  for (unsigned i = 1; code < 0 && i < count; i++)
    code = expect_add(x, words[i], NULL, i);
  free((void *)words);
  if (code < 0 && x->budgets)
    code = expect_add_lines(x);
  if (code >= 0)
    return code;
  struct ljp_profile_options ignored = {0};
  if ((code = ljp_label_options("expect", &x->labels, &ignored)))
    return code;
  if (!x->count) {
    ljp_command_error("expect",
                      "no budget given: ljprof expect FILE 'live <= 20 MB'");
    return LJP_EXIT_USAGE;
  }
  if (x->junit && strcmp(x->junit, "-") == 0) {
    ljp_command_error("expect", "--junit needs a file, not standard output");
    return LJP_EXIT_USAGE;
  }
  return -1;
}

int ljp_command_expect(int argc, char **argv)
{
  struct expect x = {0};
  int code = expect_parse(&x, argc, argv);
  if (code < 0)
    code = expect_run(&x);
  for (unsigned i = 0; i < x.file_count; i++) {
    ljp_profile_free(x.files[i].p);
    free(x.files[i].path);
  }
  free(x.files);
  free(x.list);
  free(x.text);
  return code;
}
