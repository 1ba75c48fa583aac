/*
** What the files of `ljprof report` share.
**
** A report has items: what --by asks for (functions, lines, threads ...). An
** item's self is what was counted in it, its total what was counted in it or
** in what it called, once for each stack that it stands in.
*/
#ifndef LJP_TOOLS_REPORT_H
#define LJP_TOOLS_REPORT_H

#include "tools/shared/command.h"
#include "tools/report/select.h"

#define LJP_BY_LIST(_)                                                         \
  _(FUNCTION, "function", 1)                                                   \
  _(LINE, "line", 1)                                                           \
  _(MODULE, "module", 1)                                                       \
  _(FILE, "file", 1)                                                           \
  _(KIND, "kind", 1)                                                           \
  _(TRACE, "trace", 0)                                                         \
  _(STACK, "stack", 0)                                                         \
  _(THREAD, "thread", 0)                                                       \
  _(VM, "vm", 0)                                                               \
  _(STATE, "state", 0)                                                         \
  _(TYPE, "type", 0)

/* Whether an item is of a frame: it has a total apart from its self. */
enum ljp_by {
#define LJP_X(name, option, of_frame) LJP_BY_##name,
  LJP_BY_LIST(LJP_X)
#undef LJP_X
};

struct ljp_item_value {
  struct ljp_value self, total;
};

/* Items of a selection, unsorted. */
struct ljp_items {
  uint32_t count;
  struct ljp_item_value *values;
  /* By node: its item, UINT32_MAX: none (then it counts for its row). */
  uint32_t *of_node;
  uint32_t *first; /* By item: a frame, node, or other thing that names it. */
};

struct ljp_report {
  struct ljp_profile *p;
  struct ljp_select select;
  enum ljp_by by;
  bool json, tree, bottom_up, lines, color, jit;
  bool c_lines;       /* C code has lines and files of its own. */
  uint32_t top;       /* Rows of text; 0: all. */
  double min_percent; /* Of a tree's branches. */
  const char *path;
  struct ljp_print *out;
};

/* Options that say what is counted. */
struct ljp_common {
  bool measures[16]; /* By enum ljp_measure. */
  bool no_symbols;
  bool jit; /* Of time only; with where traces were given up. */
  const char *time, *thread, *focus, *ignore, *since;
};

#define LJP_MEASURE_FLAG(name, option, count, weight, text)                    \
  {"--" option, &common.measures[LJP_MEASURE_##name], NULL},
/* Of a struct ljp_common that is called common. */
#define LJP_COMMON_FLAGS(common)                                               \
  LJP_MEASURE_LIST(LJP_MEASURE_FLAG){"--no-symbols", &(common).no_symbols,     \
                                     NULL},                                    \
      {"--time", NULL, &(common).time}, {"--thread", NULL, &(common).thread},  \
      {"--focus", NULL, &(common).focus},                                      \
      {"--ignore", NULL, &(common).ignore},                                    \
  {                                                                            \
    "--since", NULL, &(common).since                                           \
  }

/* common.c: checks the options, loads and selects. 0, or the exit code;
** the error has been told. */
int ljp_common_load(const struct ljp_common *common, const char *command,
                    const char *file, struct ljp_report *r);
void ljp_common_free(struct ljp_report *r);

/* items.c. false: no memory. */
bool ljp_by_of_frame(enum ljp_by by);
bool ljp_items_make(const struct ljp_report *r, struct ljp_items *items);
void ljp_items_fini(struct ljp_items *items);
/* Its name, terminated, cut to room. */
void ljp_item_name(const struct ljp_report *r, const struct ljp_items *items,
                   uint32_t item, char *out, size_t room);

/* table.c, tree.c, head.c. false: no memory. */
bool ljp_report_table(const struct ljp_report *r);
bool ljp_report_tree(const struct ljp_report *r);
void ljp_report_head(const struct ljp_report *r);
/* Totals and what else stands before the rows. */
void ljp_report_json_head(const struct ljp_report *r, const char *by);
void ljp_report_json_begin(const struct ljp_report *r);
void ljp_report_json_end(const struct ljp_report *r);
/* memory.c: what stands above reports on memory. */
void ljp_report_memory_head(const struct ljp_report *r);
void ljp_report_memory_json(const struct ljp_report *r);
/* Whether something was left at many times: it goes on growing. */
bool ljp_report_grows(const struct ljp_value *value);

/* text.c: amounts. */
const char *ljp_by_text(enum ljp_by by);
const char *ljp_measure_text(enum ljp_measure measure);
const char *ljp_measure_option(enum ljp_measure measure);
/* "1.234 s", "12.3 MB" in a column of 10. */
void ljp_amount(const struct ljp_report *r, uint64_t weight, char out[24]);
uint64_t ljp_count_of(const struct ljp_report *r, uint64_t count);
/* Of sampled memory: what holds the truth in 95 of 100 cases. */
struct ljp_bounds ljp_value_bytes(const struct ljp_report *r,
                                  const struct ljp_value *value);
struct ljp_bounds ljp_value_objects(const struct ljp_report *r,
                                    const struct ljp_value *value);
bool ljp_is_estimated(const struct ljp_report *r);
/* A member's bounds: ,"NAME_low":1,"NAME_high":3,"NAME_error":2 */
void ljp_json_bounds(const struct ljp_report *r, const char *prefix,
                     const char *name, double value, struct ljp_bounds bounds);
double ljp_percent(const struct ljp_report *r, const struct ljp_value *value);
void ljp_json_value(const struct ljp_report *r, const char *prefix,
                    const struct ljp_value *value);

#endif
