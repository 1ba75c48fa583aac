/*
** ljprof merge: segments of a session, or sessions of a service's workers, as
** one file (RFC 1, section 11). Segments of one session are put behind each
** other byte for byte; of several sessions every record is written anew, with
** ids of its own. Files that do not belong together are refused by name.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"
#include "src/base/varint.h"
#include "tools/shared/command.h"
#include "tools/shared/outfile.h"
#include "tools/rewrite/renumber.h"
#include "tools/rewrite/stream_out.h"

static const char help[] =
    "Usage: ljprof merge -o OUT [--force] [--unrelated] FILE...\n"
    "Makes one file of several: of the segments of a rotated file, in any\n"
    "order, or of the files of a service's workers, or of both.\n\n"
    "  -o OUT        write to OUT ('-' is standard output)\n"
    "  --force       replace OUT if it exists\n"
    "  --unrelated   take sessions of different programs, too\n"
    "  --help        this text\n\n"
    "Times of machines with different clocks are aligned by wall time. What\n"
    "is missing between segments is told, and stays missing in OUT. Exit\n"
    "code: 0 done, 1 failed or the files do not belong together, 2 called\n"
    "wrongly.\n";

struct input {
  const char *path;
  int fd;
  uint64_t stream, first_seq, segment;
  uint64_t clock; /* Wall time minus monotonic time. */
  bool has_process;
  char *executable;
  unsigned session; /* Inputs of one have the same. */
};

/* What a session did not hand over. */
struct left_out {
  uint64_t gaps, gap_bytes, bad, unknown;
};

struct merge {
  struct input *inputs;
  unsigned count, sessions;
  struct ljp_stream_out out;
  struct ljp_renumber map;
  uint64_t stream;                 /* Of the output. */
  uint64_t totals[LJP_TALLY_TAGS]; /* Of the sessions before. */
  uint64_t before[LJP_TALLY_TAGS]; /* Of this one, before its first input. */
  uint64_t losses[64], session_losses[64]; /* Of producer 0. */
  uint64_t last_seq;                       /* Of the input's blocks. */
  uint64_t more_seq; /* By which the numbers of the others have to grow. */
  uint32_t last_epoch;
  uint32_t epoch_base, epoch_most;
  bool begun; /* A block of the session was met. */
  bool all_closed;
  struct left_out left;
  uint64_t time; /* The newest, in the output. */
};

static struct ljp_reader reader;

/* Reads what a file is: from its first whole block. */
static int look_at(struct input *in)
{
  const struct ljp_item *event;
  unsigned blocks = 0;
  in->fd = ljp_out_source("merge", in->path);
  if (in->fd < 0)
    return LJP_EXIT_FAILED;
  enum ljp_status status = ljp_reader_open(&reader, in->path);
  while (!status) {
    status = ljp_reader_next(&reader, &event);
    if (status || event->what == LJP_ITEM_FINISH)
      break;
    if (event->what == LJP_ITEM_BLOCK && blocks++ == 0) {
      in->stream = event->block->head.stream;
      in->first_seq = event->block->head.seq;
    } else if (event->what == LJP_REC_EPOCH) {
      in->segment = event->u.epoch.segment;
    } else if (event->what == LJP_REC_PROCESS) {
      const struct ljp_rec_process *p = &event->u.process;
      in->has_process = true;
      in->clock = p->anchor_wall_ns - p->anchor_mono_ns;
      in->executable = strndup(p->executable.data, p->executable.len);
      break;
    }
    if (blocks > 1)
      break;
  }
  if (status)
    ljp_command_error("merge", "%s: %s", in->path, reader.error);
  ljp_reader_fini(&reader);
  return status ? LJP_EXIT_FAILED : -1;
}

static int by_session(const void *a, const void *b)
{
  const struct input *x = a, *y = b;
  if (x->session != y->session)
    return x->session < y->session ? -1 : 1;
  return x->first_seq < y->first_seq ? -1 : x->first_seq > y->first_seq;
}

static const char *program(const struct input *in)
{
  return in->executable ? in->executable : "(not known)";
}

