/*
** The worker: reads the stream and answers queries. It is a process of its own:
** what it reads is not trusted, and a file that takes long to read must not keep
** the keyboard waiting. One thread.
*/
#ifndef LJP_TOOLS_TOP_WORKER_H
#define LJP_TOOLS_TOP_WORKER_H

#include "parsers/profile/recent.h"
#include "tools/top/copy.h"
#include "tools/top/joined.h"
#include "tools/top/series.h"
#include "tools/top/source.h"
#include "tools/top/top.h"

struct ljp_top_options {
  const char *path;
  struct ljp_top_joined *joined; /* The path is its file's; NULL: a file. */
  struct ljp_profile_options profile; /* Its labels are set. */
};

struct ljp_worker {
  const struct ljp_top_options *options;
  int fd; /* The screen's end is the other one. */
  struct ljp_top_source source;
  struct ljp_profile *p;
  struct ljp_recent recent;
  struct ljp_series series;
  struct ljp_top_copy copy;
  struct ljp_top_query query; /* The newest; serial 0: none came yet. */
  bool asked;                 /* It was not answered. */
  uint64_t answered_ns;       /* CLOCK_MONOTONIC of the last answer. */
  uint64_t answer_cost_ns;    /* How long that took. */
  uint64_t answered_bytes;    /* What had been read then. */
  bool done;                  /* The stream was read to its end. */
  const char *state;          /* Of a joined program, as last shown. */
  char error[LJP_READER_ERROR_BYTES + 64]; /* Why reading ended; "": it did
                                           ** not fail. */
  uint64_t span_ns;                        /* Of the view that is being made. */
};

/* Serves the screen until that goes away. Does not return. */
_Noreturn void ljp_top_worker(int fd, const struct ljp_top_options *options);

/* The newest time, since the profile's origin: of the stream, or, while the
** program records, of the clock. */
uint64_t ljp_worker_now(const struct ljp_worker *w);

/* The seconds that are shown; 0: everything. */
uint32_t ljp_worker_seconds(const struct ljp_worker *w,
                            const struct ljp_top_query *query);

/* answer.c: makes the view that the query asks for. */
void ljp_worker_answer(struct ljp_worker *w, struct ljp_top_answer *answer);

/* actions.c: SAVE, PAGE and RECORD. Writes one line that says what was done. */
void ljp_worker_act(struct ljp_worker *w, const struct ljp_top_query *query,
                    struct ljp_top_answer *answer);

/* actions.c: ends the file that RECORD began, if there is one; error: for which
** that has happened already, or 0. False: there was none. */
bool ljp_worker_end_record(struct ljp_worker *w, int error,
                           struct ljp_top_answer *answer);

#endif
