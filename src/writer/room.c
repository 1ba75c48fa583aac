/*
** Room: keeps the files of a service in a store (base/store_room.h) within the
** budget that all its processes share. Writer thread only.
**
** Each process looks at the store before it has written a certain part of the
** budget, and when it begins a file segment. It removes the oldest files that
** nobody writes, until there is room for what all processes may write before
** they look again. If what is left is being written, it ends its own file
** segment, so that this one can go in its turn. So the files together stay within
** the budget, whichever process is killed. If there are more processes than the
** budget has room for, each has at most LEAST_BYTES + LEAST_STEP and one block of
** its own (RFC 1: 1 MiB at most).
**
** A full disk does not end a session in a store, and neither does a budget that is
** used up while no file can be begun. Events are losses until there
** is room: the oldest file of the service goes first; else the next attempt is a
** second later, in the end a minute.
*/
#include <errno.h>
#include <stdlib.h>

#include "src/base/store_room.h"
#include "src/writer/sink_store.h"
#include "src/writer/writer_impl.h"

#ifdef LJP_DEBUG
enum { LEAST_BYTES = 16 << 10, LEAST_STEP = 4 << 10 };
#else
enum { LEAST_BYTES = 256 << 10, LEAST_STEP = 128 << 10 };
#endif
enum { STEPS = 32, SEGMENTS = 8, FREE_BYTES = 1 << 20 };
#define ROOM_PAUSE_NS UINT64_C(1000000000)
#define ROOM_MAX_PAUSE_NS (60 * ROOM_PAUSE_NS)

static uint64_t room_at_least(uint64_t bytes, uint64_t least)
{
  return bytes > least ? bytes : least;
}

static int room_look(const struct ljp_writer *w, struct ljp_store_room *room)
{
  char *folder = ljp_sink_folder(w->sink);
  int error = folder ? ljp_store_room_look(room, folder, w->sink->service,
                                           LJP_STORE_SIZES)
                     : ENOMEM;
  free(folder);
  return error;
}

static uint64_t room_now(const struct ljp_writer *w)
{
  return w->sink->file.whole_bytes;
}

/* The sizes that the budget gives each of so many processes. Returns what all of
** them may write before they look again. */
static uint64_t room_share(struct ljp_writer *w, uint32_t writers)
{
  uint64_t budget = w->options.ring_bytes, n = writers ? writers : 1;
  uint64_t step = room_at_least(budget / STEPS / n, LEAST_STEP);
  w->room.most_bytes = room_at_least(budget / SEGMENTS / n, LEAST_BYTES);
  w->room.look_bytes = room_now(w) + step;
  return step * n;
}

/* A process that cannot begin a file would write the present one for ever. It may
** have given up the right to. bytes: what the files take, as far as is known. */
static void room_stop_at_budget(struct ljp_writer *w, uint64_t bytes)
{
  if (bytes <= w->options.ring_bytes || !w->rotation.failures)
    return;
  w->out.status = LJP_ERR_IO;
  w->sink->error = EDQUOT;
}

static void room_make(struct ljp_writer *w)
{
  struct ljp_store_room room;
  w->room.error = room_look(w, &room);
  if (w->room.error) {
    room_share(w, 1);
    room_stop_at_budget(w, room_now(w));
    return;
  }
  uint64_t spare = room_share(w, room.writers);
  uint64_t budget = w->options.ring_bytes;
  uint64_t limit = budget > spare ? budget - spare : 0;
  int error = ljp_store_room_prune(&room, limit, NULL, NULL);
  if (room.bytes > limit)
    w->room.most_bytes = LEAST_BYTES;
  w->room.error = room.bytes > budget ? error : 0;
  room_stop_at_budget(w, room.bytes);
  ljp_store_room_free(&room);
}

void ljp_writer_look_at_room(struct ljp_writer *w)
{
  if (w->options.ring_bytes && room_now(w) >= w->room.look_bytes &&
      !w->out.status)
    room_make(w);
}

/* A file segment that has little more than its beginning would only be followed
** by another one. */
bool ljp_writer_room_is_short(const struct ljp_writer *w)
{
  return w->options.ring_bytes && w->room.most_bytes &&
         room_now(w) >= w->room.most_bytes &&
         room_now(w) >= 2 * w->segment_head_bytes;
}

void ljp_writer_tell_room(struct ljp_writer *w)
{
  int error = w->room.error;
  if (error == w->room.told)
    return;
  w->room.told = error;
  if (!error)
    return;
  const char *known = ljp_errno_text(error);
  ljp_writer_note(w, LJP_NOTE_ERROR,
                  "the oldest files of the service could not be removed, so "
                  "they take more than the budget: %s",
                  known ? known : "for an unknown reason");
  ljp_writer_put_block(w, 0);
}

/* Removes the oldest files of the service until FREE_BYTES are free. */
static void room_free_some(struct ljp_writer *w)
{
  struct ljp_store_room room;
  if (!w->options.ring_bytes || room_look(w, &room))
    return;
  ljp_store_room_prune(
      &room, room.bytes > FREE_BYTES ? room.bytes - FREE_BYTES : 0, NULL, NULL);
  ljp_store_room_free(&room);
}

static bool room_is_full(int error)
{
  return error == ENOSPC || error == EDQUOT;
}

bool ljp_writer_outlasts_error(const struct ljp_writer *w)
{
  return w->sink->service && room_is_full(w->sink->error);
}

bool ljp_writer_survive_full(struct ljp_writer *w)
{
  enum ljp_status status = w->out.status;
  int error = w->sink->error;
  if (!ljp_writer_outlasts_error(w))
    return false;
  if (w->now_ns < w->room.again_ns)
    return true;
  if (!w->room.full)
    w->room.pause_ns = ROOM_PAUSE_NS;
  else if (w->room.pause_ns < ROOM_MAX_PAUSE_NS)
    w->room.pause_ns *= 2;
  w->room.full = true;
  room_free_some(w);
  /* The blocks that did not fit are losses. What they defined is defined again
  ** in the next file segment. */
  ljp_builder_reset(&w->builder, 0);
  w->out.status = LJP_OK;
  w->rotation.again_ns = 0;
  if (ljp_writer_turn(w)) {
    w->room.full = false;
    ljp_writer_note(
        w, LJP_NOTE_ERROR,
        "the disk or the budget was full, so events are missing: %s",
        ljp_errno_text(error));
    ljp_writer_put_block(w, 0);
    return true;
  }
  ljp_builder_reset(&w->builder, 0);
  w->room.again_ns = w->now_ns + w->room.pause_ns;
  w->out.status = status;
  w->sink->error = error;
  return true;
}
