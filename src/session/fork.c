/*
** fork() in the profiled program. The parent's session and file are not
** affected. The child has no writer thread, and the writer's state may be
** half-done. So the child abandons the writer (a few MiB, shared with the
** parent until written to) and makes a new one if the session is to record
** children.
**
** The registry and the lock in modules.c are the only mutable globals here,
** because pthread_atfork() handlers have no argument.
** Invariant: every session with a writer thread is in the registry. The prepare
** handler takes all locks, so that the child finds whole lists. No lock is ever
** held during input or output, so that fork() does not wait. The lock in
** modules.c keeps the writer out of the loader meanwhile: otherwise the child
** might never get the loader's lock.
** A raw clone() runs no handler. The first call that meets a lock or a session
** in such a copy (src/base/copy.h) does what they would have done; the copy is
** not recorded.
*/
#include "src/session/fork.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/copy.h"
#include "src/base/own_path.h"
#include "src/session/session_impl.h"
#include "src/writer/modules.h"
#include "src/writer/process.h"

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ljp_session *registry;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_once_error;
static pid_t forking_tid;
static _Atomic unsigned fork_helpers; /* threads of profilers */

static void fork_prepare(void)
{
  pthread_mutex_lock(&registry_mutex);
  for (struct ljp_session *s = registry; s; s = s->next)
    pthread_mutex_lock(&s->mutex);
  ljp_modules_hold();
  forking_tid = gettid();
}

static void fork_parent(void)
{
  ljp_modules_unhold();
  for (struct ljp_session *s = registry; s; s = s->next)
    pthread_mutex_unlock(&s->mutex);
  pthread_mutex_unlock(&registry_mutex);
}

static bool fork_keeps_thread(const struct ljp_session *s, uint32_t thread)
{
  if (!thread)
    return true;
  for (const struct ljp_message *m = s->members; m; m = m->next)
    if (m->type == LJP_MSG_THREAD && m->id == thread)
      return true;
  return false;
}

/* Removes all threads but the forking one, and announces the other members to
** the new writer. */
static void fork_announce_members(struct ljp_session *s)
{
  for (struct ljp_message **link = &s->members; *link;) {
    struct ljp_message *m = *link;
    if (m->type == LJP_MSG_THREAD && m->tid != forking_tid) {
      *link = m->next;
      free(m);
    } else {
      if (m->type == LJP_MSG_THREAD)
        m->tid = gettid();
      link = &m->next;
    }
  }
  /* The list has the newest member first; the oldest must be announced first.
  ** */
  s->inbox = NULL;
  s->inbox_end = &s->inbox;
  for (struct ljp_message *m = s->members; m; m = m->next) {
    struct ljp_message *copy = ljp_message_copy(m);
    if (!copy)
      continue;
    if (m->type == LJP_MSG_PRODUCER && !fork_keeps_thread(s, m->thread)) {
      free(copy);
      continue;
    }
    copy->next = s->inbox;
    s->inbox = copy;
  }
  while (*s->inbox_end)
    s->inbox_end = &(*s->inbox_end)->next;
}

static void fork_reset_producer(struct ljp_producer *p, bool active)
{
  ljp_ring_init(&p->ring, p->ring.data, p->ring.capacity);
  p->depth = 0;
  p->labels = 0;
  p->mem_time = p->look_at = 0;
  p->gave_up = false;
  p->pid = getpid();
  memset(p->lost, 0, sizeof p->lost);
  atomic_store(&p->overruns, 0);
  atomic_store(&p->busy, false);
  atomic_store(&p->waiting, false);
  atomic_store(&p->active, active);
}

