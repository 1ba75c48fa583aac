/*
** The guest walk through compiled code: which trace an address lies in, the
** functions that were inlined there, and the frames below the trace. Also the
** stubs through which C calls Lua back.
**
** Inlined frames come from the snapshot before the address: its innermost
** position can be an earlier one than the true one, so they are marked so.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_dispatch.h"
#include "lj_ctype.h"
#include "lj_ccallback.h"

#include "src/luajit/guest_priv.h"
#include "src/luajit/guest_frames.h"
#include "src/saferead.h"

enum { MAX_MCODE_AREAS = 4096, CALLBACK_PAGE = 4096, MAX_INLINED = 256 };

/* -- Whose code is it? ------------------------------------------------------
 */

/* lj_mcode.c's header of an area: the next one, and this one's size. */
LJP_SIGSAFE static bool in_mcode(uint64_t J, uint64_t rip)
{
  uint64_t area, next, size;
  if (!ljp_load(J + offsetof(jit_State, mcarea), &area))
    return false;
  for (int i = 0; area && i < MAX_MCODE_AREAS; i++) {
    if (!ljp_load(area, &next) || !ljp_load(area + 8, &size))
      return false;
    if (rip - area < size)
      return true;
    area = next;
  }
  return false;
}

struct trace {
  uint64_t object;
  uint64_t mcode;
  uint32_t size;
  uint32_t number;
};

LJP_SIGSAFE static bool trace_at(uint64_t table, uint64_t number, uint64_t rip,
                                 struct trace *trace)
{
  uint64_t T;
  uint32_t size;
  if (!ljp_load(table + number * sizeof(GCRef), &T) || !T ||
      !ljp_load(T + offsetof(GCtrace, mcode), &trace->mcode) ||
      !ljp_load32(T + offsetof(GCtrace, szmcode), &size) ||
      rip - trace->mcode >= size)
    return false;
  trace->object = T;
  trace->size = size;
  trace->number = (uint32_t)number;
  return true;
}

LJP_SIGSAFE static bool find_trace(uint64_t g, uint64_t rip,
                                   struct trace *trace)
{
  uint64_t J = g + GG_G2J, table;
  uint32_t count, current;
  if (!ljp_load(J + offsetof(jit_State, trace), &table) ||
      !ljp_load32(J + offsetof(jit_State, sizetrace), &count) ||
      !ljp_load32(g + offsetof(global_State, vmstate), &current))
    return false;
  if (current - 1 < count - 1 && trace_at(table, current, rip, trace))
    return true;
  for (uint32_t i = 1; i < count; i++)
    if (trace_at(table, i, rip, trace))
      return true;
  return false;
}

/* -- Snapshots --------------------------------------------------------------
 */

struct snapshot {
  uint64_t map; /* of its entries */
  uint32_t entries;
  uint64_t pc;
  uint32_t baseslot;
};

_Static_assert(sizeof(SnapShot) == 12 && sizeof(SnapEntry) == 4,
               "another snapshot");

/* The last snapshot at or before an offset into the trace's code. */
LJP_SIGSAFE static bool find_snapshot(const struct trace *trace,
                                      uint32_t offset, struct snapshot *snap)
{
  uint64_t array, map;
  GCtrace head;
  if (ljp_safe_copy(&head, (const void *)(uintptr_t)trace->object,
                    sizeof head) != sizeof head)
    return false;
  array = (uint64_t)(uintptr_t)head.snap;
  map = (uint64_t)(uintptr_t)head.snapmap;
  uint32_t low = 0, high = head.nsnap;
  SnapShot shot;
  while (low < high) {
    uint32_t mid = (low + high) / 2;
    if (ljp_safe_copy(&shot,
                      (const void *)(uintptr_t)(array + mid * sizeof shot),
                      sizeof shot) != sizeof shot)
      return false;
    if (offset < shot.mcofs)
      high = mid;
    else
      low = mid + 1;
  }
  if (low == 0)
    return false;
  if (ljp_safe_copy(&shot,
                    (const void *)(uintptr_t)(array + (low - 1) * sizeof shot),
                    sizeof shot) != sizeof shot)
    return false;
  snap->map = map + (uint64_t)shot.mapofs * sizeof(SnapEntry);
  snap->entries = shot.nent;
  uint64_t pcbase;
  if (ljp_safe_copy(
          &pcbase,
          (const void *)(uintptr_t)(snap->map +
                                    snap->entries * sizeof(SnapEntry)),
          8) != 8)
    return false;
  snap->pc = pcbase >> 8;
  snap->baseslot = (uint32_t)(pcbase & 0xff) + 2;
  return true;
}

