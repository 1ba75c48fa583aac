/*
** Session: one recording from start to stop, shared by all profilers that write
** into it. It owns the writer thread, the producers and the sink.
**
**   idle --start--> running --stop--> stopped
**     \               \--write error--> failed --stop--> failed
**      \--start fails--> failed
**
** Any number of sessions may run at once, on different sinks. Nothing here is
** signal-safe, but any thread may call all of it. What the host notices: one
** thread ("ljprof-writer", which blocks all signals and never keeps the process
** from ending), the sink's descriptor (close-on-exec), and a fork handler. A
** session writes nothing to stdout or stderr and sets no exit handler.
**
** How a profiler plugs in:
**   1. ljp_session_new, ljp_session_start. With `provisional` an older file is
**      still in place: it is replaced by ljp_session_commit, after all that can
**      be refused has been done (timers, producers).
**   2. ljp_session_add_thread for each thread, ljp_session_add_vm for each VM,
**      then ljp_session_add_producer for each context that records (one for
**      the signal handler, one for ordinary code).
**   3. Push (producer.h, event.h).
**   4. Stop the source of events; ljp_producer_retire for each producer (or
**      none: stop drains all). Then ljp_session_stop, ljp_session_free.
*/
#ifndef LJP_SESSION_H
#define LJP_SESSION_H

#include "src/base/describe.h"
#include "src/push/producer.h"
#include "src/writer/sink.h"

#define LJP_SESSION_STATE_LIST(_)                                              \
  _(IDLE, 0, "idle")                                                           \
  _(RUNNING, 1, "running")                                                     \
  _(STOPPED, 2, "stopped")                                                     \
  _(FAILED, 3, "failed")

enum ljp_session_state {
#define LJP_X(name, number, text) LJP_SESSION_##name = number,
  LJP_SESSION_STATE_LIST(LJP_X)
#undef LJP_X
};

struct ljp_session;

/* All zero: a session with all defaults and no sink. */
struct ljp_session_options {
  /* Exactly one of the three sinks. */
  const char *path; /* An older file is replaced by the first block. */
  /* The path is the folder of a store (base/store_name.h), in which the files of
  ** all processes have this name and never replace each other. NULL: it is not.
  ** ljp_store_service_valid(). */
  const char *service;
  bool provisional; /* ... no, by ljp_session_commit(). */
  bool use_fd;
  int fd; /* The host's: we neither close it nor change its flags. */
  ljp_sink_callback callback; /* Called on the writer thread. */
  void *callback_ctx;

  struct ljp_describe describe;
  /* Called at the start of each round, on the writer thread. It may add and end
  ** threads, VMs and producers. May be NULL. */
  void (*round)(void *ctx);
  void *round_ctx;
  uint32_t flush_ms; /* The file is at most this far behind; 0: 250. */
  bool ljm;       /* The file has Tarantool's format ljm (writer/ljm.h): memory
                  ** events only, without compression and rotation. */
  int zstd_level; /* 0: no compression. */
  bool sync;      /* fdatasync after each block: survives power loss. */
  /* Rotation, of files: PATH, PATH.s1, PATH.s2 ... */
  uint64_t segment_bytes, segment_ms;
  uint32_t keep_segments; /* 0: all. */
  /* In a store: the bytes on disk that the service's files of all processes may
  ** take together (writer/room.c); 0: no limit. */
  uint64_t ring_bytes;
  /* Rotation of `fd`: where its next segments come from; copied. NULL: there are
  ** none. They are removed elsewhere, too. */
  const struct ljp_sink_next *next;
  /* In the child of a fork: record into PATH.PID (files only; PATH.PID-2 ... if
  ** that exists; in a store, into files of its own), or not at all.
  ** The file appears after the first flush interval, so that a fork with an
  ** exec leaves none. Only the forking thread's producers continue. */
  bool record_child;
  /* Called in the child when its session is ready; may be NULL. A child
  ** inherits no timers: arm them again here. */
  void (*fork_child)(void *ctx, bool recording);
  void *fork_ctx;
  /* Called in a child that was to be recorded if it cannot make its file; may
  ** be NULL. path: of that file, or of the session. On the writer thread, or,
  ** if the child has none, in the handler of fork(). */
  void (*child_refused)(const char *path, int error);
  /* For sessions that last (path only): the writer thread has a table of
  ** descriptors of its own if the system permits it. The thread itself then does
  ** all of the start, and `round` and the look meet none of the program's
  ** descriptors. */
  bool apart;
};

/* Copies the options. LJP_ERR_USE: no sink, several sinks, rotation without a
** file, a store without a folder, a limit of files in a store, or an option that
** ljm excludes. LJP_ERR_NOTSUP: there is no
** libzstd.so.1. */
enum ljp_status ljp_session_new(struct ljp_session **out,
                                const struct ljp_session_options *options);

/* look is called on the writer thread between rounds, first_ns after the start
** at the soonest. It returns after how many ns it is to be called again; 0: the
** next round is due. Before the start. */
void ljp_session_on_look(struct ljp_session *s, uint64_t (*look)(void),
                         uint64_t first_ns);

/* Returns when the first block is in the sink, or with the reason why it is
** not. If the sink is stuck, returns after ten seconds. The calling thread
** itself writes the first block of a plain file. */
enum ljp_status ljp_session_start(struct ljp_session *s);

/* A provisional session is sure to record now: gives its file its name. Until
** then the writer drains no ring. Without this call ljp_session_stop() removes
** what was written. To be called once, by the thread that started the session.
** On failure only stop and free may follow. */
enum ljp_status ljp_session_commit(struct ljp_session *s);

/* Writes everything that was pushed, and ends the stream and the thread.
** Returns the error that the session met, if any, and sets *error to its errno
** or 0. If the sink is stuck, returns after ten seconds. */
enum ljp_status ljp_session_stop(struct ljp_session *s, int *error);

