/*
** Reading stacks for `ljprof dump-stacks`: of a thread of this process that is
** stopped or waits, and of a suspended coroutine. Takes no lock and no memory.
*/
#ifndef LJP_JOIN_STACKS_READ_H
#define LJP_JOIN_STACKS_READ_H

#include "profilers/unwind/unwind.h"
#include "src/luajit/coroutines.h"

enum { LJP_STACK_LOCALS_BYTES = 32768, LJP_STACK_LUA_FRAMES = 256 };

/* One stack. Its locals are text: of each the number of its frame in decimal, its
** name and its value, each ended by a zero. */
struct ljp_read_stack {
  int tid;        /* 0: a coroutine's */
  unsigned flags; /* LJP_STACKS_* */
  uint32_t vm;    /* 0: none */
  enum ljp_vmstate state;
  enum ljp_cut cut;
  uint32_t count;
  uint32_t locals_bytes;
  uint64_t frames[LJP_STACK_MAX_FRAMES];
  char locals[LJP_STACK_LOCALS_BYTES];
};

/* The stack of a thread from its registers. */
void ljp_read_thread(struct ljp_read_stack *out, const struct ljp_regs *regs,
                     bool locals);
/* Of a thread that waits: asks the kernel where. Looks again if the thread went
** on meanwhile. */
void ljp_read_waiting(struct ljp_read_stack *out, int tid, bool locals);
void ljp_read_coroutine(struct ljp_read_stack *out,
                        const struct ljp_lua_coroutine *coroutine, bool locals);

#endif
