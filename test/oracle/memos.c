/*
** Memos in the oracle; see memos.h.
**
** Changed words: at some instructions the test fills a memo. Then it changes
** the words of the machine's stack, of two Lua stacks and of the functions on
** them, one at a time, and walks with and without the memo. A read that is not
** noted shows as a difference.
**
** Limits: the same walks with few frames allowed, so that they are cut, and
** with a limit that changes under one memo.
*/
#define LUA_CORE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "lj_obj.h"

#include "test/oracle/memos.h"

enum {
  FRAMES = 8192,
  MEMOS = 5,
  MUTATE_EVERY = 4001,
  WORDS = 1500,
  CHANGED_LIMIT = 17
};
static const uint64_t every[MEMOS] = {1, 7, 101, 1009, 20011};

static struct ljp_memo *memos; /* MEMOS + 1 of them */
static lua_State *main_thread;
static bool is_verbose;
static uint64_t walks, capped, wrong, mutations, told[3];
static uint64_t plain[FRAMES], frames[FRAMES];
static uint32_t changed_limit; /* of frames, while words are changed */

static bool memos_agree(const struct ljp_walk *a, enum ljp_walk_result first,
                        const struct ljp_walk *b, enum ljp_walk_result second)
{
  return first == second && a->stack.count == b->stack.count &&
         a->stack.cut == b->stack.cut && a->guest.vm == b->guest.vm &&
         a->guest.state == b->guest.state &&
         !memcmp(a->stack.frames, b->stack.frames,
                 a->stack.count * sizeof *frames);
}

static void memos_differ(const char *what, uint64_t which,
                         const struct ljp_walk *a, const struct ljp_walk *b)
{
  wrong++;
  if (!is_verbose || wrong > 8)
    return;
  uint32_t at = 0;
  while (at < a->stack.count && at < b->stack.count &&
         a->stack.frames[at] == b->stack.frames[at])
    at++;
  fprintf(stderr,
          "memo (%s %#lx): frames %u %u, first that differ %u: %#lx %#lx, cut "
          "%d %d, vm %u %u, state %d %d\n",
          what, (long)which, a->stack.count, b->stack.count, at,
          (long)a->stack.frames[at], (long)b->stack.frames[at], a->stack.cut,
          b->stack.cut, a->guest.vm, b->guest.vm, a->guest.state,
          b->guest.state);
}

/* -- One changed word ------------------------------------------------------ */

static void memos_walk_both(const struct ljp_unwind_map *map,
                            const void *context, const char *what,
                            uint64_t *word)
{
  struct ljp_memo *memo = &memos[MEMOS];
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  struct ljp_walk without, with;
  ljp_regs_from_context(&regs, context, &room);
  enum ljp_walk_result first =
      ljp_walk(&without, map, &regs, plain, changed_limit);
  ljp_regs_from_context(&regs, context, &room);
  enum ljp_walk_result second =
      ljp_walk_memo(&with, map, &regs, frames, changed_limit, memo);
  mutations++;
  if (!memos_agree(&without, first, &with, second))
    memos_differ(what, (uint64_t)(uintptr_t)word, &without, &with);
  /* The memo's contents are to be used again. */
  memo->stale = false;
  memo->pause = memo->longer = 0;
}

static void memos_change(const struct ljp_unwind_map *map, const void *context,
                         const char *what, uint64_t *word)
{
  uint64_t old = *word;
  const uint64_t other[] = {old ^ 0x10, old - 8, word[1], word[-1], 0};
  for (unsigned i = 0; i < sizeof other / sizeof *other; i++) {
    if (other[i] == old)
      continue;
    *word = other[i];
    memos_walk_both(map, context, what, word);
    *word = old;
  }
}

static void memos_change_lua(const struct ljp_unwind_map *map,
                             const void *context, lua_State *L)
{
  TValue *slot = tvref(L->stack), *top = L->top + 8;
  for (int i = 0; slot < top && i < WORDS; slot++, i++) {
    memos_change(map, context, "Lua stack", &slot->u64);
    if (!tvisfunc(slot))
      continue;
    uint64_t *object = (uint64_t *)(void *)funcV(slot);
    for (int k = 1; k < 5; k++)
      memos_change(map, context, "function", &object[k]);
  }
  for (uint64_t *word = (uint64_t *)(void *)L + 1; word < (uint64_t *)(L + 1);
       word++)
    memos_change(map, context, "Lua thread", word);
}

