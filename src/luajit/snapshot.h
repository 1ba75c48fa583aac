/*
** The walk over a VM's heap for a snapshot: every object, every byte that the
** VM counts, every reference. It only reads: no object is made, marked or
** moved, whatever phase the collector is in. It neither allocates nor recurses,
** so it may run in a copy of the process.
**
** On the VM's own thread in ordinary code, or in a copy that this thread has
** made.
*/
#ifndef LJP_GUEST_SNAPSHOT_H
#define LJP_GUEST_SNAPSHOT_H

#include "src/base/heap_out.h"

struct lua_State;

void ljp_guest_snapshot_head(struct lua_State *L, struct ljp_heap_head *head);

/* Calls out for each object. false: out has refused a call. */
bool ljp_guest_snapshot(struct lua_State *L, struct ljp_heap_out *out);

/* Of the VM that L belongs to: its main thread; the thread that runs. */
struct lua_State *ljp_guest_main(struct lua_State *L);
struct lua_State *ljp_guest_running(struct lua_State *L);

/* Does the VM run compiled code? */
bool ljp_guest_compiled(struct lua_State *L);

/* Has the VM called a C function, or does nothing run in it? Then all threads
** are consistent. On the VM's own thread; on another one "no" is right, too. */
bool ljp_guest_settled(struct lua_State *L);

#endif
