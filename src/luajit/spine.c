/*
** The spine: the frames of one segment of a Lua stack as they were the last
** time, and what has become of them. See guest.h and RFC 3.
**
** Mental picture: a frame's link pins the frame below: its place, and, since
** the link of a call is a position in the caller's bytecode, its function and
** line, too. So a frame whose link (and the few other words that it was made
** of) is what it was, and that is come to in the same way, is the same frame.
** Links are compared from the root up; from the top, frames are walked anew,
** by the code of the walk itself, until they meet one that is the same. What a
** position has told once it tells again (struct ljp_spine_calls): only the slot
** is looked at, whether a function with that code is in it.
**
** Invariants: level[] is in order of BASE, root first; level[i].frames counts
** what stands in stack[] below it. A position belongs to one prototype only, as
** long as ljp_guest_code_generation() stays.
** On the VM's own thread, in the allocator: the VM's words are read as they
** are.
*/
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/guest_frames.h"

_Static_assert(offsetof(GCfuncC, f) == offsetof(GCfuncL, uvptr),
               "another GCfunc");

static const uint64_t *words_at(uint64_t address)
{
  return (const uint64_t *)(uintptr_t)address;
}

/* The word that tells functions of one kind apart. */
static uint64_t body_of(const GCfunc *fn)
{
  return isluafunc(fn) ? mrefu(fn->l.pc) : (uint64_t)(uintptr_t)fn->c.f;
}

/* The words beside its link. */
static __attribute__((noinline)) bool
is_same_beside(const struct ljp_level *level)
{
  const uint64_t *frame = words_at(level->base);
  if (level->checked) {
    const GCfunc *fn = (const GCfunc *)words_at(level->slot & LJ_GCVMASK);
    if (frame[-2] != level->slot || fn->c.ffid != level->ffid ||
        body_of(fn) != level->body)
      return false;
  }
  return !level->continues ||
         (frame[-3] == level->word[0] && frame[-4] == level->word[1]);
}

/* 0: that is the link, and it tells all. */
static uint64_t more_than_link(const struct ljp_level *level)
{
  return (words_at(level->base)[-1] ^ level->link) | level->beside;
}

/* How many levels are what they were, of those that are not above base: four at
** a time where only links count. */
static uint32_t count_same(const struct ljp_spine *spine, uint64_t base)
{
  const struct ljp_level *first = spine->level, *level = first,
                         *end = first + spine->count;
  while (end > first && end[-1].base > base)
    end--;
  while (end - level >= 4 &&
         !(more_than_link(level) | more_than_link(level + 1) |
           more_than_link(level + 2) | more_than_link(level + 3)))
    level += 4;
  while (level < end && words_at(level->base)[-1] == level->link &&
         (LJP_LIKELY(!level->beside) || is_same_beside(level)))
    level++;
  return (uint32_t)(level - first);
}

/* Does the position tell the function? */
static bool pins(const struct ljp_function *fn, uint64_t pc)
{
  uint64_t code = fn->proto + sizeof(GCproto);
  return fn->ffid == FF_LUA && pc > code &&
         pc <= code + fn->sizebc * sizeof(BCIns);
}

/* -- Calls ---------------------------------------------------------------------- */

static struct ljp_spine_call *call_of(struct ljp_spine_calls *calls,
                                      uint64_t pc)
{
  return &calls->call[pc / sizeof(BCIns) % LJP_SPINE_CALLS];
}

static void forget_calls(struct ljp_spine_calls *calls)
{
  memset(calls, 0, sizeof *calls);
  calls->generation = ljp_guest_code_generation();
}

/* The function in a slot: does it run that code? */
static bool runs(uint64_t slot, uint64_t code)
{
  return (int64_t)slot >> 47 == (int64_t)(int32_t)LJ_TFUNC &&
         mrefu(((const GCfunc *)words_at(slot & LJ_GCVMASK))->l.pc) == code;
}

