/*
** The guest walk's building blocks, shared by its interpreter half (guest.c)
** and its compiled half (jit_walk.c). All LJP_SIGSAFE.
*/
#ifndef LJP_FRAMES_PRIV_H
#define LJP_FRAMES_PRIV_H

#include "src/luajit/spine.h"
#include "src/luajit/vm/guest_priv.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

LJP_SIGSAFE static inline bool ljp_load(uint64_t address, uint64_t *out)
{
  return ljp_safe_load((const void *)(uintptr_t)address, out);
}

/* Reads that the rest of a walk depends on, once a point of src/base/memo.h has been
** passed, are noted. */
LJP_SIGSAFE static inline bool ljp_load_noted(uint64_t address, uint64_t *out,
                                              struct ljp_memo *notes)
{
  if (!ljp_load(address, out))
    return false;
  ljp_memo_note(notes, address, *out, 0);
  return true;
}

/* The 32 bits at a 4-byte aligned address. */
LJP_SIGSAFE static inline bool ljp_load32(uint64_t address, uint32_t *out)
{
  uint64_t word;
  if (!ljp_load(address & ~UINT64_C(7), &word))
    return false;
  *out = (uint32_t)(word >> (address & 4) * 8);
  return true;
}

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

/* Does regs hold the frame's value of this register? */
#define KNOWN(regs, reg) ((regs)->known >> (reg)&1u)

/* A function object, checked. */
struct ljp_function {
  uint64_t object;
  uint64_t proto; /* Lua functions only, as the next two */
  uint32_t sizebc;
  uint32_t ref;
  uint8_t ffid; /* FF_LUA, FF_C, or a builtin's */
};

/* From the value of a stack slot. */
LJP_SIGSAFE bool ljp_read_function(uint64_t slot_value,
                                   struct ljp_function *fn);
LJP_SIGSAFE bool ljp_read_function_noted(uint64_t slot_value,
                                         struct ljp_function *fn,
                                         struct ljp_memo *notes);

/* Is a function in that slot, and does it run that code? On the VM's own thread,
** of a slot that is in use. */
static inline bool ljp_slot_runs(uint64_t slot, uint64_t code)
{
  return (int64_t)slot >> 47 == (int64_t)(int32_t)LJ_TFUNC &&
         mrefu(((const GCfunc *)(uintptr_t)(slot & LJ_GCVMASK))->l.pc) == code;
}

/* Append a frame at a position (0: unknown). False if the stack is full. */
LJP_SIGSAFE bool ljp_emit(struct ljp_stack *stack,
                          const struct ljp_function *fn, uint64_t pc);
LJP_SIGSAFE bool ljp_emit_inlined(struct ljp_stack *stack,
                                  const struct ljp_function *fn, uint64_t pc);

/* The source line of the instruction whose address has this low half, in the
** prototype at that address, if it still is the one of that reference. */
LJP_SIGSAFE bool ljp_proto_line(uint64_t proto, uint32_t ref, uint32_t pc,
                                uint32_t *line);

/* Below this BASE no frame is anybody's. */
LJP_SIGSAFE bool ljp_at_bottom(const struct ljp_thread *thread, uint64_t base);

struct ljp_link {
  uint64_t base; /* of the frame below */
  uint64_t pc;   /* its position, 0 if the link does not say */
  bool boundary; /* the frame above was called from C */
  bool same;     /* the frame below is the same one: varargs doubled it */
  bool lua;      /* the frame below is of a Lua function, and this one: */
  struct ljp_function fn;
  uint32_t note; /* the first of the notes about it */
};

/* Follow the link value of the frame at base. False if it is not believed. */
LJP_SIGSAFE bool ljp_follow(const struct ljp_thread *thread, uint64_t base,
                            uint64_t value, struct ljp_link *link);

/* Where a segment of frames begins. */
struct ljp_start {
  uint64_t base;
  uint64_t pc;   /* position in the top frame, 0: not known */
  uint64_t link; /* to use in place of the top frame's own */
  bool use_link;
  bool skip_top; /* the top frame is half made or half gone: not shown */
  /* The C frame to leave by afterwards, and how: by ljp_leave() or by
  ** ljp_leave_compiled() with these registers. 0: nothing can be remembered
  ** from inside of this segment. Once the segment has been entered, all that
  ** is read is noted. */
  uint64_t cframe;
  const struct ljp_regs *regs;
  bool compiled;
};

/* The walk has come to a C boundary of the thread; its frames below begin at
** base. */
LJP_SIGSAFE void ljp_guest_come_to(struct ljp_guest *guest,
                                   const struct ljp_thread *thread,
                                   uint64_t base);

/* Goes on with a Lua thread (L 0: with the last one of that VM) that was left.
** False: there is none. */
LJP_SIGSAFE bool ljp_guest_come_back(struct ljp_guest *guest, uint64_t L,
                                     uint64_t g, const struct ljp_stack *stack);

/* Append the frames from there down to the next C boundary, and leave
** guest->base at the frame below it. False: the stack ends here, or the rest of
** it was known (src/base/memo.h). */
LJP_SIGSAFE bool ljp_walk_segment(struct ljp_guest *guest,
                                  const struct ljp_thread *thread,
                                  struct ljp_start at, struct ljp_stack *stack);

/* The same for compiled code at a trace exit. on_trace: BASE is still that of
** the trace, whose inlined frames come first; at.regs are needed. */
LJP_SIGSAFE bool ljp_walk_exit(struct ljp_guest *guest,
                               const struct ljp_thread *thread,
                               struct ljp_start at, bool on_trace,
                               struct ljp_stack *stack);

/* The compiled half of ljp_guest_site() and ljp_guest_start_at(). */
void ljp_site_compiled(const struct ljp_guest_heap *heap,
                       const struct ljp_guest_regs *regs,
                       struct ljp_guest_site *site);
bool ljp_start_compiled(const struct ljp_guest_heap *heap,
                        const struct ljp_guest_site *site,
                        const struct ljp_guest_regs *regs,
                        struct ljp_guest_start *start);

LJP_SIGSAFE void ljp_guest_note(struct ljp_guest *guest,
                                const struct ljp_thread *thread,
                                enum ljp_vmstate state);

/* The newest C frame of L that lies above sp; those below belong to calls
** that were already passed. 0 if there is none. */
LJP_SIGSAFE uint64_t ljp_cframe_above(uint64_t L, uint64_t sp);

/* Is this C frame still linked, or has an error already unwound it? */
LJP_SIGSAFE bool ljp_cframe_linked(uint64_t L, uint64_t wanted,
                                   struct ljp_memo *notes);

/* Give the registers back to the C function that entered the VM; from the
** interpreter, and from compiled code, which saves two registers more. */
LJP_SIGSAFE bool ljp_leave(struct ljp_regs *regs, uint64_t cframe,
                           struct ljp_stack *stack);
LJP_SIGSAFE bool ljp_leave_compiled(struct ljp_regs *regs, uint64_t cframe,
                                    struct ljp_stack *stack);

#endif
