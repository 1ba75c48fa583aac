/*
** Removes the oldest files of a store: what is older than a certain age, or takes
** more than a budget. Each file that goes, or cannot go, is told.
*/
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/store_lock.h"
#include "src/base/store_room.h"
#include "tools/gather/gather.h"

static void prune_told(void *ctx, const char *name, uint64_t bytes, int error)
{
  struct ljp_gather *g = ctx;
  (void)bytes;
  if (!error) {
    ljp_command_note("gather", "removed %s", name);
    return;
  }
  ljp_command_error("gather", "%s could not be removed: %s", name,
                    strerror(error));
  g->failed = true;
}

void ljp_gather_prune_room(struct ljp_gather *g, uint64_t bytes)
{
  struct ljp_store_room room;
  const char *before = "";
  if (!ljp_gather_look(g))
    return;
  for (size_t i = 0; i < g->store.count; i++) {
    const struct ljp_segment *s = &g->store.segments[i];
    if (!s->made.sequence || !ljp_gather_takes(g, s) ||
        strcmp(before, s->made.service) == 0)
      continue;
    before = s->made.service;
    int error =
        ljp_store_room_look(&room, g->store.path, before, LJP_STORE_SIZES);
    if (error) {
      ljp_command_error("gather", "%s: %s", g->store.path, strerror(error));
      g->failed = true;
      return;
    }
    ljp_store_room_prune(&room, bytes, prune_told, g);
    if (room.bytes > bytes)
      ljp_command_note("gather",
                       "%s: the files that are being written take more than "
                       "that",
                       before);
    ljp_store_room_free(&room);
  }
}

static uint64_t prune_clock(clockid_t clock)
{
  struct timespec t = {0, 0};
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* When the file was written last, in seconds since 1970. */
static bool prune_written(const struct ljp_gather *g,
                          const struct ljp_segment *s, uint64_t *time_s)
{
  struct stat st;
  if (fstatat(g->store.dir, s->name, &st, AT_SYMLINK_NOFOLLOW))
    return false;
  *time_s = st.st_mtim.tv_sec > 0 ? (uint64_t)st.st_mtim.tv_sec : 0;
  return true;
}

/* If a file is from the future, the clock has been set back, and no age is
** known. */
static bool prune_clock_is_sane(struct ljp_gather *g, uint64_t now_s)
{
  enum { HOUR_S = 3600 };
  uint64_t time_s;
  for (size_t i = 0; i < g->store.count; i++) {
    const struct ljp_segment *s = &g->store.segments[i];
    if (!s->made.sequence || !prune_written(g, s, &time_s) ||
        (time_s <= now_s + HOUR_S && s->made.time_s <= now_s + HOUR_S))
      continue;
    ljp_command_error(
        "gather",
        "%s is from the future, so a clock was wrong, and nothing "
        "is removed by its age (--ring needs no clock)",
        s->name);
    g->failed = true;
    return false;
  }
  return true;
}

/* A file of a process that lives is of this boot. So its age by the monotonic
** clock counts, too: a clock that has jumped ahead makes it no older. */
static bool prune_is_young(const struct ljp_segment *s, uint64_t age_s,
                           uint64_t mono_ns)
{
  return s->alive && s->start_mono_ns <= mono_ns &&
         (mono_ns - s->start_mono_ns) / 1000000000 <= age_s;
}

void ljp_gather_prune_age(struct ljp_gather *g, double seconds)
{
  uint64_t age_s = seconds < 1e12 ? (uint64_t)seconds : UINT64_C(1000000000000);
  uint64_t now_s = prune_clock(CLOCK_REALTIME) / 1000000000;
  uint64_t mono_ns = prune_clock(CLOCK_MONOTONIC), time_s;
  struct stat st;
  int error;
  if (!ljp_gather_look(g) || !prune_clock_is_sane(g, now_s))
    return;
  for (size_t i = 0; i < g->store.count; i++) {
    const struct ljp_segment *s = &g->store.segments[i];
    if (!s->made.sequence || s->open || !ljp_gather_takes(g, s) ||
        !prune_written(g, s, &time_s) || now_s < age_s ||
        time_s >= now_s - age_s || prune_is_young(s, age_s, mono_ns) ||
        ljp_store_is_written(g->store.dir, s->name, &st, &error))
      continue;
    error = unlinkat(g->store.dir, s->name, 0) ? errno : 0;
    if (error != ENOENT)
      prune_told(g, s->name, s->bytes, error);
  }
}
