/*
** Budget: one comparison of a figure of a profile with a limit, such as
** `live <= 20 MB` or `own(render) <= 1.05 * base.ljp`. The text is not trusted:
** the parser has no recursion, and every size is bounded. One thread.
**
**   budget  = figure op limit
**   figure  = word ["." part] ["(" subject ["?"] ")"] | part "(" subject ")"
**   part    = "own" | "total"
**   op      = "<=" | ">=" | "<" | ">" | "==" | "!="
**   limit   = term {("+" | "-") term}
**   term    = factor {"*" factor}      at most one of them has a unit or is a file
**   factor  = number [unit] | file
**
** doc/guide/ci.md says what each figure means.
*/
#ifndef LJP_TOOLS_EXPECT_BUDGET_H
#define LJP_TOOLS_EXPECT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/report/select.h"

enum { LJP_BUDGET_BYTES = 4096, LJP_BUDGET_TERMS = 8 };

/* Figures that are not measures of a report: name, kind of unit, text. */
#define LJP_FIGURE_LIST(_)                                                     \
  _(SAMPLES, "samples", COUNT, "samples")                                      \
  _(DURATION, "duration", TIME, "times")                                       \
  _(UNSAMPLED, "unsampled", TIME, "CPU time of the process")                   \
  _(LOST, "lost", COUNT, "events")

/* A figure: a measure of a report, or one of the list above. */
enum ljp_figure {
#define LJP_X(name, option, count, weight, text)                               \
  LJP_FIGURE_##name = LJP_MEASURE_##name,
  LJP_MEASURE_LIST(LJP_X)
#undef LJP_X
      LJP_FIGURE_TIME, /* CPU time, or if there is none wall-clock time. */
#define LJP_X(name, word, unit, text) LJP_FIGURE_##name,
  LJP_FIGURE_LIST(LJP_X)
#undef LJP_X
};

/* What a unit measures: name for messages, the units as examples. */
#define LJP_UNIT_KIND_LIST(_)                                                  \
  _(NONE, "no unit")                                                           \
  _(PERCENT, "%")                                                              \
  _(TIME, "ns, us, ms, s, min or h")                                           \
  _(BYTES, "B, kB, MB, GB, KiB, MiB or GiB")                                   \
  _(COUNT, "samples, objects or events")

enum ljp_unit_kind {
#define LJP_X(name, text) LJP_UNIT_##name,
  LJP_UNIT_KIND_LIST(LJP_X)
#undef LJP_X
};

struct ljp_unit {
  const char *name;
  enum ljp_unit_kind kind;
  double scale; /* In percent, ns, bytes or things. */
};

enum ljp_budget_op {
  LJP_BUDGET_LE,
  LJP_BUDGET_GE,
  LJP_BUDGET_LT,
  LJP_BUDGET_GT,
  LJP_BUDGET_EQ,
  LJP_BUDGET_NE
};

/* A number, or the figure of another file times a factor. */
struct ljp_budget_term {
  double factor;       /* Of a number: in its unit's scale, with the sign. */
  struct ljp_str base; /* The file's path; empty: a number. */
};

struct ljp_budget {
  const char *text; /* As written; borrowed. */
  enum ljp_figure figure;
  bool own;               /* Without what the subject calls. */
  bool optional;          /* A subject that is not there counts 0. */
  struct ljp_str subject; /* Function, file, line or module; empty: all. */
  enum ljp_budget_op op;
  const struct ljp_unit *unit; /* Of the first term that has one, or of the
                               ** figure. Never NULL. */
  bool unit_given;
  struct ljp_budget_term terms[LJP_BUDGET_TERMS];
  unsigned term_count;
};

/* What is wrong, and at which byte of the text. */
struct ljp_budget_error {
  size_t at;
  char text[256];
};

/* False: *error is filled in. */
bool ljp_budget_parse(const char *text, struct ljp_budget *budget,
                      struct ljp_budget_error *error);

/* "live", "own" ...; "<=" ...; the units of a kind. */
const char *ljp_figure_name(enum ljp_figure figure);
const char *ljp_budget_op_text(enum ljp_budget_op op);
const char *ljp_unit_kind_text(enum ljp_unit_kind kind);

/* Whether it is a measure of a report, and so can have a subject. */
static inline bool ljp_figure_is_measure(enum ljp_figure figure)
{
  return figure <= LJP_FIGURE_TIME;
}

#endif
