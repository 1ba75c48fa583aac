/*
** The balance of CPU time: the time that the process used is the time that
** samples stand for plus the time that no sample stands for (RFC 1, UNSAMPLED).
** The latter is kept by thread and reason, within LJP_BALANCE_MAX_GAPS. Each
** balance is used by one thread.
*/
#ifndef LJP_PARSERS_BALANCE_H
#define LJP_PARSERS_BALANCE_H

#include "parsers/base/index.h"
#include "parsers/stream/reader.h"

#define LJP_BALANCE_MAX_GAPS 4096u
#define LJP_BALANCE_NAME_BYTES 32

/* Time of one thread that was not sampled, for one reason. */
struct ljp_balance_gap {
  uint32_t source;      /* As the caller numbers the sessions. */
  uint64_t thread, tid; /* 0: threads that are not known. */
  uint8_t kind;         /* LJP_PRODUCER_CPU or _WALL. */
  uint8_t why;          /* enum ljp_unsampled; 0: not known to us. */
  uint32_t name_bytes;
  char name[LJP_BALANCE_NAME_BYTES]; /* Of the thread; cut if too long. */
  uint64_t ns;
};

struct ljp_balance {
  bool told;        /* The stream says what the process used. */
  bool placed;      /* The first epoch of the session was read ... */
  bool at_edge;     /* ... of a later file; and no CPU_TIME since. */
  uint32_t source;  /* The session. */
  uint64_t edge_ns; /* Time whose samples or CPU_TIME may be in another file. */
  uint64_t used_ns; /* CPU time of the process. */
  uint64_t wall_ns; /* Elapsed time: weights of the samples. */
  uint64_t sampled_ns; /* CPU time: weights of the samples. */
  uint64_t unsampled_ns[LJP_UNSAMPLED_COUNT]; /* CPU time, by reason. */
  struct ljp_balance_gap *gaps;
  uint32_t gap_count, gap_room;
  struct ljp_index index; /* Of gaps. */
  int cpu; /* Whether the block's samples are of CPU time; -1: look. */
};

void ljp_balance_init(struct ljp_balance *balance);
void ljp_balance_fini(struct ljp_balance *balance);

/* Adds an item, if it belongs into the balance. Samples that the caller takes
** by ljp_reader_samples() are the caller's to add. LJP_ERR_MEM. */
enum ljp_status ljp_balance_take(struct ljp_balance *balance,
                                 const struct ljp_model *model,
                                 const struct ljp_item *item, uint32_t source);

/* At the end of a stream. Streams before 1.3 say only in an INFO how much was
** not sampled. */
enum ljp_status ljp_balance_finish(struct ljp_balance *balance,
                                   const struct ljp_model *model,
                                   uint32_t source);

/* CPU time that the program used: without that of the profiler's own threads. */
uint64_t ljp_balance_used(const struct ljp_balance *balance);

/* CPU time without samples that is missing from a view: of all reasons but
** LOST, and but WRITER, which is not the program's. */
uint64_t ljp_balance_missing(const struct ljp_balance *balance);

/* What the process used minus what samples and gaps tell of; and whether that
** is too much: more than 2 % and 20 ms, without edge_ns. (At the ends of a file, a
** sample and the CPU_TIME that tells of it may be in different files.) */
int64_t ljp_balance_difference(const struct ljp_balance *balance);
bool ljp_balance_off(const struct ljp_balance *balance);

/* Time for people: "1.234 s", "12.34 ms". */
#define LJP_BALANCE_TIME_BYTES 32
const char *ljp_balance_time(uint64_t ns, char text[LJP_BALANCE_TIME_BYTES]);

/* Whether a reason's time is large enough for a sentence above every view. The
** profiler's own time is none of the program's. */
bool ljp_balance_matters(const struct ljp_balance *balance, unsigned kind,
                         unsigned why);

/* The sentence on a reason, with the threads that it concerns. NULL: there was
** no such time. */
#define LJP_BALANCE_TEXT_BYTES 640
const char *ljp_balance_text(const struct ljp_balance *balance, unsigned kind,
                             unsigned why, char text[LJP_BALANCE_TEXT_BYTES]);

/* The sentence for a balance that is off. */
const char *ljp_balance_off_text(const struct ljp_balance *balance,
                                 char text[LJP_BALANCE_TEXT_BYTES]);

#endif
