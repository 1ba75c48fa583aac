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
#include <string.h>

#ifndef __GLIBC__ /* glibc has CFI */
#include <pthread.h>
#include <stdlib.h>
#endif

#include "profilers/unwind/facts.h"
#include "profilers/unwind/step.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

enum { MAX_ALL = 1000, MAX_BRANCHES = 144, MAX_WAYS = 13 };

/* The registers whose values matter. r10 is the frame of functions that realign
** the stack. */
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

/* Registers that may be frames. */
enum { FRAME_RBP, FRAME_R10, FRAMES };

/* Places in the stack are distances from rsp at the start, or one of these. */
enum { NO_PLACE = INT32_MAX, LOST_PLACE = INT32_MIN };
struct machine {
  uint64_t pc;
  int32_t rsp, low;      /* below low all is popped, or not pushed yet */
  int32_t saved[SLOTS];  /* from where a register was restored */
  int32_t frame[FRAMES]; /* where it points to, if into the stack */
  struct ljp_facts facts;
  uint8_t pushed; /* slots pushed on the way, which a pop brings back */
  bool lost;      /* rsp is not known */
};

/* In the room of the registers: too large for small stacks. */
struct run {
  struct machine m;
  const struct ljp_regs *regs;
  uint64_t rip;      /* the caller's */
  uint32_t branches; /* that were met */
  uint32_t ways;     /* that were put in way[], of which some remain: */
  uint32_t left;
  int32_t branch[MAX_BRANCHES]; /* the distances behind them from the start */
  struct machine way[MAX_WAYS]; /* other ways that were not tried, in a ring */
};
_Static_assert(sizeof(struct run) <= sizeof(struct ljp_unwind_room),
               "it is there");

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

static uint64_t run_address(const struct run *r, int32_t place)
{
  return r->regs->r[LJP_RSP] + (uint64_t)(int64_t)place;
}

static bool run_load(const struct run *r, int32_t place, uint64_t *value)
{
  return ljp_safe_load((const void *)(uintptr_t)run_address(r, place), value);
}

/* -- The stack ------------------------------------------------------------- */

/* A register that points into the stack gets another value. */
static void run_unpoint(struct machine *m, uint32_t registers)
{
  if ((registers >> LJP_RBP & 1) && m->frame[FRAME_RBP] != NO_PLACE)
    m->frame[FRAME_RBP] = LOST_PLACE;
  if ((registers >> 10 & 1) && m->frame[FRAME_R10] != NO_PLACE)
    m->frame[FRAME_R10] = LOST_PLACE;
}

/* rsp goes to a place, or is lost. */
static void run_set_rsp(struct run *r, int64_t place)
{
  if (place < -LJP_UNWIND_MAX_FRAME_BYTES ||
      place > LJP_UNWIND_MAX_FRAME_BYTES) {
    r->m.lost = true;
    return;
  }
  r->m.rsp = (int32_t)place;
  if (!r->m.lost && r->m.rsp > r->m.low)
    r->m.low = r->m.rsp;
}

/* Is the register a frame on the way? NULL: it cannot be. */
static int32_t *run_frame(struct run *r, uint32_t reg)
{
  return reg == LJP_RBP ? &r->m.frame[FRAME_RBP]
         : reg == 10    ? &r->m.frame[FRAME_R10]
                        : NULL;
}

/* rsp becomes what a register has and more. */
static void run_rsp_from(struct run *r, uint32_t reg, int64_t more)
{
  uint32_t slot = reg < 16 ? run_slot[reg] : NO_SLOT;
  const int32_t *frame = run_frame(r, reg);
  uint64_t value = run_address(r, r->m.rsp);
  bool known = false;
  if (reg == LJP_RSP) {
    known = !r->m.lost;
  } else if (frame && *frame != NO_PLACE) {
    known = *frame != LOST_PLACE;
    value = run_address(r, *frame);
  } else if (slot != NO_SLOT && r->m.saved[slot] != NO_PLACE) {
    known = run_load(r, r->m.saved[slot], &value);
  } else if (slot != NO_SLOT && ljp_facts_same(&r->m.facts, reg)) {
    known = true;
    value = r->regs->r[reg];
  }
  r->m.lost = !known;
  if (known)
    run_set_rsp(r, (int64_t)(value - r->regs->r[LJP_RSP]) + more);
}

/* A register gets a word of the stack. */
static void run_restore(struct run *r, uint32_t reg, int64_t place)
{
  uint32_t slot = run_slot[reg];
  int32_t *frame = run_frame(r, reg);
  if (r->m.lost || place < r->m.low || place >= NO_PLACE)
    return;
  if (slot != NO_SLOT && !(r->m.pushed >> slot & 1))
    r->m.saved[slot] = (int32_t)place;
  if (frame)
    *frame = NO_PLACE;
}

static void run_push(struct run *r, uint32_t reg)
{
  run_set_rsp(r, (int64_t)r->m.rsp - 8);
  if (run_slot[reg] != NO_SLOT)
    r->m.pushed |= (uint8_t)(1u << run_slot[reg]);
}

