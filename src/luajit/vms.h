/*
** VMs: their numbers, and what happens to them. Not for handlers.
*/
#ifndef LJP_GUEST_VMS_H
#define LJP_GUEST_VMS_H

#include <stdint.h>

struct lua_State;

/* Number of the VM that L belongs to (1, 2 ...), never used twice; 0 if the VM
** has no entry (out of memory when it was created). */
uint32_t ljp_guest_vm_id(struct lua_State *L);

/* Calls `each` for every VM, under a lock: meanwhile no VM comes or goes. */
void ljp_guest_each_vm(void (*each)(void *ctx, uint32_t number), void *ctx);

/* A word of each VM for the memory profiler, NULL at first: its recorder. On the
** VM's own thread; stubs.h shows it to others. A VM without an entry has no room
** for it. phases: where the collector's hook makes its notes (phases.h), or NULL. */
struct ljp_phase_log;
void *ljp_guest_recorder(struct lua_State *L);
void ljp_guest_set_recorder(struct lua_State *L, void *recorder,
                            struct ljp_phase_log *phases);

/* Called on the VM's own thread when the VM is being made, at the end of a
** stack resize during which a sample was deferred, when the allocator is about
** to be replaced (by lua_setallocf(), ours as well), when lua_close() begins,
** and when nothing will run in the VM any more and its memory is about to be
** freed. One listener per profiler, called in this order, and for new VMs in
** the opposite one; NULL removes it. */
enum ljp_guest_listeners { LJP_LISTENER_MEM, LJP_LISTENER_CPU, LJP_LISTENERS };
struct ljp_guest_listener {
  void (*created)(struct lua_State *L);
  void (*deferred)(void);
  void (*allocator)(struct lua_State *L);
  void (*closing)(struct lua_State *L);
  void (*gone)(struct lua_State *L);
};
void ljp_guest_listen(enum ljp_guest_listeners which,
                      const struct ljp_guest_listener *listener);

/* labels is asked for the number of the labels of a thread that a host has taken for
** a piece of work, if no other thread of the VM runs; else it inherits them. Called on
** the VM's own thread, which may be in the middle of the host's code. */
void ljp_guest_listen_owners(uint32_t (*labels)(void *owner));

#endif
