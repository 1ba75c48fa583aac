/*
** The step, and the borrowing of views: what the handler calls.
**
** The common case is a compiled rule: one search in the object's table, one
** load for the return address and one for each saved register. The rest goes
** through the object's own CFI (find.c).
** Safety: LJP_SIGSAFE throughout; no allocation, no lock, no system call.
*/
#include "profilers/unwind/priv.h"

#include <ucontext.h>

#include "src/base/memo.h"
#include "src/base/saferead.h"

#if defined(__x86_64__)
void ljp_regs_from_context(struct ljp_regs *regs, const void *context)
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
}
#else
void ljp_regs_from_context(struct ljp_regs *regs, const void *context)
{
  (void)context;
  *regs = (struct ljp_regs){.exact = true};
}
#endif

/* A view is protected by its slot's count. The order that matters: we count
** ourselves in, then look whether the slot is still current; the writer makes
** another slot current, then looks at the count. Both are sequentially
** consistent, so at least one sees the other: either we turn back, or the
** writer keeps the view. Reusing a slot is harmless: its view is read last. */
const struct ljp_unwind_view *ljp_unwind_acquire(struct ljp_unwind *unwind)
{
  for (int attempt = 0; attempt < 3; attempt++) {
    unsigned slot =
        atomic_load_explicit(&unwind->current, memory_order_seq_cst);
    atomic_fetch_add_explicit(&unwind->slots[slot].users, 1,
                              memory_order_seq_cst);
    if (atomic_load_explicit(&unwind->current, memory_order_seq_cst) == slot)
      return unwind->slots[slot].view;
    /* release: nothing of the view was read, but keep the counts in order. */
    atomic_fetch_sub_explicit(&unwind->slots[slot].users, 1,
                              memory_order_release);
  }
  return NULL;
}

void ljp_unwind_release(struct ljp_unwind *unwind,
                        const struct ljp_unwind_view *view)
{
  /* release: all reads of the view come before the writer sees zero. */
  atomic_fetch_sub_explicit(&unwind->slots[view->slot].users, 1,
                            memory_order_release);
}

uint64_t ljp_unwind_view_serial(const struct ljp_unwind_view *view)
{
  return view->serial;
}

/* relaxed: a hint; the writer's next round would find out anyway. */
static void want(_Atomic bool *flag)
{
  if (!atomic_load_explicit(flag, memory_order_relaxed))
    atomic_store_explicit(flag, true, memory_order_relaxed);
}

const _Atomic uint64_t *ljp_unwind_serial(const struct ljp_unwind *unwind)
{
  return &unwind->serial;
}

bool ljp_unwind_wants_poll(const struct ljp_unwind *unwind)
{
  return atomic_load_explicit(&unwind->wants_poll, memory_order_relaxed);
}

static const struct ljp_unwind_range *
find_range(const struct ljp_unwind_view *view, uint64_t address, uint32_t hint)
{
  if (hint - 1 < view->ranges_count) {
    const struct ljp_unwind_range *range = &view->ranges[hint - 1];
    if (address - range->lo < range->hi - range->lo)
      return range;
  }
  uint32_t low = 0, high = view->ranges_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (view->ranges[middle].hi <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < view->ranges_count && view->ranges[low].lo <= address)
    return &view->ranges[low];
  return NULL;
}

bool ljp_unwind_has_module(const struct ljp_unwind_view *view, uint64_t address)
{
  return find_range(view, address, 0) != NULL;
}

