/*
** A view's selection of a profile: which rows count, and for how much. The
** same for table, tree, annotate: so their sums agree.
*/
#ifndef LJP_TOOLS_SELECT_H
#define LJP_TOOLS_SELECT_H

#include "parsers/profile/profile.h"

/* What is measured: option, what a count is, what a weight is, text. */
#define LJP_MEASURE_LIST(_)                                                    \
  _(CPU, "cpu", "samples", "ns", "CPU time")                                   \
  _(WALL, "wall", "samples", "ns", "wall-clock time")                          \
  _(ALLOC, "alloc", "objects", "bytes", "memory allocated")                    \
  _(LIVE, "live", "objects", "bytes", "memory that lives at the end")          \
  _(LEAKS, "leaks", "objects", "bytes", "memory that looks leaked")            \
  _(PEAK, "peak", "objects", "bytes", "memory that lived at the peak")         \
  _(CHURN, "churn", "objects", "bytes", "temporary objects")

enum ljp_measure {
#define LJP_X(name, option, count, weight, text) LJP_MEASURE_##name,
  LJP_MEASURE_LIST(LJP_X)
#undef LJP_X
};

struct ljp_value {
  uint64_t count, weight; /* Objects: in parts of LJP_OBJECT. */
  uint64_t slices;        /* LEAKS: struct ljp_profile_memory. */
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
  bool since;              /* LIVE, LEAKS: since the mark only. */
  uint8_t *in;             /* By row: the regexes leave it in. */
  struct ljp_value *rows;  /* By row; 0: not selected. */
  struct ljp_value *nodes; /* Self, by node. */
  struct ljp_value total;
};

struct ljp_select_options {
  enum ljp_measure measure;
  const char *focus, *ignore; /* Regexes on frames' names; NULL: none. */
};

bool ljp_measure_is_memory(enum ljp_measure measure);

/* Whether regexes compile, before anything is read. 0, or the exit code; the
** error has been told. */
int ljp_select_check(const char *focus, const char *ignore,
                     const char *command);

/* Likewise. */
int ljp_select(struct ljp_select *select, const struct ljp_profile *p,
               const struct ljp_select_options *options, const char *command);
void ljp_select_fini(struct ljp_select *select);

#endif
