/*
** The signal handler: takes one sample of the thread that it interrupts; see
** sampler.h. LJP_SIGSAFE throughout. It needs little of the interrupted stack:
** the work is done on a side stack (handler_stack.h).
**
** Weights. Reading the thread's CPU clock is a system call, so the handler
** reads it only when it must. A perf task-clock event comes after each period
** of CPU time. Two events that come shortly after each other stand for one
** period each, so the handler reads the CPU clock only after a longer gap (with
** the source tick, always). A
** POSIX timer follows the monotonic clock. While its signals come on time, the
** thread has most likely run all the time, and the weight is the time since the
** last signal. The handler reads the CPU clock after a gap, and every few
** milliseconds or samples. In both cases the difference from the CPU clock goes
** to the next sample, so the sum of all weights is the thread's CPU time.
**
** System calls. The handler sets no timer, and makes only calls that nearly
** every sandbox permits: some kill the program for others. It reads the CPU
** clock, wakes the writer, and now and then asks about signals (restart.c,
** saferead.h, handler_stack.c). The writer does the rest: timer_period.c,
** timer_idle.c.
*/
#include "profilers/cpu/sampler.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

#include "profilers/cpu/handler_stack.h"
#include "profilers/cpu/restart.h"
#include "profilers/cpu/sample_stack.h"
#include "profilers/cpu/signal_owner.h"
#include "profilers/cpu/timer.h"
#include "profilers/cpu/timer_wish.h"
#include "profilers/session/stand_in.h"
#include "profilers/session/vms.h"
#include "src/base/assert.h"
#include "src/base/clock.h"
#include "src/base/saferead.h"
#include "src/push/event.h"

struct ljp_sampler_shared ljp_sampler_shared;
struct ljp_sampler *_Atomic ljp_samplers[LJP_SAMPLERS];
_Atomic uint16_t ljp_sampler_of_fd[LJP_SAMPLER_FDS];
struct sigaction ljp_sampler_before;

#define shared ljp_sampler_shared

enum {
  REST_AFTER = 4,  /* samples in a row that took half an interval */
  LONG_NS = 50000, /* a sample that takes longer may have been preempted */
  /* The CPU clock is read after this time, or this many periods. */
  ASK_NS = 8000000,
  ASK_PERIODS = 16,
  MERGE_PART = 8 /* of a period: signals closer than that are one sample */
};

/* For counters that one context at a time increments: no atomic addition. */
LJP_SIGSAFE static void sampler_count(_Atomic uint64_t *counter, uint64_t n)
{
  atomic_store_explicit(counter,
                        atomic_load_explicit(counter, memory_order_relaxed) + n,
                        memory_order_relaxed);
}

