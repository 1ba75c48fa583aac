/*
** Writes streams. A record of many events has a length field of three bytes,
** which is filled in when the record ends.
*/
#include "tools/rewrite/stream_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "parsers/tarantool/reader.h"
#include "src/base/assert.h"
#include "src/base/block.h"
#include "tools/shared/command.h"

enum { LENGTH_BYTES = 3, EVENT_BYTES = 100 };

bool ljp_out_begin(struct ljp_stream_out *out, int fd)
{
  *out = (struct ljp_stream_out){.fd = fd};
  out->payload = malloc(LJP_BLOCK_MAX_BYTES);
  out->packed = malloc(LJP_BLOCK_MAX_BYTES);
  return out->payload && out->packed;
}

void ljp_out_end(struct ljp_stream_out *out)
{
  free(out->payload);
  free(out->packed);
  out->payload = out->packed = NULL;
}

void ljp_out_raw(struct ljp_stream_out *out, const void *data, size_t len)
{
  const char *p = data;
  while (len && !out->error) {
    ssize_t n = write(out->fd, p, len);
    if (n >= 0) {
      p += n;
      len -= (size_t)n;
    } else if (errno != EINTR) {
      out->error = errno;
    }
  }
}

int ljp_out_source(const char *command, const char *path, const char *foreign)
{
  uint8_t head[LJP_TARANTOOL_MAGIC_BYTES];
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    ljp_command_error(command, "%s: %s", path, strerror(errno));
    return -1;
  }
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    ljp_command_error(
        command, "%s: is not a regular file, but must be read twice", path);
  else if (pread(fd, head, sizeof head, 0) == sizeof head &&
           ljp_tarantool_begins(head, sizeof head))
    ljp_command_error(command, "%s: is a file of Tarantool's profilers: %s",
                      path, foreign);
  else
    return fd;
  close(fd);
  return -1;
}

void ljp_out_copy(struct ljp_stream_out *out, int fd, uint64_t offset,
                  uint64_t n, uint64_t more_seq)
{
  static uint8_t buf[1 << 16];
  bool head = more_seq != 0;
  while (n && !out->error) {
    size_t want = n < sizeof buf ? (size_t)n : sizeof buf;
    ssize_t got = pread(fd, buf, want, (off_t)offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < (head ? (ssize_t)LJP_BLOCK_HEAD_BYTES : 1)) {
      out->error =
          got < 0 ? errno : EIO; /* The file was truncated meanwhile. */
      return;
    }
    if (head) {
      ljp_put_u64(buf + 16, ljp_get_u64(buf + 16) + more_seq);
      ljp_put_u32(buf + 52, ljp_crc32c(0, buf, 52));
      head = false;
    }
    ljp_out_raw(out, buf, (size_t)got);
    offset += (uint64_t)got;
    n -= (uint64_t)got;
  }
}

void ljp_out_block(struct ljp_stream_out *out,
                   const struct ljp_block_head *head)
{
  out->head = *head;
  out->len = 0;
  out->many = 0;
}

