/*
** Sink: where whole blocks go: a file (with file segments), a descriptor of the
** host, or a callback of the host. Writer thread only, except that the thread
** that starts the session may write the first block of a file.
** Invariants: an existing file is only replaced by a file that already begins
** with a whole block, and not before the session is sure to record (stays_hidden).
** After a failed write, a file of ours ends with its last whole block. We never
** write into a file that we have not opened.
** A write raises no signal in the host: the thread that writes blocks all
** signals.
*/
#ifndef LJP_SINK_H
#define LJP_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/newfile.h"
#include "src/base/status.h"

/* Takes up to len bytes from *data and returns the number taken; 0 is an error.
** Sets *data to NULL to end the stream. Called on the writer thread. */
typedef size_t (*ljp_sink_callback)(const void **data, size_t len, void *ctx);

/* Who opens the next file segments of a descriptor. Called on the writer
** thread. */
struct ljp_sink_next {
  /* The descriptor of this segment, which stays the callee's; -1: there is none
  ** yet, and one is wanted. */
  int (*open)(void *ctx, uint32_t segment);
  /* The segment has begun: the one before is not used any more. */
  void (*begun)(void *ctx, uint32_t segment);
  void *ctx;
};

enum ljp_sink_kind { LJP_SINK_FILE, LJP_SINK_FD, LJP_SINK_CALLBACK };

/* A file that is being written. fd -1: there is none. */
struct ljp_sink_file {
  struct ljp_open_file open;
  struct ljp_newfile new; /* While the file is hidden. */
  bool regular;           /* We opened a regular file: may cut and rename it. */
  uint32_t segment;
  uint64_t whole_bytes; /* All whole blocks. */
};

struct ljp_sink {
  enum ljp_sink_kind kind;
  ljp_sink_callback callback;
  void *ctx;
  char *path;          /* Of file segment 0, symbolic links resolved. In a store
              ** (base/store_name.h): its folder, and the service as the name. */
  const char *service; /* In path; NULL: this is no store. */
  uint64_t sequence;   /* Of the newest file of ours in the store. */
  struct ljp_sink_file file;
  /* While the next file segment is prepared: the one before. */
  struct ljp_sink_file before;
  struct ljp_sink_next next; /* Of a descriptor; open NULL: no rotation. */
  bool stays_hidden;         /* The file stays hidden until ljp_sink_show(). */
  bool sync;
  bool ended; /* The callback has ended the stream. */
  /* The file that ours has replaced is kept open until
  ** ljp_sink_release_old(), because freeing its blocks can take some
  ** milliseconds. */
  bool keep_old;
  struct ljp_open_file old;
  _Atomic uint64_t deadline_ns; /* Wait for a pipe until then; 0: no limit. */
  int error;                    /* errno of the last failure. */
};

enum ljp_status ljp_sink_init_file(struct ljp_sink *sink, const char *path,
                                   bool sync);
/* Files in a store, whose folder is there. Each is locked as long as it is
** written (base/store_lock.h), and none is replaced. */
enum ljp_status ljp_sink_init_store(struct ljp_sink *sink, const char *folder,
                                    const char *service, bool sync);
/* next may be NULL. */
void ljp_sink_init_fd(struct ljp_sink *sink, int fd,
                      const struct ljp_sink_next *next);
void ljp_sink_init_callback(struct ljp_sink *sink, ljp_sink_callback callback,
                            void *ctx);
void ljp_sink_fini(struct ljp_sink *sink);

/* True for a plain file on a local disk: writing the first block takes no long
** time. */
bool ljp_sink_is_local_file(const struct ljp_sink *sink);

/* Call before the first block to keep the replaced file open; and when there is
** time to free it. */
void ljp_sink_keep_old(struct ljp_sink *sink);
void ljp_sink_release_old(struct ljp_sink *sink);

/* Opens file segment 0. A file is hidden until its first block is written, or
** with `stays_hidden` until ljp_sink_show(). */
enum ljp_status ljp_sink_open(struct ljp_sink *sink);

/* Has no block been written yet, or is the file held? */
bool ljp_sink_hidden(const struct ljp_sink *sink);

/* Gives the file its name, and ends `stays_hidden`. The first block is written. Does
** nothing if the sink is no regular file. */
enum ljp_status ljp_sink_show(struct ljp_sink *sink);

/* Writes one whole block or nothing. */
enum ljp_status ljp_sink_write(struct ljp_sink *sink, const uint8_t *block,
                               size_t len);
enum ljp_status ljp_sink_close(struct ljp_sink *sink);

/* Rotation. `turn` opens the next file segment, hidden, and keeps the present
** one open: blocks go to the new one, and after `swap` to the other of the two.
** Once ljp_sink_show() has shown the new one, `turn_end` closes the one before.
** Until then `turn_back` drops the new one, as if nothing had happened. `ready`
** asks for the next file segment if it is not made here. */
bool ljp_sink_ready(const struct ljp_sink *sink);
enum ljp_status ljp_sink_turn(struct ljp_sink *sink);
void ljp_sink_swap(struct ljp_sink *sink);
enum ljp_status ljp_sink_turn_end(struct ljp_sink *sink);
void ljp_sink_turn_back(struct ljp_sink *sink);

/* Removes a file segment (rotation with a limit). */
void ljp_sink_remove(struct ljp_sink *sink, uint32_t segment);

/* In the child of a fork: closes our descriptors, changes nothing on disk. */
void ljp_sink_abandon(struct ljp_sink *sink);

#endif
