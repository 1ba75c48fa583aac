/*
** The spine: the frames of one segment of a Lua stack as they were the last
** time, and what has become of them since. See src/luajit/spine.h and RFC 3.
**
** Mental picture: a frame's link pins the frame below: its place and, since the
** link of a call is a position in the caller's bytecode, its function and line
** too. So a frame is the same frame if it is reached in the same way, and if
** its link (and the few other words from which it was made) is unchanged. Links
** are compared from the root up, in an array of their own. Then frames are
** walked from the top, by the code of the walk itself, until one is met that is
** unchanged. What a position has told once, it will tell again (struct
** ljp_spine_calls): only the slot is read, to check that it contains a function
** with that code.
**
** Invariants: level[] is in order of BASE, root first. level[i].frames counts
** the frames in stack[] below level i. A position belongs to one prototype
** only, as long as ljp_guest_code_generation() does not change. Runs on the
** VM's own thread, in the allocator, so the VM's words are read without checks.
*/
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/frames/walk.h"
#include "src/luajit/spine.h"

_Static_assert(offsetof(GCfuncC, f) == offsetof(GCfuncL, uvptr),
               "another GCfunc");

static const uint64_t zero;

static const uint64_t *spine_words(uint64_t address)
{
  return (const uint64_t *)(uintptr_t)address;
}

/* The word that tells functions of the same kind apart. */
static uint64_t spine_body(const GCfunc *fn)
{
  return isluafunc(fn) ? mrefu(fn->l.pc) : (uint64_t)(uintptr_t)fn->c.f;
}

/* Are the words beside the level's link unchanged? */
static __attribute__((noinline)) bool
level_same_beside(const struct ljp_level *level)
{
  const uint64_t *frame = spine_words(level->base);
  if (level->checked) {
    const GCfunc *fn = (const GCfunc *)spine_words(level->slot & LJ_GCVMASK);
    if (frame[-2] != level->slot || fn->c.ffid != level->ffid ||
        spine_body(fn) != level->body)
      return false;
  }
  return !level->continues ||
         (frame[-3] == level->word[0] && frame[-4] == level->word[1]);
}

/* 0: the word is unchanged. */
static inline uint64_t spine_differs(const struct ljp_memo_read *word)
{
  return *spine_words(word->at) ^ word->value;
}

/* Counts the unchanged words in fours, up to the first four of which one has
** changed. Behind the end there are spare words that never change. */
static inline uint32_t spine_count_fours(const struct ljp_memo_read *first,
                                         uint32_t from, uint32_t end)
{
  const struct ljp_memo_read *word = first + from, *last = first + end;
  while (word < last && !(spine_differs(word) | spine_differs(word + 1) |
                          spine_differs(word + 2) | spine_differs(word + 3)))
    word += 4;
  return (uint32_t)(word - first);
}

/* Counts the unchanged levels, of which the first `same` are known to be
** unchanged. Levels above base do not matter, and the functions in their slots
** may have been freed. */
static uint32_t spine_count_same(const struct ljp_spine *spine, uint32_t same,
                                 uint64_t base)
{
  const uint32_t count = spine->count;
  while (same < count) {
    const struct ljp_level *level = &spine->level[same];
    if (!level->beside) {
      if (spine_differs(&spine->link[same]))
        return same;
    } else if (level->base > base ||
               spine_words(level->base)[-1] != level->link ||
               !level_same_beside(level)) {
      return same;
    }
    if ((++same & 3) == 0)
      same = spine_count_fours(spine->link, same, count);
  }
  return count;
}

/* Does the position determine the function? */
static bool level_pins(const struct ljp_function *fn, uint64_t pc)
{
  uint64_t code = fn->proto + sizeof(GCproto);
  return fn->ffid == FF_LUA && pc > code &&
         pc <= code + fn->sizebc * sizeof(BCIns);
}

/* -- Calls ----------------------------------------------------------------- */

static struct ljp_spine_call *spine_call(struct ljp_spine_calls *calls,
                                         uint64_t pc)
{
  return &calls->call[pc / sizeof(BCIns) % LJP_SPINE_CALLS];
}

static void spine_forget_calls(struct ljp_spine_calls *calls)
{
  memset(calls, 0, sizeof *calls);
  calls->generation = ljp_guest_code_generation();
}

