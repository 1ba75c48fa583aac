/*
** Registers in a ucontext: that of the handler's own signal, and one that lies
** on a stack, under the frame of another signal handler.
** Safety: LJP_SIGSAFE throughout.
*/
#include <ucontext.h>

#include "profilers/unwind/step.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

#if defined(__x86_64__)
void ljp_regs_from_context(struct ljp_regs *regs, const void *context,
                           struct ljp_unwind_room *room)
{
  static const uint8_t where[LJP_REGS] = {
      [LJP_RAX] = REG_RAX, [LJP_RDX] = REG_RDX, [LJP_RCX] = REG_RCX,
      [LJP_RBX] = REG_RBX, [LJP_RSI] = REG_RSI, [LJP_RDI] = REG_RDI,
      [LJP_RBP] = REG_RBP, [LJP_RSP] = REG_RSP, [LJP_R8] = REG_R8,
      [LJP_R9] = REG_R9,   [LJP_R10] = REG_R10, [LJP_R11] = REG_R11,
      [LJP_R12] = REG_R12, [LJP_R13] = REG_R13, [LJP_R14] = REG_R14,
      [LJP_R15] = REG_R15, [LJP_RIP] = REG_RIP};
  const ucontext_t *uc = context;
  for (int i = 0; i < LJP_REGS; i++)
    regs->r[i] = (uint64_t)uc->uc_mcontext.gregs[where[i]];
  regs->known = LJP_REGS_ALL;
  regs->module = 0;
  regs->exact = true;
  regs->notes = NULL;
  regs->room = room;
}
#else
void ljp_regs_from_context(struct ljp_regs *regs, const void *context,
                           struct ljp_unwind_room *room)
{
  (void)context;
  *regs = (struct ljp_regs){.exact = true, .room = room};
}
#endif

bool ljp_unwind_step_signal_return(struct ljp_regs *regs)
{
  /* Offsets of the registers in the kernel's ucontext, to which rsp points; in
  ** DWARF order. */
  static const uint8_t where[LJP_REGS] = {144, 136, 152, 128, 112, 104,
                                          120, 160, 40,  48,  56,  64,
                                          72,  80,  88,  96,  168};
  struct ljp_regs caller = {.known = LJP_REGS_ALL,
                            .exact = true,
                            .notes = regs->notes,
                            .room = regs->room};
  uint64_t rsp = regs->r[LJP_RSP];
  if (regs->exact || !ljp_unwind_is_signal_return(regs->r[LJP_RIP]))
    return false;
  for (int reg = 0; reg < LJP_REGS; reg++)
    if (!ljp_safe_load((const void *)(uintptr_t)(rsp + where[reg]),
                       &caller.r[reg]))
      return false;
  *regs = caller;
  ljp_memo_blur(regs->notes);
  return true;
}
