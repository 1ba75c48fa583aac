/*
** Call frame information: bytes to CIEs, FDEs and rows (see the header for
** what may be assumed of the input: nothing). LJP_SIGSAFE throughout.
*/
#include "profilers/unwind/cfi.h"

#include <string.h>

uint64_t ljp_bytes_fixed(struct ljp_bytes *in, unsigned size)
{
  uint64_t value = 0;
  if (in->bad || (size_t)(in->end - in->at) < size) {
    in->bad = true;
    return 0;
  }
  memcpy(&value, in->at, size);
  in->at += size;
  return value;
}

uint64_t ljp_bytes_uleb(struct ljp_bytes *in)
{
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = (uint8_t)ljp_bytes_fixed(in, 1);
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return value;
  }
  in->bad = true;
  return 0;
}

int64_t ljp_bytes_sleb(struct ljp_bytes *in)
{
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = (uint8_t)ljp_bytes_fixed(in, 1);
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) {
      if ((byte & 0x40) && shift + 7 < 64)
        value |= ~UINT64_C(0) << (shift + 7);
      return (int64_t)value;
    }
  }
  in->bad = true;
  return 0;
}

uint64_t ljp_bytes_pointer(struct ljp_bytes *in, uint8_t encoding,
                           uint64_t address, uint64_t data)
{
  uint64_t value = 0;
  switch (encoding & 0x0f) {
  case 0x00: /* absolute */
  case 0x04: /* udata8 */
  case 0x0c: /* sdata8 */
    value = ljp_bytes_fixed(in, 8);
    break;
  case 0x01:
    value = ljp_bytes_uleb(in);
    break;
  case 0x02:
    value = ljp_bytes_fixed(in, 2);
    break;
  case 0x03:
    value = ljp_bytes_fixed(in, 4);
    break;
  case 0x09:
    value = (uint64_t)ljp_bytes_sleb(in);
    break;
  case 0x0a:
    value = (uint64_t)(int64_t)(int16_t)ljp_bytes_fixed(in, 2);
    break;
  case LJP_PE_SDATA4:
    value = (uint64_t)(int64_t)(int32_t)ljp_bytes_fixed(in, 4);
    break;
  default:
    in->bad = true;
  }
  switch (encoding & 0xf0) {
  case 0:
    return value;
  case LJP_PE_PCREL:
    return value + address;
  case LJP_PE_DATAREL:
    return value + data;
  }
  in->bad = true;
  return 0;
}

static uint64_t address_of(const struct ljp_cfi_span *span,
                           const struct ljp_bytes *in)
{
  return span->address + (uint64_t)(in->at - span->bytes);
}

bool ljp_cfi_head(const struct ljp_cfi_span *span, uint64_t *size,
                  uint64_t *cie)
{
  struct ljp_bytes in = {span->bytes, span->bytes + span->size, false};
  uint64_t length = ljp_bytes_fixed(&in, 4);
  if (length == UINT32_MAX)
    length = ljp_bytes_fixed(&in, 8);
  if (in.bad || length < 4 || length > UINT32_MAX)
    return false;
  *size = (uint64_t)(in.at - span->bytes) + length;
  uint64_t id_address = address_of(span, &in);
  uint32_t id = (uint32_t)ljp_bytes_fixed(&in, 4);
  *cie = id ? id_address - id : 0;
  return !in.bad;
}

/* Skips the head; cuts span to the record. An FDE may go on beyond the span
** (its reader is told so by ljp_cfi_head); a CIE may not. */
static bool enter(struct ljp_cfi_span *span, struct ljp_bytes *in, bool fde)
{
  uint64_t size, cie;
  if (!ljp_cfi_head(span, &size, &cie) || (cie != 0) != fde)
    return false;
  if (!fde && size > span->size)
    return false;
  if (size < span->size)
    span->size = size;
  *in = (struct ljp_bytes){span->bytes, span->bytes + span->size, false};
  if (ljp_bytes_fixed(in, 4) == UINT32_MAX)
    ljp_bytes_fixed(in, 8);
  ljp_bytes_fixed(in, 4);
  return !in->bad;
}

static bool run_cie(struct ljp_cfi_cie *cie, const uint8_t *ops);

