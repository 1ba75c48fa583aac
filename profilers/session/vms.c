/*
** The part of the table of VMs that ordinary code uses; see vms.h.
*/
#include "profilers/session/vms.h"

#include <stdio.h>

#include "src/base/assert.h"

enum { CLOSE_ROUNDS = 2 /* until its last samples have been written */ };

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

void ljp_vms_reset(void)
{
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
  if (entry)
    atomic_store(&entry->closing, 1);
}

static void vms_name(struct ljp_vms_entry *entry, struct ljp_session *session)
{
  char name[24];
  uint32_t id;
  snprintf(name, sizeof name, "VM %u", atomic_load(&entry->number));
  if (ljp_session_add_vm(session, 0, name, &id) == LJP_OK)
    atomic_store(&entry->id, id);
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
}
