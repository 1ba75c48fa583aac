/*
** Sink: where whole blocks go: a file (with segments), a descriptor of the
** host program's, or a callback of its. Writer thread only; the first block of a
** file may be written by who starts the session.
** Invariants: an existing file is replaced only by one that already begins with
** a whole block; after a failed write a file of ours ends with its last whole
** block; we never write into a file that is not the one we opened.
** No signal is ever raised in the host: who writes blocks them all.
*/
#ifndef LJP_SINK_H
#define LJP_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/status.h"

/* Takes up to len bytes from *data and returns how many it took; 0 is an
** error; *data set to NULL ends the stream. Called on the writer thread. */
typedef size_t (*ljp_sink_callback)(const void **data, size_t len, void *ctx);

enum ljp_sink_kind { LJP_SINK_FILE, LJP_SINK_FD, LJP_SINK_CALLBACK };

/* A descriptor, and what we have opened by it: the host may close it and open
** something else. fd -1: none. */
struct ljp_open_file {
  int fd;
  dev_t dev;
  ino_t ino;
};

struct ljp_sink {
  enum ljp_sink_kind kind;
  ljp_sink_callback callback;
  void *ctx;
  char *path;      /* Of segment 0, symbolic links resolved. */
  char *temporary; /* Until the first block is in it; then NULL. */
  uint32_t segment;
  struct ljp_open_file file;
  bool regular; /* We opened a regular file: cutting and renaming are ours. */
  bool sync;
  bool ended; /* The callback wants no more. */
  /* The file that ours has replaced, until ljp_sink_let_go(): freeing its
  ** blocks can take the disk some milliseconds. */
  bool keep_old;
  struct ljp_open_file old;
  uint64_t whole_bytes;         /* Of this segment: all whole blocks. */
  _Atomic uint64_t deadline_ns; /* No waiting for a pipe beyond it; 0: none. */
  int error;                    /* errno of what went wrong. */
};

enum ljp_status ljp_sink_init_file(struct ljp_sink *sink, const char *path,
                                   bool sync);
void ljp_sink_init_fd(struct ljp_sink *sink, int fd);
void ljp_sink_init_callback(struct ljp_sink *sink, ljp_sink_callback callback,
                            void *ctx);
void ljp_sink_fini(struct ljp_sink *sink);

/* A plain file on a disk of this machine: its first block is not going to hold
** anybody for long. */
bool ljp_sink_answers(const struct ljp_sink *sink);

/* Before the first block: what it replaces is not freed at once. */
void ljp_sink_keep_old(struct ljp_sink *sink);
void ljp_sink_let_go(struct ljp_sink *sink);

/* Opens segment 0, 1, 2 ... A file stands aside until its first block. */
enum ljp_status ljp_sink_open(struct ljp_sink *sink, uint32_t segment);

/* One whole block or nothing. */
enum ljp_status ljp_sink_write(struct ljp_sink *sink, const uint8_t *block,
                               size_t len);
enum ljp_status ljp_sink_close(struct ljp_sink *sink);

/* Removes a segment of this sink's file (rotation with a limit). */
void ljp_sink_remove(struct ljp_sink *sink, uint32_t segment);

/* In the child of a fork: closes what is ours, touches nothing on disk. */
void ljp_sink_abandon(struct ljp_sink *sink);

#endif
