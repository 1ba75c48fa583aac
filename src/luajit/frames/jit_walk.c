/*
** The guest walk through compiled code: which trace an address lies in, the
** functions that were inlined there, and the frames below the trace. Also the
** stubs through which C calls Lua back.
**
** Inlined frames come from the marks of the trace (traces.h); where there is
** none, from the snapshot before the address, and they say so.
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

#include "src/luajit/vm/guest_priv.h"
#include "src/luajit/frames/frames.h"
#include "src/luajit/frames/jit_snap.h"
#include "src/luajit/traces/traces.h"
#include "src/base/saferead.h"

enum { MAX_MCODE_AREAS = 4096, CALLBACK_PAGE = 4096 };

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

/* -- Inside of a trace -------------------------------------------------------
 */

/* Where in which trace an address lies, and how well that is known. */
struct place {
  struct ljp_trace trace;
  struct ljp_snapshot snap;
  enum ljp_exact exact;
  uint32_t chain, line; /* exact: by a mark */
  uint32_t offset;      /* in the trace's code */
  bool linked;          /* the trace is left, its frames lie on the Lua stack */
};

/* The trace that runs, if the VM's state tells. */
LJP_SIGSAFE static bool running_trace(uint64_t g, const struct ljp_vm *vm,
                                      uint32_t number, struct ljp_trace *trace)
{
  uint64_t table, object, code;
  uint32_t count;
  uint64_t J = g + GG_G2J;
  return ljp_load32(J + offsetof(jit_State, sizetrace), &count) &&
         number - 1 < count - 1 &&
         ljp_load(J + offsetof(jit_State, trace), &table) &&
         ljp_load(table + number * sizeof(GCRef), &object) && object &&
         ljp_load(object + offsetof(GCtrace, mcode), &code) &&
         ljp_trace_find(vm, code, trace) &&
         (uint64_t)(uintptr_t)trace->object == object;
}

/* The number of the exit whose stub an instruction belongs to. lj_asm_x86.h
** makes groups of push imm8; jmp ... for the low byte, at their end a push for
** the high one. */
LJP_SIGSAFE static bool exit_number(uint64_t J, uint64_t rip, uint64_t sp,
                                    uint32_t *number)
{
  enum { STUBS = 32, LAST = 126, AFTER = 128, END = 133 };
  for (uint32_t i = 0; i < LJ_MAX_EXITSTUBGR; i++) {
    uint64_t group, low;
    if (!ljp_load(J + offsetof(jit_State, exitstubgroup) + i * 8, &group) ||
        !group)
      break;
    uint64_t at = rip - group;
    if (at >= END)
      continue;
    if (at < LAST) {
      *number = i * STUBS + (uint32_t)at / 4;
      return true;
    }
    if (!ljp_load(sp + (at >= AFTER ? 8 : 0), &low))
      return false;
    *number = (i * STUBS >> 8) << 8 | (uint32_t)(low & 0xff);
    return true;
  }
  return false;
}

LJP_SIGSAFE static bool goes_on(uint8_t link_type)
{
  return link_type == LJ_TRLINK_ROOT || link_type == LJ_TRLINK_TAILREC ||
         link_type == LJ_TRLINK_UPREC || link_type == LJ_TRLINK_DOWNREC;
}

/* The mark of what is executed next. */
LJP_SIGSAFE static bool next_mark(struct place *place)
{
  return ljp_trace_mark(&place->trace, place->offset, &place->chain,
                        &place->line);
}

/* The mark of what the time went into. An interrupt waits for the instruction
** that is being executed and leaves the thread at the next one: after a
** division that took 20 cycles, not at it. Code of a trace is straight, so the
** one before is the one that was executed, but where a loop goes back to. */
LJP_SIGSAFE static bool find_mark(struct place *place, bool interrupted)
{
  uint32_t spent = place->offset;
  if (interrupted && spent)
    spent = spent == place->snap.loop ? place->snap.jump : spent - 1;
  return ljp_trace_mark(&place->trace, spent, &place->chain, &place->line) ||
         next_mark(place);
}

