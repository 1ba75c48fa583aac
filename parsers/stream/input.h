/*
** Where a reader's bytes come from: a file or pipe by name, standard input, or
** memory. Everything else is refused with a message that says what it is, so
** that no device is read for ever.
*/
#ifndef LJP_PARSERS_INPUT_H
#define LJP_PARSERS_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/status.h"

#define LJP_INPUT_PEEK_BYTES 16u

/* May be copied; then only one of the copies is used. */
struct ljp_input {
  /* Like read(2): number of bytes; 0 at the end; -1 with errno. */
  ssize_t (*read)(struct ljp_input *input, void *buf, size_t n);
  ssize_t (*later)(struct ljp_input *input, void *buf, size_t n);
  uint8_t peeked[LJP_INPUT_PEEK_BYTES]; /* They are read again first. */
  unsigned peeked_at, peeked_end;
  int fd;
  void *ctx;          /* Of a read function that is not ours. */
  const char *script; /* Borrowed: the path, if it looks like a Lua script. */
  const uint8_t *data;
  size_t left;
};

#define LJP_INPUT_ERROR_BYTES 160

/* Opens a file or FIFO; "-" is standard input. On failure error[] says why,
** without the path. */
enum ljp_status ljp_input_open(struct ljp_input *input, const char *path,
                               char error[LJP_INPUT_ERROR_BYTES]);

/* Reads bytes in memory, which must stay valid while the input is used. */
void ljp_input_memory(struct ljp_input *input, const void *data, size_t size);

/* The first bytes, which stay to be read; fewer than LJP_INPUT_PEEK_BYTES if
** there are not more. Once, before the first read. -1: errno. */
ssize_t ljp_input_peek(struct ljp_input *input);

void ljp_input_close(struct ljp_input *input);

#endif
