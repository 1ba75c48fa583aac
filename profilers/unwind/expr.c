/*
** DWARF expressions as they occur in call frame information: procedure linkage
** tables, realigned stacks, signal trampolines. LJP_SIGSAFE; bounded by a
** number of operations, so that a branch backwards cannot hang the handler.
*/
#include "profilers/unwind/cfi.h"
#include "src/base/saferead.h"

enum { STACK = 32, MAX_OPS = 256 };

struct machine {
  struct ljp_bytes in;
  const uint8_t *start;
  const struct ljp_regs *regs;
  uint64_t stack[STACK];
  unsigned depth;
  enum ljp_unwind_result result;
};

static void fail(struct machine *m, enum ljp_unwind_result result)
{
  if (!m->result)
    m->result = result;
}

static void push(struct machine *m, uint64_t value)
{
  if (m->depth == STACK)
    fail(m, LJP_UNWIND_BAD_CFI);
  else
    m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
  if (m->depth == 0) {
    fail(m, LJP_UNWIND_BAD_CFI);
    return 0;
  }
  return m->stack[--m->depth];
}

static void push_reg(struct machine *m, uint64_t reg, int64_t offset)
{
  if (reg >= LJP_REGS)
    fail(m, LJP_UNWIND_BAD_CFI);
  else if (!(m->regs->known >> reg & 1))
    fail(m, LJP_UNWIND_UNKNOWN_REG);
  else
    push(m, m->regs->r[reg] + (uint64_t)offset);
}

static void pick(struct machine *m, unsigned index)
{
  if (index >= m->depth)
    fail(m, LJP_UNWIND_BAD_CFI);
  else
    push(m, m->stack[m->depth - 1 - index]);
}

static void deref(struct machine *m, unsigned size)
{
  uint64_t address = pop(m), value = 0;
  if (size == 0 || size > 8)
    fail(m, LJP_UNWIND_BAD_CFI);
  else if (ljp_safe_copy(&value, (const void *)(uintptr_t)address, size) !=
           size)
    fail(m, LJP_UNWIND_UNREADABLE);
  else
    push(m, value);
}

static void jump(struct machine *m, int64_t by)
{
  int64_t at = m->in.at - m->start;
  if (by < -at || by > m->in.end - m->in.at)
    fail(m, LJP_UNWIND_BAD_CFI);
  else
    m->in.at += by;
}

/* b is the top of the stack, a the one below. */
static uint64_t binary(struct machine *m, unsigned op, uint64_t a, uint64_t b)
{
  int64_t sa = (int64_t)a, sb = (int64_t)b;
  switch (op) {
  case 0x1a:
    return a & b;
  case 0x1b: /* div, signed */
    if (b == 0 || (sb == -1 && sa == INT64_MIN))
      break;
    return (uint64_t)(sa / sb);
  case 0x1c:
    return a - b;
  case 0x1d: /* mod */
    if (b == 0)
      break;
    return a % b;
  case 0x1e:
    return a * b;
  case 0x21:
    return a | b;
  case 0x22:
    return a + b;
  case 0x24:
    return b < 64 ? a << b : 0;
  case 0x25:
    return b < 64 ? a >> b : 0;
  case 0x26:
    return b < 63 ? (uint64_t)(sa >> b) : sa < 0 ? UINT64_MAX : 0;
  case 0x27:
    return a ^ b;
  case 0x29:
    return sa == sb;
  case 0x2a:
    return sa >= sb;
  case 0x2b:
    return sa > sb;
  case 0x2c:
    return sa <= sb;
  case 0x2d:
    return sa < sb;
  case 0x2e:
    return sa != sb;
  }
  fail(m, LJP_UNWIND_BAD_CFI);
  return 0;
}