/* By a position that is known, or else as the walk does. *call: what is known of
** it, for the frame below. */
static bool follow(const struct ljp_thread *thread,
                   struct ljp_spine_calls *calls, uint64_t base, uint64_t value,
                   struct ljp_link *link, struct ljp_spine_call **call)
{
  *call = NULL;
  if ((value & FRAME_TYPE) != FRAME_LUA)
    return ljp_follow(thread, base, value, link);
  struct ljp_spine_call *c = call_of(calls, value);
  if (LJP_LIKELY(c->pc == value &&
                 base - thread->low >=
                     c->delta + (1 + LJ_FR2) * sizeof(TValue)) &&
      LJP_LIKELY(runs(words_at(base - c->delta)[-2], c->code))) {
    *link =
        (struct ljp_link){.base = base - c->delta, .pc = value, .lua = true};
    *call = c;
    return true;
  }
  if (!ljp_follow(thread, base, value, link))
    return false;
  *c = (struct ljp_spine_call){.pc = value,
                               .delta = base - link->base,
                               .code = link->fn.proto + sizeof(GCproto)};
  *call = c;
  return true;
}

/* -- Levels --------------------------------------------------------------------- */

/* A level that is new, with its frame, if it has one: *emits. link and *call (NULL:
** it is no call) lead to it, and then to the one below. */
static bool make_level(const struct ljp_thread *thread,
                       struct ljp_spine_calls *calls, struct ljp_level *level,
                       struct ljp_link *link, struct ljp_spine_call **call,
                       bool skip, uint64_t *frame, bool *emits)
{
  const uint64_t *words = words_at(link->base);
  struct ljp_stack one = {.frames = frame, .limit = 1};
  struct ljp_function fn;
  *level = (struct ljp_level){.base = link->base,
                              .link = words[-1],
                              .pc = link->pc,
                              .slot = words[-2],
                              .skip = skip};
  if (*call && (*call)->frame) {
    *frame = (*call)->frame;
  } else if (!skip) {
    if (!ljp_read_function(words[-2], &fn) || !ljp_emit(&one, &fn, link->pc))
      return false;
    if (*call)
      (*call)->frame = *frame;
    if (!pins(&fn, link->pc)) {
      level->checked = true;
      level->ffid = fn.ffid;
      level->body = body_of((const GCfunc *)words_at(fn.object));
    }
  }
  level->continues = (level->link & FRAME_TYPEP) == FRAME_CONT &&
                     (level->link & FRAME_TYPE) != FRAME_LUA;
  if (level->continues) {
    level->word[0] = words[-3];
    level->word[1] = words[-4];
  }
  level->beside = level->checked || level->continues;
  *emits = !skip;
  return follow(thread, calls, link->base, level->link, link, call);
}

static bool give_up(struct ljp_spine *spine)
{
  spine->count = 0;
  spine->frames = spine->rest;
  return false;
}

static bool is_tight(struct ljp_spine *spine)
{
  spine->tight = true;
  return give_up(spine);
}

