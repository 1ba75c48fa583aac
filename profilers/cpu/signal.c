/*
** The process's signal handler; see signal.h.
*/
#include "profilers/cpu/signal.h"

#include <errno.h>
#include <string.h>

#include "src/base/signals.h"

/* What a program does not choose itself, in the order of preference: signals
** whose default action is to be ignored. One that is pending when the program
** execs, or after the program has reset all signals, does no harm. SIGURG is
** also what Go's runtime uses for its own interruptions. */
static const int signal_defaults[] = {SIGURG, SIGWINCH};

static enum ljp_handler signal_handler(const struct sigaction *now)
{
  if ((now->sa_flags & SA_SIGINFO) && now->sa_sigaction == ljp_sampler_signal)
    return LJP_HANDLER_OURS;
  return !(now->sa_flags & SA_SIGINFO) &&
                 (now->sa_handler == SIG_DFL || now->sa_handler == SIG_IGN)
             ? LJP_HANDLER_NONE
             : LJP_HANDLER_OTHER;
}

enum ljp_handler ljp_signal_handler(int signal)
{
  struct sigaction now;
  return sigaction(signal, NULL, &now) ? LJP_HANDLER_NONE
                                       : signal_handler(&now);
}

int ljp_signal_default(void)
{
  sigset_t blocked;
  sigemptyset(&blocked);
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  for (size_t i = 0; i < sizeof signal_defaults / sizeof *signal_defaults; i++)
    if (ljp_signal_handler(signal_defaults[i]) != LJP_HANDLER_OTHER &&
        !sigismember(&blocked, signal_defaults[i]))
      return signal_defaults[i];
  return signal_defaults[0];
}

/* Sets our handler and tells what was there before. An errno, or 0. */
static int signal_set(int signal, struct sigaction *before)
{
  struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  ours.sa_sigaction = ljp_sampler_signal;
  sigfillset(&ours.sa_mask);
  sigdelset(&ours.sa_mask, SIGSEGV);
  sigdelset(&ours.sa_mask, SIGBUS);
  sigdelset(&ours.sa_mask, SIGILL);
  sigdelset(&ours.sa_mask, SIGFPE);
  sigdelset(&ours.sa_mask, SIGTRAP);
  return sigaction(signal, &ours, before) ? errno : 0;
}

bool ljp_signal_set_again(int signal)
{
  struct sigaction before;
  if (signal_set(signal, &before))
    return false;
  if (signal_handler(&before) != LJP_HANDLER_OTHER)
    return true;
  sigaction(signal, &before, NULL); /* the program was faster */
  return false;
}

enum ljp_status ljp_signal_install(int signal, struct ljp_failure *why)
{
  struct sigaction now;
  if (sigaction(signal, NULL, &now))
    return ljp_fail(why, LJP_ERR_USE, EINVAL, "signal %d cannot be handled",
                    signal);
  if (signal_handler(&now) == LJP_HANDLER_OURS)
    return LJP_OK;
  if (signal_handler(&now) == LJP_HANDLER_OTHER)
    return ljp_fail(
        why, LJP_ERR_RUN, EBUSY,
        "the program has a handler of its own for signal %d (SIG%s); "
        "choose another with the option signal=",
        signal, ljp_signal_name(signal));
  ljp_sampler_before = now;
  int error = signal_set(signal, NULL);
  return error ? ljp_fail(why, LJP_ERR_USE, error, "signal %d: %s", signal,
                          strerror(error))
               : LJP_OK;
}

/* The borrowed signal, or 0; under the lock of the CPU profiler. */
static int signal_borrowed;

int ljp_signal_borrow(int signal)
{
  struct sigaction now;
  signal_borrowed = 0;
  if (signal && !sigaction(signal, NULL, &now) &&
      !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL &&
      !signal_set(signal, NULL))
    signal_borrowed = signal;
  return signal_borrowed;
}

void ljp_signal_give_back(void)
{
  if (signal_borrowed &&
      ljp_signal_handler(signal_borrowed) == LJP_HANDLER_OURS)
    signal(signal_borrowed, SIG_DFL);
  signal_borrowed = 0;
}
