/*
** Follows a file or a pipe.
*/
#include "tools/top/source.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parsers/stream/recording.h"
#include "parsers/tarantool/reader.h"

/* Whether more may come after the end of what is there. */
static bool source_grows(struct ljp_top_source *s)
{
  const struct ljp_reader *r = &s->reader;
  if (!s->file_bytes || r->finish.closed != LJP_CLOSED_NOT || s->last_look)
    return false;
  /* The writer's last block may have come just before it went. */
  s->last_look = s->writes ? !s->writes(s->ctx)
                           : !ljp_recording(ljp_model_process(&r->model),
                                            r->input.fd, s->segment_bytes);
  return true;
}

/* Goes on in the next file segment, PATH.s1 after PATH. False: there is none. */
static bool source_next_segment(struct ljp_top_source *s,
                                struct ljp_input *input)
{
  char path[PATH_MAX], why[LJP_INPUT_ERROR_BYTES];
  struct ljp_input next;
  struct stat st;
  if (s->reader.finish.closed != LJP_CLOSED_SEGMENT || !s->next_segment)
    return false;
  size_t len = strlen(s->path), end = len;
  while (end && s->path[end - 1] >= '0' && s->path[end - 1] <= '9')
    end--;
  if (end < len && end > 2 && memcmp(s->path + end - 2, ".s", 2) == 0)
    len = end - 2;
  int n = snprintf(path, sizeof path, "%.*s.s%" PRIu64, (int)len, s->path,
                   s->next_segment);
  s->next_segment = 0;
  if (n < 0 || (size_t)n >= sizeof path || ljp_input_open(&next, path, why))
    return false;
  if (fstat(next.fd, &st) || !S_ISREG(st.st_mode)) {
    ljp_input_close(&next);
    return false;
  }
  close(input->fd);
  input->fd = next.fd;
  s->segment_bytes = 0;
  s->file_bytes += (uint64_t)st.st_size;
  return true;
}

void ljp_top_source_see(struct ljp_top_source *s, const struct ljp_item *item)
{
  if (item->what == LJP_REC_SEGMENT_END)
    s->next_segment = item->u.segment_end.next;
}

static ssize_t source_read(struct ljp_input *input, void *buf, size_t n)
{
  struct ljp_top_source *s = input->ctx;
  struct pollfd wait = {.fd = input->fd, .events = POLLIN};
  while (!s->ended) {
    if (!s->file_bytes && poll(&wait, 1, 0) == 0) {
      s->follows = true;
      s->idle(s->ctx);
      continue;
    }
    ssize_t got = read(input->fd, buf, n);
    if (got > 0) {
      s->read_bytes += (uint64_t)got;
      s->segment_bytes += (uint64_t)got;
      return got;
    }
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (got < 0)
      return -1;
    if (s->file_bytes && source_next_segment(s, input))
      continue;
    s->ended = !source_grows(s);
    s->follows = true;
    if (!s->ended && !s->last_look)
      s->idle(s->ctx);
  }
  return 0;
}

enum ljp_status ljp_top_source_open(struct ljp_top_source *s, const char *path,
                                    char error[LJP_READER_ERROR_BYTES])
{
  struct ljp_input input;
  struct stat st;
  s->path = path;
  enum ljp_status status = ljp_input_open(&input, path, error);
  if (status)
    return status;
  if (fstat(input.fd, &st) == 0 && S_ISREG(st.st_mode)) {
    uint8_t head[LJP_INPUT_PEEK_BYTES];
    ssize_t got = pread(input.fd, head, sizeof head, 0);
    if (got > 0 && ljp_tarantool_begins(head, (size_t)got)) {
      snprintf(error, LJP_READER_ERROR_BYTES,
               "files of Tarantool's profilers have no times: 'ljprof report' "
               "shows them");
      ljp_input_close(&input);
      return LJP_ERR_USE;
    }
    s->file_bytes = (uint64_t)st.st_size + 1;
  }
  input.read = source_read;
  input.ctx = s;
  status = ljp_reader_input(&s->reader, &input);
  if (status)
    snprintf(error, LJP_READER_ERROR_BYTES, "%s", s->reader.error);
  return status;
}

void ljp_top_source_close(struct ljp_top_source *s)
{
  ljp_reader_fini(&s->reader);
}
