/*
** The fault handler of fault-safe reads: installs and removes it, and passes on
** every fault that is not ours.
**
** Mental picture: a chain of handlers, of which the kernel calls the top one.
** We own up to SLOTS places in the chain. Each has an entry function of its own
** and the action that it replaced. If the host installs its own handler on top
** of a place, we can neither remove the place (the host may call it) nor use it
** again (the chain would become a circle), so our next place goes on top. But a
** place that passes faults on to the default action is the end of any chain: it
** is used again after the host has reset the signal.
**
** Invariant: slots[i].old is the action before the slot's entry was installed.
** It is written before the kernel can call the entry, and never while it can.
** While an entry runs, signals are blocked. Before it calls the host's handler
** it sets the mask that the kernel would have set.
** Safety: install, remove and check are for ordinary code (one mutex). The
** entries run in any code that faults, and call only async-signal-safe
** functions.
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
static const int saferead_signals[SIGNALS] = {SIGSEGV, SIGBUS};

typedef void handler_fn(int, siginfo_t *, void *);

static struct {
  struct sigaction old;
  _Atomic bool spent; /* old had SA_RESETHAND and has been called. */
  bool covered; /* Once found below another handler: `old` stays the same. */
} slots[SLOTS][SIGNALS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned installs;
static int current = -1; /* The slot on top at the last look; -1: none. */

/* Does what the kernel does for SIG_DFL. */
static void saferead_default(int number, siginfo_t *info)
{
  struct sigaction action = {.sa_handler = SIG_DFL};
  /* Our reads are no longer protected: no walk may start. */
  atomic_store_explicit(&ljp_saferead_ready, false, memory_order_release);
  sigaction(number, &action, NULL);
  /* A real fault is raised again when its instruction runs again, so that the
  ** core dump shows it. A signal that somebody sent must be sent again. */
  if (info->si_code <= 0)
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, info);
}

/* What an entry blocks: everything that can be blocked, but what an instruction
** raises. */
static void saferead_mask(sigset_t *mask)
{
  sigfillset(mask);
  sigdelset(mask, SIGKILL);
  sigdelset(mask, SIGSTOP);
  sigdelset(mask, SIGILL);
  sigdelset(mask, SIGFPE);
  sigdelset(mask, SIGTRAP);
}

/* Is that mask in force? It is not if a handler of the host calls the entry. */
static bool saferead_masked(const sigset_t *now)
{
  sigset_t full, both;
  saferead_mask(&full);
  sigandset(&both, &full, now);
  return !memcmp(&both, &full, sizeof(uint64_t));
}

/* Calls the host's handler with the mask that the kernel would have set. */
static void saferead_call(const struct sigaction *old, int number,
                          siginfo_t *info, ucontext_t *uc)
{
  /* The kernel passes all three whether or not SA_SIGINFO is set. */
  handler_fn *handler = old->sa_sigaction;
  sigset_t mask, now;
  bool masked =
      !pthread_sigmask(SIG_BLOCK, NULL, &now) && saferead_masked(&now);
  if (masked) {
    mask = old->sa_mask;
    uint64_t both, interrupted; /* the kernel's masks have 64 bits */
    memcpy(&both, &mask, sizeof both);
    memcpy(&interrupted, &uc->uc_sigmask, sizeof interrupted);
    both |= interrupted;
    memcpy(&mask, &both, sizeof both);
    if (!(old->sa_flags & SA_NODEFER))
      sigaddset(&mask, number);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
  }
  handler(number, info, uc);
  if (masked)
    pthread_sigmask(SIG_SETMASK, &now, NULL);
}

static void saferead_chain(int slot, int index, siginfo_t *info, void *context)
{
  const struct sigaction *old = &slots[slot][index].old;
  int number = saferead_signals[index];
  bool plain = !(old->sa_flags & SA_SIGINFO);

  if (plain && old->sa_handler == SIG_IGN && info->si_code <= 0)
    return;
  /* A real fault cannot be ignored: the kernel does not allow it either. */
  if (plain && (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN)) {
    saferead_default(number, info);
    return;
  }
  if ((old->sa_flags & SA_RESETHAND) &&
      atomic_exchange(&slots[slot][index].spent, true)) {
    saferead_default(number, info);
    return;
  }
  saferead_call(old, number, info, context);
}

/* The context of the fault. If a SIGTRAP from the kernel is pending, Linux
** delivers it before the fault, even if it is blocked. The fault is then
** reported at the first instruction of that handler, whose frame has just been
** made: return address, context, siginfo. The context in that frame is the
** fault's. */
static ucontext_t *saferead_context(ucontext_t *uc)
{
  enum { CONTEXT = offsetof(ucontext_t, uc_sigmask) + 8 }; /* The kernel's. */
  const greg_t *r = uc->uc_mcontext.gregs;
  greg_t frame = r[REG_RSP] + 8;
  return r[REG_RDI] == SIGTRAP && r[REG_RDX] == frame &&
                 r[REG_RSI] == frame + CONTEXT
             ? (ucontext_t *)(uintptr_t)frame
             : uc;
}

static void saferead_on_fault(int slot, int number, siginfo_t *info,
                              void *context)
{
  greg_t *rip = &saferead_context(context)->uc_mcontext.gregs[REG_RIP];

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
    saferead_chain(slot, number == SIGBUS, info, context);
}

