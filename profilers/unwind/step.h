/*
** The parts of a step: what step.c calls to get from a frame to its caller when
** there is no compiled rule.
**
** Private to profilers/unwind. Safety: everything here is LJP_SIGSAFE.
*/
#ifndef LJP_UNWIND_STEP_H
#define LJP_UNWIND_STEP_H

#include "profilers/unwind/cfi.h"
#include "profilers/unwind/map.h"

/* -- cfi_find.c: the CFI for one address, copied from the object ----------- */

enum { LJP_FDE_MAX = 1024, LJP_CIE_MAX = 192 };
struct ljp_cfi_found {
  struct ljp_cfi_cie cie;
  struct ljp_cfi_machine machine; /* its row is the one for the address */
  struct ljp_cfi_fde fde;
  uint8_t cie_bytes[LJP_CIE_MAX];
  uint8_t fde_bytes[LJP_FDE_MAX];
};
_Static_assert(sizeof(struct ljp_cfi_found) <= sizeof(struct ljp_unwind_room),
               "it is there");
LJP_SIGSAFE enum ljp_unwind_result
ljp_unwind_find_cfi(const struct ljp_unwind_object *object, uint64_t pc,
                    struct ljp_cfi_found *found);

/* -- cfi_apply.c: a row of CFI applied to a frame -------------------------- */

LJP_SIGSAFE enum ljp_unwind_result
ljp_unwind_apply_cfi(const struct ljp_cfi_row *row,
                     const struct ljp_cfi_cie *cie,
                     const struct ljp_cfi_span *fde, struct ljp_regs *regs);

/* Aligned, above rsp, and not too far above. */
enum { LJP_UNWIND_MAX_FRAME_BYTES = 64 << 20 };
LJP_SIGSAFE static inline bool ljp_unwind_cfa_ok(uint64_t cfa, uint64_t rsp)
{
  return !(cfa & 7) && cfa - rsp - 1 < LJP_UNWIND_MAX_FRAME_BYTES;
}

/* -- crt.c: functions without CFI, known by their bytes -------------------- */

LJP_SIGSAFE bool ljp_unwind_step_crt(uint64_t pc, struct ljp_regs *regs);
/* The target of the call that the word at the top of the stack follows, if the
** target is just before pc; else 0. If the target has no CFI either, it is the
** beginning of the function, whose stack is as it was when it was called. The
** vDSO has such a function for random numbers, which may leave no trace of them
** on the stack. */
LJP_SIGSAFE uint64_t ljp_unwind_called(uint64_t pc,
                                       const struct ljp_regs *regs);
/* The step out of such a function. */
LJP_SIGSAFE bool ljp_unwind_step_called(struct ljp_regs *regs);

/* -- eh_return.c: frames that are about to return to a landing pad --------- */

/* Does the row belong to a function that returns by eh_return? */
LJP_SIGSAFE bool ljp_unwind_is_eh_return(const struct ljp_cfi_row *row);
/* caller was stepped to from frame, a frame of such a function. If caller is
** the frame that catches the error, sets its rsp right. */
LJP_SIGSAFE void ljp_unwind_fix_landing(const struct ljp_regs *frame,
                                        struct ljp_regs *caller);
/* If the last instructions of such a function are next, runs them on the
** registers, up to and through the jump. */
LJP_SIGSAFE bool ljp_unwind_run_eh_return(const struct ljp_cfi_row *row,
                                          struct ljp_regs *regs);

/* -- frame_pointer.c: rbp, where it is not known --------------------------- */

/* Finds rbp of the frame in the function that begins at start, whose CFA is rbp
** + 16, and makes it known. False: it cannot be told. */
LJP_SIGSAFE bool ljp_unwind_find_frame_pointer(uint64_t start, uint64_t pc,
                                               struct ljp_regs *regs);

/* -- run_code.c: functions without CFI, by following their code ------------ */

/* Steps from the code of a loaded object. otherwise: the result if the code
** does not tell the caller. */
LJP_SIGSAFE enum ljp_unwind_result
ljp_unwind_run_code(struct ljp_regs *regs, enum ljp_unwind_result otherwise);

/* -- code.c: what the machine code at an address says ---------------------- */

/* Do the bytes before a return address end in a call? */
LJP_SIGSAFE bool ljp_unwind_follows_call(uint64_t address);
/* The same for a system call. */
LJP_SIGSAFE bool ljp_unwind_follows_syscall(uint64_t address);
/* Steps from an exact frame that is at its return instruction. */
LJP_SIGSAFE bool ljp_unwind_step_at_return(struct ljp_regs *regs);
/* Is this the code that libc gives signal handlers to return to? */
LJP_SIGSAFE bool ljp_unwind_is_signal_return(uint64_t pc);
/* Is this where the function of a boost::context fiber would return to? */
LJP_SIGSAFE bool ljp_unwind_is_fiber_root(uint64_t address);

/* -- context.c: registers in a ucontext ------------------------------------ */

/* Steps from a signal return without CFI to the interrupted frame. */
LJP_SIGSAFE bool ljp_unwind_step_signal_return(struct ljp_regs *regs);

#endif
