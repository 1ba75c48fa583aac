/*
** Functions of libgcc that return by eh_return, once they have chosen where a
** thrown error is caught: their caller is the catching frame. For some 60
** instructions such a function's frame holds saved registers and a return
** address that belong to the catching frame, and CFI does not say so.
**
** Such a function is known by its CFI: it saves rax and rdx. Its frame holds
** the context that it is going to install, which names two addresses: the
** catching frame's CFA, and the place just below it that holds the return
** address. The return address is the last register that libgcc copies. Once it
** is copied, it is found in both places; from then on the frame's caller is
** the catching frame.
** Safety: LJP_SIGSAFE throughout.
*/
#include "profilers/unwind/step.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

enum {
  LANDING_FRAME_BYTES = 8192,
  LANDING_FAR_BYTES = 64 << 20,
  LANDING_CODE = 96
};

bool ljp_unwind_is_eh_return(const struct ljp_cfi_row *row)
{
  return row->how[LJP_RAX] == LJP_HOW_OFFSET &&
         row->how[LJP_RDX] == LJP_HOW_OFFSET;
}

static bool landing_load(uint64_t address, uint64_t *out)
{
  return ljp_safe_load((const void *)(uintptr_t)address, out);
}

/* Is the wanted word somewhere from low up to high? */
static bool landing_holds(uint64_t low, uint64_t high, uint64_t wanted)
{
  uint64_t word;
  for (uint64_t at = low; at < high; at += 8)
    if (landing_load(at, &word) && word == wanted)
      return true;
  return false;
}

/* A context in the frame names two addresses: where the catching frame has its
** return address (word), and that frame's CFA (word + 8). */
void ljp_unwind_fix_landing(const struct ljp_regs *frame,
                            struct ljp_regs *caller)
{
  uint64_t low = frame->r[LJP_RSP], cfa = caller->r[LJP_RSP], word, there;
  uint64_t high = cfa - 16;
  ljp_memo_blur(frame->notes);
  if (low & 7 || low >= high || high - low > LANDING_FRAME_BYTES)
    return;
  for (uint64_t at = low; at < high; at += 8)
    if (landing_load(at, &word) && !(word & 7) &&
        word - cfa < LANDING_FAR_BYTES && landing_load(word, &there) &&
        there == caller->r[LJP_RIP] && landing_holds(low, high, word + 8)) {
      caller->r[LJP_RSP] = word + 8;
      return;
    }
}

/* -- The last instructions ------------------------------------------------- */

struct landing_code {
  uint8_t byte[LANDING_CODE];
  uint32_t size, at;
};

static const uint8_t landing_dwarf[16] = {
    LJP_RAX, LJP_RCX, LJP_RDX, LJP_RBX, LJP_RSP, LJP_RBP, LJP_RSI, LJP_RDI,
    LJP_R8,  LJP_R9,  LJP_R10, LJP_R11, LJP_R12, LJP_R13, LJP_R14, LJP_R15};

static uint32_t landing_byte(struct landing_code *code)
{
  return code->at < code->size ? code->byte[code->at++] : 0;
}

/* The address [base + index * 1 + displacement] that a mod r/m byte means. */
static bool landing_address(struct landing_code *code, uint32_t rex,
                            uint32_t modrm, const struct ljp_regs *regs,
                            uint64_t *address)
{
  uint32_t mod = modrm >> 6, base = modrm & 7;
  *address = 0;
  if (base == 4) {
    uint32_t sib = landing_byte(code), index = (sib >> 3 & 7) | (rex & 2) << 2;
    if (sib >> 6)
      return false;
    base = sib & 7;
    if (index != 4)
      *address = regs->r[landing_dwarf[index]];
  }
  if (mod == 0 && base == 5)
    return false;
  *address += regs->r[landing_dwarf[base | (rex & 1) << 3]];
  if (mod == 1)
    *address += (uint64_t)(int64_t)(int8_t)landing_byte(code);
  else if (mod == 2) {
    uint32_t value = 0;
    for (int i = 0; i < 32; i += 8)
      value |= landing_byte(code) << i;
    *address += (uint64_t)(int64_t)(int32_t)value;
  }
  return mod != 3;
}

/* Runs one instruction: a mov from memory or from a register, a lea, a pop, or
** the jump at the end. False for any other. */
static bool landing_run_one(struct landing_code *code, struct ljp_regs *regs,
                            bool *jumped)
{
  uint32_t op = landing_byte(code), rex = 0;
  uint64_t address;
  if ((op & 0xf0) == 0x40) {
    rex = op;
    op = landing_byte(code);
  }
  if ((op & 0xf8) == 0x58) {
    unsigned reg = landing_dwarf[(op & 7) | (rex & 1) << 3];
    if (!landing_load(regs->r[LJP_RSP], &regs->r[reg]))
      return false;
    regs->r[LJP_RSP] += 8;
    return reg != LJP_RSP;
  }
  uint32_t modrm = landing_byte(code);
  unsigned reg = landing_dwarf[(modrm >> 3 & 7) | (rex & 4) << 1];
  unsigned other = landing_dwarf[(modrm & 7) | (rex & 1) << 3];
  if (op == 0xff && (modrm & 0xf8) == 0xe0) {
    regs->r[LJP_RIP] = regs->r[other];
    return *jumped = true;
  }
  if (!(rex & 8))
    return false;
  switch (op) {
  case 0x89:
    regs->r[other] = regs->r[reg];
    return modrm >> 6 == 3;
  case 0x8b:
    return landing_address(code, rex, modrm, regs, &address) &&
           landing_load(address, &regs->r[reg]);
  case 0x8d:
    if (!landing_address(code, rex, modrm, regs, &address))
      return false;
    regs->r[reg] = address;
    return true;
  }
  return false;
}

bool ljp_unwind_run_eh_return(const struct ljp_cfi_row *row,
                              struct ljp_regs *regs)
{
  struct ljp_regs target = *regs;
  struct landing_code code = {.at = 0};
  bool jumped = false;
  if (regs->known != LJP_REGS_ALL)
    return false; /* it computes with any of them */
  code.size = (uint32_t)ljp_safe_copy(
      code.byte, (const void *)(uintptr_t)regs->r[LJP_RIP], sizeof code.byte);
  /* A jump comes first: nothing of the frame is left. It is the jump out of the
  ** function if CFI says that the return address is in a register. */
  uint32_t prefixed = (code.byte[0] & 0xf0) == 0x40;
  if (code.size < 2 ||
      (code.byte[prefixed] == 0xff && row->how[LJP_RIP] != LJP_HOW_REGISTER))
    return false;
  while (!jumped)
    if (code.at >= code.size || !landing_run_one(&code, &target, &jumped))
      return false;
  if (target.r[LJP_RSP] - regs->r[LJP_RSP] > LANDING_FAR_BYTES ||
      target.r[LJP_RSP] & 7)
    return false;
  /* The caller's rip is treated as a return address, so it is looked up one
  ** byte earlier: add that byte. */
  target.r[LJP_RIP]++;
  target.exact = false;
  target.known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP;
  ljp_memo_blur(regs->notes);
  *regs = target;
  return true;
}
