/* Fault-safe reads beside a host's own handlers and masks: faults that are not
** ours reach the host. Handlers and deaths are tried in child processes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "src/base/memo.h"
#include "src/base/saferead.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { PAGE = 4096 };

/* Runs a body in a child and returns the wait status. */
static int in_child(void (*body)(void))
{
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    signal(SIGSEGV, SIG_DFL); /* Not cmocka's. */
    signal(SIGBUS, SIG_DFL);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    body();
    _exit(99);
  }
  assert_true(pid > 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return status;
}

static volatile int *volatile hole = (int *)24;

static void fault_in_host_code(void)
{
  if (ljp_saferead_install() == LJP_OK)
    *hole = 1;
}

static void send_to_self(void)
{
  if (ljp_saferead_install() == LJP_OK)
    raise(SIGSEGV);
}

static void ignored_but_real(void)
{
  signal(SIGSEGV, SIG_IGN);
  if (ljp_saferead_install() == LJP_OK)
    *hole = 1;
}

static void ignored_and_sent(void)
{
  signal(SIGSEGV, SIG_IGN);
  if (ljp_saferead_install() == LJP_OK) {
    raise(SIGSEGV);
    _exit(7);
  }
}

static void a_fault_of_the_host_still_kills_with_its_signal(void **state)
{
  void (*const deaths[])(void) = {fault_in_host_code, send_to_self,
                                  ignored_but_real};
  (void)state;
  if (SANITIZED)
    skip(); /* The sanitizer handles SIGSEGV itself. */
  for (unsigned i = 0; i < sizeof deaths / sizeof *deaths; i++) {
    int status = in_child(deaths[i]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
  }
}

static void a_sent_signal_that_is_ignored_stays_ignored(void **state)
{
  (void)state;
  int status = in_child(ignored_and_sent);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 7);
}

/* A host's handler: keeps what it got and leaves by siglongjmp(), as hosts do.
** */
static sigjmp_buf back;
static siginfo_t got_info;
static greg_t got_rip, got_rcx;
static sigset_t got_mask;
static volatile int calls;

static void host_handler(int number, siginfo_t *info, void *context)
{
  ucontext_t *uc = context;
  calls += number == SIGSEGV;
  got_info = *info;
  got_rip = uc->uc_mcontext.gregs[REG_RIP];
  got_rcx = uc->uc_mcontext.gregs[REG_RCX];
  pthread_sigmask(SIG_SETMASK, NULL, &got_mask);
  siglongjmp(back, 1);
}

extern const char host_fault_at[];
__attribute__((noinline)) static void host_fault(void *address)
{
  __asm__ volatile("movq $0x1234567, %%rcx\n"
                   ".globl host_fault_at\n"
                   "host_fault_at: movl $1, (%0)\n" ::"r"(address)
                   : "rcx", "memory");
}

static void see_host_handler(void)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
  char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint64_t out;
  action.sa_sigaction = host_handler;
  sigaddset(&action.sa_mask, SIGUSR2);
  sigaction(SIGSEGV, &action, NULL);
  if (ljp_saferead_install() != LJP_OK)
    _exit(1);
  if (ljp_safe_load(page, &out) || calls)
    _exit(2);
  if (sigsetjmp(back, 1) == 0)
    host_fault(page + 20);
  if (calls != 1 || got_info.si_addr != page + 20 ||
      got_info.si_code != SEGV_ACCERR || got_info.si_signo != SIGSEGV)
    _exit(3);
  if ((uintptr_t)got_rip != (uintptr_t)host_fault_at || got_rcx != 0x1234567)
    _exit(4);
  if (!sigismember(&got_mask, SIGUSR2) || sigismember(&got_mask, SIGSEGV))
    _exit(5);
  if (ljp_safe_load(page, &out) || calls != 1)
    _exit(6);
  ljp_saferead_remove();
  struct sigaction now;
  sigaction(SIGSEGV, NULL, &now);
  _exit(now.sa_sigaction == host_handler ? 0 : 8);
}

