/*
** The stacks of a VM's allocations. A program allocates at the same places
** again and again, so most stacks are found with the help of what earlier ones
** have left behind. Used by the recorder, on the VM's own thread and inside its
** allocator.
**
** Invariant: a remembered stack is the one that a full walk would find. Each
** word on which it depends is compared, or is pinned by a word that is (RFC 3).
** With LJPROF_MEMPROF_CHECK=1 in the environment, each of them is compared with
** a full walk.
*/
#ifndef LJP_MEMORY_STACK_H
#define LJP_MEMORY_STACK_H

#include <stdatomic.h>
#include <sys/mman.h>

#include "profilers/session/caller.h"
#include "profilers/unwind/walk.h"
#include "src/luajit/heap.h"

/* The most host frames that are followed, and that are asked what memory is
** for. */
enum { LJP_FRONT_FRAMES = 8 };

/* The most segments that are put together, and the most host frames between
** two of them. */
enum { LJP_BELOW_DEEP = 4, LJP_BELOW_FRAMES = 32 };

struct ljp_return_site;
struct ljp_front;
struct ljp_segment;
struct ljp_segments;
struct ljp_answers;
struct ljp_producer;

/* A stack. frames: leaf first after a full walk, otherwise root first. */
struct ljp_found_stack {
  const uint64_t *frames;
  uint32_t count;
  uint32_t same;  /* root first: how many of the first frames equal those of the
                  ** stack that was put together last, if that was pushed */
  uint8_t number; /* by which the writer knows the stack; 0: unknown to it */
  bool root_first;
  bool object;  /* memory for a whole object, which has its type in it */
  uint8_t type; /* enum ljp_mem_type */
  uint8_t top;  /* enum ljp_vmstate, according to the frame on top */
};

/* Not every stack is worth learning: each time one was not, learning pauses,
** and each pause is twice as long as the one before. */
struct ljp_patience {
  uint32_t pause, longer;
};

struct ljp_stacks {
  struct ljp_unwind *unwind;
  const _Atomic uint64_t *serial; /* of its map */
  const struct ljp_guest_heap *heap;
  uint32_t depth;
  bool native, check;
  struct ljp_return_site *sites; /* where host code returns to */
  struct ljp_front *fronts;      /* ways down that were taken */
  const struct ljp_front *front; /* the one taken last, if it was a known one */
  uint64_t own, program, libc; /* these modules' witnesses; 0: not known yet */
  struct ljp_segments *segments; /* with the frames below them */
  struct ljp_segment *last;      /* of the last stack that was put together */
  uint64_t generation[2];
  struct ljp_answers *answers;
  struct ljp_producer *producer; /* of the events that have these stacks */
  uint32_t epoch, next_front, next_site;
  struct ljp_patience patience;
  uint64_t await_again_ns; /* walk.c: no wait for a new map before */
  uint64_t cut, remembered, learned, checked, differed;
  uint32_t hosts; /* with native: host frames of the way found last, */
  uint64_t host[LJP_FRONT_FRAMES]; /* leaf first */
  /* Here rather than on the stack, which may be a coroutine's. */
  struct ljp_below_room {
    uint64_t host[LJP_BELOW_FRAMES], between[1 + LJP_BELOW_FRAMES];
  } below[LJP_BELOW_DEEP];
  struct ljp_unwind_room room;
  struct ljp_memo memo;
  uint64_t frames[LJP_STACK_MAX_FRAMES + 1];
  uint64_t scratch[LJP_STACK_MAX_FRAMES];
};

/* False: out of memory. The caller has set or zeroed the other fields of
** *stacks. */
bool ljp_stacks_init(struct ljp_stacks *stacks);
void ljp_stacks_fini(struct ljp_stacks *stacks);

/* Zeroed pages, which cost no memory until they are used. NULL: out of
** memory. */
static inline void *ljp_stacks_pages(size_t bytes)
{
  void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages != MAP_FAILED ? pages : NULL;
}

static inline void ljp_stacks_free_pages(void *pages, size_t bytes)
{
  if (pages)
    munmap(pages, bytes);
}

/* For another VM: forgets what it remembers and counts. */
void ljp_stacks_renew(struct ljp_stacks *stacks);

/* In a child of fork(), which has a writer of its own. */
void ljp_stacks_forked(struct ljp_stacks *stacks);

/* Finds the stack from the registers of the allocator's caller. */
void ljp_stacks_find(struct ljp_stacks *stacks, const struct ljp_caller *caller,
                     struct ljp_found_stack *found);

/* The VM state that a frame implies; UNKNOWN: none. */
static inline enum ljp_vmstate ljp_stacks_state(uint64_t frame)
{
  switch (ljp_frame_kind(frame)) {
  case LJP_FRAME_LUA:
  case LJP_FRAME_LUA_INLINED:
    return LJP_VMSTATE_INTERP;
  case LJP_FRAME_BUILTIN:
    return LJP_VMSTATE_BUILTIN;
  case LJP_FRAME_CFUNC:
    return LJP_VMSTATE_C;
  default:
    return LJP_VMSTATE_UNKNOWN;
  }
}

/* The same, but does not look for an answer. */
void ljp_stacks_put_together(struct ljp_stacks *stacks,
                             const struct ljp_caller *caller,
                             struct ljp_found_stack *found);

/* Compares a found stack with a full walk, and counts the result. */
void ljp_stacks_check(struct ljp_stacks *stacks,
                      const struct ljp_caller *caller,
                      const struct ljp_found_stack *found);

/* Finds the stack by a full walk. */
void ljp_stacks_walk_from(struct ljp_stacks *stacks,
                          const struct ljp_caller *caller,
                          struct ljp_found_stack *found);

#endif
