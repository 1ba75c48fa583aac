/*
** Producers of a session: each is one mapping, of its struct and its ring. The
** session's list of producers holds it until the writer has drained it for the
** last time. Any thread may call these.
*/
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/session/session_impl.h"

/* Twice an entry with the deepest stack, so that it fits into an empty ring. */
enum { LEAST_RING_BYTES = 64 << 10 };
_Static_assert(sizeof(struct ljp_mem_entry) + 8 * LJP_STACK_MAX_FRAMES <=
                   LEAST_RING_BYTES / 2,
               "the deepest stack fits");

static size_t producers_ring_bytes(enum ljp_producer_kind kind, size_t wanted)
{
  size_t size = LEAST_RING_BYTES;
#ifndef LJP_DEBUG
  if (kind == LJP_PRODUCER_MEMORY)
    size = 1u << 20;
  else if (kind != LJP_PRODUCER_EVENTS)
    size = 256u << 10;
#else
  (void)kind;
#endif
  if (wanted)
    for (size = 4096; size < wanted && size < (1u << 30);)
      size *= 2;
  return size;
}

void ljp_producer_unmap(struct ljp_producer *p)
{
  munmap(p, p->mapped_bytes);
}

/* A producer that no list holds yet. */
static struct ljp_producer *producers_new(struct ljp_session *s,
                                          enum ljp_producer_kind kind,
                                          uint32_t thread, size_t ring_bytes)
{
  size_t ring = producers_ring_bytes(kind, ring_bytes);
  size_t head = (sizeof(struct ljp_producer) + 4095) & ~(size_t)4095;
  /* MAP_POPULATE: a push in a signal handler must not cause a page fault. */
  struct ljp_producer *p =
      mmap(NULL, head + ring, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  p->mapped_bytes = head + ring;
  ljp_assert(ring >= 4096 && (ring & (ring - 1)) == 0);
  ljp_ring_init(&p->ring, (uint8_t *)p + head, ring);
  p->half = ring / 2;
  p->wake = &s->wake;
  p->pid = getpid();
  p->kind = kind;
  p->thread = thread;
  p->session = s;
  return p;
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

void ljp_session_populate(struct ljp_session *s)
{
  pthread_mutex_lock(&s->mutex);
  struct ljp_producer *p = s->producers;
  pthread_mutex_unlock(&s->mutex);
  /* Others only put producers before these, and only this thread removes any. */
  for (; p; p = p->next)
    if (atomic_load(&p->active))
      madvise(p, p->mapped_bytes, MADV_POPULATE_WRITE);
}

/* Takes ownership of p, which may be NULL. */
static enum ljp_status producers_add(struct ljp_producer *p,
                                     uint64_t interval_ns,
                                     struct ljp_producer **out)
{
  if (!p)
    return LJP_ERR_MEM;
  struct ljp_session *s = p->session;
  struct ljp_message *m = ljp_message_new(LJP_MSG_PRODUCER, NULL, NULL);
  struct ljp_message *copy = ljp_message_new(LJP_MSG_PRODUCER, NULL, NULL);
  enum ljp_status status = m && copy ? LJP_OK : LJP_ERR_MEM;
  if (!status) {
    pthread_mutex_lock(&s->mutex);
    if (s->state != LJP_SESSION_RUNNING) {
      status = ljp_session_refusal_locked(s);
    } else {
      p->id = m->id = copy->id = ++s->next_producer;
      m->thread = copy->thread = p->thread;
      m->producer = copy->producer = p;
      m->interval_ns = copy->interval_ns = interval_ns;
      p->next = s->producers;
      s->producers = p;
      m->next = s->members;
      s->members = m;
      ljp_message_post_locked(s, copy);
      atomic_store_explicit(&p->active, true, memory_order_relaxed);
    }
    pthread_mutex_unlock(&s->mutex);
  }
  if (status) {
    free(m);
    free(copy);
    ljp_producer_unmap(p);
    return status;
  }
  *out = p;
  return LJP_OK;
}

enum ljp_status ljp_session_add_producer(struct ljp_session *s,
                                         enum ljp_producer_kind kind,
                                         uint32_t thread, uint64_t interval_ns,
                                         size_t ring_bytes,
                                         struct ljp_producer **out)
{
  return producers_add(producers_new(s, kind, thread, ring_bytes), interval_ns,
                       out);
}

enum ljp_status
ljp_session_add_sampling_producer(struct ljp_session *s,
                                  enum ljp_producer_kind kind, uint32_t thread,
                                  uint64_t interval_ns, enum ljp_timer timer,
                                  int refused, struct ljp_producer **out)
{
  struct ljp_producer *p = producers_new(s, kind, thread, 0);
  if (p) {
    p->timer = timer;
    p->refused = refused;
  }
  return producers_add(p, interval_ns, out);
}

void ljp_producer_set_timer(struct ljp_producer *p, enum ljp_timer timer,
                            int refused)
{
  p->timer = timer;
  p->refused = refused;
}

void ljp_producer_unlink_locked(struct ljp_producer *p)
{
  struct ljp_producer **link = &p->session->producers;
  while (*link && *link != p)
    link = &(*link)->next;
  if (*link)
    *link = p->next;
}

void ljp_producer_retire(struct ljp_producer *p)
{
  struct ljp_session *s = p->session;
  struct ljp_message *m = ljp_message_new(LJP_MSG_RETIRE, NULL, NULL);
  bool unmap = false;
  atomic_store_explicit(&p->active, false, memory_order_relaxed);
  pthread_mutex_lock(&s->mutex);
  ljp_message_forget_locked(s, LJP_MSG_PRODUCER, p->id);
  if (!s->writer_alive) {
    ljp_producer_unlink_locked(p);
    unmap = true;
  } else if (m) {
    m->producer = p;
    ljp_message_post_locked(s, m);
    m = NULL;
  } /* Otherwise, out of memory, it stays until the session is freed. */
  pthread_mutex_unlock(&s->mutex);
  free(m);
  if (unmap)
    ljp_producer_unmap(p);
}

void ljp_producer_abandon(struct ljp_producer *p)
{
  static struct ljp_wake nobody = {.word = LJP_WAKE_ROUND};
  struct ljp_session *s = p->session;
  atomic_store_explicit(&p->active, false, memory_order_relaxed);
  pthread_mutex_lock(&s->mutex);
  ljp_message_forget_locked(s, LJP_MSG_PRODUCER, p->id);
  ljp_producer_unlink_locked(p);
  p->wake = &nobody;
  pthread_mutex_unlock(&s->mutex);
}

void ljp_session_deactivate(struct ljp_session *s)
{
  pthread_mutex_lock(&s->mutex);
  for (struct ljp_producer *p = s->producers; p; p = p->next)
    atomic_store_explicit(&p->active, false, memory_order_relaxed);
  pthread_mutex_unlock(&s->mutex);
}