bool ljp_cfi_read_cie(struct ljp_cfi_cie *cie, struct ljp_cfi_span span)
{
  struct ljp_bytes in;
  memset(cie, 0, sizeof *cie);
  if (!enter(&span, &in, false))
    return false;
  cie->span = span;
  unsigned version = (unsigned)ljp_bytes_fixed(&in, 1);
  if (version != 1 && version != 3 && version != 4)
    return false;
  const uint8_t *letters = in.at;
  while (ljp_bytes_fixed(&in, 1))
    ;
  if (in.bad)
    return false;
  if (version == 4 && ljp_bytes_fixed(&in, 2) != 8) /* address, segment size */
    return false;
  cie->code_align = ljp_bytes_uleb(&in);
  cie->data_align = ljp_bytes_sleb(&in);
  uint64_t column =
      version == 1 ? ljp_bytes_fixed(&in, 1) : ljp_bytes_uleb(&in);
  if (in.bad || column != LJP_RIP)
    return false;
  const uint8_t *ops = in.at;
  if (*letters == 'z') {
    uint64_t length = ljp_bytes_uleb(&in);
    if (in.bad || length > (uint64_t)(in.end - in.at))
      return false;
    ops = in.at + length;
    in.end = ops;
    cie->augmented = true;
    /* An unknown letter ends what can be told; its data is skipped. */
    for (bool known = true; known && *++letters;) {
      switch (*letters) {
      case 'R':
        cie->pointer_encoding = (uint8_t)ljp_bytes_fixed(&in, 1);
        break;
      case 'L':
        ljp_bytes_fixed(&in, 1);
        break;
      case 'P': {
        uint8_t encoding = (uint8_t)ljp_bytes_fixed(&in, 1);
        if (encoding != LJP_PE_OMIT)
          ljp_bytes_pointer(&in, encoding & 0x0f, 0, 0);
        break;
      }
      case 'S':
        cie->signal = true;
        break;
      default:
        known = false;
      }
    }
  } else if (*letters)
    return false;
  return !in.bad && run_cie(cie, ops);
}