LJP_SIGSAFE static bool place_in_trace(struct place *place, uint64_t rip,
                                       bool exact)
{
  struct ljp_trace *trace = &place->trace;
  place->exact = LJP_EXACT_SNAPSHOT;
  place->offset = (uint32_t)(rip - trace->code);
  bool snapped = ljp_snap_at((uint64_t)(uintptr_t)trace->object, place->offset,
                             &place->snap);
  /* The last instructions of a trace that goes on in another one: jit_base is
  ** the other one's already, if that is another. */
  enum { OWN_SLOT = 2 };
  place->linked = snapped && exact && goes_on(trace->link_type) &&
                  place->offset >= place->snap.jump &&
                  place->snap.baseslot != OWN_SLOT;
  if (place->linked || !find_mark(place, exact))
    return snapped;
  place->exact = LJP_EXACT_EXACT;
  return true;
}

/* A frame that a mark tells of. */
LJP_SIGSAFE static uint64_t frame_of(uint32_t function, unsigned flags,
                                     uint32_t line)
{
  return function & LJP_CHAIN_BUILTIN
             ? ljp_frame(LJP_FRAME_BUILTIN, flags,
                         function & ~LJP_CHAIN_BUILTIN)
             : ljp_frame_lua(LJP_FRAME_LUA_INLINED, LJP_EXACT_EXACT | flags,
                             function, line);
}

/* Append the inlined frames by marks; *line becomes that in the frame at BASE.
** Nothing is appended if another function is there than should be. A function
** that a tail call put in its place becomes *instead. */
LJP_SIGSAFE static bool marked(const struct place *place,
                               const struct ljp_function *at_base,
                               struct ljp_stack *stack, uint32_t *line,
                               uint32_t *instead)
{
  struct ljp_chain chain, outer;
  uint32_t number = place->chain, mark = stack->count, depth = 0;
  if (!ljp_trace_chain(&place->trace, number, &outer))
    return false;
  while (outer.caller)
    if (depth++ > LJ_MAX_JSLOTS ||
        !ljp_trace_chain(&place->trace, outer.caller, &outer))
      return false;
  uint32_t there = at_base->ffid == FF_LUA ? at_base->ref
                                           : LJP_CHAIN_BUILTIN | at_base->ffid;
  /* 0: without a record, and so not to be told from others. Where a trace ends,
  ** it puts the function in place. */
  if (!there || (there != outer.function && there != outer.at_base))
    return false;
  *instead = there == outer.function ? 0 : outer.function;
  for (*line = place->line;; *line = chain.line, number = chain.caller) {
    if (!ljp_trace_chain(&place->trace, number, &chain)) {
      stack->count = mark;
      *instead = 0;
      return false;
    }
    if (!chain.caller)
      return true;
    if (!ljp_stack_add(stack, frame_of(chain.function, 0, *line)))
      return true;
  }
}

/* The frames of a place in a trace, whose BASE is at->base; at becomes where
** those on the Lua stack below it begin. False: the stack ends here. */
LJP_SIGSAFE static bool place_frames(struct place *place, struct ljp_start *at,
                                     struct ljp_stack *stack,
                                     struct ljp_function *fn, bool *known)
{
  uint64_t slot, link;
  if (!ljp_load(at->base - 2 * sizeof(TValue), &slot) ||
      !ljp_load(at->base - sizeof(TValue), &link)) {
    stack->cut = LJP_CUT_BAD_READ;
    return false;
  }
  uint32_t line = 0, instead = 0;
  uint64_t pc = at->pc;
  *known = ljp_read_function(slot, fn);
  uint32_t mark = stack->count;
  /* Behind the instruction that sets another BASE, only the next one's mark is
  ** of a frame that is there. */
  if (*known && place->exact == LJP_EXACT_EXACT &&
      !marked(place, fn, stack, &line, &instead) &&
      !(next_mark(place) && marked(place, fn, stack, &line, &instead))) {
    place->exact = LJP_EXACT_ROOT;
  } else if (place->exact == LJP_EXACT_SNAPSHOT && place->linked) {
    pc = place->snap.pc;
  } else if (place->exact == LJP_EXACT_SNAPSHOT && place->trace.id &&
             !ljp_snap_inlined(&place->snap, stack, &pc)) {
    stack->count = mark;
    pc = 0;
    place->exact = LJP_EXACT_ROOT;
  }
  if (stack->cut)
    return false;
  if (instead) {
    if (!ljp_stack_add(stack, frame_of(instead, LJP_FRAME_TAIL, line)))
      return false;
  } else if (*known && fn->ffid == FF_LUA &&
             place->exact != LJP_EXACT_SNAPSHOT) {
    if (!ljp_stack_add(stack, ljp_frame_lua(LJP_FRAME_LUA_INLINED, place->exact,
                                            fn->ref, line)))
      return false;
  } else if (*known && !ljp_emit_inlined(stack, fn, pc)) {
    return false;
  }
  /* What the frames so far are compiled into. */
  if (place->trace.id &&
      !ljp_stack_add(stack,
                     ljp_frame(LJP_FRAME_TRACE, place->exact, place->trace.id)))
    return false;
  if ((link & FRAME_TYPEP) == FRAME_VARG)
    at->base -= link & ~(uint64_t)FRAME_TYPEP; /* the same one again */
  at->pc = 0;
  at->skip_top = true;
  return true;
}

