/*
** Expect: budgets with their verdicts, and the three forms of output. One
** thread.
*/
#ifndef LJP_TOOLS_EXPECT_H
#define LJP_TOOLS_EXPECT_H

#include "tools/expect/figures.h"
#include "tools/shared/print.h"

/* name, text */
#define LJP_VERDICT_LIST(_)                                                    \
  _(HOLDS, "holds")                                                            \
  _(EXCEEDED, "exceeded")                                                      \
  _(UNKNOWN, "unknown")

enum ljp_verdict {
#define LJP_X(name, text) LJP_VERDICT_##name,
  LJP_VERDICT_LIST(LJP_X)
#undef LJP_X
};

struct ljp_expectation {
  struct ljp_budget budget;
  struct ljp_figure_value value, limit; /* Of the file; of the right side. */
  enum ljp_verdict verdict;
  bool certain;    /* The verdict is the same at both bounds of the error. */
  bool over;       /* The estimate itself is beyond the limit. */
  char text[1024]; /* What follows the budget in its line. */
};

struct ljp_expectations {
  const char *file;
  const struct ljp_profile *p; /* NULL: the file could not be read. */
  struct ljp_expectation *list;
  unsigned count;
};

/* judge.c: the verdict from value and limit, and its text. */
void ljp_expect_judge(struct ljp_expectation *e, bool strict);

const char *ljp_verdict_text(enum ljp_verdict verdict);
/* The worst verdict: exceeded, then unknown, then holds. */
enum ljp_verdict ljp_expect_worst(const struct ljp_expectations *all);

/* show.c */
void ljp_expect_text(const struct ljp_expectations *all, struct ljp_print *out);
void ljp_expect_json(const struct ljp_expectations *all, struct ljp_print *out);
void ljp_expect_junit(const struct ljp_expectations *all,
                      struct ljp_print *out);

#endif
