/*
** Finds the stack of an allocation: as an answer (answers.h), or else from
** three parts, or else by a full walk. See stack.h and RFC 3, "Again and
** again".
**
** The parts are the host frames on top, from the allocator to where the guest
** called into C (return_site.h); the topmost segment of Lua frames, of which
** only what has changed is walked (ljp_spine_follow()); and the frames below
** its C frame, whose words of memory are compared (below.h).
*/
#include "profilers/memory/answers.h"
#include "profilers/memory/below.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

bool ljp_stacks_init(struct ljp_stacks *s)
{
  const char *check = getenv("LJPROF_MEMPROF_CHECK");
  s->check = check && strcmp(check, "1") == 0;
  s->epoch = 1;
  s->serial = ljp_unwind_serial(s->unwind);
  return ljp_front_init(s) && ljp_segments_init(s) && ljp_answers_init(s);
}

void ljp_stacks_fini(struct ljp_stacks *s)
{
  ljp_front_fini(s);
  ljp_segments_fini(s);
  ljp_answers_fini(s);
}

static __attribute__((noinline)) void stacks_new_epoch(struct ljp_stacks *s)
{
  s->last = NULL;
  if (++s->epoch == 0) { /* wrapped around: forget what the first epochs left */
    ljp_front_forget(s);
    ljp_segments_forget(s);
    ljp_answers_forget(s);
    s->epoch = 1;
  }
}

void ljp_stacks_renew(struct ljp_stacks *s)
{
  stacks_new_epoch(s);
  s->memo.valid = false;
  s->memo.pause = 0;
  s->cut = s->remembered = s->learned = s->checked = s->differed = 0;
}

void ljp_stacks_forked(struct ljp_stacks *s)
{
  stacks_new_epoch(s);
}

static inline void stacks_check_generations(struct ljp_stacks *s)
{
  if (LJP_LIKELY(ljp_stacks_current(s)))
    return;
  s->generation[0] = atomic_load_explicit(s->serial, memory_order_relaxed);
  s->generation[1] = ljp_guest_code_generation();
  stacks_new_epoch(s);
}

/* -- The answer ------------------------------------------------------------ */

/* Makes the stack from the segment's spine and the frames on top of it. */
static inline bool stacks_give(struct ljp_stacks *s, struct ljp_segment *a,
                               const struct ljp_return_site *site,
                               uint32_t kept, struct ljp_found_stack *found)
{
  struct ljp_top top;
  ljp_front_top(s, site, &top);
  uint64_t *stack = a->spine.stack;
  uint32_t count = a->spine.frames;
  if (LJP_UNLIKELY(count + top.count > s->depth))
    return false;
  for (uint32_t n = 0; n < top.count; n++)
    stack[count++] = top.frame[n];
  found->frames = stack;
  found->count = count;
  found->same = LJP_LIKELY(s->last == a) ? kept : 0;
  found->number = 0;
  found->root_first = true;
  found->top = LJP_VMSTATE_UNKNOWN;
  while (count-- > 0 && found->top == LJP_VMSTATE_UNKNOWN)
    found->top = (uint8_t)ljp_stacks_state(stack[count]);
  a->hits += a->learned;
  s->last = a;
  s->remembered++;
  return true;
}

/* Asks a full walk for a second opinion on found->frames, which is root
** first. */
void ljp_stacks_check(struct ljp_stacks *s, const struct ljp_caller *caller,
                      const struct ljp_found_stack *found)
{
  struct ljp_found_stack walked;
  struct ljp_segment *last = s->last;
  s->memo.valid = false;
  s->memo.pause = 0;
  ljp_stacks_walk_from(s, caller, &walked);
  bool equal = walked.count == found->count && walked.type == found->type &&
               walked.object == found->object && walked.top == found->top;
  for (uint32_t i = 0; equal && i < walked.count; i++)
    equal = walked.frames[i] == found->frames[walked.count - 1 - i];
  s->last = last;
  s->checked++;
  s->differed += !equal;
}

/* Our module, the program and libc are never unloaded while we run. Any address
** in one of them leads to its witness. */
static void stacks_find_witnesses(struct ljp_stacks *s, uint64_t rip)
{
  const struct ljp_unwind_map *map = ljp_unwind_acquire(s->unwind);
  if (!map)
    return;
  s->own = ljp_unwind_witness_of(map, rip);
  s->program = ljp_unwind_witness_of(map, getauxval(AT_ENTRY));
  s->libc = ljp_unwind_witness_of(map, (uint64_t)(uintptr_t)&getauxval);
  ljp_unwind_release(s->unwind, map);
}

void ljp_stacks_put_together(struct ljp_stacks *s,
                             const struct ljp_caller *caller,
                             struct ljp_found_stack *found)
{
  struct ljp_guest_regs regs;
  struct ljp_guest_start start;
  stacks_check_generations(s);
  if (LJP_UNLIKELY(!s->own))
    stacks_find_witnesses(s, (uint64_t)(uintptr_t)__builtin_return_address(0));
  const struct ljp_return_site *site = ljp_front_find(s, caller, &regs, found);
  if (!site || !ljp_guest_start_at(s->heap, &site->in_guest, &regs, &start)) {
    ljp_stacks_walk_from(s, caller, found);
    return;
  }
  struct ljp_segment *a = s->last;
  if (LJP_UNLIKELY(!a || a->L != start.L || a->cframe != start.cframe))
    a = ljp_below_segment(s, &start);
  if (LJP_UNLIKELY(!a))
    a = ljp_below_begin(s, &start);
  uint32_t kept;
  if (LJP_LIKELY(a && ljp_below_find(s, a, &start, &kept) &&
                 stacks_give(s, a, site, kept, found))) {
    if (LJP_UNLIKELY(s->answers->met))
      ljp_answers_meet(s, caller, site, &regs, &start, a, found);
    if (LJP_UNLIKELY(s->check))
      ljp_stacks_check(s, caller, found);
    return;
  }
  uint64_t cuts = s->cut;
  ljp_stacks_walk_from(s, caller, found);
  if (s->cut == cuts) {
    int *error = &errno, saved = *error;
    ljp_below_learn(s, a, site, &start, found);
    *error = saved;
  }
}

void ljp_stacks_find(struct ljp_stacks *s, const struct ljp_caller *caller,
                     struct ljp_found_stack *found)
{
  if (!ljp_answers_find(s, caller, found))
    ljp_stacks_put_together(s, caller, found);
}
