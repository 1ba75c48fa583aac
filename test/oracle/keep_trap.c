/*
** Nobody blocks SIGTRAP in the oracle: a step with the signal blocked would end
** the program. libunwind (1.8 and later) blocks all signals while it throws.
*/
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In place of libc's, also for the libraries. */
__attribute__((visibility("default"))) int
pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
  enum { KERNEL_BYTES = 8 };
  int saved = errno, error = 0;
  sigset_t kept;
  if (set && how != SIG_UNBLOCK) {
    kept = *set;
    sigdelset(&kept, SIGTRAP);
    sigdelset(&kept, SIGSEGV); /* reads may fault */
    sigdelset(&kept, SIGBUS);
    set = &kept;
  }
  if (syscall(SYS_rt_sigprocmask, how, set, before, KERNEL_BYTES))
    error = errno;
  errno = saved;
  return error;
}
