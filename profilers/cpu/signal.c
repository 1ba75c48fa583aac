/*
** The process's signal handler; see signal.h.
*/
#include "profilers/cpu/signal.h"

#include <errno.h>
#include <string.h>

bool ljp_signal_is_ours(int signal)
{
  struct sigaction now;
  return !sigaction(signal, NULL, &now) && (now.sa_flags & SA_SIGINFO) &&
         now.sa_sigaction == ljp_sampler_signal;
}

const char *ljp_signal_option(const struct ljp_timer_source *source)
{
  return source->signal ? "timer" : "signal";
}

enum ljp_status ljp_signal_install(int signal,
                                   const struct ljp_timer_source *source,
                                   struct ljp_failure *why)
{
  struct sigaction now,
      ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
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
        ljp_signal_option(source));
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
