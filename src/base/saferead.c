/*
** The fault handler behind fault-safe reads: putting it in, taking it out, and
** passing on every fault that is not ours.
**
** Mental picture: a chain of handlers, the kernel calls the top one. We own up
** to SLOTS places in the chain, each with an entry function of its own and the
** action that it replaced. A place that the host has covered with a handler of
** its own can neither be taken out (the host may chain to it) nor be used
** again (that would close a ring), so the next one goes on top.
**
** Invariant: slot.old is what was there before the slot's entry was installed,
** written before the kernel can call the entry, never while it can.
** Safety: install, remove and check from ordinary code only (one mutex); the
** entries run on whatever faults, and call only async-signal-safe functions.
*/
#include "src/base/saferead.h"
#include "src/base/saferead_priv.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)

enum { SLOTS = 8, SIGNALS = 2 };
static const int numbers[SIGNALS] = {SIGSEGV, SIGBUS};

typedef void handler_fn(int, siginfo_t *, void *);

static struct {
  struct sigaction old;
  _Atomic bool spent; /* old had SA_RESETHAND and has been called */
  bool covered;       /* was not on top when last looked at; stays for good */
} slots[SLOTS][SIGNALS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned installs;
static int current = -1; /* slot that is on top, or was when last seen */

/* What the kernel would have done had the disposition been SIG_DFL. */
static void do_default(int number, siginfo_t *info)
{
  struct sigaction action = {.sa_handler = SIG_DFL};
  /* Our reads are no longer protected: no walk may start. */
  atomic_store_explicit(&ljp_saferead_ready, false, memory_order_release);
  sigaction(number, &action, NULL);
  /* A fault is raised anew when its instruction runs again, so that the core
  ** dump shows it; a signal that somebody sent has to be sent again. */
  if (info->si_code <= 0)
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, info);
}

static void chain(int slot, int index, siginfo_t *info, void *context)
{
  const struct sigaction *old = &slots[slot][index].old;
  int number = numbers[index];
  bool plain = !(old->sa_flags & SA_SIGINFO);

  if (plain && old->sa_handler == SIG_IGN && info->si_code <= 0)
    return;
  /* The kernel does not let a real fault be ignored either. */
  if (plain && (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN)) {
    do_default(number, info);
    return;
  }
  if ((old->sa_flags & SA_RESETHAND) &&
      atomic_exchange(&slots[slot][index].spent, true)) {
    do_default(number, info);
    return;
  }
  /* The kernel passes all three whether or not SA_SIGINFO is set. */
  handler_fn *handler = old->sa_sigaction;
  handler(number, info, context);
}

/* What faulted. If a SIGTRAP of the kernel's is waiting meanwhile because its own
** handler runs (timer_trap.c), Linux delivers that one first, blocked or not. The
** fault is then found at the first instruction of that handler, which has just
** been given its frame: the way back, the context, the siginfo. The context in
** there is that of the fault. */
static ucontext_t *faulted(ucontext_t *uc)
{
  enum { CONTEXT = offsetof(ucontext_t, uc_sigmask) + 8 }; /* the kernel's */
  const greg_t *r = uc->uc_mcontext.gregs;
  greg_t frame = r[REG_RSP] + 8;
  return r[REG_RDI] == SIGTRAP && r[REG_RDX] == frame &&
                 r[REG_RSI] == frame + CONTEXT
             ? (ucontext_t *)(uintptr_t)frame
             : uc;
}

static void on_fault(int slot, int number, siginfo_t *info, void *context)
{
  greg_t *rip = &faulted(context)->uc_mcontext.gregs[REG_RIP];

  if (info->si_code > 0 && (uintptr_t)*rip == (uintptr_t)ljp_saferead_at)
    *rip = (greg_t)(uintptr_t)ljp_saferead_failed;
  else if (info->si_code > 0 &&
           (uintptr_t)*rip == (uintptr_t)ljp_saferead_words_at)
    *rip = (greg_t)(uintptr_t)ljp_saferead_words_failed;
  else if (info->si_code > 0 &&
           (uintptr_t)*rip == (uintptr_t)ljp_saferead_equal_at)
    *rip = (greg_t)(uintptr_t)ljp_saferead_equal_failed;
  else if (info->si_code > 0 &&
           (uintptr_t)*rip - (uintptr_t)ljp_saferead_four_at <
               (uintptr_t)ljp_saferead_four_end -
                   (uintptr_t)ljp_saferead_four_at)
    *rip = (greg_t)(uintptr_t)ljp_saferead_four_failed;
  else
    chain(slot, number == SIGBUS, info, context);
}

