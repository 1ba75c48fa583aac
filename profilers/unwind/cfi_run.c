/*
** Instructions of call frame information: a machine that runs those of a CIE,
** then those of an FDE row by row. Vector registers and the like are ignored;
** whatever the machine does not understand makes its input bad.
** Safety: LJP_SIGSAFE throughout.
*/
#include <string.h>

#include "profilers/unwind/cfi.h"
#include "profilers/unwind/dwarf.h"
#include "src/base/assert.h"

/* Each instruction takes its operands from machine->in, and reports nonsense by
** setting in.bad. */

static void cfi_set_rule(struct ljp_cfi_machine *m, uint64_t reg, uint8_t how,
                         int64_t arg)
{
  if (reg >= LJP_REGS)
    return;
  if (arg != (int32_t)arg)
    m->in.bad = true;
  m->row.how[reg] = how;
  m->row.arg[reg] = (int32_t)arg;
  m->row.in_cie[reg] = m->running_cie;
}

static void cfi_set_cfa(struct ljp_cfi_machine *m, uint64_t reg, int64_t offset)
{
  if (reg >= LJP_RIP || offset != (int32_t)offset)
    m->in.bad = true;
  m->row.cfa_how = LJP_HOW_REGISTER;
  m->row.cfa_reg = (uint8_t)reg;
  m->row.cfa_arg = (int32_t)offset;
}

static int64_t cfi_scaled(const struct ljp_cfi_machine *m, int64_t factored)
{
  /* Wraps on hostile input, harmlessly: set_rule and set_cfa refuse whatever
  ** does not fit into 32 bits. */
  return (int64_t)((uint64_t)factored * (uint64_t)m->cie->data_align);
}

/* Skips an expression; returns the offset of its length in the span. */
static int64_t cfi_skip_block(struct ljp_cfi_machine *m)
{
  int64_t at = m->in.at - m->span.bytes;
  uint64_t length = ljp_bytes_uleb(&m->in);
  if (m->in.bad || length > (uint64_t)(m->in.end - m->in.at)) {
    m->in.bad = true;
    return 0;
  }
  m->in.at += length;
  return at;
}

static void cfi_restore_rule(struct ljp_cfi_machine *m, uint64_t reg)
{
  const struct ljp_cfi_row *initial = &m->cie->initial;
  if (reg >= LJP_REGS || m->running_cie)
    return;
  m->row.how[reg] = initial->how[reg];
  m->row.arg[reg] = initial->arg[reg];
  m->row.in_cie[reg] = initial->in_cie[reg];
}

static void cfi_restore_state(struct ljp_cfi_machine *m)
{
  if (m->depth == 0)
    m->in.bad = true;
  else
    m->row = m->remembered[--m->depth];
}

static void cfi_remember_state(struct ljp_cfi_machine *m)
{
  if (m->depth == LJP_CFI_REMEMBERED)
    m->in.bad = true;
  else
    m->remembered[m->depth++] = m->row;
}

/* Instructions that define the CFA. */
static void cfi_define_cfa(struct ljp_cfi_machine *m, unsigned op)
{
  struct ljp_bytes *in = &m->in;
  uint64_t reg;
  switch (op) {
  case DW_CFA_def_cfa:
    reg = ljp_bytes_uleb(in);
    cfi_set_cfa(m, reg, (int64_t)ljp_bytes_uleb(in));
    return;
  case DW_CFA_def_cfa_sf:
    reg = ljp_bytes_uleb(in);
    cfi_set_cfa(m, reg, cfi_scaled(m, ljp_bytes_sleb(in)));
    return;
  case DW_CFA_def_cfa_expression:
    m->row.cfa_how = LJP_HOW_EXPR;
    m->row.cfa_arg = (int32_t)cfi_skip_block(m);
    m->row.in_cie[LJP_REGS] = m->running_cie;
    return;
  }
  /* The others change half of a definition by register and offset. */
  if (m->row.cfa_how != LJP_HOW_REGISTER)
    in->bad = true;
  if (op == DW_CFA_def_cfa_register)
    cfi_set_cfa(m, ljp_bytes_uleb(in), m->row.cfa_arg);
  else if (op == DW_CFA_def_cfa_offset)
    cfi_set_cfa(m, m->row.cfa_reg, (int64_t)ljp_bytes_uleb(in));
  else /* DW_CFA_def_cfa_offset_sf */
    cfi_set_cfa(m, m->row.cfa_reg, cfi_scaled(m, ljp_bytes_sleb(in)));
}

