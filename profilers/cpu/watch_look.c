/*
** See watch_look.h. All under the watcher's lock.
*/
#include "profilers/cpu/watch_look.h"

#include <signal.h>
#include <string.h>

#include "profilers/cpu/proc_task.h"
#include "profilers/session/vms.h"
#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/saferead.h"

enum {
  TELL_NS = 100000000, /* a wait that lasts longer is told in parts */
  PART = 32, /* of the time in its state: how long a thread is not looked at */
  LONGEST_NS = 100000000, /* between two looks */
  CREDIT_PART = 16,       /* of the credit goes to each place */
  USUAL = 64              /* looks make what is usual */
};

void ljp_watch_begin(struct ljp_watch *w, uint64_t now, uint64_t cpu_ns)
{
  w->began_ns = w->looked_ns = w->since_ns = w->due_ns = w->told_ns = now;
  w->cpu_ns = cpu_ns;
}

/* -- Samples --------------------------------------------------------------- */

static void look_count(_Atomic uint64_t *counter, uint64_t n)
{
  atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void look_push(struct ljp_sampler *s, uint64_t now, uint64_t weight)
{
  struct ljp_watch *w = s->watch;
  const struct ljp_watch_place *place = w->place;
  if (w->producer) {
    bool claimed;
    struct ljp_sample sample = {.time_ns = now,
                                .weight = weight,
                                .vm = ljp_vms_claim(place->vm, &claimed),
                                .labels = place->labels,
                                .vmstate = LJP_VMSTATE_WAITING,
                                .cut = (uint8_t)place->cut};
    if (claimed)
      ljp_producer_wake(w->producer);
    if (!ljp_push_sample(w->producer, &sample, place->frames, place->count)) {
      look_count(
          &w->counts.lost[ljp_producer_active(w->producer) ? LJP_LOSS_RING_FULL
                                                           : LJP_LOSS_STOPPING],
          1);
      look_count(&w->counts.lost_ns, weight);
      return;
    }
    look_count(&w->counts.cut[place->cut & 15], 1);
  }
  look_count(&w->counts.samples, 1);
  look_count(&w->counts.state[LJP_VMSTATE_WAITING], 1);
  look_count(&w->counts.time_ns, weight);
}

void ljp_watch_tell(struct ljp_sampler *s, uint64_t now)
{
  struct ljp_watch *w = s->watch;
  bool lua = atomic_load_explicit(&s->ran_lua, memory_order_relaxed);
  if (w->pending_ns && (lua || !ljp_sampler_shared.only_lua)) {
    look_push(s, now, w->pending_ns);
  } else if (w->pending_ns) {
    look_count(&w->counts.outside, 1);
    look_count(&w->counts.outside_ns, w->pending_ns);
  }
  w->pending_ns = 0;
  w->told_ns = now;
}

/* The pending time gets its part of what is left over. */
static void look_settle(struct ljp_watch *w)
{
  int64_t part = w->credit_ns / CREDIT_PART;
  if (part < 0 && (uint64_t)-part > w->pending_ns)
    part = -(int64_t)w->pending_ns;
  w->pending_ns += (uint64_t)part;
  w->credit_ns -= part;
}

/* Time in which the thread was ready to run goes to its next CPU sample. */
static void look_owe(struct ljp_sampler *s, uint64_t ns)
{
  if (ns)
    atomic_fetch_add_explicit(&s->owed_ns, ns, memory_order_relaxed);
}

/* -- Time ------------------------------------------------------------------ */

/* The time between two looks, and what is known of it. */
struct gap {
  uint64_t ns;
  uint64_t
      ready_ns; /* the thread ran before it lost its CPU: it did not wait */
  uint64_t waited_ns; /* the rest in which it did not run */
  bool clear;         /* the looks have seen all waits in it */
  bool one_turn;      /* the thread has not lost the CPU and got one again */
};

/* The references in the frames of an outdated place may be used for other
** prototypes before the place is told: see ljp_watch_round(). */
static bool look_outdated(const struct ljp_watch *w)
{
  return w->place->generation != ljp_guest_generation();
}

/* Gives time to the place where the thread waits. */
static void look_give(struct ljp_watch *w, uint64_t ns)
{
  w->wait_ns += ns;
  if (look_outdated(w))
    w->credit_ns += (int64_t)ns;
  else
    w->pending_ns += ns;
}

/* The wait that was seen is over. A wait shorter than the time between two
** looks is seen only now and then, and stands for those that were not. */
static void look_end_wait(struct ljp_watch *w)
{
  if (w->seen_again)
    return;
  if (w->wait_ns < w->gap_ns && !look_outdated(w)) {
    w->credit_ns -= (int64_t)(w->gap_ns - w->wait_ns);
    w->pending_ns += w->gap_ns - w->wait_ns;
  }
  if (w->pending_ns)
    look_settle(w);
}

/* Time that was not decided belongs to a wait. */
static void look_decided(struct ljp_watch *w, uint64_t ns)
{
  if (w->tail && !look_outdated(w))
    w->pending_ns += ns;
  else
    w->credit_ns += (int64_t)ns;
  w->undecided_ns = 0;
}

/* How many of the turns began because the thread woke up? Before the other
** turns the thread had lost its CPU. */
static uint64_t look_woken(struct ljp_sampler *s, uint64_t turns, bool waits)
{
  struct ljp_watch *w = s->watch;
  uint64_t woken = 0, now = 0;
  bool known = ljp_task_waits(s->tid, &now);
  now -= known && now && waits; /* that wait is not over */
  if (known && w->has_woken)
    woken = now > w->woken ? now - w->woken : 0;
  else
    woken = w->waits;
  w->woken = now;
  w->has_woken = known;
  return woken < turns ? woken : turns;
}

/* The part of queued_ns that came before turns for which the thread had not
** woken up. (The time after a wake-up belongs to the wait.) If there were turns
** of both kinds, the time is shared out by how long the thread is usually ready
** before each: by the least squares of the past. */
static uint64_t look_lost(struct ljp_watch *w, uint64_t queued_ns,
                          uint64_t turns, uint64_t woken)
{
  struct ljp_watch_usual *u = &w->usual;
  double v = (double)woken, l = (double)(turns - woken), q = (double)queued_ns;
  u->vv += v * v - u->vv / USUAL;
  u->vl += v * l - u->vl / USUAL;
  u->ll += l * l - u->ll / USUAL;
  u->vq += v * q - u->vq / USUAL;
  u->lq += l * q - u->lq / USUAL;
  double d = u->vv * u->ll - u->vl * u->vl;
  double each_v = d > 0 ? (u->ll * u->vq - u->vl * u->lq) / d : 0;
  double each_l = d > 0 ? (u->vv * u->lq - u->vl * u->vq) / d : 0;
  if (each_v <= 0 || each_l <= 0) /* not known */
    each_v = each_l = (u->vq + u->lq) / (u->vv + 2 * u->vl + u->ll) + 1;
  w->wake_ns = (uint64_t)each_v;
  return (uint64_t)(q * (l * each_l / (l * each_l + v * each_v)));
}

/* Finds how much of the time in which the thread did not run it was ready.
** waits: it waits now. */
static void look_at_turns(struct ljp_sampler *s, struct gap *gap, bool waits)
{
  struct ljp_watch *w = s->watch;
  struct ljp_task_turns now = w->turns;
  bool known = ljp_task_turns(s->tid, &now);
  uint64_t turns = 0, queued = 0, woken = 0;
  if (known && w->has_turns) {
    turns = now.turns - w->turns.turns;
    queued = now.queued_ns - w->turns.queued_ns;
  }
  w->ready_ns += queued;
  w->turns = now;
  w->has_turns = known;
  if (turns) {
    queued -= queued < w->queued_ns ? queued : w->queued_ns;
    w->queued_ns = 0;
  }
  if (turns) {
    woken = look_woken(s, turns, waits);
    queued = look_lost(w, queued, turns, woken);
  }
  gap->clear = woken <= (w->waits ? 1 : 0);
  gap->one_turn = known && !turns;
  if (turns && w->undecided_ns) {
    uint64_t ready = queued > gap->waited_ns ? queued - gap->waited_ns : 0;
    ready = ready < w->undecided_ns ? ready : w->undecided_ns;
    look_owe(s, ready);
    queued -= ready;
    look_decided(w, w->undecided_ns - ready);
  }
  gap->ready_ns = queued < gap->waited_ns ? queued : gap->waited_ns;
  gap->waited_ns -= gap->ready_ns;
}

/* -- The look -------------------------------------------------------------- */

static bool look_same_place(const struct ljp_watch_place *a,
                            const struct ljp_watch_place *b)
{
  return a->count == b->count && a->cut == b->cut && a->vm == b->vm &&
         memcmp(a->frames, b->frames, a->count * sizeof *a->frames) == 0;
}

/* Walks from there. The last look at a thread is that of whoever stops the
** session: a thread that may block the signals of faulting reads. The host may
** have reset their handlers, too. */
static enum ljp_task_state look_walk(const struct ljp_regs *regs,
                                     struct ljp_watch_place *place)
{
  enum ljp_task_state state = LJP_TASK_UNREADABLE;
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, NULL, &before);
  if (ljp_saferead_check() && ljp_saferead_enter(&before))
    /* If the walk fails, the next look will find the place. */
    state = ljp_watch_walk(regs, place) ? LJP_TASK_WAITS : LJP_TASK_RUNS;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return state;
}

