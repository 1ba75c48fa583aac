/*
** The switch to a side stack for the handler's work; see handler_stack.h.
** LJP_SIGSAFE throughout.
*/
#include "profilers/cpu/handler_stack.h"

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "src/base/side_stack.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

/* With so much room left on an alternate stack the work is done there. */
enum { ROOM_BYTES = 24 << 10 };

LJP_SIGSAFE static long handler_call(long number, long a, const void *b,
                                     void *c, long d)
{
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "+a"(number)
                   : "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return number;
}

/* The bytes left on the alternate stack, if the handler is on one that is in
** force; else 0. With SS_AUTODISARM the kernel has set it aside until the
** handler returns. */
LJP_SIGSAFE static size_t handler_alternate(const ucontext_t *uc)
{
  const stack_t *stack = &uc->uc_stack;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  uintptr_t left = here - (uintptr_t)stack->ss_sp;
  return left < stack->ss_size &&
                 !((unsigned)stack->ss_flags & (SS_DISABLE | SS_AUTODISARM))
             ? left
             : 0;
}

/* Off the alternate stack, the kernel would put the frame of a fault at its top
** again, over the frames that are there. So the thread has none until the
** handler returns: the kernel then sets again what the context says. */
struct handler_work {
  void (*work)(void *a, void *info, void *context);
  void *a;
};

LJP_SIGSAFE static void handler_work_alone(void *work, void *info,
                                           void *context)
{
  static const stack_t none = {.ss_flags = SS_DISABLE};
  const struct handler_work *w = work;
  handler_call(SYS_sigaltstack, (long)&none, NULL, NULL, 0);
  w->work(w->a, info, context);
}

void ljp_handler_run(void *top,
                     void (*work)(void *a, void *info, void *context), void *a,
                     void *info, void *context)
{
  size_t left = handler_alternate(context);
  if (LJP_LIKELY(!left))
    ljp_side_call(a, info, context, work, top);
  else if (left >= ROOM_BYTES)
    work(a, info, context);
  else {
    struct handler_work w = {work, a};
    ljp_side_call(&w, info, context, handler_work_alone, top);
  }
}

void ljp_handler_run_late(void *top, void (*work)(void *a, void *b, void *c),
                          void *a, void *b)
{
  const uint64_t raised =
      UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1) |
      UINT64_C(1) << (SIGILL - 1) | UINT64_C(1) << (SIGFPE - 1) |
      UINT64_C(1) << (SIGTRAP - 1);
  const uint64_t most = ~raised;
  uint64_t before;
  if (handler_call(SYS_rt_sigprocmask, SIG_BLOCK, &most, &before,
                   sizeof before)) { /* forbidden, by seccomp */
    work(a, b, NULL);
    return;
  }
  ljp_side_call(a, b, NULL, work, top);
  handler_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}