/* Stops the session if necessary, and frees it and all its producers. */
void ljp_session_free(struct ljp_session *s);

enum ljp_session_state ljp_session_state(struct ljp_session *s);
const char *ljp_session_state_text(enum ljp_session_state state);

/* After a stop: the thread hangs in a callback or a system call. If it comes
** back, it uses the callback again. */
bool ljp_session_is_stuck(struct ljp_session *s);

/* The errno for which the session failed; 0: it has not, or there is none.
** Members and producers are then refused with the status of that failure. */
int ljp_session_error(struct ljp_session *s);

/* Adds a fact, such as "option.interval_us" = "1000". */
enum ljp_status ljp_session_info(struct ljp_session *s, const char *key,
                                 const char *value);

/* Ids are 1, 2 ... and never used again in the session. */
enum ljp_status ljp_session_add_thread(struct ljp_session *s, pid_t tid,
                                       const char *name, uint32_t *id);
/* The thread has a new name (of at most 15 bytes): it is defined again. */
void ljp_session_name_thread(struct ljp_session *s, uint32_t id,
                             const char *name);
enum ljp_status ljp_session_add_vm(struct ljp_session *s, uint32_t thread,
                                   const char *name, uint32_t *id);
enum ljp_status ljp_session_end_thread(struct ljp_session *s, uint32_t id);
enum ljp_status ljp_session_end_vm(struct ljp_session *s, uint32_t id);
/* In the child of a fork: the VM ended before the fork, so the child's stream
** need not have it. */
void ljp_session_forget_vm(struct ljp_session *s, uint32_t id);

/* A sentence for whoever reads the stream, of at most 256 bytes. */
enum ljp_status ljp_session_note(struct ljp_session *s, enum ljp_note severity,
                                 const char *text);

/* CPU time (kind CPU) or elapsed time (WALL) of a thread, up to now, that no
** sample stands for: ns more than was said before. thread 0: of threads that
** are not known. On failure the caller may say it again later. */
enum ljp_status ljp_session_unsampled(struct ljp_session *s, uint32_t thread,
                                      enum ljp_producer_kind kind,
                                      enum ljp_unsampled why, uint64_t ns);

/* CPU time that the process has used up to now: ns more than was said before.
** On failure the caller may say it again later. */
enum ljp_status ljp_session_cpu_time(struct ljp_session *s, uint64_t ns);

/* Reports elapsed time of a thread in the session up to now: ns more than was
** reported before. Call it before the thread's end is reported. */
enum ljp_status ljp_session_elapsed(struct ljp_session *s, uint32_t thread,
                                    uint64_t ns);

/* -- Heap snapshots (RFC 7, section 6) ------------------------------------- */

/* What a copy of the process has written, on its way into the stream. */
struct ljp_session_heap {
  int fd;         /* Frames (writer/heap_frames.h). The session closes it. */
  uint64_t bytes; /* Of them. */
  /* Called once, on the writer thread or by the caller of stop: the snapshot is
  ** whole in the stream, or why not (an errno). */
  void (*done)(void *ctx, int error);
  void *ctx;
};

/* The number of the stream's next snapshot: 1, 2 ... */
uint64_t ljp_session_next_snapshot(struct ljp_session *s);

/* Opens a file without a name beside the session's file, or in /tmp if the
** session has none. Returns an errno. */
int ljp_session_open_scratch(struct ljp_session *s, int *fd);

/* The writer appends the snapshot in its next rounds. On failure done() is not
** called and the descriptor stays the caller's. */
enum ljp_status ljp_session_append_heap(struct ljp_session *s,
                                        const struct ljp_session_heap *heap);

/* thread: an id from ljp_session_add_thread(), or 0. ring_bytes: rounded up to
** a power of two; 0: the default of the kind. Maps and touches all memory of
** the producer. Only while the session is running. The producer is valid until
** it is retired or the session is freed. */
enum ljp_status ljp_session_add_producer(struct ljp_session *s,
                                         enum ljp_producer_kind kind,
                                         uint32_t thread, uint64_t interval_ns,
                                         size_t ring_bytes,
                                         struct ljp_producer **out);

/* The same for a producer of samples. refused: the errno for which the thread
** did not get a better timer, or 0. */
enum ljp_status
ljp_session_add_sampling_producer(struct ljp_session *s,
                                  enum ljp_producer_kind kind, uint32_t thread,
                                  uint64_t interval_ns, enum ljp_timer timer,
                                  int refused, struct ljp_producer **out);

/* In the child of a fork: what its copy of the producer has now. */
void ljp_producer_set_timer(struct ljp_producer *producer, enum ljp_timer timer,
                            int refused);

/* No push may be running or follow. What was pushed is still written. */
void ljp_producer_retire(struct ljp_producer *producer);

/* The same if a push may be running for ever: the producer's memory is never
** freed. */
void ljp_producer_abandon(struct ljp_producer *producer);

/* A profiler has started (1) or ended (-1) a thread of its own, which must not
** keep the process from ending. */
void ljp_session_helper(int change);
/* For what takes locks or has threads of ours without a session; any thread.
** From now on our locks are usable, and the count of these threads is right, in
** a child of fork(), and here, if this process is a copy by a raw clone(). */
void ljp_session_watch_forks(void);
/* Have all threads of the program ended? Then the caller's thread, which is
** ours, should end. */
bool ljp_session_deserted(void);

/* Asks the writer to come now. */
void ljp_session_wake(struct ljp_session *s);

/* Whole bytes in the current file segment after the writer's last round, for
** tests and figures. */
uint64_t ljp_session_bytes(struct ljp_session *s);

#endif