/* Finds the place where the thread waits, as w->next. cpu_ns: read before. */
static enum ljp_task_state look_find(struct ljp_sampler *s, uint64_t cpu_ns)
{
  struct ljp_watch *w = s->watch;
  struct ljp_regs regs;
  enum ljp_task_state state = ljp_task_place(s->tid, &regs);
  if (state != LJP_TASK_WAITS)
    return state;
  state = look_walk(&regs, w->next);
  if (state != LJP_TASK_WAITS)
    return state;
  if (ljp_clock_of(ljp_task_cpu_clock(s->tid)) != cpu_ns) {
    look_count(&w->counts.moved, 1);
    return LJP_TASK_RUNS;
  }
  return LJP_TASK_WAITS;
}

/* From now on the thread waits at w->next. */
static void look_enter(struct ljp_sampler *s, uint64_t now)
{
  struct ljp_watch *w = s->watch;
  struct ljp_watch_place *last = w->place;
  if (w->pending_ns && look_same_place(last, w->next)) {
    last->generation = w->next->generation;
    return;
  }
  ljp_watch_tell(s, now);
  w->place = w->next;
  w->next = last;
  if (w->place->vm)
    atomic_store_explicit(&s->ran_lua, true, memory_order_relaxed);
}

/* The thread waits, and has not run since the last look. */
static void look_stayed(struct ljp_sampler *s, uint64_t now)
{
  struct ljp_watch *w = s->watch;
  if (look_outdated(w) && look_find(s, w->cpu_ns) == LJP_TASK_WAITS)
    look_enter(s, now);
  look_give(w, now - w->looked_ns);
  w->seen_again = true;
  if (now - w->told_ns >= TELL_NS)
    ljp_watch_tell(s, now);
}