/* The constant that a snapshot entry refers to: a pointer for IR_KGC, a bit
** pattern for the others. */
LJP_SIGSAFE static bool constant(uint64_t ir, uint32_t ref, bool *is_object,
                                 uint64_t *value)
{
  uint64_t word;
  uint64_t at = ir + (uint64_t)ref * sizeof(IRIns);
  if (ref >= REF_BIAS || !ljp_load(at, &word))
    return false;
  uint8_t op = (uint8_t)(word >> 40);
  *is_object = op == IR_KGC;
  if (op != IR_KGC && op != IR_KNUM && op != IR_KINT64)
    return false;
  return ljp_load(at + sizeof(IRIns), value);
}

_Static_assert(offsetof(IRIns, o) == 5 && sizeof(IRIns) == 8,
               "another IR instruction");

/* Append the inlined frames of a snapshot, innermost first; *pc becomes the
** position in the frame below, which lies on the Lua stack. */
LJP_SIGSAFE static bool inlined(const struct trace *trace,
                                const struct snapshot *snap,
                                struct ljp_stack *stack, uint64_t *pc)
{
  uint64_t ir;
  if (!ljp_load(trace->object + offsetof(GCtrace, ir), &ir))
    return false;
  *pc = snap->pc;
  int32_t slot = (int32_t)snap->baseslot - 1; /* of the link */
  int32_t entry = (int32_t)snap->entries - 1;
  for (int depth = 0; slot > 1 && depth < MAX_INLINED; depth++) {
    uint64_t link = 0, object = 0, value;
    bool have_link = false, have_function = false, is_object;
    for (; entry >= 0; entry--) {
      uint32_t sn;
      if (!ljp_load32(snap->map + (uint32_t)entry * sizeof sn, &sn))
        return false;
      int32_t s = (int32_t)snap_slot(sn);
      if (s > slot)
        continue;
      if (s == slot) {
        if ((sn & (SNAP_FRAME | SNAP_CONT)) &&
            constant(ir, snap_ref(sn), &is_object, &value) && !is_object) {
          link = value;
          have_link = true;
        }
      } else {
        if (s == slot - 1 && constant(ir, snap_ref(sn), &is_object, &value) &&
            is_object) {
          object = value;
          have_function = true;
        }
        break;
      }
    }
    if (!have_link)
      return false;
    if ((link & FRAME_TYPEP) != FRAME_VARG) {
      struct ljp_function fn;
      if (have_function &&
          ljp_read_function((uint64_t)LJ_TFUNC << 47 | object, &fn)) {
        if (!ljp_emit_inlined(stack, &fn, *pc))
          return true;
      } else if (!ljp_stack_add(stack,
                                ljp_frame_lua(LJP_FRAME_LUA_INLINED,
                                              LJP_EXACT_SNAPSHOT, 0, 0))) {
        return true;
      }
      *pc = 0;
    }
    if ((link & FRAME_TYPE) == FRAME_LUA) {
      uint32_t ins;
      if (!ljp_load32(link - sizeof(BCIns), &ins))
        return false;
      *pc = link;
      slot -= 2 + (int32_t)bc_a(ins);
    } else {
      slot -= (int32_t)(link >> 3);
      if ((link & FRAME_TYPE) == FRAME_CONT)
        *pc = 0;
    }
  }
  return slot == 1;
}

/* -- The walk ---------------------------------------------------------------
 */

