/*
** Merge: shared by the parts of `ljprof merge`. merge_inputs.c identifies the
** files and sorts them into sessions; merge_append.c joins the file segments of
** one session; merge_sessions.c writes several sessions as one. One thread.
*/
#ifndef LJP_TOOLS_MERGE_H
#define LJP_TOOLS_MERGE_H

#include "parsers/stream/reader.h"
#include "tools/rewrite/objects_out.h"
#include "tools/rewrite/renumber.h"
#include "tools/rewrite/stream_out.h"

struct ljp_merge_input {
  const char *path;
  int fd;
  uint64_t stream, first_seq, segment;
  uint64_t clock; /* Wall-clock time minus monotonic time. */
  bool has_process;
  char *executable, *script; /* NULL: not known. */
  unsigned session;          /* Inputs of one session have the same number. */
};

/* What a rewritten input had that the output does not have. */
struct ljp_merge_left_out {
  uint64_t gaps, gap_bytes, bad, unknown;
  uint64_t extras; /* Objects with fields of newer versions. */
};

struct ljp_merge {
  struct ljp_merge_input *inputs; /* Sorted: by session, then by block. */
  unsigned count, sessions;
  struct ljp_reader *reader;
  struct ljp_stream_out out;
  uint64_t last_seq;   /* Number of the newest block, as written. */
  uint32_t last_epoch; /* Epoch of that block, as read. */
  /* Added to the block numbers of the session: grows where symbols were
  ** embedded into one of its files. */
  uint64_t more_seq;

  /* The rest is for several sessions only. */
  struct ljp_renumber map;
  struct ljp_objects_out *objects;
  uint64_t stream; /* Stream id of the output. */
  /* By tag: of the sessions already written, and of this session before its
  ** first input. */
  uint64_t totals[LJP_TALLY_TAGS], before[LJP_TALLY_TAGS];
  uint64_t losses[64], session_losses[64]; /* Of producer 0, by reason. */
  uint32_t epoch_base, epoch_most;
  bool begun; /* The session has written a block. */
  bool all_closed;
  struct ljp_merge_left_out left_out;
  uint64_t time; /* The newest time in the output. */
};

/* Each function below that returns an int returns -1 to go on, or the exit
** code after it has reported the error. */

/* merge_inputs.c */
int ljp_merge_identify(struct ljp_reader *reader, struct ljp_merge_input *in);
int ljp_merge_sort(struct ljp_merge *m, bool unrelated);
/* Reports what is missing between two inputs of a session, and updates
** more_seq. head: the first block of the second input. */
void ljp_merge_check_order(struct ljp_merge *m,
                           const struct ljp_merge_input *before,
                           const struct ljp_merge_input *in,
                           const struct ljp_block_head *head);

/* Write all inputs: of one session (merge_append.c), of several sessions
** (merge_sessions.c). Errors of writing are in m->out. */
int ljp_merge_append(struct ljp_merge *m);
int ljp_merge_sessions(struct ljp_merge *m);

#endif