/* Steps to the frame below: by a known position, or else as the walk does.
** *call: what is known about the position, for the frame below; NULL: it is no
** call. */
static bool spine_step(const struct ljp_thread *thread,
                       struct ljp_spine_calls *calls, uint64_t base,
                       uint64_t value, struct ljp_link *link,
                       struct ljp_spine_call **call)
{
  *call = NULL;
  if ((value & FRAME_TYPE) != FRAME_LUA)
    return ljp_link_follow(thread, base, value, link);
  struct ljp_spine_call *c = spine_call(calls, value);
  if (LJP_LIKELY(c->pc == value &&
                 base - thread->low >=
                     c->delta + (1 + LJ_FR2) * sizeof(TValue)) &&
      LJP_LIKELY(ljp_slot_runs(spine_words(base - c->delta)[-2], c->code))) {
    link->base = base - c->delta;
    link->pc = value;
    link->boundary = link->same = false;
    link->lua = true;
    *call = c;
    return true;
  }
  if (!ljp_link_follow(thread, base, value, link))
    return false;
  *c = (struct ljp_spine_call){.pc = value,
                               .delta = base - link->base,
                               .code = link->fn.proto + sizeof(GCproto)};
  *call = c;
  return true;
}

/* -- Levels ---------------------------------------------------------------- */

/* The word that proves the level unchanged, or one that never compares
** equal. */
static inline struct ljp_memo_read level_link(const struct ljp_level *level)
{
  if (LJP_UNLIKELY(level->beside))
    return (struct ljp_memo_read){(uint64_t)(uintptr_t)&zero, 1};
  return (struct ljp_memo_read){level->base - 8, level->link};
}

/* Finds the frame that a level shows, from its function. call: what is known
** about the position that led to the level, or NULL. */
static __attribute__((noinline)) bool level_show(struct ljp_level *level,
                                                 struct ljp_spine_call *call)
{
  struct ljp_stack one = {.frames = &level->shown, .limit = 1};
  struct ljp_function fn;
  level->slot = spine_words(level->base)[-2];
  if (!ljp_function_read(level->slot, &fn) || !ljp_emit(&one, &fn, level->pc))
    return false;
  if (call)
    call->frame = level->shown;
  if (!level_pins(&fn, level->pc)) {
    level->beside = level->checked = true;
    level->ffid = fn.ffid;
    level->body = spine_body((const GCfunc *)spine_words(fn.object));
  }
  return true;
}

static __attribute__((noinline)) void level_continues(struct ljp_level *level)
{
  const uint64_t *words = spine_words(level->base);
  level->beside = level->continues = true;
  level->word[0] = words[-3];
  level->word[1] = words[-4];
}

/* Makes a new level. link and *call (NULL: it is no call) lead to the level,
** and then to the one below. */
static inline bool level_make(const struct ljp_thread *thread,
                              struct ljp_spine_calls *calls,
                              struct ljp_level *level, struct ljp_link *link,
                              struct ljp_spine_call **call, bool skip)
{
  const uint64_t value = spine_words(link->base)[-1];
  level->base = link->base;
  level->link = value;
  level->pc = link->pc;
  level->skip = skip;
  level->beside = level->checked = level->continues = false;
  if (LJP_LIKELY(*call && (*call)->frame))
    level->shown = (*call)->frame;
  else if (!skip && !level_show(level, *call))
    return false;
  if (LJP_UNLIKELY((value & FRAME_TYPEP) == FRAME_CONT))
    level_continues(level);
  return spine_step(thread, calls, link->base, value, link, call);
}

/* A copy of the whole struct would read, in large words, what has just been
** written in small ones. Processors are slow at that. */
static inline void level_move(struct ljp_level *to,
                              const struct ljp_level *from)
{
  if (LJP_UNLIKELY(from->beside)) {
    *to = *from;
    return;
  }
  to->base = from->base;
  to->link = from->link;
  to->pc = from->pc;
  to->shown = from->shown;
  to->skip = from->skip;
  to->beside = to->checked = to->continues = false;
}

static bool spine_give_up(struct ljp_spine *spine)
{
  spine->count = 0;
  spine->frames = spine->rest;
  return false;
}

static bool spine_give_up_tight(struct ljp_spine *spine)
{
  spine->tight = true;
  return spine_give_up(spine);
}

