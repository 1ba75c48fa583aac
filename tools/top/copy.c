/*
** See copy.h.
*/
#include "tools/top/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/block.h"

void ljp_copy_init(struct ljp_top_copy *copy, int in)
{
  *copy = (struct ljp_top_copy){.in = in, .fd = -1};
}

static int copy_write(struct ljp_top_copy *copy, const uint8_t *data,
                      size_t bytes)
{
  while (bytes) {
    ssize_t n = write(copy->fd, data, bytes);
    if (n < 0 && errno != EINTR)
      return errno;
    data += n > 0 ? n : 0;
    bytes -= n > 0 ? (size_t)n : 0;
    copy->bytes += n > 0 ? (uint64_t)n : 0;
  }
  return 0;
}

/* The bytes [from, to) of what the view reads. */
static int copy_range(struct ljp_top_copy *copy, uint64_t from, uint64_t to)
{
  static uint8_t room[1 << 16];
  int error = 0;
  while (from < to && !error) {
    size_t want = to - from < sizeof room ? (size_t)(to - from) : sizeof room;
    ssize_t n = pread(copy->in, room, want, (off_t)from);
    if (n < 0 && errno == EINTR)
      continue;
    error = n < 0 ? errno : n == 0 ? EIO : copy_write(copy, room, (size_t)n);
    from += n > 0 ? (uint64_t)n : 0;
  }
  return error;
}

/* What was written of a block that does not fit is taken back. */
static int copy_fail(struct ljp_top_copy *copy, uint64_t whole, int error)
{
  (void)!ftruncate(copy->fd, (off_t)whole);
  close(copy->fd);
  copy->fd = -1;
  return error;
}

int ljp_copy_begin(struct ljp_top_copy *copy, const char *path, uint64_t from)
{
  copy->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (copy->fd < 0)
    return errno;
  snprintf(copy->path, sizeof copy->path, "%s", path);
  copy->bytes = 0;
  int error = copy_range(copy, from, copy->next);
  if (!error)
    return 0;
  unlink(path); /* It is of no use. */
  return copy_fail(copy, 0, error);
}

int ljp_copy_block(struct ljp_top_copy *copy, const struct ljp_block *block)
{
  uint64_t end = block->offset + LJP_BLOCK_HEAD_BYTES + block->head.stored_len;
  uint64_t whole = copy->bytes;
  copy->next = end;
  copy->last = block->head;
  int error = copy->fd < 0 ? 0 : copy_range(copy, block->offset, end);
  return error ? copy_fail(copy, whole, error) : 0;
}

/* A block with nothing but END. */
static int copy_put_end(struct ljp_top_copy *copy)
{
  /* Its time is that of the block; no error; why it ended. */
  static const uint8_t payload[] = {LJP_REC_END, 7, 0, 0, 0, 3, 't', 'o', 'p'};
  uint8_t head[LJP_BLOCK_HEAD_BYTES];
  struct ljp_block_head end = copy->last;
  end.seq++;
  end.flags &= (uint16_t) ~(LJP_BLOCK_KEY | LJP_BLOCK_ZSTD);
  end.producer = 0;
  end.stored_len = end.raw_len = sizeof payload;
  end.payload_crc = ljp_crc32c(0, payload, sizeof payload);
  ljp_block_head_put(head, &end);
  int error = copy_write(copy, head, sizeof head);
  return error ? error : copy_write(copy, payload, sizeof payload);
}

int ljp_copy_end(struct ljp_top_copy *copy, bool closed)
{
  uint64_t whole = copy->bytes;
  if (copy->fd < 0)
    return 0;
  int error = closed ? 0 : copy_put_end(copy);
  if (error)
    return copy_fail(copy, whole, error);
  error = close(copy->fd) ? errno : 0;
  copy->fd = -1;
  return error;
}
