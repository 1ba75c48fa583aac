/*
** Shows progress in one terminal line that is overwritten.
*/
#include "tools/shared/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t progress_now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void ljp_progress_begin(struct ljp_progress *progress, const char *path)
{
  struct stat st;
  *progress = (struct ljp_progress){0};
  progress->on = isatty(STDERR_FILENO);
  if (!progress->on)
    return;
  progress->began_ms = progress->shown_ms = progress_now_ms();
  if ((strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st)) ==
          0 &&
      S_ISREG(st.st_mode))
    progress->size = (uint64_t)st.st_size;
}

void ljp_progress_bytes(void *ctx, uint64_t bytes)
{
  struct ljp_progress *progress = ctx;
  uint64_t now;
  if (!progress->on)
    return;
  now = progress_now_ms();
  if (now - progress->began_ms < 1000 || now - progress->shown_ms < 200)
    return;
  progress->shown_ms = now;
  progress->shown = true;
  if (progress->size)
    fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " MB (%" PRIu64 " %%)\033[K",
            bytes / 1000000, progress->size / 1000000,
            bytes * 100 / progress->size);
  else
    fprintf(stderr, "\r%" PRIu64 " MB\033[K", bytes / 1000000);
  fflush(stderr);
}

void ljp_progress_end(struct ljp_progress *progress)
{
  if (progress->shown)
    fprintf(stderr, "\r\033[K");
  progress->shown = false;
}
