/*
** What a session of the CPU profiler needs before it can run: a signal, a
** timer source, a stream; and what the writer asks while it does. Part of
** sysprof.c, under its lock.
*/
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "profilers/cpu/priv.h"

static struct ljp_sysprof *const g = &ljp_sysprof;

void ljp_sysprof_tell_unsampled(void)
{
  char text[32];
  snprintf(text, sizeof text, "%llu",
           (unsigned long long)g->ended.unsampled_ns);
  ljp_session_info(g->session, "cpu.unsampled_ns", text);
}

/* -- What a session takes from the process ------------------------------------ */

bool ljp_sysprof_handler_is_ours(int signal)
{
  struct sigaction now;
  return !sigaction(signal, NULL, &now) && (now.sa_flags & SA_SIGINFO) &&
         now.sa_sigaction == ljp_sampler_signal;
}

/* The handler is put in once and stays, as a stub that takes nothing. */
enum ljp_status ljp_sysprof_take_signal(struct ljp_failure *why)
{
  struct sigaction now,
      ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  int signal = g->options.signal;
  if (sigaction(signal, NULL, &now))
    return ljp_fail(why, LJP_ERR_USE, EINVAL, "signal %d cannot be handled",
                    signal);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == ljp_sampler_signal)
    return LJP_OK;
  if ((now.sa_flags & SA_SIGINFO) ||
      (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN))
    return ljp_fail(
        why, LJP_ERR_RUN, EBUSY,
        "the program has a handler of its own for signal %d (SIG%s); "
        "choose another by the option %s=",
        signal, sigabbrev_np(signal) ? sigabbrev_np(signal) : "?",
        g->source->signal ? "timer" : "signal");
  ljp_sampler_before = now;
  ours.sa_sigaction = ljp_sampler_signal;
  sigfillset(&ours.sa_mask);
  sigdelset(&ours.sa_mask, SIGSEGV);
  sigdelset(&ours.sa_mask, SIGBUS);
  sigdelset(&ours.sa_mask, SIGILL);
  sigdelset(&ours.sa_mask, SIGFPE);
  sigdelset(&ours.sa_mask, SIGTRAP);
  if (sigaction(signal, &ours, NULL))
    return ljp_fail(why, LJP_ERR_USE, errno, "signal %d: %s", signal,
                    strerror(errno));
  return LJP_OK;
}

static enum ljp_status no_trap(struct ljp_failure *why, int error)
{
  if (error == EOPNOTSUPP)
    return ljp_fail(why, LJP_ERR_NOTSUP, error,
                    "timer \"trap\" needs Linux 6.15 or later; "
                    "\"perf\" does the same");
  return ljp_fail(why, LJP_ERR_NOTSUP, error,
                  "timer \"trap\" needs the right to count time in the kernel "
                  "(kernel.perf_event_paranoid <= 1, or CAP_PERFMON): %s",
                  strerror(error));
}

/* There if the process runs under ThreadSanitizer. */
extern void __tsan_init(void) __attribute__((weak));

static enum ljp_status choose(struct ljp_failure *why)
{
  const struct ljp_sysprof_options *o = &g->options;
  g->source = &ljp_timer_posix;
  if (o->source == LJP_TIMER_POSIX || (o->wall && o->source == LJP_TIMER_AUTO))
    return LJP_OK;
  if (o->wall)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "event \"wall\" needs timer \"posix\" (or \"auto\")");
  if (o->source == LJP_TIMER_TRAP) {
    int error = ljp_timer_trap.available();
    g->source = &ljp_timer_trap;
    return error ? no_trap(why, error) : LJP_OK;
  }
  int error = ljp_timer_perf.available();
  if (!error)
    g->source = &ljp_timer_perf;
  else if (o->source == LJP_TIMER_PERF)
    return ljp_fail(
        why, LJP_ERR_NOTSUP, error,
        "timer \"perf\" needs the right to count time in the kernel "
        "(kernel.perf_event_paranoid <= 1, or CAP_PERFMON): %s",
        strerror(error));
  return LJP_OK;
}

enum ljp_status ljp_sysprof_choose_source(struct ljp_failure *why)
{
  struct ljp_sysprof_options *o = &g->options;
  /* Its reasons stand in test/e2e/tsan_host.c. */
  if (__tsan_init)
    return ljp_fail(why, LJP_ERR_NOTSUP, ENOTSUP,
                    "no CPU samples under ThreadSanitizer, which puts signals "
                    "off until their context is gone; use a build without it");
  enum ljp_status status = choose(why);
  if (status)
    return status;
  int only = g->source->signal;
  if (only && o->signal && o->signal != only)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "timer \"%s\" sends signal %d (SIG%s) and no other; leave "
                    "the option signal= out",
                    g->source->name, only, sigabbrev_np(only));
  o->signal = only ? only : o->signal ? o->signal : SIGPROF;
  return LJP_OK;
}

/* -- Its stream ------------------------------------------------------------------ */

static void put_info(const char *key, const char *format, double value)
{
  char text[64];
  snprintf(text, sizeof text, format, value);
  ljp_session_info(g->session, key, text);
}

enum ljp_status ljp_sysprof_open(struct ljp_failure *why,
                                 void (*round)(void *ctx),
                                 void (*fork_child)(void *ctx, bool recording))
{
  const struct ljp_sysprof_options *o = &g->options;
  enum ljp_status status =
      ljp_output_new(&o->output, round, fork_child, &g->hold, &g->session, why);
  if (status)
    return status;
  static const char *const modes[] = {"D", "L", "C"};
  ljp_session_info(g->session, "option.mode", modes[o->mode]);
  ljp_session_info(g->session, "option.event", o->wall ? "wall" : "cpu");
  ljp_session_info(g->session, "option.timer", g->source->name);
  put_info("option.interval_us", "%.3f", (double)o->interval_ns / 1e3);
  return ljp_output_start(&o->output, &g->session, why);
}
