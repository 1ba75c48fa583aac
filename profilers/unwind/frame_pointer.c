/*
** Finds the frame pointer of a function when the walk does not know rbp: of a
** waiting thread only the stack pointer and the program counter are known.
**
** A function with a frame pointer begins with push rbp; mov rbp, rsp. Further
** pushes and one sub rsp follow, with other instructions between them. From
** there on, rsp is below rbp by the sum of these, plus the stack arguments of
** the call that is being made. (Not so in functions that call alloca() or
** realign the stack.) So the sum gives rbp. The words at rbp are then checked:
** the return address must follow a call, and if the call names its target, the
** target must be this function. If two different numbers of arguments pass the
** check, rbp is unknown. It is unknown as well if a call that names another
** function is met before the one that names none: the other function may have
** jumped to this one.
** Safety: LJP_SIGSAFE throughout; code is read by fault-safe copies.
*/
#include <string.h>

#include "profilers/unwind/step.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

enum { PROLOGUE_BYTES = 128, ARGUMENT_WORDS = 8 };

struct prologue {
  uint8_t byte[PROLOGUE_BYTES + 16]; /* zero behind the end */
  uint32_t size, at;
  uint64_t depth; /* of rsp below rbp */
};

/* -- Instructions ---------------------------------------------------------- */

enum shape {
  OTHER,        /* not known */
  PLAIN,        /* no operands in bytes of their own */
  MODRM_TO_RM,  /* writes the operand that may be memory, or compares */
  MODRM_TO_REG, /* writes the register */
  WITH_IMM8 = 8,
  WITH_IMM32 = 16
};

/* The shape of an instruction that compilers put between those of a prologue.
** two: of two bytes, behind 0f. */
static unsigned prologue_shape(uint8_t op, bool two)
{
  if (two) {
    if ((op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2f) ||
        (op >= 0x50 && op <= 0x7f) || (op >= 0xd0 && op != 0xff) || op == 0x1f)
      return MODRM_TO_RM; /* vector registers and memory */
    return (op >= 0x40 && op <= 0x4f) || op == 0xaf || op == 0xb6 ||
                   op == 0xb7 || op == 0xbe || op == 0xbf
               ? MODRM_TO_REG
               : OTHER;
  }
  if (op < 0x40 && (op & 7) < 4)
    return op & 2 ? MODRM_TO_REG : MODRM_TO_RM;
  switch (op) {
  case 0x84:
  case 0x85:
  case 0x88:
  case 0x89:
    return MODRM_TO_RM;
  case 0x63:
  case 0x8a:
  case 0x8b:
  case 0x8d:
    return MODRM_TO_REG;
  case 0x80:
  case 0x83:
  case 0xc1:
  case 0xc6:
    return MODRM_TO_RM | WITH_IMM8;
  case 0x81:
  case 0xc7:
    return MODRM_TO_RM | WITH_IMM32;
  case 0x90:
  case 0x98:
  case 0x99:
    return PLAIN;
  }
  return OTHER;
}

/* Skips a mod r/m byte and what belongs to it. *reg, *rm: the registers that it
** names; *rm is 16 for memory. */
static void prologue_skip_modrm(struct prologue *p, uint32_t rex, uint32_t *reg,
                                uint32_t *rm)
{
  uint32_t modrm = p->byte[p->at++], mod = modrm >> 6, base = modrm & 7;
  *reg = (modrm >> 3 & 7) | (rex & 4) << 1;
  *rm = mod == 3 ? base | (rex & 1) << 3 : 16;
  if (mod == 3)
    return;
  if (base == 4)
    base = p->byte[p->at++] & 7;
  p->at += mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
}

/* Is this the register rsp or rbp? */
static bool prologue_is_frame(uint32_t reg)
{
  return reg == 4 || reg == 5;
}

enum prologue_found { GOES_ON, ENDS, FAILS };