LJP_SIGSAFE static enum ljp_guest_result step_trace(struct ljp_guest *guest,
                                                    uint64_t g,
                                                    struct ljp_regs *regs,
                                                    struct ljp_stack *stack)
{
  struct ljp_thread thread;
  struct trace trace;
  uint64_t L;
  bool nested = guest->L && guest->g == g;
  if (nested)
    L = guest->L;
  else if (!ljp_load(g + offsetof(global_State, cur_L), &L))
    L = 0;
  if (!L || !ljp_guest_thread(&thread, L)) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (ljp_vm_resizing(thread.vm))
    return LJP_GUEST_DEFER;
  ljp_guest_note(guest, &thread, LJP_VMSTATE_TRACE);

  uint64_t rip = regs->r[LJP_RIP] - !regs->exact;
  uint64_t base, pc = 0;
  if (nested)
    base = guest->base;
  else if (!ljp_load(g + offsetof(global_State, jit_base), &base) || !base) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (find_trace(g, rip, &trace)) {
    struct snapshot snap;
    uint32_t mark = stack->count;
    if (!find_snapshot(&trace, (uint32_t)(rip - trace.mcode), &snap) ||
        !inlined(&trace, &snap, stack, &pc)) {
      /* Not understood: the frames on the Lua stack are still true. */
      stack->count = mark;
      pc = 0;
    }
    if (stack->cut)
      return LJP_GUEST_STOPPED;
  }
  uint64_t cframe = ljp_cframe_above(L, regs->r[LJP_RSP]);
  thread.notes = regs->notes;
  if (!ljp_walk_segment(guest, &thread,
                        (struct ljp_start){.base = base,
                                           .pc = pc,
                                           .cframe = cframe,
                                           .regs = regs,
                                           .compiled = true},
                        stack))
    return LJP_GUEST_STOPPED;
  if (!cframe) {
    stack->cut = LJP_CUT_BAD_FRAME;
    return LJP_GUEST_STOPPED;
  }
  return ljp_leave_compiled(regs, cframe, stack) ? LJP_GUEST_STEPPED
                                                 : LJP_GUEST_STOPPED;
}

/* A callback stub: it pushes rbp, then jumps to lj_vm_ffi_callback. Which of
** its instructions have pushed is told by the first byte: lj_ccallback.c
** emits mov al; jmp; push rbp | mov ah; mov rbp; jmp [rip]. */
LJP_SIGSAFE static bool step_callback(uint64_t g, struct ljp_regs *regs)
{
  uint64_t cts, page, code, value;
  uint64_t rip = regs->r[LJP_RIP], sp = regs->r[LJP_RSP];
  if (!ljp_load(g + offsetof(global_State, ctype_state), &cts) || !cts ||
      !ljp_load(cts + offsetof(CTState, cb) + offsetof(CCallback, mcode),
                &page) ||
      !page || rip - page >= CALLBACK_PAGE)
    return false;
  if (ljp_safe_copy(&code, (const void *)(uintptr_t)rip, 2) != 2)
    return false;
  bool pushed = (code & 0xff) == 0xb4 || (code & 0xffff) == 0xbd48 ||
                (code & 0xff) == 0xff;
  if (pushed) {
    if (!ljp_load(sp, &value))
      return false;
    regs->r[LJP_RBP] = value;
    regs->known |= 1u << LJP_RBP;
    sp += 8;
  }
  if (!ljp_load(sp, &value))
    return false;
  regs->r[LJP_RIP] = value;
  regs->r[LJP_RSP] = sp + 8;
  regs->exact = false;
  return true;
}

enum ljp_guest_result ljp_guest_step_jit(struct ljp_guest *guest,
                                         struct ljp_regs *regs,
                                         struct ljp_stack *stack)
{
  uint64_t rip = regs->r[LJP_RIP] - !regs->exact;
  uint64_t g = ljp_vm_from_dispatch(regs);
  if (g && in_mcode(g + GG_G2J, rip))
    return step_trace(guest, g, regs, stack);
  if (regs->exact) {
    /* No register says whose callback this is going to be. */
    for (g = ljp_vm_first(); g; g = ljp_vm_next(g))
      if (step_callback(g, regs))
        return LJP_GUEST_STEPPED;
  }
  return LJP_GUEST_FOREIGN;
}
