/*
** fork() in the profiled program. The parent's session and file are not
** touched. In the child there is no writer thread any more, and its state may
** be half-done: it is abandoned (a few MiB, shared with the parent until
** written to) and a new one made, if the session is to record children.
**
** The registry is, with the lock in modules.c, the only mutable global here:
** pthread_atfork handlers have no argument. Invariant: every session with a
** writer thread is in it. The prepare handler takes all locks, so that the child
** finds lists whole; no lock is ever held over input or output, so that fork()
** does not wait. One of them keeps the writer out of the loader meanwhile: the
** child would never get the loader's lock back.
*/
#include "src/session/fork.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/writer/modules.h"
#include "src/session/session_impl.h"

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ljp_session *registry;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_error;
static pid_t forking_tid;

static void prepare(void)
{
  pthread_mutex_lock(&registry_mutex);
  for (struct ljp_session *s = registry; s; s = s->next)
    pthread_mutex_lock(&s->mutex);
  ljp_modules_hold();
  forking_tid = gettid();
}

static void parent(void)
{
  ljp_modules_unhold();
  for (struct ljp_session *s = registry; s; s = s->next)
    pthread_mutex_unlock(&s->mutex);
  pthread_mutex_unlock(&registry_mutex);
}

static bool is_ours(const struct ljp_session *s, uint32_t thread)
{
  if (!thread)
    return true;
  for (const struct ljp_message *m = s->members; m; m = m->next)
    if (m->type == LJP_MSG_THREAD && m->id == thread)
      return true;
  return false;
}

/* Threads but the forking one are gone; tell the rest to the new writer. */
static void tell_again(struct ljp_session *s)
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
  /* The list is newest first: the oldest must be told first. */
  s->inbox = NULL;
  s->inbox_end = &s->inbox;
  for (struct ljp_message *m = s->members; m; m = m->next) {
    struct ljp_message *copy = ljp_message_copy(m);
    if (!copy)
      continue;
    if (m->type == LJP_MSG_PRODUCER && !is_ours(s, m->thread)) {
      free(copy);
      continue;
    }
    copy->next = s->inbox;
    s->inbox = copy;
  }
  while (*s->inbox_end)
    s->inbox_end = &(*s->inbox_end)->next;
}

static void reset_producer(struct ljp_producer *p, bool active)
{
  ljp_ring_init(&p->ring, p->ring.data, p->ring.capacity);
  p->depth = 0;
  p->mem_time = p->look_at = 0;
  p->gave_up = false;
  p->pid = getpid();
  memset(p->lost, 0, sizeof p->lost);
  atomic_store(&p->overruns, 0);
  atomic_store(&p->busy, false);
  atomic_store(&p->waiting, false);
  atomic_store(&p->active, active);
}

static void child_session(struct ljp_session *s)
{
  bool record =
      s->options.record_child && s->path && s->state == LJP_SESSION_RUNNING;
  ljp_sink_abandon(s->sink);
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
      snprintf(path, room, "%s.%ld", s->path, (long)getpid());
      record = ljp_sink_init_file(sink, path, s->options.sync) == LJP_OK;
    }
    free(path);
    s->sink = sink;
  }
  tell_again(s);
  for (struct ljp_producer *p = s->producers; p; p = p->next)
    reset_producer(p, record && is_ours(s, p->thread));
  s->child = true;
  if (record)
    record =
        ljp_session_make_writer(s) == LJP_OK && ljp_session_spawn(s) == LJP_OK;
  if (!record) {
    s->state = LJP_SESSION_STOPPED;
    for (struct ljp_producer *p = s->producers; p; p = p->next)
      atomic_store(&p->active, false);
  }
}

static void child(void)
{
  ljp_modules_unhold();
  for (struct ljp_session *s = registry; s; s = s->next) {
    if (s->state == LJP_SESSION_RUNNING || s->joinable)
      child_session(s);
    pthread_mutex_unlock(&s->mutex);
  }
  pthread_mutex_unlock(&registry_mutex);
  for (struct ljp_session *s = registry; s; s = s->next)
    if (s->options.fork_child && s->child)
      s->options.fork_child(s->options.fork_ctx,
                            s->state == LJP_SESSION_RUNNING);
}

static void set_handlers(void)
{
  once_error = pthread_atfork(prepare, parent, child);
}

enum ljp_status ljp_fork_register(struct ljp_session *s)
{
  pthread_once(&once, set_handlers);
  if (once_error)
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
  s->in_registry = false;
  pthread_mutex_unlock(&registry_mutex);
}

unsigned ljp_fork_writers(void)
{
  unsigned n = 0;
  pthread_mutex_lock(&registry_mutex);
  for (struct ljp_session *s = registry; s; s = s->next) {
    pthread_mutex_lock(&s->mutex);
    n += s->writer_alive;
    pthread_mutex_unlock(&s->mutex);
  }
  pthread_mutex_unlock(&registry_mutex);
  return n;
}
