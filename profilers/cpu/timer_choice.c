/*
** Which timer source a session uses, and with it which signal; see timer.h.
*/
#include <errno.h>
#include <string.h>

#include "profilers/cpu/signal.h"
#include "profilers/cpu/sysprof.h"
#include "profilers/cpu/timer.h"

/* Defined if the process runs under ThreadSanitizer. */
extern void __tsan_init(void) __attribute__((weak));

static enum ljp_status choice_no_trap(struct ljp_failure *why, int error)
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

static enum ljp_status choice_source(const struct ljp_sysprof_options *o,
                                     const struct ljp_timer_source **source,
                                     struct ljp_failure *why)
{
  *source = &ljp_timer_posix;
  if (o->timer == LJP_TIMER_POSIX || (o->wall && o->timer == LJP_TIMER_NONE))
    return LJP_OK;
  if (o->wall)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "event \"wall\" needs timer \"posix\" (or \"auto\")");
  if (o->timer == LJP_TIMER_TRAP) {
    int error = ljp_timer_trap.available();
    *source = &ljp_timer_trap;
    return error ? choice_no_trap(why, error) : LJP_OK;
  }
  int error = ljp_timer_perf.available();
  if (!error)
    *source = &ljp_timer_perf;
  else if (o->timer == LJP_TIMER_PERF)
    return ljp_fail(
        why, LJP_ERR_NOTSUP, error,
        "timer \"perf\" needs the right to count time in the kernel "
        "(kernel.perf_event_paranoid <= 1, or CAP_PERFMON): %s",
        strerror(error));
  return LJP_OK;
}

enum ljp_status ljp_timer_choose(struct ljp_sysprof_options *o,
                                 const struct ljp_timer_source **source,
                                 struct ljp_failure *why)
{
  /* test/e2e/tsan_host.c says why. */
  if (__tsan_init)
    return ljp_fail(why, LJP_ERR_NOTSUP, ENOTSUP,
                    "no CPU samples under ThreadSanitizer, which delays "
                    "signals until their context is gone; use a build without "
                    "it");
  enum ljp_status status = choice_source(o, source, why);
  if (status)
    return status;
  int only = (*source)->signal;
  if (only && o->signal && o->signal != only)
    return ljp_fail(why, LJP_ERR_USE, EINVAL,
                    "timer \"%s\" sends signal %d (SIG%s) and no other; leave "
                    "the option signal= out",
                    (*source)->name, only, sigabbrev_np(only));
  o->signal = only ? only : o->signal ? o->signal : ljp_signal_default();
  return LJP_OK;
}
