/*
** What happens when the program takes or resets our signal while a session
** runs, or handles others; see state.h.
*/
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/cpu/restart.h"
#include "profilers/cpu/signal.h"
#include "profilers/cpu/state.h"
#include "profilers/cpu/threads.h"
#include "src/base/clock.h"
#include "src/base/saferead.h"
#include "src/base/signals.h"

static struct ljp_sysprof *const g = &ljp_sysprof;

static void taken_check_handler(void)
{
  char text[128];
  int number = g->options.signal;
  enum ljp_handler handler = ljp_signal_handler(number);
  if (handler == LJP_HANDLER_OURS)
    return;
  bool again = handler == LJP_HANDLER_NONE && ljp_signal_set_again(number);
  /* With the handler set again each thread gets a new timer: an old one may
  ** wait for ever for its ignored signal to be handled. */
  ljp_threads_drop_all(LJP_UNSAMPLED_HANDLER, true);
  g->armed = again;
  if (again && g->resets++)
    return;
  snprintf(text, sizeof text,
           again ? "the program reset signal %d (SIG%s): some time was not "
                   "sampled"
                 : "the program has a handler of its own for signal %d (SIG%s) "
                   "now: no samples from here on",
           number, ljp_signal_name(number));
  ljp_session_note(g->session, LJP_NOTE_WARNING, text);
}

static void taken_check_waits(void)
{
  bool ended = atomic_load(&ljp_sampler_shared.ended_wait);
  if (g->source != &ljp_timer_posix ||
      (!ended && !ljp_restart_obstacle(0, g->options.signal)))
    return;
  ljp_threads_drop_all(LJP_UNSAMPLED_NO_TIMER, true);
  g->source = &ljp_timer_tick;
  g->refused = EINTR;
  ljp_timer_note();
}

/* The handlers of faulting reads: without them no stack is walked. */
static void taken_check_reads(void)
{
  if (ljp_saferead_check() || g->unreadable)
    return;
  g->unreadable = true;
  ljp_session_note(g->session, LJP_NOTE_WARNING,
                   "the program replaced the handlers of SIGSEGV and SIGBUS "
                   "too often: samples are lost from here on");
}

void ljp_sysprof_check_signals(void)
{
  taken_check_reads();
  if (g->armed)
    taken_check_handler();
  if (g->armed)
    taken_check_waits();
}

/* What the handler leaves to the writer, because it takes system calls. Is a
** thread parked, so that it must be looked at soon again? */
static bool taken_look_at_timers(void)
{
  bool parked = false;
  if (g->running && g->armed)
    LJP_FOR_EACH_SAMPLER(s)
  parked |= ljp_timer_look(s);
  return parked;
}

enum { SOON_NS = 20000000 };

/* A program installs its handlers when it begins. Later it hardly ever does, so
** a short session does not pay for a look. */
uint64_t ljp_sysprof_first_look(void)
{
  enum { YOUNG_CPU_NS = 100000000, LATER_NS = 100000000 };
  bool young = ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID) < YOUNG_CPU_NS;
  g->look_ns = young ? 0 : LATER_NS;
  return young ? SOON_NS : LATER_NS;
}

enum { BUSY_NS = 64000000, IDLE_NS = 250000000 };

/* The longest time between two looks while the process works. Looks are rarer with long
** intervals, because fewer signals come. */
static uint64_t taken_busy_ns(void)
{
  enum { INTERVALS = 64 };
  uint64_t ns = INTERVALS * g->options.interval_ns;
  return ns < BUSY_NS ? BUSY_NS : ns < IDLE_NS ? ns : IDLE_NS;
}

/* Are the signal's handler and those of faulting reads still ours, and is the
** mask of each thread known? A wake-up costs far more than the look. So looks
** are frequent when the program begins, and rare while the process waits, when
** there are hardly any signals. While a thread is parked they are more
** frequent, so that it does not stay parked when it begins to work. */
uint64_t ljp_sysprof_look(void)
{
  enum { PARKED_NS = 10000000, IDLE_CPU_NS = 500000 };
  if (!ljp_profiler_trylock(&g->lock))
    return SOON_NS;
  bool parked = !ljp_sandbox_began() && taken_look_at_timers();
  uint64_t cpu_ns = ljp_clock_of(CLOCK_PROCESS_CPUTIME_ID);
  bool idle = cpu_ns - g->look_cpu_ns < IDLE_CPU_NS;
  uint64_t next = 2 * g->look_ns, most = taken_busy_ns();
  if (!g->running || !g->armed)
    next = most = IDLE_NS;
  else if (ljp_signal_handler(g->options.signal) != LJP_HANDLER_OURS ||
           ljp_saferead_covered())
    next = most = 0;
  else if (idle)
    most = IDLE_NS;
  else if (parked)
    most = PARKED_NS;
  next = next < SOON_NS ? SOON_NS : next;
  g->look_ns = next < most ? next : most;
  g->look_cpu_ns = cpu_ns;
  next = g->look_ns;
  bool missed = atomic_exchange(&g->missed, false);
  if (missed || (g->unsure && !--g->unsure))
    next = 0;
  ljp_profiler_unlock(&g->lock);
  return next;
}