/* Walks from the top until it meets one of the first `same` levels. New levels
** are collected at the end of the array, the top last. */
static __attribute__((noinline)) bool
spine_follow_changed(struct ljp_spine *spine,
                     const struct ljp_guest_start *start, uint32_t same,
                     uint32_t *kept)
{
  const lua_State *L = (const lua_State *)spine_words(start->L);
  const struct ljp_thread thread = {.L = start->L,
                                    .g = (uint64_t)(uintptr_t)G(L),
                                    .low = spine->low,
                                    .high = spine->low +
                                            L->stacksize * sizeof(TValue)};
  const uint64_t low = thread.low + (1 + LJ_FR2) * sizeof(TValue);
  struct ljp_level *const first = spine->level;
  /* Levels below `met` stay; those from `fresh` on are new, the top last. */
  struct ljp_level *met = first + same, *const end = first + spine->levels,
                   *fresh = end, *const old = first + spine->count;
  struct ljp_link link = {.base = start->base, .pc = start->pc};
  struct ljp_spine_call *call = NULL;
  if ((link.base & 7) || link.base <= low || link.base > thread.high)
    return spine_give_up(spine);
  if (LJP_UNLIKELY(spine->calls->generation != ljp_guest_code_generation()))
    spine_forget_calls(spine->calls);
  bool skip = start->skip;
  uint64_t below = spine->below;
  for (;;) {
    while (met > first && met[-1].base > link.base)
      met--;
    if (met > first && met[-1].base == link.base) {
      if (met[-1].pc == link.pc && met[-1].skip == skip)
        break;
      met--;
    }
    if (link.base <= low) {
      below = link.base; /* the root of a coroutine: nothing is below */
      break;
    }
    if (fresh <= old || fresh <= met + 1)
      return spine_give_up_tight(spine);
    if (!level_make(&thread, spine->calls, --fresh, &link, &call, skip))
      return spine_give_up(spine);
    skip = link.same && !skip;
    if (link.boundary) {
      met = first;
      below = link.base;
      break;
    }
  }
  if (met == first && fresh == end)
    return spine_give_up(spine);
  if (met == first && below != spine->below)
    spine->below = below;
  uint32_t at = met < old ? met->frames : spine->frames;
  if (old == first)
    at = spine->rest;
  if (at + (uint32_t)(end - fresh) > spine->room)
    return spine_give_up_tight(spine);
  *kept = at;
  struct ljp_memo_read *word = spine->link + (met - first);
  for (; fresh < end; fresh++, met++) {
    level_move(met, fresh);
    met->frames = at;
    *word++ = level_link(met);
    if (!met->skip)
      spine->stack[at++] = met->shown;
  }
  for (int i = 0; i < LJP_SPINE_SPARE; i++)
    *word++ = (struct ljp_memo_read){(uint64_t)(uintptr_t)&zero, 0};
  spine->count = (uint32_t)(met - first);
  spine->frames = at;
  return true;
}

static inline bool spine_is_top(const struct ljp_level *top,
                                const struct ljp_guest_start *start)
{
  return top->base == start->base && top->pc == start->pc &&
         top->skip == start->skip;
}

/* Continues the comparison behind the first `same` levels, which are
** unchanged. */
static __attribute__((noinline)) bool
spine_follow_some(struct ljp_spine *spine, const struct ljp_guest_start *start,
                  uint32_t same, uint32_t *kept)
{
  same = spine_count_same(spine, same, start->base);
  if (same < spine->count || !spine_is_top(&spine->level[same - 1], start))
    return spine_follow_changed(spine, start, same, kept);
  *kept = spine->frames;
  return true;
}

static __attribute__((noinline)) bool
spine_follow_none(struct ljp_spine *spine, const struct ljp_guest_start *start,
                  uint64_t low, uint32_t *kept)
{
  spine->L = start->L;
  spine->low = low;
  spine->cframe = start->cframe;
  spine->count = 0;
  return spine_follow_changed(spine, start, 0, kept);
}

bool ljp_spine_follow(struct ljp_spine *spine,
                      const struct ljp_guest_start *start, uint32_t *kept)
{
  const lua_State *L = (const lua_State *)spine_words(start->L);
  const uint64_t low = (uint64_t)(uintptr_t)tvref(L->stack);
  const uint32_t count = spine->count;
  const struct ljp_level *top = spine->level + count - 1;
  /* Everything that is compared must still be inside the Lua stack. */
  if (LJP_UNLIKELY(count == 0 || spine->L != start->L || spine->low != low ||
                   spine->cframe != start->cframe ||
                   top->base > low + L->stacksize * sizeof(TValue)))
    return spine_follow_none(spine, start, low, kept);
  uint32_t same = spine_count_fours(spine->link, 0, count);
  if (same < count)
    return spine_follow_some(spine, start, same, kept);
  if (!spine_is_top(top, start))
    return spine_follow_changed(spine, start, count, kept);
  *kept = spine->frames;
  return true;
}

