/*
** Steps from functions without CFI, which all of musl's functions are.
**
** From the program counter the code is followed up to the function's return.
** Only what moves rsp or restores a register is carried out, on a copy of the
** registers; calls are taken to return. Registers that functions preserve have
** the caller's values at the return by the calling convention, whatever happens
** to them on the way, so only restored ones are read. At a branch the way
** straight on comes first, and the other one if that way leads nowhere: to an
** unknown instruction, in a circle, into code that never returns, or to a word
** on the stack that does not follow a call.
**
** A return address behind which the code goes straight to exit() or
** pthread_exit() is the root of a stack: its function never returns.
** Safety: LJP_SIGSAFE throughout; code and stack are read by fault-safe copies.
*/
#include <features.h>

#ifndef __GLIBC__ /* glibc has CFI */
#include <pthread.h>
#include <stdlib.h>
#endif

#include "profilers/unwind/instruction.h"
#include "profilers/unwind/step.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

enum { MAX_ALL = 1000, MAX_BRANCHES = 24 };

/* Where the machine keeps a register; only these can matter. r10 is the frame of
** functions that realign the stack. */
enum { SLOTS = 7, NO_SLOT = SLOTS };
static const uint8_t run_slot[16] = {[LJP_RAX] = NO_SLOT,
                                     [LJP_RDX] = NO_SLOT,
                                     [LJP_RCX] = NO_SLOT,
                                     [LJP_RBX] = 0,
                                     [LJP_RSI] = NO_SLOT,
                                     [LJP_RDI] = NO_SLOT,
                                     [LJP_RBP] = 1,
                                     [LJP_RSP] = NO_SLOT,
                                     [8] = NO_SLOT,
                                     [9] = NO_SLOT,
                                     [10] = 2,
                                     [11] = NO_SLOT,
                                     [LJP_R12] = 3,
                                     [LJP_R13] = 4,
                                     [LJP_R14] = 5,
                                     [LJP_R15] = 6};

/* reg: as the caller has it, for registers that functions preserve. */
struct machine {
  uint64_t pc, rsp;
  uint64_t low; /* what lies below has been popped, or is not pushed yet */
  uint64_t reg[SLOTS];
  uint32_t known; /* of DWARF's numbers; bit LJP_RSP: rsp is known */
  uint64_t frame; /* what rbp is on the way; 0: not known */
  bool framed;    /* rbp is not reg[LJP_RBP] but frame */
};

struct run {
  struct machine at;
  uint64_t start; /* rsp of the frame */
  uint32_t count; /* of branches */
  uint32_t left;  /* branches whose other way was tried */
  bool straight;  /* no branch so far */
  uint64_t branch[MAX_BRANCHES], target[MAX_BRANCHES];
  struct machine before[MAX_BRANCHES];
};

enum way { GOES_ON, RETURNS, NEVER_RETURNS, LEADS_NOWHERE };

/* Does the code there end the thread or the process? */
static bool run_is_end(uint64_t function)
{
#ifndef __GLIBC__
  return function == (uint64_t)(uintptr_t)&exit ||
         function == (uint64_t)(uintptr_t)&pthread_exit ||
         function == (uint64_t)(uintptr_t)&_Exit ||
         function == (uint64_t)(uintptr_t)&abort;
#else
  (void)function;
  return false;
#endif
}

/* The word at an address on the stack goes back into a register. */
static void run_load(struct run *r, uint32_t reg, uint64_t from)
{
  const uint32_t bit = 1u << reg;
  if (reg == LJP_RBP)
    r->at.framed = false;
  bool there = (r->at.known >> LJP_RSP & 1) && from >= r->at.low;
  if (run_slot[reg] == NO_SLOT)
    return;
  if (there &&
      ljp_safe_load((const void *)(uintptr_t)from, &r->at.reg[run_slot[reg]]))
    r->at.known |= bit;
  /* A preserved register still has what will be pushed. */
  else if (!(LJP_REGS_CALLEE_SAVED & bit))
    r->at.known &= ~bit;
}

/* rsp goes up or down. */
static void run_adjust(struct run *r, int64_t bytes)
{
  r->at.rsp += (uint64_t)bytes;
  if ((r->at.known >> LJP_RSP & 1) && r->at.rsp > r->at.low)
    r->at.low = r->at.rsp;
}

/* A branch that has been met leads in a circle, or where another way has failed.
** pc: behind it. */
static enum way run_branch(struct run *r, uint64_t target)
{
  r->straight = false;
  for (uint32_t i = 0; i < r->count; i++)
    if (r->branch[i] == r->at.pc)
      return LEADS_NOWHERE;
  if (r->count == MAX_BRANCHES)
    return GOES_ON;
  r->branch[r->count] = r->at.pc;
  r->before[r->count] = r->at;
  r->target[r->count++] = target;
  return GOES_ON;
}

/* Is what the return leads to a caller? */
static enum way run_return(struct run *r)
{
  uint64_t rip;
  if (!(r->at.known >> LJP_RSP & 1) || r->at.rsp < r->at.low ||
      !ljp_unwind_cfa_ok(r->at.rsp + 8, r->start) ||
      !ljp_safe_load((const void *)(uintptr_t)r->at.rsp, &rip) ||
      !ljp_unwind_follows_call(rip))
    return LEADS_NOWHERE;
  r->at.pc = rip;
  return RETURNS;
}

static void run_set_known(struct run *r, uint32_t reg, bool known)
{
  if (known)
    r->at.known |= 1u << reg;
  else
    r->at.known &= ~(1u << reg);
}

