/*
** Select: which rows of a profile count in a report, and for how much. The
** table, the tree and annotate all use it, therefore their sums agree.
*/
#ifndef LJP_TOOLS_SELECT_H
#define LJP_TOOLS_SELECT_H

#include "parsers/profile/profile.h"

/* What is measured: name, option, unit of counts, unit of weights, text. */
#define LJP_MEASURE_LIST(_)                                                    \
  _(CPU, "cpu", "samples", "ns", "CPU time")                                   \
  _(WALL, "wall", "samples", "ns", "wall-clock time")                          \
  _(GC_COST, "gc-cost", "samples", "ns", "time of the garbage collector")      \
  _(ALLOC, "alloc", "objects", "bytes", "memory allocated")                    \
  _(LIVE, "live", "objects", "bytes", "memory live at the end")                \
  _(LEAKS, "leaks", "objects", "bytes", "memory that looks leaked")            \
  _(PEAK, "peak", "objects", "bytes", "memory live at the peak")               \
  _(CHURN, "churn", "objects", "bytes", "temporary objects")

enum ljp_measure {
#define LJP_X(name, option, count, weight, text) LJP_MEASURE_##name,
  LJP_MEASURE_LIST(LJP_X)
#undef LJP_X
};
/* Their number. */
#define LJP_MEASURE_ONE(name, option, count, weight, text) +1
#define LJP_MEASURES (0 LJP_MEASURE_LIST(LJP_MEASURE_ONE))

struct ljp_value {
  uint64_t count, weight; /* Objects are counted in parts of LJP_OBJECT. */
  uint64_t slices;        /* LEAKS: see struct ljp_profile_memory. */
  struct ljp_estimate estimate;
};

static inline void ljp_value_add(struct ljp_value *to,
                                 const struct ljp_value *from)
{
  to->count += from->count;
  to->weight += from->weight;
  to->slices |= from->slices;
  ljp_estimate_sum(&to->estimate, &from->estimate);
}

struct ljp_select {
  const struct ljp_profile *p;
  enum ljp_measure measure;
  bool since;             /* LIVE, LEAKS: only memory since the mark. */
  uint8_t *in;            /* By row: 1 if the regexes accept its stack. */
  struct ljp_value *rows; /* By row; 0: not selected. */
  /* The selves of nodes. Most nodes have none, so those that have one are
  ** numbered; values[0] is zero. */
  struct ljp_value *values;
  uint32_t *value_of; /* By node: in values[]. */
  struct ljp_value total;
};

/* A node's self. */
static inline const struct ljp_value *
ljp_select_node(const struct ljp_select *s, uint32_t node)
{
  return &s->values[s->value_of[node]];
}

struct ljp_select_options {
  enum ljp_measure measure;
  const char *focus, *ignore; /* Regexes on names of frames; NULL: none. */
};

/* What a row counts, whether or not it is selected. */
struct ljp_value ljp_select_row(const struct ljp_select *s,
                                enum ljp_measure measure,
                                const struct ljp_profile_row *row);

bool ljp_measure_is_memory(enum ljp_measure measure);
const char *ljp_measure_text(enum ljp_measure measure);
const char *ljp_measure_option(enum ljp_measure measure);

/* Checks that the regexes compile, before anything is read. Returns 0, or the
** exit code after it has reported the error. */
int ljp_select_check(const char *focus, const char *ignore,
                     const char *command);

/* Selects. Returns as ljp_select_check does. */
int ljp_select(struct ljp_select *select, const struct ljp_profile *p,
               const struct ljp_select_options *options, const char *command);
void ljp_select_fini(struct ljp_select *select);

#endif
