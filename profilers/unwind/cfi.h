/*
** Reading call frame information out of a buffer: CIE and FDE to rows.
**
** Input is a byte range in memory that is ours and the address at which the
** same bytes live in the object (pointers in CFI are relative to themselves).
** It is not trusted: every read is bounded by its record, every loop by its
** input, every depth by an array. Nothing outside the range is touched.
** Safety: everything here is LJP_SIGSAFE.
*/
#ifndef LJP_UNWIND_CFI_H
#define LJP_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profilers/unwind/unwind.h"

/* A bounded cursor. Past the end it yields zeros and stays bad. */
struct ljp_bytes {
  const uint8_t *at, *end;
  bool bad;
};

LJP_SIGSAFE uint64_t ljp_bytes_fixed(struct ljp_bytes *in, unsigned size);
LJP_SIGSAFE uint64_t ljp_bytes_uleb(struct ljp_bytes *in);
LJP_SIGSAFE int64_t ljp_bytes_sleb(struct ljp_bytes *in);

/* DW_EH_PE_*: format in the low four bits, base in the next three. */
enum {
  LJP_PE_ABSPTR = 0x00,
  LJP_PE_SDATA4 = 0x0b,
  LJP_PE_PCREL = 0x10,
  LJP_PE_DATAREL = 0x30,
  LJP_PE_OMIT = 0xff
};

/* An encoded pointer. address: where in->at lives in the object; data: what
** DATAREL is relative to. Indirect and other bases are bad. */
LJP_SIGSAFE uint64_t ljp_bytes_pointer(struct ljp_bytes *in, uint8_t encoding,
                                       uint64_t address, uint64_t data);

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

/* CFA and registers for a stretch of code. arg is an offset, a register, or
** where in its span the expression (a length, then the bytes) stands. */
struct ljp_cfi_row {
  uint8_t cfa_how; /* DEFAULT: none yet; REGISTER: reg + offset; EXPR */
  uint8_t cfa_reg;
  uint8_t how[LJP_REGS];
  uint8_t in_cie[LJP_REGS + 1]; /* expression stands in the CIE; last: CFA's */
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

/* The head of a record: its total size and, for an FDE, its CIE's address.
** A CIE has *cie = 0. False at the terminator, or if malformed or cut. */
LJP_SIGSAFE bool ljp_cfi_head(const struct ljp_cfi_span *span, uint64_t *size,
                              uint64_t *cie);

/* span starts at the record and is cut to it. */
LJP_SIGSAFE bool ljp_cfi_read_cie(struct ljp_cfi_cie *cie,
                                  struct ljp_cfi_span span);
LJP_SIGSAFE bool ljp_cfi_read_fde(struct ljp_cfi_fde *fde,
                                  const struct ljp_cfi_cie *cie,
                                  struct ljp_cfi_span span);

enum { LJP_CFI_REMEMBERED = 8 };

/* Runs an FDE's instructions, one row at a time. */
struct ljp_cfi_machine {
  const struct ljp_cfi_cie *cie;
  struct ljp_cfi_span span;
  struct ljp_bytes in;
  bool running_cie;
  uint64_t next; /* where the row after this one begins */
  unsigned depth;
  struct ljp_cfi_row row; /* what holds from the last `next` up to `next` */
  struct ljp_cfi_row remembered[LJP_CFI_REMEMBERED];
};

LJP_SIGSAFE void ljp_cfi_start(struct ljp_cfi_machine *machine,
                               const struct ljp_cfi_cie *cie,
                               const struct ljp_cfi_fde *fde);

/* Advances to the next row; machine->next is then where it stops holding (the
** FDE's end for the last). False if the instructions make no sense. */
LJP_SIGSAFE bool ljp_cfi_next(struct ljp_cfi_machine *machine,
                              const struct ljp_cfi_fde *fde);

/* Evaluates a DWARF expression over a frame's registers. initial: pushed
** first (the CFA) if have_initial. */
LJP_SIGSAFE enum ljp_unwind_result
ljp_cfi_evaluate(const struct ljp_cfi_span *span, uint32_t at,
                 const struct ljp_regs *regs, bool have_initial,
                 uint64_t initial, uint64_t *out);

#endif
