/*
** The registers of one frame during a walk. The host unwinder
** (profilers/unwind/unwind.h) and the guest walk (src/luajit) change them in
** turn.
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

/* The registers that a function must preserve for its caller. */
#define LJP_REGS_CALLEE_SAVED                                                  \
  (1u << LJP_RBX | 1u << LJP_RBP | 1u << LJP_R12 | 1u << LJP_R13 |             \
   1u << LJP_R14 | 1u << LJP_R15)
#define LJP_REGS_ALL ((1u << LJP_REGS) - 1)

struct ljp_memo;
struct ljp_unwind_room;

/* One frame's registers. Code that replaces some of them (a walk that passes
** through VM frames) sets their bits in known, sets exact, and leaves module
** unchanged. */
struct ljp_regs {
  uint64_t r[LJP_REGS];
  uint32_t known;  /* Bit i: r[i] holds this frame's value. */
  uint32_t module; /* Hint: where the last step found its code; 0 at first. */
  bool exact;      /* rip is an instruction about to run (interrupted there),
                      not the return address of a call. */
  struct ljp_memo *notes; /* Where reads are noted, or NULL; never changes. */
  struct ljp_unwind_room *room; /* For steps of the host unwinder; never
                                   changes. */
};

#endif
