/*
** Store: looks at a folder of file segments (src/base/store_name.h), and says
** which of them are complete, which process wrote them and whether it still
** writes, and in which order they began. For `ljprof gather`, `exporter`, and
** whatever else follows such a folder. Nothing is changed, and no writer notices
** the look. One thread.
**
** What holds while writers, pruners and other readers work on the folder:
** - A segment that is not open is never written again: its bytes are all there.
** - A segment may go at any time (a pruner); then ljp_store_open_segment() says
**   ENOENT. A descriptor that is open stays readable.
** - A new segment has its name when its first block is in it.
** - `open` goes from true to false, never back.
**
** Files of other names belong to the store, too, if they are streams: those of
** `ljprof record -o`, for example. Files that are no streams are in the list with
** `error` set, so that nothing is passed over in silence. Hidden files (a name
** with '.') are not, nor are the temporary files of newfile.h, folders and other
** things that are no regular files.
*/
#ifndef LJP_TOOLS_STORE_H
#define LJP_TOOLS_STORE_H

#include "parsers/stream/reader.h"
#include "src/base/store_name.h"

struct ljp_segment {
  char *name;                 /* In the store's folder. */
  struct ljp_store_name made; /* What the name says. sequence 0: the name is an
                              ** other one; then service is the base name of the
                              ** executable. */
  bool merged;                /* `ljprof gather` has made it of others. */
  uint64_t dev, ino, bytes;   /* At the time of the look. */
  uint64_t room;              /* On disk: bytes in whole pages. */
  bool open;                  /* A process writes it, or that is not known. */
  bool alive;  /* A segment of the same session is open: its process lives. */
  bool denied; /* It cannot be opened: `error` says why. Tried at each look. */
  char *error; /* Why it cannot be read, a sentence; else NULL. Then all that
               ** follows is 0. It is tried again when the file has changed. */

  /* From the first whole block and the record PROCESS behind it. */
  uint64_t stream; /* The session: the same in all of its segments. */
  uint64_t
      first_seq;   /* The first block's number: orders a session's segments. */
  uint32_t number; /* 0, 1 ... of the session's segments. */
  uint64_t pid, parent_pid, anchor_mono_ns;
  uint64_t start_mono_ns; /* CLOCK_MONOTONIC of its first block. */
  uint64_t start_wall_ns; /* The same since 1970, by the clock at that time. */
  char *executable, *script; /* NULL: not known. */
};

struct ljp_store {
  const char *path; /* Borrowed. */
  int dir;
  struct ljp_segment *segments;
  size_t count;
};

/* Opens the folder; no look yet. Returns 0 or an errno. */
int ljp_store_open(struct ljp_store *store, const char *path);

/*
** Looks at the folder again and makes store->segments anew. Order: by service;
** within it the oldest first: by sequence, so that the order holds whatever the
** clock did. Segments of other names come before, by the start of their session,
** then by number. Segments of one session are always in their order.
**
** What is known of a file is not read again, so a look at a folder that has not
** changed costs a few system calls a file. Returns 0 or an errno; then the list
** may be incomplete.
*/
int ljp_store_look(struct ljp_store *store);

/* Opens the very file that the look has found, for reading. -1: errno; ENOENT
** also if the name belongs to another file now. */
int ljp_store_open_segment(const struct ljp_store *store,
                           const struct ljp_segment *segment);

/* Reads the segment from its beginning. On failure reader->error is a sentence;
** *gone, which may be NULL, says that the file is not there any more. */
enum ljp_status ljp_store_read(const struct ljp_store *store,
                               const struct ljp_segment *segment,
                               struct ljp_reader *reader, bool *gone);

void ljp_store_close(struct ljp_store *store);

#endif