bool ljp_spine_leave(const struct ljp_spine *spine, struct ljp_guest *guest,
                     struct ljp_regs *regs)
{
  const lua_State *L = (const lua_State *)spine_words(spine->L);
  struct ljp_stack none = {0};
  guest->L = spine->L;
  guest->g = (uint64_t)(uintptr_t)G(L);
  guest->base = spine->below;
  guest->open = spine->below > spine->low + (1 + LJ_FR2) * sizeof(TValue);
  regs->r[LJP_RSP] = spine->cframe;
  regs->known = 1u << LJP_RSP;
  return ljp_cframe_leave(regs, spine->cframe, &none);
}

/* -- The segment below ----------------------------------------------------- */

void ljp_spine_caller(uint64_t cframe, struct ljp_guest_regs *regs)
{
  const uint64_t *words = spine_words(cframe);
  regs->rip = words[LJP_CF_RET];
  regs->sp = cframe + LJP_CF_WORDS * 8;
  regs->rbx = words + LJP_CF_RBX;
  regs->rbp = words + LJP_CF_RBP;
  regs->r14 = words + LJP_CF_R14;
}

bool ljp_guest_below(const struct ljp_guest_heap *heap, uint64_t L,
                     uint64_t cframe, const struct ljp_guest_site *site,
                     const struct ljp_guest_regs *regs, uint64_t *below_L,
                     uint64_t *below_cframe)
{
  const global_State *g = (const global_State *)spine_words(heap->g);
  if (site->kind == LJP_SITE_VM) {
    *below_cframe = regs->sp + site->cframe_bytes;
    *below_L = spine_words(*below_cframe)[LJP_CF_L];
    return true;
  }
  /* As in vm_step_exit() of interpreter.c, for a thread that is known by
  ** then. */
  *below_L = L;
  *below_cframe =
      spine_words(cframe)[LJP_CF_PREV] & (uint64_t)(int64_t)CFRAME_RAWMASK;
  return site->kind == LJP_SITE_EXIT && *regs->r14 == heap->g + GG_G2DISP &&
         gcrefu(g->cur_L) == L && *below_cframe >= regs->sp;
}

/* At a trace's exit nothing tells the position, so the frame at BASE is shown
** like a compiled one. */
static bool spine_below_exit(struct ljp_guest_start *below, uint64_t *frame)
{
  const uint64_t *words = spine_words(below->base);
  struct ljp_stack one = {.frames = frame, .limit = 1};
  struct ljp_function fn;
  if (!ljp_function_read(words[-2], &fn) || !ljp_emit_inlined(&one, &fn, 0))
    return false;
  if ((words[-1] & FRAME_TYPEP) == FRAME_VARG)
    below->base -= words[-1] & ~(uint64_t)FRAME_TYPEP;
  below->skip = true;
  return true;
}

bool ljp_spine_below(const struct ljp_guest_heap *heap,
                     const struct ljp_spine *spine,
                     const struct ljp_guest_site *site,
                     const struct ljp_guest_regs *regs,
                     struct ljp_guest_start *below, uint64_t *frame)
{
  uint64_t L, cframe;
  bool open = spine->below > spine->low + (1 + LJ_FR2) * sizeof(TValue);
  *frame = 0;
  /* A thread that has frames below may be entered again. */
  if (!ljp_guest_below(heap, spine->L, spine->cframe, site, regs, &L,
                       &cframe) ||
      open != (L == spine->L))
    return false;
  if (!open) /* another thread: as in vm_first_segment() of interpreter.c */
    return ljp_guest_start_at(heap, site, regs, below);
  *below = (struct ljp_guest_start){
      .L = L, .base = spine->below, .cframe = cframe}; /* vm_next_segment() */
  if (site->kind == LJP_SITE_EXIT)
    return spine_below_exit(below, frame);
  below->pc = *regs->rbx & ~UINT64_C(3);
  return true;
}
