/*
** Store room: the files of one service in a store (store_name.h), and the space
** that they take. Whoever writes into the store keeps it within its budget: the
** oldest files go first, and a file that is being written stays
** (store_lock.h). Any number of processes may do so at once: they choose the same
** files in the same order, so together they remove no more than one alone would.
** Ordinary code of any thread.
*/
#ifndef LJP_STORE_ROOM_H
#define LJP_STORE_ROOM_H

#include "src/base/store_name.h"

struct ljp_store_file {
  uint64_t time_s, sequence, pid; /* As in struct ljp_store_name. */
  uint64_t room; /* Bytes on disk, in whole pages; 0: not asked for. */
};

struct ljp_store_room {
  int dir;
  char service[LJP_STORE_SERVICE_BYTES];
  struct ljp_store_file *files; /* The oldest first. */
  size_t count;
  uint64_t bytes;   /* On disk, of all of them. */
  uint64_t last;    /* The largest sequence; 0: there is no file. */
  uint32_t writers; /* Processes that write; at most the number of files. */
};

enum ljp_store_look { LJP_STORE_NAMES, LJP_STORE_SIZES };

/* NAMES: only `last` is wanted. Returns 0 or an errno; then there is nothing to
** free. */
int ljp_store_room_look(struct ljp_store_room *room, const char *folder,
                        const char *service, enum ljp_store_look what);

/* Told of each file that was removed (error 0), or could not be. */
typedef void ljp_store_removed(void *ctx, const char *name, uint64_t bytes,
                               int error);

/* Removes the oldest files that nobody writes until all of them take at most
** limit bytes. told may be NULL. Returns 0, or the errno for which the first of
** the files that stay could not be removed, or not be looked at. */
int ljp_store_room_prune(struct ljp_store_room *room, uint64_t limit,
                         ljp_store_removed *told, void *ctx);

void ljp_store_room_free(struct ljp_store_room *room);

#endif
