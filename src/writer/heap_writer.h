/*
** Writes a heap snapshot into a stream: takes what the walk over the heap tells
** (src/base/heap_out.h) and makes records of it (RFC 7).
**
** In a copy of the process too: after ljp_heap_writer_new() and
** ljp_writer_start() nothing here allocates memory or takes a lock.
*/
#ifndef LJP_HEAP_WRITER_H
#define LJP_HEAP_WRITER_H

#include "src/base/heap_out.h"
#include "src/base/status.h"
#include "src/writer/writer.h"

struct ljp_heap_frames;
struct ljp_heap_writer;

/* What the snapshot holds so far. */
struct ljp_heap_sums {
  uint64_t objects, refs, bytes;
};

struct ljp_heap_about {
  uint64_t snapshot; /* Its number in the stream: 1, 2 ... */
  uint64_t vm;
  enum ljp_heap_taken taken;
  uint32_t text_limit;
};

/* w: outlives it. */
enum ljp_status ljp_heap_writer_new(struct ljp_heap_writer **out,
                                    struct ljp_writer *w);
/* The same, but the records wait in a file until a session's writer appends
** them to its stream (heap_frames.h). */
enum ljp_status ljp_heap_writer_of_frames(struct ljp_heap_writer **out,
                                          struct ljp_heap_frames *frames);
void ljp_heap_writer_free(struct ljp_heap_writer *h);

/* Writes HEAP. Returns what takes the walk's calls. */
struct ljp_heap_out *ljp_heap_writer_begin(struct ljp_heap_writer *h,
                                           const struct ljp_heap_about *about,
                                           const struct ljp_heap_head *head,
                                           uint64_t now_ns);

/* Writes the rest, and HEAP_END. Then *sums is complete. */
enum ljp_status ljp_heap_writer_end(struct ljp_heap_writer *h, uint64_t now_ns,
                                    struct ljp_heap_sums *sums);

#endif
