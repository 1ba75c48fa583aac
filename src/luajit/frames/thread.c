/*
** Lua threads: which addresses are threads, where a thread's stack lies, and
** which threads the walk has left although they have more frames.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"

#include "src/base/assert.h"
#include "src/luajit/frames/walk.h"

_Static_assert(LJ_FR2 == 1 && LJ_GC64 == 1, "GC64 only");

bool ljp_thread_read(struct ljp_thread *thread, uint64_t L)
{
  return ljp_thread_read_noted(thread, L, NULL);
}

bool ljp_thread_read_noted(struct ljp_thread *thread, uint64_t L,
                           struct ljp_memo *notes)
{
  uint64_t header, value;
  /* A running thread remains a thread of its VM, but its stack may be moved. */
  struct ljp_memo *checks = ljp_memo_is_lean(notes) ? NULL : notes;
  if (!ljp_header_read(L, &header) ||
      LJP_HEADER_GCT(header) != (uint8_t)~LJ_TTHREAD)
    return false;
  ljp_header_note(L, checks);
  if (!ljp_load_noted(L + offsetof(lua_State, glref), &value, checks))
    return false;
  thread->vm = ljp_vm_of_noted(value, checks);
  if (!thread->vm)
    return false;
  thread->L = L;
  thread->g = value;
  thread->notes = notes;
  _Static_assert(offsetof(lua_State, stacksize) % 8 == 0, "its own word");
  if (!ljp_load_noted(L + offsetof(lua_State, stack), &thread->low, notes) ||
      !ljp_load_noted(L + offsetof(lua_State, stacksize), &value, checks))
    return false;
  thread->high = thread->low + (value & UINT32_MAX) * sizeof(TValue);
  return true;
}

uint32_t ljp_guest_labels_at(uint64_t thread)
{
  uint32_t labels;
  return thread && ljp_load32(thread + offsetof(lua_State, ljp_labels), &labels)
             ? labels
             : 0;
}

/* -- From one Lua thread to another ---------------------------------------- */

LJP_SIGSAFE static void thread_leave(struct ljp_guest *guest)
{
  if (LJP_LIKELY(!guest->open))
    return;
  ljp_assert(guest->L != 0);
  struct ljp_left *left = &guest->left[guest->left_count++ % LJP_GUEST_LEFT];
  guest->forgot |= left->L != 0;
  *left = (struct ljp_left){guest->L, guest->g, guest->base};
}

void ljp_guest_enter(struct ljp_guest *guest, const struct ljp_thread *thread,
                     uint64_t base)
{
  if (guest->L != thread->L)
    thread_leave(guest);
  guest->L = thread->L;
  guest->g = thread->g;
  guest->base = base;
  guest->open = !ljp_thread_at_bottom(thread, base);
}

bool ljp_guest_return(struct ljp_guest *guest, uint64_t L, uint64_t g,
                      const struct ljp_stack *stack)
{
  uint32_t known =
      guest->left_count < LJP_GUEST_LEFT ? guest->left_count : LJP_GUEST_LEFT;
  for (uint32_t i = 1; i <= known; i++) {
    struct ljp_left *left =
        &guest->left[(guest->left_count - i) % LJP_GUEST_LEFT];
    struct ljp_left found = *left;
    if (!found.L || (L ? found.L != L : found.g != g))
      continue;
    left->L = left->g = 0;
    thread_leave(guest);
    guest->L = found.L;
    guest->g = found.g;
    guest->base = found.base;
    guest->open = true;
    guest->first = stack->count;
    return true;
  }
  return false;
}

void ljp_guest_note(struct ljp_guest *guest, const struct ljp_thread *thread,
                    enum ljp_vmstate state)
{
  if (!guest->vm) {
    guest->vm = thread->vm->number;
    guest->thread = thread->L;
  }
  if (guest->state == LJP_VMSTATE_UNKNOWN)
    guest->state = state;
}