/* Instructions that say how one register is found. */
static void cfi_define_register(struct ljp_cfi_machine *m, unsigned op)
{
  struct ljp_bytes *in = &m->in;
  uint64_t reg = ljp_bytes_uleb(in), other;
  switch (op) {
  case DW_CFA_offset_extended:
    cfi_set_rule(m, reg, LJP_HOW_OFFSET,
                 cfi_scaled(m, (int64_t)ljp_bytes_uleb(in)));
    break;
  case DW_CFA_restore_extended:
    cfi_restore_rule(m, reg);
    break;
  case DW_CFA_undefined:
    cfi_set_rule(m, reg, LJP_HOW_UNDEFINED, 0);
    break;
  case DW_CFA_same_value:
    cfi_set_rule(m, reg, LJP_HOW_SAME, 0);
    break;
  case DW_CFA_register:
    other = ljp_bytes_uleb(in);
    if (reg < LJP_REGS && other >= LJP_REGS)
      in->bad = true;
    else
      cfi_set_rule(m, reg, LJP_HOW_REGISTER, (int64_t)other);
    break;
  case DW_CFA_expression:
    cfi_set_rule(m, reg, LJP_HOW_EXPR, cfi_skip_block(m));
    break;
  case DW_CFA_offset_extended_sf:
    cfi_set_rule(m, reg, LJP_HOW_OFFSET, cfi_scaled(m, ljp_bytes_sleb(in)));
    break;
  case DW_CFA_val_offset:
    cfi_set_rule(m, reg, LJP_HOW_VAL_OFFSET,
                 cfi_scaled(m, (int64_t)ljp_bytes_uleb(in)));
    break;
  case DW_CFA_val_offset_sf:
    cfi_set_rule(m, reg, LJP_HOW_VAL_OFFSET, cfi_scaled(m, ljp_bytes_sleb(in)));
    break;
  case DW_CFA_val_expression:
    cfi_set_rule(m, reg, LJP_HOW_VAL_EXPR, cfi_skip_block(m));
    break;
  case DW_CFA_GNU_negative_offset_extended:
    cfi_set_rule(m, reg, LJP_HOW_OFFSET,
                 cfi_scaled(m, (int64_t)(0 - ljp_bytes_uleb(in))));
    break;
  default: /* DW_CFA_set_loc has no use in .eh_frame on this target */
    in->bad = true;
  }
}

/* An instruction without an operand in its first byte. True: an advance, by
** *delta code units. */
static bool cfi_run_extended(struct ljp_cfi_machine *m, unsigned op,
                             uint64_t *delta)
{
  switch (op) {
  case DW_CFA_nop:
    return false;
  case DW_CFA_advance_loc1:
  case DW_CFA_advance_loc2:
  case DW_CFA_advance_loc4:
    *delta = ljp_bytes_fixed(&m->in, 1u << (op - DW_CFA_advance_loc1));
    return true;
  case DW_CFA_remember_state:
    cfi_remember_state(m);
    return false;
  case DW_CFA_restore_state:
    cfi_restore_state(m);
    return false;
  case DW_CFA_def_cfa:
  case DW_CFA_def_cfa_register:
  case DW_CFA_def_cfa_offset:
  case DW_CFA_def_cfa_expression:
  case DW_CFA_def_cfa_sf:
  case DW_CFA_def_cfa_offset_sf:
    cfi_define_cfa(m, op);
    return false;
  case DW_CFA_GNU_args_size: /* for landing pads only */
    ljp_bytes_uleb(&m->in);
    return false;
  default:
    cfi_define_register(m, op);
    return false;
  }
}

/* Runs to the next advance (true) or to the end (false, or bad). */
static bool cfi_run(struct ljp_cfi_machine *m, uint64_t *delta)
{
  while (m->in.at < m->in.end && !m->in.bad) {
    uint8_t op = *m->in.at++;
    uint8_t operand = op & DW_CFA_operand_mask;
    switch (op & ~DW_CFA_operand_mask) {
    case DW_CFA_advance_loc:
      *delta = operand;
      return true;
    case DW_CFA_offset:
      cfi_set_rule(m, operand, LJP_HOW_OFFSET,
                   cfi_scaled(m, (int64_t)ljp_bytes_uleb(&m->in)));
      break;
    case DW_CFA_restore:
      cfi_restore_rule(m, operand);
      break;
    default:
      if (cfi_run_extended(m, op, delta))
        return !m->in.bad;
    }
  }
  return false;
}

void ljp_cfi_start(struct ljp_cfi_machine *machine,
                   const struct ljp_cfi_cie *cie, const struct ljp_cfi_fde *fde)
{
  machine->cie = cie;
  machine->span = fde->span;
  machine->in = (struct ljp_bytes){fde->span.bytes + fde->ops,
                                   fde->span.bytes + fde->span.size, false};
  machine->running_cie = false;
  machine->next = fde->start;
  machine->depth = 0;
  machine->row = cie->initial;
}

bool ljp_cfi_next(struct ljp_cfi_machine *machine,
                  const struct ljp_cfi_fde *fde)
{
  uint64_t delta = 0;
  if (cfi_run(machine, &delta)) {
    uint64_t size = fde->end - machine->next;
    /* An advance to the end or beyond it leaves this row as the last. */
    if (machine->cie->code_align &&
        delta <
            (size + machine->cie->code_align - 1) / machine->cie->code_align)
      machine->next += delta * machine->cie->code_align;
    else
      machine->next = fde->end;
  } else
    machine->next = fde->end;
  ljp_assert(machine->next <= fde->end);
  ljp_assert(machine->depth <= LJP_CFI_REMEMBERED);
  return !machine->in.bad;
}

bool ljp_cfi_run_cie(struct ljp_cfi_machine *machine, struct ljp_cfi_cie *cie,
                     const uint8_t *ops)
{
  uint64_t delta;
  machine->cie = cie;
  machine->span = cie->span;
  machine->in =
      (struct ljp_bytes){ops, cie->span.bytes + cie->span.size, false};
  machine->running_cie = true;
  machine->next = 0;
  machine->depth = 0;
  memset(&machine->row, 0, sizeof machine->row);
  /* A CIE has no code to advance over. */
  if (cfi_run(machine, &delta) || machine->in.bad)
    return false;
  cie->initial = machine->row;
  return true;
}
