/*
** Stubs: how a thread that runs no VM gets between VMs and their allocators
** (RFC 8, section 5). `allocf` and `allocd` are two words, and only the VM's own
** thread may exchange both. So the other thread exchanges one: in place of
** `allocf` it puts a stub, which passes each call on to the function that was
** there, with the `ud` that it gets. When the VM then asks for memory, the stub
** runs on the VM's own thread, and tells the listener there.
**
** A stub belongs to a function, for good, and not to a VM: a program may keep
** one that it got from lua_getallocf(), and may call it on any thread, with any
** `ud`, at any time.
*/
#ifndef LJP_GUEST_STUBS_H
#define LJP_GUEST_STUBS_H

#include <stdbool.h>

struct lua_State;

#define LJP_GUEST_STUBS 64 /* functions that can have one */

/* Puts a stub before the allocator of each VM whose recorder (see vms.h) is
** wanted. VMs whose allocator is no function of the first LJP_GUEST_STUBS are
** left out. `met` is called with the VM's main thread, on the VM's own thread,
** when it is about to allocate. It must not call into the VM; it may exchange the
** VM's allocator, which then gets the call. `wants` runs under the lock of VMs.
** Any thread. */
void ljp_guest_stubs_put(bool (*wants)(const void *recorder),
                         void (*met)(struct lua_State *L));
/* Nobody wants to be told any more: stubs only pass calls on. Any thread. */
void ljp_guest_stubs_ignore(void);
/* The same, and gives each VM its function back. */
void ljp_guest_stubs_take(void);

/* Gives this VM its function back, if it has a stub. On the VM's own thread. */
void ljp_guest_stub_clear(struct lua_State *L);

/* The VM is about to free its memory: it has no stub from now on. On the VM's
** own thread. */
void ljp_guest_stub_bar(struct lua_State *L);

#endif