/* Is a thread that does not wait without a CPU? */
static bool look_is_ready(const struct ljp_sampler *s, uint64_t cpu_ns)
{
  return s->watch->has_turns &&
         ljp_clock_of(ljp_task_cpu_clock(s->tid)) == cpu_ns;
}

/* Has a thread that is ready waited since it last got a CPU? */
static bool look_has_waited(const struct ljp_sampler *s)
{
  const struct ljp_watch *w = s->watch;
  uint64_t waits = 0;
  return w->has_woken && ljp_task_waits(s->tid, &waits) && waits > w->woken;
}

/* The parts of the waiting time that belong to the wait that the last look saw,
** and to that which this look sees. */
static void look_share(const struct ljp_watch *w, const struct gap *gap,
                       bool waits, uint64_t *last, uint64_t *here)
{
  uint64_t waited = gap->waited_ns;
  /* Before it ran, it was ready for a while. */
  uint64_t wake = w->wake_ns < waited ? w->wake_ns : waited;
  if (w->waits && waits) {
    *here = (waited - wake) / 2;
    *last = waited - *here;
  } else if (w->waits) {
    *last =
        gap->clear || waited < gap->ns / 2 + wake ? waited : gap->ns / 2 + wake;
  } else if (waits) {
    *here = gap->clear || waited < gap->ns / 2 ? waited : gap->ns / 2;
  }
}

