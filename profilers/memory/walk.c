/*
** The full walk of an allocation's stack. Parts are learned from such walks and
** checked against them. See stack.h.
*/
#include "profilers/memory/return_site.h"

#include <errno.h>

static void stacks_walk(struct ljp_stacks *s, struct ljp_regs *regs,
                        struct ljp_found_stack *found)
{
  struct ljp_walk walk = {.stack = {.cut = LJP_CUT_ABORTED}};
  const struct ljp_unwind_map *map = ljp_unwind_acquire(s->unwind);
  uint64_t askers[LJP_FRONT_FRAMES];
  unsigned n = 0;
  if (map) {
    /* A Lua stack that is about to be moved is still where it was. */
    bool resizing = ljp_guest_set_resizing(s->heap, false);
    if (ljp_walk_memo(&walk, map, regs, s->frames, s->depth, &s->memo) !=
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
}

void ljp_stacks_walk_from(struct ljp_stacks *s, const struct ljp_caller *caller,
                          struct ljp_found_stack *found)
{
  struct ljp_regs regs;
  int *error = &errno, saved = *error;
  ljp_caller_registers(caller, &regs);
  regs.room = &s->room;
  stacks_walk(s, &regs, found);
  *error = saved;
}
