/*
** DWARF expressions, as call frame information has them: procedure linkage
** tables, realigned stacks, signal trampolines.
**
** The number of operations is bounded, so a branch backwards cannot hang the
** handler.
** Safety: LJP_SIGSAFE throughout.
*/
#include "profilers/unwind/cfi.h"
#include "profilers/unwind/dwarf.h"
#include "src/base/assert.h"
#include "src/base/saferead.h"

enum { EXPR_STACK = 32, EXPR_MAX_OPS = 256 };

struct expr_machine {
  struct ljp_bytes in;
  const uint8_t *start;
  const struct ljp_regs *regs;
  uint64_t stack[EXPR_STACK];
  unsigned depth;
  enum ljp_unwind_result result;
};

static void expr_fail(struct expr_machine *m, enum ljp_unwind_result result)
{
  if (!m->result)
    m->result = result;
}

static void expr_push(struct expr_machine *m, uint64_t value)
{
  if (m->depth == EXPR_STACK)
    expr_fail(m, LJP_UNWIND_BAD_CFI);
  else
    m->stack[m->depth++] = value;
}

static uint64_t expr_pop(struct expr_machine *m)
{
  if (m->depth == 0) {
    expr_fail(m, LJP_UNWIND_BAD_CFI);
    return 0;
  }
  return m->stack[--m->depth];
}

static void expr_push_reg(struct expr_machine *m, uint64_t reg, int64_t offset)
{
  if (reg >= LJP_REGS)
    expr_fail(m, LJP_UNWIND_BAD_CFI);
  else if (!(m->regs->known >> reg & 1))
    expr_fail(m, LJP_UNWIND_UNKNOWN_REG);
  else
    expr_push(m, m->regs->r[reg] + (uint64_t)offset);
}

static void expr_pick(struct expr_machine *m, unsigned index)
{
  if (index >= m->depth)
    expr_fail(m, LJP_UNWIND_BAD_CFI);
  else
    expr_push(m, m->stack[m->depth - 1 - index]);
}

static void expr_deref(struct expr_machine *m, unsigned size)
{
  uint64_t address = expr_pop(m), value = 0;
  if (size == 0 || size > 8)
    expr_fail(m, LJP_UNWIND_BAD_CFI);
  else if (ljp_safe_copy(&value, (const void *)(uintptr_t)address, size) !=
           size)
    expr_fail(m, LJP_UNWIND_UNREADABLE);
  else
    expr_push(m, value);
}

static void expr_jump(struct expr_machine *m, int64_t by)
{
  int64_t at = m->in.at - m->start;
  if (by < -at || by > m->in.end - m->in.at)
    expr_fail(m, LJP_UNWIND_BAD_CFI);
  else
    m->in.at += by;
}

/* b is the top of the stack, a the one below. */
static uint64_t expr_binary(struct expr_machine *m, unsigned op, uint64_t a,
                            uint64_t b)
{
  int64_t sa = (int64_t)a, sb = (int64_t)b;
  switch (op) {
  case DW_OP_and:
    return a & b;
  case DW_OP_div:
    if (b == 0 || (sb == -1 && sa == INT64_MIN))
      break;
    return (uint64_t)(sa / sb);
  case DW_OP_minus:
    return a - b;
  case DW_OP_mod:
    if (b == 0)
      break;
    return a % b;
  case DW_OP_mul:
    return a * b;
  case DW_OP_or:
    return a | b;
  case DW_OP_plus:
    return a + b;
  case DW_OP_shl:
    return b < 64 ? a << b : 0;
  case DW_OP_shr:
    return b < 64 ? a >> b : 0;
  case DW_OP_shra:
    return b < 63 ? (uint64_t)(sa >> b) : sa < 0 ? UINT64_MAX : 0;
  case DW_OP_xor:
    return a ^ b;
  case DW_OP_eq:
    return sa == sb;
  case DW_OP_ge:
    return sa >= sb;
  case DW_OP_gt:
    return sa > sb;
  case DW_OP_le:
    return sa <= sb;
  case DW_OP_lt:
    return sa < sb;
  case DW_OP_ne:
    return sa != sb;
  }
  expr_fail(m, LJP_UNWIND_BAD_CFI);
  return 0;
}

