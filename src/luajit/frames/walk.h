/*
** The building blocks of the guest walk: Lua threads, links, segments, C
** frames. The interpreter's half (interpreter.c), the half for compiled code
** (compiled.c) and the spine use them. All LJP_SIGSAFE but ljp_slot_runs().
** Include LuaJIT's headers first.
*/
#ifndef LJP_WALK_FRAMES_H
#define LJP_WALK_FRAMES_H

#include "src/luajit/frames.h"
#include "src/luajit/functions/read.h"
#include "src/luajit/vm/load.h"
#include "src/luajit/vm/vms.h"

/* Does regs hold the frame's value of this register? */
#define KNOWN(regs, reg) ((regs)->known >> (reg)&1u)

/* -- Lua threads (thread.c) ------------------------------------------------ */

/* A Lua thread, checked. */
struct ljp_thread {
  uint64_t L, g;
  const struct ljp_vm *vm;
  uint64_t low, high;     /* its stack */
  struct ljp_memo *notes; /* of what is read of it, or NULL */
};

/* False: L is no Lua thread of a known VM. */
LJP_SIGSAFE bool ljp_thread_read(struct ljp_thread *thread, uint64_t L);
LJP_SIGSAFE bool ljp_thread_read_noted(struct ljp_thread *thread, uint64_t L,
                                       struct ljp_memo *notes);

enum { LJP_BOTTOM_SLOTS = 1 + LJ_FR2 }; /* below them there is no frame */

/* Is this the BASE of a frame that can exist? */
LJP_SIGSAFE static inline bool
ljp_thread_has_base(const struct ljp_thread *thread, uint64_t base)
{
  return !(base & 7) &&
         base >= thread->low + LJP_BOTTOM_SLOTS * sizeof(TValue) &&
         base <= thread->high;
}

/* Below this BASE the thread has no frame. */
LJP_SIGSAFE static inline bool
ljp_thread_at_bottom(const struct ljp_thread *thread, uint64_t base)
{
  return base <= thread->low + LJP_BOTTOM_SLOTS * sizeof(TValue);
}

/* The walk has reached a C boundary of the thread; the frames below it begin at
** base. */
LJP_SIGSAFE void ljp_guest_enter(struct ljp_guest *guest,
                                 const struct ljp_thread *thread,
                                 uint64_t base);

/* Continues with a Lua thread that the walk has left (L 0: the last one of that
** VM). False: there is none. */
LJP_SIGSAFE bool ljp_guest_return(struct ljp_guest *guest, uint64_t L,
                                  uint64_t g, const struct ljp_stack *stack);

/* Notes the VM and its state, unless they are known from an earlier frame. */
LJP_SIGSAFE void ljp_guest_note(struct ljp_guest *guest,
                                const struct ljp_thread *thread,
                                enum ljp_vmstate state);

/* -- Frames (segment.c) ---------------------------------------------------- */

/* Does that slot hold a function, and does the function run that code? On the
** VM's own thread, for a slot that is in use. */
static inline bool ljp_slot_runs(uint64_t slot, uint64_t code)
{
  return (int64_t)slot >> 47 == (int64_t)(int32_t)LJ_TFUNC &&
         mrefu(((const GCfunc *)(uintptr_t)(slot & LJ_GCVMASK))->l.pc) == code;
}

/* Appends a frame at a position (0: unknown). False if the stack is full. */
LJP_SIGSAFE bool ljp_emit(struct ljp_stack *stack,
                          const struct ljp_function *fn, uint64_t pc);
LJP_SIGSAFE bool ljp_emit_inlined(struct ljp_stack *stack,
                                  const struct ljp_function *fn, uint64_t pc);

struct ljp_link {
  uint64_t base; /* of the frame below */
  uint64_t pc;   /* its position, 0 if the link does not say */
  bool boundary; /* the frame above was called from C */
  bool same;     /* the frame below is the same one: varargs doubled it */
  bool lua;      /* fn and note are set: the frame below is a Lua function's */
  struct ljp_function fn;
  uint32_t note; /* the first of the notes about fn */
};

