/*
** Progress: on stderr, for work that takes longer than a second, and only if
** stderr is a terminal. One at a time.
*/
#ifndef LJP_TOOLS_PROGRESS_H
#define LJP_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct ljp_progress {
  uint64_t size; /* Size of the input; 0: unknown. */
  uint64_t began_ms, shown_ms;
  bool on, shown;
};

void ljp_progress_begin(struct ljp_progress *progress, const char *path);

/* ctx is a struct ljp_progress. For ljp_profile_options.progress. */
void ljp_progress_bytes(void *ctx, uint64_t bytes);

/* Clears the line. */
void ljp_progress_end(struct ljp_progress *progress);

#endif
