/*
** The registers of one frame while a stack is walked. Shared by the host
** unwinder (profilers/unwind/unwind.h) and the guest walk (src/luajit/frames.h), which
** take turns at changing them.
*/
#ifndef LJP_REGS_H
#define LJP_REGS_H

#include <stdbool.h>
#include <stdint.h>

/* Registers by their DWARF numbers for x86-64. */
enum ljp_reg {
  LJP_RAX,
  LJP_RDX,
  LJP_RCX,
  LJP_RBX,
  LJP_RSI,
  LJP_RDI,
  LJP_RBP,
  LJP_RSP,
  LJP_R8,
  LJP_R9,
  LJP_R10,
  LJP_R11,
  LJP_R12,
  LJP_R13,
  LJP_R14,
  LJP_R15,
  LJP_RIP,
  LJP_REGS
};

/* What a function has to hand back unchanged to its caller. */
#define LJP_REGS_CALLEE_SAVED                                                  \
  (1u << LJP_RBX | 1u << LJP_RBP | 1u << LJP_R12 | 1u << LJP_R13 |             \
   1u << LJP_R14 | 1u << LJP_R15)
#define LJP_REGS_ALL ((1u << LJP_REGS) - 1)

struct ljp_memo;

/* One frame's registers. Who replaces some of them (a walk that passes through
** VM frames) sets their bits in known, sets exact, and leaves module alone. */
struct ljp_regs {
  uint64_t r[LJP_REGS];
  uint32_t known;  /* bit i: r[i] holds this frame's value */
  uint32_t module; /* hint: where the last step found its code; 0 at first */
  bool exact;      /* rip is an instruction about to run (interrupted there),
                      not the return address of a call */
  struct ljp_memo *notes; /* of what is read, or NULL; stays the same */
};

#endif
