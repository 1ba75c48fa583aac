/*
** Keep: which bytes of the recording of a running program are still there. They
** are freed from the front, up to the beginning of an epoch, so that what stays
** can be read: a page is made of it. So hours of watching take no more room than
** minutes. One thread, the worker's.
*/
#ifndef LJP_TOOLS_TOP_KEEP_H
#define LJP_TOOLS_TOP_KEEP_H

#include <stdbool.h>
#include <stdint.h>

enum { LJP_KEEP_EPOCHS = 1024 };

struct ljp_keep_epoch {
  uint64_t offset, time_ns; /* of its first block; CLOCK_MONOTONIC */
};

struct ljp_keep {
  int fd; /* open for writing */
  uint64_t room_bytes;
  uint64_t freed;                                /* bytes at the front */
  struct ljp_keep_epoch epochs[LJP_KEEP_EPOCHS]; /* oldest first */
  uint32_t count; /* 0: none is whole, since one takes nearly all room */
};

/* A quarter of the room is for what has been read: nothing of it is freed while
** the epochs after the first have fewer bytes. */
void ljp_keep_init(struct ljp_keep *keep, int fd, uint64_t room_bytes);

/* A block begins, and all before it has been read. key: an epoch, too. */
void ljp_keep_block(struct ljp_keep *keep, uint64_t offset, uint64_t time_ns,
                    bool key);

#endif
