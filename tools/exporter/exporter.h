/*
** Exporter: shared by the parts of `ljprof exporter`, which writes figures of
** sessions for Prometheus. sums.c reads the figures of one file segment,
** sessions.c adds them up by session, state.c keeps the sums between two runs,
** text.c writes them in Prometheus' text format, command.c has the options. One
** thread.
**
** Counters must never go down, but files go when a store is pruned. So the sums
** of files that are complete are kept: each is read once. Those up to the file that is
** being written are kept beside them, in case this file has gone before it is read again.
*/
#ifndef LJP_TOOLS_EXPORTER_H
#define LJP_TOOLS_EXPORTER_H

#include "src/base/format.h"
#include "tools/shared/print.h"
#include "tools/shared/store.h"

/* Sums of a session: tag, name in the state file. */
#define LJP_EXPORTER_SUMS(_)                                                   \
  _(CPU_NS, "cpu_ns")             /* the process's CPU time */                 \
  _(SAMPLED_NS, "sampled_ns")     /* CPU time of samples */                    \
  _(GC_NS, "gc_ns")               /* of these: in the collector */             \
  _(HOOKS_NS, "hooks_ns")         /* of these: in the profiler's hooks */      \
  _(THREADS_NS, "threads_ns")     /* the profiler's own threads */             \
  _(UNSAMPLED_NS, "unsampled_ns") /* of the program, without samples */        \
  _(DAMAGE, "damage")             /* damaged places in its files */

enum ljp_exporter_sum {
#define LJP_X(id, name) LJP_SUM_##id,
  LJP_EXPORTER_SUMS(LJP_X)
#undef LJP_X
      LJP_SUM_COUNT
};

/* What one or more segments of a session say. */
struct ljp_exporter_sums {
  uint64_t sum[LJP_SUM_COUNT];
  /* Of the whole session up to there: the stream counts them itself. */
  uint64_t samples, memory_events;
  uint64_t lost[LJP_LOSS_COUNT];
  /* At the end of what was read. */
  uint64_t heap_bytes, vms, interval_ns;
  uint64_t next_seq; /* Of the block that follows. */
};

struct ljp_exporter_session {
  uint64_t stream, pid, start_s, ended_s; /* ended_s 0: it is alive. */
  char service[LJP_STORE_SERVICE_BYTES];
  struct ljp_exporter_sums done; /* Of segments that are complete. */
  struct ljp_exporter_sums now;  /* With the one that is being written. */
  struct ljp_exporter_sums part; /* `now` when that one was read last ... */
  uint64_t part_from;            /* ... and its first block, plus 1; 0: none. */
  bool here;                     /* The store has a segment of it. */
  bool shown;
};

struct ljp_exporter {
  struct ljp_store store;
  struct ljp_exporter_session **sessions; /* Sorted by stream. */
  size_t count, room;
  uint64_t recent_s; /* Sessions that ended longer ago are not shown. */
  uint64_t unreadable;
};

/* sums.c: adds what the segment says. False: it is gone, or cannot be read. */
bool ljp_exporter_read(const struct ljp_store *store,
                       const struct ljp_segment *segment,
                       struct ljp_exporter_sums *sums);

/* sessions.c: looks at the store, and adds up. Returns an errno. */
int ljp_exporter_look(struct ljp_exporter *e);
/* A session of this stream, new if there is none. NULL: no memory, or there are
** too many. */
enum { LJP_EXPORTER_SESSIONS = 65536 };
struct ljp_exporter_session *ljp_exporter_session(struct ljp_exporter *e,
                                                  uint64_t stream);

void ljp_exporter_forget(struct ljp_exporter *e); /* All sessions. */

/* state.c: the text of a state file, which is not trusted. False: it is none; then
** there are no sessions. */
bool ljp_exporter_parse_state(struct ljp_exporter *e, char *text);
void ljp_exporter_put_state(const struct ljp_exporter *e,
                            struct ljp_print *out);

/* text.c */
void ljp_exporter_put_text(const struct ljp_exporter *e, struct ljp_print *out);

#endif