/* The thread has run since the last look, or did not wait then. */
static void look_moved(struct ljp_sampler *s, uint64_t now, uint64_t cpu_ns)
{
  struct ljp_watch *w = s->watch;
  enum ljp_task_state state = look_find(s, cpu_ns);
  bool waits = state == LJP_TASK_WAITS;
  struct gap gap = {.ns = now - w->looked_ns};
  uint64_t ran = cpu_ns - w->cpu_ns;
  gap.waited_ns = gap.ns > ran ? gap.ns - ran : 0;
  look_at_turns(s, &gap, waits);
  if (state == LJP_TASK_RUNS && !w->waits && (!ran || gap.one_turn) &&
      !(ran && look_has_waited(s))) {
    /* It waits for its turn, or the machine's CPU is another machine's. */
    gap.ready_ns += gap.waited_ns;
    w->queued_ns += gap.waited_ns;
    gap.waited_ns = 0;
  } else if (state == LJP_TASK_RUNS && look_is_ready(s, cpu_ns)) {
    w->tail = w->waits;
    w->undecided_ns = gap.waited_ns;
    gap.waited_ns = 0;
  }
  look_owe(s, gap.ready_ns);
  if (gap.waited_ns > gap.ns / PART || waits || w->waits)
    w->since_ns = now;
  uint64_t last = 0, here = 0;
  look_share(w, &gap, waits, &last, &here);
  uint64_t rest = gap.waited_ns - last - here;
  if (state == LJP_TASK_UNREADABLE)
    w->unreadable_ns += rest;
  else
    w->credit_ns += (int64_t)rest;
  if (w->waits) {
    look_give(w, last);
    look_end_wait(w);
  }
  if (waits) {
    look_enter(s, now);
    w->gap_ns = gap.ns;
    w->wait_ns = 0;
    w->seen_again = false;
    look_give(w, here);
  }
  w->waits = waits;
  w->cpu_ns = cpu_ns;
}

static uint64_t look_random(uint64_t now, uint64_t ns)
{
  return ns - ns / 4 + (now * UINT64_C(2654435761) >> 11) % (ns / 2 + 1);
}

void ljp_watch_look(struct ljp_sampler *s, uint64_t period_ns)
{
  struct ljp_watch *w = s->watch;
  uint64_t now = ljp_clock_ns();
  uint64_t cpu = ljp_clock_of(ljp_task_cpu_clock(s->tid));
  look_count(&w->counts.looks, 1);
  if (!cpu || cpu < w->cpu_ns) {
    w->gone = true; /* it has ended, and its id may be another thread's */
    return;
  }
  if (w->waits && cpu == w->cpu_ns)
    look_stayed(s, now);
  else
    look_moved(s, now, cpu);
  w->looked_ns = now;
  uint64_t next = (now - w->since_ns) / PART;
  next = next > LONGEST_NS ? LONGEST_NS : next;
  w->due_ns = now + look_random(now, next > period_ns ? next : period_ns);
}

void ljp_watch_tell_outdated(struct ljp_sampler *s)
{
  if (s->watch->pending_ns && look_outdated(s->watch))
    ljp_watch_tell(s, s->watch->looked_ns);
}

/* The time of samples in a thread, and of those that were lost. */
static uint64_t look_known_ns(const struct ljp_sampler_counts *counts)
{
  return atomic_load(&counts->time_ns) + atomic_load(&counts->lost_ns) +
         atomic_load(&counts->outside_ns);
}

uint64_t ljp_watch_finish(struct ljp_sampler *s)
{
  struct ljp_watch *w = s->watch;
  if (!w->gone)
    ljp_watch_look(s, 0);
  /* It had samples of its own after the last look. */
  if (w->gone && s->clock_ns > w->looked_ns)
    w->looked_ns = s->clock_ns;
  if (w->credit_ns < 0) {
    uint64_t over = (uint64_t)-w->credit_ns;
    w->pending_ns -= over < w->pending_ns ? over : w->pending_ns;
  }
  ljp_watch_tell(s, w->looked_ns);
  uint64_t lived = w->looked_ns - w->began_ns;
  uint64_t samples = look_known_ns(&s->counts) + look_known_ns(&w->counts);
  /* Waits that no look has seen. */
  if (w->credit_ns > 0 && lived > samples + w->untold_ns + w->unreadable_ns) {
    uint64_t rest = lived - samples - w->untold_ns - w->unreadable_ns;
    uint64_t credit = (uint64_t)w->credit_ns;
    w->unreadable_ns += credit < rest ? credit : rest;
  }
  uint64_t known = samples + w->untold_ns + w->unreadable_ns;
  return lived > known ? lived - known : 0;
}
