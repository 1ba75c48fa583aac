/*
** The part of the table of VMs that ordinary code uses; see vms.h.
*/
#include "profilers/session/vms.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/assert.h"

enum {
  CLOSE_ROUNDS = 2, /* until its last samples have been written */
  EXTRA_ROOM = 16   /* at first */
};

/* VMs that got an id while the table was full. The VM leaves this list when it
** gets an entry, which takes over the id. */
static struct {
  struct vms_extra {
    uint32_t number, id;
    bool closing;
  } * list;
  uint32_t count, room;
} extra;

static struct ljp_vms_entry *vms_find(uint32_t number)
{
  for (int i = 0; i < LJP_VMS; i++)
    if (atomic_load(&ljp_vms[i].number) == number)
      return &ljp_vms[i];
  return NULL;
}

uint32_t ljp_vms_id(uint32_t number)
{
  struct ljp_vms_entry *entry = vms_find(number);
  return entry ? atomic_load(&entry->id) : 0;
}

static struct vms_extra *vms_find_extra(uint32_t number)
{
  for (uint32_t i = 0; i < extra.count; i++)
    if (extra.list[i].number == number)
      return &extra.list[i];
  return NULL;
}

static void vms_remove_extra(struct vms_extra *e)
{
  *e = extra.list[--extra.count];
}

void ljp_vms_reset(void)
{
  free(extra.list);
  extra.list = NULL;
  extra.count = extra.room = 0;
  for (int i = 0; i < LJP_VMS; i++) {
    atomic_store(&ljp_vms[i].number, 0);
    atomic_store(&ljp_vms[i].id, 0);
    atomic_store(&ljp_vms[i].closing, 0);
  }
}

void ljp_vms_add(void *ctx, uint32_t number)
{
  bool claimed;
  (void)ctx;
  ljp_vms_claim(number, &claimed);
}

void ljp_vms_close(uint32_t number)
{
  struct ljp_vms_entry *entry = vms_find(number);
  struct vms_extra *e = vms_find_extra(number);
  if (entry)
    atomic_store(&entry->closing, 1);
  if (e)
    e->closing = true;
}

/* 0: no memory. */
static uint32_t vms_new_id(uint32_t number, struct ljp_session *session)
{
  char name[24];
  uint32_t id;
  snprintf(name, sizeof name, "VM %u", number);
  return ljp_session_add_vm(session, 0, name, &id) == LJP_OK ? id : 0;
}

static void vms_name(struct ljp_vms_entry *entry, struct ljp_session *session)
{
  uint32_t number = atomic_load(&entry->number);
  struct vms_extra *e = vms_find_extra(number);
  atomic_store(&entry->id, e ? e->id : vms_new_id(number, session));
  if (e)
    vms_remove_extra(e);
}

static uint32_t vms_extra_id(uint32_t number, struct ljp_session *session)
{
  struct vms_extra *e = vms_find_extra(number);
  if (e)
    return e->id;
  if (extra.count == extra.room) {
    uint32_t room = extra.room ? 2 * extra.room : EXTRA_ROOM;
    if (!(e = realloc(extra.list, room * sizeof *e)))
      return 0;
    extra.list = e;
    extra.room = room;
  }
  uint32_t id = vms_new_id(number, session);
  if (id)
    extra.list[extra.count++] = (struct vms_extra){.number = number, .id = id};
  return id;
}

uint32_t ljp_vms_ensure(uint32_t number, struct ljp_session *session)
{
  ljp_vms_add(NULL, number);
  ljp_vms_define(session);
  struct ljp_vms_entry *entry = vms_find(number);
  return entry ? atomic_load(&entry->id) : vms_extra_id(number, session);
}

void ljp_vms_define(struct ljp_session *session)
{
  for (int i = 0; i < LJP_VMS; i++)
    if (atomic_load(&ljp_vms[i].number) && !atomic_load(&ljp_vms[i].id))
      vms_name(&ljp_vms[i], session);
}

static void vms_free(struct ljp_vms_entry *entry)
{
  atomic_store(&entry->id, 0);
  atomic_store(&entry->closing, 0);
  atomic_store(&entry->number, 0);
}

void ljp_vms_forked(struct ljp_session *session)
{
  for (int i = 0; i < LJP_VMS; i++)
    if (atomic_load(&ljp_vms[i].closing)) {
      ljp_session_forget_vm(session, atomic_load(&ljp_vms[i].id));
      vms_free(&ljp_vms[i]);
    }
  for (uint32_t i = extra.count; i-- > 0;)
    if (extra.list[i].closing) {
      ljp_session_forget_vm(session, extra.list[i].id);
      vms_remove_extra(&extra.list[i]);
    }
}

void ljp_vms_update(struct ljp_session *session)
{
  ljp_vms_define(session);
  for (int i = 0; i < LJP_VMS; i++) {
    struct ljp_vms_entry *entry = &ljp_vms[i];
    if (!atomic_load(&entry->number)) {
      ljp_assert(!atomic_load(&entry->id) && !atomic_load(&entry->closing));
      continue;
    }
    if (atomic_load(&entry->closing) &&
        atomic_fetch_add(&entry->closing, 1) > CLOSE_ROUNDS) {
      ljp_session_end_vm(session, atomic_load(&entry->id));
      vms_free(entry);
    }
  }
  /* No CPU sample has the id of a VM without an entry, so there is nothing to
  ** wait for. */
  for (uint32_t i = extra.count; i-- > 0;)
    if (extra.list[i].closing) {
      ljp_session_end_vm(session, extra.list[i].id);
      vms_remove_extra(&extra.list[i]);
    }
}