/* Follows the link value of the frame at base. False if a check fails. */
LJP_SIGSAFE bool ljp_link_follow(const struct ljp_thread *thread, uint64_t base,
                                 uint64_t value, struct ljp_link *link);

/* Where a segment of frames begins. */
struct ljp_start {
  uint64_t base;
  uint64_t pc;   /* position in the top frame, 0: not known */
  uint64_t link; /* to use in place of the top frame's own */
  bool use_link;
  bool skip_top; /* the top frame is half made or half gone: not shown */
  /* The C frame through which the walk leaves the segment afterwards, by
  ** ljp_cframe_leave() or ljp_cframe_leave_compiled() with these registers. 0:
  ** no point inside this segment can be remembered. Once the segment has been
  ** entered, all reads are noted. */
  uint64_t cframe;
  const struct ljp_regs *regs;
  bool compiled;
};

/* Appends the frames from there down to the next C boundary, and sets
** guest->base to the frame below it. False: the stack ends here, or the memo
** knew the rest of it (src/base/memo.h). */
LJP_SIGSAFE bool ljp_walk_segment(struct ljp_guest *guest,
                                  const struct ljp_thread *thread,
                                  struct ljp_start at, struct ljp_stack *stack);

/* The same for compiled code at a trace exit. on_trace: BASE is still that of
** the trace, whose inlined frames come first; at.regs are needed.
** (compiled.c) */
LJP_SIGSAFE bool ljp_walk_exit(struct ljp_guest *guest,
                               const struct ljp_thread *thread,
                               struct ljp_start at, bool on_trace,
                               struct ljp_stack *stack);

/* What vmmap.lua says about the instruction at an offset into the VM's assembly
** (asm/vmmap.h). False: the offset lies in lj_vm_ffi_call(). (interpreter.c) */
LJP_SIGSAFE bool ljp_vmmap_word(uint32_t offset, uint32_t *word);

/* A routine of the VM that behaves like a C function. It saves rbp, rbx, r15
** and r14 and makes its frame; pushed is the number of bytes it has pushed so
** far. False: the stack ends here. (interpreter.c) */
LJP_SIGSAFE bool ljp_vm_step_host(struct ljp_regs *regs, uint32_t pushed,
                                  struct ljp_stack *stack);

/* Steps from an offset into lj_vm_ffi_call(). (ffi_call.c) */
LJP_SIGSAFE enum ljp_guest_result ljp_vm_step_ffi_call(struct ljp_regs *regs,
                                                       uint32_t offset,
                                                       struct ljp_stack *stack);

/* -- C frames (cframe.c) --------------------------------------------------- */

/* Words of a C frame, from its lowest address. */
enum {
  LJP_CF_NRES = 1,
  LJP_CF_L = 2,
  LJP_CF_PC = 3,
  LJP_CF_PREV = 4,
  LJP_CF_R14 = 5,
  LJP_CF_R15 = 6,
  LJP_CF_RBX = 7,
  LJP_CF_RBP = 8,
  LJP_CF_RET = 9,
  LJP_CF_WORDS = 10
};

/* The innermost C frame of L that lies above sp, or 0. C frames below sp belong
** to calls that the walk has passed. */
LJP_SIGSAFE uint64_t ljp_cframe_above(uint64_t L, uint64_t sp);

/* Is this C frame still linked, or has an error already unwound it? */
LJP_SIGSAFE bool ljp_cframe_linked(uint64_t L, uint64_t wanted,
                                   struct ljp_memo *notes);

/* Restore the registers of the C function that entered the VM: from the
** interpreter, and from compiled code, which saves two more registers. */
LJP_SIGSAFE bool ljp_cframe_leave(struct ljp_regs *regs, uint64_t cframe,
                                  struct ljp_stack *stack);
LJP_SIGSAFE bool ljp_cframe_leave_compiled(struct ljp_regs *regs,
                                           uint64_t cframe,
                                           struct ljp_stack *stack);

#endif
