/*
** See stacks_out.h.
*/
#include "profilers/join/stacks_out.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What a program has at most, with room to spare: the client's disk is not
** filled by a stack that is read wrongly. */
#define OUT_MOST_BYTES (UINT64_C(512) << 20)

void ljp_stacks_out_begin(struct ljp_stacks_out *out, int fd)
{
  out->fd = fd;
  out->error = 0;
  out->bytes = out->length = 0;
}

static void out_flush(struct ljp_stacks_out *out)
{
  struct rlimit limit;
  const char *at = out->buffer;
  /* Writing beyond the limit would raise SIGXFSZ. */
  if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
      out->bytes + out->length > limit.rlim_cur)
    out->error = EFBIG;
  if (out->bytes + out->length > OUT_MOST_BYTES)
    out->error = EFBIG;
  while (out->length && !out->error) {
    ssize_t n = pwrite(out->fd, at, out->length, (off_t)out->bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      out->error = n ? errno : EIO;
      break;
    }
    at += n;
    out->bytes += (uint64_t)n;
    out->length -= (size_t)n;
  }
  out->length = 0;
}

static void out_bytes(struct ljp_stacks_out *out, const char *text, size_t len)
{
  for (size_t i = 0; i < len; i++) {
    if (out->length == sizeof out->buffer)
      out_flush(out);
    out->buffer[out->length++] = text[i];
  }
}

void ljp_stacks_put(struct ljp_stacks_out *out, enum ljp_join_stacks_line line)
{
  static const char *const names[] = {
#define LJP_X(name, text, fields) text,
      LJP_JOIN_STACKS_LIST(LJP_X)
#undef LJP_X
  };
  out_bytes(out, names[line], strlen(names[line]));
}

void ljp_stacks_put_text(struct ljp_stacks_out *out, const char *text)
{
  out_bytes(out, "\t", 1);
  for (; *text; text++) {
    bool plain = (unsigned char)*text >= ' ' && *text != 127;
    out_bytes(out, plain ? text : "?", 1);
  }
}

void ljp_stacks_put_number(struct ljp_stacks_out *out, uint64_t number)
{
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)number);
  ljp_stacks_put_text(out, text);
}

void ljp_stacks_put_address(struct ljp_stacks_out *out, uint64_t address)
{
  char text[32];
  snprintf(text, sizeof text, "%llx", (unsigned long long)address);
  ljp_stacks_put_text(out, text);
}

void ljp_stacks_put_end(struct ljp_stacks_out *out)
{
  out_bytes(out, "\n", 1);
}

int ljp_stacks_out_end(struct ljp_stacks_out *out)
{
  out_flush(out);
  return out->error;
}
