/*
** Inside of a session: what session.c (lifecycle), message.c, members.c,
** producers.c, thread.c (the writer thread) and fork.c share. No other source
** file includes it.
**
** Locking: one mutex for each session. It is held for work on lists only, never
** during input or output, a callback, or a large allocation. Order: first the
** registry's mutex (fork.c), then a session's.
*/
#ifndef LJP_SESSION_IMPL_H
#define LJP_SESSION_IMPL_H

#include <pthread.h>

#include "src/base/assert.h"
#include "src/base/open_file.h"
#include "src/push/producer_state.h"
#include "src/session/session.h"
#include "src/writer/writer.h"

enum ljp_message_type {
  LJP_MSG_INFO,
  LJP_MSG_THREAD,
  LJP_MSG_VM,
  LJP_MSG_PRODUCER,
  LJP_MSG_NOTE,
  LJP_MSG_UNSAMPLED,
  LJP_MSG_CPU_TIME,
  LJP_MSG_ELAPSED,
  LJP_MSG_END_THREAD,
  LJP_MSG_END_VM,
  LJP_MSG_RETIRE,
  LJP_MSG_HEAP
};

/* What callers tell the writer. The list of members consists of messages, too:
** in the child of a fork they are told to a new writer. */
struct ljp_message {
  struct ljp_message *next;
  enum ljp_message_type type;
  uint32_t id, thread;
  pid_t tid;
  uint64_t interval_ns;
  uint64_t time_ns, ns; /* UNSAMPLED, CPU_TIME, ELAPSED */
  enum ljp_producer_kind kind;
  enum ljp_unsampled why;
  enum ljp_note severity;
  struct ljp_producer *producer;
  struct ljp_heap_pending *heap;
  char *name, *value; /* In the same allocation as the message. */
};

enum ljp_decision { LJP_UNDECIDED, LJP_COMMITTED, LJP_DISCARDED };

struct ljp_session {
  struct ljp_session_options options;
  uint64_t (*look)(void); /* Between rounds; may be NULL. */
  uint64_t first_look_ns;
  char *path;
  char *service; /* The path is a store's folder; NULL: it is not. */
  pthread_mutex_t mutex;
  /* Protected by the mutex. */
  enum ljp_session_state state;
  struct ljp_message *inbox, **inbox_end;
  struct ljp_message *members;
  struct ljp_producer *producers;
  uint32_t next_thread, next_vm, next_producer, next_snapshot;
  bool writer_alive; /* A writer thread reads the inbox and the rings. */
  bool in_registry;
  bool stuck; /* Its thread never came back: free nothing. */
  /* The writer thread's, until it has ended. */
  struct ljp_sink *sink;
  struct ljp_writer *writer;
  struct ljp_heap_pending *heaps; /* Oldest first. */
  bool child;                     /* Started by a fork: opens its file late. */
  uint64_t forked_ns;             /* When, in a child. */
  bool begun; /* The thread that starts the session starts the writer. */
  /* See apart.c. What goes in at the outlet, the writer thread finds at the
  ** inlet. own_table: the writer thread's. */
  bool apart, own_table;
  struct ljp_open_file outlet, inlet;
  enum ljp_status status;
  int error;
  /* Shared by the writer thread and the others. */
  pthread_t thread;
  bool joinable;
  struct ljp_wake wake;
  /* The steps of the start that are over, see status: 1: the first block is
  ** written; 2: a provisional file has its name. */
  _Atomic uint32_t started;
  _Atomic uint32_t decision; /* enum ljp_decision, of a provisional session. */
  _Atomic uint32_t ended;    /* 1: the writer thread does nothing more. */
  _Atomic bool stop;
  struct ljp_session *next; /* In the registry. */
};

/* thread.c */
enum ljp_status ljp_session_spawn(struct ljp_session *s);
/* A step of the start is over or has failed. Called by the thread that has done
** it. */
void ljp_session_announce(struct ljp_session *s, enum ljp_status status);

/* session.c */
void ljp_session_decide(struct ljp_session *s, enum ljp_decision decision);
enum ljp_status ljp_session_make_writer(struct ljp_session *s);
/* Makes a sink for files, as the session's options say. */
enum ljp_status ljp_session_make_sink(struct ljp_session *s,
                                      struct ljp_sink *sink, const char *path);

/* heap.c, on the writer thread. Takes over what a message brings; appends a
** piece of the oldest snapshot; drops all that are left, for this reason. */
void ljp_session_take_heap(struct ljp_session *s,
                           struct ljp_heap_pending *heap);
void ljp_session_append_heaps(struct ljp_session *s);
void ljp_session_drop_heaps(struct ljp_session *s, int error);
/* Before a drain: what came by now may be appended after it. */
void ljp_session_settle_heaps(struct ljp_session *s);
/* In the child of a fork: they are the parent's. */
void ljp_session_forget_heaps(struct ljp_session *s);

/* apart.c. On the writer thread, before it opens anything: if it is to be apart and
** can be, makes the passage and enters a table of its own, with the program's
** standard streams until the start is over. */
void ljp_session_part(struct ljp_session *s);
void ljp_session_close_passage(struct ljp_session *s);
void ljp_session_leave_standard(struct ljp_session *s);
/* Passes on a copy of a descriptor, in the order of the messages; an errno. */
int ljp_session_pass_locked(struct ljp_session *s, int fd);
/* On the writer thread: the next one, or -1. */
int ljp_session_receive(struct ljp_session *s);

/* fork.c */
enum ljp_status ljp_fork_register(struct ljp_session *s);
void ljp_fork_unregister(struct ljp_session *s);

/* message.c */
enum { LJP_THREAD_NAME_BYTES = 16 }; /* As in the kernel. */
/* name and value may be NULL, which is the same as empty. The name of a thread
** may be replaced by any of LJP_THREAD_NAME_BYTES. NULL: out of memory. */
struct ljp_message *ljp_message_new(enum ljp_message_type type,
                                    const char *name, const char *value);
struct ljp_message *ljp_message_copy(const struct ljp_message *m);
void ljp_message_free_list(struct ljp_message *list);
/* Puts m into the inbox; takes ownership of it. */
void ljp_message_post_locked(struct ljp_session *s, struct ljp_message *m);
/* Removes a member from the list. */
void ljp_message_forget_locked(struct ljp_session *s,
                               enum ljp_message_type type, uint32_t id);

/* producers.c */
void ljp_producer_unlink_locked(struct ljp_producer *p);
void ljp_producer_unmap(struct ljp_producer *p);
/* After fork(), the child's rings share pages with the parent's until one of the two
** writes. Gives the rings of active producers pages of their own, so that no push causes
** a page fault; before Linux 5.14 they stay as they are. On the child's writer thread. */
void ljp_session_populate(struct ljp_session *s);
void ljp_session_deactivate(struct ljp_session *s);

/* Why a session that is not running takes nothing more: what ended it, if that
** was an error. */
enum ljp_status ljp_session_refusal_locked(const struct ljp_session *s);

#endif
