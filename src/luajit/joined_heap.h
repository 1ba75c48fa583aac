/*
** The heap of a VM for a thread that is not the VM's: bringing the VM to a moment
** at which its heap is whole, and walking over a copy of a heap that may not be.
** Ordinary code of any thread, unless it says otherwise.
*/
#ifndef LJP_GUEST_JOINED_HEAP_H
#define LJP_GUEST_JOINED_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/heap_out.h"

struct lua_State;

/* Called on the VM's own thread at the end of the collector's atomic phase, if
** the VM does not run compiled code: all threads are consistent then (RFC 7). L:
** the Lua thread that runs. NULL: nobody listens. */
void ljp_guest_listen_whole(void (*at)(struct lua_State *L));

enum ljp_guest_hasten {
  LJP_GUEST_HASTENED,
  LJP_GUEST_STOPPED, /* the program has stopped the collector: nothing is done */
  LJP_GUEST_NO_VM
};
/* Makes the collector begin a step at the VM's next allocation, by one store.
** *bytes: the heap's size. */
enum ljp_guest_hasten ljp_guest_hasten(uint32_t vm, uint64_t *bytes);

/* The Lua thread that runs in a VM, or its main thread. It is the caller's risk
** that the VM goes away. NULL: there is no such VM. */
struct lua_State *ljp_guest_vm_running(uint32_t vm);

/* As ljp_guest_snapshot(), of a heap that was copied at any moment. In a copy of
** the process only, since it takes over SIGSEGV and SIGBUS. What cannot be read
** is left out and counted in out->unreadable. */
bool ljp_guest_snapshot_guarded(struct lua_State *L, struct ljp_heap_out *out);

#endif
