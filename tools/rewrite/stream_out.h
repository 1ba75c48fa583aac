/*
** Writing a stream from what a reader gave: for commands that make one file of
** others. Blocks are filled record by record and written when full; a failed
** write is remembered in error, and what follows is dropped.
** One thread an output.
*/
#ifndef LJP_TOOLS_STREAM_OUT_H
#define LJP_TOOLS_STREAM_OUT_H

#include "parsers/stream/record.h"

/* Blocks are begun anew beyond: records are far smaller. */
#define LJP_OUT_FULL_BYTES (LJP_BLOCK_MAX_BYTES / 2)

struct ljp_stream_out {
  int fd, error;
  uint64_t next_seq;
  struct ljp_block_head head; /* Of the block that is being filled. */
  bool compress;
  unsigned many; /* Tag of the record of many events that is open; 0: none. */
  size_t many_at;
  struct ljp_item last; /* The event before in it. */
  size_t len;
  uint8_t *payload; /* LJP_BLOCK_MAX_BYTES */
  uint8_t *packed;  /* For compressed ones. */
};

/* false: no memory. */
bool ljp_out_begin(struct ljp_stream_out *out, int fd);
void ljp_out_end(struct ljp_stream_out *out);

/* Writes bytes as they are. */
void ljp_out_raw(struct ljp_stream_out *out, const void *data, size_t len);

/* Opens a file that is copied from: a regular one. -1: the error was told. */
int ljp_out_source(const char *command, const char *path);

/* Bytes [offset, offset + n) of a file as they are; more_seq: a block begins
** there, and its number grows. */
void ljp_out_copy(struct ljp_stream_out *out, int fd, uint64_t offset,
                  uint64_t n, uint64_t more_seq);

/* A block: its number is next_seq, lengths and checksum are found. Empty ones
** are not written. */
void ljp_out_block(struct ljp_stream_out *out,
                   const struct ljp_block_head *head);
void ljp_out_block_end(struct ljp_stream_out *out);

/* A flat record from its struct. */
void ljp_out_record(struct ljp_stream_out *out, unsigned tag,
                    const void *record);

/* A node, sample or memory event. */
void ljp_out_event(struct ljp_stream_out *out, const struct ljp_item *event);

/* Room left in a block that was just begun. */
static inline bool ljp_out_is_full(const struct ljp_stream_out *out)
{
  return out->len >= LJP_OUT_FULL_BYTES;
}

#endif
