/*
** Parses budgets; budget.h has the grammar. Any thread.
*/
#include "tools/expect/budget.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/nearest.h"
#include "tools/shared/print.h"

static const struct ljp_unit units[] = {
    {"%", LJP_UNIT_PERCENT, 1},      {"ns", LJP_UNIT_TIME, 1},
    {"us", LJP_UNIT_TIME, 1e3},      {"ms", LJP_UNIT_TIME, 1e6},
    {"s", LJP_UNIT_TIME, 1e9},       {"min", LJP_UNIT_TIME, 60e9},
    {"h", LJP_UNIT_TIME, 3600e9},    {"B", LJP_UNIT_BYTES, 1},
    {"bytes", LJP_UNIT_BYTES, 1},    {"kB", LJP_UNIT_BYTES, 1e3},
    {"KB", LJP_UNIT_BYTES, 1e3},     {"MB", LJP_UNIT_BYTES, 1e6},
    {"GB", LJP_UNIT_BYTES, 1e9},     {"TB", LJP_UNIT_BYTES, 1e12},
    {"KiB", LJP_UNIT_BYTES, 0x1p10}, {"MiB", LJP_UNIT_BYTES, 0x1p20},
    {"GiB", LJP_UNIT_BYTES, 0x1p30}, {"TiB", LJP_UNIT_BYTES, 0x1p40},
    {"samples", LJP_UNIT_COUNT, 1},  {"sample", LJP_UNIT_COUNT, 1},
    {"objects", LJP_UNIT_COUNT, 1},  {"object", LJP_UNIT_COUNT, 1},
    {"events", LJP_UNIT_COUNT, 1},   {"event", LJP_UNIT_COUNT, 1},
};
enum { UNITS = sizeof units / sizeof *units };

/* The units of figures whose limit has none. */
static const struct ljp_unit unit_ns = {"ns", LJP_UNIT_TIME, 1};
static const struct ljp_unit unit_bytes = {"B", LJP_UNIT_BYTES, 1};
static const struct ljp_unit unit_things = {"", LJP_UNIT_COUNT, 1};

