/*
** Stream output: writes a stream from the items of a reader, for commands that
** make one file of others. Blocks are filled record by record and written when
** full. The first failed write is remembered in error, and later output is
** dropped. One thread per output.
*/
#ifndef LJP_TOOLS_STREAM_OUT_H
#define LJP_TOOLS_STREAM_OUT_H

#include "parsers/stream/record.h"

/* A new block begins beyond this size. Records are far smaller. */
#define LJP_OUT_FULL_BYTES (LJP_BLOCK_MAX_BYTES / 2)

struct ljp_stream_out {
  int fd, error;
  uint64_t next_seq;
  struct ljp_block_head head; /* Head of the current block. */
  bool compress;
  unsigned many; /* Tag of the open record of many events; 0: none. */
  size_t many_at;
  struct ljp_item last; /* The previous event in that record. */
  size_t len;
  uint8_t *payload; /* LJP_BLOCK_MAX_BYTES */
  uint8_t *packed;  /* For compressed blocks. */
};

/* False: out of memory. */
bool ljp_out_begin(struct ljp_stream_out *out, int fd);
void ljp_out_end(struct ljp_stream_out *out);

/* Writes bytes as they are. */
void ljp_out_raw(struct ljp_stream_out *out, const void *data, size_t len);

/* Opens an input file, which must be a regular file. foreign: the end of the
** message about a file of Tarantool's profilers. -1: an error was reported. */
int ljp_out_source(const char *command, const char *path, const char *foreign);

/* Copies bytes [offset, offset + n) of a file. If more_seq is not 0, they are
** a block whose number grows by more_seq. */
void ljp_out_copy(struct ljp_stream_out *out, int fd, uint64_t offset,
                  uint64_t n, uint64_t more_seq);

/* Begins a block, and ends it. Its number is next_seq; lengths and checksums
** are computed. Empty blocks are not written. */
void ljp_out_block(struct ljp_stream_out *out,
                   const struct ljp_block_head *head);
void ljp_out_block_end(struct ljp_stream_out *out);

/* Writes a flat record from its struct. */
void ljp_out_record(struct ljp_stream_out *out, unsigned tag,
                    const void *record);

/* Writes a record whose fields are bytes already. */
void ljp_out_body(struct ljp_stream_out *out, unsigned tag, const void *body,
                  size_t len);

/* Writes a node, sample or memory event. */
void ljp_out_event(struct ljp_stream_out *out, const struct ljp_item *event);

/* Whether the caller should end the current block. */
static inline bool ljp_out_is_full(const struct ljp_stream_out *out)
{
  return out->len >= LJP_OUT_FULL_BYTES;
}

#endif