static void constant(struct machine *m, unsigned op)
{
  struct ljp_bytes *in = &m->in;
  switch (op) {
  case 0x03: /* addr */
  case 0x0e: /* const8u, const8s */
  case 0x0f:
    push(m, ljp_bytes_fixed(in, 8));
    break;
  case 0x08:
    push(m, ljp_bytes_fixed(in, 1));
    break;
  case 0x09:
    push(m, (uint64_t)(int64_t)(int8_t)ljp_bytes_fixed(in, 1));
    break;
  case 0x0a:
    push(m, ljp_bytes_fixed(in, 2));
    break;
  case 0x0b:
    push(m, (uint64_t)(int64_t)(int16_t)ljp_bytes_fixed(in, 2));
    break;
  case 0x0c:
    push(m, ljp_bytes_fixed(in, 4));
    break;
  case 0x0d:
    push(m, (uint64_t)(int64_t)(int32_t)ljp_bytes_fixed(in, 4));
    break;
  case 0x10:
    push(m, ljp_bytes_uleb(in));
    break;
  case 0x11:
    push(m, (uint64_t)ljp_bytes_sleb(in));
    break;
  default:
    fail(m, LJP_UNWIND_BAD_CFI);
  }
}

/* Operations that move or change what is on the stack. */
static void shuffle(struct machine *m, unsigned op)
{
  uint64_t a, b, c;
  switch (op) {
  case 0x06:
    deref(m, 8);
    break;
  case 0x94:
    deref(m, (unsigned)ljp_bytes_fixed(&m->in, 1));
    break;
  case 0x12: /* dup, drop, over, pick, swap, rot */
    pick(m, 0);
    break;
  case 0x13:
    pop(m);
    break;
  case 0x14:
    pick(m, 1);
    break;
  case 0x15:
    pick(m, (unsigned)ljp_bytes_fixed(&m->in, 1));
    break;
  case 0x16:
    a = pop(m);
    b = pop(m);
    push(m, a);
    push(m, b);
    break;
  case 0x17: /* the top becomes the third */
    a = pop(m);
    b = pop(m);
    c = pop(m);
    push(m, a);
    push(m, c);
    push(m, b);
    break;
  case 0x19: /* abs */
    a = pop(m);
    push(m, (int64_t)a < 0 ? 0 - a : a);
    break;
  case 0x1f:
    push(m, 0 - pop(m));
    break;
  case 0x20:
    push(m, ~pop(m));
    break;
  case 0x23: /* plus_uconst */
    push(m, pop(m) + ljp_bytes_uleb(&m->in));
    break;
  default:
    b = pop(m);
    a = pop(m);
    push(m, binary(m, op, a, b));
  }
}

static void execute(struct machine *m, unsigned op)
{
  if (op >= 0x30 && op <= 0x4f)
    push(m, op - 0x30);
  else if (op >= 0x70 && op <= 0x8f)
    push_reg(m, op - 0x70, ljp_bytes_sleb(&m->in));
  else if (op == 0x92) {
    uint64_t reg = ljp_bytes_uleb(&m->in);
    push_reg(m, reg, ljp_bytes_sleb(&m->in));
  } else if (op == 0x2f || op == 0x28) { /* skip, bra */
    int64_t by = (int16_t)ljp_bytes_fixed(&m->in, 2);
    if (op == 0x2f || pop(m))
      jump(m, by);
  } else if (op == 0x03 || (op >= 0x08 && op <= 0x11))
    constant(m, op);
  else if (op != 0x96) /* nop */
    shuffle(m, op);
}

enum ljp_unwind_result ljp_cfi_evaluate(const struct ljp_cfi_span *span,
                                        uint32_t at,
                                        const struct ljp_regs *regs,
                                        bool have_initial, uint64_t initial,
                                        uint64_t *out)
{
  struct machine m;
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
    push(&m, initial);
  for (unsigned n = 0; m.in.at < m.in.end; n++) {
    if (n == MAX_OPS)
      return LJP_UNWIND_BAD_CFI;
    execute(&m, (unsigned)ljp_bytes_fixed(&m.in, 1));
    if (m.in.bad)
      return LJP_UNWIND_BAD_CFI;
    if (m.result)
      return m.result;
  }
  *out = pop(&m);
  return m.result;
}
