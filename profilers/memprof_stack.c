/*
** The stacks of a VM's allocations; see memprof_stack.h.
**
** An answer has three parts. On top stand host frames, from the allocator to
** where the guest called into C: plain steps, one a return address, remembered
** by that (struct ljp_site). Then the topmost segment of Lua frames, of which
** only what has changed is walked (ljp_spine_follow). What is below its C frame
** changes with other words of memory only: these were noted when it was walked,
** and are compared (struct ljp_again).
*/
#include "profilers/memprof_stack.h"

#include <stdlib.h>
#include <string.h>

#include "src/saferead.h"

enum {
  SITES = 512, /* a power of two */
  FRONTS = 16, /* a power of two: sets of */
  WAYS = 4,
  FRONT_STEPS = 5,
  AGAINS = 8,            /* segments that are remembered at a time */
  WORDS = 384,           /* that a rest may depend on */
  WORTH = 16,            /* answers that make up for what learning costs */
  FRAME_BYTES = 1 << 20, /* of a host frame that we follow */
  HOST_FRAMES = 8,       /* also those that are asked what memory is for */
  LONGEST_PAUSE = 63
};

struct ljp_site {
  uint64_t rip;
  uint32_t epoch; /* of struct ljp_stacks; others are of no use */
  bool guest, plain, object;
  uint8_t type;
  struct ljp_unwind_plain step;
  struct ljp_guest_site in_guest;
};

/* A way down that was taken: return addresses by their places above the caller,
** and what is found behind the last. Only of frames in our own module, which
** cannot have been replaced. Each step is where it is because the one before
** is: they are compared in that order. */
struct ljp_front {
  uint64_t rip; /* where it begins */
  const struct ljp_site *site;
  uint64_t site_rip;
  uint32_t epoch;
  uint8_t steps, type;
  bool object;
  int16_t sp, rbx, rbp; /* in words from the caller */
  int16_t at[FRONT_STEPS];
  uint64_t word[FRONT_STEPS];
};

struct ljp_again {
  uint32_t epoch;
  uint64_t L, cframe, below;
  uint32_t words, total; /* total: frames of the last answer */
  uint32_t hits;
  bool afresh;   /* has been learned twice */
  uint8_t state; /* by the frame on top of the last answer */
  struct ljp_patience patience;
  uint64_t top; /* the site's address */
  struct ljp_memo_read word[WORDS];
  struct ljp_spine spine;
};

bool ljp_stacks_init(struct ljp_stacks *s)
{
  const char *check = getenv("LJPROF_MEMPROF_CHECK");
  s->check = check && strcmp(check, "1") == 0;
  s->epoch = 1;
  s->serial = ljp_unwind_serial(s->unwind);
  if (s->native)
    return true;
  s->sites = calloc(SITES, sizeof *s->sites);
  s->agains = calloc(AGAINS, sizeof *s->agains);
  s->fronts = calloc(FRONTS * WAYS, sizeof *s->fronts);
  return s->sites && s->agains && s->fronts;
}

void ljp_stacks_fini(struct ljp_stacks *s)
{
  free(s->sites);
  free(s->agains);
  free(s->fronts);
  s->sites = NULL;
  s->fronts = NULL;
  s->agains = s->last = NULL;
}

/* -- A full walk --------------------------------------------------------------- */

/* C functions and builtins are told by the frame on top. */
static enum ljp_vmstate state_of(uint64_t frame)
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