#define ENTRY(slot)                                                            \
  static void saferead_entry_##slot(int number, siginfo_t *info,               \
                                    void *context)                             \
  {                                                                            \
    saferead_on_fault(slot, number, info, context);                            \
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
static handler_fn *const entries[SLOTS] = {
    saferead_entry_0, saferead_entry_1, saferead_entry_2, saferead_entry_3,
    saferead_entry_4, saferead_entry_5, saferead_entry_6, saferead_entry_7};

static bool saferead_on_top(int slot, int index)
{
  struct sigaction now;
  return !sigaction(saferead_signals[index], NULL, &now) &&
         (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == entries[slot];
}

static bool saferead_is_default(const struct sigaction *action)
{
  return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

/* Can a covered place be used again? */
static bool saferead_ends_chain(int slot, int index)
{
  struct sigaction now;
  return saferead_is_default(&slots[slot][index].old) &&
         !sigaction(saferead_signals[index], NULL, &now) &&
         saferead_is_default(&now);
}

static int saferead_put(int slot, int index)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  struct sigaction *old = &slots[slot][index].old;
  struct sigaction seen;

  /* A thread that a copy of the process does not have may have put it there. */
  if (saferead_on_top(slot, index))
    return 0;
  /* The entry of a covered place may be running: `old` stays the same. */
  if (!slots[slot][index].covered &&
      sigaction(saferead_signals[index], NULL, old))
    return -1;
  saferead_mask(&action.sa_mask); /* one kernel's frame at a time: the stack may
                                  ** be small */
  atomic_store(&slots[slot][index].spent, false);
  action.sa_sigaction = entries[slot];
  if ((old->sa_flags & SA_SIGINFO) ||
      (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)) {
    /* So the kernel applies the host's stack and nesting itself. */
    action.sa_flags =
        SA_SIGINFO | (old->sa_flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART));
  }
  return sigaction(saferead_signals[index], &action, &seen);
}

static void saferead_take_out(int slot)
{
  for (int i = 0; i < SIGNALS; i++) {
    if (!saferead_on_top(slot, i))
      slots[slot][i].covered = true;
    else if (atomic_load(&slots[slot][i].spent)) {
      struct sigaction reset = {.sa_handler = SIG_DFL};
      sigaction(saferead_signals[i], &reset, NULL);
    } else
      sigaction(saferead_signals[i], &slots[slot][i].old, NULL);
  }
}

static bool saferead_usable(int slot)
{
  for (int i = 0; i < SIGNALS; i++)
    if (slots[slot][i].covered && !saferead_ends_chain(slot, i))
      return false;
  return true;
}

static enum ljp_status saferead_put_on_top(void)
{
  for (int slot = 0; slot < SLOTS; slot++) {
    if (!saferead_usable(slot))
      continue;
    if (saferead_put(slot, 0) || saferead_put(slot, 1)) {
      saferead_take_out(slot);
      return LJP_ERR_RUN;
    }
    current = slot;
    /* Release: code that sees it set may fault. */
    atomic_store_explicit(&ljp_saferead_ready, true, memory_order_release);
    return LJP_OK;
  }
  return LJP_ERR_LIMIT;
}

static bool saferead_check_locked(void)
{
  if (!installs)
    return false;
  /* Any of our places will do: a host that covers us for a while and then
  ** restores what it found makes an older place current again. */
  for (int slot = 0; slot < SLOTS; slot++)
    if (saferead_on_top(slot, 0) && saferead_on_top(slot, 1)) {
      current = slot;
      atomic_store(&ljp_saferead_ready, true);
      return true;
    }
  atomic_store(&ljp_saferead_ready, false);
  if (current >= 0)
    saferead_take_out(current);
  current = -1;
  return saferead_put_on_top() == LJP_OK;
}

enum ljp_status ljp_saferead_install(void)
{
  enum ljp_status status = LJP_OK;
  pthread_mutex_lock(&lock);
  if (installs == 0)
    status = saferead_put_on_top();
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
      saferead_take_out(current);
    current = -1;
  }
  pthread_mutex_unlock(&lock);
}

bool ljp_saferead_covered(void)
{
  if (pthread_mutex_trylock(&lock))
    return false;
  bool covered = current >= 0 &&
                 !(saferead_on_top(current, 0) && saferead_on_top(current, 1));
  pthread_mutex_unlock(&lock);
  return covered;
}

bool ljp_saferead_check(void)
{
  pthread_mutex_lock(&lock);
  bool ok = saferead_check_locked();
  pthread_mutex_unlock(&lock);
  return ok;
}

void ljp_saferead_hold(void)
{
  pthread_mutex_lock(&lock);
}

void ljp_saferead_unhold(void)
{
  pthread_mutex_unlock(&lock);
}

void ljp_saferead_renew(void)
{
  pthread_mutex_init(&lock, NULL);
}

#else

enum ljp_status ljp_saferead_install(void)
{
  return LJP_ERR_NOTSUP;
}

void ljp_saferead_remove(void)
{
}

bool ljp_saferead_covered(void)
{
  return false;
}

bool ljp_saferead_check(void)
{
  return false;
}

void ljp_saferead_hold(void)
{
}

void ljp_saferead_unhold(void)
{
}

void ljp_saferead_renew(void)
{
}

#endif
