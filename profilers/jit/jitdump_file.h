/*
** A file of a jitdump: one of our own, or a client's, whose records wait in memory
** for the session's writer, since only that thread has the descriptor.
** For jitdump.c, under the same lock.
*/
#ifndef LJP_JITDUMP_FILE_H
#define LJP_JITDUMP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "profilers/session/failure.h"

struct ljp_jit_file {
  char path[4200];
  int fd;      /* -1: closed */
  bool joined; /* a client's, and not in the table of most threads */
  bool fresh;  /* created by this session */
  bool marked;
  /* Identify the file; inode 0: we have created none yet. */
  dev_t device;
  ino_t inode;
  off_t size;    /* of the whole records in it */
  off_t before;  /* the size when it was opened */
  char *waiting; /* for the writer */
  size_t waiting_bytes, waiting_room;
};

/* Creates the file at its path, or opens our own from an earlier session. */
enum ljp_status ljp_jit_file_open(struct ljp_jit_file *f,
                                  struct ljp_failure *why);
/* Takes a copy of a client's descriptor. */
enum ljp_status ljp_jit_file_take(struct ljp_jit_file *f, int fd,
                                  struct ljp_failure *why);
void ljp_jit_file_close(struct ljp_jit_file *f);

/* Both return 0 or an errno. Writes at once. */
int ljp_jit_file_write(struct ljp_jit_file *f, const void *data, size_t bytes);
/* Writes at once, or leaves it to the writer. */
int ljp_jit_file_append(struct ljp_jit_file *f, const void *data, size_t bytes);

/* Writes what waits. Returns 0 or an errno. */
int ljp_jit_file_flush(struct ljp_jit_file *f);
/* Drops what waits. */
void ljp_jit_file_forget(struct ljp_jit_file *f);

/* Removes a file that this session has created; another one gets back its size. A
** client's file is the client's business. */
void ljp_jit_file_undo(struct ljp_jit_file *f);

#endif
