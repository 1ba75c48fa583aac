/*
** Progress on stderr for what takes longer than a second; only if stderr is a
** terminal. One at a time.
*/
#ifndef LJP_TOOLS_PROGRESS_H
#define LJP_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct ljp_progress {
  uint64_t size; /* Of the input; 0: not known. */
  uint64_t began_ms, shown_ms;
  bool on, shown;
};

void ljp_progress_begin(struct ljp_progress *progress, const char *path);

/* ctx is a struct ljp_progress; fits ljp_profile_options.progress. */
void ljp_progress_bytes(void *ctx, uint64_t bytes);

/* Wipes the line away. */
void ljp_progress_end(struct ljp_progress *progress);

#endif
