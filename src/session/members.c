/*
** What a session holds: threads, VMs, facts, producers. Each is kept in a list
** of what exists and told to the writer by a message.
*/
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/futex.h"
#include "src/session/session_impl.h"

enum { THREAD_NAME = 16 }; /* a new one may be as long as the kernel's */

static struct ljp_message *make(enum ljp_message_type type, const char *name,
                                const char *value)
{
  size_t name_bytes = name ? strlen(name) + 1 : 1;
  size_t value_bytes = value ? strlen(value) + 1 : 1;
  size_t room = name_bytes > THREAD_NAME ? name_bytes : THREAD_NAME;
  struct ljp_message *m = calloc(1, sizeof *m + room + value_bytes);
  if (!m)
    return NULL;
  m->type = type;
  m->name = (char *)(m + 1);
  m->value = m->name + room;
  memcpy(m->name, name ? name : "", name_bytes);
  memcpy(m->value, value ? value : "", value_bytes);
  return m;
}

struct ljp_message *ljp_message_copy(const struct ljp_message *m)
{
  struct ljp_message *copy = make(m->type, m->name, m->value);
  if (copy) {
    copy->id = m->id;
    copy->thread = m->thread;
    copy->tid = m->tid;
    copy->interval_ns = m->interval_ns;
    copy->producer = m->producer;
  }
  return copy;
}

void ljp_message_free_list(struct ljp_message *list)
{
  while (list) {
    struct ljp_message *next = list->next;
    free(list);
    list = next;
  }
}

void ljp_session_post_locked(struct ljp_session *s, struct ljp_message *m)
{
  m->next = NULL;
  *s->inbox_end = m;
  s->inbox_end = &m->next;
}

/* Keeps the thing and tells the writer; takes over m. */
static enum ljp_status add(struct ljp_session *s, struct ljp_message *m,
                           uint32_t *counter, uint32_t *id)
{
  enum ljp_status status = LJP_OK;
  struct ljp_message *told = m ? ljp_message_copy(m) : NULL;
  if (!told) {
    free(m);
    return LJP_ERR_MEM;
  }
  pthread_mutex_lock(&s->mutex);
  if (s->state != LJP_SESSION_IDLE && s->state != LJP_SESSION_RUNNING)
    status = LJP_ERR_RUN;
  if (!status) {
    if (counter)
      m->id = told->id = ++*counter;
    if (id)
      *id = m->id;
    m->next = s->things;
    s->things = m;
    ljp_session_post_locked(s, told);
  }
  pthread_mutex_unlock(&s->mutex);
  if (status) {
    free(m);
    free(told);
  }
  return status;
}

enum ljp_status ljp_session_info(struct ljp_session *s, const char *key,
                                 const char *value)
{
  return add(s, make(LJP_MSG_INFO, key, value), NULL, NULL);
}

enum ljp_status ljp_session_add_thread(struct ljp_session *s, pid_t tid,
                                       const char *name, uint32_t *id)
{
  struct ljp_message *m = make(LJP_MSG_THREAD, name, NULL);
  if (m)
    m->tid = tid;
  return add(s, m, &s->next_thread, id);
}

void ljp_session_name_thread(struct ljp_session *s, uint32_t id,
                             const char *name)
{
  pthread_mutex_lock(&s->mutex);
  for (struct ljp_message *m = s->things; m; m = m->next)
    if (m->type == LJP_MSG_THREAD && m->id == id) {
      memset(m->name, 0, THREAD_NAME);
      memcpy(m->name, name, strnlen(name, THREAD_NAME - 1));
      struct ljp_message *told = ljp_message_copy(m);
      if (told)
        ljp_session_post_locked(s, told);
    }
  pthread_mutex_unlock(&s->mutex);
}

enum ljp_status ljp_session_add_vm(struct ljp_session *s, uint32_t thread,
                                   const char *name, uint32_t *id)
{
  struct ljp_message *m = make(LJP_MSG_VM, name, NULL);
  if (m)
    m->thread = thread;
  return add(s, m, &s->next_vm, id);
}

static void forget_locked(struct ljp_session *s, enum ljp_message_type type,
                          uint32_t id)
{
  struct ljp_message **link = &s->things;
  while (*link && ((*link)->type != type || (*link)->id != id))
    link = &(*link)->next;
  struct ljp_message *m = *link;
  if (m)
    *link = m->next;
  free(m);
}