static void walk(struct ljp_stacks *s, struct ljp_regs *regs,
                 struct ljp_found_stack *found)
{
  struct ljp_walk walk = {.stack = {.cut = LJP_CUT_ABORTED}};
  const struct ljp_unwind_view *view = ljp_unwind_acquire(s->unwind);
  uint64_t askers[HOST_FRAMES];
  unsigned n = 0;
  if (view) {
    /* The stack of Lua that may be about to be moved is still where it was. */
    bool resizing = ljp_guest_set_resizing(s->heap, false);
    if (ljp_walk_memo(&walk, view, regs, s->frames, s->depth, &s->memo) !=
        LJP_WALK_DONE)
      walk.stack.cut = LJP_CUT_RESIZE;
    if (resizing)
      ljp_guest_set_resizing(s->heap, true);
    ljp_unwind_release(s->unwind, view);
  }
  uint32_t count = walk.stack.count, kept = 0, i = 0;
  for (; i < count && n < HOST_FRAMES &&
         ljp_frame_kind(s->frames[i]) == LJP_FRAME_HOST;
       i++)
    askers[n++] = ljp_frame_payload(s->frames[i]);
  found->type = (uint8_t)ljp_guest_mem_type(askers, n, &found->object);
  found->top = LJP_VMSTATE_UNKNOWN;
  for (i = 0; i < count; i++) {
    if (found->top == LJP_VMSTATE_UNKNOWN)
      found->top = (uint8_t)state_of(s->frames[i]);
    if (s->native || ljp_guest_is_frame(s->frames[i]))
      s->frames[kept++] = s->frames[i];
  }
  if (walk.stack.cut) {
    s->frames[kept++] = ljp_frame(LJP_FRAME_CUT, 0, walk.stack.cut);
    s->cut++;
  }
  found->frames = s->frames;
  found->count = kept;
  found->same = 0;
  found->root_first = false;
  s->last = NULL;
}

void ljp_stacks_walk_from(struct ljp_stacks *s, const struct ljp_caller *caller,
                          struct ljp_found_stack *found)
{
  struct ljp_regs regs = {.known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP |
                                   1u << LJP_RIP};
  regs.r[LJP_RBX] = caller->rbx;
  regs.r[LJP_RBP] = caller->rbp;
  regs.r[LJP_R12] = caller->r12;
  regs.r[LJP_R13] = caller->r13;
  regs.r[LJP_R14] = caller->r14;
  regs.r[LJP_R15] = caller->r15;
  regs.r[LJP_RIP] = caller->rip;
  regs.r[LJP_RSP] = (uint64_t)(uintptr_t)(caller + 1);
  walk(s, &regs, found);
}

/* -- Host frames on top ---------------------------------------------------------- */

