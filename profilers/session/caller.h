/*
** The caller of a function of ours whose entry is in assembly
** (profilers/memory/entry.c): the registers that functions preserve, which the
** entry puts on the stack, below the return address.
*/
#ifndef LJP_CALLER_H
#define LJP_CALLER_H

#include <stddef.h>

#include "src/base/regs.h"
#include "src/base/sigsafe.h"

struct ljp_caller {
  uint64_t r15, r14, r13, r12, rbx, rbp;
  uint64_t rip;
};

LJP_SIGSAFE static inline void
ljp_caller_registers(const struct ljp_caller *caller, struct ljp_regs *regs)
{
  regs->r[LJP_RBX] = caller->rbx;
  regs->r[LJP_RBP] = caller->rbp;
  regs->r[LJP_R12] = caller->r12;
  regs->r[LJP_R13] = caller->r13;
  regs->r[LJP_R14] = caller->r14;
  regs->r[LJP_R15] = caller->r15;
  regs->r[LJP_RIP] = caller->rip;
  regs->r[LJP_RSP] = (uint64_t)(uintptr_t)(caller + 1);
  regs->known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP;
  regs->module = 0;
  regs->exact = false;
  regs->notes = NULL;
  regs->room = NULL;
}

#endif
