/*
** Report: one opened profile with its selection, and the parts that print it.
** Shared by `ljprof report` and `ljprof annotate`. One thread.
**
** Every view of a report adds up to the same totals: each value is counted
** once in the self of one group, and once in the total of every group that its
** stack contains.
*/
#ifndef LJP_TOOLS_REPORT_H
#define LJP_TOOLS_REPORT_H

#include "tools/report/select.h"
#include "tools/shared/command.h"
#include "tools/shared/damage.h"
#include "tools/shared/labels.h"

/* What rows are grouped by: name, option, whether a group consists of frames
** (then it has a total that differs from its self). */
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
  _(TYPE, "type", 0)                                                           \
  _(LABEL, "label", 0)

#define LJP_BY_WORD(name, option, of_frame) " " option

enum ljp_by {
#define LJP_X(name, option, of_frame) LJP_BY_##name,
  LJP_BY_LIST(LJP_X)
#undef LJP_X
};

const char *ljp_by_text(enum ljp_by by);

struct ljp_graph;

struct ljp_report {
  struct ljp_profile *p;
  struct ljp_graph
      *graph; /* Of leaks: the file's last heap snapshot, or NULL. */
  struct ljp_select select;
  enum ljp_by by;
  bool json, tree, bottom_up, lines, color, jit;
  bool hint;          /* Tell of --native, if it would show more. */
  bool chosen;        /* A measure was requested. */
  bool c_lines;       /* C code counts for its own lines and files. */
  uint32_t top;       /* Maximum number of text rows; 0: all. */
  double min_percent; /* Smallest share of a branch in a tree. */
  const char *path;
  const char *by_text;       /* "label:KEY"; NULL: the text of `by`. */
  uint32_t label_key;        /* LJP_BY_LABEL: the string of the key. */
  struct ljp_places *places; /* NULL: none are shown. */
  struct ljp_print *out;
};

/* The options that report and annotate share: what is counted. */
struct ljp_report_options {
  bool measures[LJP_MEASURES]; /* By enum ljp_measure. */
  bool no_symbols;
  bool native; /* The native view, not the Lua view. */
  bool jit;    /* Needs CPU or wall time, and the stacks of trace events. */
  const char *time, *thread, *focus, *ignore, *since;
  struct ljp_label_options labels;
  const char *label_key;             /* That the file must have; NULL: none. */
  struct ljp_last_lines *last_lines; /* NULL: not wanted. */
};

/* last_line.c: where the definitions of functions end that a place may mean. */
struct ljp_last_lines {
  const char *where; /* "[SOURCE:]FUNCTION" or "SOURCE:LINE" */
  struct ljp_last_line *list;
  unsigned count;
};
/* Is called with each item of a stream. */
enum ljp_status ljp_last_lines_take(void *last_lines,
                                    const struct ljp_reader *reader,
                                    const struct ljp_item *item);
/* The last line of a function; 0: not known. */
uint32_t ljp_last_line(const struct ljp_last_lines *l, struct ljp_str file,
                       uint32_t first_line);
void ljp_last_lines_fini(struct ljp_last_lines *l);

/* Initializers of struct ljp_flag for a struct ljp_report_options. The macro's
** argument must be called common. */
#define LJP_MEASURE_FLAG(name, option, count, weight, text)                    \
  {"--" option, &common.measures[LJP_MEASURE_##name], NULL},
#define LJP_REPORT_FLAGS(common)                                               \
  LJP_MEASURE_LIST(LJP_MEASURE_FLAG){"--no-symbols", &(common).no_symbols,     \
                                     NULL},                                    \
      {"--native", &(common).native, NULL}, {"--time", NULL, &(common).time},  \
      {"--thread", NULL, &(common).thread}, LJP_LABEL_FLAG((common).labels),   \
      {"--focus", NULL, &(common).focus},                                      \
      {"--ignore", NULL, &(common).ignore},                                    \
  {                                                                            \
    "--since", NULL, &(common).since                                           \
  }

/* open.c: checks the options, loads the profile and selects its rows. Returns
** 0, or the exit code after it has reported the error. */
int ljp_report_open(const struct ljp_report_options *common,
                    const char *command, const char *file,
                    struct ljp_report *r);
void ljp_report_close(struct ljp_report *r);

/* Turns a report that was opened with native set to the Lua view. Returns 0, or
** the exit code after it has reported the error. */
int ljp_report_fold(const struct ljp_report_options *common,
                    const char *command, struct ljp_report *r);
/* Says that nothing of this kind was recorded, and how to record it; NULL: it
** was. */
const char *ljp_report_lacks(const struct ljp_report *r);

/* table.c, call_tree.c: the rows, as text or JSON. False: out of memory. */
bool ljp_report_table(const struct ljp_report *r);
bool ljp_report_tree(const struct ljp_report *r);

/* summary.c: what precedes the rows. In JSON these are the totals: _json_head
** leaves the object open for more keys, _json_begin opens its list of rows. */
void ljp_report_head(const struct ljp_report *r);
void ljp_report_json_head(const struct ljp_report *r, const char *by);
void ljp_report_json_begin(const struct ljp_report *r);
void ljp_report_json_end(const struct ljp_report *r);

/* places.c: the lines of Lua that count most, by measure; the caller frees
** them. NULL: out of memory. */
struct ljp_places *ljp_report_places(const struct ljp_report *r);
void ljp_report_text_places(const struct ljp_report *r);
void ljp_report_json_places(const struct ljp_report *r);

/* memory_summary.c: the part of the summary that is about memory. */
void ljp_report_memory_head(const struct ljp_report *r);
void ljp_report_memory_json(const struct ljp_report *r);
/* Whole objects that were freed: allocated = freed + live. */
uint64_t ljp_report_freed(const struct ljp_profile_memory *m);
/* Whether memory was leaked throughout the session, not only at one time. */
bool ljp_report_grows(const struct ljp_value *value);

/* amounts.c. Writes "1.234 s" or "12.3 MiB"; samples if they have no times. An
** estimate begins with "~"; the bound of one does not. */
void ljp_amount(const struct ljp_report *r, uint64_t weight, char out[24]);
void ljp_bound_amount(const struct ljp_report *r, double bytes, char out[24]);
/* Writes a number of samples or whole objects. */
void ljp_count_amount(const struct ljp_report *r, uint64_t count, char out[24]);
/* Whether the report is on samples of a file without times: then the weights
** are the numbers of samples. */
bool ljp_is_untimed(const struct ljp_report *r);
/* Whether values have counts of samples or objects. */
bool ljp_has_counts(const struct ljp_report *r);
/* Number of samples, or of whole objects. */
uint64_t ljp_count_of(const struct ljp_report *r, uint64_t count);
double ljp_percent(const struct ljp_report *r, const struct ljp_value *value);
/* Bounds of sampled memory, which hold the truth in 95 of 100 cases. */
bool ljp_is_estimated(const struct ljp_report *r);
struct ljp_bounds ljp_value_bytes(const struct ljp_report *r,
                                  const struct ljp_value *value);
struct ljp_bounds ljp_value_objects(const struct ljp_report *r,
                                    const struct ljp_value *value);
/* Writes ,"PREFIX_NAME_low":1,"PREFIX_NAME_high":3,"PREFIX_NAME_error":2 */
void ljp_json_bounds(const struct ljp_report *r, const char *prefix,
                     const char *name, double value, struct ljp_bounds bounds);
void ljp_json_value(const struct ljp_report *r, const char *prefix,
                    const struct ljp_value *value);

#endif