static const struct {
  const char *word;
  enum ljp_unit_kind unit;
} figures[] = {
#define LJP_X(name, option, count, weight, text)                               \
  [LJP_FIGURE_##name] = {option, LJP_MEASURE_##name >= LJP_MEASURE_ALLOC       \
                                     ? LJP_UNIT_BYTES                          \
                                     : LJP_UNIT_TIME},
    LJP_MEASURE_LIST(LJP_X)
#undef LJP_X
        [LJP_FIGURE_TIME] = {"", LJP_UNIT_TIME},
#define LJP_X(name, word, unit, text)                                          \
  [LJP_FIGURE_##name] = {word, LJP_UNIT_##unit},
    LJP_FIGURE_LIST(LJP_X)
#undef LJP_X
};
enum { FIGURES = sizeof figures / sizeof *figures };

static const char *const ops[] = {"<=", ">=", "<", ">", "==", "!="};
enum { OPS = sizeof ops / sizeof *ops };

const char *ljp_figure_name(enum ljp_figure figure)
{
  return figure == LJP_FIGURE_TIME ? "time" : figures[figure].word;
}

const char *ljp_budget_op_text(enum ljp_budget_op op)
{
  return ops[op];
}

const char *ljp_unit_kind_text(enum ljp_unit_kind kind)
{
  static const char *const texts[] = {
#define LJP_X(name, text) text,
      LJP_UNIT_KIND_LIST(LJP_X)
#undef LJP_X
  };
  return texts[kind];
}

struct scan {
  const char *text;
  size_t at;
  struct ljp_budget *budget;
  struct ljp_budget_error *error;
  size_t unit_at;
};

__attribute__((format(printf, 3, 4))) static bool
budget_wrong(struct scan *s, size_t at, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(s->error->text, sizeof s->error->text, format, args);
  va_end(args);
  s->error->at = at;
  return false;
}

static bool budget_is_space(char c)
{
  return c == ' ' || c == '\t';
}

static bool budget_is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool budget_is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static void budget_skip(struct scan *s)
{
  while (budget_is_space(s->text[s->at]))
    s->at++;
}

static struct ljp_str budget_trim(const char *from, size_t len)
{
  while (len && budget_is_space(*from)) {
    from++;
    len--;
  }
  while (len && budget_is_space(from[len - 1]))
    len--;
  return ljp_str(from, len);
}

static struct ljp_str budget_word(struct scan *s)
{
  size_t from = s->at;
  while (budget_is_letter(s->text[s->at]) ||
         (s->text[s->at] == '-' && s->at > from))
    s->at++;
  return ljp_str(s->text + from, s->at - from);
}

static bool budget_is(struct ljp_str word, const char *text)
{
  return word.len == strlen(text) && memcmp(word.data, text, word.len) == 0;
}

/* Text between quotes; the scan stands on the first. */
static bool budget_quoted(struct scan *s, struct ljp_str *text)
{
  const char *from = s->text + s->at + 1, *end = strchr(from, '"');
  if (!end)
    return budget_wrong(s, s->at, "this quote has no end");
  *text = ljp_str(from, (size_t)(end - from));
  s->at = (size_t)(end + 1 - s->text);
  return true;
}

/* -- The figure ------------------------------------------------------------- */

#define BUDGET_FIGURES                                                         \
  "cpu, wall, gc-cost, alloc, live, leaks, peak, churn, own(...), "            \
  "total(...), samples, duration, unsampled or lost"

static bool budget_unknown_figure(struct scan *s, size_t at,
                                  struct ljp_str word)
{
  char copy[LJP_NEAREST_MAX_BYTES];
  const char *nearest = NULL;
  snprintf(copy, sizeof copy, "%.*s", (int)word.len, word.data);
  unsigned best = ljp_nearest_limit(copy);
  if (!word.len)
    return budget_wrong(s, at,
                        "a budget begins with a figure: " BUDGET_FIGURES);
  for (unsigned i = 0; i < FIGURES + 2; i++) {
    const char *known = i < FIGURES    ? figures[i].word
                        : i == FIGURES ? "own"
                                       : "total";
    unsigned distance = ljp_nearest_distance(copy, known);
    if (*known && distance <= best && (!nearest || distance < best)) {
      best = distance;
      nearest = known;
    }
  }
  if (nearest)
    return budget_wrong(s, at, "unknown figure '%s'; did you mean '%s'?", copy,
                        nearest);
  return budget_wrong(s, at, "unknown figure '%s': " BUDGET_FIGURES " expected",
                      copy);
}

/* What stands in the parentheses; the scan stands behind the first. Names may
** have parentheses, too: they are counted. */
static bool budget_subject(struct scan *s)
{
  struct ljp_budget *b = s->budget;
  size_t open = s->at - 1, depth = 1, from;
  budget_skip(s);
  from = s->at;
  if (s->text[s->at] == '"') {
    if (!budget_quoted(s, &b->subject))
      return false;
    budget_skip(s);
    if (s->text[s->at] == '?') {
      b->optional = true;
      s->at++;
      budget_skip(s);
    }
    if (s->text[s->at] != ')')
      return budget_wrong(s, s->at, "')' expected after the name");
  } else {
    for (; s->text[s->at]; s->at++) {
      depth += s->text[s->at] == '(';
      depth -= s->text[s->at] == ')';
      if (!depth)
        break;
    }
    if (depth)
      return budget_wrong(s, open, "this parenthesis has no end");
    b->subject = budget_trim(s->text + from, s->at - from);
    if (b->subject.len && b->subject.data[b->subject.len - 1] == '?') {
      b->optional = true;
      b->subject = budget_trim(b->subject.data, b->subject.len - 1u);
    }
  }
  if (!b->subject.len)
    return budget_wrong(s, from,
                        "a function, a file, a line or a module expected");
  s->at++;
  return true;
}

static bool budget_figure(struct scan *s)
{
  struct ljp_budget *b = s->budget;
  budget_skip(s);
  size_t at = s->at;
  struct ljp_str word = budget_word(s);
  bool part = budget_is(word, "own") || budget_is(word, "total");
  b->figure = LJP_FIGURE_TIME;
  b->own = budget_is(word, "own");
  if (!part) {
    unsigned i = 0;
    while (i < FIGURES &&
           !(*figures[i].word && budget_is(word, figures[i].word)))
      i++;
    if (i == FIGURES)
      return budget_unknown_figure(s, at, word);
    b->figure = (enum ljp_figure)i;
    if (s->text[s->at] == '.') {
      size_t dot = s->at++;
      word = budget_word(s);
      part = budget_is(word, "own") || budget_is(word, "total");
      if (!part)
        return budget_wrong(s, dot + 1, "'own' or 'total' expected");
      b->own = budget_is(word, "own");
    }
  }
  budget_skip(s);
  if (s->text[s->at] != '(') {
    if (part)
      return budget_wrong(s, s->at,
                          "%s needs a function, a file, a line or a module: "
                          "%s(NAME)",
                          b->own ? "own" : "total", b->own ? "own" : "total");
    return true;
  }
  if (!ljp_figure_is_measure(b->figure))
    return budget_wrong(s, s->at,
                        "'%s' is a figure of the whole file and takes no name",
                        figures[b->figure].word);
  s->at++;
  return budget_subject(s);
}

static bool budget_op(struct scan *s)
{
  budget_skip(s);
  for (unsigned i = 0; i < OPS; i++)
    if (strncmp(s->text + s->at, ops[i], strlen(ops[i])) == 0) {
      s->budget->op = (enum ljp_budget_op)i;
      s->at += strlen(ops[i]);
      return true;
    }
  return budget_wrong(s, s->at, "<=, >=, <, >, == or != expected");
}

/* -- The limit -------------------------------------------------------------- */

/* Units that a figure's limit can have beside those of its kind: the end of a
** message. */
static const char *budget_other_units(const struct ljp_budget *b)
{
  if (figures[b->figure].unit == LJP_UNIT_BYTES)
    return ", or objects";
  return figures[b->figure].unit == LJP_UNIT_TIME &&
                 ljp_figure_is_measure(b->figure) &&
                 b->figure != LJP_FIGURE_GC_COST
             ? ", or samples"
             : "";
}

/* Reads digits with at most one point. */
static bool budget_number(struct scan *s, double *number)
{
  char copy[32];
  size_t from = s->at, len = 0;
  bool point = false, digit = false;
  for (;; s->at++) {
    char c = s->text[s->at];
    if (!budget_is_digit(c) && (c != '.' || point))
      break;
    point |= c == '.';
    digit |= budget_is_digit(c);
    if (len + 1 == sizeof copy)
      return budget_wrong(s, from, "this number is too long");
    copy[len++] = c;
  }
  copy[len] = '\0';
  if (!digit)
    return budget_wrong(s, from, "a number expected");
  *number = strtod(copy, NULL);
  return true;
}

/* The unit behind a number, if there is one. */
static bool budget_unit(struct scan *s, double *number, bool *has_unit)
{
  struct ljp_budget *b = s->budget;
  size_t before = s->at;
  budget_skip(s);
  size_t at = s->at, len = 0;
  while (s->text[at + len] && !budget_is_space(s->text[at + len]) &&
         !strchr("*+-", s->text[at + len]))
    len++;
  if (!len) {
    s->at = before;
    return true;
  }
  struct ljp_str word = ljp_str(s->text + at, len);
  unsigned i = 0;
  while (i < UNITS && !budget_is(word, units[i].name))
    i++;
  if (i == UNITS && memchr(word.data, '.', word.len))
    return budget_wrong(s, at,
                        "a '*' expected between the factor and the "
                        "file '%.*s'",
                        word.len < 100 ? (int)word.len : 100, word.data);
  if (i == UNITS)
    return budget_wrong(s, at, "unknown unit '%.*s': %%, %s, %s, %s expected",
                        word.len < 40 ? (int)word.len : 40, word.data,
                        ljp_unit_kind_text(LJP_UNIT_TIME),
                        ljp_unit_kind_text(LJP_UNIT_BYTES),
                        ljp_unit_kind_text(LJP_UNIT_COUNT));
  if (b->unit_given && b->unit->kind != units[i].kind)
    return budget_wrong(s, at, "'%s' does not fit the unit '%s' before it",
                        units[i].name, b->unit->name);
  if (!b->unit_given) {
    b->unit = &units[i];
    b->unit_given = true;
    s->unit_at = at;
  }
  *number *= units[i].scale;
  *has_unit = true;
  s->at += len;
  return true;
}

static bool budget_path(struct scan *s, struct ljp_str *path)
{
  if (s->text[s->at] == '"') {
    if (!budget_quoted(s, path))
      return false;
  } else {
    size_t from = s->at;
    char sign = s->text[from];
    if ((sign == '+' || sign == '-') && budget_is_digit(s->text[from + 1]))
      return budget_wrong(s, from, "a number without a sign expected");
    while (s->text[s->at] && !budget_is_space(s->text[s->at]) &&
           s->text[s->at] != '*')
      s->at++;
    *path = ljp_str(s->text + from, s->at - from);
  }
  if (!path->len)
    return budget_wrong(s, s->at, "a number with its unit, or a file expected");
  return true;
}

static bool budget_term(struct scan *s, double sign)
{
  struct ljp_budget *b = s->budget;
  size_t at = s->at;
  if (b->term_count == LJP_BUDGET_TERMS)
    return budget_wrong(s, at, "too many terms: at most %d", LJP_BUDGET_TERMS);
  struct ljp_budget_term *t = &b->terms[b->term_count++];
  bool has_unit = false;
  *t = (struct ljp_budget_term){.factor = sign};
  for (;;) {
    budget_skip(s);
    at = s->at;
    bool had_unit = has_unit;
    struct ljp_str path = {NULL, 0};
    if (budget_is_digit(s->text[at]) ||
        (s->text[at] == '.' && budget_is_digit(s->text[at + 1]))) {
      double number = 0;
      has_unit = false;
      if (!budget_number(s, &number) || !budget_unit(s, &number, &has_unit))
        return false;
      t->factor *= number;
      if (!isfinite(t->factor))
        return budget_wrong(s, at, "this product is too large");
    } else if (!budget_path(s, &path)) {
      return false;
    }
    bool file = path.len != 0;
    if ((had_unit && (has_unit || file)) || (t->base.len && (has_unit || file)))
      return budget_wrong(s, at,
                          "only one of the factors can have a unit or "
                          "be a file");
    if (file)
      t->base = path;
    has_unit |= had_unit;
    budget_skip(s);
    if (s->text[s->at] != '*')
      break;
    s->at++;
  }
  /* A number without a unit is only fine as a count, or if it is 0. */
  if (!t->base.len && !has_unit && t->factor != 0 &&
      figures[b->figure].unit != LJP_UNIT_COUNT)
    return budget_wrong(s, s->at, "a unit expected after the number: %s%s%s",
                        b->subject.len ? "%, " : "",
                        ljp_unit_kind_text(figures[b->figure].unit),
                        budget_other_units(b));
  return true;
}

static bool budget_limit(struct scan *s)
{
  double sign = 1;
  for (;;) {
    if (!budget_term(s, sign))
      return false;
    char c = s->text[s->at];
    if (!c)
      return true;
    if (c != '+' && c != '-')
      return budget_wrong(s, s->at, "'+', '-', '*' or the end expected");
    sign = c == '-' ? -1 : 1;
    s->at++;
  }
}

/* Whether the unit of the limit is one of the figure's. */
static bool budget_check_unit(struct scan *s)
{
  struct ljp_budget *b = s->budget;
  enum ljp_unit_kind wanted = figures[b->figure].unit;
  if (!b->unit_given) {
    b->unit = wanted == LJP_UNIT_TIME    ? &unit_ns
              : wanted == LJP_UNIT_BYTES ? &unit_bytes
                                         : &unit_things;
    return true;
  }
  enum ljp_unit_kind kind = b->unit->kind;
  bool counted = (b->unit->name[0] == 'o') == (wanted == LJP_UNIT_BYTES) &&
                 (b->unit->name[0] == 'e') == (b->figure == LJP_FIGURE_LOST);
  if (kind == LJP_UNIT_PERCENT && ljp_figure_is_measure(b->figure)) {
    if (b->subject.len)
      return true;
    return budget_wrong(s, s->unit_at,
                        "a share needs a function, a file, a line or a "
                        "module: %s(NAME)",
                        ljp_figure_name(b->figure));
  }
  if (kind == LJP_UNIT_COUNT ? counted && b->figure != LJP_FIGURE_DURATION &&
                                   b->figure != LJP_FIGURE_UNSAMPLED &&
                                   b->figure != LJP_FIGURE_GC_COST
                             : kind == wanted)
    return true;
  return budget_wrong(
      s, s->unit_at, "'%s' is not a unit of '%s': %s%s%s expected",
      b->unit->name, ljp_figure_name(b->figure), b->subject.len ? "%, " : "",
      wanted == LJP_UNIT_COUNT ? "a number" : ljp_unit_kind_text(wanted),
      budget_other_units(b));
}

bool ljp_budget_parse(const char *text, struct ljp_budget *budget,
                      struct ljp_budget_error *error)
{
  struct scan s = {.text = text, .budget = budget, .error = error};
  *budget = (struct ljp_budget){.text = text, .unit = &unit_things};
  *error = (struct ljp_budget_error){0};
  if (strnlen(text, LJP_BUDGET_BYTES) == LJP_BUDGET_BYTES)
    return budget_wrong(&s, 0, "a budget must be shorter than %d bytes",
                        LJP_BUDGET_BYTES);
  return budget_figure(&s) && budget_op(&s) && budget_limit(&s) &&
         budget_check_unit(&s);
}