static void memos_change_all(const struct ljp_unwind_map *map,
                             const void *context, uint32_t limit)
{
  struct ljp_memo *memo = &memos[MEMOS];
  const ucontext_t *uc = context;
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  struct ljp_walk walk;
  memo->valid = memo->stale = false;
  memo->pause = 0;
  changed_limit = limit;
  ljp_regs_from_context(&regs, context, &room);
  ljp_walk_memo(&walk, map, &regs, frames, limit, memo);
  if (!memo->valid)
    return;
  uint64_t *word = (uint64_t *)uc->uc_mcontext.gregs[REG_RSP];
  uint64_t *end = (uint64_t *)(uintptr_t)memo->point[memo->points - 1].sp;
  for (int i = 0; word < end && i < WORDS; word++, i++)
    memos_change(map, context, "stack", word);
  lua_State *current = (lua_State *)(uintptr_t)gcrefu(G(main_thread)->cur_L);
  memos_change_lua(map, context, main_thread);
  if (current && current != main_thread)
    memos_change_lua(map, context, current);
}

/* -- Limits ---------------------------------------------------------------- */

enum { LIMITS = 3 };
static const uint64_t every_limit[LIMITS] = {3, 11, 13};
static struct ljp_memo *limited;

/* 5, 13 or 21 frames; for the last memo any number up to 29. */
static uint32_t memos_limit_at(int i, uint64_t step)
{
  return i < 2 ? 5 + 8 * (uint32_t)i + 8 * (uint32_t)(step / 6007 % 2)
               : 1 + (uint32_t)(step * 2654435761u >> 7) % 29;
}

static void memos_check_limits(uint64_t step, const struct ljp_unwind_map *map,
                               const void *context)
{
  for (int i = 0; i < LIMITS; i++) {
    struct ljp_unwind_room room;
    struct ljp_regs regs;
    struct ljp_walk without, with;
    uint32_t limit = memos_limit_at(i, step);
    if (step % every_limit[i])
      continue;
    ljp_regs_from_context(&regs, context, &room);
    enum ljp_walk_result first = ljp_walk(&without, map, &regs, plain, limit);
    ljp_regs_from_context(&regs, context, &room);
    enum ljp_walk_result second =
        ljp_walk_memo(&with, map, &regs, frames, limit, &limited[i]);
    capped += limited[i].met && with.stack.cut == LJP_CUT_DEPTH;
    if (!memos_agree(&without, first, &with, second))
      memos_differ("limit", limit, &without, &with);
  }
}

/* -- What the oracle calls ------------------------------------------------- */

bool memos_init(lua_State *L, bool verbose)
{
  main_thread = L;
  is_verbose = verbose;
  memos = calloc(MEMOS + 1, sizeof *memos);
  limited = calloc(LIMITS, sizeof *limited);
  return memos && limited;
}

void memos_check(uint64_t step, const struct ljp_unwind_map *map,
                 const void *context, const struct ljp_walk *walk,
                 enum ljp_walk_result result)
{
  for (int i = 0; i < MEMOS; i++) {
    struct ljp_unwind_room room;
    struct ljp_regs regs;
    struct ljp_walk again;
    if (step % every[i])
      continue;
    ljp_regs_from_context(&regs, context, &room);
    enum ljp_walk_result second =
        ljp_walk_memo(&again, map, &regs, frames, FRAMES, &memos[i]);
    walks++;
    if (!memos_agree(walk, result, &again, second))
      memos_differ("every", every[i], walk, &again);
  }
  memos_check_limits(step, map, context);
  if (step % MUTATE_EVERY == 0 && result == LJP_WALK_DONE) {
    memos_change_all(map, context, FRAMES);
    memos_change_all(map, context, CHANGED_LIMIT);
  }
}

uint64_t memos_report(void)
{
  for (int i = 0; i < MEMOS; i++) {
    told[0] += memos[i].matches;
    told[1] += memos[i].records;
    told[2] += memos[i].changed;
  }
  printf("memo: walks %lu, rest known %lu, recorded %lu, found changed %lu; "
         "at a limit %lu; words changed %lu, noticed %lu; differences %lu\n",
         (long)walks, (long)told[0], (long)told[1], (long)told[2], (long)capped,
         (long)mutations, (long)memos[MEMOS].changed, (long)wrong);
  return wrong;
}