static void the_hosts_handler_gets_its_fault_whole(void **state)
{
  (void)state;
  if (SANITIZED)
    skip(); /* The sanitizer handles masks itself. */
  int status = in_child(see_host_handler);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void once_only(int number)
{
  (void)number;
  calls++;
  siglongjmp(back, 1);
}

static void fault_twice_after_reset(void)
{
  struct sigaction action = {.sa_handler = once_only, .sa_flags = SA_RESETHAND};
  sigaction(SIGSEGV, &action, NULL);
  if (ljp_saferead_install() != LJP_OK)
    _exit(1);
  if (sigsetjmp(back, 1) == 0)
    *hole = 1;
  if (calls != 1)
    _exit(2);
  *hole = 1;
}

static void a_handler_that_resets_is_called_once(void **state)
{
  (void)state;
  if (SANITIZED)
    skip();
  int status = in_child(fault_twice_after_reset);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* The host's stack overflows; its handler runs on an alternate stack. */
static char alternate[1 << 16];
static volatile int on_alternate;

static void overflow_handler(int number, siginfo_t *info, void *context)
{
  /* Not the address of a variable: ASan may keep that elsewhere. */
  const char *here = __builtin_frame_address(0);
  (void)number;
  (void)info;
  (void)context;
  on_alternate = here >= alternate && here < alternate + sizeof alternate;
  _exit(on_alternate ? 11 : 12);
}

static volatile int bottomless = 1;

static int deeper(volatile int depth)
{
  if (!bottomless)
    return depth;
  volatile char block[512];
  block[0] = (char)depth;
  return deeper(depth + 1) + block[0];
}

static void overflow(void)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  struct rlimit limit = {1 << 20, 1 << 20};
  setrlimit(RLIMIT_STACK, &limit);
  sigaltstack(&stack, NULL);
  action.sa_sigaction = overflow_handler;
  sigaction(SIGSEGV, &action, NULL);
  if (ljp_saferead_install() == LJP_OK)
    deeper(0);
}

static void a_stack_overflow_reaches_the_hosts_alternate_stack(void **state)
{
  (void)state;
  int status = in_child(overflow);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 11);
}

/* The host blocks SIGSEGV while a handler that reads runs. */
static volatile int entered, loaded;

static void reading_handler(int number, siginfo_t *info, void *context)
{
  ucontext_t *uc = context;
  uint64_t out;
  (void)number;
  (void)info;
  entered = ljp_saferead_enter(&uc->uc_sigmask);
  loaded = entered ? ljp_safe_load((void *)(uintptr_t)0x10000, &out) : 2;
}

static void read_while_blocked(void)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO};
  sigset_t faults, now;
  action.sa_sigaction = reading_handler;
  sigaction(SIGUSR1, &action, NULL);
  if (ljp_saferead_install() != LJP_OK)
    _exit(1);
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_BLOCK, &faults, NULL);
  raise(SIGUSR1);
  if (!entered || loaded != 0)
    _exit(2);
  /* The host's mask is unchanged. */
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  if (!sigismember(&now, SIGSEGV) || !sigismember(&now, SIGBUS))
    _exit(3);
  /* A SIGSEGV is pending: we must not let it in. */
  raise(SIGSEGV);
  raise(SIGUSR1);
  _exit(entered || loaded != 2 ? 4 : 0);
}

static void reads_work_where_the_host_blocks_sigsegv(void **state)
{
  (void)state;
  int status = in_child(read_while_blocked);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static struct sigaction covered;

static void chaining_handler(int number, siginfo_t *info, void *context)
{
  calls++;
  covered.sa_sigaction(number, info, context);
}

/* A host installs a chaining handler several times. Ours goes on top again each
** time, and the chain never becomes a circle. */
static void cover_and_check(void)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO};
  uint64_t out;
  action.sa_sigaction = chaining_handler;
  if (ljp_saferead_install() != LJP_OK)
    _exit(1);
  if (!ljp_saferead_check())
    _exit(2);
  sigaction(SIGSEGV, &action, &covered);
  /* Covered, but the host calls our handler: reads work. */
  if (ljp_safe_load((void *)(uintptr_t)0x10000, &out) || calls != 1)
    _exit(3);
  if (!ljp_saferead_check())
    _exit(4);
  if (ljp_safe_load((void *)(uintptr_t)0x10000, &out) || calls != 1)
    _exit(5);
  for (int i = 0; i < 10; i++) {
    sigaction(SIGSEGV, &action, NULL);
    if (!ljp_saferead_check())
      break;
    if (ljp_safe_load((void *)(uintptr_t)0x10000, &out))
      _exit(6);
  }
  sigset_t none;
  sigemptyset(&none);
  /* No place is left: the check fails, and no walk starts. */
  if (ljp_saferead_check() || ljp_saferead_enter(&none))
    _exit(7);
  calls = 0;
  *hole = 1; /* Kills the process, whichever handler is on top. */
}

