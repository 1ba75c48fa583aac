/*
** A row of call frame information applied to a frame's registers: the general
** case, for rows that no compiled rule can say.
** Safety: LJP_SIGSAFE throughout.
*/
#include "profilers/unwind/step.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

struct apply_frame {
  const struct ljp_cfi_row *row;
  const struct ljp_cfi_span *cie, *fde;
  const struct ljp_regs *regs;
  uint64_t cfa;
};

static enum ljp_unwind_result apply_cfa(struct apply_frame *frame)
{
  const struct ljp_cfi_row *row = frame->row;
  switch (row->cfa_how) {
  case LJP_HOW_REGISTER:
    if (!(frame->regs->known >> row->cfa_reg & 1))
      return LJP_UNWIND_UNKNOWN_REG;
    ljp_memo_use(frame->regs->notes, 1u << row->cfa_reg);
    frame->cfa = frame->regs->r[row->cfa_reg] + (uint64_t)row->cfa_arg;
    return LJP_UNWIND_STEPPED;
  case LJP_HOW_EXPR:
    ljp_memo_blur(frame->regs->notes);
    return ljp_cfi_evaluate(row->in_cie[LJP_REGS] ? frame->cie : frame->fde,
                            (uint32_t)row->cfa_arg, frame->regs, false, 0,
                            &frame->cfa);
  }
  return LJP_UNWIND_BAD_CFI;
}

static enum ljp_unwind_result apply_load(struct ljp_memo *notes, int reg,
                                         uint64_t address, uint64_t *out)
{
  /* Not ljp_safe_load: the CFI may name an address that is not aligned. */
  if (ljp_safe_copy(out, (const void *)(uintptr_t)address, 8) != 8)
    return LJP_UNWIND_UNREADABLE;
  if (address & 7)
    ljp_memo_blur(notes);
  else if (reg == LJP_RIP || reg == LJP_RSP)
    ljp_memo_note(notes, address, *out);
  else
    ljp_memo_restore(notes, (enum ljp_reg)reg, address, *out);
  return LJP_UNWIND_STEPPED;
}

/* Finds one register of the caller. *known stays false if its value is lost. */
static enum ljp_unwind_result apply_register(const struct apply_frame *frame,
                                             int reg, uint64_t *out,
                                             bool *known)
{
  const struct ljp_cfi_row *row = frame->row;
  const struct ljp_regs *regs = frame->regs;
  int32_t arg = row->arg[reg];
  const struct ljp_cfi_span *span = row->in_cie[reg] ? frame->cie : frame->fde;
  enum ljp_unwind_result result;

  switch (row->how[reg]) {
  case LJP_HOW_DEFAULT:
    if (reg == LJP_RSP) {
      *out = frame->cfa;
      *known = true;
    } else if (LJP_REGS_CALLEE_SAVED >> reg & regs->known >> reg & 1) {
      *out = regs->r[reg];
      *known = true;
    }
    return LJP_UNWIND_STEPPED;
  case LJP_HOW_SAME:
    *out = regs->r[reg];
    *known = regs->known >> reg & 1;
    return LJP_UNWIND_STEPPED;
  case LJP_HOW_OFFSET:
    *known = true;
    return apply_load(regs->notes, reg, frame->cfa + (uint64_t)(int64_t)arg,
                      out);
  case LJP_HOW_VAL_OFFSET:
    *out = frame->cfa + (uint64_t)(int64_t)arg;
    *known = true;
    return LJP_UNWIND_STEPPED;
  case LJP_HOW_REGISTER:
    ljp_memo_use(regs->notes, 1u << arg);
    *out = regs->r[arg];
    *known = regs->known >> arg & 1;
    return LJP_UNWIND_STEPPED;
  case LJP_HOW_EXPR:
  case LJP_HOW_VAL_EXPR:
    ljp_memo_blur(regs->notes); /* it may read any memory */
    result = ljp_cfi_evaluate(span, (uint32_t)arg, regs, true, frame->cfa, out);
    *known = !result;
    if (!result && row->how[reg] == LJP_HOW_EXPR)
      result = apply_load(regs->notes, reg, *out, out);
    return result;
  }
  return LJP_UNWIND_STEPPED; /* undefined */
}

enum ljp_unwind_result ljp_unwind_apply_cfi(const struct ljp_cfi_row *row,
                                            const struct ljp_cfi_cie *cie,
                                            const struct ljp_cfi_span *fde,
                                            struct ljp_regs *regs)
{
  struct apply_frame frame = {row, &cie->span, fde, regs, 0};
  struct ljp_regs caller = {.known = 0};
  enum ljp_unwind_result result;

  if (row->how[LJP_RIP] == LJP_HOW_UNDEFINED)
    return LJP_UNWIND_END;
  if (row->how[LJP_RIP] == LJP_HOW_DEFAULT)
    return LJP_UNWIND_BAD_CFI;
  if ((result = apply_cfa(&frame)))
    return result;
  /* A signal handler may have a stack of its own, so the interrupted stack may
  ** be anywhere. */
  if (!cie->signal && !ljp_unwind_cfa_ok(frame.cfa, regs->r[LJP_RSP]))
    return LJP_UNWIND_BAD_CFA;
  for (int reg = 0; reg < LJP_REGS; reg++) {
    bool known = false;
    if ((result = apply_register(&frame, reg, &caller.r[reg], &known)))
      return result;
    caller.known |= (uint32_t)known << reg;
  }
  if (!(caller.known >> LJP_RIP & 1) || !(caller.known >> LJP_RSP & 1))
    return LJP_UNWIND_UNKNOWN_REG;
  if (caller.r[LJP_RIP] == 0)
    return LJP_UNWIND_END;
  caller.exact = cie->signal;
  caller.module = regs->module;
  caller.notes = regs->notes;
  caller.room = regs->room;
  *regs = caller;
  return LJP_UNWIND_STEPPED;
}