static void expr_constant(struct expr_machine *m, unsigned op)
{
  struct ljp_bytes *in = &m->in;
  switch (op) {
  case DW_OP_addr:
  case DW_OP_const8u:
  case DW_OP_const8s:
    expr_push(m, ljp_bytes_fixed(in, 8));
    break;
  case DW_OP_const1u:
    expr_push(m, ljp_bytes_fixed(in, 1));
    break;
  case DW_OP_const1s:
    expr_push(m, (uint64_t)(int64_t)(int8_t)ljp_bytes_fixed(in, 1));
    break;
  case DW_OP_const2u:
    expr_push(m, ljp_bytes_fixed(in, 2));
    break;
  case DW_OP_const2s:
    expr_push(m, (uint64_t)(int64_t)(int16_t)ljp_bytes_fixed(in, 2));
    break;
  case DW_OP_const4u:
    expr_push(m, ljp_bytes_fixed(in, 4));
    break;
  case DW_OP_const4s:
    expr_push(m, (uint64_t)(int64_t)(int32_t)ljp_bytes_fixed(in, 4));
    break;
  case DW_OP_constu:
    expr_push(m, ljp_bytes_uleb(in));
    break;
  case DW_OP_consts:
    expr_push(m, (uint64_t)ljp_bytes_sleb(in));
    break;
  default:
    expr_fail(m, LJP_UNWIND_BAD_CFI);
  }
}

/* Operations that move or change what is on the stack. */
static void expr_shuffle(struct expr_machine *m, unsigned op)
{
  uint64_t a, b, c;
  switch (op) {
  case DW_OP_deref:
    expr_deref(m, 8);
    break;
  case DW_OP_deref_size:
    expr_deref(m, (unsigned)ljp_bytes_fixed(&m->in, 1));
    break;
  case DW_OP_dup:
    expr_pick(m, 0);
    break;
  case DW_OP_drop:
    expr_pop(m);
    break;
  case DW_OP_over:
    expr_pick(m, 1);
    break;
  case DW_OP_pick:
    expr_pick(m, (unsigned)ljp_bytes_fixed(&m->in, 1));
    break;
  case DW_OP_swap:
    a = expr_pop(m);
    b = expr_pop(m);
    expr_push(m, a);
    expr_push(m, b);
    break;
  case DW_OP_rot: /* the top becomes the third */
    a = expr_pop(m);
    b = expr_pop(m);
    c = expr_pop(m);
    expr_push(m, a);
    expr_push(m, c);
    expr_push(m, b);
    break;
  case DW_OP_abs:
    a = expr_pop(m);
    expr_push(m, (int64_t)a < 0 ? 0 - a : a);
    break;
  case DW_OP_neg:
    expr_push(m, 0 - expr_pop(m));
    break;
  case DW_OP_not:
    expr_push(m, ~expr_pop(m));
    break;
  case DW_OP_plus_uconst:
    expr_push(m, expr_pop(m) + ljp_bytes_uleb(&m->in));
    break;
  default:
    b = expr_pop(m);
    a = expr_pop(m);
    expr_push(m, expr_binary(m, op, a, b));
  }
}

static void expr_execute(struct expr_machine *m, unsigned op)
{
  if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
    expr_push(m, op - DW_OP_lit0);
  else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
    expr_push_reg(m, op - DW_OP_breg0, ljp_bytes_sleb(&m->in));
  else if (op == DW_OP_bregx) {
    uint64_t reg = ljp_bytes_uleb(&m->in);
    expr_push_reg(m, reg, ljp_bytes_sleb(&m->in));
  } else if (op == DW_OP_skip || op == DW_OP_bra) {
    int64_t by = (int16_t)ljp_bytes_fixed(&m->in, 2);
    if (op == DW_OP_skip || expr_pop(m))
      expr_jump(m, by);
  } else if (op == DW_OP_addr || (op >= DW_OP_const1u && op <= DW_OP_consts))
    expr_constant(m, op);
  else if (op != DW_OP_nop)
    expr_shuffle(m, op);
}

enum ljp_unwind_result ljp_cfi_evaluate(const struct ljp_cfi_span *span,
                                        uint32_t at,
                                        const struct ljp_regs *regs,
                                        bool have_initial, uint64_t initial,
                                        uint64_t *out)
{
  struct expr_machine m;
  if (at > span->size)
    return LJP_UNWIND_BAD_CFI;
  m.in = (struct ljp_bytes){span->bytes + at, span->bytes + span->size, false};
  m.regs = regs;
  m.depth = 0;
  m.result = LJP_UNWIND_STEPPED;
  uint64_t length = ljp_bytes_uleb(&m.in);
  if (m.in.bad || length > (uint64_t)(m.in.end - m.in.at))
    return LJP_UNWIND_BAD_CFI;
  m.in.end = m.in.at + length;
  m.start = m.in.at;
  if (have_initial)
    expr_push(&m, initial);
  for (unsigned n = 0; m.in.at < m.in.end; n++) {
    if (n == EXPR_MAX_OPS)
      return LJP_UNWIND_BAD_CFI;
    expr_execute(&m, (unsigned)ljp_bytes_fixed(&m.in, 1));
    if (m.in.bad)
      return LJP_UNWIND_BAD_CFI;
    ljp_assert(m.depth <= EXPR_STACK && m.in.at <= m.in.end);
    if (m.result)
      return m.result;
  }
  *out = expr_pop(&m);
  return m.result;
}
