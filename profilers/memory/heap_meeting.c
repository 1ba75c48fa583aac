/*
** See heap_meeting.h. The VM's thread could not make the copy itself, since the
** client's file is in the helper's table of descriptors.
**
** The step of the meeting, with its number in the upper bits: a thread that was
** late for one meeting does not come to the next one.
**
**   WANTED --VM--> COMING --VM--> HERE --helper, after the copy--> NONE
**    | ^             |              \--VM, after a second--> NONE
**    | \--VM: not now/
**    \--helper: it does not come--> NONE
**
** In COMING the helper waits for the VM's thread, which tells the session where
** the snapshot has its place.
*/
#include "profilers/memory/heap_meeting.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "profilers/memory/heap_session.h"
#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/base/saferead.h"
#include "src/luajit/joined_heap.h"
#include "src/luajit/vms.h"

enum { STEP_NONE, STEP_WANTED, STEP_COMING, STEP_HERE, STEPS };

static struct {
  _Atomic int pid; /* of the process that asks: a child of fork() does not */
  _Atomic uint32_t step;
  /* Of the one with this number. They change only while nobody is wanted. */
  _Atomic uint32_t vm, moments; /* moments: to let pass */
  struct lua_State *_Atomic L;
  struct ljp_heap_target *_Atomic target;
} meeting;

#define SECOND_NS UINT64_C(1000000000)

/* -- On the VM's thread ---------------------------------------------------- */

/* In COMING. */
static bool meeting_suits(struct lua_State *L)
{
  if (ljp_guest_vm_id(L) != atomic_load(&meeting.vm))
    return false;
  if (atomic_load(&meeting.moments)) {
    atomic_fetch_sub(&meeting.moments, 1);
    return false;
  }
  struct ljp_heap_target *target = atomic_load(&meeting.target);
  return !target || ljp_heap_target_meet(L, target);
}

/* The step at which the thread is to stand still; 0: it is not. */
static uint32_t meeting_come(struct lua_State *L)
{
  uint32_t step = atomic_load(&meeting.step);
  if (step % STEPS != STEP_WANTED || atomic_load(&meeting.pid) != getpid() ||
      ljp_guest_vm_id(L) != atomic_load(&meeting.vm))
    return 0;
  const uint32_t turn = step - STEP_WANTED;
  if (!atomic_compare_exchange_strong(&meeting.step, &step, turn + STEP_COMING))
    return 0;
  bool here = meeting_suits(L);
  if (here)
    atomic_store(&meeting.L, L);
  atomic_store(&meeting.step, turn + (here ? STEP_HERE : STEP_WANTED));
  ljp_futex_wake(&meeting.step);
  return here ? turn + STEP_HERE : 0;
}

static void meeting_at_whole(struct lua_State *L)
{
  int *error = &errno, saved = *error;
  uint32_t here = meeting_come(L);
  if (!here)
    return;
  uint64_t now = ljp_clock_ns(), end = now + SECOND_NS;
  for (; now < end && atomic_load(&meeting.step) == here; now = ljp_clock_ns())
    ljp_futex_wait(&meeting.step, here, end - now);
  uint32_t none = here - STEP_HERE + STEP_NONE;
  atomic_compare_exchange_strong(&meeting.step, &here, none);
  *error = saved;
}

/* -- On the thread that asks ----------------------------------------------- */

void ljp_heap_meeting_begin(struct ljp_heap_meeting *m)
{
  m->safe = ljp_saferead_install() == LJP_OK;
  m->turn = atomic_load(&meeting.step) / STEPS * STEPS + STEPS;
  if (!m->turn) /* so many that it begins anew */
    m->turn = STEPS;
  m->L = NULL;
  m->came = m->gone = false;
  m->began_ns = m->moved_ns = ljp_clock_ns();
  m->bytes = 0;
  atomic_store(&meeting.pid, getpid());
  atomic_store(&meeting.vm, m->vm);
  atomic_store(&meeting.moments, m->gc);
  atomic_store(&meeting.target, m->target);
  atomic_store(&meeting.step, m->turn + STEP_WANTED);
  ljp_guest_listen_whole(meeting_at_whole);
}

/* Is it of no use to wait any longer? */
static bool meeting_is_vain(struct ljp_heap_meeting *m)
{
  uint64_t now = ljp_clock_ns(), bytes = 0;
  enum ljp_guest_hasten hastened = ljp_guest_hasten(m->vm, &bytes);
  m->gone = hastened == LJP_GUEST_NO_VM;
  if (bytes != m->bytes && hastened == LJP_GUEST_HASTENED)
    m->moved_ns = now;
  m->bytes = bytes;
  if (m->gone)
    return true;
  if (!m->target)
    return now - m->began_ns >= (m->gc ? 10 : 2) * SECOND_NS;
  return now - m->moved_ns >= 2 * SECOND_NS ||
         now - m->began_ns >= 30 * SECOND_NS;
}

/* The VM is not to come. False: it has. */
static bool meeting_withdraw(const struct ljp_heap_meeting *m)
{
  enum { TURN_NS = 2000000 };
  const uint32_t none = m->turn + STEP_NONE;
  for (;;) {
    uint32_t step = m->turn + STEP_WANTED;
    if (atomic_compare_exchange_strong(&meeting.step, &step, none))
      break;
    if (step != m->turn + STEP_COMING)
      return step != m->turn + STEP_HERE;
    ljp_futex_wait(&meeting.step, step, TURN_NS);
  }
  return true;
}

enum ljp_heap_meeting_state ljp_heap_meeting_wait(struct ljp_heap_meeting *m,
                                                  uint64_t ns)
{
  enum { TURN_NS = 2000000 };
  const uint32_t here = m->turn + STEP_HERE;
  const uint64_t limit = ljp_clock_ns() + ns;
  bool vain;
  do {
    vain = meeting_is_vain(m);
    if (!vain)
      ljp_futex_wait(&meeting.step, m->turn + STEP_WANTED, TURN_NS);
    m->came = vain ? !meeting_withdraw(m) : atomic_load(&meeting.step) == here;
  } while (!vain && !m->came && ljp_clock_ns() < limit);
  if (!m->came)
    return vain ? LJP_MEETING_NEVER : LJP_MEETING_WAITS;
  m->L = atomic_load(&meeting.L);
  m->stood_ns = ljp_clock_ns();
  return LJP_MEETING_HERE;
}

bool ljp_heap_meeting_end(struct ljp_heap_meeting *m)
{
  if (!m->turn)
    return false;
  uint32_t here = m->turn + STEP_HERE;
  bool stood = m->came && atomic_compare_exchange_strong(&meeting.step, &here,
                                                         m->turn + STEP_NONE);
  if (!m->came && !meeting_withdraw(m))
    atomic_store(&meeting.step, m->turn + STEP_NONE);
  ljp_futex_wake(&meeting.step);
  ljp_guest_listen_whole(NULL);
  if (m->safe)
    ljp_saferead_remove();
  m->turn = 0;
  return stood;
}
