/*
** Publishing of labels: while a VM publishes, the thread-local variable
** otel_thread_ctx_v1 (OTEP 4947) of the thread that runs the VM points to the
** record of the labels of the coroutine that runs. Use on the VM's own thread.
*/
#ifndef LJP_GUEST_PUBLISH_H
#define LJP_GUEST_PUBLISH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lua_State;

/* Where records come from. One for the process; it stays. */
struct ljp_guest_publisher {
  /* By the number of a set of labels; NULL: there is none yet. A record never
  ** changes and is never freed. */
  const void *_Atomic *records;
  /* Records from this number on are asked for again. */
  _Atomic uint32_t known;
  /* Makes the record of a set, if there is none. NULL: out of memory. Keeps errno.
  ** Must not call into the VM. */
  const void *(*make)(uint32_t set);
  /* A VM that publishes is being closed. */
  void (*closed)(void);
};

/* Whether the VM can begin to publish: it needs an entry, and must not be in a
** finalizer. */
enum ljp_guest_publishable {
  LJP_PUBLISHABLE,
  LJP_PUBLISHABLE_NO_ENTRY,
  LJP_PUBLISHABLE_FINALIZER
};
enum ljp_guest_publishable ljp_guest_can_publish(struct lua_State *L);
bool ljp_guest_publishes(struct lua_State *L);

/* From now on the VM publishes, or no longer. All functions coroutine.resume and
** coroutine.wrap of the VM, and all that coroutine.wrap has made, are changed in
** place; the time for that grows with the heap. If there are any, the VM's compiled
** code is freed. Calling it again changes those that came later. */
void ljp_guest_publish(struct lua_State *L,
                       const struct ljp_guest_publisher *publisher);
void ljp_guest_unpublish(struct lua_State *L);

/* What this thread publishes. NULL: nothing. */
const void *ljp_guest_published(void);

/* VMs that publish. Others read it, too. */
extern _Atomic uint32_t ljp_publishing;

/* The labels of L have changed. */
void ljp_guest_publish_change(struct lua_State *L);

/* lua_close() begins. Finalizers will still run. */
void ljp_guest_publish_closing(struct lua_State *L);

#endif
