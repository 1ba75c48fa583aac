/*
** The heap: what a VM says about its memory, its collector and its allocator.
** Use on the VM's own thread, in ordinary code.
*/
#ifndef LJP_GUEST_HEAP_H
#define LJP_GUEST_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/format.h"

/* Where a VM keeps the state of its heap. Valid as long as the VM; read it on
** the VM's own thread. */
struct ljp_guest_heap {
  struct lua_State *main; /* its main thread */
  uint64_t g;
  const uint8_t *gc_phase; /* enum ljp_gc_phase */
  const uint64_t *bytes;   /* in use, as collectgarbage("count") counts them */
  const uint64_t *gc_step; /* changes with each step of the collector */
  const int32_t *vmstate;  /* as ljp_guest_heap_state() reads it */
  const uint64_t *running; /* the Lua thread that ran last */
};

/* False: the VM is unknown. */
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

/* The number of the labels of what the VM is doing; 0: none. A thread runs if it has
** a C frame. */
enum { LJP_GUEST_CFRAME_AT = 80, LJP_GUEST_LABELS_AT = 92 };
static inline uint32_t ljp_guest_heap_labels(const struct ljp_guest_heap *heap)
{
  const char *thread = (const char *)(uintptr_t)*heap->running;
  if (!thread || !*(const uint64_t *)(thread + LJP_GUEST_CFRAME_AT))
    return 0;
  return *(const uint32_t *)(thread + LJP_GUEST_LABELS_AT);
}

/* Those of a thread, on its VM's own thread. */
uint32_t ljp_guest_labels(struct lua_State *L);
void ljp_guest_set_labels(struct lua_State *L, uint32_t labels);

/* Does the VM use LuaJIT's own allocator, with nothing in between? Then the
** memory profiler may call lj_alloc_malloc(ud, size) and lj_alloc_free(ud, ptr)
** itself; ptr must not be NULL. */
bool ljp_guest_owns_allocator(const struct ljp_guest_heap *heap);

/* A bit in the word before a block of LuaJIT's own allocator, which does not
** use the bit. The memory profiler sets it; it is lost when the allocator
** rewrites the word (the block is freed or resized). Use on the VM's thread,
** while the block is alive. */
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

/* Sets the function to call when the system refuses memory to LuaJIT's own
** allocator. ud: that of the VM to listen to; nb: the size of the block that
** was wanted, overhead included. One listener a process. Set and remove it (ud
** NULL) on that VM's thread, or while the VM does nothing. */
void ljp_guest_listen_refused(void *ud, void (*refused)(void *ctx, size_t nb),
                              void *ctx);

/* What the VM is doing, according to the VM itself. */
extern const uint8_t ljp_guest_states[16];
static inline enum ljp_vmstate
ljp_guest_heap_state(const struct ljp_guest_heap *heap)
{
  int32_t state = *heap->vmstate; /* a trace's number, or ~state */
  return state >= 0 ? LJP_VMSTATE_TRACE
                    : (enum ljp_vmstate)ljp_guest_states[~state & 15];
}

/* Is the collector running, according to the VM? */
enum { LJP_GUEST_COLLECTS = -3 };
static inline bool ljp_guest_heap_collects(const struct ljp_guest_heap *heap)
{
  return *heap->vmstate == LJP_GUEST_COLLECTS;
}

/* While a Lua stack is being moved, no walk is possible, except before its
** memory has been moved, which only the allocator knows. Returns the previous
** value. */
bool ljp_guest_set_resizing(const struct ljp_guest_heap *heap, bool resizing);

enum { LJP_GUEST_OBJECT_TAG_AT = 9, LJP_GUEST_OBJECT_TAGS = 13 };
extern const uint8_t ljp_guest_object_types[LJP_GUEST_OBJECT_TAGS];

/* What memory is for, according to the machine code that asks for it.
** addresses: those of that code, innermost first. *object: the memory is a
** whole object, which tells its type itself once it is initialised
** (ljp_guest_object_type). */
enum ljp_mem_type ljp_guest_mem_type(const uint64_t *addresses, unsigned count,
                                     bool *object);
static inline enum ljp_mem_type ljp_guest_object_type(uint64_t object)
{
  uint8_t tag = ((const uint8_t *)(uintptr_t)object)[LJP_GUEST_OBJECT_TAG_AT];
  return tag < LJP_GUEST_OBJECT_TAGS
             ? (enum ljp_mem_type)ljp_guest_object_types[tag]
             : LJP_MEM_TYPE_OTHER;
}

/* Is this the array part or the hash part of a table? Decides by its
** contents. */
enum ljp_mem_type ljp_guest_part_type(uint64_t address, uint64_t bytes);

/* Sets the function to call when a VM's collector has entered another phase. It
** runs on the VM's own thread, inside the collector, and must not call into the
** VM. One listener a process; NULL removes it. */
void ljp_guest_listen_gc(void (*entered)(struct lua_State *L));

#endif
