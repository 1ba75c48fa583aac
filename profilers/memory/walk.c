/*
** The full walk of an allocation's stack. Parts are learned from such walks and
** checked against them. See stack.h.
*/
#include "profilers/memory/return_site.h"

#include <errno.h>

#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/push/producer.h"

/* How long to wait for the writer, how often to look whether it has come, and how
** long to do without it if it has not. */
enum { AWAIT_NS = 5000000, AWAIT_LOOK_NS = 50000, AWAIT_AGAIN_NS = 1000000000 };

/* A walk through that map found code without a table. The code may have been loaded a
** moment ago: with some C libraries, steps cannot find it before the writer has
** looked. Asks the writer to look now. True: there is another map. The writer may be
** unable to look, as when the code allocates while the loader's lock is held. */
static __attribute__((noinline)) bool stacks_await_map(struct ljp_stacks *s,
                                                       uint64_t serial)
{
  _Atomic uint32_t nobody = 0;
  uint64_t now = ljp_clock_ns(), end = now + AWAIT_NS;
  if (ljp_unwind_finds_new(s->unwind) || now < s->await_again_ns)
    return false;
  ljp_producer_wake(s->producer);
  while (now < end && ljp_producer_active(s->producer)) {
    /* acquire: pairs with the publication of the map. */
    if (atomic_load_explicit(s->serial, memory_order_acquire) != serial)
      return true;
    ljp_futex_wait(&nobody, 0, AWAIT_LOOK_NS);
    now = ljp_clock_ns();
  }
  s->await_again_ns = now + AWAIT_AGAIN_NS;
  return false;
}

static enum ljp_cut stacks_walk(struct ljp_stacks *s,
                                const struct ljp_caller *caller,
                                struct ljp_found_stack *found)
{
  struct ljp_regs regs;
  struct ljp_walk walk = {.stack = {.cut = LJP_CUT_ABORTED}};
  const struct ljp_unwind_map *map = ljp_unwind_acquire(s->unwind);
  uint64_t askers[LJP_FRONT_FRAMES];
  unsigned n = 0;
  ljp_caller_registers(caller, &regs);
  regs.room = &s->room;
  if (map) {
    /* A Lua stack that is about to be moved is still where it was. */
    bool resizing = ljp_guest_set_resizing(s->heap, false);
    if (ljp_walk_memo(&walk, map, &regs, s->frames, s->depth, &s->memo) !=
        LJP_WALK_DONE)
      walk.stack.cut = LJP_CUT_RESIZE;
    if (resizing)
      ljp_guest_set_resizing(s->heap, true);
    ljp_unwind_release(s->unwind, map);
  }
  uint32_t count = walk.stack.count, kept = 0, i = 0;
  for (; i < count && n < LJP_FRONT_FRAMES &&
         ljp_frame_kind(s->frames[i]) == LJP_FRAME_HOST;
       i++)
    askers[n++] = ljp_frame_payload(s->frames[i]);
  found->type = (uint8_t)ljp_guest_mem_type(askers, n, &found->object);
  found->top = LJP_VMSTATE_UNKNOWN;
  for (i = 0; i < count; i++) {
    if (found->top == LJP_VMSTATE_UNKNOWN)
      found->top = (uint8_t)ljp_stacks_state(s->frames[i]);
    if (s->native || ljp_guest_is_frame(s->frames[i]))
      s->frames[kept++] = s->frames[i];
  }
  if (walk.stack.cut) {
    if (kept == LJP_STACK_MAX_FRAMES) /* an event has no room for more frames */
      kept--;
    s->frames[kept++] = ljp_frame(LJP_FRAME_CUT, 0, walk.stack.cut);
    s->cut++;
  }
  found->frames = s->frames;
  found->count = kept;
  found->number = 0;
  found->root_first = false;
  s->last = NULL;
  return walk.stack.cut;
}

void ljp_stacks_walk_from(struct ljp_stacks *s, const struct ljp_caller *caller,
                          struct ljp_found_stack *found)
{
  int *error = &errno, saved = *error;
  uint64_t serial = atomic_load_explicit(s->serial, memory_order_relaxed);
  enum ljp_cut cut = stacks_walk(s, caller, found);
  if (LJP_UNLIKELY(cut == LJP_CUT_NO_TABLE) && stacks_await_map(s, serial)) {
    s->cut--;
    stacks_walk(s, caller, found);
  }
  *error = saved;
}