/* The frames of a place in a trace, and those on the Lua stack below it. */
LJP_SIGSAFE static bool walk_place(struct ljp_guest *guest,
                                   const struct ljp_thread *thread,
                                   struct place *place, struct ljp_start at,
                                   struct ljp_stack *stack)
{
  struct ljp_function fn;
  bool known;
  if (!ljp_at_bottom(thread, at.base) &&
      !place_frames(place, &at, stack, &fn, &known))
    return false;
  return ljp_walk_segment(guest, thread, at, stack);
}

/* Where the allocator is called again and again, the trace is the same. */
void ljp_site_compiled(const struct ljp_guest_heap *heap,
                       const struct ljp_guest_regs *regs,
                       struct ljp_guest_site *site)
{
  const global_State *g = (const global_State *)(uintptr_t)heap->g;
  struct place place = {.exact = LJP_EXACT_ROOT};
  struct ljp_start at = {.base = (uint64_t)(uintptr_t)mref(g->jit_base, void)};
  struct ljp_thread thread;
  struct ljp_function fn;
  uint64_t frames[LJP_SITE_FRAMES];
  struct ljp_stack stack = {.frames = frames, .limit = LJP_SITE_FRAMES};
  uint64_t rip = regs->rip - 1;
  bool known;
  if (!at.base || !ljp_guest_thread(&thread, gcrefu(g->cur_L)) ||
      thread.g != heap->g || ljp_at_bottom(&thread, at.base) ||
      !ljp_trace_find(thread.vm, rip, &place.trace))
    return;
  if (!place_in_trace(&place, rip, false))
    place.exact = LJP_EXACT_ROOT;
  if (!place_frames(&place, &at, &stack, &fn, &known) || !known ||
      fn.ffid != FF_LUA || !fn.ref)
    return;
  for (uint32_t i = 0; i < stack.count; i++)
    site->frame[i] = frames[stack.count - 1 - i];
  site->count = stack.count;
  site->code = fn.proto + sizeof(GCproto);
  site->kind = LJP_SITE_TRACE;
}

bool ljp_start_compiled(const struct ljp_guest_heap *heap,
                        const struct ljp_guest_site *site,
                        const struct ljp_guest_regs *regs,
                        struct ljp_guest_start *start)
{
  const global_State *g = (const global_State *)(uintptr_t)heap->g;
  const lua_State *L = &gcref(g->cur_L)->th;
  const uint64_t *frame = mref(g->jit_base, const uint64_t);
  start->L = (uint64_t)(uintptr_t)L;
  start->cframe = (uint64_t)(uintptr_t)cframe_raw(L->cframe);
  if (!frame || G(L) != g || start->cframe < regs->sp ||
      frame <= (const uint64_t *)tvref(L->stack) + 1 + LJ_FR2 ||
      !ljp_slot_runs(frame[-2], site->code))
    return false;
  start->base = (uint64_t)(uintptr_t)frame;
  if ((frame[-1] & FRAME_TYPEP) == FRAME_VARG)
    start->base -= frame[-1] & ~(uint64_t)FRAME_TYPEP;
  start->pc = 0;
  start->skip = true;
  return true;
}

