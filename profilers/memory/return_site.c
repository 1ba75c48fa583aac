/*
** See return_site.h.
*/
#include "profilers/memory/return_site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/saferead.h"

enum {
#ifdef LJP_DEBUG
  SITE_SETS = 2,
#else
  SITE_SETS = 128, /* a power of two; once for sites on top, once for those
                   ** below */
#endif
  SITE_WAYS = 4,
  SITES = SITE_SETS * SITE_WAYS,
  FRONTS = 16, /* sets, a power of two; each has WAYS fronts */
  WAYS = 4,
  STEPS = 4,
  FRAME_BYTES = 1 << 20 /* the largest host frame that is followed */
};

/* A way down that was taken: return addresses and their places, in words above
** the caller. The place of the one into the guest is kept too, but not its
** value. All frames are in our own module, which cannot have been replaced.
** Each step's place follows from the step before, so the steps are compared in
** order: behind one that differs, there may be no stack any more. Unused steps
** repeat the caller's own return address. */
struct ljp_front {
  uint64_t rip; /* where it begins */
  uint32_t epoch;
  uint8_t type;
  bool object;
  uint8_t hosts;
  int16_t guest, sp, rbx, rbp; /* in words from the caller */
  int16_t at[STEPS];
  uint64_t word[STEPS];
};

bool ljp_front_init(struct ljp_stacks *s)
{
  s->sites = ljp_stacks_pages(2 * SITES * sizeof *s->sites);
  s->fronts = calloc(FRONTS * WAYS, sizeof *s->fronts);
  return s->sites && s->fronts;
}

void ljp_front_fini(struct ljp_stacks *s)
{
  ljp_stacks_free_pages(s->sites, 2 * SITES * sizeof *s->sites);
  free(s->fronts);
  s->sites = NULL;
  s->fronts = NULL;
}

void ljp_front_forget(struct ljp_stacks *s)
{
  memset(s->sites, 0, 2 * SITES * sizeof *s->sites);
  memset(s->fronts, 0, FRONTS * WAYS * sizeof *s->fronts);
}