static enum ljp_status end(struct ljp_session *s, enum ljp_message_type type,
                           enum ljp_message_type thing, uint32_t id)
{
  struct ljp_message *m = make(type, NULL, NULL);
  if (!m)
    return LJP_ERR_MEM;
  m->id = id;
  pthread_mutex_lock(&s->mutex);
  forget_locked(s, thing, id);
  ljp_session_post_locked(s, m);
  pthread_mutex_unlock(&s->mutex);
  return LJP_OK;
}

enum ljp_status ljp_session_end_thread(struct ljp_session *s, uint32_t id)
{
  return end(s, LJP_MSG_END_THREAD, LJP_MSG_THREAD, id);
}

enum ljp_status ljp_session_end_vm(struct ljp_session *s, uint32_t id)
{
  return end(s, LJP_MSG_END_VM, LJP_MSG_VM, id);
}

/* -- Producers ------------------------------------------------------------- */

static size_t ring_size(enum ljp_producer_kind kind, size_t wanted)
{
#ifdef LJP_DEBUG
  size_t size = 32u << 10;
  (void)kind;
#else
  size_t size = kind == LJP_PRODUCER_MEMORY   ? 1u << 20
                : kind == LJP_PRODUCER_EVENTS ? 64u << 10
                                              : 256u << 10;
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

enum ljp_status ljp_session_add_producer(struct ljp_session *s,
                                         enum ljp_producer_kind kind,
                                         uint32_t thread, uint64_t interval_ns,
                                         size_t ring_bytes,
                                         struct ljp_producer **out)
{
  size_t ring = ring_size(kind, ring_bytes);
  size_t head = (sizeof(struct ljp_producer) + 4095) & ~(size_t)4095;
  /* Populated: no page fault in a signal handler's push. */
  struct ljp_producer *p =
      mmap(NULL, head + ring, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED)
    return LJP_ERR_MEM;
  p->mapped_bytes = head + ring;
  ljp_ring_init(&p->ring, (uint8_t *)p + head, ring);
  p->half = ring / 2;
  p->wake = &s->wake;
  p->pid = getpid();
  p->kind = kind;
  p->thread = thread;
  p->session = s;
  struct ljp_message *m = make(LJP_MSG_PRODUCER, NULL, NULL);
  struct ljp_message *told = make(LJP_MSG_PRODUCER, NULL, NULL);
  enum ljp_status status = m && told ? LJP_OK : LJP_ERR_MEM;
  if (!status) {
    pthread_mutex_lock(&s->mutex);
    if (s->state != LJP_SESSION_RUNNING) {
      status = LJP_ERR_RUN;
    } else {
      p->id = m->id = told->id = ++s->next_producer;
      m->thread = told->thread = thread;
      m->producer = told->producer = p;
      m->interval_ns = told->interval_ns = interval_ns;
      p->next = s->producers;
      s->producers = p;
      m->next = s->things;
      s->things = m;
      ljp_session_post_locked(s, told);
      atomic_store_explicit(&p->active, true, memory_order_relaxed);
    }
    pthread_mutex_unlock(&s->mutex);
  }
  if (status) {
    free(m);
    free(told);
    ljp_producer_unmap(p);
    return status;
  }
  *out = p;
  return LJP_OK;
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
  struct ljp_message *m = make(LJP_MSG_RETIRE, NULL, NULL);
  bool unmap = false;
  atomic_store_explicit(&p->active, false, memory_order_relaxed);
  pthread_mutex_lock(&s->mutex);
  forget_locked(s, LJP_MSG_PRODUCER, p->id);
  if (!s->writer_alive) {
    ljp_producer_unlink_locked(p);
    unmap = true;
  } else if (m) {
    m->producer = p;
    ljp_session_post_locked(s, m);
    m = NULL;
  } /* Else, out of memory, it stays until the session is freed. */
  pthread_mutex_unlock(&s->mutex);
  free(m);
  if (unmap)
    ljp_producer_unmap(p);
}

void ljp_session_deactivate(struct ljp_session *s)
{
  pthread_mutex_lock(&s->mutex);
  for (struct ljp_producer *p = s->producers; p; p = p->next)
    atomic_store_explicit(&p->active, false, memory_order_relaxed);
  pthread_mutex_unlock(&s->mutex);
}

uint32_t ljp_producer_id(const struct ljp_producer *p)
{
  return p->id;
}