bool ljp_cfi_read_fde(struct ljp_cfi_fde *fde, const struct ljp_cfi_cie *cie,
                      struct ljp_cfi_span span)
{
  struct ljp_bytes in;
  if (!enter(&span, &in, true))
    return false;
  fde->span = span;
  fde->start =
      ljp_bytes_pointer(&in, cie->pointer_encoding, address_of(&span, &in), 0);
  uint64_t length = ljp_bytes_pointer(&in, cie->pointer_encoding & 0x0f, 0, 0);
  fde->end = fde->start + length;
  if (cie->augmented) {
    uint64_t skip = ljp_bytes_uleb(&in);
    if (in.bad || skip > (uint64_t)(in.end - in.at))
      return false;
    in.at += skip;
  }
  fde->ops = (uint32_t)(in.at - span.bytes);
  return !in.bad && fde->end > fde->start;
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

/* Small steps of the interpreter: each takes its operands from machine->in
** and reports nonsense by setting in.bad. */

static void set_rule(struct ljp_cfi_machine *m, uint64_t reg, uint8_t how,
                     int64_t arg)
{
  /* Vector registers and the like are none of our business. */
  if (reg >= LJP_REGS)
    return;
  if (arg != (int32_t)arg)
    m->in.bad = true;
  m->row.how[reg] = how;
  m->row.arg[reg] = (int32_t)arg;
  m->row.in_cie[reg] = m->running_cie;
}

static void set_cfa(struct ljp_cfi_machine *m, uint64_t reg, int64_t offset)
{
  if (reg >= LJP_RIP || offset != (int32_t)offset)
    m->in.bad = true;
  m->row.cfa_how = LJP_HOW_REGISTER;
  m->row.cfa_reg = (uint8_t)reg;
  m->row.cfa_arg = (int32_t)offset;
}

static int64_t scaled(const struct ljp_cfi_machine *m, int64_t factored)
{
  /* Wraps on hostile input; the 32-bit check catches what matters. */
  return (int64_t)((uint64_t)factored * (uint64_t)m->cie->data_align);
}

/* Skips an expression; returns where its length stands. */
static int64_t take_block(struct ljp_cfi_machine *m)
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

static void restore_rule(struct ljp_cfi_machine *m, uint64_t reg)
{
  const struct ljp_cfi_row *initial = &m->cie->initial;
  if (reg >= LJP_REGS || m->running_cie)
    return;
  m->row.how[reg] = initial->how[reg];
  m->row.arg[reg] = initial->arg[reg];
  m->row.in_cie[reg] = initial->in_cie[reg];
}

static void restore_state(struct ljp_cfi_machine *m)
{
  if (m->depth == 0)
    m->in.bad = true;
  else
    m->row = m->remembered[--m->depth];
}

static void remember_state(struct ljp_cfi_machine *m)
{
  if (m->depth == LJP_CFI_REMEMBERED)
    m->in.bad = true;
  else
    m->remembered[m->depth++] = m->row;
}

/* The operations without an operand in their first byte. True: an advance,
** by *delta code units. */
static bool extended(struct ljp_cfi_machine *m, unsigned op, uint64_t *delta)
{
  struct ljp_bytes *in = &m->in;
  uint64_t reg;
  switch (op) {
  case 0x00: /* nop */
    break;
  case 0x02: /* advance_loc1, 2, 4 */
  case 0x03:
  case 0x04:
    *delta = ljp_bytes_fixed(in, 1u << (op - 0x02));
    return true;
  case 0x05: /* offset_extended */
    reg = ljp_bytes_uleb(in);
    set_rule(m, reg, LJP_HOW_OFFSET, scaled(m, (int64_t)ljp_bytes_uleb(in)));
    break;
  case 0x06: /* restore_extended */
    restore_rule(m, ljp_bytes_uleb(in));
    break;
  case 0x07: /* undefined */
    set_rule(m, ljp_bytes_uleb(in), LJP_HOW_UNDEFINED, 0);
    break;
  case 0x08: /* same_value */
    set_rule(m, ljp_bytes_uleb(in), LJP_HOW_SAME, 0);
    break;
  case 0x09: { /* register */
    reg = ljp_bytes_uleb(in);
    uint64_t other = ljp_bytes_uleb(in);
    if (reg < LJP_REGS && other >= LJP_REGS)
      in->bad = true;
    else
      set_rule(m, reg, LJP_HOW_REGISTER, (int64_t)other);
    break;
  }
  case 0x0a:
    remember_state(m);
    break;
  case 0x0b:
    restore_state(m);
    break;
  case 0x0c: /* def_cfa */
    reg = ljp_bytes_uleb(in);
    set_cfa(m, reg, (int64_t)ljp_bytes_uleb(in));
    break;
  case 0x0d: /* def_cfa_register: needs a register rule to change */
    if (m->row.cfa_how != LJP_HOW_REGISTER)
      in->bad = true;
    set_cfa(m, ljp_bytes_uleb(in), m->row.cfa_arg);
    break;
  case 0x0e: /* def_cfa_offset */
    if (m->row.cfa_how != LJP_HOW_REGISTER)
      in->bad = true;
    set_cfa(m, m->row.cfa_reg, (int64_t)ljp_bytes_uleb(in));
    break;
  case 0x0f: /* def_cfa_expression */
    m->row.cfa_how = LJP_HOW_EXPR;
    m->row.cfa_arg = (int32_t)take_block(m);
    m->row.in_cie[LJP_REGS] = m->running_cie;
    break;
  case 0x10: /* expression */
    reg = ljp_bytes_uleb(in);
    set_rule(m, reg, LJP_HOW_EXPR, take_block(m));
    break;
  case 0x11: /* offset_extended_sf */
    reg = ljp_bytes_uleb(in);
    set_rule(m, reg, LJP_HOW_OFFSET, scaled(m, ljp_bytes_sleb(in)));
    break;
  case 0x12: /* def_cfa_sf */
    reg = ljp_bytes_uleb(in);
    set_cfa(m, reg, scaled(m, ljp_bytes_sleb(in)));
    break;
  case 0x13: /* def_cfa_offset_sf */
    if (m->row.cfa_how != LJP_HOW_REGISTER)
      in->bad = true;
    set_cfa(m, m->row.cfa_reg, scaled(m, ljp_bytes_sleb(in)));
    break;
  case 0x14: /* val_offset */
    reg = ljp_bytes_uleb(in);
    set_rule(m, reg, LJP_HOW_VAL_OFFSET,
             scaled(m, (int64_t)ljp_bytes_uleb(in)));
    break;
  case 0x15: /* val_offset_sf */
    reg = ljp_bytes_uleb(in);
    set_rule(m, reg, LJP_HOW_VAL_OFFSET, scaled(m, ljp_bytes_sleb(in)));
    break;
  case 0x16: /* val_expression */
    reg = ljp_bytes_uleb(in);
    set_rule(m, reg, LJP_HOW_VAL_EXPR, take_block(m));
    break;
  case 0x2e: /* GNU_args_size: for landing pads only */
    ljp_bytes_uleb(in);
    break;
  case 0x2f: /* GNU_negative_offset_extended */
    reg = ljp_bytes_uleb(in);
    set_rule(m, reg, LJP_HOW_OFFSET,
             scaled(m, (int64_t)(0 - ljp_bytes_uleb(in))));
    break;
  default: /* set_loc is not used in .eh_frame on this target */
    in->bad = true;
  }
  return false;
}

/* Runs to the next advance (true) or to the end (false, or bad). */
static bool run(struct ljp_cfi_machine *m, uint64_t *delta)
{
  while (m->in.at < m->in.end && !m->in.bad) {
    uint8_t op = *m->in.at++;
    uint8_t low = op & 0x3f;
    switch (op >> 6) {
    case 1:
      *delta = low;
      return true;
    case 2:
      set_rule(m, low, LJP_HOW_OFFSET,
               scaled(m, (int64_t)ljp_bytes_uleb(&m->in)));
      break;
    case 3:
      restore_rule(m, low);
      break;
    default:
      if (extended(m, op, delta))
        return !m->in.bad;
    }
  }
  return false;
}

bool ljp_cfi_next(struct ljp_cfi_machine *machine,
                  const struct ljp_cfi_fde *fde)
{
  uint64_t delta = 0;
  if (run(machine, &delta)) {
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
  return !machine->in.bad;
}

static bool run_cie(struct ljp_cfi_cie *cie, const uint8_t *ops)
{
  struct ljp_cfi_machine m;
  uint64_t delta;
  m.cie = cie;
  m.span = cie->span;
  m.in = (struct ljp_bytes){ops, cie->span.bytes + cie->span.size, false};
  m.running_cie = true;
  m.next = 0;
  m.depth = 0;
  memset(&m.row, 0, sizeof m.row);
  /* A CIE has no code to advance over. */
  if (run(&m, &delta) || m.in.bad)
    return false;
  cie->initial = m.row;
  return true;
}
