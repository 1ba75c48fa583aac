/*
** Writer: drains producers, interns stacks, writes blocks. All of it runs on
** the writer thread (session/thread.c), except that the thread that starts the
** session may call ljp_writer_start(). No locks; nothing here is signal-safe.
**
** Memory, at most: stack table 6 MiB (9 while it doubles), definitions 16 MiB
** and a few KiB for each library, 4 bytes for each reference to a prototype,
** block buffers 2 MiB (zstd: 3 more), 24 KiB for each producer, and the
** producers' rings.
*/
#ifndef LJP_WRITER_H
#define LJP_WRITER_H

#include "src/base/describe.h"
#include "src/base/format.h"
#include "src/writer/sink.h"

struct ljp_body;
struct ljp_writer;
struct ljp_producer;

struct ljp_writer_options {
  struct ljp_describe describe;
  bool ljm;               /* The output is a file of format ljm (ljm.h), not
                          ** a stream. Without compression and rotation. */
  int zstd_level;         /* 0: off. */
  bool zstd_ready;        /* To compress takes no memory (compress.h). */
  uint64_t segment_bytes; /* 0: no rotation by size. */
  uint64_t segment_ns;    /* 0: no rotation by time. */
  uint32_t keep_segments; /* 0: all. */
  bool align_segments;    /* By time: on multiples of segment_ns of UTC. */
  uint64_t ring_bytes;    /* Of a store (room.c); 0: no limit. */
  uint32_t max_nodes;     /* A power of two; 0: default. */
  uint64_t epoch_bytes;   /* Before compression; 0: default. */
  uint64_t epoch_ns;      /* 0: default. */
  uint64_t stream;        /* 0: random. */
  /* For tests: writes PROCESS's fields in place of those of this process. Then
  ** the writer asks the system for no other facts either, nor for modules. */
  void (*put_process)(struct ljp_body *body);
};

/* sink: not yet open; outlives the writer. */
enum ljp_status ljp_writer_new(struct ljp_writer **out, struct ljp_sink *sink,
                               const struct ljp_writer_options *options);
void ljp_writer_free(struct ljp_writer *w);

/* Opens the sink and writes the first block. */
enum ljp_status ljp_writer_start(struct ljp_writer *w, uint64_t now_ns);

/* A round is: begin; add definitions; drain; end things; finish. begin notes
** how far each producer has come. The entries up to there may refer to
** everything that is added between begin and drain. */
void ljp_writer_begin(struct ljp_writer *w, uint64_t now_ns);
void ljp_writer_add_info(struct ljp_writer *w, const char *key,
                         const char *value);
void ljp_writer_add_thread(struct ljp_writer *w, uint32_t id, uint32_t tid,
                           const char *name);
void ljp_writer_add_vm(struct ljp_writer *w, uint32_t id, uint32_t thread,
                       const char *name);
/* Defines all builtins that options.describe knows. */
void ljp_writer_name_builtins(struct ljp_writer *w);
void ljp_writer_add_producer(struct ljp_writer *w, struct ljp_producer *p,
                             uint64_t interval_ns);
void ljp_writer_drain(struct ljp_writer *w);
/* Writes a NOTE. */
__attribute__((format(printf, 3, 4))) void
ljp_writer_note(struct ljp_writer *w, enum ljp_note severity,
                const char *format, ...);
/* ns: of the thread (0: of threads that are not known). */
void ljp_writer_put_unsampled(struct ljp_writer *w, uint64_t time_ns,
                              uint32_t thread, enum ljp_producer_kind kind,
                              enum ljp_unsampled why, uint64_t ns);
/* ns: that the process has used since the last time it was told. */
void ljp_writer_put_cpu_time(struct ljp_writer *w, uint64_t time_ns,
                             uint64_t ns);
/* ns: the thread's elapsed time since the last report. */
void ljp_writer_put_elapsed(struct ljp_writer *w, uint64_t time_ns,
                            uint32_t thread, uint64_t ns);
void ljp_writer_end_vm(struct ljp_writer *w, uint32_t id);
void ljp_writer_end_thread(struct ljp_writer *w, uint32_t id);
/* Drains the producer for the last time and forgets it; the caller frees it. */
void ljp_writer_retire(struct ljp_writer *w, struct ljp_producer *p);
enum ljp_status ljp_writer_finish(struct ljp_writer *w);

/* Writes TOTALS and END and closes the sink. After an error, too: the sink may
** still accept them. status: why the stream ends. */
enum ljp_status ljp_writer_end(struct ljp_writer *w, enum ljp_status status,
                               int error, const char *reason);

/* Writes TOTALS and END; the sink stays open. Only if nothing has failed. */
enum ljp_status ljp_writer_put_end(struct ljp_writer *w);

/* Whole bytes in the current file segment. */
uint64_t ljp_writer_bytes(const struct ljp_writer *w);

#endif
