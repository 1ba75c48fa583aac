/*
** The entries of the recorder: what the VM calls as its allocator. Assembly,
** since both need what C cannot say: the registers of the caller as it left
** them, in memory, where a walk may begin (struct ljp_caller); and a way past
** the recorder that costs next to nothing. Between record.c and the VM.
*/
#ifndef LJP_MEMORY_ENTRY_H
#define LJP_MEMORY_ENTRY_H

#include "profilers/memory/record.h"

/* The two halves of LuaJIT's own allocator, where that is the one below. */
__attribute__((visibility("hidden"))) void *lj_alloc_malloc(void *ud,
                                                            size_t size);
__attribute__((visibility("hidden"))) void *lj_alloc_free(void *ud, void *ptr);

/* lua_Alloc of a session that records every event: frees go to
** ljp_recorder_swept() and, if that took them, on to the allocator below; new
** blocks to r->fresh; all else to ljp_recorder_every(). */
__attribute__((visibility("hidden"))) void *
ljp_every_hook(void *ud, void *ptr, size_t osize, size_t nsize);

/* lua_Alloc of a session that samples, on an allocator of the host's: an
** allocation counts down to the next sample, a block that is freed is looked up
** in the filter of those that are tracked; nearly all go on to the allocator
** below from here. The others, blocks that move, and allocations that have failed
** (these by ljp_recorder_sampled() with `failed`) go to the recorder. */
__attribute__((visibility("hidden"))) void *
ljp_sampled_hook(void *ud, void *ptr, size_t osize, size_t nsize);

/* The same for LuaJIT's own allocator, whose two halves it goes on to, and whose
** ud it has; the recorder is that of ljp_own. A block that is freed has a flag if
** it is tracked. What a host does with this function and that ud after the
** session, or in another VM's, goes on by ljp_sampled_late(). When the allocator
** has refused what went by here, it says so itself, by ljp_sampled_refused(); nb:
** of which size it tried to make a block. */
__attribute__((visibility("hidden"))) void *
ljp_sampled_own_hook(void *ud, void *ptr, size_t osize, size_t nsize);
__attribute__((visibility("hidden"))) void ljp_sampled_refused(void *ud,
                                                               size_t nb);

/* Of somebody else than the VM of the session. */
__attribute__((visibility("hidden"))) void *
ljp_sampled_late(void *ud, void *ptr, size_t osize, size_t nsize);

/* Called from there. The first one of each block that is freed: the event of a
** sweep, before the block is freed (nothing comes between), by the shortest way
** there is. False: none was pushed. */
__attribute__((visibility("hidden"))) bool
ljp_recorder_swept(struct ljp_recorder *r, void *ptr, size_t osize,
                   size_t nsize, const struct ljp_caller *caller);
/* Of a new block from LuaJIT's own allocator. */
__attribute__((visibility("hidden"))) void *
ljp_recorder_fresh(struct ljp_recorder *r, void *ptr, size_t osize,
                   size_t nsize, const struct ljp_caller *caller);
/* Of any block. */
__attribute__((visibility("hidden"))) void *
ljp_recorder_every(struct ljp_recorder *r, void *ptr, size_t osize,
                   size_t nsize, const struct ljp_caller *caller);
__attribute__((visibility("hidden"))) void *
ljp_recorder_sampled(struct ljp_recorder *r, void *ptr, size_t osize,
                     size_t nsize, const struct ljp_caller *caller,
                     bool failed);

#endif
