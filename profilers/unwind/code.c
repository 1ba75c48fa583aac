/*
** What the machine code at an address says, where call frame information is
** wrong or missing: whether a call or a system call comes before it, whether it
** returns, and whether it is libc's return from a signal handler.
** Safety: LJP_SIGSAFE throughout; code is read by fault-safe copies.
*/
#include <string.h>

#include "profilers/unwind/step.h"
#include "src/base/saferead.h"

bool ljp_unwind_follows_call(uint64_t address)
{
  uint8_t code[7];
  if (ljp_safe_copy(code, (const void *)(uintptr_t)(address - sizeof code),
                    sizeof code) != sizeof code)
    return false;
  /* e8 rel32, and ff /2 with its operand in 0 to 5 further bytes. */
  if (code[2] == 0xe8)
    return true;
  for (unsigned i = 0; i < 6; i++)
    if (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2)
      return true;
  return false;
}

bool ljp_unwind_follows_syscall(uint64_t address)
{
  uint8_t code[2] = {0, 0};
  ljp_safe_copy(code, (const void *)(uintptr_t)(address - 2), sizeof code);
  return code[0] == 0x0f && code[1] == 0x05;
}

/* boost::context has no CFI. It starts a fiber with push rbp; jmp rbx, so the
** fiber's function returns to the rest: xor rdi, rdi; call _exit; hlt. */
bool ljp_unwind_is_fiber_root(uint64_t address)
{
  static const uint8_t before_call[] = {0x55, 0xff, 0xe3, 0x48,
                                        0x31, 0xff, 0xe8};
  enum { HLT = 11, BYTES = 12 };
  uint8_t code[BYTES];
  return ljp_safe_copy(code, (const void *)(uintptr_t)(address - 3), BYTES) ==
             BYTES &&
         !memcmp(code, before_call, sizeof before_call) && code[HLT] == 0xf4;
}

/* Pops the return address below cfa. All other registers are the caller's
** already. */
static bool code_return(struct ljp_regs *regs, uint64_t cfa)
{
  uint64_t rip;
  if (!ljp_unwind_cfa_ok(cfa, regs->r[LJP_RSP]) ||
      !ljp_safe_load((const void *)(uintptr_t)(cfa - 8), &rip) ||
      !ljp_unwind_follows_call(rip))
    return false;
  regs->r[LJP_RIP] = rip;
  regs->r[LJP_RSP] = cfa;
  regs->known =
      (regs->known & LJP_REGS_CALLEE_SAVED) | 1u << LJP_RIP | 1u << LJP_RSP;
  regs->exact = false;
  return true;
}

/* At a ret, the calling convention says that the registers are the caller's
** again, and that the return address is on top of the stack. GCC leaves a
** realigned stack by
**   pop rbp; lea rsp, [r10 - 8]; ret
** and its CFI looks for rbp on the stack at the last two instructions, too. */
bool ljp_unwind_step_at_return(struct ljp_regs *regs)
{
  static const uint8_t dwarf[8] = {LJP_RAX, LJP_RCX, LJP_RDX, LJP_RBX,
                                   LJP_RSP, LJP_RBP, LJP_RSI, LJP_RDI};
  uint8_t code[5] = {0};
  ljp_safe_copy(code, (const void *)(uintptr_t)regs->r[LJP_RIP], sizeof code);
  if (code[0] == 0xc3 || code[0] == 0xc2 ||
      ((code[0] == 0xf3 || code[0] == 0xf2) && code[1] == 0xc3))
    return code_return(regs, regs->r[LJP_RSP] + 8);
  if ((code[0] & 0xfe) == 0x48 && code[1] == 0x8d && (code[2] & 0xf8) == 0x60 &&
      code[2] != 0x64 && code[3] == 0xf8 && code[4] == 0xc3) {
    unsigned reg = code[2] & 7;
    reg = code[0] & 1 ? reg + 8 : dwarf[reg];
    return regs->known >> reg & 1 && code_return(regs, regs->r[reg]);
  }
  return false;
}

/* mov rax, 15 (in its short or long form); syscall */
bool ljp_unwind_is_signal_return(uint64_t pc)
{
  static const uint64_t mov_rax = UINT64_C(0x0f0000000fc0c748);
  static const uint64_t mov_eax = UINT64_C(0x050f0000000fb8);
  uint64_t code = 0;
  uint8_t last;
  if (ljp_safe_copy(&code, (const void *)(uintptr_t)pc, 8) < 7)
    return false;
  if ((code & (UINT64_MAX >> 8)) == mov_eax)
    return true;
  return code == mov_rax &&
         ljp_safe_copy(&last, (const void *)(uintptr_t)(pc + 8), 1) &&
         last == 0x05;
}
