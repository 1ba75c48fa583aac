/*
** Frames: the records of a heap snapshot on their way from a copy of the
** process into a session's stream (RFC 7, section 6). The copy writes them into
** a file without a name; the session's writer reads them from there and appends
** them to its own blocks, a bounded number of bytes at a time.
**
** A frame is a struct ljp_heap_frame and the record's body without its time.
** The file never leaves this process, and both sides are of the same build.
*/
#ifndef LJP_HEAP_FRAMES_H
#define LJP_HEAP_FRAMES_H

#include "src/base/format.h"
#include "src/base/status.h"
#include "src/writer/writer.h"

struct ljp_heap_frame {
  uint32_t tag, len;
  uint64_t time_ns;
};

enum { LJP_HEAP_FRAMES_BYTES = 128 << 10 };

/* The side of the copy: neither allocates memory nor takes a lock. */
struct ljp_heap_frames {
  int fd;
  int error;      /* errno of the first failure. */
  uint64_t bytes; /* Written so far. */
  size_t used;
  uint8_t buffer[LJP_HEAP_FRAMES_BYTES];
};

/* False: there was an error, now or before. */
bool ljp_heap_frames_put(struct ljp_heap_frames *frames, enum ljp_record tag,
                         uint64_t time_ns, const uint8_t *body, size_t len);
enum ljp_status ljp_heap_frames_end(struct ljp_heap_frames *frames);

/* The side of the writer thread. */
struct ljp_heap_append {
  int fd;
  uint64_t at, end;
  uint8_t *buffer; /* Of LJP_HEAP_FRAMES_BYTES. */
};

/* Appends frames of up to this many bytes, at least one; at == end: all is
** done. Returns why they cannot be read, with the errno in *error, or LJP_OK;
** errors of the stream are the writer's. */
enum ljp_status ljp_writer_append_heap(struct ljp_writer *w,
                                       struct ljp_heap_append *from,
                                       uint64_t bytes, int *error);

#endif
