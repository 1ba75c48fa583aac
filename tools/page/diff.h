/*
** Diff: two profiles on one stack tree. Values are per second of recording,
** totals or shares (enum ljp_diff_by); live memory and leaks are always totals.
** Each value has a variance, which comes from the
** number of its samples: a change within LJP_DIFF_SURE standard errors may be
** chance. One thread.
*/
#ifndef LJP_TOOLS_DIFF_H
#define LJP_TOOLS_DIFF_H

#include "parsers/profile/profile.h"
#include "tools/page/page.h"
#include "tools/shared/print.h"

/* Of a thousand functions that did not change, hardly one exceeds this limit.
** tools/viewer/diff.js has the same constant. */
#define LJP_DIFF_SURE 3.5

/* How values are compared: option, key in JSON, text. AUTO becomes TOTAL if both
** programs ran to their end, else PER_SECOND. */
#define LJP_DIFF_BY_LIST(_)                                                    \
  _(AUTO, "", "")                                                              \
  _(PER_SECOND, "per_second", "per second of recording")                       \
  _(TOTAL, "total", "by total")                                                \
  _(SHARE, "share", "by share")

enum ljp_diff_by {
#define LJP_X(name, key, text) LJP_DIFF_##name,
  LJP_DIFF_BY_LIST(LJP_X)
#undef LJP_X
};

/* [0]: before, [1]: after. */
struct ljp_diff_value {
  double value[2], variance[2];
};

struct ljp_diff_side {
  double seconds;
  uint64_t samples, events;   /* CPU or wall samples; allocated objects. */
  bool estimated;             /* Memory was sampled. */
  bool untimed;               /* A file without times: samples are counted. */
  bool holds[LJP_PAGE_VIEWS]; /* The session recorded this. */
  const char *damage;         /* ljp_damage_hint() */
  struct ljp_str file, program;
};

struct ljp_diff {
  struct ljp_page page; /* Has frames, nodes and notices, but no rows. */
  struct ljp_diff_side sides[2];
  struct ljp_diff_value
      *nodes[LJP_PAGE_VIEWS]; /* Self of each node of the page. */
  size_t node_count;          /* Size of each list in nodes[]. */
  /* After ljp_diff_fold(), what nodes[] was before. NULL: there is one view. */
  struct ljp_diff_value *native[LJP_PAGE_VIEWS];
  size_t native_count;
  bool folded; /* In the Lua view, which hides machine code. */
  double sums[LJP_PAGE_VIEWS][2];
  /* As measured, whatever is compared. CPU and wall-clock time has no variance:
  ** all of it was measured. */
  struct ljp_diff_value totals[LJP_PAGE_VIEWS];
  enum ljp_diff_by by; /* Never AUTO. */
  const char *why;     /* Why it was chosen; NULL: on request. */
};

/* Whether a view can be compared: samples that were counted only with each
** other, or by shares. */
bool ljp_diff_comparable(const struct ljp_diff *diff, enum ljp_page_view view);

enum ljp_status ljp_diff_init(struct ljp_diff *diff,
                              const struct ljp_profile *before,
                              const struct ljp_profile *after,
                              const char *const files[2], enum ljp_diff_by by);
void ljp_diff_fini(struct ljp_diff *diff);

/* Turns both profiles, which are those of ljp_diff_init(), and the comparison to
** the Lua view. Its values of the native view are kept beside, for a page that
** has both. LJP_ERR_MEM: diff can only be ended. */
enum ljp_status ljp_diff_fold(struct ljp_diff *diff, struct ljp_profile *before,
                              struct ljp_profile *after);

/* Whether both sides have data. */
bool ljp_diff_has(const struct ljp_diff *diff, enum ljp_page_view view);

struct ljp_diff_function {
  uint32_t frame;
  struct ljp_diff_value self, total;
};

/* The functions, or the stacks, of a view: changes beyond the error first,
** then the largest first. The caller frees the list. NULL: out of memory. */
struct ljp_diff_function *ljp_diff_functions(const struct ljp_diff *diff,
                                             enum ljp_page_view view,
                                             size_t *count);
/* A copy of the list, ordered by the change of the totals. */
struct ljp_diff_function *
ljp_diff_functions_by_total(const struct ljp_diff_function *functions,
                            size_t count);

struct ljp_diff_stack {
  uint32_t node;
  struct ljp_diff_value self;
};
struct ljp_diff_stack *ljp_diff_stacks(const struct ljp_diff *diff,
                                       enum ljp_page_view view, size_t *count);

/* Both lists of one view, for a report. */
struct ljp_diff_lists {
  struct ljp_diff_function *functions; /* In the order of their own change. */
  struct ljp_diff_function *by_total;  /* The same, by the change of totals. */
  struct ljp_diff_stack *stacks;
  size_t function_count, stack_count;
};

/* Names of the views for reports. */
struct ljp_diff_view {
  const char *id, *name, *unit;
};
extern const struct ljp_diff_view ljp_diff_views[LJP_PAGE_VIEWS];
const char *ljp_diff_by_text(enum ljp_diff_by by);
const char *ljp_diff_by_key(enum ljp_diff_by by);
bool ljp_diff_per_second(const struct ljp_diff *diff, int view);
/* Whether neither file has times. */
bool ljp_diff_is_untimed(const struct ljp_diff *diff);
/* The unit of a view's values: "samples" if neither file has times. */
const char *ljp_diff_unit(const struct ljp_diff *diff, int view);
/* The unit of one side's total: "samples" if its file has no times. */
const char *ljp_diff_unit_of(const struct ljp_diff *diff, int view, int side);
/* Why the totals of a view cannot be compared, in a few words; NULL: they can.
** Then a side has a total if it holds the view. */
const char *ljp_diff_total_lacks(const struct ljp_diff *diff, int view);

/* The three forms of the comparison. top: maximum number of lines in each list
** (0: no limit); all: also list changes within the error. */
void ljp_diff_text(const struct ljp_diff *d, enum ljp_page_view view,
                   const struct ljp_diff_lists *lists, unsigned long top,
                   bool all, struct ljp_print *out);
void ljp_diff_json(const struct ljp_diff *d, enum ljp_page_view view,
                   const struct ljp_diff_lists *lists, struct ljp_print *out);
/* The flame graph page, with changes as colours. */
void ljp_diff_html(struct ljp_diff *diff, struct ljp_print *out);

/* "same", "new", "gone", "more" or "less". whole: v with what belongs to it, such
** as the total of a function; it is new or gone only if whole is. */
const char *ljp_diff_verdict(const struct ljp_diff_value *v,
                             const struct ljp_diff_value *whole);
/* Rounded; 0 if negative. */
uint64_t ljp_diff_whole(double x);

/* The sampling error of a change (LJP_DIFF_SURE standard errors), and whether
** the change exceeds it. */
double ljp_diff_error(const struct ljp_diff_value *v);
bool ljp_diff_sure(const struct ljp_diff_value *v);

#endif