static void out_close_many(struct ljp_stream_out *out)
{
  size_t len = out->len - out->many_at - LENGTH_BYTES;
  ljp_assert(!out->many || len < (size_t)1 << 7 * LENGTH_BYTES);
  if (out->many)
    for (int i = 0; i < LENGTH_BYTES; i++)
      out->payload[out->many_at + (size_t)i] =
          (uint8_t)((len >> 7 * i & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
  out->many = 0;
}

void ljp_out_block_end(struct ljp_stream_out *out)
{
  uint8_t bytes[LJP_BLOCK_HEAD_BYTES];
  const uint8_t *stored = out->payload;
  size_t packed = 0;
  out_close_many(out);
  if (!out->len)
    return;
  ljp_assert(out->len <= LJP_BLOCK_MAX_BYTES);
  if (out->compress)
    packed = ZSTD_compress(out->packed, LJP_BLOCK_MAX_BYTES, out->payload,
                           out->len, 3);
  out->head.flags &= (uint16_t)~LJP_BLOCK_ZSTD;
  out->head.stored_len = out->head.raw_len = (uint32_t)out->len;
  if (out->compress && !ZSTD_isError(packed) && packed < out->len) {
    stored = out->packed;
    out->head.stored_len = (uint32_t)packed;
    out->head.flags |= LJP_BLOCK_ZSTD;
  }
  out->head.seq = out->next_seq++;
  out->head.payload_crc = ljp_crc32c(0, stored, out->head.stored_len);
  ljp_block_head_put(bytes, &out->head);
  ljp_out_raw(out, bytes, sizeof bytes);
  ljp_out_raw(out, stored, out->head.stored_len);
  out->head.flags &=
      (uint16_t)~LJP_BLOCK_KEY; /* Only the first block begins the epoch. */
  out->len = 0;
}

/* Makes room for more bytes. Begins a new block if necessary. */
static uint8_t *out_room(struct ljp_stream_out *out, size_t more)
{
  if (out->len + more > LJP_BLOCK_MAX_BYTES)
    ljp_out_block_end(out);
  return out->payload + out->len;
}

/* Upper bound of the size of a flat record. */
static size_t out_bound(const struct ljp_field *field, unsigned count,
                        const char *record)
{
  size_t most = 2 * LJP_VARINT_MAX_BYTES;
  for (; count; count--, field++) {
    struct ljp_str string;
    struct ljp_pairs pairs;
    most += LJP_VARINT_MAX_BYTES;
    if (field->type == LJP_FIELD_STR) {
      memcpy(&string, record + field->offset, sizeof string);
      most += string.len;
    } else if (field->type == LJP_FIELD_PAIRS) {
      memcpy(&pairs, record + field->offset, sizeof pairs);
      most += (size_t)(pairs.end - pairs.data);
    }
  }
  return most;
}

static uint8_t *out_put_field(uint8_t *p, const struct ljp_field *field,
                              const char *record, uint64_t block_time)
{
  struct ljp_str string;
  struct ljp_pairs pairs;
  uint64_t value;
  switch (field->type) {
  case LJP_FIELD_STR:
    memcpy(&string, record + field->offset, sizeof string);
    p = ljp_put_varint(p, string.len);
    if (string.len)
      memcpy(p, string.data, string.len);
    return p + string.len;
  case LJP_FIELD_PAIRS:
    memcpy(&pairs, record + field->offset, sizeof pairs);
    p = ljp_put_varint(p, pairs.count);
    memcpy(p, pairs.data, (size_t)(pairs.end - pairs.data));
    return p + (pairs.end - pairs.data);
  default:
    memcpy(&value, record + field->offset, sizeof value);
    if (field->type == LJP_FIELD_T)
      value -= block_time;
    return ljp_put_varint(p, field->type == LJP_FIELD_U ||
                                     field->type == LJP_FIELD_U1
                                 ? value
                                 : ljp_zigzag((int64_t)value));
  }
}

void ljp_out_record(struct ljp_stream_out *out, unsigned tag,
                    const void *record)
{
  unsigned count = 0;
  const struct ljp_field *fields = ljp_record_fields(tag, &count);
  out_close_many(out);
  uint8_t *p = out_room(out, out_bound(fields, count, record));
  p = ljp_put_varint(p, tag);
  uint8_t *body = p + LENGTH_BYTES, *end = body;
  for (unsigned i = 0; i < count; i++)
    end = out_put_field(end, &fields[i], record, out->head.time_ns);
  out->many = tag;
  out->many_at = (size_t)(p - out->payload);
  out->len = (size_t)(end - out->payload);
  out_close_many(out);
}

void ljp_out_body(struct ljp_stream_out *out, unsigned tag, const void *body,
                  size_t len)
{
  out_close_many(out);
  uint8_t *p = out_room(out, 2 * LJP_VARINT_MAX_BYTES + len);
  p = ljp_put_varint(ljp_put_varint(p, tag), len);
  memcpy(p, body, len);
  out->len = (size_t)(p + len - out->payload);
}

static uint8_t *out_put_node(uint8_t *p, const struct ljp_rec_node *n,
                             const struct ljp_rec_node *last)
{
  p = ljp_put_delta(p, n->id, last->id);
  p = ljp_put_varint(p, n->up ? n->up : n->id);
  *p++ = (uint8_t)(n->kind << 4 | (n->flags & 15));
  if (ljp_frame_shape(n->kind) != LJP_SHAPE_NUM)
    p = ljp_put_varint(p, n->ref);
  return ljp_put_varint(p, n->value);
}

static uint8_t *out_put_sample(uint8_t *p, const struct ljp_item *event,
                               const struct ljp_item *before)
{
  const struct ljp_rec_sample *s = &event->u.sample, *last = &before->u.sample;
  unsigned has = (s->stack != last->stack ? LJP_SAMPLE_STACK : 0) |
                 (s->state != last->state ? LJP_SAMPLE_STATE : 0) |
                 (s->vm != last->vm ? LJP_SAMPLE_VM : 0) |
                 (s->weight != last->weight ? LJP_SAMPLE_WEIGHT : 0) |
                 (s->cut ? LJP_SAMPLE_CUT : 0);
  *p++ = (uint8_t)has;
  p = ljp_put_delta(p, event->time_ns, before->time_ns);
  if (has & LJP_SAMPLE_STACK)
    p = ljp_put_delta(p, s->stack, last->stack);
  if (has & LJP_SAMPLE_STATE)
    *p++ = s->state;
  if (has & LJP_SAMPLE_VM)
    p = ljp_put_varint(p, s->vm);
  if (has & LJP_SAMPLE_WEIGHT)
    p = ljp_put_varint(p, s->weight);
  if (has & LJP_SAMPLE_CUT)
    *p++ = s->cut;
  return p;
}

static uint8_t *out_put_mem(uint8_t *p, const struct ljp_item *event,
                            const struct ljp_item *before)
{
  const struct ljp_rec_mem *m = &event->u.mem, *last = &before->u.mem;
  unsigned has =
      m->op | (m->stack != last->stack ? LJP_MEM_STACK : 0) |
      (m->state != last->state || m->vm != last->vm ? LJP_MEM_STATE : 0) |
      (m->size != last->size ? LJP_MEM_SIZE : 0) |
      (m->weight != last->weight ? LJP_MEM_WEIGHT : 0) |
      (m->type != last->type || m->flags != last->flags ? LJP_MEM_WHAT : 0);
  uint64_t address = ljp_rotate_address(m->address);
  *p++ = (uint8_t)has;
  p = ljp_put_delta(p, event->time_ns, before->time_ns);
  p = ljp_put_delta(p, address, ljp_rotate_address(last->address));
  if (has & LJP_MEM_SIZE)
    p = ljp_put_varint(p, m->size);
  if (m->op == LJP_MEM_REALLOC) {
    p = ljp_put_delta(p, ljp_rotate_address(m->old_address), address);
    p = ljp_put_varint(p, m->old_size);
  }
  if (has & LJP_MEM_STACK)
    p = ljp_put_delta(p, m->stack, last->stack);
  if (has & LJP_MEM_STATE) {
    *p++ = m->state;
    p = ljp_put_varint(p, m->vm);
  }
  if (has & LJP_MEM_WEIGHT)
    p = ljp_put_varint(p, m->weight);
  if (has & LJP_MEM_WHAT)
    *p++ = m->type | m->flags;
  return p;
}

void ljp_out_event(struct ljp_stream_out *out, const struct ljp_item *event)
{
  if (out->many != event->what) {
    out_close_many(out);
    uint8_t *p =
        out_room(out, EVENT_BYTES + LJP_VARINT_MAX_BYTES + LENGTH_BYTES);
    p = ljp_put_varint(p, event->what);
    out->many_at = (size_t)(p - out->payload);
    out->len = out->many_at + LENGTH_BYTES;
    out->many = event->what;
    memset(&out->last, 0, sizeof out->last);
    if (event->what != LJP_REC_NODES)
      out->last.time_ns = out->head.time_ns;
  }
  uint8_t *p = out->payload + out->len;
  if (out->len + EVENT_BYTES > LJP_BLOCK_MAX_BYTES) {
    ljp_out_block_end(out);
    ljp_out_event(out, event); /* Recurses only once: the block is empty now. */
    return;
  }
  if (event->what == LJP_REC_NODES)
    p = out_put_node(p, &event->u.node, &out->last.u.node);
  else if (event->what == LJP_REC_SAMPLES)
    p = out_put_sample(p, event, &out->last);
  else
    p = out_put_mem(p, event, &out->last);
  ljp_assert((size_t)(p - out->payload) - out->len <= EVENT_BYTES);
  out->len = (size_t)(p - out->payload);
  out->last = *event;
}