static void run_pop(struct run *r, uint32_t reg)
{
  r->m.pushed &= (uint8_t) ~(1u << run_slot[reg]);
  run_restore(r, reg, r->m.rsp);
  if (reg == LJP_RBP)
    r->m.frame[FRAME_RBP] = NO_PLACE;
  run_set_rsp(r, (int64_t)r->m.rsp + 8);
}

/* The last word that a preserved register gets is the caller's. It may be one at a
** distance from rsp or from the frame. */
static void run_load_word(struct run *r, const struct ljp_insn *insn)
{
  int64_t place = r->m.rsp;
  bool known = !r->m.lost;
  if (insn->from == LJP_RBP) {
    place = r->m.frame[FRAME_RBP];
    known = place != NO_PLACE && place != LOST_PLACE;
    if (place == NO_PLACE && ljp_facts_same(&r->m.facts, LJP_RBP)) {
      place = (int64_t)(r->regs->r[LJP_RBP] - r->regs->r[LJP_RSP]);
      known = place >= 0 && place < LJP_UNWIND_MAX_FRAME_BYTES;
    }
  }
  run_unpoint(&r->m, insn->writes);
  if (known && (LJP_REGS_CALLEE_SAVED >> insn->reg & 1) &&
      insn->reg != LJP_RBP && (insn->from == LJP_RSP || insn->from == LJP_RBP))
    run_restore(r, insn->reg, place + insn->value);
}

/* A register points into the stack. */
static void run_point(struct run *r, uint32_t reg, int64_t more)
{
  int32_t *frame = run_frame(r, reg);
  int64_t place = r->m.rsp + more;
  bool known = !r->m.lost && place > INT32_MIN && place < INT32_MAX;
  if (frame)
    *frame = known ? (int32_t)place : LOST_PLACE;
}

static void run_stack(struct run *r, const struct ljp_insn *insn)
{
  switch (insn->kind) {
  case LJP_INSN_PUSH:
    run_push(r, insn->reg);
    break;
  case LJP_INSN_LEAVE:
    run_rsp_from(r, LJP_RBP, 0);
    run_pop(r, LJP_RBP);
    break;
  case LJP_INSN_POP:
    run_pop(r, insn->reg);
    break;
  case LJP_INSN_LOAD:
    run_load_word(r, insn);
    break;
  case LJP_INSN_POPF:
    run_set_rsp(r, (int64_t)r->m.rsp + 8);
    break;
  case LJP_INSN_ADJUST:
    run_set_rsp(r, (int64_t)r->m.rsp + insn->value);
    break;
  case LJP_INSN_FROM:
    run_rsp_from(r, insn->reg, insn->value);
    break;
  case LJP_INSN_LOST:
    r->m.lost = true;
    break;
  case LJP_INSN_POINTER:
    run_point(r, insn->reg, insn->value);
    break;
  default:
    run_unpoint(&r->m, insn->writes);
    break;
  }
}

/* -- Ways ------------------------------------------------------------------ */

/* A branch that has been met leads in a circle, or where another way has failed.
** m.pc: behind it. If there is no room the oldest way is forgotten. */
static enum way run_branch(struct run *r, uint64_t target)
{
  uint64_t distance = r->m.pc - r->regs->r[LJP_RIP];
  for (uint32_t i = 0; i < r->branches; i++)
    if (r->branch[i] == (int32_t)distance)
      return LEADS_NOWHERE;
  if (r->branches == MAX_BRANCHES)
    return LEADS_NOWHERE;
  r->branch[r->branches++] = (int32_t)distance;
  struct machine *other = &r->way[r->ways++ % MAX_WAYS];
  *other = r->m;
  other->pc = target;
  if (r->left < MAX_WAYS)
    r->left++;
  return GOES_ON;
}

/* Is what the return leads to a caller? */
static enum way run_return(struct run *r)
{
  uint64_t rsp = r->regs->r[LJP_RSP];
  if (r->m.lost || r->m.rsp < r->m.low ||
      !ljp_unwind_cfa_ok(run_address(r, r->m.rsp) + 8, rsp) ||
      !run_load(r, r->m.rsp, &r->rip) || !ljp_unwind_follows_call(r->rip))
    return LEADS_NOWHERE;
  return RETURNS;
}

/* Could both be in one function? */
static bool run_is_near(const struct run *r, uint64_t address)
{
  enum { MAX_FUNCTION = 1 << 20 };
  return address - r->m.pc + MAX_FUNCTION < 2 * MAX_FUNCTION;
}

/* The first entry of the table of a switch. */
static enum way run_switch(struct run *r, uint64_t table, bool wide)
{
  int32_t entry = 0;
  uint64_t target = 0;
  if (wide ? !ljp_safe_load((const void *)(uintptr_t)table, &target)
           : ljp_safe_copy(&entry, (const void *)(uintptr_t)table, 4) != 4)
    return LEADS_NOWHERE;
  if (!wide)
    target = table + (uint64_t)(int64_t)entry;
  if (!run_is_near(r, target) || run_branch(r, target) == LEADS_NOWHERE)
    return LEADS_NOWHERE;
  r->m.pc = target;
  return GOES_ON;
}