/* Sites on top and sites below have tables of their own, so that a site found
** on top stays valid while sites below are looked up. */
static struct ljp_return_site *site_set(struct ljp_stacks *s, uint64_t rip,
                                        bool on_top)
{
  uint64_t key = (rip * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
  return &s->sites[(key & (SITE_SETS - 1)) * SITE_WAYS + (on_top ? 0 : SITES)];
}

/* NULL: the address is not known. */
static inline const struct ljp_return_site *site_find(struct ljp_stacks *s,
                                                      uint64_t rip, bool on_top)
{
  const struct ljp_return_site *site = site_set(s, rip, on_top),
                               *end = site + SITE_WAYS;
  for (; site < end; site++)
    if (LJP_LIKELY(site->rip == rip && site->epoch == s->epoch))
      return site;
  return NULL;
}

/* Returns a useless entry of the set, or else the next in turn. */
static struct ljp_return_site *site_room(struct ljp_stacks *s, uint64_t rip,
                                         bool on_top)
{
  struct ljp_return_site *set = site_set(s, rip, on_top);
  for (int way = 0; way < SITE_WAYS; way++)
    if (set[way].epoch != s->epoch)
      return &set[way];
  return &set[s->next_site++ % SITE_WAYS];
}

/* Learns a site. on_top: it belongs to the topmost segment; only there does the
** VM know the state of compiled code. NULL: the step from here is not plain. */
static const struct ljp_return_site *
site_learn(struct ljp_stacks *s, const struct ljp_guest_regs *regs, bool on_top)
{
  const struct ljp_unwind_map *map = ljp_unwind_acquire(s->unwind);
  struct ljp_return_site *site = site_room(s, regs->rip, on_top);
  bool plain = false;
  site->rip = site->epoch = 0;
  if (!map)
    return NULL;
  site->guest =
      ljp_guest_in_vm(regs->rip) || !ljp_unwind_has_module(map, regs->rip - 1);
  if (site->guest && (on_top || ljp_guest_in_vm(regs->rip))) {
    ljp_guest_site(s->heap, regs, &site->in_guest);
    plain = site->in_guest.kind != LJP_SITE_NONE;
  } else if (!site->guest &&
             ljp_unwind_plain_step(map, regs->rip, &site->step, &s->room)) {
    plain = true;
    site->type = (uint8_t)ljp_guest_mem_type(&regs->rip, 1, &site->object);
  }
  ljp_unwind_release(s->unwind, map);
  /* A step that is not plain now may become plain when the module's table is
  ** ready, so a failure is not remembered. */
  if (!plain)
    return NULL;
  site->rip = regs->rip;
  site->epoch = s->epoch;
  return site;
}

static bool site_module_stays(const struct ljp_unwind_plain *step)
{
  uint64_t word;
  return ljp_safe_load((const void *)(uintptr_t)step->witness_at, &word) &&
         word == step->witness;
}

/* The set of the fronts that begin at an address. */
static struct ljp_front *front_set(struct ljp_stacks *s, uint64_t rip)
{
  return s->fronts +
         WAYS * ((rip * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (FRONTS - 1));
}

static inline bool front_matches(const struct ljp_front *front,
                                 const uint64_t *words)
{
#pragma GCC unroll 4
  for (int i = 0; i < STEPS; i++)
    if (words[front->at[i]] != front->word[i])
      return false;
  return true;
}

static inline uint64_t front_host_frame(uint64_t rip)
{
  return ljp_frame(LJP_FRAME_HOST, 0, rip);
}

/* Finds a known way and sets s->front, even if the site to which it leads is
** not known. NULL: the way or the site is not known. */
static inline const struct ljp_return_site *
front_known(struct ljp_stacks *s, const struct ljp_caller *caller,
            struct ljp_guest_regs *regs, struct ljp_found_stack *found)
{
  const struct ljp_front *front = front_set(s, caller->rip), *end;
  const uint64_t *words = (const uint64_t *)caller;
  s->front = NULL;
  for (end = front + WAYS; front < end; front++) {
    if (front->rip != caller->rip || !front_matches(front, words) ||
        front->epoch != s->epoch)
      continue;
    regs->rip = words[front->guest];
    const struct ljp_return_site *site = site_find(s, regs->rip, true);
    if (LJP_UNLIKELY(site && !site->guest))
      continue;
    s->front = front;
    if (LJP_UNLIKELY(!site))
      return NULL;
    regs->sp = (uint64_t)(uintptr_t)(words + front->sp);
    regs->rbx = words + front->rbx;
    regs->rbp = words + front->rbp;
    regs->r14 = NULL; /* no start reads it */
    found->type = front->type;
    found->object = front->object;
    if (LJP_UNLIKELY(s->native)) {
      s->hosts = front->hosts;
      s->host[0] = front_host_frame(front->rip);
      for (uint32_t i = 1; i < s->hosts; i++)
        s->host[i] = front_host_frame(front->word[i - 1]);
    }
    return site;
  }
  return NULL;
}

/* Learns a way. at: the places of its `steps` return addresses, the last of
** which leads into the guest. */
static void front_learn(struct ljp_stacks *s, const struct ljp_caller *caller,
                        const struct ljp_guest_regs *regs,
                        const struct ljp_found_stack *found, const int16_t *at,
                        int steps)
{
  const uint64_t *words = (const uint64_t *)caller;
  int64_t sp = (const uint64_t *)(uintptr_t)regs->sp - words;
  if (sp > INT16_MAX || s->front)
    return;
  struct ljp_front *front = &front_set(s, caller->rip)[s->next_front++ % WAYS];
  for (int i = 0; i < STEPS; i++) {
    front->at[i] = i < steps - 1 ? at[i] : (int16_t)(&caller->rip - words);
    front->word[i] = words[front->at[i]];
  }
  front->guest = at[steps - 1];
  front->hosts = (uint8_t)steps;
  front->rip = caller->rip;
  front->epoch = s->epoch;
  front->type = found->type;
  front->object = found->object;
  front->sp = (int16_t)sp;
  front->rbx = (int16_t)(regs->rbx - words);
  front->rbp = (int16_t)(regs->rbp - words);
}

/* Takes one plain step down. False: the result cannot be a frame. */
static inline bool site_step(const struct ljp_return_site *site,
                             struct ljp_guest_regs *regs, uint64_t *witness)
{
  if (LJP_UNLIKELY(site->step.witness_at != *witness)) {
    if (!site_module_stays(&site->step))
      return false;
    *witness = site->step.witness_at;
  }
  uint64_t cfa = (site->step.from_rbp ? *regs->rbp : regs->sp) +
                 (uint64_t)(int64_t)site->step.cfa;
  if (LJP_UNLIKELY(cfa - regs->sp - 8 >= FRAME_BYTES || (cfa & 7)))
    return false;
  regs->sp = cfa;
  const uint64_t *caller_sp = (const uint64_t *)(uintptr_t)cfa;
  regs->rip = caller_sp[-1];
  if (site->step.rbx)
    regs->rbx = caller_sp + site->step.rbx;
  if (site->step.rbp)
    regs->rbp = caller_sp + site->step.rbp;
  if (site->step.r14)
    regs->r14 = caller_sp + site->step.r14;
  return true;
}

/* Finds the way down step by step. */
static const struct ljp_return_site *front_walk(struct ljp_stacks *s,
                                                const struct ljp_caller *caller,
                                                struct ljp_guest_regs *regs,
                                                struct ljp_found_stack *found)
{
  int16_t steps_at[STEPS + 1];
  int steps = 0;
  bool plain = true;
  int64_t at = 0;
  uint64_t witness = 0;
  regs->rip = caller->rip;
  regs->sp = (uint64_t)(uintptr_t)(caller + 1);
  regs->rbx = &caller->rbx;
  regs->rbp = &caller->rbp;
  regs->r14 = &caller->r14;
  found->type = LJP_MEM_TYPE_OTHER;
  found->object = false;
  for (int i = 0; i <= LJP_FRONT_FRAMES; i++) {
    const struct ljp_return_site *site = site_find(s, regs->rip, true);
    if (LJP_UNLIKELY(!site) && !(site = site_learn(s, regs, true)))
      return NULL;
    if (site->guest) {
      /* The way may have continued beyond the place where the known one
      ** ends. */
      if (s->front && at != s->front->guest)
        s->front = NULL;
      if (i && plain)
        front_learn(s, caller, regs, found, steps_at, steps);
      s->hosts = (uint32_t)i;
      return i ? site : NULL;
    }
    if (i < LJP_FRONT_FRAMES)
      s->host[i] = front_host_frame(regs->rip);
    plain &= site->step.witness_at == s->own && !site->step.from_rbp;
    if (i == 0)
      found->object = site->object;
    if (found->type == LJP_MEM_TYPE_OTHER)
      found->type = site->type;
    if (!site_step(site, regs, &witness))
      return NULL;
    at = (const uint64_t *)(uintptr_t)regs->sp - 1 - (const uint64_t *)caller;
    if (steps <= STEPS && at <= INT16_MAX)
      steps_at[steps++] = (int16_t)at;
    else
      plain = false;
  }
  return NULL;
}

static __attribute__((noinline)) const struct ljp_return_site *
front_walk_new(struct ljp_stacks *s, const struct ljp_caller *caller,
               struct ljp_guest_regs *regs, struct ljp_found_stack *found)
{
  int *error = &errno, saved = *error;
  const struct ljp_return_site *site = front_walk(s, caller, regs, found);
  *error = saved;
  return site;
}

const struct ljp_return_site *ljp_front_find(struct ljp_stacks *s,
                                             const struct ljp_caller *caller,
                                             struct ljp_guest_regs *regs,
                                             struct ljp_found_stack *found)
{
  const struct ljp_return_site *site = front_known(s, caller, regs, found);
  return LJP_LIKELY(site != NULL) ? site
                                  : front_walk_new(s, caller, regs, found);
}

const struct ljp_return_site *ljp_front_below(struct ljp_stacks *s,
                                              struct ljp_guest_regs *regs,
                                              uint64_t host[LJP_BELOW_FRAMES],
                                              uint32_t *hosts)
{
  uint64_t witness = 0;
  for (*hosts = 0; *hosts < LJP_BELOW_FRAMES; ++*hosts) {
    const struct ljp_return_site *site = site_find(s, regs->rip, false);
    if (LJP_UNLIKELY(!site)) {
      int *error = &errno, saved = *error;
      site = site_learn(s, regs, false);
      *error = saved;
      if (!site)
        return NULL;
    }
    if (site->guest)
      return site;
    host[*hosts] = front_host_frame(regs->rip);
    if (!site_step(site, regs, &witness))
      return NULL;
  }
  return NULL;
}

unsigned ljp_front_words(const struct ljp_stacks *s,
                         const struct ljp_caller *caller,
                         struct ljp_memo_read *out)
{
  const struct ljp_front *front = s->front;
  const uint64_t *words = (const uint64_t *)caller;
  unsigned n = 0;
  if (!front)
    return 0;
  for (int i = 0; i < STEPS; i++)
    if (words + front->at[i] != &caller->rip)
      out[n++] = (struct ljp_memo_read){
          (uint64_t)(uintptr_t)(words + front->at[i]), front->word[i]};
  out[n++] = (struct ljp_memo_read){(uint64_t)(uintptr_t)(words + front->guest),
                                    words[front->guest]};
  return n;
}