/* For code that a signal may interrupt. */
LJP_SIGSAFE static void sampler_count_shared(_Atomic uint64_t *counter,
                                             uint64_t n)
{
  atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

LJP_SIGSAFE static void sampler_lose(struct ljp_sampler *s,
                                     enum ljp_loss reason, uint64_t weight)
{
  sampler_count(&s->counts.lost[reason], 1);
  sampler_count(&s->counts.lost_ns, weight);
  if (s->producer)
    ljp_count_loss(s->producer, reason, 1);
}

/* -- Other signals --------------------------------------------------------- */
/* Without an earlier handler the signal is ignored. The default action might
** end the process, and the signal may be one of ours from before a stop. Ignored
** signals end no wait. */
LJP_SIGSAFE static void sampler_pass_on(int number, siginfo_t *info,
                                        void *context)
{
  const struct sigaction *old = &ljp_sampler_before;
  if (old->sa_flags & SA_SIGINFO)
    old->sa_sigaction(number, info, context);
  else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
    old->sa_handler(number);
  else
    ljp_restart_call(context, number);
}

/* -- The weight ------------------------------------------------------------ */
LJP_SIGSAFE static uint64_t sampler_cpu_ns(void)
{
  return ljp_clock_of(CLOCK_THREAD_CPUTIME_ID);
}

/* What the handler knows about a system call of the thread. */
enum call {
  CALL_NOT_ASKED,
  CALL_NONE,
  CALL_MADE,
  CALL_AGAIN /* the kernel will restart it */
};

/* Was the thread in a system call when the signal came? If the call will be
** restarted, the program counter is on the instruction, not behind it. */
LJP_SIGSAFE static enum call sampler_call(uint64_t pc)
{
  const unsigned char *rip = (const unsigned char *)(uintptr_t)pc;
  unsigned char code[4] = {0, 0, 0, 0};
  size_t got = ljp_safe_copy(code, rip - 2, 4);
  if (got >= 2 && code[0] == 0x0f && code[1] == 0x05)
    return CALL_MADE;
  return got == 4 && code[2] == 0x0f && code[3] == 0x05 ? CALL_AGAIN
                                                        : CALL_NONE;
}

LJP_SIGSAFE static uint64_t sampler_register(const void *context, int number)
{
  return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[number];
}

/* Has the signal ended a wait? A thread that is about to make a call looks like
** one whose call will be restarted, but it has run all the time. */
LJP_SIGSAFE static bool sampler_ended_wait(const void *context, enum call call,
                                           uint64_t used, uint64_t gap)
{
  return call == CALL_AGAIN
             ? used < gap / 2
             : sampler_register(context, REG_RAX) == (uint64_t)-EINTR;
}

/* The writer is to stop the thread's timers. */
LJP_SIGSAFE static void sampler_ask_to_park(struct ljp_sampler *s)
{
  if (!atomic_exchange_explicit(&s->waits, true, memory_order_relaxed) &&
      s->producer)
    ljp_producer_ask_look(s->producer);
}

/* May the time since the last signal differ from CPU time? Then the handler
** reads the CPU clock. */
LJP_SIGSAFE static bool sampler_must_ask(const struct ljp_sampler *s,
                                         uint64_t now, uint64_t gap,
                                         uint64_t period)
{
  if (atomic_load_explicit(&s->resync, memory_order_relaxed))
    return true;
  if (s->perf)
    return s->tick || gap >= 2 * period;
  return gap > period + period / 4 || now - s->asked_ns >= ASK_NS ||
         now - s->asked_ns >= ASK_PERIODS * period || s->parked;
}

/* The ns that the sample stands for; 0: no sample is taken. */
LJP_SIGSAFE static uint64_t sampler_weigh(struct ljp_sampler *s, uint64_t now,
                                          const void *context, bool readable,
                                          enum call *call)
{
  uint64_t period = atomic_load_explicit(&s->period_ns, memory_order_relaxed);
  uint64_t gap = now - s->clock_ns;
  ljp_assert(period > 0);
  s->clock_ns = now;
  if (!s->perf && readable)
    *call = sampler_call(sampler_register(context, REG_RIP));
  bool in_call = *call == CALL_MADE || *call == CALL_AGAIN;
  if (LJP_LIKELY(!in_call && !sampler_must_ask(s, now, gap, period))) {
    uint64_t ran = s->perf ? period : gap;
    s->cpu_ns += ran;
    return ran;
  }
  uint64_t cpu = sampler_cpu_ns();
  uint64_t used = cpu > s->cpu_ns ? cpu - s->cpu_ns : 0;
  s->asked_ns = now;
  /* The signal of a POSIX timer wakes a waiting thread. Such a signal is no
  ** sample of CPU time. The time that the thread used before goes to its next
  ** sample. */
  if (in_call && sampler_ended_wait(context, *call, used, gap)) {
    atomic_store_explicit(&s->resync, true, memory_order_relaxed);
    sampler_ask_to_park(s);
    return 0;
  }
  /* No CPU time was used, so the weights are ahead of the CPU clock. Until the
  ** clock has caught up nothing is added. */
  atomic_store_explicit(&s->resync, !used, memory_order_relaxed);
  s->cpu_ns += used;
  return used ? used : 1;
}

/* -- The sample ------------------------------------------------------------ */
/* The VM's id in the session. 0: the next round of the writer gives it one. */
LJP_SIGSAFE static uint32_t sampler_vm_id(struct ljp_sampler *s,
                                          uint32_t number)
{
  bool claimed;
  uint32_t id = ljp_vms_claim(number, &claimed);
  if (LJP_UNLIKELY(claimed) && s->producer)
    ljp_producer_wake(s->producer);
  return id;
}

LJP_SIGSAFE static void sampler_push(struct ljp_sampler *s,
                                     struct ljp_walk *walk, uint64_t now,
                                     uint64_t weight)
{
  bool lfunc;
  enum ljp_vmstate state = ljp_sample_vmstate(walk, &lfunc);
  if (walk->guest.vm)
    atomic_store_explicit(&s->ran_lua, true, memory_order_relaxed);
  else if (shared.only_lua &&
           !atomic_load_explicit(&s->ran_lua, memory_order_relaxed)) {
    sampler_count(&s->counts.outside, 1);
    sampler_count(&s->counts.outside_ns, weight);
    return;
  }
  if (shared.mode == LJP_SAMPLER_LEAF)
    ljp_sample_keep_leaf(&walk->stack);
  else if (shared.mode == LJP_SAMPLER_STACKS && shared.backtracer)
    ljp_sample_backtrace(&walk->stack, shared.backtracer);
  if (shared.mode != LJP_SAMPLER_COUNT) {
    ljp_assert(s->producer);
    struct ljp_sample sample = {.time_ns = now,
                                .weight = weight,
                                .vm = sampler_vm_id(s, walk->guest.vm),
                                .labels =
                                    ljp_guest_labels_at(walk->guest.thread),
                                .vmstate = (uint8_t)state,
                                .cut = (uint8_t)walk->stack.cut};
    if (!ljp_push_sample(s->producer, &sample, walk->stack.frames,
                         walk->stack.count)) {
      /* The producer has counted the loss already, with its reason. */
      sampler_count(
          &s->counts.lost[ljp_producer_active(s->producer) ? LJP_LOSS_RING_FULL
                                                           : LJP_LOSS_STOPPING],
          1);
      sampler_count(&s->counts.lost_ns, weight);
      return;
    }
    sampler_count(&s->counts.cut[walk->stack.cut & 15], 1);
  }
  sampler_count(&s->counts.samples, 1);
  sampler_count(&s->counts.state[state & (LJP_SAMPLER_STATES - 1)], 1);
  sampler_count(&s->counts.time_ns, weight);
  if (lfunc)
    sampler_count(&s->counts.lfunc, 1);
}

enum moment {
  NOW,
  IN_PROFILER, /* our own code was interrupted; regs are its caller's */
  LATE         /* the sample was deferred */
};

/* Adds the leaf that stands for the kernel or for our own code. */
LJP_SIGSAFE static void sampler_add_leaf(struct ljp_stack *stack,
                                         enum moment moment, uint64_t rip,
                                         enum call call)
{
  if (moment == IN_PROFILER)
    ljp_sample_add_leaf(stack, LJP_FRAME_PROFILER, shared.depth);
  /* A signal that is raised in a system call arrives when the call returns. */
  else if (stack->count && ljp_frame_kind(stack->frames[0]) == LJP_FRAME_HOST &&
           (call == CALL_NOT_ASKED ? sampler_call(rip) : call) != CALL_NONE)
    ljp_sample_add_leaf(stack, LJP_FRAME_KERNEL, shared.depth);
}

/* regs: with a room. */
LJP_SIGSAFE static void sampler_take(struct ljp_sampler *s,
                                     struct ljp_regs *regs, uint64_t now,
                                     uint64_t weight, enum moment moment,
                                     enum call call)
{
  struct ljp_walk walk;
  uint64_t rip = regs->r[LJP_RIP];
  const struct ljp_unwind_map *map = ljp_unwind_acquire(shared.unwind);
  if (LJP_UNLIKELY(!map)) {
    sampler_lose(s, LJP_LOSS_BUSY, weight);
    return;
  }
  enum ljp_walk_result result =
      shared.mode == LJP_SAMPLER_STACKS
          ? ljp_walk_memo(&walk, map, regs, s->frames, shared.depth, s->memo)
          : ljp_walk_leaf(&walk, map, regs, s->frames, shared.depth);
  ljp_unwind_release(shared.unwind, map);
  if (LJP_UNLIKELY(result == LJP_WALK_DEFER)) {
    if (moment == LATE) {
      sampler_lose(s, LJP_LOSS_BUSY, weight);
      return;
    }
    if (!s->deferred++)
      ljp_deferred_note(&s->deferred_at, &walk.stack);
    s->deferred_ns += weight;
    return;
  }
  if (moment == LATE)
    ljp_deferred_drop_hook(&s->deferred_at, &walk.stack);
  else if (shared.mode != LJP_SAMPLER_COUNT)
    sampler_add_leaf(&walk.stack, moment, rip, call);
  sampler_push(s, &walk, now, weight);
  if (LJP_UNLIKELY(ljp_unwind_wants_poll(shared.unwind)) && s->producer)
    ljp_producer_wake(s->producer);
}

/* Records that the interval has changed, and why. */
LJP_SIGSAFE static void sampler_push_interval(struct ljp_sampler *s,
                                              uint64_t now)
{
  uint32_t why =
      atomic_exchange_explicit(&s->interval_why, 0, memory_order_acquire);
  if (why && s->producer)
    ljp_push_interval(
        s->producer, now,
        atomic_load_explicit(&s->interval_ns, memory_order_relaxed),
        (enum ljp_interval_why)why);
}

/* Accounts for the time of a sample that began at `begin`. Decides on a
** rest. */
LJP_SIGSAFE static void sampler_account(struct ljp_sampler *s, uint64_t begin)
{
  uint64_t end = ljp_clock_ns(), spent = end - begin;
  /* The thread may have been preempted for so long: the CPU clock knows. */
  if (LJP_UNLIKELY(spent > LONG_NS)) {
    uint64_t cpu = sampler_cpu_ns();
    uint64_t used = cpu > s->cpu_ns ? cpu - s->cpu_ns : LONG_NS;
    spent = used < spent ? used : spent;
  }
  uint64_t interval =
      atomic_load_explicit(&s->interval_ns, memory_order_relaxed);
  s->long_run = 2 * spent > interval ? s->long_run + 1 : 0;
  if (LJP_UNLIKELY(s->long_run >= REST_AFTER))
    s->rest_until_ns = end + spent;
  sampler_count(&s->counts.handler_ns, spent);
}

LJP_SIGSAFE static void sampler_handle(void *sampler, void *signal_info,
                                       void *context)
{
  struct ljp_sampler *s = sampler;
  siginfo_t *info = signal_info;
  uint64_t now = ljp_clock_ns();
  /* A timer on the CPU clock expires at ticks. */
  int overrun = info->si_code == SI_TIMER && !s->tick && !s->parked
                    ? info->si_overrun
                    : 0;
  /* The first POSIX timer was late and the second one follows at once. It would
  ** sample the same place again. */
  bool merged = !s->perf &&
                now - s->clock_ns <
                    atomic_load_explicit(&s->period_ns, memory_order_relaxed) /
                        MERGE_PART;
  if (LJP_UNLIKELY(overrun > 0 || merged)) {
    uint64_t n = (uint64_t)(overrun > 0 ? overrun : 0) + merged;
    sampler_count(&s->counts.overruns, n);
    if (s->producer)
      ljp_count_overrun(s->producer, n);
    if (merged)
      return;
  }
  /* The host must make progress even without a limit by the user. So after
  ** several long samples the handler rests for as long as it has worked. */
  if (LJP_UNLIKELY(now < s->rest_until_ns)) {
    atomic_store_explicit(&s->resync, true, memory_order_relaxed);
    sampler_lose(s, LJP_LOSS_THROTTLE, 0); /* the next sample has its time */
    return;
  }
  ucontext_t *uc = context;
  bool readable = ljp_saferead_enter(&uc->uc_sigmask);
  enum call call = CALL_NOT_ASKED;
  uint64_t weight = sampler_weigh(s, now, context, readable, &call);
  if (!weight) {
    sampler_count(&s->counts.idle, 1);
    return;
  }
  if (atomic_load_explicit(&s->owed_ns, memory_order_relaxed))
    weight += atomic_exchange_explicit(&s->owed_ns, 0, memory_order_relaxed);
  if (LJP_UNLIKELY(
          atomic_load_explicit(&s->interval_why, memory_order_relaxed) != 0))
    sampler_push_interval(s, now);
  if (LJP_UNLIKELY(!readable)) {
    sampler_lose(s, LJP_LOSS_BUSY, weight);
    return;
  }
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  const struct ljp_regs *instead = ljp_stand_in_regs;
  const struct ljp_caller *caller = ljp_stand_in_caller;
  if (LJP_UNLIKELY(caller != NULL))
    ljp_caller_registers(caller, &regs);
  else if (LJP_UNLIKELY(instead != NULL))
    regs = *instead;
  else
    ljp_regs_from_context(&regs, context, NULL);
  regs.room = &room;
  sampler_take(s, &regs, now, weight, instead || caller ? IN_PROFILER : NOW,
               call);
  sampler_account(s, now);
}

void ljp_sampler_signal(int number, siginfo_t *info, void *context)
{
  int saved = errno;
  struct ljp_sampler *s = ljp_signal_owner(info);
  if (!s) {
    sampler_pass_on(number, info, context);
    errno = saved;
    return;
  }
  /* The handler sets `inside`, then reads `active`. The life cycle clears
  ** `active`, then reads `inside`. Sequential consistency: at least one of them
  ** sees the other's store. */
  uint32_t nested = atomic_fetch_add(&s->inside, 1);
  if (LJP_LIKELY(atomic_load(&s->active))) {
    if (LJP_LIKELY(!nested))
      ljp_handler_run(s->side, sampler_handle, s, info, context);
    else {
      /* The signal interrupts ljp_sampler_take_deferred(), which is taking a
      ** sample of this moment. One sample is enough for both. The time of this
      ** one goes to the next sample. */
      sampler_count_shared(&s->counts.overruns, 1);
      atomic_store_explicit(&s->resync, true, memory_order_relaxed);
      if (s->producer)
        ljp_count_overrun(s->producer, 1);
    }
  }
  ljp_timer_look_for_wish(s);
  /* The signals of tick interrupt no call. */
  if (!s->tick && !ljp_restart_call(context, number))
    atomic_store_explicit(&shared.ended_wait, true, memory_order_relaxed);
  atomic_fetch_sub(&s->inside, 1);
  errno = saved;
}

/* -- Deferred samples ------------------------------------------------------ */
LJP_SIGSAFE static void sampler_take_late(void *sampler, void *here,
                                          void *unused)
{
  struct ljp_sampler *s = sampler;
  struct ljp_unwind_room room;
  struct ljp_regs regs = *(const struct ljp_regs *)here;
  regs.room = &room;
  uint64_t weight = s->deferred_ns;
  (void)unused;
  /* One sample for all of them, with the present stack. */
  if (s->deferred > 1 && s->producer)
    ljp_count_overrun(s->producer, s->deferred - 1);
  sampler_count_shared(&s->counts.overruns, s->deferred - 1);
  sampler_count(&s->counts.deferred, 1);
  s->deferred = 0;
  s->deferred_ns = 0;
  sampler_take(s, &regs, ljp_clock_ns(), weight, LATE, CALL_NOT_ASKED);
}

void ljp_sampler_take_deferred(struct ljp_sampler *s)
{
  struct ljp_regs regs;
  if (atomic_fetch_add(&s->inside, 1) == 0 && atomic_load(&s->active) &&
      s->deferred) {
    memset(&regs, 0, sizeof regs);
    ljp_registers_here(&regs);
    regs.known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP;
    ljp_handler_run_late(s->side, sampler_take_late, s, &regs);
  }
  atomic_fetch_sub(&s->inside, 1);
}
