/*
** The recorder's entries: the functions that the VM calls as its allocator.
** They are assembly, because both of their jobs are beyond C: to store the
** caller's registers as the caller left them, so that a walk can start there
** (struct ljp_caller), and to bypass the recorder at almost no cost. They stand
** between the VM and record.c.
*/
#ifndef LJP_MEMORY_ENTRY_H
#define LJP_MEMORY_ENTRY_H

#include "profilers/memory/record.h"

/* The two halves of LuaJIT's own allocator, for VMs that use it. */
__attribute__((visibility("hidden"))) void *lj_alloc_malloc(void *ud,
                                                            size_t size);
__attribute__((visibility("hidden"))) void *lj_alloc_free(void *ud, void *ptr);

/* The lua_Alloc of a session that records every event. Frees go to
** ljp_recorder_swept() and, if that recorded them, on to the allocator below.
** New blocks go to r->fresh, and all other calls to ljp_recorder_every(). */
__attribute__((visibility("hidden"))) void *
ljp_every_hook(void *ud, void *ptr, size_t osize, size_t nsize);

/* The lua_Alloc of a sampled session on a host's own allocator. An allocation
** counts down to the next sample; a block that is freed is looked up in the
** filters of the tracked blocks, and one that moves in the first of them. Nearly all
** calls go straight on to the allocator below. The recorder gets the rest, and failed
** allocations (by ljp_recorder_sampled() with `failed`). */
__attribute__((visibility("hidden"))) void *
ljp_sampled_hook(void *ud, void *ptr, size_t osize, size_t nsize);

/* The same for LuaJIT's own allocator, whose ud it keeps. The recorder is in
** ljp_own, and a tracked block has a flag. New blocks and frees go straight on to
** that allocator's two halves. If the allocator refuses such a new block, it calls
** ljp_sampled_refused() itself; nb: the size of the block that it tried to make.
** Reallocations go to the whole allocator, and the recorder gets only those that
** are sampled, of a tracked block, or refused. Calls that a host makes with this
** function after the session, or for another VM, are passed on as well, by
** ljp_sampled_late() where they would be recorded. */
__attribute__((visibility("hidden"))) void *
ljp_sampled_own_hook(void *ud, void *ptr, size_t osize, size_t nsize);
__attribute__((visibility("hidden"))) void ljp_sampled_refused(void *ud,
                                                               size_t nb);

/* A call by someone other than the session's VM. */
__attribute__((visibility("hidden"))) void *
ljp_sampled_late(void *ud, void *ptr, size_t osize, size_t nsize);

/* Called by the entries. ljp_recorder_swept() gets every free first, just
** before the block is freed, and pushes the event of a sweep in the shortest
** way there is. False: it has pushed nothing. */
__attribute__((visibility("hidden"))) bool
ljp_recorder_swept(struct ljp_recorder *r, void *ptr, size_t osize,
                   size_t nsize, const struct ljp_caller *caller);
/* Allocates a new block from LuaJIT's own allocator. */
__attribute__((visibility("hidden"))) void *
ljp_recorder_fresh(struct ljp_recorder *r, void *ptr, size_t osize,
                   size_t nsize, const struct ljp_caller *caller);
/* Handles any call. */
__attribute__((visibility("hidden"))) void *
ljp_recorder_every(struct ljp_recorder *r, void *ptr, size_t osize,
                   size_t nsize, const struct ljp_caller *caller);
__attribute__((visibility("hidden"))) void *
ljp_recorder_sampled(struct ljp_recorder *r, void *ptr, size_t osize,
                     size_t nsize, const struct ljp_caller *caller,
                     bool failed);

#endif
