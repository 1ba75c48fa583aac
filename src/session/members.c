/*
** Threads, VMs and facts of a session: each is added to the list of members and
** announced to the writer by a message. Any thread may call these.
*/
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/session/session_impl.h"

/* Adds the member that m announces and tells the writer. Takes ownership of
** m. */
static enum ljp_status members_add(struct ljp_session *s, struct ljp_message *m,
                                   uint32_t *counter, uint32_t *id)
{
  enum ljp_status status = LJP_OK;
  struct ljp_message *copy = m ? ljp_message_copy(m) : NULL;
  if (!copy) {
    free(m);
    return LJP_ERR_MEM;
  }
  pthread_mutex_lock(&s->mutex);
  if (s->state != LJP_SESSION_IDLE && s->state != LJP_SESSION_RUNNING)
    status = ljp_session_refusal_locked(s);
  if (!status) {
    if (counter)
      m->id = copy->id = ++*counter;
    if (id)
      *id = m->id;
    m->next = s->members;
    s->members = m;
    ljp_message_post_locked(s, copy);
  }
  pthread_mutex_unlock(&s->mutex);
  if (status) {
    free(m);
    free(copy);
  }
  return status;
}

enum ljp_status ljp_session_info(struct ljp_session *s, const char *key,
                                 const char *value)
{
  return members_add(s, ljp_message_new(LJP_MSG_INFO, key, value), NULL, NULL);
}

enum ljp_status ljp_session_add_thread(struct ljp_session *s, pid_t tid,
                                       const char *name, uint32_t *id)
{
  struct ljp_message *m = ljp_message_new(LJP_MSG_THREAD, name, NULL);
  if (m)
    m->tid = tid;
  return members_add(s, m, &s->next_thread, id);
}

void ljp_session_name_thread(struct ljp_session *s, uint32_t id,
                             const char *name)
{
  pthread_mutex_lock(&s->mutex);
  for (struct ljp_message *m = s->members; m; m = m->next)
    if (m->type == LJP_MSG_THREAD && m->id == id) {
      memset(m->name, 0, LJP_THREAD_NAME_BYTES);
      memcpy(m->name, name, strnlen(name, LJP_THREAD_NAME_BYTES - 1));
      struct ljp_message *copy = ljp_message_copy(m);
      if (copy)
        ljp_message_post_locked(s, copy);
    }
  pthread_mutex_unlock(&s->mutex);
}

enum ljp_status ljp_session_add_vm(struct ljp_session *s, uint32_t thread,
                                   const char *name, uint32_t *id)
{
  struct ljp_message *m = ljp_message_new(LJP_MSG_VM, name, NULL);
  if (m)
    m->thread = thread;
  return members_add(s, m, &s->next_vm, id);
}

static enum ljp_status members_end(struct ljp_session *s,
                                   enum ljp_message_type type,
                                   enum ljp_message_type member, uint32_t id)
{
  struct ljp_message *m = ljp_message_new(type, NULL, NULL);
  if (!m)
    return LJP_ERR_MEM;
  m->id = id;
  pthread_mutex_lock(&s->mutex);
  ljp_message_forget_locked(s, member, id);
  ljp_message_post_locked(s, m);
  pthread_mutex_unlock(&s->mutex);
  return LJP_OK;
}

/* Tells the writer of an event of now. Takes ownership of m. */
static enum ljp_status members_tell(struct ljp_session *s,
                                    struct ljp_message *m)
{
  m->time_ns = ljp_clock_ns();
  pthread_mutex_lock(&s->mutex);
  ljp_message_post_locked(s, m);
  pthread_mutex_unlock(&s->mutex);
  return LJP_OK;
}

enum ljp_status ljp_session_note(struct ljp_session *s, enum ljp_note severity,
                                 const char *text)
{
  struct ljp_message *m = ljp_message_new(LJP_MSG_NOTE, text, NULL);
  if (!m)
    return LJP_ERR_MEM;
  m->severity = severity;
  return members_tell(s, m);
}

enum ljp_status ljp_session_unsampled(struct ljp_session *s, uint32_t thread,
                                      enum ljp_producer_kind kind,
                                      enum ljp_unsampled why, uint64_t ns)
{
  struct ljp_message *m = ljp_message_new(LJP_MSG_UNSAMPLED, NULL, NULL);
  if (!m)
    return LJP_ERR_MEM;
  m->thread = thread;
  m->kind = kind;
  m->why = why;
  m->ns = ns;
  return members_tell(s, m);
}

enum ljp_status ljp_session_cpu_time(struct ljp_session *s, uint64_t ns)
{
  struct ljp_message *m = ljp_message_new(LJP_MSG_CPU_TIME, NULL, NULL);
  if (!m)
    return LJP_ERR_MEM;
  m->ns = ns;
  return members_tell(s, m);
}

enum ljp_status ljp_session_elapsed(struct ljp_session *s, uint32_t thread,
                                    uint64_t ns)
{
  struct ljp_message *m = ljp_message_new(LJP_MSG_ELAPSED, NULL, NULL);
  if (!m)
    return LJP_ERR_MEM;
  m->thread = thread;
  m->ns = ns;
  return members_tell(s, m);
}

enum ljp_status ljp_session_end_thread(struct ljp_session *s, uint32_t id)
{
  return members_end(s, LJP_MSG_END_THREAD, LJP_MSG_THREAD, id);
}

enum ljp_status ljp_session_end_vm(struct ljp_session *s, uint32_t id)
{
  return members_end(s, LJP_MSG_END_VM, LJP_MSG_VM, id);
}

void ljp_session_forget_vm(struct ljp_session *s, uint32_t id)
{
  pthread_mutex_lock(&s->mutex);
  ljp_message_forget_locked(s, LJP_MSG_VM, id);
  struct ljp_message **link = &s->inbox;
  while (*link && ((*link)->type != LJP_MSG_VM || (*link)->id != id))
    link = &(*link)->next;
  struct ljp_message *m = *link;
  if (m) {
    *link = m->next;
    if (!m->next)
      s->inbox_end = link;
    free(m);
  }
  pthread_mutex_unlock(&s->mutex);
}