/* Runs one instruction of the prologue. ENDS: it was the last, or is none. */
static enum prologue_found prologue_step(struct prologue *p)
{
  uint32_t rex = 0, reg, rm, wide = 4;
  const uint8_t *byte = p->byte + p->at;
  int32_t value;
  if (byte[0] == 0x48 && (byte[1] == 0x83 || byte[1] == 0x81) &&
      byte[2] == 0xec) { /* sub rsp */
    memcpy(&value, byte + 3, 4);
    p->depth += byte[1] == 0x83 ? (uint64_t)(int64_t)(int8_t)byte[3]
                                : (uint64_t)(int64_t)value;
    return ENDS;
  }
  while (p->byte[p->at] == 0x66 || p->byte[p->at] == 0xf2 ||
         p->byte[p->at] == 0xf3 || p->byte[p->at] == 0x64) {
    wide = p->byte[p->at] == 0x66 ? 2 : wide;
    if (++p->at >= p->size)
      return FAILS;
  }
  if ((p->byte[p->at] & 0xf0) == 0x40)
    rex = p->byte[p->at++];
  uint8_t op = p->byte[p->at++];
  if ((op & 0xf8) == 0x50) {
    p->depth += 8;
    return GOES_ON;
  }
  if ((op & 0xf8) == 0xb8) {
    p->at += rex & 8 ? 8 : wide;
    return prologue_is_frame((op & 7) | (rex & 1) << 3) ? FAILS : GOES_ON;
  }
  bool two = op == 0x0f;
  if (two)
    op = p->byte[p->at++];
  /* A call, a jump or a return is behind the prologue. */
  if (two ? (op & 0xf0) == 0x80
          : op == 0xe8 || op == 0xe9 || op == 0xeb || op == 0xc3 ||
                op == 0xff || (op & 0xf0) == 0x70)
    return ENDS;
  if (two && op == 0x05)
    return ENDS;
  unsigned shape = prologue_shape(op, two);
  if (shape == OTHER)
    return FAILS;
  if (shape == PLAIN)
    return GOES_ON;
  prologue_skip_modrm(p, rex, &reg, &rm);
  p->at += shape & WITH_IMM8 ? 1 : shape & WITH_IMM32 ? wide : 0;
  if (!two && prologue_is_frame(shape & 1 ? reg : rm) && op != 0x84 &&
      op != 0x85 && (op & 0xfc) != 0x38)
    return FAILS;
  return GOES_ON;
}

/* Sets p->depth from the code between start and pc. */
static bool prologue_run(struct prologue *p, uint64_t start, uint64_t pc)
{
  static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  static const uint8_t push_mov[2][4] = {{0x55, 0x48, 0x89, 0xe5},
                                         {0x55, 0x48, 0x8b, 0xec}};
  enum prologue_found found = GOES_ON;
  memset(p, 0, sizeof *p);
  uint64_t size = pc - start;
  p->size = size < PROLOGUE_BYTES ? (uint32_t)size : PROLOGUE_BYTES;
  if (ljp_safe_copy(p->byte, (const void *)(uintptr_t)start, p->size) !=
      p->size)
    return false;
  if (memcmp(p->byte, endbr, 4) == 0)
    p->at = 4;
  if (memcmp(p->byte + p->at, push_mov[0], 4) != 0 &&
      memcmp(p->byte + p->at, push_mov[1], 4) != 0)
    return false;
  p->at += 4;
  while (found == GOES_ON && p->at < p->size)
    found = prologue_step(p);
  return found == ENDS || (found == GOES_ON && p->size == size);
}

/* -- What lies there ------------------------------------------------------- */

/* Does the code at an address jump to start: is it the PLT's entry for it? */
static bool frame_jumps_to(uint64_t at, uint64_t start)
{
  uint8_t code[16] = {0};
  uint32_t i = 0;
  int32_t distance;
  uint64_t target;
  ljp_safe_copy(code, (const void *)(uintptr_t)at, sizeof code);
  if (code[0] == 0xf3 && code[1] == 0x0f)
    i = 4;
  if (code[i] == 0xf2)
    i++;
  if (code[i] != 0xff || code[i + 1] != 0x25)
    return false;
  memcpy(&distance, code + i + 2, 4);
  at += i + 6 + (uint64_t)(int64_t)distance;
  return ljp_safe_load((const void *)(uintptr_t)at, &target) && target == start;
}

enum frame_call { NO_CALL, OF_ANOTHER, OF_ANY, OF_THIS };

/* What the return address follows: a call of the function at start, of another
** one, or of a function that the call does not name. */
static enum frame_call frame_follows(uint64_t ret, uint64_t start)
{
  uint8_t code[5] = {0};
  int32_t distance;
  if (!ljp_unwind_follows_call(ret))
    return NO_CALL;
  ljp_safe_copy(code, (const void *)(uintptr_t)(ret - 5), 5);
  if (code[0] != 0xe8)
    return OF_ANY;
  memcpy(&distance, code + 1, 4);
  uint64_t target = ret + (uint64_t)(int64_t)distance;
  return target == start || frame_jumps_to(target, start) ? OF_THIS
                                                          : OF_ANOTHER;
}

bool ljp_unwind_find_frame_pointer(uint64_t start, uint64_t pc,
                                   struct ljp_regs *regs)
{
  struct prologue p;
  uint64_t ret;
  uint64_t rbp = 0;
  uint32_t found = 0;
  bool another = false;
  ljp_memo_blur(regs->notes);
  if (!prologue_run(&p, start, pc) || p.depth > LJP_UNWIND_MAX_FRAME_BYTES)
    return false;
  for (uint32_t i = 0; i <= ARGUMENT_WORDS; i++) {
    uint64_t at = regs->r[LJP_RSP] + p.depth + 8 * (uint64_t)i;
    if (!ljp_safe_load((const void *)(uintptr_t)(at + 8), &ret))
      break;
    enum frame_call call = frame_follows(ret, start);
    another |= call == OF_ANOTHER;
    if (call < OF_ANY)
      continue;
    rbp = at;
    found += another && call == OF_ANY ? 2 : 1;
  }
  if (found != 1)
    return false;
  regs->r[LJP_RBP] = rbp;
  regs->known |= 1u << LJP_RBP;
  return true;
}
