/*
** The step: from a frame to its caller.
**
** The common case is a compiled rule: one search in the object's table (none if the
** return address was there lately), one load for the return address and one for each
** saved register. All other cases
** go through the object's own CFI, and an interrupted frame gets a second look.
** Invariant: a step that fails leaves the registers as they were.
** Safety: LJP_SIGSAFE throughout; no allocation, no lock, no system call.
*/
#include "profilers/unwind/step.h"

#include <string.h>

#include "profilers/unwind/table.h"
#include "src/base/assert.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

/* Code without CFI is libc's own with musl; with glibc it is a fiber library's
** or the like, which does with rsp what no compiler does. */
#ifdef __GLIBC__
enum { STEP_RUNS_CODE = 0 };
#else
enum { STEP_RUNS_CODE = 1 };
#endif

_Alignas(sizeof(uint64_t) << LJP_UNWIND_RECENT_BITS) /* within one page */
    _Atomic uint64_t ljp_unwind_recent[1 << LJP_UNWIND_RECENT_BITS];

/* relaxed: the writer's next round would find out anyway. */
static void step_want(_Atomic bool *flag)
{
  if (!atomic_load_explicit(flag, memory_order_relaxed))
    atomic_store_explicit(flag, true, memory_order_relaxed);
}

static enum ljp_unwind_result step_by_rule(const struct ljp_unwind_rule *rule,
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
  /* The root of a stack may have a zero for its return address. */
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
  ljp_memo_note(regs->notes, cfa - 8, rip);
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

static struct ljp_cfi_found *step_room(const struct ljp_regs *regs)
{
  ljp_assert(regs->room);
  return (struct ljp_cfi_found *)(void *)regs->room;
}

/* A planted return address was put on the stack by something other than a call.
** It is the first instruction of a function, so the byte before it belongs to
** other code. There are two: a signal trampoline, whose CFI is right, and the
** root of a fiber, where the stack ends (makecontext plants a function whose
** CFI claims a caller). NO_RULE: the address was not planted. */
static enum ljp_unwind_result
step_find_planted(const struct ljp_unwind_object *object, uint64_t rip,
                  struct ljp_cfi_found *found)
{
  enum ljp_unwind_result result = LJP_UNWIND_NO_RULE;
  if (!ljp_unwind_follows_call(rip) &&
      !ljp_unwind_find_cfi(object, rip, found) && found->fde.start == rip)
    result = found->cie.signal ? LJP_UNWIND_STEPPED : LJP_UNWIND_END;
  return result;
}

/* Does the row belong to a function that keeps rbp as frame pointer? */
static bool step_has_pointer(const struct ljp_cfi_row *row)
{
  return row->cfa_how == LJP_HOW_REGISTER && row->cfa_reg == LJP_RBP &&
         row->cfa_arg == 16 && row->how[LJP_RBP] == LJP_HOW_OFFSET &&
         row->arg[LJP_RBP] == -16;
}

/* Steps out of a function that has no CFI, if it is one of those that are known
** or has not touched the stack. */
static enum ljp_unwind_result
step_without_cfi(const struct ljp_unwind_object *object, uint64_t pc,
                 struct ljp_regs *regs)
{
  struct ljp_cfi_found *found = step_room(regs);
  if (ljp_unwind_step_crt(pc, regs))
    return LJP_UNWIND_STEPPED;
  uint64_t start = ljp_unwind_called(pc, regs);
  return start >= object->lo && start && found &&
                 ljp_unwind_find_cfi(object, start, found) ==
                     LJP_UNWIND_NO_RULE &&
                 ljp_unwind_step_called(regs)
             ? LJP_UNWIND_STEPPED
             : LJP_UNWIND_NO_RULE;
}

/* Steps by the object's own CFI. *landed: the caller is a frame that catches an
** error, so no call comes before its program counter. */
static enum ljp_unwind_result
step_by_cfi(const struct ljp_unwind_object *object, uint64_t pc,
            struct ljp_regs *regs, bool *landed)
{
  struct ljp_cfi_found *found = step_room(regs);
  uint64_t rip = regs->r[LJP_RIP];
  if (LJP_UNLIKELY(!found))
    return LJP_UNWIND_NO_CFI;
  enum ljp_unwind_result result = ljp_unwind_find_cfi(object, pc, found);
  if (pc != rip &&
      (result == LJP_UNWIND_NO_RULE || (!result && found->fde.end == rip))) {
    bool called = !result;
    result = step_find_planted(object, rip, found);
    if (result == LJP_UNWIND_NO_RULE && called)
      result = ljp_unwind_find_cfi(object, pc, found);
  }
  if (result == LJP_UNWIND_NO_RULE)
    return step_without_cfi(object, pc, regs);
  if (result)
    return result;
  const struct ljp_cfi_row *row = &found->machine.row;
  uint64_t rbp = regs->r[LJP_RBP];
  bool lands = ljp_unwind_is_eh_return(row);
  bool partly = regs->known != LJP_REGS_ALL && regs->exact;
  /* Whether its CFI is right here can be told with all registers only. */
  if (LJP_UNLIKELY(partly && lands))
    return LJP_UNWIND_UNKNOWN_REG;
  bool found_rbp = LJP_UNLIKELY(!(regs->known >> LJP_RBP & 1)) &&
                   step_has_pointer(row) &&
                   (!partly || ljp_unwind_follows_syscall(rip)) &&
                   ljp_unwind_find_frame_pointer(found->fde.start, pc, regs);
  struct ljp_regs frame = *regs;
  if (LJP_UNLIKELY(lands && regs->exact) &&
      ljp_unwind_run_eh_return(row, regs)) {
    *landed = true;
    return LJP_UNWIND_STEPPED;
  }
  result = ljp_unwind_apply_cfi(row, &found->cie, &found->fde.span, regs);
  if (LJP_UNLIKELY(lands && !result))
    ljp_unwind_fix_landing(&frame, regs);
  if (LJP_UNLIKELY(found_rbp && result != LJP_UNWIND_STEPPED)) {
    regs->r[LJP_RBP] = rbp;
    regs->known &= ~(1u << LJP_RBP);
  }
  return result;
}

/* Steps from code that is in no object of the map, or in one that has been
** replaced. otherwise: the result if glibc does not know the code either. */
static enum ljp_unwind_result step_fresh(const struct ljp_unwind_map *map,
                                         uint64_t pc, struct ljp_regs *regs,
                                         bool *landed,
                                         enum ljp_unwind_result otherwise)
{
  struct ljp_unwind_object object;
  step_want(map->wants_poll);
  ljp_memo_blur(regs->notes);
  if (!ljp_unwind_find_fresh(map->finder, pc, &object))
    return otherwise;
  return step_by_cfi(&object, pc, regs, landed);
}

/* NULL: where another row begins at the return address, the address may be planted.
** Few return addresses are like that. Interrupted code (exact) hardly ever comes
** again. */
static const struct ljp_unwind_rule *
step_find_rule(const struct ljp_unwind_table *table, uint32_t offset,
               bool exact)
{
  uint16_t number;
  if (exact)
    return &table->rules[table->rule[ljp_unwind_find_row(table, offset)]];
  if (LJP_UNLIKELY(!ljp_unwind_recall(table, offset, &number))) {
    uint32_t row = ljp_unwind_find_row(table, offset);
    if (row + 1 < table->rows && table->pc[row + 1] == offset + 1)
      return NULL;
    number = table->rule[row];
    ljp_unwind_remember(table, offset, number);
  }
  ljp_assert(number == table->rule[ljp_unwind_find_row(table, offset)]);
  return &table->rules[number];
}

/* Steps from code in one of the map's ranges. */
static enum ljp_unwind_result step_in(const struct ljp_unwind_map *map,
                                      const struct ljp_unwind_range *range,
                                      uint64_t pc, struct ljp_regs *regs,
                                      bool *landed)
{
  struct ljp_unwind_object *object = range->object;
  uint32_t hint = (uint32_t)(range - map->ranges) + 1;
  uint64_t word;
  /* acquire: pairs with the release after the header has been read. */
  if (LJP_UNLIKELY(
          !atomic_load_explicit(&object->ready, memory_order_acquire))) {
    step_want(&object->wanted);
    return step_fresh(map, pc, regs, landed, LJP_UNWIND_NO_CFI);
  }
  if (!object->header) /* it has none, or had vanished when it was read */
    return step_fresh(map, pc, regs, landed, LJP_UNWIND_NO_CFI);
  /* Another object may have been mapped here since the map was made. */
  if (hint != regs->module) {
    uint64_t at = ljp_unwind_witness_address(object->header);
    if (!ljp_safe_load((const void *)(uintptr_t)at, &word) ||
        word != object->witness)
      return step_fresh(map, pc, regs, landed, LJP_UNWIND_STALE);
    regs->module = hint;
    ljp_memo_note_always(regs->notes, at, word);
  }
  /* acquire: pairs with the publication of the finished table. */
  const struct ljp_unwind_table *table =
      atomic_load_explicit(&object->table, memory_order_acquire);
  if (LJP_UNLIKELY(!table)) {
    if (!atomic_load_explicit(&object->failed, memory_order_relaxed)) {
      step_want(&object->wanted);
      step_want(map->wants_poll);
    }
    return step_by_cfi(object, pc, regs, landed);
  }
  ljp_assert(pc - object->lo <= UINT32_MAX); /* or it had no table */
  const struct ljp_unwind_rule *rule =
      step_find_rule(table, (uint32_t)(pc - object->lo), regs->exact);
  if (LJP_UNLIKELY(!rule))
    return step_by_cfi(object, pc, regs, landed);
  switch ((enum ljp_rule_kind)rule->kind) {
  case LJP_RULE_REGULAR:
    if (LJP_UNLIKELY(rule->base == LJP_RBP && !(regs->known >> LJP_RBP & 1)))
      return step_by_cfi(object, pc, regs, landed);
    return step_by_rule(rule, regs);
  case LJP_RULE_INTERPRET:
    return step_by_cfi(object, pc, regs, landed);
  case LJP_RULE_END:
    return LJP_UNWIND_END;
  case LJP_RULE_NONE:
    break;
  }
  return step_without_cfi(object, pc, regs);
}

/* -- Interrupted frames ---------------------------------------------------- */

/* CFI is exact where calls return, because exceptions rely on it. At other
** instructions it is only as good as its author cared to make it. So an
** interrupted frame is treated with care: at a return instruction the code is
** believed rather than the CFI, and the caller that is found must look like a
** caller. */

/* Could this be a return address? It follows a call, or it is the first
** instruction of a function that is planted: a trampoline or a root. */
static bool step_could_return(const struct ljp_unwind_map *map,
                              const struct ljp_regs *regs)
{
  struct ljp_cfi_found *found = step_room(regs);
  uint64_t rip = regs->r[LJP_RIP];
  if (ljp_unwind_follows_call(rip) || ljp_unwind_is_signal_return(rip) ||
      ljp_unwind_is_fiber_root(rip))
    return true;
  const struct ljp_unwind_range *range = ljp_unwind_find_range(map, rip, 0);
  const struct ljp_unwind_object *object = range ? range->object : NULL;
  struct ljp_unwind_object fresh;
  if ((!object ||
       !atomic_load_explicit(&object->ready, memory_order_acquire)) &&
      ljp_unwind_find_fresh(map->finder, rip, &fresh))
    object = &fresh;
  return found && object && object->header &&
         !ljp_unwind_find_cfi(object, rip, found) &&
         (found->cie.signal || found->fde.start == rip);
}

static enum ljp_unwind_result step_exact(const struct ljp_unwind_map *map,
                                         const struct ljp_unwind_range *range,
                                         struct ljp_regs *regs)
{
  struct ljp_regs before = *regs;
  bool landed = false;
  ljp_memo_blur(regs->notes);
  if (ljp_unwind_step_at_return(regs))
    return LJP_UNWIND_STEPPED;
  enum ljp_unwind_result result =
      range ? step_in(map, range, regs->r[LJP_RIP], regs, &landed)
            : step_fresh(map, regs->r[LJP_RIP], regs, &landed,
                         LJP_UNWIND_NO_MODULE);
  if (!result && !regs->exact && !landed && !step_could_return(map, regs)) {
    *regs = before;
    result = LJP_UNWIND_BAD_RETURN;
  }
  return result;
}

/* The hint may change in a step that fails; what it says stays true. */
static inline bool step_left_alone(const struct ljp_regs *before,
                                   const struct ljp_regs *now)
{
  return !memcmp(before->r, now->r, sizeof now->r) &&
         before->known == now->known && before->exact == now->exact &&
         before->notes == now->notes;
}

enum ljp_unwind_result ljp_unwind_step(const struct ljp_unwind_map *map,
                                       struct ljp_regs *regs)
{
  const struct ljp_regs before = *regs;
  const uint32_t needed = 1u << LJP_RIP | 1u << LJP_RSP;
  enum ljp_unwind_result result;
  bool landed;
  if (LJP_UNLIKELY((regs->known & needed) != needed))
    return LJP_UNWIND_UNKNOWN_REG;
  /* A call may be its function's last instruction, so a return address is
  ** looked up one byte earlier. */
  uint64_t pc = regs->r[LJP_RIP] - !regs->exact;
  const struct ljp_unwind_range *range =
      ljp_unwind_find_range(map, pc, regs->module);
  if (LJP_UNLIKELY(regs->exact))
    result = step_exact(map, range, regs);
  else if (LJP_LIKELY(range != NULL))
    result = step_in(map, range, pc, regs, &landed);
  else
    result = step_fresh(map, pc, regs, &landed, LJP_UNWIND_NO_MODULE);
  if (LJP_UNLIKELY(result == LJP_UNWIND_NO_MODULE ||
                   result == LJP_UNWIND_NO_CFI ||
                   result == LJP_UNWIND_NO_RULE)) {
    if (ljp_unwind_step_signal_return(regs))
      return LJP_UNWIND_STEPPED;
    if (!regs->exact && ljp_unwind_is_fiber_root(regs->r[LJP_RIP]))
      return LJP_UNWIND_END;
    if (STEP_RUNS_CODE && range)
      result = ljp_unwind_run_code(regs, result);
  }
  ljp_assert(result == LJP_UNWIND_STEPPED || step_left_alone(&before, regs));
  return result;
}