/* rsp becomes what a register has, or is lost. */
static void run_set_rsp(struct run *r, uint32_t reg, int64_t more)
{
  bool framed = reg == LJP_RBP && r->at.framed;
  bool known = framed ? r->at.frame != 0
               : reg == LJP_RSP
                   ? r->at.known >> LJP_RSP & 1
                   : run_slot[reg] != NO_SLOT && (r->at.known >> reg & 1);
  if (framed)
    r->at.rsp = r->at.frame;
  else if (known && reg != LJP_RSP)
    r->at.rsp = r->at.reg[run_slot[reg]];
  run_set_known(r, LJP_RSP, known);
  run_adjust(r, more);
}

/* A register points into the stack. */
static void run_point(struct run *r, uint32_t reg, uint64_t to)
{
  bool known = r->at.known >> LJP_RSP & 1;
  if (reg == LJP_RBP) {
    r->at.framed = true;
    r->at.frame = known ? to : 0;
  } else if (reg == 10) {
    r->at.reg[run_slot[reg]] = to;
    run_set_known(r, reg, known);
  }
}

static void run_stack(struct run *r, const struct ljp_insn *insn)
{
  switch (insn->kind) {
  case LJP_INSN_PUSH:
    run_adjust(r, -8);
    break;
  case LJP_INSN_LEAVE:
    run_set_rsp(r, LJP_RBP, 0);
    run_load(r, LJP_RBP, r->at.rsp);
    run_adjust(r, 8);
    break;
  case LJP_INSN_POP:
    run_load(r, insn->reg, r->at.rsp);
    run_adjust(r, 8);
    break;
  case LJP_INSN_POPF:
    run_adjust(r, 8);
    break;
  case LJP_INSN_ADJUST:
    run_adjust(r, insn->value);
    break;
  case LJP_INSN_FROM:
    run_set_rsp(r, insn->reg, insn->value);
    break;
  case LJP_INSN_LOST:
    r->at.known &= ~(1u << LJP_RSP);
    break;
  case LJP_INSN_POINTER:
    run_point(r, insn->reg, r->at.rsp + (uint64_t)insn->value);
    break;
  default:
    break;
  }
}

static enum way run_one(struct run *r)
{
  uint8_t code[LJP_INSN_BYTES] = {0};
  struct ljp_insn insn;
  /* What cannot be read is 0, which is an instruction that reads memory. */
  if (!ljp_safe_copy(code, (const void *)(uintptr_t)r->at.pc, sizeof code))
    return LEADS_NOWHERE;
  ljp_insn_read(&insn, code, r->at.pc);
  if (!insn.size)
    return LEADS_NOWHERE;
  r->at.pc += insn.size;
  switch (insn.kind) {
  case LJP_INSN_STOP:
    return LEADS_NOWHERE;
  case LJP_INSN_RETURN:
    return run_return(r);
  case LJP_INSN_CALL:
    r->at.known &= LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP;
    return run_is_end(insn.target) ? NEVER_RETURNS : GOES_ON;
  case LJP_INSN_JUMP:
    if (!insn.target)
      return LEADS_NOWHERE;
    r->at.pc = insn.target;
    return run_is_end(insn.target) ? NEVER_RETURNS : GOES_ON;
  case LJP_INSN_BRANCH:
    return run_branch(r, insn.target);
  default:
    run_stack(r, &insn);
    return GOES_ON;
  }
}

/* Takes the other way of the last branch where it was not tried. */
static bool run_back(struct run *r)
{
  if (r->left == r->count)
    return false;
  r->at = r->before[r->left];
  r->at.pc = r->target[r->left++];
  return true;
}

static enum way run_all(struct run *r)
{
  uint32_t all = 0;
  do {
    enum way way = GOES_ON;
    while (way == GOES_ON && all++ < MAX_ALL)
      way = run_one(r);
    if (way == RETURNS || (way == NEVER_RETURNS && r->straight))
      return way;
  } while (all < MAX_ALL && run_back(r));
  return LEADS_NOWHERE;
}

enum ljp_unwind_result ljp_unwind_run_code(struct ljp_regs *regs,
                                           enum ljp_unwind_result otherwise)
{
  struct run r;
  r.at.pc = regs->r[LJP_RIP];
  r.start = r.at.rsp = r.at.low = regs->r[LJP_RSP];
  r.at.frame = 0;
  r.at.framed = false;
  for (uint32_t i = 0; i < 16; i++)
    if (run_slot[i] != NO_SLOT)
      r.at.reg[run_slot[i]] = regs->r[i];
  r.at.known = regs->known;
  r.count = r.left = 0;
  r.straight = true;
  switch (run_all(&r)) {
  case NEVER_RETURNS:
    return regs->exact ? otherwise : LJP_UNWIND_END;
  case RETURNS:
    break;
  default:
    return otherwise;
  }
  ljp_memo_blur(regs->notes);
  for (uint32_t i = 0; i < 16; i++)
    if (LJP_REGS_CALLEE_SAVED >> i & 1)
      regs->r[i] = r.at.reg[run_slot[i]];
  regs->known =
      (r.at.known & LJP_REGS_CALLEE_SAVED) | 1u << LJP_RIP | 1u << LJP_RSP;
  regs->r[LJP_RIP] = r.at.pc;
  regs->r[LJP_RSP] = r.at.rsp + 8;
  regs->exact = false;
  return LJP_UNWIND_STEPPED;
}
