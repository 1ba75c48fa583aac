/*
** Inside of a session: shared by session.c (lifecycle), members.c (what it
** holds), thread.c (the writer thread) and fork.c. Nobody else.
**
** Locking: one mutex a session, held for list work only, never over input or
** output, a callback, or memory that may be large. Order: registry, session.
*/
#ifndef LJP_SESSION_IMPL_H
#define LJP_SESSION_IMPL_H

#include <pthread.h>

#include "src/push/producer_state.h"
#include "src/session/session.h"
#include "src/writer/writer.h"

enum ljp_message_type {
  LJP_MSG_INFO,
  LJP_MSG_THREAD,
  LJP_MSG_VM,
  LJP_MSG_PRODUCER,
  LJP_MSG_END_THREAD,
  LJP_MSG_END_VM,
  LJP_MSG_RETIRE
};

/* What callers tell the writer; also, as "members", what now exists: the child
** of a fork tells it anew. */
struct ljp_message {
  struct ljp_message *next;
  enum ljp_message_type type;
  uint32_t id, thread;
  pid_t tid;
  uint64_t interval_ns;
  struct ljp_producer *producer;
  char *name, *value; /* In the same allocation. */
};

struct ljp_session {
  struct ljp_session_options options;
  char *path;
  pthread_mutex_t mutex;
  /* Under the mutex. */
  enum ljp_session_state state;
  struct ljp_message *inbox, **inbox_end;
  struct ljp_message *members;
  struct ljp_producer *producers;
  uint32_t next_thread, next_vm, next_producer;
  bool writer_alive; /* Somebody reads the inbox. */
  bool in_registry;
  bool stuck; /* Its thread never came back: nothing is freed. */
  /* The writer thread's, until it has ended. */
  struct ljp_sink *sink;
  struct ljp_writer *writer;
  bool child; /* Started by a fork: opens its file late. */
  bool begun; /* The writer was started by who started the session. */
  enum ljp_status status;
  int error;
  /* Between the two. */
  pthread_t thread;
  bool joinable;
  struct ljp_wake wake;
  _Atomic uint32_t started; /* 1: tried; see status. */
  _Atomic bool stop;
  struct ljp_session *next; /* Registry. */
};

/* thread.c */
enum ljp_status ljp_session_spawn(struct ljp_session *s);
/* The writer has been started, or has failed to; by who has done it. */
void ljp_session_announce(struct ljp_session *s, enum ljp_status status);

/* session.c */
enum ljp_status ljp_session_make_writer(struct ljp_session *s);

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
void ljp_session_deactivate(struct ljp_session *s);

#endif
