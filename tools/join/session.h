/*
** Session: a recording of a joined program, from its start to its end.
*/
#ifndef LJP_TOOLS_JOIN_SESSION_H
#define LJP_TOOLS_JOIN_SESSION_H

#include "tools/join/segments.h"
#include "tools/join/snapshots.h"
#include "tools/join/talk.h"

struct ljp_join_session {
  const char *command, *path; /* for messages; absolute */
  int fd; /* of a file without a name, which stays the caller's; -1: the file
          ** is made at the path */
  bool force;
  bool also; /* another process is recorded, too, which the user has named */
  void (*started)(void *ctx); /* the file has its name; may be NULL */
  void *started_ctx;
  bool rotates;  /* the program may ask for file segments */
  uint32_t keep; /* file segments; 0: all */
  /* Heap snapshots; the session's time, if the last ones are to be taken before
  ** its end: else it is in the request. 0: none. */
  uint64_t snapshot_every_ms, snapshot_end_ms;
  bool snapshot_last;
  uint64_t duration_ms; /* which is in the request; 0: none. A program that does
                        ** not end the session then is not waited for for ever */
  const char *request;  /* options as in LJPROF_RECORD */
  const int *jitdump;   /* a dump and a map for perf, which stay the caller's;
                       ** NULL: none */
};

/* How it ended. */
enum ljp_join_end {
  LJP_JOIN_BY_USER,    /* Ctrl-C */
  LJP_JOIN_BY_ERROR,   /* which has been reported */
  LJP_JOIN_BY_OTHERS,  /* its time was over, or another ljprof has ended it, or
                       ** the program is exiting */
  LJP_JOIN_BY_PROGRAM, /* the program has ended, or is another one now */
  LJP_JOIN_LEFT_EARLY  /* a second Ctrl-C, or no answer */
};

/* Begins a session that writes to fd. path: for messages. jitdump: as above. -1: it has begun; else
** the exit code after reporting why not. */
int ljp_join_session_begin(struct ljp_talk *talk, int fd, const char *path,
                           const char *request, const int *jitdump);

/* Records until the session ends. Signals that would end this process end the
** session instead. -1: there is a file, *end says how it ended; else the exit
** code after reporting why not. */
int ljp_join_session_run(struct ljp_talk *talk,
                         const struct ljp_join_session *session,
                         enum ljp_join_end *end);

#endif
