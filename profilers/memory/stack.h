/*
** The stacks of a VM's allocations. A program allocates at the same places
** again and again, so most stacks are found from what earlier ones have left
** behind. For the recorder, on the VM's own thread and inside of its allocator.
**
** Invariant: a stack that is found from memory is what a full walk would find.
** Each word that it depends on is compared, or is pinned by a word that is (RFC
** 3). LJPROF_MEMPROF_CHECK=1 in the environment compares each of them with a
** full walk.
*/
#ifndef LJP_MEMORY_STACK_H
#define LJP_MEMORY_STACK_H

#include <stdatomic.h>

#include "profilers/session/caller.h"
#include "profilers/unwind/walk.h"
#include "src/luajit/heap.h"

/* Host frames that are followed at most; so many are asked what memory is
** for. */
enum { LJP_FRONT_FRAMES = 8 };

struct ljp_return_site;
struct ljp_front;
struct ljp_segment;
struct ljp_segments;
struct ljp_answers;
struct ljp_producer;

/* The answer. frames: leaf first after a full walk; else root first. */
struct ljp_found_stack {
  const uint64_t *frames;
  uint32_t count;
  uint32_t same;  /* root first: the first frames are those of the last stack
                 ** that was put together, this many, if that was pushed */
  uint8_t number; /* by which the writer knows the stack; 0: it does not */
  bool root_first;
  bool object;  /* memory for a whole object, which tells its type itself */
  uint8_t type; /* enum ljp_mem_type */
  uint8_t top;  /* enum ljp_vmstate by the frame on top */
};

/* Not every stack is worth being learned: after one that was not, a pause,
** twice as long each time. */
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
  const struct ljp_front *front; /* the last one, if it was known */
  uint64_t own, program, libc; /* these modules' witnesses; 0: not known yet */
  struct ljp_segments *segments; /* with what is below them */
  struct ljp_segment *last;      /* of the last answer */
  uint64_t generation[2];
  struct ljp_answers *answers;
  struct ljp_producer *producer; /* of the events with these stacks */
  uint32_t epoch, next_front, next_site;
  struct ljp_patience patience;
  uint64_t cut, remembered, learned, checked, differed;
  uint32_t hosts; /* with native, of the way down that was found last: */
  uint64_t host[LJP_FRONT_FRAMES]; /* leaf first, as frames */
  struct ljp_memo memo;
  uint64_t frames[LJP_STACK_MAX_FRAMES + 1];
  uint64_t scratch[LJP_STACK_MAX_FRAMES];
};

/* False: no memory. The rest of *stacks has been filled in, or is zero. */
bool ljp_stacks_init(struct ljp_stacks *stacks);
void ljp_stacks_fini(struct ljp_stacks *stacks);

/* In a child of fork(), which has a writer of its own. */
void ljp_stacks_forked(struct ljp_stacks *stacks);

/* From the registers of the caller of the allocator. */
void ljp_stacks_find(struct ljp_stacks *stacks, const struct ljp_caller *caller,
                     struct ljp_found_stack *found);

/* What a frame says of the VM's state; UNKNOWN: nothing. */
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

/* The same without asking the answers. */
void ljp_stacks_put_together(struct ljp_stacks *stacks,
                             const struct ljp_caller *caller,
                             struct ljp_found_stack *found);

/* Compares an answer with a full walk, and counts. */
void ljp_stacks_check(struct ljp_stacks *stacks,
                      const struct ljp_caller *caller,
                      const struct ljp_found_stack *found);

/* The same, by a full walk. */
void ljp_stacks_walk_from(struct ljp_stacks *stacks,
                          const struct ljp_caller *caller,
                          struct ljp_found_stack *found);

#endif