bool ljp_walk_exit(struct ljp_guest *guest, const struct ljp_thread *thread,
                   struct ljp_start at, bool on_trace, struct ljp_stack *stack)
{
  struct place place = {.exact = LJP_EXACT_SNAPSHOT};
  uint64_t g = thread->g, J = g + GG_G2J, code;
  uint32_t state, number;
  if (on_trace && ljp_load32(g + offsetof(global_State, vmstate), &state)) {
    place.exact = LJP_EXACT_ROOT;
    if ((int32_t)state > 0) {
      running_trace(g, thread->vm, state, &place.trace);
    } else if (ljp_safe_copy(&code,
                             (const void *)(uintptr_t)at.regs->r[LJP_RIP],
                             3) == 3 &&
               (code & 0xffffff) != 0x8e8941 && (code & 0xffffff) != 0x868941 &&
               ljp_load32(J + offsetof(jit_State, parent), &state) &&
               ljp_load32(J + offsetof(jit_State, exitno), &number) &&
               running_trace(g, thread->vm, state, &place.trace) &&
               ljp_snap_number((uint64_t)(uintptr_t)place.trace.object, number,
                               &place.snap)) {
      /* Not at the two instructions that note parent and exit. */
      place.exact = LJP_EXACT_SNAPSHOT;
    }
  }
  return walk_place(guest, thread, &place, at, stack);
}

LJP_SIGSAFE static enum ljp_guest_result step_trace(struct ljp_guest *guest,
                                                    uint64_t g,
                                                    struct ljp_regs *regs,
                                                    struct ljp_stack *stack)
{
  struct ljp_thread thread;
  struct place place = {.exact = LJP_EXACT_ROOT};
  uint64_t L, base, rip = regs->r[LJP_RIP] - !regs->exact;
  bool nested = (guest->L && guest->g == g) ||
                (guest->left_count && ljp_guest_come_back(guest, 0, g, stack));
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

  if (nested)
    base = guest->base;
  else if (!ljp_load(g + offsetof(global_State, jit_base), &base) || !base) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (ljp_trace_find(thread.vm, rip, &place.trace)) {
    if (!place_in_trace(&place, rip, regs->exact))
      place.exact = LJP_EXACT_ROOT;
  } else {
    uint32_t number, state;
    if (ljp_load32(g + offsetof(global_State, vmstate), &state) &&
        running_trace(g, thread.vm, state, &place.trace) &&
        exit_number(g + GG_G2J, rip, regs->r[LJP_RSP], &number) &&
        ljp_snap_number((uint64_t)(uintptr_t)place.trace.object, number,
                        &place.snap))
      place.exact = LJP_EXACT_SNAPSHOT;
  }
  uint64_t cframe = ljp_cframe_above(L, regs->r[LJP_RSP]);
  thread.notes = regs->notes;
  if (!walk_place(
          guest, &thread, &place,
          (struct ljp_start){
              .base = base, .cframe = cframe, .regs = regs, .compiled = true},
          stack))
    return LJP_GUEST_STOPPED;
  if (!cframe) {
    stack->cut = LJP_CUT_BAD_FRAME;
    return LJP_GUEST_STOPPED;
  }
  return ljp_leave_compiled(regs, cframe, stack) ? LJP_GUEST_STEPPED
                                                 : LJP_GUEST_STOPPED;
}

/* -- Callbacks ------------------------------------------------------------------
 */

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
  if (g && (ljp_trace_area(ljp_vm_of(g), rip) || in_mcode(g + GG_G2J, rip)))
    return step_trace(guest, g, regs, stack);
  if (regs->exact) {
    /* No register says whose callback this is going to be. */
    for (g = ljp_vm_first(); g; g = ljp_vm_next(g))
      if (step_callback(g, regs))
        return LJP_GUEST_STEPPED;
  }
  return LJP_GUEST_FOREIGN;
}
