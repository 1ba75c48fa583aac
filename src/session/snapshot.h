/*
** A heap snapshot on its way into a file of its own, or into a file without a
** name from which a session's writer appends it to its stream (RFC 7).
**
** The program goes on while a copy of the process walks the heap and writes the
** file: clone() without an exit signal, so the program gets no SIGCHLD, its
** waits do not see the copy, and no handler of fork() runs. If there can be no
** copy, the walk happens in place.
**
** The copy may not allocate, take a lock, or call the program's code: threads
** that it does not have may have been anywhere. All that it needs is made
** before. The file gets its name when it is complete. A file of a client's
** (a descriptor) is its own business.
**
** ljp_snapshot_begin() is for ordinary code on the VM's thread, or on another
** one while the VM stands still; the rest for any thread. No signal handler may
** call this.
*/
#ifndef LJP_SNAPSHOT_H
#define LJP_SNAPSHOT_H

#include <stdbool.h>

#include "src/base/describe.h"
#include "src/base/heap_out.h"
#include "src/base/status.h"

struct ljp_snapshot;

struct ljp_snapshot_options {
  const char *path; /* NULL: for a session, or a client. */
  bool use_fd;      /* A client's file; the caller keeps the descriptor. */
  int fd;
  int scratch;     /* For a session: the file without a name. The snapshot owns
                    ** it until it has ended well. */
  uint64_t number; /* In the stream. */
  uint32_t text_limit; /* Bytes of each string's contents. */
  int zstd_level;      /* Of a file of its own; 0: no compression. */
  bool in_place;       /* Make no copy. */
  bool only_copy;      /* Without a copy there is no snapshot. */
  uint64_t vm;         /* Its number in the stream. */
  /* The name of a builtin; false: there is none with this number. */
  bool (*builtin)(void *ctx, uint64_t ffid, char name[LJP_NAME_BYTES]);
  void (*head)(void *ctx, struct ljp_heap_head *head);
  /* Calls out for each object; false: out has refused a call. */
  bool (*walk)(void *ctx, struct ljp_heap_out *out);
  /* Called immediately before the copy is made; may be NULL. False: the copy is
  ** made at any moment. It may set the VM's number, which may not be known
  ** before. */
  bool (*moment)(void *ctx, uint64_t *vm);
  void *ctx;
};

struct ljp_snapshot_result {
  enum ljp_heap_taken taken;
  int refused;       /* The errno for which there is no copy; 0: none. */
  uint64_t pause_ns; /* Of the program: how long the begin took. */
  /* From here on only after the end. */
  uint64_t walk_ns;
  uint64_t objects, refs, bytes, file_bytes;
  uint64_t heap_bytes; /* As the VM counts them. */
  uint64_t unreadable; /* What was left out, if taken at any moment. */
  int signal;          /* That killed the copy; 0: none. */
};

/* On failure *error is an errno, and there is no snapshot. */
enum ljp_status ljp_snapshot_begin(struct ljp_snapshot **out,
                                   const struct ljp_snapshot_options *options,
                                   struct ljp_snapshot_result *result,
                                   int *error);

/* The copy's pidfd, to be waited for; -1: there is none. Ends the copy. */
int ljp_snapshot_pidfd(const struct ljp_snapshot *s);
void ljp_snapshot_kill(struct ljp_snapshot *s);

/* Waits until the file is complete and has its name, and frees the snapshot.
** On failure there is no file (an older one stays; `scratch` is closed), and
** *error is an errno. */
enum ljp_status ljp_snapshot_end(struct ljp_snapshot *s,
                                 struct ljp_snapshot_result *result,
                                 int *error);

#endif
