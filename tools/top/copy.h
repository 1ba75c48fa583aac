/*
** Copy: the recording of a running program as a file that stays (key r). The
** blocks are copied as they were written, from the beginning of an epoch on, so
** the file is like a later segment of a rotated recording. One thread, the
** worker's.
*/
#ifndef LJP_TOOLS_TOP_COPY_H
#define LJP_TOOLS_TOP_COPY_H

#include "parsers/stream/item.h"
#include "tools/top/top.h"

struct ljp_top_copy {
  int in;                     /* What the view reads; -1: not a program. */
  int fd;                     /* The file; -1: there is none. */
  uint64_t next;              /* Behind the last block that was read. */
  struct ljp_block_head last; /* Its head. */
  uint64_t bytes;             /* That were copied. */
  char path[LJP_TOP_PATH_BYTES];
};

void ljp_copy_init(struct ljp_top_copy *copy, int in);

/* Begins a new file with what is there from this offset on, where an epoch
** begins. 0, or an errno. */
int ljp_copy_begin(struct ljp_top_copy *copy, const char *path, uint64_t from);
/* A block was read. 0, or the errno for which the copy has ended. */
int ljp_copy_block(struct ljp_top_copy *copy, const struct ljp_block *block);
/* Ends the file. closed: the stream itself has an end. 0, or an errno. */
int ljp_copy_end(struct ljp_top_copy *copy, bool closed);

#endif
