/*
** The figures of all sessions of a store.
*/
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tools/exporter/exporter.h"

struct ljp_exporter_session *ljp_exporter_session(struct ljp_exporter *e,
                                                  uint64_t stream)
{
  size_t low = 0, high = e->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (e->sessions[middle]->stream < stream)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < e->count && e->sessions[low]->stream == stream)
    return e->sessions[low];
  if (e->count == LJP_EXPORTER_SESSIONS)
    return NULL;
  if (e->count == e->room) {
    size_t room = e->room ? 2 * e->room : 64;
    void *more = realloc((void *)e->sessions, room * sizeof *e->sessions);
    if (!more)
      return NULL;
    e->sessions = more;
    e->room = room;
  }
  struct ljp_exporter_session *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  memmove((void *)&e->sessions[low + 1], (const void *)&e->sessions[low],
          (e->count - low) * sizeof *e->sessions);
  e->count++;
  e->sessions[low] = s;
  s->stream = stream;
  return s;
}

void ljp_exporter_forget(struct ljp_exporter *e)
{
  for (size_t i = 0; i < e->count; i++)
    free(e->sessions[i]);
  free((void *)e->sessions);
  e->sessions = NULL;
  e->count = e->room = 0;
}

static uint64_t sessions_written_s(const struct ljp_store *store,
                                   const struct ljp_segment *segment)
{
  struct stat st;
  return fstatat(store->dir, segment->name, &st, AT_SYMLINK_NOFOLLOW) ||
                 st.st_mtim.tv_sec < 0
             ? 0
             : (uint64_t)st.st_mtim.tv_sec;
}

/* The file that was being written at the last look has gone unless it is the next
** segment: then what it said then remains. */
static void sessions_keep_part(struct ljp_exporter_session *s,
                               const struct ljp_segment *next)
{
  if (s->part_from <= s->done.next_seq ||
      (next && next->first_seq < s->part_from))
    return;
  s->done = s->part;
  s->part_from = 0;
}

/* One segment; the store has them in their order. */
static void sessions_take(struct ljp_exporter *e,
                          const struct ljp_segment *segment, uint64_t now_s)
{
  struct ljp_exporter_session *s = ljp_exporter_session(e, segment->stream);
  if (!s)
    return;
  sessions_keep_part(s, segment);
  if (!s->here)
    s->now = s->done;
  s->here = true;
  s->pid = segment->pid;
  ljp_store_service_copy(s->service, segment->made.service);
  if (!s->start_s)
    s->start_s = segment->start_wall_ns / 1000000000;
  uint64_t written_s = sessions_written_s(&e->store, segment);
  if (segment->alive)
    s->ended_s = 0;
  else if (written_s > s->ended_s)
    s->ended_s = written_s ? written_s : 1;
  /* Old ones are not shown, so they need not be read. */
  if (segment->first_seq < s->done.next_seq ||
      (s->ended_s && s->ended_s + e->recent_s < now_s))
    return;
  struct ljp_exporter_sums sums = s->done;
  if (!ljp_exporter_read(&e->store, segment, &sums))
    return;
  s->now = sums;
  if (segment->open) {
    s->part = sums;
    s->part_from = segment->first_seq + 1;
  } else {
    s->done = sums;
  }
}

int ljp_exporter_look(struct ljp_exporter *e)
{
  uint64_t now_s = (uint64_t)time(NULL);
  int error = ljp_store_look(&e->store);
  if (error)
    return error;
  e->unreadable = 0;
  for (size_t i = 0; i < e->count; i++)
    e->sessions[i]->here = false;
  for (size_t i = 0; i < e->store.count; i++) {
    const struct ljp_segment *s = &e->store.segments[i];
    e->unreadable += s->error != NULL;
    if (!s->error && !s->merged)
      sessions_take(e, s, now_s);
  }
  size_t kept = 0;
  for (size_t i = 0; i < e->count; i++) {
    struct ljp_exporter_session *s = e->sessions[i];
    if (!s->here) {
      if (!s->ended_s) /* Its files have gone since. */
        s->ended_s = now_s;
      sessions_keep_part(s, NULL);
      s->now = s->done;
    }
    s->shown =
        *s->service && (!s->ended_s || s->ended_s + e->recent_s >= now_s);
    if (s->here || s->shown)
      e->sessions[kept++] = s;
    else
      free(s);
  }
  e->count = kept;
  return 0;
}