bool ljp_spine_follow(struct ljp_spine *spine,
                      const struct ljp_guest_start *start, uint32_t *kept)
{
  const lua_State *L = (const lua_State *)words_at(start->L);
  struct ljp_thread thread = {.L = start->L,
                              .g = (uint64_t)(uintptr_t)G(L),
                              .low = (uint64_t)(uintptr_t)tvref(L->stack)};
  struct ljp_level *level = spine->level;
  thread.high = thread.low + L->stacksize * sizeof(TValue);
  uint64_t low = thread.low + (1 + LJ_FR2) * sizeof(TValue);
  if ((start->base & 7) || start->base <= low || start->base > thread.high)
    return give_up(spine);
  if (spine->L != start->L || spine->low != thread.low ||
      spine->cframe != start->cframe) {
    spine->L = start->L;
    spine->low = thread.low;
    spine->cframe = start->cframe;
    spine->count = 0;
  }
  uint32_t old = spine->count, same = count_same(spine, start->base);
  /* From the top, to the one that is met; what is new is gathered at the end of
  ** the array, top last. */
  struct ljp_link link = {.base = start->base, .pc = start->pc};
  struct ljp_spine_call *call = NULL;
  if (LJP_UNLIKELY(spine->calls->generation != ljp_guest_code_generation()))
    forget_calls(spine->calls);
  bool skip = start->skip;
  const uint32_t levels = spine->levels;
  uint32_t fresh = levels;
  uint64_t below = spine->below;
  for (;;) {
    while (same && level[same - 1].base > link.base)
      same--;
    if (same && level[same - 1].base == link.base) {
      if (level[same - 1].pc == link.pc && level[same - 1].skip == skip)
        break;
      same--;
    }
    if (link.base <= low) {
      below = link.base; /* of a coroutine: nothing is below */
      break;
    }
    uint64_t frame = 0; /* nothing, if it emits none */
    bool emits;
    if (fresh <= old || fresh <= same + 1)
      return is_tight(spine);
    if (!make_level(&thread, spine->calls, &level[--fresh], &link, &call, skip,
                    &frame, &emits))
      return give_up(spine);
    /* Until its place is known, what it shows stands there instead. */
    level[fresh].frames = emits;
    spine->shown[fresh] = frame;
    skip = link.same && !skip;
    if (link.boundary) {
      same = 0;
      below = link.base;
      break;
    }
  }
  if (same == 0 && fresh == levels)
    return give_up(spine);
  if (same == 0 && below != spine->below)
    spine->below = below;
  uint32_t at = same < old ? level[same].frames : spine->frames;
  if (!old)
    at = spine->rest;
  if (at + levels - fresh > spine->room)
    return is_tight(spine);
  *kept = at;
  for (uint32_t i = fresh; i < levels; i++) {
    bool emits = level[i].frames;
    level[same] = level[i];
    level[same++].frames = at;
    if (emits)
      spine->stack[at++] = spine->shown[i];
  }
  spine->count = same;
  spine->frames = at;
  return true;
}

bool ljp_spine_leave(const struct ljp_spine *spine, struct ljp_guest *guest,
                     struct ljp_regs *regs)
{
  const lua_State *L = (const lua_State *)words_at(spine->L);
  struct ljp_stack none = {0};
  guest->L = spine->L;
  guest->g = (uint64_t)(uintptr_t)G(L);
  guest->base = spine->below;
  guest->open = spine->below > spine->low + (1 + LJ_FR2) * sizeof(TValue);
  regs->r[LJP_RSP] = spine->cframe;
  regs->known = 1u << LJP_RSP;
  return ljp_leave(regs, spine->cframe, &none);
}

/* -- The segment below ---------------------------------------------------------- */

void ljp_spine_caller(uint64_t cframe, struct ljp_guest_regs *regs)
{
  const uint64_t *words = words_at(cframe);
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
  const global_State *g = (const global_State *)words_at(heap->g);
  if (site->kind == LJP_SITE_VM) {
    *below_cframe = regs->sp + site->cframe_bytes;
    *below_L = words_at(*below_cframe)[LJP_CF_L];
    return true;
  }
  /* As step_exit() in guest.c has it, of a thread that it knows by then. */
  *below_L = L;
  *below_cframe =
      words_at(cframe)[LJP_CF_PREV] & (uint64_t)(int64_t)CFRAME_RAWMASK;
  return site->kind == LJP_SITE_EXIT && *regs->r14 == heap->g + GG_G2DISP &&
         gcrefu(g->cur_L) == L && *below_cframe >= regs->sp;
}

/* At a trace's exit nothing tells the position, and the frame at BASE is shown
** as one that was compiled. */
static bool below_exit(struct ljp_guest_start *below, uint64_t *frame)
{
  const uint64_t *words = words_at(below->base);
  struct ljp_stack one = {.frames = frame, .limit = 1};
  struct ljp_function fn;
  if (!ljp_read_function(words[-2], &fn) || !ljp_emit_inlined(&one, &fn, 0))
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
  /* A thread that has frames below may be come back to. */
  if (!ljp_guest_below(heap, spine->L, spine->cframe, site, regs, &L,
                       &cframe) ||
      open != (L == spine->L))
    return false;
  if (!open) /* another thread: as first_segment() in guest.c has it */
    return ljp_guest_start_at(heap, site, regs, below);
  *below = (struct ljp_guest_start){
      .L = L, .base = spine->below, .cframe = cframe}; /* next_segment() */
  if (site->kind == LJP_SITE_EXIT)
    return below_exit(below, frame);
  below->pc = *regs->rbx & ~UINT64_C(3);
  return true;
}