/* Sorts inputs into sessions, and says which do not belong together. */
static int sort_inputs(struct merge *m, bool unrelated)
{
  for (unsigned i = 0; i < m->count; i++) {
    struct input *in = &m->inputs[i];
    in->session = m->sessions;
    for (unsigned k = 0; k < i; k++) {
      const struct input *other = &m->inputs[k];
      if (other->stream == in->stream) {
        in->session = other->session;
        if (other->first_seq == in->first_seq) {
          ljp_command_error("merge", "%s and %s are the same part of a session",
                            other->path, in->path);
          return LJP_EXIT_FAILED;
        }
      } else if (!unrelated && (!in->has_process || !other->has_process ||
                                strcmp(program(in), program(other)) != 0)) {
        ljp_command_error("merge",
                          "%s is of %s, %s of %s: they do not belong together"
                          " (--unrelated merges them)",
                          other->path, program(other), in->path, program(in));
        return LJP_EXIT_FAILED;
      }
    }
    m->sessions += in->session == m->sessions;
  }
  qsort(m->inputs, m->count, sizeof *m->inputs, by_session);
  return -1;
}

/* Tells of what is missing between two segments. head: of the second one's first
** block. If that is of a later epoch, but its number is among those of the file
** before, symbols were put into that (ljprof embed), and the numbers behind them
** have to grow. */
static void check_order(struct merge *m, const struct input *before,
                        const struct input *in,
                        const struct ljp_block_head *head)
{
  uint64_t first_seq = head->seq + m->more_seq;
  if (first_seq > m->last_seq + 1) {
    ljp_command_note("merge",
                     "%" PRIu64 " blocks are missing between %s and %s",
                     first_seq - m->last_seq - 1, before->path, in->path);
  } else if (head->epoch > m->last_epoch) {
    m->more_seq += m->last_seq + 1 - first_seq;
    if (in->segment <= before->segment + 1)
      return;
    ljp_command_note(
        "merge", "%" PRIu64 " of the segments are missing between %s and %s",
        in->segment - before->segment - 1, before->path, in->path);
    m->more_seq++; /* at least one block */
  } else {
    ljp_command_note("merge",
                     "%s begins before %s ends: what they share is"
                     " taken once",
                     in->path, before->path);
  }
}

/* One session: its bytes as they are. */
static int put_behind(struct merge *m, const struct input *in,
                      const struct input *before)
{
  const struct ljp_item *event;
  enum ljp_status status = ljp_reader_open(&reader, in->path);
  while (!status && !m->out.error) {
    status = ljp_reader_next(&reader, &event);
    if (status || event->what == LJP_ITEM_FINISH)
      break;
    if (event->what == LJP_ITEM_GAP) {
      ljp_out_copy(&m->out, in->fd, event->u.gap.offset, event->u.gap.bytes, 0);
    } else if (event->what == LJP_ITEM_BLOCK) {
      const struct ljp_block_head head = event->block->head;
      if (before)
        check_order(m, before, in, &head);
      before = NULL;
      m->last_seq = head.seq + m->more_seq;
      m->last_epoch = head.epoch;
      ljp_out_copy(&m->out, in->fd, event->block->offset,
                   LJP_BLOCK_HEAD_BYTES + head.stored_len, m->more_seq);
    }
  }
  if (status)
    ljp_command_error("merge", "%s: %s", in->path, reader.error);
  ljp_reader_fini(&reader);
  return status ? LJP_EXIT_FAILED : LJP_EXIT_OK;
}

/* -- Several sessions ------------------------------------------------------- */

