/*
** Rotation: the next file segment (RFC 1, section 9). Writer thread only.
** Invariant: the present file segment is not touched before the next one has
** its name and contains a whole epoch. If the next one cannot be made (a folder
** that is not writable any more, a full disk, no descriptors), the present one
** continues and says so. If somebody else makes it (ljp_sink_ready()), the
** present one continues until it is there. The attempt is repeated, at first after a quarter of a
** second, in the end once a minute.
**
** The limit of the process on the size of files (RLIMIT_FSIZE) makes a rotation
** due, too, before the file segment reaches it. A round may write much, so the
** drain looks after each block. While a heap snapshot is being appended, only
** that limit begins a file segment.
*/
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "src/base/clock.h"
#include "src/writer/writer_impl.h"

#define FIRST_PAUSE_NS UINT64_C(250000000)
#define MAX_PAUSE_NS (60 * UINT64_C(1000000000))
#define EARLY_NS UINT64_C(1000000000)

/* Aligned segments end when the wall clock has a multiple of their length, so
** those of all processes have the same bounds. The first one is shorter; one that
** would be very short goes on to the next bound. If the clock is set, only the
** segment of that moment is longer or shorter, by less than a length. */
void ljp_writer_plan_segment(struct ljp_writer *w)
{
  uint64_t length = w->options.segment_ns;
  w->segment_end_ns = length ? w->now_ns + length : UINT64_MAX;
  if (!length || !w->options.align_segments)
    return;
  uint64_t past = ljp_clock_of(CLOCK_REALTIME) % length;
  w->segment_end_ns -= past < length / 10 * 9 ? past : past - length;
}

