/*
** Instructions: where one ends, and what it does to rsp and to control flow.
**
** Private to profilers/unwind. Safety: LJP_SIGSAFE throughout.
*/
#ifndef LJP_UNWIND_INSTRUCTION_H
#define LJP_UNWIND_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/sigsafe.h"

enum ljp_insn_kind {
  LJP_INSN_OTHER,
  LJP_INSN_PUSH,
  LJP_INSN_POP,     /* into reg */
  LJP_INSN_POPF,    /* into no register */
  LJP_INSN_ADJUST,  /* rsp += value */
  LJP_INSN_FROM,    /* rsp = reg + value */
  LJP_INSN_LOST,    /* rsp = something else */
  LJP_INSN_POINTER, /* reg = rsp + value */
  LJP_INSN_LEAVE,
  LJP_INSN_CALL,   /* of target; 0: not known */
  LJP_INSN_JUMP,   /* to target; 0: not known */
  LJP_INSN_BRANCH, /* to target, or on */
  LJP_INSN_RETURN, /* and pops value more bytes */
  LJP_INSN_STOP    /* nothing is executed behind it */
};

struct ljp_insn {
  enum ljp_insn_kind kind;
  uint32_t size; /* 0: not known */
  uint32_t reg;  /* as in DWARF */
  int64_t value;
  uint64_t target;
};

/* The most bytes that an instruction has. */
enum { LJP_INSN_BYTES = 15 };

/* code: LJP_INSN_BYTES bytes that stand at an address. */
LJP_SIGSAFE void ljp_insn_read(struct ljp_insn *insn, const uint8_t *code,
                               uint64_t address);

#endif