/* A host resets its signals again and again, before and after it had a handler
** of its own that calls ours. */
static void reset_and_check(void)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO};
  uint64_t out;
  action.sa_sigaction = chaining_handler;
  signal(SIGSEGV, SIG_DFL);
  signal(SIGBUS, SIG_DFL);
  if (ljp_saferead_install() != LJP_OK || ljp_saferead_covered())
    _exit(1);
  for (int i = 0; i < 40; i++) {
    if (i == 20)
      sigaction(SIGSEGV, &action, &covered);
    if (i == 20 && (!ljp_saferead_covered() || !ljp_saferead_check()))
      _exit(2);
    signal(SIGSEGV, SIG_DFL);
    if (i % 3 == 0)
      signal(SIGBUS, SIG_DFL);
    if (!ljp_saferead_covered() || !ljp_saferead_check())
      _exit(3);
    if (ljp_safe_load((void *)(uintptr_t)0x10000, &out))
      _exit(4);
  }
  sigaction(SIGSEGV, &action, NULL); /* it calls a place that is used again */
  calls = 0;
  if (ljp_safe_load((void *)(uintptr_t)0x10000, &out) || calls != 1 ||
      !ljp_saferead_check())
    _exit(5);
  ljp_saferead_remove();
  signal(SIGSEGV, SIG_DFL);
  *hole = 1;
}

static void a_host_that_resets_signals_is_covered_each_time(void **state)
{
  (void)state;
  if (SANITIZED)
    skip();
  int status = in_child(reset_and_check);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void a_host_that_covers_us_is_covered_in_turn(void **state)
{
  (void)state;
  if (SANITIZED)
    skip();
  int status = in_child(cover_and_check);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static volatile sig_atomic_t traps;

static void count_trap(int number, siginfo_t *info, void *context)
{
  (void)number;
  (void)info;
  (void)context;
  traps++;
}

/* As with perf events that send a SIGTRAP: while the handler of one runs, the
** next is pending. Only the kernel or the thread itself can send a signal with
** such a code. */
static void trap_while_blocked(void)
{
  struct sigaction action = {.sa_sigaction = count_trap,
                             .sa_flags = SA_SIGINFO};
  siginfo_t trap = {.si_signo = SIGTRAP, .si_code = TRAP_TRACE};
  sigset_t block;
  uint64_t out = 5, there = 7;
  sigaction(SIGTRAP, &action, NULL);
  sigemptyset(&block);
  sigaddset(&block, SIGTRAP);
  sigprocmask(SIG_BLOCK, &block, NULL);
  if (ljp_saferead_install() != LJP_OK)
    _exit(1);
  for (int i = 0; i < 3; i++) {
    const struct ljp_memo_read four[] = {{(uint64_t)(uintptr_t)&there, 7},
                                         {(uint64_t)(uintptr_t)&there, 7},
                                         {0x10000, 7},
                                         {(uint64_t)(uintptr_t)&there, 7}};
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGTRAP,
                &trap))
      _exit(2);
    bool ok = i == 0   ? !ljp_safe_load((void *)(uintptr_t)0x10000, &out)
              : i == 1 ? ljp_safe_copy(&out, (void *)(uintptr_t)0x10000, 8) == 0
                       : ljp_saferead_equal(four, 4) == 2;
    if (!ok || out != 5 || !ljp_safe_load(&there, &out) || out != 7)
      _exit(3);
    out = 5;
  }
  sigprocmask(SIG_UNBLOCK, &block, NULL);
  _exit(traps == 3 ? 0 : 4);
}

static void a_trap_that_waits_does_not_hide_the_fault(void **state)
{
  (void)state;
  if (SANITIZED)
    skip();
  int status = in_child(trap_while_blocked);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_fault_of_the_host_still_kills_with_its_signal),
      cmocka_unit_test(a_sent_signal_that_is_ignored_stays_ignored),
      cmocka_unit_test(the_hosts_handler_gets_its_fault_whole),
      cmocka_unit_test(a_handler_that_resets_is_called_once),
      cmocka_unit_test(a_stack_overflow_reaches_the_hosts_alternate_stack),
      cmocka_unit_test(reads_work_where_the_host_blocks_sigsegv),
      cmocka_unit_test(a_host_that_covers_us_is_covered_in_turn),
      cmocka_unit_test(a_host_that_resets_signals_is_covered_each_time),
      cmocka_unit_test(a_trap_that_waits_does_not_hide_the_fault),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
