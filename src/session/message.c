/*
** Messages: what callers tell the writer thread. A message that announces a
** member (a thread, a VM, a fact, a producer) also stands in the session's list
** of members, for as long as the member exists.
*/
#include <stdlib.h>
#include <string.h>

#include "src/session/session_impl.h"

struct ljp_message *ljp_message_new(enum ljp_message_type type,
                                    const char *name, const char *value)
{
  size_t name_bytes = name ? strlen(name) + 1 : 1;
  size_t value_bytes = value ? strlen(value) + 1 : 1;
  size_t room =
      name_bytes > LJP_THREAD_NAME_BYTES ? name_bytes : LJP_THREAD_NAME_BYTES;
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
  struct ljp_message *copy = ljp_message_new(m->type, m->name, m->value);
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

void ljp_message_post_locked(struct ljp_session *s, struct ljp_message *m)
{
  ljp_assert(!*s->inbox_end);
  m->next = NULL;
  *s->inbox_end = m;
  s->inbox_end = &m->next;
}

void ljp_message_forget_locked(struct ljp_session *s,
                               enum ljp_message_type type, uint32_t id)
{
  struct ljp_message **link = &s->members;
  while (*link && ((*link)->type != type || (*link)->id != id))
    link = &(*link)->next;
  struct ljp_message *m = *link;
  if (m)
    *link = m->next;
  free(m);
}
