/*
** See side_run.h.
*/
#include "profilers/session/side_run.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "profilers/session/stand_in.h"
#include "src/base/bind.h"
#include "src/base/cancel.h"
#include "src/base/side_stack.h"

enum { GUARD_BYTES = 4096, RUN_BYTES = GUARD_BYTES + (256 << 10) };

struct side_job {
  enum ljp_status (*work)(void *a, const void *b, struct ljp_failure *why);
  void *a;
  const void *b;
  struct ljp_failure *why;
  enum ljp_status status;
};

static void side_do(void *job, void *unused, void *unused_too)
{
  struct side_job *j = job;
  (void)unused;
  (void)unused_too;
  j->status = j->work(j->a, j->b, j->why);
}

static char *side_map(void)
{
  char *at = mmap(NULL, RUN_BYTES, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return NULL;
  if (!mprotect(at + GUARD_BYTES, RUN_BYTES - GUARD_BYTES,
                PROT_READ | PROT_WRITE))
    return at;
  munmap(at, RUN_BYTES);
  return NULL;
}

enum ljp_status ljp_side_run(enum ljp_status (*work)(void *a, const void *b,
                                                     struct ljp_failure *why),
                             void *a, const void *b, struct ljp_failure *why)
{
  struct side_job job = {work, a, b, why, LJP_OK};
  struct ljp_regs here = {.known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP |
                                   1u << LJP_RIP};
  ljp_cancel_off();
  char *stack = side_map();
  if (!stack) {
    job.status = work(a, b, why);
    ljp_cancel_on();
    return job.status;
  }
  const struct ljp_regs *before = ljp_stand_in_regs;
  ljp_registers_here(&here);
  ljp_stand_in_regs = before ? before : &here;
  ljp_side_call(&job, NULL, NULL, side_do, stack + RUN_BYTES);
  ljp_stand_in_regs = before;
  munmap(stack, RUN_BYTES);
  ljp_cancel_on();
  return job.status;
}

static enum ljp_status side_bind_here(void *a, const void *b,
                                      struct ljp_failure *why)
{
  (void)a;
  (void)b;
  (void)why;
  ljp_bind_calls();
  return LJP_OK;
}

void ljp_side_bind(void)
{
  static _Atomic bool bound;
  if (atomic_load_explicit(&bound, memory_order_acquire))
    return;
  ljp_side_run(side_bind_here, NULL, NULL, NULL);
  atomic_store_explicit(&bound, true, memory_order_release);
}
