/*
** Call frame information (CFI): from bytes to entries (CIEs and FDEs), and
** from those to rows and values. The words are those of the DWARF standard.
**
** The input is a copy of the object's bytes in a buffer of ours, and the
** address at which the object has them (pointers in CFI are relative to their
** own address). The input is not trusted: every read is bounded by its entry,
** every loop by its input, every depth by an array. Nothing outside the buffer
** is touched.
**
** Files: cfi_read.c, cfi_run.c and cfi_expr.c.
** Private to profilers/unwind. Safety: everything here is LJP_SIGSAFE.
*/
#ifndef LJP_UNWIND_CFI_H
#define LJP_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profilers/unwind/cfi_bytes.h"
#include "profilers/unwind/unwind.h"

/* -- cfi_read.c: entries --------------------------------------------------- */

/* A stretch of CFI: bytes[i] is what the object has at address + i. */
struct ljp_cfi_span {
  const uint8_t *bytes;
  size_t size;
  uint64_t address;
};

/* How a register of the caller is found. */
enum ljp_cfi_how {
  LJP_HOW_DEFAULT,    /* not mentioned: kept if callee-saved, else lost */
  LJP_HOW_SAME,       /* kept */
  LJP_HOW_UNDEFINED,  /* lost; for rip: end of the stack */
  LJP_HOW_OFFSET,     /* in memory at CFA + offset */
  LJP_HOW_VAL_OFFSET, /* is CFA + offset */
  LJP_HOW_REGISTER,   /* in another register of this frame */
  LJP_HOW_EXPR,       /* in memory at the expression's value */
  LJP_HOW_VAL_EXPR    /* is the expression's value */
};

/* The CFA and the registers for a stretch of code. arg is an offset, a
** register, or the offset of an expression (its length, then its bytes) in its
** span. */
struct ljp_cfi_row {
  uint8_t cfa_how; /* DEFAULT: none yet; REGISTER: register + offset; EXPR */
  uint8_t cfa_reg;
  uint8_t how[LJP_REGS];
  uint8_t in_cie[LJP_REGS + 1]; /* is the expression in the CIE? last: CFA */
  int32_t cfa_arg;
  int32_t arg[LJP_REGS];
};

struct ljp_cfi_cie {
  struct ljp_cfi_span span;
  uint64_t code_align;
  int64_t data_align;
  uint8_t pointer_encoding;
  bool augmented; /* FDEs have augmentation data */
  bool signal;    /* of a signal trampoline: the caller was interrupted */
  struct ljp_cfi_row initial;
};

struct ljp_cfi_fde {
  struct ljp_cfi_span span;
  uint64_t start, end; /* code addresses */
  uint32_t ops;        /* offset of the instructions in the span */
};

/* The head of an entry: its total size and, for an FDE, its CIE's address. For
** a CIE, *cie is 0. False at the terminator, or if malformed or cut. */
LJP_SIGSAFE bool ljp_cfi_head(const struct ljp_cfi_span *span, uint64_t *size,
                              uint64_t *cie);

/* span begins with the entry and may go on after it. scratch: for the
** instructions of the CIE. */
struct ljp_cfi_machine;
LJP_SIGSAFE bool ljp_cfi_read_cie(struct ljp_cfi_cie *cie,
                                  struct ljp_cfi_span span,
                                  struct ljp_cfi_machine *scratch);
LJP_SIGSAFE bool ljp_cfi_read_fde(struct ljp_cfi_fde *fde,
                                  const struct ljp_cfi_cie *cie,
                                  struct ljp_cfi_span span);

/* -- cfi_run.c: instructions ----------------------------------------------- */

enum { LJP_CFI_REMEMBERED = 8 };

/* Runs an FDE's instructions, one row at a time. */
struct ljp_cfi_machine {
  const struct ljp_cfi_cie *cie;
  struct ljp_cfi_span span;
  struct ljp_bytes in;
  bool running_cie;
  uint64_t next; /* where the row after this one begins */
  unsigned depth;
  struct ljp_cfi_row row; /* valid from the previous `next` up to `next` */
  struct ljp_cfi_row remembered[LJP_CFI_REMEMBERED];
};

LJP_SIGSAFE void ljp_cfi_start(struct ljp_cfi_machine *machine,
                               const struct ljp_cfi_cie *cie,
                               const struct ljp_cfi_fde *fde);

/* Advances to the next row; machine->next is then where the row ends (for the
** last row, the FDE's end). False if the instructions make no sense. */
LJP_SIGSAFE bool ljp_cfi_next(struct ljp_cfi_machine *machine,
                              const struct ljp_cfi_fde *fde);

/* Runs a CIE's instructions, which begin at ops, into cie->initial. False if
** they make no sense. */
LJP_SIGSAFE bool ljp_cfi_run_cie(struct ljp_cfi_machine *machine,
                                 struct ljp_cfi_cie *cie, const uint8_t *ops);

/* -- cfi_expr.c: expressions ----------------------------------------------- */

/* Evaluates the expression at offset `at` of the span over a frame's registers.
** With have_initial, the stack begins with initial (the CFA). */
LJP_SIGSAFE enum ljp_unwind_result
ljp_cfi_evaluate(const struct ljp_cfi_span *span, uint32_t at,
                 const struct ljp_regs *regs, bool have_initial,
                 uint64_t initial, uint64_t *out);

#endif
