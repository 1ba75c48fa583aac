/*
** Source: the stream that is watched. A file is followed while it grows, and on
** into the next file segments. Reading never blocks for long: while there is
** nothing to read, `idle` is called again and again. One thread, the worker's.
*/
#ifndef LJP_TOOLS_TOP_SOURCE_H
#define LJP_TOOLS_TOP_SOURCE_H

#include "parsers/stream/reader.h"

struct ljp_top_source {
  struct ljp_reader reader;
  uint64_t read_bytes, file_bytes; /* file_bytes 0: not known. */
  bool follows;                    /* The end of what is there was reached. */
  bool ended;                      /* Nothing more will come. */
  /* Waits, for 250 ms or so. May leave the process. */
  void (*idle)(void *ctx);
  bool (*writes)(void *ctx); /* Whether the file may grow; NULL: not known. */
  void *ctx;
  const char *path;
  uint64_t next_segment;  /* As SEGMENT_END has said; 0: none. */
  uint64_t segment_bytes; /* What was read of the present file. */
  bool last_look; /* The writer is gone; what it wrote last is being read. */
};

/* Opens a file ("-": standard input); idle and ctx must be set. On failure
** error says why. */
enum ljp_status ljp_top_source_open(struct ljp_top_source *source,
                                    const char *path,
                                    char error[LJP_READER_ERROR_BYTES]);
/* Sees the items of the stream. */
void ljp_top_source_see(struct ljp_top_source *source,
                        const struct ljp_item *item);
void ljp_top_source_close(struct ljp_top_source *source);

#endif