static struct ljp_site *slot_of(struct ljp_stacks *s, uint64_t rip)
{
  return &s->sites[(rip * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (SITES - 1)];
}

static void learn_site(struct ljp_stacks *s, struct ljp_site *site,
                       const struct ljp_guest_regs *regs)
{
  const struct ljp_unwind_view *view = ljp_unwind_acquire(s->unwind);
  site->rip = 0;
  if (!view)
    return;
  site->guest =
      ljp_guest_in_vm(regs->rip) || !ljp_unwind_has_module(view, regs->rip - 1);
  site->plain = false;
  if (site->guest) {
    ljp_guest_site(s->heap, regs, &site->in_guest);
    site->plain = site->in_guest.kind != LJP_SITE_NONE;
  } else if (ljp_unwind_plain(view, regs->rip, &site->step)) {
    site->plain = true;
    site->type = (uint8_t)ljp_guest_mem_type(&regs->rip, 1, &site->object);
  }
  ljp_unwind_release(s->unwind, view);
  /* What is not plain now may be so as soon as a table has been made. */
  if (site->plain) {
    site->rip = regs->rip;
    site->epoch = s->epoch;
  }
}

static bool still_there(const struct ljp_unwind_plain *step)
{
  uint64_t word;
  return ljp_safe_load((const void *)(uintptr_t)step->witness_at, &word) &&
         word == step->witness;
}

/* The set of ways that begin at an address. */
static struct ljp_front *fronts_of(struct ljp_stacks *s, uint64_t rip)
{
  return s->fronts +
         WAYS * ((rip * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (FRONTS - 1));
}

static const struct ljp_site *known_front(struct ljp_stacks *s,
                                          const struct ljp_caller *caller,
                                          struct ljp_guest_regs *regs,
                                          struct ljp_found_stack *found)
{
  const struct ljp_front *front = fronts_of(s, caller->rip), *end;
  const uint64_t *words = (const uint64_t *)caller;
  for (end = front + WAYS; front < end; front++) {
    if (front->rip != caller->rip || front->epoch != s->epoch ||
        front->site->rip != front->site_rip)
      continue;
    int i = 0;
    while (i < front->steps && words[front->at[i]] == front->word[i])
      i++;
    if (i < front->steps)
      continue;
    regs->rip = front->site_rip;
    regs->sp = (uint64_t)(uintptr_t)(words + front->sp);
    regs->rbx = words + front->rbx;
    regs->rbp = words + front->rbp;
    found->type = front->type;
    found->object = front->object;
    return front->site;
  }
  return NULL;
}

static void learn_front(struct ljp_stacks *s, const struct ljp_caller *caller,
                        const struct ljp_guest_regs *regs,
                        const struct ljp_found_stack *found,
                        const struct ljp_site *site, struct ljp_front *front)
{
  const uint64_t *words = (const uint64_t *)caller;
  int64_t sp = (const uint64_t *)(uintptr_t)regs->sp - words;
  if (sp > INT16_MAX)
    return;
  front->rip = caller->rip;
  front->site = site;
  front->site_rip = site->rip;
  front->epoch = s->epoch;
  front->type = found->type;
  front->object = found->object;
  front->sp = (int16_t)sp;
  front->rbx = (int16_t)(regs->rbx - words);
  front->rbp = (int16_t)(regs->rbp - words);
  fronts_of(s, caller->rip)[s->next_front++ % WAYS] = *front;
}

/* Down to the guest. NULL: ask the walk. */
static const struct ljp_site *find_front(struct ljp_stacks *s,
                                         const struct ljp_caller *caller,
                                         struct ljp_guest_regs *regs,
                                         struct ljp_found_stack *found)
{
  const struct ljp_site *known = known_front(s, caller, regs, found);
  if (LJP_LIKELY(known != NULL))
    return known;
  struct ljp_front front = {.steps = 0};
  bool plain = true;
  uint64_t witness = 0;
  regs->rip = caller->rip;
  regs->sp = (uint64_t)(uintptr_t)(caller + 1);
  regs->rbx = &caller->rbx;
  regs->rbp = &caller->rbp;
  found->type = LJP_MEM_TYPE_OTHER;
  found->object = false;
  for (int i = 0; i <= HOST_FRAMES; i++) {
    struct ljp_site *site = slot_of(s, regs->rip);
    if (LJP_UNLIKELY(site->rip != regs->rip || site->epoch != s->epoch)) {
      learn_site(s, site, regs);
      if (!site->rip)
        return NULL;
    }
    if (site->guest) {
      if (i && plain)
        learn_front(s, caller, regs, found, site, &front);
      return i ? site : NULL;
    }
    plain &= site->step.witness_at == s->own && !site->step.from_rbp;
    if (LJP_UNLIKELY(site->step.witness_at != witness)) {
      if (!still_there(&site->step))
        return NULL;
      witness = site->step.witness_at;
    }
    if (i == 0)
      found->object = site->object;
    if (found->type == LJP_MEM_TYPE_OTHER)
      found->type = site->type;
    uint64_t cfa = (site->step.from_rbp ? *regs->rbp : regs->sp) +
                   (uint64_t)(int64_t)site->step.cfa;
    if (LJP_UNLIKELY(cfa - regs->sp - 8 >= FRAME_BYTES || (cfa & 7)))
      return NULL;
    regs->sp = cfa;
    const uint64_t *caller_sp = (const uint64_t *)(uintptr_t)regs->sp;
    regs->rip = caller_sp[-1];
    int64_t at = caller_sp - 1 - (const uint64_t *)caller;
    if (front.steps < FRONT_STEPS && at <= INT16_MAX) {
      front.at[front.steps] = (int16_t)at;
      front.word[front.steps++] = regs->rip;
    } else {
      plain = false;
    }
    if (site->step.rbx)
      regs->rbx = caller_sp + site->step.rbx;
    if (site->step.rbp)
      regs->rbp = caller_sp + site->step.rbp;
  }
  return NULL;
}

/* -- The rest ---------------------------------------------------------------------- */

static struct ljp_again *again_of(struct ljp_stacks *s,
                                  const struct ljp_guest_start *start)
{
  struct ljp_again *a = s->last;
  if (a && a->L == start->L && a->cframe == start->cframe)
    return a;
  for (a = s->agains; a < s->agains + AGAINS; a++)
    if (a->L == start->L && a->cframe == start->cframe)
      return a;
  return NULL;
}

/* Is what was remembered of a's rest true? */
static bool rest_is_true(struct ljp_stacks *s, const struct ljp_again *a)
{
  return a->epoch == s->epoch && a->spine.below == a->below &&
         ljp_saferead_equal(a->word, a->words) == a->words;
}

static bool learn_rest(struct ljp_stacks *s, struct ljp_again *a,
                       const struct ljp_unwind_view *view)
{
  uint64_t *frames = s->scratch;
  struct ljp_walk walk = {.guest = {.vm = 1, .state = LJP_VMSTATE_INTERP}};
  struct ljp_regs regs = {.notes = &s->memo};
  ljp_memo_forget(&s->memo);
  if (!ljp_spine_leave(&a->spine, &walk.guest, &regs) ||
      !ljp_walk_rest(&walk, view, &regs, frames, LJP_STACK_MAX_FRAMES,
                     &s->memo) ||
      s->memo.reads + s->memo.always_reads > WORDS)
    return false;
  uint32_t n = s->memo.always_reads, rest = 0;
  memcpy(a->word, s->memo.always, n * sizeof *a->word);
  /* Those that are compared in part only come last. */
  for (int part = 0; part < 2; part++)
    for (uint32_t i = 0; i < s->memo.reads; i++)
      if ((s->memo.read[i].at & 7) == 0 ? !part : part)
        a->word[n++] = s->memo.read[i];
  a->words = n;
  for (uint32_t i = walk.stack.count; i-- > 0;)
    if (ljp_guest_is_frame(frames[i]))
      a->spine.stack[rest++] = frames[i];
  a->below = a->spine.below;
  a->spine.rest = a->spine.frames = rest;
  a->spine.count = 0;
  return true;
}

/* After a full walk, which has found the same by other means: is it? */
static bool agrees(const struct ljp_again *a, const struct ljp_site *site,
                   const struct ljp_found_stack *found)
{
  uint32_t n = a->spine.frames, top = site->in_guest.count;
  if (n + top != found->count)
    return false;
  for (uint32_t i = 0; i < top; i++)
    if (found->frames[top - 1 - i] != site->in_guest.frame[i])
      return false;
  for (uint32_t i = 0; i < n; i++)
    if (found->frames[found->count - 1 - i] != a->spine.stack[i])
      return false;
  return true;
}

static void learn(struct ljp_stacks *s, struct ljp_again *a,
                  const struct ljp_site *site,
                  const struct ljp_guest_start *start,
                  const struct ljp_found_stack *found)
{
  uint32_t kept;
  struct ljp_patience *patience = a ? &a->patience : &s->patience;
  if (patience->pause) {
    patience->pause--;
    return;
  }
  if (!a) {
    a = &s->agains[s->next++ % AGAINS];
    a->patience = (struct ljp_patience){0};
  }
  if (a->epoch && a->hits < WORTH) {
    patience->pause = patience->longer;
    patience->longer = 2 * patience->longer + 1;
    if (patience->longer > LONGEST_PAUSE)
      patience->longer = LONGEST_PAUSE;
  } else {
    patience->longer = 0;
  }
  a->epoch = a->hits = 0;
  a->L = start->L;
  a->cframe = start->cframe;
  a->spine.count = a->spine.rest = a->spine.frames = 0;
  if (ljp_guest_set_resizing(s->heap, false)) {
    ljp_guest_set_resizing(s->heap, true); /* no moment for that */
    return;
  }
  const struct ljp_unwind_view *view = ljp_unwind_acquire(s->unwind);
  if (!view)
    return;
  if (ljp_spine_follow(&a->spine, start, &kept) && learn_rest(s, a, view) &&
      ljp_spine_follow(&a->spine, start, &kept) && agrees(a, site, found)) {
    a->epoch = s->epoch;
    a->total = 0;
    s->learned++;
  }
  /* Notes of ours are no walk of its own. */
  s->memo.valid = false;
  ljp_unwind_release(s->unwind, view);
}

/* -- The answer --------------------------------------------------------------------- */

static void look_at_generations(struct ljp_stacks *s)
{
  /* Relaxed: who uses what was made for an older one checks its witness. */
  uint64_t modules = atomic_load_explicit(s->serial, memory_order_relaxed);
  uint64_t code = ljp_guest_code_generation();
  if (LJP_LIKELY(s->generation[0] == modules && s->generation[1] == code))
    return;
  s->generation[0] = modules;
  s->generation[1] = code;
  s->last = NULL;
  if (++s->epoch == 0) { /* comes round: nothing may be left of the first */
    memset(s->sites, 0, SITES * sizeof *s->sites);
    for (int i = 0; i < AGAINS; i++)
      s->agains[i].epoch = 0;
    s->epoch = 1;
  }
}

static bool answer(struct ljp_stacks *s, struct ljp_again *a,
                   const struct ljp_site *site,
                   const struct ljp_guest_start *start,
                   struct ljp_found_stack *found)
{
  uint32_t kept, top = site->in_guest.count, before = a->total;
  /* Whoever fails leaves behind what was never an answer. */
  a->total = 0;
  if (!ljp_spine_follow(&a->spine, start, &kept) || !rest_is_true(s, a))
    return false;
  uint32_t at = a->spine.frames, total = at + top;
  if (LJP_UNLIKELY(total > s->depth))
    return false;
  bool same = kept == at && a->top == site->rip && before == total;
  a->total = total;
  if (!same) {
    for (uint32_t i = 0; i < top; i++) {
      uint64_t frame = site->in_guest.frame[i];
      if (kept == at + i && kept < before && a->spine.stack[kept] == frame)
        kept++;
      a->spine.stack[at + i] = frame;
    }
    a->top = site->rip;
    a->state = LJP_VMSTATE_UNKNOWN;
    for (uint32_t i = total; i-- > 0 && a->state == LJP_VMSTATE_UNKNOWN;)
      a->state = (uint8_t)state_of(a->spine.stack[i]);
  }
  found->frames = a->spine.stack;
  found->count = total;
  found->same = same ? total : kept;
  if (s->last != a)
    found->same = 0;
  found->root_first = true;
  found->top = a->state;
  a->hits++;
  s->last = a;
  s->remembered++;
  return true;
}

/* A second opinion; the first one stands in found->frames, root first. */
static void check(struct ljp_stacks *s, const struct ljp_caller *caller,
                  const struct ljp_found_stack *found)
{
  struct ljp_found_stack walked;
  struct ljp_again *last = s->last;
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

/* The witness of our module, which any address in it leads to. */
static void find_own(struct ljp_stacks *s, uint64_t rip)
{
  const struct ljp_unwind_view *view = ljp_unwind_acquire(s->unwind);
  struct ljp_unwind_plain step;
  if (view && ljp_unwind_plain(view, rip, &step))
    s->own = step.witness_at;
  if (view)
    ljp_unwind_release(s->unwind, view);
}

void ljp_stacks_find(struct ljp_stacks *s, const struct ljp_caller *caller,
                     struct ljp_found_stack *found)
{
  struct ljp_guest_regs regs;
  struct ljp_guest_start start;
  if (s->native) {
    ljp_stacks_walk_from(s, caller, found);
    return;
  }
  if (LJP_UNLIKELY(!s->own))
    find_own(s, (uint64_t)(uintptr_t)__builtin_return_address(0));
  look_at_generations(s);
  const struct ljp_site *site = find_front(s, caller, &regs, found);
  if (!site || !ljp_guest_start_at(s->heap, &site->in_guest, &regs, &start)) {
    ljp_stacks_walk_from(s, caller, found);
    return;
  }
  struct ljp_again *a = again_of(s, &start);
  if (LJP_LIKELY(a && answer(s, a, site, &start, found))) {
    if (LJP_UNLIKELY(s->check))
      check(s, caller, found);
    return;
  }
  uint64_t cuts = s->cut;
  ljp_stacks_walk_from(s, caller, found);
  if (s->cut == cuts)
    learn(s, a, site, &start, found);
}