/* A jump to where a register points. */
static enum way run_jump_reg(struct run *r, uint32_t reg)
{
  uint64_t address = 0;
  switch (ljp_fact(&r->m.facts, reg, r->regs, &address)) {
  case LJP_FACT_TARGET:
    return run_switch(r, address, false);
  case LJP_FACT_ADDRESS:
    if (run_is_end(address))
      return NEVER_RETURNS;
    if (!run_is_near(r, address))
      return run_return(r);
    r->m.pc = address;
    return GOES_ON;
  case LJP_FACT_POINTER:
    return run_return(r);
  default:
    return LEADS_NOWHERE;
  }
}

static enum way run_one(struct run *r)
{
  uint8_t code[LJP_INSN_BYTES] = {0};
  struct ljp_insn insn;
  /* What cannot be read is 0, which is an instruction that reads memory. */
  if (!ljp_safe_copy(code, (const void *)(uintptr_t)r->m.pc, sizeof code))
    return LEADS_NOWHERE;
  ljp_insn_read(&insn, code, r->m.pc);
  if (!insn.size)
    return LEADS_NOWHERE;
  r->m.pc += insn.size;
  switch (insn.kind) {
  case LJP_INSN_STOP:
    return LEADS_NOWHERE;
  case LJP_INSN_RETURN:
  case LJP_INSN_JUMP_WORD:
    return run_return(r);
  case LJP_INSN_CALL:
    ljp_facts_forget(&r->m.facts, ~(uint32_t)LJP_REGS_CALLEE_SAVED);
    run_unpoint(&r->m, 1u << 10);
    return run_is_end(insn.target) ? NEVER_RETURNS : GOES_ON;
  case LJP_INSN_JUMP:
    r->m.pc = insn.target;
    return run_is_end(insn.target) ? NEVER_RETURNS : GOES_ON;
  case LJP_INSN_JUMP_REG:
    return run_jump_reg(r, insn.reg);
  case LJP_INSN_JUMP_TABLE:
    return run_switch(r, insn.target, true);
  case LJP_INSN_BRANCH:
    return run_branch(r, insn.target);
  default:
    run_stack(r, &insn);
    ljp_facts_tell(&r->m.facts, &insn, r->regs);
    return GOES_ON;
  }
}

/* Takes the last way that was not tried. */
static bool run_back(struct run *r)
{
  if (!r->left)
    return false;
  r->left--;
  r->m = r->way[--r->ways % MAX_WAYS];
  return true;
}

static enum way run_all(struct run *r)
{
  uint32_t all = 0;
  do {
    enum way way = GOES_ON;
    while (way == GOES_ON && all++ < MAX_ALL)
      way = run_one(r);
    if (way == RETURNS || (way == NEVER_RETURNS && !r->branches))
      return way;
  } while (all < MAX_ALL && run_back(r));
  return LEADS_NOWHERE;
}

/* The registers as the caller has them. */
static void run_finish(const struct run *r, struct ljp_regs *regs)
{
  struct ljp_regs caller = *regs;
  caller.known = 1u << LJP_RIP | 1u << LJP_RSP;
  for (uint32_t i = 0; i < 16; i++) {
    if (!(LJP_REGS_CALLEE_SAVED >> i & 1))
      continue;
    int32_t saved = r->m.saved[run_slot[i]];
    if (saved == NO_PLACE)
      caller.known |= regs->known & 1u << i;
    else if (run_load(r, saved, &caller.r[i]))
      caller.known |= 1u << i;
  }
  caller.r[LJP_RIP] = r->rip;
  caller.r[LJP_RSP] = run_address(r, r->m.rsp) + 8;
  caller.exact = false;
  *regs = caller;
}

enum ljp_unwind_result ljp_unwind_run_code(struct ljp_regs *regs,
                                           enum ljp_unwind_result otherwise)
{
  struct run *r = (struct run *)(void *)regs->room;
  if (!r)
    return otherwise;
  memset(&r->m, 0, sizeof r->m);
  for (uint32_t i = 0; i < SLOTS; i++)
    r->m.saved[i] = NO_PLACE;
  for (uint32_t i = 0; i < FRAMES; i++)
    r->m.frame[i] = NO_PLACE;
  r->m.pc = regs->r[LJP_RIP];
  r->m.facts.same = regs->known;
  r->regs = regs;
  r->branches = r->ways = r->left = 0;
  switch (run_all(r)) {
  case NEVER_RETURNS:
    return regs->exact ? otherwise : LJP_UNWIND_END;
  case RETURNS:
    break;
  default:
    return otherwise;
  }
  ljp_memo_blur(regs->notes);
  run_finish(r, regs);
  return LJP_UNWIND_STEPPED;
}
