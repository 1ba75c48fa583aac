/*
** Frames that are about to land somewhere else: functions of libgcc that return
** by eh_return, once they have chosen where a thrown error is caught. For some
** 60 instructions their frame holds saved registers and a return address that
** belong to the catching frame, and CFI knows nothing of it.
**
** Such a function shows in its CFI: it saves rax and rdx. And its frame holds
** the context that it is going to install, which names two addresses: the
** catching frame's CFA, and just below it where its return address lies. When
** the return address has been copied, it is found in both places, and all
** other registers have been copied before it. From then on the frame's caller is
** the catching frame.
**
** LJP_SIGSAFE throughout.
*/
#include "profilers/unwind/priv.h"
#include "src/base/memo.h"
#include "src/base/saferead.h"

enum { MAX_FRAME_BYTES = 8192, FAR_BYTES = 64 << 20, MAX_CODE = 96 };

bool ljp_unwind_lands(const struct ljp_cfi_row *row)
{
  return row->how[LJP_RAX] == LJP_HOW_OFFSET &&
         row->how[LJP_RDX] == LJP_HOW_OFFSET;
}

static bool load(uint64_t address, uint64_t *out)
{
  return ljp_safe_load((const void *)(uintptr_t)address, out);
}

static bool frame_holds(uint64_t low, uint64_t high, uint64_t wanted)
{
  uint64_t word;
  for (uint64_t at = low; at < high; at += 8)
    if (load(at, &word) && word == wanted)
      return true;
  return false;
}

void ljp_unwind_land(const struct ljp_regs *frame, struct ljp_regs *caller)
{
  uint64_t low = frame->r[LJP_RSP], cfa = caller->r[LJP_RSP], word, there;
  uint64_t high = cfa - 16;
  ljp_memo_blur(frame->notes);
  if (low & 7 || low >= high || high - low > MAX_FRAME_BYTES)
    return;
  for (uint64_t at = low; at < high; at += 8)
    if (load(at, &word) && !(word & 7) && word - cfa < FAR_BYTES &&
        load(word, &there) && there == caller->r[LJP_RIP] &&
        frame_holds(low, high, word + 8)) {
      caller->r[LJP_RSP] = word + 8;
      return;
    }
}

/* -- The last instructions ------------------------------------------------------ */

struct code {
  uint8_t byte[MAX_CODE];
  uint32_t size, at;
};

static const uint8_t dwarf[16] = {
    LJP_RAX, LJP_RCX, LJP_RDX, LJP_RBX, LJP_RSP, LJP_RBP, LJP_RSI, LJP_RDI,
    LJP_R8,  LJP_R9,  LJP_R10, LJP_R11, LJP_R12, LJP_R13, LJP_R14, LJP_R15};

static uint32_t next(struct code *code)
{
  return code->at < code->size ? code->byte[code->at++] : 0;
}

/* [base + index * 1 + displacement] of a mod r/m byte. */
static bool address_of(struct code *code, uint32_t rex, uint32_t modrm,
                       const struct ljp_regs *regs, uint64_t *address)
{
  uint32_t mod = modrm >> 6, base = modrm & 7;
  *address = 0;
  if (base == 4) {
    uint32_t sib = next(code), index = (sib >> 3 & 7) | (rex & 2) << 2;
    if (sib >> 6)
      return false;
    base = sib & 7;
    if (index != 4)
      *address = regs->r[dwarf[index]];
  }
  if (mod == 0 && base == 5)
    return false;
  *address += regs->r[dwarf[base | (rex & 1) << 3]];
  if (mod == 1)
    *address += (uint64_t)(int64_t)(int8_t)next(code);
  else if (mod == 2) {
    uint32_t value = 0;
    for (int i = 0; i < 32; i += 8)
      value |= next(code) << i;
    *address += (uint64_t)(int64_t)(int32_t)value;
  }
  return mod != 3;
}

/* One instruction of: mov from memory or a register, lea, pop; and the jump
** that ends it all. False for any other. */
static bool run_one(struct code *code, struct ljp_regs *regs, bool *jumped)
{
  uint32_t op = next(code), rex = 0;
  uint64_t address;
  if ((op & 0xf0) == 0x40) {
    rex = op;
    op = next(code);
  }
  if ((op & 0xf8) == 0x58) {
    unsigned reg = dwarf[(op & 7) | (rex & 1) << 3];
    if (!load(regs->r[LJP_RSP], &regs->r[reg]))
      return false;
    regs->r[LJP_RSP] += 8;
    return reg != LJP_RSP;
  }
  uint32_t modrm = next(code);
  unsigned reg = dwarf[(modrm >> 3 & 7) | (rex & 4) << 1];
  unsigned other = dwarf[(modrm & 7) | (rex & 1) << 3];
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
    return address_of(code, rex, modrm, regs, &address) &&
           load(address, &regs->r[reg]);
  case 0x8d:
    if (!address_of(code, rex, modrm, regs, &address))
      return false;
    regs->r[reg] = address;
    return true;
  }
  return false;
}

bool ljp_unwind_jump_off(const struct ljp_cfi_row *row, struct ljp_regs *regs)
{
  struct ljp_regs target = *regs;
  struct code code = {.at = 0};
  bool jumped = false;
  code.size = (uint32_t)ljp_safe_copy(
      code.byte, (const void *)(uintptr_t)regs->r[LJP_RIP], sizeof code.byte);
  /* At the jump itself nothing of the frame is left: it is the one by which the
  ** function is left if the return address is in a register. */
  uint32_t prefixed = (code.byte[0] & 0xf0) == 0x40;
  if (code.size < 2 ||
      (code.byte[prefixed] == 0xff && row->how[LJP_RIP] != LJP_HOW_REGISTER))
    return false;
  while (!jumped)
    if (code.at >= code.size || !run_one(&code, &target, &jumped))
      return false;
  if (target.r[LJP_RSP] - regs->r[LJP_RSP] > FAR_BYTES || target.r[LJP_RSP] & 7)
    return false;
  /* It has not landed yet: as if a call there were to return. */
  target.r[LJP_RIP]++;
  target.exact = false;
  target.known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP;
  ljp_memo_blur(regs->notes);
  *regs = target;
  return true;
}
