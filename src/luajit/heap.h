/*
** The heap: what a VM says of its memory, its collector and its allocator. On
** the VM's own thread, in ordinary code.
*/
#ifndef LJP_GUEST_HEAP_H
#define LJP_GUEST_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/format.h"

/* Where a VM tells of its heap; valid as long as the VM. To be asked on the
** VM's own thread. */
struct ljp_guest_heap {
  struct lua_State *main; /* its main thread */
  uint64_t g;
  const uint8_t *gc_phase; /* enum ljp_gc_phase, of now */
  const uint64_t *bytes;   /* in use, as collectgarbage("count") counts them */
  const uint64_t *gc_step; /* changes with each step of the collector */
  const int32_t *vmstate;  /* as ljp_guest_heap_state() reads it */
};

/* False: the VM is not known. */
bool ljp_guest_heap(struct lua_State *L, struct ljp_guest_heap *heap);

static inline uint64_t ljp_guest_heap_bytes(const struct ljp_guest_heap *heap)
{
  return *heap->bytes;
}

static inline enum ljp_gc_phase
ljp_guest_gc_phase(const struct ljp_guest_heap *heap)
{
  uint8_t phase = *heap->gc_phase;
  return (enum ljp_gc_phase)phase;
}

/* Is LuaJIT's own allocator that of the VM, with nothing in between? Then
** the memory profiler may go on to lj_alloc_malloc(ud, size) and
** lj_alloc_free(ud, ptr) by itself; ptr is not NULL. */
bool ljp_guest_owns_allocator(const struct ljp_guest_heap *heap);

/* A bit of the word before a block of LuaJIT's own allocator, which has no use for
** it: set by the memory profiler, lost when the allocator writes that word anew (the
** block is freed, or resized). On the VM's thread, while the block lives. */
enum { LJP_GUEST_BLOCK_FLAG = 4 };
static inline bool ljp_guest_block_flag(const void *block)
{
  return ((const size_t *)block)[-1] & LJP_GUEST_BLOCK_FLAG;
}
static inline void ljp_guest_set_block_flag(void *block, bool set)
{
  size_t *head = (size_t *)block - 1;
  *head = set ? *head | LJP_GUEST_BLOCK_FLAG
              : *head & ~(size_t)LJP_GUEST_BLOCK_FLAG;
}

/* Called when LuaJIT's own allocator gets no more memory from the system; ud: of
** which VM's; nb: for a block of that size, all told. One listener a process, set
** and taken away (ud NULL) on that VM's thread, or when it does nothing. */
void ljp_guest_listen_refused(void *ud, void (*refused)(void *ctx, size_t nb),
                              void *ctx);

/* What the VM does now, as far as it says so itself. */
extern const uint8_t ljp_guest_states[16];
static inline enum ljp_vmstate
ljp_guest_heap_state(const struct ljp_guest_heap *heap)
{
  int32_t state = *heap->vmstate; /* a trace's number, or ~ of a state */
  return state >= 0 ? LJP_VMSTATE_TRACE
                    : (enum ljp_vmstate)ljp_guest_states[~state & 15];
}

/* The same, when it is the collector. */
enum { LJP_GUEST_COLLECTS = -3 };
static inline bool ljp_guest_heap_collects(const struct ljp_guest_heap *heap)
{
  return *heap->vmstate == LJP_GUEST_COLLECTS;
}

/* While a stack is being moved no walk is possible, except before its memory
** has been moved, which only the allocator knows. Returns what it was. */
bool ljp_guest_set_resizing(const struct ljp_guest_heap *heap, bool resizing);

enum { LJP_GUEST_OBJECT_TAG_AT = 9, LJP_GUEST_OBJECT_TAGS = 13 };
extern const uint8_t ljp_guest_object_types[LJP_GUEST_OBJECT_TAGS];

/* What memory is for, by the machine code that asks for it: addresses in it,
** innermost first. *object: it is a whole object, which itself tells its type
** once it has been made (ljp_guest_object_type). */
enum ljp_mem_type ljp_guest_mem_type(const uint64_t *addresses, unsigned count,
                                     bool *object);
static inline enum ljp_mem_type ljp_guest_object_type(uint64_t object)
{
  uint8_t tag = ((const uint8_t *)(uintptr_t)object)[LJP_GUEST_OBJECT_TAG_AT];
  return tag < LJP_GUEST_OBJECT_TAGS
             ? (enum ljp_mem_type)ljp_guest_object_types[tag]
             : LJP_MEM_TYPE_OTHER;
}

/* Array or hash part of a table, by what is in it. */
enum ljp_mem_type ljp_guest_part_type(uint64_t address, uint64_t bytes);

/* Called on the VM's own thread, inside its collector, when that has entered
** another phase; vm: the VM's number, heap_bytes: what it has allocated. Must
** not call into the VM. One listener a process; NULL takes it away. */
void ljp_guest_listen_gc(void (*entered)(uint32_t vm, enum ljp_gc_phase phase,
                                         uint64_t heap_bytes));

#endif
