/*
** The options --label KEY=VALUE and --by label:KEY.
*/
#ifndef LJP_TOOLS_LABELS_H
#define LJP_TOOLS_LABELS_H

#include "parsers/profile/profile.h"

struct ljp_label_options {
  const char *labels[LJP_LABEL_FILTERS]; /* As given; NULL: no more. */
  const char *by;                        /* "label:KEY" */
};

/* Initializers of struct ljp_flag. */
#define LJP_LABEL_FLAG(options)                                                \
  {                                                                            \
    "--label+", NULL, (options).labels                                         \
  }
#define LJP_LABEL_FLAGS(options)                                               \
  LJP_LABEL_FLAG(options),                                                     \
  {                                                                            \
    "--by", NULL, &(options).by                                                \
  }

/* Checks the options and sets those of the profile; with `by`, stacks get frames
** of the key. Returns 0, or the exit code after it has reported the error. */
int ljp_label_options(const char *command,
                      const struct ljp_label_options *given,
                      struct ljp_profile_options *options);

/* The KEY of "label:KEY"; NULL: it is something else. */
const char *ljp_label_key(const char *by);

#endif