static void begin_block(struct merge *m, const struct ljp_block_head *from)
{
  struct ljp_block_head head = *from;
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

/* A TOTALS of counts per tag. */
static void put_totals(struct merge *m, const uint64_t totals[LJP_TALLY_TAGS])
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

static void move_totals(struct merge *m, struct ljp_pairs counts)
{
  uint64_t totals[LJP_TALLY_TAGS], tag, count;
  memcpy(totals, m->totals, sizeof totals);
  while (ljp_pairs_next(&counts, &tag, &count))
    if (tag < LJP_TALLY_TAGS && ljp_is_counted(tag) && count > m->before[tag])
      totals[tag] += count - m->before[tag];
  put_totals(m, totals);
}

static void put_event(struct merge *m, const struct ljp_item *event)
{
  struct ljp_item moved;
  ljp_renumber_event(&m->map, event, &moved);
  if (moved.time_ns > m->time)
    m->time = moved.time_ns;
  switch (event->what) {
  case LJP_REC_END:
  case LJP_REC_SEGMENT_END:
    return;
  case LJP_REC_SAMPLES:
  case LJP_REC_MEM:
  case LJP_REC_NODES:
    ljp_out_event(&m->out, &moved);
    return;
  case LJP_REC_TOTALS:
    move_totals(m, event->u.totals.counts);
    return;
  case LJP_REC_LOSS:
    if (event->u.loss.producer == 0 && event->u.loss.reason < 64) {
      m->session_losses[event->u.loss.reason] = event->u.loss.count;
      moved.u.loss.count += m->losses[event->u.loss.reason];
    }
    break;
  default:
    break;
  }
  ljp_out_record(&m->out, event->what, &moved.u);
}

/* The block that is being filled is the writer's own from here on. */
static void begin_own_block(struct merge *m)
{
  struct ljp_block_head head = m->out.head;
  ljp_out_block_end(&m->out);
  head.producer = 0;
  head.flags = 0;
  head.stream = m->stream;
  head.time_ns = m->time;
  m->out.compress = false;
  ljp_out_block(&m->out, &head);
}

static void note(struct merge *m, enum ljp_note severity, const char *text)
{
  struct ljp_rec_note record = {.time_ns = m->time,
                                .severity = severity,
                                .text = {text, (uint32_t)strlen(text)}};
  ljp_out_record(&m->out, LJP_REC_NOTE, &record);
  m->totals[LJP_REC_NOTE]++;
  ljp_command_note("merge", "%s", text);
}

static void tell_left_out(struct merge *m, const char *path)
{
  char text[4096 + 200];
  const struct left_out *left = &m->left;
  if (!left->gap_bytes && !left->bad && !left->unknown)
    return;
  begin_own_block(m);
  snprintf(text, sizeof text,
           "%.4000s: left out: %" PRIu64 " damaged bytes in %" PRIu64
           " places, %" PRIu64 " malformed records, %" PRIu64
           " of kinds that are not known",
           path, left->gap_bytes, left->gaps, left->bad, left->unknown);
  note(m, LJP_NOTE_WARNING, text);
}

/* Writes one input's records anew. */
static int take_over(struct merge *m, const struct input *in,
                     const struct input *before, bool last)
{
  const struct ljp_item *event;
  bool first = !before;
  m->left = (struct left_out){0};
  enum ljp_status status = ljp_reader_open(&reader, in->path);
  while (!status && !m->out.error) {
    status = ljp_reader_next(&reader, &event);
    if (status || event->what == LJP_ITEM_FINISH)
      break;
    switch (event->what) {
    case LJP_ITEM_GAP:
      m->left.gaps += event->u.gap.bytes != 0;
      m->left.gap_bytes += event->u.gap.bytes;
      break;
    case LJP_ITEM_BLOCK:
      if (before)
        check_order(m, before, in, &event->block->head);
      before = NULL;
      begin_block(m, &event->block->head);
      break;
    case LJP_ITEM_BAD:
      m->left.bad++;
      break;
    case LJP_ITEM_UNKNOWN:
      m->left.unknown++;
      break;
    case LJP_REC_TOTALS:
      if (first && m->map.session)
        memcpy(m->before, reader.tally.before, sizeof m->before);
      first = false;
      put_event(m, event);
      break;
    default:
      put_event(m, event);
    }
  }
  if (!status && !m->out.error) {
    const struct ljp_tally *tally = &reader.tally;
    unsigned wanted = last ? LJP_CLOSED_END : LJP_CLOSED_SEGMENT;
    m->all_closed &= event->u.finish.closed == wanted;
    for (unsigned i = 0; last && i < LJP_TALLY_TAGS; i++)
      if (ljp_is_counted(i))
        m->totals[i] += tally->before[i] + tally->read[i] +
                        tally->swallowed[i] - m->before[i];
    tell_left_out(m, in->path);
  }
  if (status)
    ljp_command_error("merge", "%s: %s", in->path, reader.error);
  ljp_reader_fini(&reader);
  return status ? LJP_EXIT_FAILED : LJP_EXIT_OK;
}

static void begin_session(struct merge *m, const struct input *in)
{
  uint64_t shift = m->inputs[0].has_process && in->has_process
                       ? in->clock - m->inputs[0].clock
                       : 0;
  /* Both clocks are read one after the other: a little is no difference. */
  if (shift + 1000000000u < 2000000000u)
    shift = 0;
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

static void end_all(struct merge *m)
{
  struct ljp_rec_end end = {.time_ns = m->time, .reason = {"merged", 6}};
  begin_own_block(m);
  if (m->all_closed) {
    put_totals(m, m->totals);
    ljp_out_record(&m->out, LJP_REC_END, &end);
  } else {
    note(m, LJP_NOTE_WARNING, "not every file that was merged had been closed");
  }
  ljp_out_block_end(&m->out);
}

/* FNV-1a of the numbers that went in. */
static uint64_t new_stream(const struct merge *m)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (unsigned i = 0; i < m->count; i++)
    for (int shift = 0; shift < 64; shift += 8)
      hash = (hash ^ (m->inputs[i].stream >> shift & 0xff)) *
             UINT64_C(0x100000001b3);
  return hash ? hash : 1;
}

static int merge_all(struct merge *m)
{
  int code = LJP_EXIT_OK;
  m->stream = new_stream(m);
  m->all_closed = true;
  m->out.next_seq = m->inputs[0].first_seq;
  for (unsigned i = 0; i < m->count && !code; i++) {
    const struct input *in = &m->inputs[i];
    bool new = i == 0 || in[-1].session != in->session;
    bool last = i + 1 == m->count || in[1].session != in->session;
    const struct input *before = new ? NULL : in - 1;
    if (m->sessions == 1) {
      code = put_behind(m, in, before);
      continue;
    }
    if (new)
      begin_session(m, in);
    code = take_over(m, in, before, last);
  }
  if (!code && m->sessions > 1)
    end_all(m);
  return code;
}

static int merge(struct merge *m, const char *to, bool force, bool unrelated)
{
  struct ljp_outfile file;
  int code = -1;
  for (unsigned i = 0; i < m->count; i++)
    if ((code = look_at(&m->inputs[i])) >= 0)
      return code;
  code = sort_inputs(m, unrelated);
  if (code < 0)
    code = ljp_outfile_open(&file, "merge", to, force);
  if (code >= 0)
    return code;
  if (ljp_out_begin(&m->out, file.fd)) {
    code = merge_all(m);
  } else {
    ljp_command_error("merge", "%s", ljp_status_text(LJP_ERR_MEM));
    code = LJP_EXIT_FAILED;
  }
  ljp_out_end(&m->out);
  if (code)
    ljp_outfile_abort(&file);
  else
    code = ljp_outfile_commit(&file, m->out.error);
  return code;
}

int ljp_command_merge(int argc, char **argv)
{
  struct merge m = {0};
  const char *to = NULL;
  bool force = false, unrelated = false;
  const struct ljp_flag flags[] = {{"--force", &force, NULL},
                                   {"--unrelated", &unrelated, NULL},
                                   {"-o", NULL, &to}};
  const char **files = calloc((size_t)argc, sizeof *files);
  m.inputs = calloc((size_t)argc, sizeof *m.inputs);
  int code = LJP_EXIT_FAILED;
  if (!files || !m.inputs)
    ljp_command_error("merge", "%s", ljp_status_text(LJP_ERR_MEM));
  else
    code =
        ljp_command_files("merge", help, argc, argv, flags, 3, files, &m.count);
  if (code < 0 && !to) {
    ljp_command_error("merge", "no output file given (-o OUT)");
    code = LJP_EXIT_USAGE;
  }
  for (unsigned i = 0; code < 0 && i < m.count; i++) {
    m.inputs[i].path = files[i];
    m.inputs[i].fd = -1;
  }
  if (code < 0)
    code = merge(&m, to, force, unrelated);
  for (unsigned i = 0; m.inputs && i < m.count; i++) {
    if (m.inputs[i].path && m.inputs[i].fd >= 0)
      close(m.inputs[i].fd);
    free(m.inputs[i].executable);
  }
  free(m.inputs);
  free((void *)files);
  return code;
}