static void fork_child_session(struct ljp_session *s, bool may_record)
{
  /* Another thread may be stopping the session just now. */
  const bool wanted = may_record && s->options.record_child && s->path &&
                      s->state == LJP_SESSION_RUNNING && !atomic_load(&s->stop);
  bool record = wanted;
  int error = ENOMEM;
  ljp_sink_abandon(s->sink);
  ljp_session_close_passage(s);
  s->writer = NULL;
  s->sink = NULL;
  s->joinable = false;
  s->writer_alive = false;
  s->status = LJP_OK;
  s->error = 0;
  atomic_store(&s->stop, false);
  atomic_store(&s->wake.word, 0);
  if (record) {
    size_t room = strlen(s->path) + 32;
    char *path = malloc(room);
    struct ljp_sink *sink = calloc(1, sizeof *sink);
    record = path && sink;
    if (record) {
      /* In a store each process has names of its own. */
      if (s->service)
        memcpy(path, s->path, strlen(s->path) + 1);
      else
        record = ljp_path_numbered(path, room, s->path, getpid(), false,
                                   s->options.keep_segments > 0);
      error = record ? ENOMEM : ENAMETOOLONG;
      record = record && ljp_session_make_sink(s, sink, path) == LJP_OK;
    }
    free(path);
    s->sink = sink;
  }
  ljp_session_forget_heaps(s);
  fork_announce_members(s);
  for (struct ljp_producer *p = s->producers; p; p = p->next)
    fork_reset_producer(p, record && fork_keeps_thread(s, p->thread));
  s->child = true;
  /* The writer comes later, and must not begin after the first events. */
  s->forked_ns = ljp_clock_ns();
  if (record)
    record =
        ljp_session_make_writer(s) == LJP_OK && ljp_session_spawn(s) == LJP_OK;
  if (!record) {
    if (wanted && s->options.child_refused)
      s->options.child_refused(s->path, s->error ? s->error : error);
    s->state = LJP_SESSION_STOPPED;
    for (struct ljp_producer *p = s->producers; p; p = p->next)
      atomic_store(&p->active, false);
  }
}

/* With all locks held, as fork_prepare() leaves them. */
static void fork_child_sessions(bool may_record)
{
  ljp_copy_watch();
  atomic_store(&fork_helpers, 0);
  ljp_modules_unhold();
  for (struct ljp_session *s = registry; s; s = s->next) {
    if (s->state == LJP_SESSION_RUNNING || s->joinable)
      fork_child_session(s, may_record);
    pthread_mutex_unlock(&s->mutex);
  }
  pthread_mutex_unlock(&registry_mutex);
  for (struct ljp_session *s = registry; s; s = s->next)
    if (s->options.fork_child && s->child)
      s->options.fork_child(s->options.fork_ctx,
                            s->state == LJP_SESSION_RUNNING);
}

static void fork_child(void)
{
  fork_child_sessions(true);
}

/* In a copy by a raw clone(). */
static void fork_copied(void)
{
  /* Threads that this process does not have may have held the locks. */
  pthread_mutex_init(&registry_mutex, NULL);
  for (struct ljp_session *s = registry; s; s = s->next)
    pthread_mutex_init(&s->mutex, NULL);
  ljp_modules_renew();
  fork_prepare();
  fork_child_sessions(false);
}

static void fork_set_handlers(void)
{
  ljp_copy_on_notice(fork_copied);
  ljp_copy_watch();
  fork_once_error = pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void ljp_session_watch_forks(void)
{
  pthread_once(&fork_once, fork_set_handlers);
  ljp_copy_notice();
}

enum ljp_status ljp_fork_register(struct ljp_session *s)
{
  ljp_session_watch_forks();
  if (fork_once_error)
    return LJP_ERR_MEM;
  pthread_mutex_lock(&registry_mutex);
  s->next = registry;
  registry = s;
  s->in_registry = true;
  pthread_mutex_unlock(&registry_mutex);
  return LJP_OK;
}

void ljp_fork_unregister(struct ljp_session *s)
{
  pthread_mutex_lock(&registry_mutex);
  struct ljp_session **link = &registry;
  while (*link && *link != s)
    link = &(*link)->next;
  if (*link)
    *link = s->next;
  ljp_assert(s->in_registry);
  s->in_registry = false;
  pthread_mutex_unlock(&registry_mutex);
}

void ljp_session_helper(int change)
{
  atomic_fetch_add(&fork_helpers, (unsigned)change);
}

bool ljp_session_deserted(void)
{
  return ljp_process_deserted(ljp_fork_own_threads());
}

unsigned ljp_fork_own_threads(void)
{
  unsigned n = atomic_load(&fork_helpers);
  pthread_mutex_lock(&registry_mutex);
  for (struct ljp_session *s = registry; s; s = s->next) {
    pthread_mutex_lock(&s->mutex);
    n += s->writer_alive;
    pthread_mutex_unlock(&s->mutex);
  }
  pthread_mutex_unlock(&registry_mutex);
  return n;
}
