/*
** C frames: the 80 bytes by which the VM's assembly hangs in the machine stack.
** A walk leaves a segment through its C frame, which holds the registers of the
** C function that entered the VM.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"

#include "src/base/assert.h"
#include "src/luajit/frames/walk.h"

_Static_assert(CFRAME_SIZE == 80 && CFRAME_OFS_L == LJP_CF_L * 8 &&
                   CFRAME_OFS_PC == LJP_CF_PC * 8,
               "another C frame");

/* How many nested entries into the VM a walk follows on one Lua thread; LuaJIT
** itself allows 200 C levels. */
enum { MAX_CFRAMES = 512 };

bool ljp_cframe_leave(struct ljp_regs *regs, uint64_t cframe,
                      struct ljp_stack *stack)
{
  static const uint8_t reg[LJP_CF_WORDS] = {[LJP_CF_R14] = LJP_R14,
                                            [LJP_CF_R15] = LJP_R15,
                                            [LJP_CF_RBX] = LJP_RBX,
                                            [LJP_CF_RBP] = LJP_RBP};
  uint64_t word[LJP_CF_WORDS];
  for (int i = LJP_CF_R14; i < LJP_CF_WORDS; i++) {
    uint64_t at = cframe + (unsigned)i * 8;
    if (!ljp_load(at, &word[i])) {
      stack->cut = LJP_CUT_BAD_READ;
      return false;
    }
    if (i == LJP_CF_RET)
      ljp_memo_note(regs->notes, at, word[i]);
    else
      ljp_memo_restore(regs->notes, (enum ljp_reg)reg[i], at, word[i]);
  }
  uint64_t sp = cframe + LJP_CF_WORDS * 8;
  if (sp <= regs->r[LJP_RSP]) {
    stack->cut = LJP_CUT_BAD_FRAME;
    return false;
  }
  regs->r[LJP_R14] = word[LJP_CF_R14];
  regs->r[LJP_R15] = word[LJP_CF_R15];
  regs->r[LJP_RBX] = word[LJP_CF_RBX];
  regs->r[LJP_RBP] = word[LJP_CF_RBP];
  regs->r[LJP_RIP] = word[LJP_CF_RET];
  regs->r[LJP_RSP] = sp;
  regs->known = (regs->known & (1u << LJP_R12 | 1u << LJP_R13)) |
                1u << LJP_R14 | 1u << LJP_R15 | 1u << LJP_RBX | 1u << LJP_RBP |
                1u << LJP_RIP | 1u << LJP_RSP;
  regs->exact = false;
  return true;
}

bool ljp_cframe_leave_compiled(struct ljp_regs *regs, uint64_t cframe,
                               struct ljp_stack *stack)
{
  uint64_t r12, r13;
  bool known = ljp_load(cframe, &r12) && ljp_load(cframe - 8, &r13);
  if (known) {
    ljp_memo_restore(regs->notes, LJP_R12, cframe, r12);
    ljp_memo_restore(regs->notes, LJP_R13, cframe - 8, r13);
  } else {
    ljp_memo_blur(regs->notes);
  }
  if (!ljp_cframe_leave(regs, cframe, stack))
    return false;
  regs->known &= ~(1u << LJP_R12 | 1u << LJP_R13);
  if (known) {
    regs->r[LJP_R12] = r12;
    regs->r[LJP_R13] = r13;
    regs->known |= 1u << LJP_R12 | 1u << LJP_R13;
  }
  return true;
}

uint64_t ljp_cframe_above(uint64_t L, uint64_t sp)
{
  uint64_t cframe;
  if (!ljp_load(L + offsetof(lua_State, cframe), &cframe))
    return 0;
  for (int i = 0; i < MAX_CFRAMES; i++) {
    cframe &= (uint64_t)(int64_t)CFRAME_RAWMASK;
    if (cframe >= sp || !cframe)
      return cframe;
    if (!ljp_load(cframe + LJP_CF_PREV * 8, &cframe))
      return 0;
  }
  return 0;
}

bool ljp_cframe_linked(uint64_t L, uint64_t wanted, struct ljp_memo *notes)
{
  uint64_t cframe;
  if (!ljp_load_noted(L + offsetof(lua_State, cframe), &cframe, notes))
    return false;
  for (int i = 0; i < MAX_CFRAMES; i++) {
    cframe &= (uint64_t)(int64_t)CFRAME_RAWMASK;
    if (cframe == wanted)
      return true;
    if (!cframe)
      return false;
    if (!ljp_load_noted(cframe + LJP_CF_PREV * 8, &cframe, notes)) {
      ljp_memo_blur(notes);
      return false;
    }
  }
  return false;
}
