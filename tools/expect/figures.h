/*
** Figures: the value of a budget's figure in a profile, with the bounds that
** sampling leaves. The values are those of `ljprof report`. One thread.
*/
#ifndef LJP_TOOLS_EXPECT_FIGURES_H
#define LJP_TOOLS_EXPECT_FIGURES_H

#include "tools/expect/budget.h"

/* In percent, ns, bytes or things, as the budget's unit says. */
struct ljp_figure_value {
  bool known;
  double value;
  double low, high; /* Bounds that hold in 95 of 100 cases. */
  uint64_t samples; /* Samples behind the value, or sampled blocks. */
  bool sampled;
  bool estimated; /* Of sampled memory: shown with "~", as in reports. */
  char why[640];  /* Why it is not known. */
};

/* LJP_ERR_MEM. The file's name is for the sentence why. */
enum ljp_status ljp_figure_take(struct ljp_profile *p, const char *file,
                                const struct ljp_budget *budget,
                                struct ljp_figure_value *value);

/* share.c: bounds of the share that n samples show, if x of them are of one
** kind, in at least 95 of 100 cases. */
struct ljp_bounds ljp_share_bounds(double x, double n);

/* find.c: the value of the subject, or of everything if there is none. If no
** group or more than one matches, why says so. LJP_ERR_MEM. */
struct ljp_figure_match {
  bool found; /* False: see why; or the subject is optional and absent. */
  struct ljp_value value, all;
};
enum ljp_status ljp_figure_find(struct ljp_profile *p, const char *file,
                                const struct ljp_budget *budget,
                                enum ljp_measure measure,
                                struct ljp_figure_match *match, char why[640]);

#endif
