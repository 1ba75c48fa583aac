/*
** Which timer source a session uses, and with it which signal; see timer.h.
*/
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/cpu/restart.h"
#include "profilers/cpu/signal.h"
#include "profilers/cpu/state.h"
#include "profilers/cpu/timer.h"
#include "src/base/signals.h"

static struct ljp_sysprof *const g = &ljp_sysprof;

/* Defined if the process runs under ThreadSanitizer. */
extern void __tsan_init(void) __attribute__((weak));

/* The kernel queues each real-time signal of a perf event. When the queue is full,
** because a thread blocks the signal, it sends SIGIO instead, which ends programs.
** Of CHLD and SYS it does not tell which event it is. */
static bool choice_perf_takes(int signal)
{
  return signal < SIGRTMIN && signal != SIGCHLD && signal != SIGSYS;
}

static enum ljp_status choice_source(const struct ljp_sysprof_options *o,
                                     const struct ljp_timer_source **source,
                                     int *refused, struct ljp_failure *why)
{
  *refused = 0;
  *source = &ljp_timer_posix;
  if (o->timer == LJP_TIMER_POSIX && !ljp_restart_obstacle(0, o->signal))
    return LJP_OK;
  *source = &ljp_timer_tick;
  if (o->timer == LJP_TIMER_POSIX)
    *refused = EINTR;
  if (o->timer == LJP_TIMER_POSIX || o->timer == LJP_TIMER_TICK)
    return LJP_OK;
  bool wanted = o->timer == LJP_TIMER_PERF || o->timer == LJP_TIMER_TRAP;
  int error = ljp_timer_perf.available();
  if (!error && !choice_perf_takes(o->signal)) {
    if (wanted)
      return ljp_fail(
          why, LJP_ERR_USE, EINVAL,
          "timer \"perf\" cannot use signal %d; choose another with "
          "the option signal= (below 32, and neither CHLD nor SYS), "
          "or timer \"tick\"",
          o->signal);
    error = EINVAL;
  }
  if (!error)
    *source = &ljp_timer_perf;
  else if (wanted)
    return ljp_fail(why, LJP_ERR_NOTSUP, error,
                    "timer \"%s\" needs the right to count time in the kernel "
                    "(kernel.perf_event_paranoid <= 1, or CAP_PERFMON): %s",
                    o->timer == LJP_TIMER_TRAP ? "trap" : "perf",
                    strerror(error));
  *refused = error;
  return LJP_OK;
}

void ljp_timer_note(void)
{
  char text[200];
  int number = g->options.signal;
  if (g->source == &ljp_timer_tick && g->options.timer == LJP_TIMER_NONE &&
      !choice_perf_takes(number)) {
    snprintf(
        text, sizeof text,
        "timer \"tick\" is used, because \"perf\" cannot use signal %d; it "
        "can use others below 32, but for CHLD and SYS",
        number);
    ljp_session_note(g->session, LJP_NOTE_WARNING, text);
  }
  if (g->options.timer == LJP_TIMER_TRAP)
    ljp_session_note(g->session, LJP_NOTE_WARNING,
                     "timer \"trap\" is treated as \"perf\", because its "
                     "SIGTRAP would end programs that exec");
  if (g->options.timer != LJP_TIMER_POSIX || g->source == &ljp_timer_posix)
    return;
  int handled = ljp_restart_obstacle(0, number);
  if (handled)
    snprintf(
        text, sizeof text,
        "timer \"posix\" is treated as \"tick\": the program handles signal "
        "%d (SIG%s), so waits that \"posix\" ends cannot be repeated",
        handled, ljp_signal_name(handled));
  else
    snprintf(text, sizeof text,
             "timer \"posix\" is treated as \"tick\" from here on: a wait that "
             "\"posix\" has ended could not be repeated");
  ljp_session_note(g->session, LJP_NOTE_WARNING, text);
}

/* Starts the thread's timer by this source. */
static int choice_arm(struct ljp_sampler *s,
                      const struct ljp_timer_source *source)
{
  s->source = source;
  s->perf = source->kind != LJP_TIMER_POSIX;
  s->tick = source->kind == LJP_TIMER_TICK;
  uint64_t interval = ljp_sysprof.options.interval_ns;
  if (s->tick && interval < ljp_timer_tick_ns())
    interval = ljp_timer_tick_ns();
  atomic_store(&s->interval_ns, interval);
  atomic_store(&s->period_ns, interval);
  return source->arm(s, ljp_sysprof.options.signal);
}

int ljp_timer_arm(struct ljp_sampler *s, const struct ljp_timer_source *source,
                  bool strict)
{
  int error = choice_arm(s, source);
  s->refused = 0;
  if (!error || strict || source == &ljp_timer_tick)
    return error;
  s->refused = error;
  return choice_arm(s, &ljp_timer_tick);
}

enum ljp_status ljp_timer_choose(struct ljp_sysprof_options *o,
                                 const struct ljp_timer_source **source,
                                 int *refused, struct ljp_failure *why)
{
  /* test/e2e/tsan_host.c says why. */
  if (__tsan_init)
    return ljp_fail(why, LJP_ERR_NOTSUP, ENOTSUP,
                    "no CPU samples under ThreadSanitizer, which delays "
                    "signals until their context is gone; use a build without "
                    "it");
  o->signal = o->signal ? o->signal : ljp_signal_default();
  return choice_source(o, source, refused, why);
}
