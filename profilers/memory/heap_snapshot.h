/*
** Heap snapshots of a VM (RFC 7): one at a time in a process, into a file of
** their own or into that of the running memory session. On the VM's own thread,
** in ordinary code. The options are those of misc.memprof.snapshot().
*/
#ifndef LJP_HEAP_SNAPSHOT_H
#define LJP_HEAP_SNAPSHOT_H

#include "profilers/session/failure.h"
#include "src/session/snapshot.h"

struct lua_State;

enum { LJP_HEAP_SNAPSHOT_TEXT = 64 /* bytes of each string, by default */ };

struct ljp_heap_snapshot_options {
  const char *path; /* NULL: into the running session's stream */
  uint32_t text_limit;
  int zstd_level; /* of a file of its own; 0: no compression */
  bool in_place;  /* make no copy of the process */
  bool wait;      /* until the file is complete, or the snapshot is in the
                  ** session's stream (for a minute at most) */
};

void ljp_heap_snapshot_options_init(struct ljp_heap_snapshot_options *options);

/* Without `wait` the program goes on while a copy of the process writes the
** file, and *result tells only how it was begun. */
enum ljp_status
ljp_heap_snapshot(struct lua_State *L,
                  const struct ljp_heap_snapshot_options *options,
                  struct ljp_snapshot_result *result, struct ljp_failure *why);

enum ljp_heap_for {
  LJP_HEAP_FOR_FILE,
  LJP_HEAP_FOR_SESSION,
  LJP_HEAP_FOR_CLIENT /* exit() and the session's end do not wait for it */
};
/* One at a time: false if this process is taking one. The caller's thread finishes
** it. For heap_joined.c. */
bool ljp_heap_snapshot_claim(enum ljp_heap_for whom);
void ljp_heap_snapshot_unclaim(void);
/* A snapshot that is claimed, on its way into the session of a client. Its
** result is asked for, not waited for. */
struct ljp_snapshot_job;
struct ljp_heap_target;
struct ljp_snapshot_job *ljp_heap_job_new(void);
/* The copy is made: a thread of ours ends the claim when all is in the stream. If
** there can be none, this waits for the copy. */
void ljp_heap_job_follow(struct ljp_snapshot_job *job, struct ljp_snapshot *s,
                         const struct ljp_heap_target *target);
bool ljp_heap_job_is_over(const struct ljp_snapshot_job *job);
/* If it is over. On failure *error is an errno. */
enum ljp_status ljp_heap_job_result(const struct ljp_snapshot_job *job,
                                    struct ljp_snapshot_result *result,
                                    int *error);
/* The caller wants to know no more; it may be on its way still. */
void ljp_heap_job_leave(struct ljp_snapshot_job *job);
/* The name of a builtin, as in struct ljp_snapshot_options. */
bool ljp_heap_snapshot_builtin(void *ctx, uint64_t ffid,
                               char name[LJP_NAME_BYTES]);

/* Waits until no snapshot is on its way into a session's stream; ten seconds at
** most. Any thread, without a lock. */
void ljp_heap_snapshot_await(void);

#endif
