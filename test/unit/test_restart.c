/*
** Waiting calls that a signal of ours interrupts: which are made again, in
** every form in which libc's code makes a call.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "profilers/cpu/restart.h"
#include "profilers/cpu/sampler.h"
#include "src/base/saferead.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { WAIT_NS = 40000000, SIGNAL_US = 3000, OURS = SIGALRM };

static volatile sig_atomic_t interrupted, left, host_signals, send_other;

void ljp_sampler_signal(int number, siginfo_t *info, void *context)
{
  const ucontext_t *uc = context;
  (void)info;
  if (uc->uc_mcontext.gregs[REG_RAX] != -EINTR)
    return;
  interrupted++;
  if (send_other)
    raise(send_other); /* blocked while this handler runs */
  left += !ljp_restart_call(context, number);
}

static void on_host_signal(int number)
{
  (void)number;
  host_signals++;
}

typedef long wait_call(const struct timespec *wait);

/* mov eax, number */
static long by_constant(const struct timespec *wait)
{
  long ret;
  __asm__ volatile("movl $35, %%eax\n\tsyscall"
                   : "=a"(ret)
                   : "D"(wait), "S"(0L)
                   : "rcx", "r11", "memory");
  return ret;
}

/* mov eax, register */
static long by_register(const struct timespec *wait)
{
  long ret;
  register long number __asm__("r12") = SYS_nanosleep;
  __asm__ volatile("movl %%r12d, %%eax\n\tsyscall"
                   : "=a"(ret)
                   : "D"(wait), "S"(0L), "r"(number)
                   : "rcx", "r11", "memory");
  return ret;
}

/* As glibc 2.41 in a process with one thread. */
static long by_stack(const struct timespec *wait)
{
  long ret;
  __asm__ volatile("subq $256, %%rsp\n\tpushq $35\n\tpushq $7\n\t"
                   "movq 8(%%rsp), %%rax\n\tsyscall\n\taddq $272, %%rsp"
                   : "=a"(ret)
                   : "D"(wait), "S"(0L)
                   : "rcx", "r11", "memory", "cc");
  return ret;
}

/* As glibc 2.41 in a process with threads: instruction by instruction. */
__asm__(".text\n"
        "cancel_arch:\n"
        "  movl (%rdi), %eax\n"
        "  testb $8, (%rdi)\n"
        "  movq %rdi, %r11\n"
        "  movq %rsi, %rax\n"
        "  movq %rdx, %rdi\n"
        "  movq %rcx, %rsi\n"
        "  movq %r8, %rdx\n"
        "  movq %r9, %r10\n"
        "  movq 8(%rsp), %r8\n"
        "  movq 16(%rsp), %r9\n"
        "  movq %r11, 8(%rsp)\n"
        "  syscall\n"
        "  ret\n"
        "cancel_internal:\n"
        "  pushq %rbx\n"
        "  movq %rsp, %rbx\n"
        "  pushq %r9\n"
        "  leaq -128(%rsp), %r11\n"
        "  movq %rcx, %r9\n"
        "  movq %rsi, %rcx\n"
        "  pushq %r8\n"
        "  movq 32(%rsp), %rsi\n"
        "  movq %rdx, %r8\n"
        "  movq %rdi, %rdx\n"
        "  movq %r11, %rdi\n"
        "  call cancel_arch\n"
        "  popq %rcx\n"
        "  popq %rsi\n"
        "  popq %rbx\n"
        "  ret\n"
        "by_cancel:\n"
        "  subq $16, %rsp\n"
        "  pushq $35\n"
        "  xorl %esi, %esi\n"
        "  call cancel_internal\n"
        "  addq $24, %rsp\n"
        "  ret\n");
long by_cancel(const struct timespec *wait);

/* As musl's functions that wait: the number is kept in r12. It makes the call by
** the function above, or itself where the thread cannot be cancelled. */
__asm__(".text\n"
        "by_kept:\n"
        "  pushq %r12\n"
        "  movq %rdi, %rdx\n"
        "  movl $35, %r12d\n"
        "  xorl %ecx, %ecx\n"
        "  pushq $0\n"
        "  movq %r12, %rsi\n"
        "  pushq %r9\n"
        "  movq %r8, %r9\n"
        "  movq %rdx, %r8\n"
        "  movq %rdi, %rdx\n"
        "  call cancel_arch_flags\n"
        "  popq %rdx\n"
        "  popq %rcx\n"
        "  popq %r12\n"
        "  ret\n"
        "cancel_arch_flags:\n"
        "  leaq -128(%rsp), %rdi\n"
        "  jmp cancel_arch\n"
        "by_kept_itself:\n"
        "  pushq %r12\n"
        "  movl $35, %r12d\n"
        "  xorl %esi, %esi\n"
        "  pushq %rbx\n"
        "  xorl %ebx, %ebx\n"
        "  movq %r8, %r10\n"
        "  movq %r12, %rax\n"
        "  movq %r9, %r8\n"
        "  movq 48(%rsp), %r9\n"
        "  movq %rbx, %rsi\n"
        "  syscall\n"
        "  popq %rbx\n"
        "  popq %r12\n"
        "  ret\n");
