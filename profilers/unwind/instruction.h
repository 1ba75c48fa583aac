/*
** Instructions: where one ends, what it does to rsp and to control flow, and how
** it prepares a jump through a table.
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
  LJP_INSN_PUSH,    /* of reg, or of something that is in no preserved one */
  LJP_INSN_POP,     /* into reg */
  LJP_INSN_POPF,    /* into no register */
  LJP_INSN_ADJUST,  /* rsp += value */
  LJP_INSN_FROM,    /* rsp = reg + value */
  LJP_INSN_LOST,    /* rsp = something else */
  LJP_INSN_POINTER, /* reg = rsp + value */
  LJP_INSN_LEAVE,
  LJP_INSN_CALL,   /* of target; 0: not known */
  LJP_INSN_JUMP,   /* to target */
  LJP_INSN_BRANCH, /* to target, or on */
  LJP_INSN_RETURN, /* and pops value more bytes */
  LJP_INSN_STOP,   /* nothing is executed behind it */

  LJP_INSN_ADDRESS,    /* reg = target */
  LJP_INSN_COPY,       /* reg = from */
  LJP_INSN_LOAD,       /* reg = the word at from + value; 16: elsewhere */
  LJP_INSN_ENTRY,      /* reg = the int32_t at from + 4 * another register */
  LJP_INSN_SUM,        /* reg += from */
  LJP_INSN_JUMP_REG,   /* to where reg points */
  LJP_INSN_JUMP_WORD,  /* to where a word in memory points */
  LJP_INSN_JUMP_TABLE, /* to one of the addresses in a table at target */
};

struct ljp_insn {
  enum ljp_insn_kind kind;
  uint32_t size;      /* 0: not known */
  uint32_t reg, from; /* as in DWARF */
  uint32_t writes;    /* registers that may change, by DWARF's numbers */
  int64_t value;
  uint64_t target;
};

/* The most bytes that an instruction has. */
enum { LJP_INSN_BYTES = 15 };

/* code: LJP_INSN_BYTES bytes that stand at an address. */
LJP_SIGSAFE void ljp_insn_read(struct ljp_insn *insn, const uint8_t *code,
                               uint64_t address);

#endif
