/*
** See joined_heap.h.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_gc.h"

#include "src/luajit/joined_heap.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/vm/vms.h"

/* Under the lock of VMs. A VM that is being closed is barred (stubs.c) before its
** memory is freed. Of one whose memory went without lua_close(), the memory is
** asked first. */
static global_State *joined_find(uint32_t number)
{
  for (const struct ljp_vm *vm = ljp_vm_next(NULL); vm; vm = ljp_vm_next(vm)) {
    uint64_t g = atomic_load(&vm->g);
    if (vm->number == number)
      return vm->barred || ljp_vm_of(g) != vm ? NULL
                                              : (global_State *)(uintptr_t)g;
  }
  return NULL;
}

/* A threshold of 0 makes the collector work off the whole heap as debt, a step with
** each allocation, until the cycle ends. While it does so, the threshold is not
** above the heap's size, and stays as it is. If the VM sets its threshold at the
** same time, even to "stopped", its store wins. */
enum ljp_guest_hasten ljp_guest_hasten(uint32_t number, uint64_t *bytes)
{
  enum ljp_guest_hasten result = LJP_GUEST_NO_VM;
  ljp_lock(LJP_LOCK_VMS);
  global_State *g = joined_find(number);
  if (g) {
    GCSize now = __atomic_load_n(&g->gc.threshold, __ATOMIC_RELAXED);
    result = now >= LJ_MAX_MEM ? LJP_GUEST_STOPPED : LJP_GUEST_HASTENED;
    *bytes = __atomic_load_n(&g->gc.total, __ATOMIC_RELAXED);
    if (result == LJP_GUEST_HASTENED && now > *bytes)
      __atomic_compare_exchange_n(&g->gc.threshold, &now, 0, false,
                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  ljp_unlock(LJP_LOCK_VMS);
  return result;
}

lua_State *ljp_guest_vm_running(uint32_t number)
{
  lua_State *L = NULL;
  ljp_lock(LJP_LOCK_VMS);
  global_State *g = joined_find(number);
  if (g) {
    GCobj *current = gcref(g->cur_L);
    L = current ? gco2th(current) : mainthread(g);
  }
  ljp_unlock(LJP_LOCK_VMS);
  return L;
}
