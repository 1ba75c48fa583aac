/*
** See heap_frames.h.
*/
#include "src/writer/heap_frames.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/base/varint.h"
#include "src/writer/writer_impl.h"

_Static_assert(sizeof(struct ljp_heap_frame) + LJP_RECORD_MAX_BYTES <
                   LJP_HEAP_FRAMES_BYTES,
               "a frame fits");

/* -- The copy -------------------------------------------------------------- */

static void frames_flush(struct ljp_heap_frames *f)
{
  size_t done = 0;
  while (!f->error && done < f->used) {
    ssize_t n = write(f->fd, f->buffer + done, f->used - done);
    if (n > 0)
      done += (size_t)n;
    else if (n == 0 || errno != EINTR)
      f->error = n ? errno : ENOSPC;
  }
  f->bytes += done;
  f->used = 0;
}

bool ljp_heap_frames_put(struct ljp_heap_frames *f, enum ljp_record tag,
                         uint64_t time_ns, const uint8_t *body, size_t len)
{
  const struct ljp_heap_frame head = {
      .tag = tag, .len = (uint32_t)len, .time_ns = time_ns};
  ljp_assert(len <= LJP_RECORD_MAX_BYTES);
  if (f->used + sizeof head + len > sizeof f->buffer)
    frames_flush(f);
  memcpy(f->buffer + f->used, &head, sizeof head);
  memcpy(f->buffer + f->used + sizeof head, body, len);
  f->used += sizeof head + len;
  return !f->error;
}

enum ljp_status ljp_heap_frames_end(struct ljp_heap_frames *f)
{
  frames_flush(f);
  return f->error ? LJP_ERR_IO : LJP_OK;
}

/* -- The writer ------------------------------------------------------------ */

void ljp_writer_put_heap(struct ljp_writer *w, enum ljp_record tag,
                         uint64_t time_ns, const uint8_t *fields, size_t len)
{
  if (tag == LJP_REC_OBJECTS) {
    ljp_writer_make_room(w);
    ljp_builder_base(&w->builder, time_ns);
    ljp_builder_event(&w->builder, tag, fields, len);
    return;
  }
  struct ljp_body *b = ljp_writer_timed_body(w, time_ns);
  ljp_assert(b->len + len <= sizeof b->data);
  memcpy(b->data + b->len, fields, len);
  b->len += len;
  ljp_writer_put_event(w, tag);
}

/* A client may have written into its file. */
static bool frames_fit(const struct ljp_heap_frame *head)
{
  enum { TIME_BYTES = 10 };
  return head->tag >= LJP_REC_HEAP && head->tag <= LJP_REC_HEAP_TYPE &&
         head->len <=
             LJP_RECORD_MAX_BYTES -
                 (head->tag == LJP_REC_OBJECTS ? 0 : (uint32_t)TIME_BYTES);
}

/* Appends the whole frames of n bytes. Returns how many bytes they had. */
static size_t frames_append(struct ljp_writer *w, const uint8_t *data, size_t n)
{
  struct ljp_heap_frame head;
  size_t at = 0;
  while (n - at >= sizeof head) {
    memcpy(&head, data + at, sizeof head);
    if (!frames_fit(&head) || head.len > n - at - sizeof head)
      break;
    if (w->out.epoch_bytes >= w->options.epoch_bytes)
      ljp_writer_begin_epoch(w, LJP_EPOCH_SIZE);
    ljp_writer_rotate_within(w);
    ljp_writer_put_heap(w, (enum ljp_record)head.tag, head.time_ns,
                        data + at + sizeof head, head.len);
    at += sizeof head + head.len;
  }
  return at;
}

enum ljp_status ljp_writer_append_heap(struct ljp_writer *w,
                                       struct ljp_heap_append *from,
                                       uint64_t bytes, int *error)
{
  const uint64_t until = from->at + bytes;
  if (!from->at)
    ljp_writer_name_builtins(w);
  ljp_writer_put_block(w, 0);
  while (from->at < from->end && from->at < until && !w->out.status) {
    uint64_t left = from->end - from->at;
    size_t want =
        left < LJP_HEAP_FRAMES_BYTES ? (size_t)left : LJP_HEAP_FRAMES_BYTES;
    ssize_t n = pread(from->fd, from->buffer, want, (off_t)from->at);
    size_t used = n > 0 ? frames_append(w, from->buffer, (size_t)n) : 0;
    *error = n < 0 ? errno : EIO;
    if (!used && (n >= 0 || errno != EINTR)) {
      w->appending = false;
      return LJP_ERR_IO;
    }
    from->at += used;
  }
  w->appending = from->at < from->end;
  ljp_writer_put_block(w, 0);
  *error = 0;
  return LJP_OK;
}