/* The row that covers an offset. */
static uint32_t find_row(const struct ljp_unwind_table *table, uint32_t offset)
{
  uint32_t bucket = offset >> table->shift;
  if (bucket >= table->buckets)
    bucket = table->buckets - 1;
  uint32_t low = table->start[bucket];
  uint32_t high = table->start[bucket + 1] + 1;
  /* Row low begins at or before the bucket, so at or before the offset. */
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (table->pc[middle] <= offset)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static enum ljp_unwind_result apply_rule(const struct ljp_unwind_rule *rule,
                                         struct ljp_regs *regs)
{
  uint64_t loaded[LJP_RULE_SAVED], rip;
  if (LJP_UNLIKELY(!(regs->known >> rule->base & 1)))
    return LJP_UNWIND_UNKNOWN_REG;
  uint64_t cfa = regs->r[rule->base] + (uint64_t)(int64_t)rule->cfa_offset;
  if (LJP_UNLIKELY(!ljp_unwind_cfa_ok(cfa, regs->r[LJP_RSP])))
    return LJP_UNWIND_BAD_CFA;
  if (LJP_UNLIKELY(!ljp_safe_load((const void *)(uintptr_t)(cfa - 8), &rip)))
    return LJP_UNWIND_UNREADABLE;
  /* A root that has no better way to say so pushes a zero. */
  if (LJP_UNLIKELY(rip == 0))
    return LJP_UNWIND_END;
  for (unsigned left = rule->saved; left; left &= left - 1) {
    unsigned i = (unsigned)__builtin_ctz(left);
    uint64_t at = cfa + 8 * (uint64_t)(int64_t)rule->slot[i];
    if (LJP_UNLIKELY(!ljp_safe_load((const void *)(uintptr_t)at, &loaded[i])))
      return LJP_UNWIND_UNREADABLE;
  }
  uint32_t known = regs->known & LJP_REGS_CALLEE_SAVED;
  ljp_memo_use(regs->notes, 1u << rule->base);
  ljp_memo_note(regs->notes, cfa - 8, rip, 0);
  for (unsigned left = rule->saved; left; left &= left - 1) {
    unsigned i = (unsigned)__builtin_ctz(left);
    regs->r[ljp_rule_saved[i]] = loaded[i];
    ljp_memo_restore(regs->notes, ljp_rule_saved[i],
                     cfa + 8 * (uint64_t)(int64_t)rule->slot[i], loaded[i]);
    known |= 1u << ljp_rule_saved[i];
  }
  regs->r[LJP_RIP] = rip;
  regs->r[LJP_RSP] = cfa;
  regs->known = known | 1u << LJP_RIP | 1u << LJP_RSP;
  regs->exact = false;
  return LJP_UNWIND_STEPPED;
}

/* Do the bytes before a return address end in a call? */
static bool follows_call(uint64_t address)
{
  uint8_t code[7];
  if (ljp_safe_copy(code, (const void *)(uintptr_t)(address - sizeof code),
                    sizeof code) != sizeof code)
    return false;
  /* e8 rel32, and ff /2 with its operand in 0 to 5 further bytes. */
  if (code[2] == 0xe8)
    return true;
  for (unsigned i = 0; i < 6; i++)
    if (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2)
      return true;
  return false;
}

/* A return address that no call has pushed, but somebody planted, is the first
** instruction of a function, and the byte before it belongs to something else.
** Such is a signal trampoline, whose CFI then holds, and the root of a fiber
** (makecontext plants one whose CFI claims a caller): the end of its stack. */
static enum ljp_unwind_result
look_for_planted(const struct ljp_unwind_object *object, uint64_t rip,
                 struct ljp_found *found)
{
  enum ljp_unwind_result result = LJP_UNWIND_NO_RULE;
  if (!follows_call(rip) && !ljp_unwind_find(object, rip, found) &&
      found->fde.start == rip)
    result = found->cie.signal ? LJP_UNWIND_STEPPED : LJP_UNWIND_END;
  return result;
}

/* *landed: the caller is where an error lands, not one that has called. */
static enum ljp_unwind_result interpret(const struct ljp_unwind_object *object,
                                        uint64_t pc, struct ljp_regs *regs,
                                        bool *landed)
{
  struct ljp_found found;
  uint64_t rip = regs->r[LJP_RIP];
  enum ljp_unwind_result result = ljp_unwind_find(object, pc, &found);
  if (pc != rip &&
      (result == LJP_UNWIND_NO_RULE || (!result && found.fde.end == rip))) {
    bool called = !result;
    result = look_for_planted(object, rip, &found);
    if (result == LJP_UNWIND_NO_RULE && called)
      result = ljp_unwind_find(object, pc, &found);
  }
  if (result == LJP_UNWIND_NO_RULE && ljp_unwind_step_crt(pc, regs))
    return LJP_UNWIND_STEPPED;
  if (result)
    return result;
  const struct ljp_cfi_row *row = &found.machine.row;
  struct ljp_regs frame = *regs;
  bool lands = ljp_unwind_lands(row);
  if (LJP_UNLIKELY(lands && regs->exact) && ljp_unwind_jump_off(row, regs)) {
    *landed = true;
    return LJP_UNWIND_STEPPED;
  }
  result = ljp_unwind_apply(row, &found.cie, &found.fde.span, regs);
  if (LJP_UNLIKELY(lands && !result))
    ljp_unwind_land(&frame, regs);
  return result;
}

/* Code that the view does not know, or knows as another's. */
static enum ljp_unwind_result step_fresh(const struct ljp_unwind_view *view,
                                         uint64_t pc, struct ljp_regs *regs,
                                         bool *landed,
                                         enum ljp_unwind_result otherwise)
{
  struct ljp_unwind_object object;
  want(view->wants_poll);
  ljp_memo_blur(regs->notes);
  if (!ljp_unwind_find_fresh(view->finder, pc, &object))
    return otherwise;
  return interpret(&object, pc, regs, landed);
}

static enum ljp_unwind_result step_in(const struct ljp_unwind_view *view,
                                      const struct ljp_unwind_range *range,
                                      uint64_t pc, struct ljp_regs *regs,
                                      bool *landed)
{
  struct ljp_unwind_object *object = range->object;
  uint32_t hint = (uint32_t)(range - view->ranges) + 1;
  uint64_t word;
  /* Acquire: pairs with the release once the header has been read. */
  if (LJP_UNLIKELY(
          !atomic_load_explicit(&object->ready, memory_order_acquire))) {
    want(&object->wanted);
    return step_fresh(view, pc, regs, landed, LJP_UNWIND_NO_CFI);
  }
  if (!object->header) /* none, or gone when the view was made */
    return step_fresh(view, pc, regs, landed, LJP_UNWIND_NO_CFI);
  /* Another object may have been mapped here since: ask its header. */
  if (hint != regs->module) {
    uint64_t at = ljp_unwind_witness_at(object->header);
    if (!ljp_safe_load((const void *)(uintptr_t)at, &word) ||
        word != object->witness)
      return step_fresh(view, pc, regs, landed, LJP_UNWIND_STALE);
    regs->module = hint;
    ljp_memo_note_always(regs->notes, at, word);
  }
  /* acquire: pairs with the publication of the finished table. */
  const struct ljp_unwind_table *table =
      atomic_load_explicit(&object->table, memory_order_acquire);
  if (LJP_UNLIKELY(!table)) {
    if (!atomic_load_explicit(&object->failed, memory_order_relaxed)) {
      want(&object->wanted);
      want(view->wants_poll);
    }
    return interpret(object, pc, regs, landed);
  }
  uint32_t row = find_row(table, (uint32_t)(pc - object->lo));
  const struct ljp_unwind_rule *rule = &table->rules[table->rule[row]];
  /* Might the address be planted? Then another row begins right at it; few
  ** others do. */
  if (!regs->exact && row + 1 < table->rows &&
      LJP_UNLIKELY(table->pc[row + 1] == (uint32_t)(pc + 1 - object->lo)))
    return interpret(object, pc, regs, landed);
  switch ((enum ljp_rule_kind)rule->kind) {
  case LJP_RULE_REGULAR:
    return apply_rule(rule, regs);
  case LJP_RULE_INTERPRET:
    return interpret(object, pc, regs, landed);
  case LJP_RULE_END:
    return LJP_UNWIND_END;
  case LJP_RULE_NONE:
    break;
  }
  return ljp_unwind_step_crt(pc, regs) ? LJP_UNWIND_STEPPED
                                       : LJP_UNWIND_NO_RULE;
}

/* -- Interrupted frames --------------------------------------------------- */

/* Frame information is exact where calls return, since exceptions rely on it.
** At any other instruction it is only as good as compiler and assembler
** programmer cared to make it, so an interrupted frame gets two looks more: at
** a return, what is about to happen is read from the code itself, and the
** caller found must look like one. */

static bool finish_return(struct ljp_regs *regs, uint64_t cfa)
{
  uint64_t rip;
  if (!ljp_unwind_cfa_ok(cfa, regs->r[LJP_RSP]) ||
      !ljp_safe_load((const void *)(uintptr_t)(cfa - 8), &rip) ||
      !follows_call(rip))
    return false;
  regs->r[LJP_RIP] = rip;
  regs->r[LJP_RSP] = cfa;
  regs->known =
      (regs->known & LJP_REGS_CALLEE_SAVED) | 1u << LJP_RIP | 1u << LJP_RSP;
  regs->exact = false;
  return true;
}

/* At a ret, registers are the caller's again by the calling convention, and
** the return address is on top. GCC realigns a stack with
**   pop rbp; lea rsp, [r10 - 8]; ret
** and its CFI still looks for rbp on the stack at the last two. */
static bool step_at_return(struct ljp_regs *regs)
{
  static const uint8_t dwarf[8] = {LJP_RAX, LJP_RCX, LJP_RDX, LJP_RBX,
                                   LJP_RSP, LJP_RBP, LJP_RSI, LJP_RDI};
  uint8_t code[5] = {0};
  ljp_safe_copy(code, (const void *)(uintptr_t)regs->r[LJP_RIP], sizeof code);
  if (code[0] == 0xc3 || code[0] == 0xc2 ||
      ((code[0] == 0xf3 || code[0] == 0xf2) && code[1] == 0xc3))
    return finish_return(regs, regs->r[LJP_RSP] + 8);
  if ((code[0] & 0xfe) == 0x48 && code[1] == 0x8d && (code[2] & 0xf8) == 0x60 &&
      code[2] != 0x64 && code[3] == 0xf8 && code[4] == 0xc3) {
    unsigned reg = code[2] & 7;
    reg = code[0] & 1 ? reg + 8 : dwarf[reg];
    return regs->known >> reg & 1 && finish_return(regs, regs->r[reg]);
  }
  return false;
}

static bool is_signal_return(uint64_t pc)
{
  static const uint64_t mov_rax = UINT64_C(0x0f0000000fc0c748);
  static const uint64_t mov_eax = UINT64_C(0x050f0000000fb8);
  uint64_t code = 0;
  uint8_t last;
  if (ljp_safe_copy(&code, (const void *)(uintptr_t)pc, 8) < 7)
    return false;
  if ((code & (UINT64_MAX >> 8)) == mov_eax)
    return true;
  return code == mov_rax &&
         ljp_safe_copy(&last, (const void *)(uintptr_t)(pc + 8), 1) &&
         last == 0x05;
}

/* Could this have been put on the stack as a return address? After a call, or
** a function's entry where one is planted: trampolines and roots. */
static bool could_return_to(const struct ljp_unwind_view *view, uint64_t rip)
{
  struct ljp_found found;
  if (follows_call(rip) || is_signal_return(rip))
    return true;
  const struct ljp_unwind_range *range = find_range(view, rip, 0);
  const struct ljp_unwind_object *object = range ? range->object : NULL;
  struct ljp_unwind_object fresh;
  if ((!object ||
       !atomic_load_explicit(&object->ready, memory_order_acquire)) &&
      ljp_unwind_find_fresh(view->finder, rip, &fresh))
    object = &fresh;
  return object && object->header && !ljp_unwind_find(object, rip, &found) &&
         (found.cie.signal || found.fde.start == rip);
}

/* A libc whose signal return has no CFI: it is known by its instructions, and
** rsp points at the interrupted context. */
static bool step_signal_return(struct ljp_regs *regs)
{
  /* Offsets of the registers in the kernel's ucontext, in DWARF order. */
  static const uint8_t where[LJP_REGS] = {144, 136, 152, 128, 112, 104,
                                          120, 160, 40,  48,  56,  64,
                                          72,  80,  88,  96,  168};
  struct ljp_regs caller = {
      .known = LJP_REGS_ALL, .exact = true, .notes = regs->notes};
  uint64_t rsp = regs->r[LJP_RSP];
  if (regs->exact || !is_signal_return(regs->r[LJP_RIP]))
    return false;
  for (int reg = 0; reg < LJP_REGS; reg++)
    if (!ljp_safe_load((const void *)(uintptr_t)(rsp + where[reg]),
                       &caller.r[reg]))
      return false;
  *regs = caller;
  ljp_memo_blur(regs->notes);
  return true;
}

static enum ljp_unwind_result step_exact(const struct ljp_unwind_view *view,
                                         const struct ljp_unwind_range *range,
                                         struct ljp_regs *regs)
{
  struct ljp_regs before = *regs;
  bool landed = false;
  ljp_memo_blur(regs->notes);
  if (step_at_return(regs))
    return LJP_UNWIND_STEPPED;
  enum ljp_unwind_result result =
      range ? step_in(view, range, regs->r[LJP_RIP], regs, &landed)
            : step_fresh(view, regs->r[LJP_RIP], regs, &landed,
                         LJP_UNWIND_NO_MODULE);
  if (!result && !regs->exact && !landed &&
      !could_return_to(view, regs->r[LJP_RIP])) {
    *regs = before;
    result = LJP_UNWIND_BAD_RETURN;
  }
  return result;
}

enum ljp_unwind_result ljp_unwind_step(const struct ljp_unwind_view *view,
                                       struct ljp_regs *regs)
{
  const uint32_t needed = 1u << LJP_RIP | 1u << LJP_RSP;
  enum ljp_unwind_result result;
  bool landed;
  if (LJP_UNLIKELY((regs->known & needed) != needed))
    return LJP_UNWIND_UNKNOWN_REG;
  /* A call may be a function's last instruction: look before its return. */
  uint64_t pc = regs->r[LJP_RIP] - !regs->exact;
  const struct ljp_unwind_range *range = find_range(view, pc, regs->module);
  if (LJP_UNLIKELY(regs->exact))
    result = step_exact(view, range, regs);
  else if (LJP_LIKELY(range != NULL))
    result = step_in(view, range, pc, regs, &landed);
  else
    result = step_fresh(view, pc, regs, &landed, LJP_UNWIND_NO_MODULE);
  if (LJP_UNLIKELY(result == LJP_UNWIND_NO_MODULE ||
                   result == LJP_UNWIND_NO_CFI ||
                   result == LJP_UNWIND_NO_RULE) &&
      step_signal_return(regs))
    return LJP_UNWIND_STEPPED;
  return result;
}