#define ENTRY(slot)                                                            \
  static void entry_##slot(int number, siginfo_t *info, void *context)         \
  {                                                                            \
    on_fault(slot, number, info, context);                                     \
  }
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)
ENTRY(6)
ENTRY(7)
#undef ENTRY
static handler_fn *const entries[SLOTS] = {entry_0, entry_1, entry_2, entry_3,
                                           entry_4, entry_5, entry_6, entry_7};

static bool on_top(int slot, int index)
{
  struct sigaction now;
  return !sigaction(numbers[index], NULL, &now) &&
         (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == entries[slot];
}

static int put(int slot, int index)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  struct sigaction *old = &slots[slot][index].old;
  struct sigaction seen;

  if (sigaction(numbers[index], NULL, old))
    return -1;
  atomic_store(&slots[slot][index].spent, false);
  slots[slot][index].covered = false;
  action.sa_sigaction = entries[slot];
  if ((old->sa_flags & SA_SIGINFO) ||
      (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)) {
    /* Mask, stack and nesting are then the kernel's work, and exact. */
    action.sa_mask = old->sa_mask;
    action.sa_flags =
        SA_SIGINFO | (old->sa_flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART));
  }
  return sigaction(numbers[index], &action, &seen);
}

static void take_out(int slot)
{
  for (int i = 0; i < SIGNALS; i++) {
    if (!on_top(slot, i))
      slots[slot][i].covered = true;
    else if (atomic_load(&slots[slot][i].spent)) {
      struct sigaction reset = {.sa_handler = SIG_DFL};
      sigaction(numbers[i], &reset, NULL);
    } else
      sigaction(numbers[i], &slots[slot][i].old, NULL);
  }
}

static bool usable(int slot)
{
  return !slots[slot][0].covered && !slots[slot][1].covered;
}

static enum ljp_status put_on_top(void)
{
  for (int slot = 0; slot < SLOTS; slot++) {
    if (!usable(slot))
      continue;
    if (put(slot, 0) || put(slot, 1)) {
      take_out(slot);
      return LJP_ERR_RUN;
    }
    current = slot;
    /* release: whoever sees it set may fault. */
    atomic_store_explicit(&ljp_saferead_ready, true, memory_order_release);
    return LJP_OK;
  }
  return LJP_ERR_LIMIT;
}

static bool check_locked(void)
{
  if (!installs)
    return false;
  /* Any place of ours will do: a host that covers us for a while and then
  ** restores what it found brings an older one back. */
  for (int slot = 0; slot < SLOTS; slot++)
    if (on_top(slot, 0) && on_top(slot, 1)) {
      current = slot;
      atomic_store(&ljp_saferead_ready, true);
      return true;
    }
  atomic_store(&ljp_saferead_ready, false);
  if (current >= 0)
    take_out(current);
  current = -1;
  return put_on_top() == LJP_OK;
}

enum ljp_status ljp_saferead_install(void)
{
  enum ljp_status status = LJP_OK;
  pthread_mutex_lock(&lock);
  if (installs == 0)
    status = put_on_top();
  if (status == LJP_OK)
    installs++;
  pthread_mutex_unlock(&lock);
  return status;
}

void ljp_saferead_remove(void)
{
  pthread_mutex_lock(&lock);
  if (installs && --installs == 0) {
    atomic_store(&ljp_saferead_ready, false);
    if (current >= 0)
      take_out(current);
    current = -1;
  }
  pthread_mutex_unlock(&lock);
}

bool ljp_saferead_check(void)
{
  pthread_mutex_lock(&lock);
  bool ok = check_locked();
  pthread_mutex_unlock(&lock);
  return ok;
}

#else

enum ljp_status ljp_saferead_install(void)
{
  return LJP_ERR_NOTSUP;
}

void ljp_saferead_remove(void)
{
}

bool ljp_saferead_check(void)
{
  return false;
}

#endif
