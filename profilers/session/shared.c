/*
** The shared session; see shared.h.
*/
#include "profilers/session/shared.h"

#include <stdatomic.h>
#include <stddef.h>

#include "src/base/assert.h"

static struct {
  struct ljp_session *_Atomic session;
  uint32_t (*_Atomic vm_id)(uint32_t number);
  const struct ljp_participant *_Atomic participant;
} shared;

void ljp_shared_join(const struct ljp_participant *participant)
{
  atomic_store(&shared.participant, participant);
}

struct ljp_session *ljp_shared_session(void)
{
  return atomic_load(&shared.session);
}

uint32_t ljp_shared_vm_id(uint32_t number)
{
  uint32_t (*vm_id)(uint32_t) = atomic_load(&shared.vm_id);
  return vm_id ? vm_id(number) : 0;
}

void ljp_shared_offer(struct ljp_session *session,
                      uint32_t (*vm_id)(uint32_t number))
{
  ljp_assert(!session || !atomic_load(&shared.session));
  atomic_store(&shared.vm_id, vm_id);
  atomic_store(&shared.session, session);
}

void ljp_shared_forked(bool recording)
{
  const struct ljp_participant *p = atomic_load(&shared.participant);
  if (p)
    p->forked(recording);
}

void ljp_shared_expire(void)
{
  const struct ljp_participant *p = atomic_load(&shared.participant);
  if (p)
    p->expire();
}

bool ljp_shared_in_use(void)
{
  const struct ljp_participant *p = atomic_load(&shared.participant);
  return p && p->records();
}