void ljp_writer_look_at_limit(struct ljp_writer *w)
{
  /* What one block, with the definitions in it, and the end may take. */
  enum { ROOM = 3 * LJP_BLOCK_FILL_BYTES + (16 << 10) };
  const struct ljp_writer_options *o = &w->options;
  struct rlimit limit;
  w->size_limit = UINT64_MAX;
  if ((!o->segment_bytes && !o->segment_ns) ||
      getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
    return;
  uint64_t most = limit.rlim_cur;
  w->size_limit = most - (most / 2 < ROOM ? most / 2 : ROOM);
}

/* A file segment that has nothing but its beginning is not to blame: the next
** one would have no more room. */
static bool rotate_at_limit(const struct ljp_writer *w)
{
  return w->sink->file.whole_bytes >= w->size_limit &&
         w->sink->file.whole_bytes > w->segment_head_bytes &&
         w->now_ns >= w->rotation.again_ns;
}

static bool rotate_for_room(const struct ljp_writer *w)
{
  return w->options.ring_bytes && ljp_writer_room_is_short(w) &&
         !w->appending && w->now_ns >= w->rotation.again_ns;
}

/* Due soon: whoever opens the file segment needs a while. */
static bool rotate_is_near(const struct ljp_writer *w)
{
  const struct ljp_writer_options *o = &w->options;
  uint64_t bytes = w->sink->file.whole_bytes;
  uint64_t early_ns =
      o->segment_ns / 4 < EARLY_NS ? o->segment_ns / 4 : EARLY_NS;
  return (o->segment_bytes && bytes >= o->segment_bytes / 4 * 3) ||
         w->now_ns + early_ns >= w->segment_end_ns ||
         bytes >= w->size_limit / 4 * 3;
}

/* Whether the file segment has reached its limit of bytes. If its beginning takes more
** than half of them, the next one would be no better, so this one goes on. */
static bool rotate_is_large(const struct ljp_writer *w)
{
  uint64_t most = w->options.segment_bytes, bytes = w->sink->file.whole_bytes;
  return most && bytes >= most && bytes / 2 >= w->segment_head_bytes;
}

static bool rotate_is_due(const struct ljp_writer *w)
{
  if (w->now_ns < w->rotation.again_ns)
    return false;
  if (w->appending)
    return rotate_at_limit(w);
  return rotate_is_large(w) || w->now_ns >= w->segment_end_ns ||
         ljp_writer_room_is_short(w) || rotate_at_limit(w);
}

static const char *rotate_error(int error)
{
  const char *known = ljp_errno_text(error);
  return known ? known : "for an unknown reason";
}

static void rotate_fail(struct ljp_writer *w, int error)
{
  uint64_t pause = FIRST_PAUSE_NS;
  for (uint32_t i = 0; i < w->rotation.failures && pause < MAX_PAUSE_NS; i++)
    pause *= 2;
  w->rotation.again_ns =
      w->now_ns + (pause < MAX_PAUSE_NS ? pause : MAX_PAUSE_NS);
  w->rotation.failures++;
  if (error == w->rotation.error)
    return;
  w->rotation.error = error;
  ljp_writer_note(w, LJP_NOTE_ERROR,
                  "file segment %u could not be begun, this one continues: %s",
                  w->out.segment + 1, rotate_error(error));
  ljp_writer_put_block(w, 0);
}

/* The epoch that has not come about: what it has written again is still in the
** one before. (Nodes may have been, so they are written again if they are needed.) */
static void rotate_restore(struct ljp_writer *w,
                           const struct ljp_block_out *before)
{
  for (uint32_t i = 0; i < w->defs.capacity; i++)
    if (w->defs.slots[i].epoch > before->epoch)
      w->defs.slots[i].epoch = before->epoch;
  for (uint32_t i = 0; i < w->nodes.count; i++)
    if (w->nodes.nodes[i].epoch > before->epoch)
      w->nodes.nodes[i].epoch = 0;
  w->out = *before;
}

/* Fills the next file segment with all that an epoch begins with, and shows it.
** On failure nothing has changed. */
static enum ljp_status rotate_begin(struct ljp_writer *w)
{
  const struct ljp_block_out before = w->out;
  uint64_t epoch_start_ns = w->epoch_start_ns;
  if (ljp_sink_turn(w->sink))
    return LJP_ERR_IO;
  w->out.seq++; /* The last block of the present one will have this number. */
  w->out.segment++;
  enum ljp_status status = ljp_writer_begin_epoch(w, LJP_EPOCH_SEGMENT);
  if (!status)
    status = ljp_writer_put_held(w);
  if (!status)
    status = ljp_sink_show(w->sink);
  if (status) {
    ljp_sink_turn_back(w->sink);
    rotate_restore(w, &before);
    w->epoch_start_ns = epoch_start_ns;
  }
  return status;
}

/* Writes TOTALS and SEGMENT_END to the file segment before and closes it. */
static void rotate_end(struct ljp_writer *w, uint64_t seq, uint32_t epoch)
{
  const struct ljp_block_out next = w->out;
  ljp_sink_swap(w->sink);
  w->out.seq = seq;
  w->out.epoch = epoch;
  ljp_writer_put_totals(w);
  struct ljp_body *b = ljp_writer_timed_body(w, w->now_ns);
  ljp_body_u(b, next.segment);
  ljp_writer_put_event(w, LJP_REC_SEGMENT_END);
  enum ljp_status status = ljp_writer_put_block(w, 0);
  ljp_sink_swap(w->sink);
  w->out = next;
  enum ljp_status closed = ljp_sink_turn_end(w->sink);
  if (status || closed)
    ljp_writer_note(w, LJP_NOTE_ERROR,
                    "file segment %u has no end: it could not be written: %s",
                    next.segment - 1, rotate_error(w->sink->error));
}

bool ljp_writer_turn(struct ljp_writer *w)
{
  uint64_t seq = w->out.seq;
  uint32_t epoch = w->out.epoch, keep = w->options.keep_segments;
  if (rotate_begin(w)) {
    rotate_fail(w, w->sink->error);
    return false;
  }
  w->segment_head_bytes = w->sink->file.whole_bytes;
  rotate_end(w, seq, epoch);
  ljp_writer_plan_segment(w);
  w->room.look_bytes = 0;
  if (w->rotation.failures)
    ljp_writer_note(w, LJP_NOTE_INFO,
                    "file segment %u was begun after %u attempts",
                    w->out.segment, w->rotation.failures + 1);
  memset(&w->rotation, 0, sizeof w->rotation);
  ljp_writer_put_block(w, 0);
  if (keep && w->out.segment >= keep)
    ljp_sink_remove(w->sink, w->out.segment - keep);
  return true;
}

bool ljp_writer_rotate(struct ljp_writer *w)
{
  ljp_writer_look_at_room(w);
  bool ready = (rotate_is_near(w) || ljp_writer_room_is_short(w)) &&
               ljp_sink_ready(w->sink);
  return rotate_is_due(w) && ready && ljp_writer_turn(w);
}

void ljp_writer_rotate_within(struct ljp_writer *w)
{
  uint32_t producer = w->builder.producer;
  if (w->options.ring_bytes)
    ljp_writer_look_at_room(w);
  if (LJP_LIKELY(!rotate_at_limit(w) && !rotate_for_room(w)) || w->out.status ||
      !ljp_sink_ready(w->sink))
    return;
  ljp_writer_put_block(w, 0); /* belongs to the epoch before */
  if (w->out.status)
    return;
  ljp_builder_reset(&w->builder, 0);
  ljp_writer_turn(w);
  ljp_builder_reset(&w->builder, producer);
}

bool ljp_writer_rotate_past_limit(struct ljp_writer *w)
{
  enum ljp_status status = w->out.status;
  int error = w->sink->error;
  if (w->size_limit == UINT64_MAX || error != EFBIG ||
      w->sink->file.whole_bytes <= w->segment_head_bytes ||
      !ljp_sink_ready(w->sink))
    return false;
  /* The block that did not fit is a loss, and was counted as one. */
  ljp_builder_reset(&w->builder, 0);
  w->out.status = LJP_OK;
  if (ljp_writer_turn(w))
    return true;
  w->out.status = status;
  w->sink->error = error;
  return false;
}