long by_kept(const struct timespec *wait);
long by_kept_itself(const struct timespec *wait);

static long by_libc(const struct timespec *wait)
{
  return nanosleep(wait, NULL) ? -errno : 0;
}

static long by_pselect(const struct timespec *wait)
{
  sigset_t none;
  sigemptyset(&none);
  return pselect(0, NULL, NULL, NULL, wait, &none) ? -errno : 0;
}

/* Its code does not show the number. */
static long by_syscall(const struct timespec *wait)
{
  return syscall(SYS_nanosleep, wait, NULL) ? -errno : 0;
}

static uint64_t now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Waits until our signal has interrupted the call once: on a busy machine it
** may come before. What the call returned; -1: it was too short. */
static long wait_interrupted(wait_call *call)
{
  static const struct timespec wait = {0, WAIT_NS};
  static const struct itimerval soon = {{0, 0}, {0, SIGNAL_US}};
  long ret = 0;
  interrupted = left = 0;
  while (!interrupted) {
    uint64_t before = now_ns();
    setitimer(ITIMER_REAL, &soon, NULL);
    ret = call(&wait);
    if (!ret && now_ns() - before < WAIT_NS)
      return -1;
  }
  return ret;
}

static int set_up(void **state)
{
  struct sigaction action = {.sa_sigaction = ljp_sampler_signal,
                             .sa_flags = SA_SIGINFO | SA_RESTART};
  (void)state;
  sigfillset(&action.sa_mask);
  sigdelset(&action.sa_mask, SIGSEGV);
  sigdelset(&action.sa_mask, SIGBUS);
  return sigaction(OURS, &action, NULL) || ljp_saferead_install() != LJP_OK;
}

static void every_form_of_a_call_is_made_again(void **state)
{
  static wait_call *const calls[] = {by_constant, by_register, by_stack,
                                     by_cancel,   by_kept,     by_kept_itself,
                                     by_libc,     by_pselect};
  (void)state;
  if (SANITIZED)
    skip();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    assert_int_equal(wait_interrupted(calls[i]), 0);
    assert_int_equal(left, 0);
  }
}

static void a_call_without_a_number_is_told(void **state)
{
  (void)state;
  if (SANITIZED)
    skip();
  assert_int_equal(wait_interrupted(by_syscall), -EINTR);
  assert_int_equal(left, 1);
}

static void a_thread_that_takes_handled_signals_keeps_eintr(void **state)
{
  sigset_t other;
  (void)state;
  if (SANITIZED)
    skip();
  sigemptyset(&other);
  sigaddset(&other, SIGUSR1);
  assert_int_equal(ljp_restart_obstacle(0, OURS), 0);
  signal(SIGUSR1, on_host_signal);
  assert_int_equal(ljp_restart_obstacle(0, OURS), SIGUSR1);
  assert_int_equal(wait_interrupted(by_libc), -EINTR);
  assert_int_equal(left, 1);
  sigprocmask(SIG_BLOCK, &other, NULL);
  assert_int_equal(wait_interrupted(by_libc), 0);
  assert_int_equal(left, 0);
  /* This call unblocks the signal. */
  assert_int_equal(wait_interrupted(by_pselect), -EINTR);
  assert_int_equal(left, 1);
  sigprocmask(SIG_UNBLOCK, &other, NULL);
  signal(SIGUSR1, SIG_DFL);
}

static void our_handler_of_an_earlier_session_is_no_obstacle(void **state)
{
  struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART};
  (void)state;
  if (SANITIZED)
    skip();
  ours.sa_sigaction = ljp_sampler_signal;
  sigaction(SIGUSR2, &ours, NULL);
  assert_int_equal(ljp_restart_obstacle(0, OURS), 0);
  assert_int_equal(wait_interrupted(by_libc), 0);
  assert_int_equal(left, 0);
  signal(SIGUSR2, SIG_DFL);
}

static void a_pending_signal_ends_the_call(void **state)
{
  (void)state;
  if (SANITIZED)
    skip();
  signal(SIGUSR1, on_host_signal);
  send_other = SIGUSR1;
  host_signals = 0;
  assert_int_equal(wait_interrupted(by_libc), -EINTR);
  assert_int_equal(left, 0);
  assert_int_equal(host_signals, 1);
  send_other = 0;
  signal(SIGUSR1, SIG_DFL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_form_of_a_call_is_made_again),
      cmocka_unit_test(a_call_without_a_number_is_told),
      cmocka_unit_test(a_thread_that_takes_handled_signals_keeps_eintr),
      cmocka_unit_test(our_handler_of_an_earlier_session_is_no_obstacle),
      cmocka_unit_test(a_pending_signal_ends_the_call),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
