/*
** Writes several sessions as one stream: every record anew, with ids that are
** unique in the output (renumber.h) and times on one clock. Damaged and unknown
** records are left out; a note in the stream and on stderr says how many.
*/
#include "tools/rewrite/merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "src/base/assert.h"
#include "src/base/varint.h"
#include "tools/shared/command.h"

static void sessions_begin_block(struct ljp_merge *m,
                                 const struct ljp_block_head *from)
{
  struct ljp_block_head head = *from;
  ljp_objects_flush(m->objects);
  ljp_out_block_end(&m->out);
  uint64_t seq = head.seq + m->more_seq;
  if (m->begun && seq > m->last_seq + 1)
    m->out.next_seq += seq - m->last_seq - 1;
  m->last_seq = seq;
  m->last_epoch = head.epoch;
  m->begun = true;
  m->out.compress = head.flags & LJP_BLOCK_ZSTD;
  head.stream = m->stream;
  head.producer =
      (uint32_t)ljp_renumber_id(&m->map, LJP_ID_PRODUCER, head.producer);
  head.time_ns += m->map.time;
  head.epoch += m->epoch_base;
  if (head.epoch > m->epoch_most)
    m->epoch_most = head.epoch;
  m->time = head.time_ns;
  ljp_out_block(&m->out, &head);
}

/* Writes a TOTALS record of counts by tag. */
static void sessions_put_totals(struct ljp_merge *m,
                                const uint64_t totals[LJP_TALLY_TAGS])
{
  uint8_t bytes[LJP_TALLY_TAGS * 2 * LJP_VARINT_MAX_BYTES], *p = bytes;
  struct ljp_rec_totals record = {0};
  for (unsigned i = 0; i < LJP_TALLY_TAGS; i++)
    if (totals[i]) {
      p = ljp_put_varint(ljp_put_varint(p, i), totals[i]);
      record.counts.count++;
    }
  record.counts.data = bytes;
  record.counts.end = p;
  ljp_out_record(&m->out, LJP_REC_TOTALS, &record);
}

static void sessions_move_totals(struct ljp_merge *m, struct ljp_pairs counts)
{
  uint64_t totals[LJP_TALLY_TAGS], tag, count;
  memcpy(totals, m->totals, sizeof totals);
  while (ljp_pairs_next(&counts, &tag, &count))
    if (tag < LJP_TALLY_TAGS && ljp_tally_counts(tag) && count > m->before[tag])
      totals[tag] += count - m->before[tag];
  sessions_put_totals(m, totals);
}

static void sessions_put_item(struct ljp_merge *m, const struct ljp_item *item)
{
  struct ljp_item moved;
  ljp_renumber_item(&m->map, item, &moved);
  if (moved.time_ns > m->time)
    m->time = moved.time_ns;
  if (item->what == LJP_REC_OBJECTS || item->what == LJP_ITEM_REF) {
    m->left_out.extras += item->what == LJP_REC_OBJECTS && item->u.object.extra;
    ljp_objects_put(m->objects, &moved);
    return;
  }
  ljp_objects_flush(m->objects);
  switch (item->what) {
  case LJP_REC_END:
  case LJP_REC_SEGMENT_END:
    return;
  case LJP_REC_SAMPLES:
  case LJP_REC_MEM:
  case LJP_REC_NODES:
    ljp_out_event(&m->out, &moved);
    return;
  case LJP_REC_TOTALS:
    sessions_move_totals(m, item->u.totals.counts);
    return;
  case LJP_REC_LOSS:
    if (item->u.loss.producer == 0 && item->u.loss.reason < 64) {
      m->session_losses[item->u.loss.reason] = item->u.loss.count;
      moved.u.loss.count += m->losses[item->u.loss.reason];
    }
    break;
  default:
    break;
  }
  ljp_out_record(&m->out, item->what, &moved.u);
}

/* From here on the block holds records of the merge itself, not of a
** session. */
static void sessions_begin_own_block(struct ljp_merge *m)
{
  struct ljp_block_head head = m->out.head;
  ljp_objects_flush(m->objects);
  ljp_out_block_end(&m->out);
  head.producer = 0;
  head.flags = 0;
  head.stream = m->stream;
  head.time_ns = m->time;
  m->out.compress = false;
  ljp_out_block(&m->out, &head);
}

static void sessions_note(struct ljp_merge *m, enum ljp_note severity,
                          const char *text)
{
  struct ljp_rec_note record = {.time_ns = m->time,
                                .severity = severity,
                                .text = {text, (uint32_t)strlen(text)}};
  ljp_out_record(&m->out, LJP_REC_NOTE, &record);
  m->totals[LJP_REC_NOTE]++;
  ljp_command_note("merge", "%s", text);
}

static void sessions_note_left_out(struct ljp_merge *m, const char *path)
{
  char text[4096 + 200];
  const struct ljp_merge_left_out *left = &m->left_out;
  if (left->extras) {
    sessions_begin_own_block(m);
    snprintf(text, sizeof text,
             "%.4000s: left out: what a newer version tells of %" PRIu64
             " objects of heap snapshots",
             path, left->extras);
    sessions_note(m, LJP_NOTE_WARNING, text);
  }
  if (!left->gap_bytes && !left->bad && !left->unknown)
    return;
  sessions_begin_own_block(m);
  snprintf(text, sizeof text,
           "%.4000s: left out: %" PRIu64 " damaged bytes in %" PRIu64
           " places, %" PRIu64 " malformed records, %" PRIu64
           " of unknown kinds",
           path, left->gap_bytes, left->gaps, left->bad, left->unknown);
  sessions_note(m, LJP_NOTE_WARNING, text);
}

