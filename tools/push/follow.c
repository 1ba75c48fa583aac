/*
** Follows a folder of file segments: pushes each one when it is complete, the
** oldest of a service first. The lock of the spool, and no other, keeps a second
** process away, so that `ljprof gather` can work on the folder, and two processes
** can send it to two engines. A file is held open from the first look into it until
** its request is made: it may be removed or merged meanwhile.
*/
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/push/push.h"
#include "tools/shared/identity.h"
#include "tools/shared/store.h"

/* A segment that needs no further look: its session and its first block. Of a file
** that cannot be read: its inode and size; if it cannot be opened, its inode. */
struct follow_key {
  uint64_t a, b;
  bool error;
};

struct follow {
  struct ljp_push *push;
  struct ljp_store store;
  struct follow_key *done; /* Sorted; as many as the folder's segments. */
  size_t count;
};

static int follow_compare(const void *x, const void *y)
{
  const struct follow_key *a = x, *b = y;
  if (a->error != b->error)
    return a->error ? 1 : -1;
  if (a->a != b->a)
    return a->a < b->a ? -1 : 1;
  return a->b < b->b ? -1 : a->b > b->b;
}

static struct follow_key follow_key(const struct ljp_segment *s)
{
  if (s->error)
    return (struct follow_key){s->ino, s->denied ? 0 : s->bytes, true};
  return (struct follow_key){s->stream, s->first_seq, false};
}

static bool follow_is_done(const struct follow *f, const struct follow_key *key)
{
  return f->count && bsearch(key, f->done, f->count, sizeof *f->done,
                             follow_compare) != NULL;
}

/* A full disk is no end: there may be room later. */
static void follow_wait_for_room(struct ljp_push *push, bool *told)
{
  enum { PAUSE_MS = 10000 };
  if (!*told)
    ljp_command_error("push", "the spool '%s': %s; trying again",
                      push->spool->path, ljp_errno_text(push->error));
  *told = true;
  push->error = 0;
  push->next_send_ms = ljp_push_now_ms() + PAUSE_MS;
}

/* Puts a segment into the spool. false: it is to be tried again. */
static bool follow_take(struct follow *f, const struct ljp_segment *segment)
{
  struct ljp_push *push = f->push;
  struct ljp_push_requests requests = {.count = 0};
  uint8_t id[LJP_IDENTITY_BYTES];
  char path[64];
  bool done = true;
  if (segment->error) {
    push->unreadable++;
    ljp_command_error("push", "%s: %s", segment->name, segment->error);
    return true;
  }
  int fd = ljp_store_open_segment(&f->store, segment);
  int error = fd < 0 ? errno : 0;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (!error)
    error = ljp_identify(path, id);
  if (error == ENOENT) { /* Pruned since the look. */
    push->gone++;
  } else if (error) {
    ljp_command_error("push", "%s: %s", segment->name, ljp_errno_text(error));
    push->unreadable++;
  } else if (ljp_journal_find(&push->spool->journal, id)) {
    push->known++;
  } else {
    push->found_service = segment->made.service;
    done = ljp_push_take(push, path, segment->name, id, &requests);
    push->found_service = NULL;
    done &= !push->error;
  }
  if (fd >= 0)
    close(fd);
  return done;
}

/* Whether a merged file is left out: its parts were pushed themselves. Each part
** has an outcome, waits in the spool, or is not known. */
static bool follow_leaves_out(const struct follow *f,
                              const struct ljp_segment *segment)
{
  struct ljp_push *push = f->push;
  uint8_t(*ids)[LJP_IDENTITY_BYTES];
  size_t count = ljp_made_of_read(f->store.dir, segment->name, &ids), known = 0;
  for (size_t i = 0; i < count; i++)
    known += ljp_journal_find(&push->spool->journal, ids[i]) != NULL;
  free(ids);
  if (count && !known)
    return false;
  if (count && known == count) {
    ljp_command_note("push",
                     "%s: is made of other segments, which are pushed "
                     "themselves: skipped",
                     segment->name);
    return true;
  }
  const char *then = push->options.skip_doubtful
                         ? "it is not sent (--in-doubt skip)"
                         : "it is sent, and these count twice";
  if (count)
    ljp_command_note("push",
                     "%s: is made of %zu other segments, of which %zu were "
                     "pushed themselves: %s",
                     segment->name, count, known, then);
  else
    ljp_command_note("push",
                     "%s: is made of other segments, and whether they were "
                     "pushed is not known: %s",
                     segment->name,
                     push->options.skip_doubtful ? then : "it is sent");
  push->doubtful += push->options.skip_doubtful;
  return push->options.skip_doubtful;
}

/* Looks at the folder once. Returns 0 or an errno. */
static int follow_look(struct follow *f)
{
  int error = ljp_store_look(&f->store);
  if (error)
    return error;
  struct ljp_push *push = f->push;
  const size_t count = f->store.count;
  struct follow_key *done = calloc(count + 1, sizeof *done);
  size_t n = 0;
  if (!done)
    return ENOMEM;
  for (size_t i = 0;
       i < count && !push->error && !push->wrong && !ljp_push_stopped(); i++) {
    const struct ljp_segment *segment = &f->store.segments[i];
    const struct follow_key key = follow_key(segment);
    bool seen = follow_is_done(f, &key);
    /* So that nothing is dropped while the server takes what waits. */
    ljp_push_send_due(push);
    if (!seen && !segment->open && !segment->error && segment->merged)
      seen = follow_leaves_out(f, segment);
    if (seen ||
        ((!segment->open || segment->denied) && follow_take(f, segment)))
      done[n++] = key;
  }
  qsort(done, n, sizeof *done, follow_compare);
  free(f->done);
  f->done = done;
  f->count = n;
  return 0;
}

static void follow_run(struct follow *f, uint64_t look_ms)
{
  struct ljp_push *push = f->push;
  uint64_t next_look = 0;
  bool told = false, told_full = false;
  while (!ljp_push_stopped() && !push->wrong && !push->error) {
    uint64_t now = ljp_push_now_ms();
    if (now >= next_look) {
      int error = follow_look(f);
      if (error && !told)
        ljp_command_error("push", "%s: %s; trying again", f->store.path,
                          ljp_errno_text(error));
      told = error != 0;
      ljp_push_tell_drops(push);
      next_look = now + look_ms;
    }
    ljp_push_send_due(push);
    if (push->error == ENOSPC)
      follow_wait_for_room(push, &told_full);
    now = ljp_push_now_ms();
    uint64_t until = push->next_send_ms && push->next_send_ms < next_look
                         ? push->next_send_ms
                         : next_look;
    if (until > now && !push->wrong && !push->error)
      ljp_push_sleep(until - now);
  }
}

int ljp_push_follow(struct ljp_push *push, const char *dir, uint64_t look_ms)
{
  struct follow f = {.push = push};
  int error = ljp_store_open(&f.store, dir);
  if (error) {
    ljp_command_error("push", "%s: %s", dir, ljp_errno_text(error));
    return LJP_EXIT_FAILED;
  }
  ljp_push_catch_signals();
  follow_run(&f, look_ms);
  ljp_store_close(&f.store);
  free(f.done);
  return push->wrong || push->error ? LJP_EXIT_FAILED : LJP_EXIT_OK;
}