/* Writes the records of one input. before: the previous input of the session,
** or NULL; last: this is the last input of the session. */
static int sessions_rewrite(struct ljp_merge *m,
                            const struct ljp_merge_input *in,
                            const struct ljp_merge_input *before, bool last)
{
  const struct ljp_item *item;
  bool first = !before;
  m->left_out = (struct ljp_merge_left_out){0};
  enum ljp_status status = ljp_reader_open(m->reader, in->path);
  while (!status && !m->out.error) {
    status = ljp_reader_next(m->reader, &item);
    if (status || item->what == LJP_ITEM_FINISH)
      break;
    switch (item->what) {
    case LJP_ITEM_GAP:
      m->left_out.gaps += item->u.gap.bytes != 0;
      m->left_out.gap_bytes += item->u.gap.bytes;
      break;
    case LJP_ITEM_BLOCK:
      if (before)
        ljp_merge_check_order(m, before, in, &item->block->head);
      before = NULL;
      sessions_begin_block(m, &item->block->head);
      break;
    case LJP_ITEM_BAD:
      m->left_out.bad++;
      break;
    case LJP_ITEM_UNKNOWN:
      m->left_out.unknown++;
      break;
    case LJP_REC_TOTALS:
      if (first && m->map.session)
        memcpy(m->before, m->reader->tally.before, sizeof m->before);
      first = false;
      sessions_put_item(m, item);
      break;
    default:
      sessions_put_item(m, item);
    }
  }
  if (!status && !m->out.error) {
    const struct ljp_tally *tally = &m->reader->tally;
    unsigned wanted = last ? LJP_CLOSED_END : LJP_CLOSED_SEGMENT;
    m->all_closed &= item->u.finish.closed == wanted;
    for (unsigned i = 0; last && i < LJP_TALLY_TAGS; i++)
      if (ljp_tally_counts(i))
        m->totals[i] += tally->before[i] + tally->read[i] +
                        tally->swallowed[i] - m->before[i];
    sessions_note_left_out(m, in->path);
  }
  if (status)
    ljp_command_error("merge", "%s: %s", in->path, m->reader->error);
  ljp_reader_fini(m->reader);
  return status ? LJP_EXIT_FAILED : -1;
}

static void sessions_begin_session(struct ljp_merge *m,
                                   const struct ljp_merge_input *in)
{
  uint64_t shift = m->inputs[0].has_process && in->has_process
                       ? in->clock - m->inputs[0].clock
                       : 0;
  /* The two clocks are not read at the same instant: less than a second is no
  ** difference. */
  if (shift + 1000000000u < 2000000000u)
    shift = 0;
  ljp_assert(in == m->inputs || in->session > in[-1].session);
  if (in != m->inputs)
    ljp_renumber_session(&m->map, shift);
  for (unsigned i = 0; i < 64; i++) {
    m->losses[i] += m->session_losses[i];
    m->session_losses[i] = 0;
  }
  m->more_seq = 0;
  memset(m->before, 0, sizeof m->before);
  m->epoch_base = m->epoch_most;
  m->begun = false;
}

static void sessions_end(struct ljp_merge *m)
{
  struct ljp_rec_end end = {.time_ns = m->time, .reason = {"merged", 6}};
  sessions_begin_own_block(m);
  if (m->all_closed) {
    sessions_put_totals(m, m->totals);
    ljp_out_record(&m->out, LJP_REC_END, &end);
  } else {
    sessions_note(m, LJP_NOTE_WARNING,
                  "not every file that was merged had been closed");
  }
  ljp_out_block_end(&m->out);
}

/* FNV-1a hash of the stream ids of all inputs. */
static uint64_t sessions_stream_id(const struct ljp_merge *m)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (unsigned i = 0; i < m->count; i++)
    for (int shift = 0; shift < 64; shift += 8)
      hash = (hash ^ (m->inputs[i].stream >> shift & 0xff)) *
             UINT64_C(0x100000001b3);
  return hash ? hash : 1;
}

int ljp_merge_sessions(struct ljp_merge *m)
{
  int code = -1;
  m->objects = ljp_objects_out_new(&m->out);
  if (!m->objects) {
    ljp_command_error("merge", "%s", ljp_status_text(LJP_ERR_MEM));
    return LJP_EXIT_FAILED;
  }
  m->stream = sessions_stream_id(m);
  m->all_closed = true;
  m->out.next_seq = m->inputs[0].first_seq;
  for (unsigned i = 0; i < m->count && code < 0; i++) {
    const struct ljp_merge_input *in = &m->inputs[i];
    bool first = i == 0 || in[-1].session != in->session;
    bool last = i + 1 == m->count || in[1].session != in->session;
    if (first)
      sessions_begin_session(m, in);
    code = sessions_rewrite(m, in, first ? NULL : in - 1, last);
  }
  if (code < 0)
    sessions_end(m);
  ljp_objects_out_free(m->objects);
  m->objects = NULL;
  return code;
}
