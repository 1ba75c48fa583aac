/*
** lj_vm_ffi_call(): the routine of the VM's assembly by which the interpreter
** calls a C function through the FFI. Its frame has no fixed size.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_ctype.h"
#include "lj_ccall.h"
#include "lj_vm.h"

#include "src/luajit/asm/vmmap.h"
#include "src/luajit/frames/walk.h"

/* The words between rsp and the frame pointer of lj_vm_ffi_call(), at most: the
** saved rbx, the arguments, and what aligns them. */
enum { FFI_STACK_WORDS = sizeof(((CCallState *)0)->stack) / 8 + 4 };

/* Does this return address follow a call of lj_vm_ffi_call()? */
LJP_SIGSAFE static bool ffi_follows_call(uint64_t ret)
{
  uint8_t code[5];
  int32_t distance;
  if (!ljp_load_bytes(code, ret - 5, 5) || code[0] != 0xe8)
    return false;
  memcpy(&distance, code + 1, 4);
  return ret + (uint64_t)(int64_t)distance ==
         (uint64_t)(uintptr_t)lj_vm_asm_begin + LJP_VMMAP_FFI_CALL;
}

/* The frame pointer of lj_vm_ffi_call() while the C function runs that it
** calls, for a walk that does not know rbp. Between rsp and the saved rbx there
** is nothing but the function's arguments on the stack; the return address
** above is that of the only call. 0: not found. */
LJP_SIGSAFE static uint64_t ffi_frame_pointer(const struct ljp_regs *regs)
{
  uint64_t ret;
  for (uint32_t i = 1; i <= FFI_STACK_WORDS; i++) {
    uint64_t fp = regs->r[LJP_RSP] + 8 * (uint64_t)i;
    if (!ljp_load(fp + 8, &ret))
      return 0;
    if (ffi_follows_call(ret))
      return fp;
  }
  return 0;
}

/* lj_vm_ffi_call() keeps rbp as frame pointer and saves rbx below it. */
enum ljp_guest_result ljp_vm_step_ffi_call(struct ljp_regs *regs,
                                           uint32_t offset,
                                           struct ljp_stack *stack)
{
  uint64_t sp = regs->r[LJP_RSP], rbp, rbx = 0, ret;
  bool saved_rbx = false;
  /* push rbp (1 byte); mov rbp,rsp (3); push rbx (1) ... leave (1); ret */
  if (offset == 0 || offset == LJP_VMMAP_CODE_SIZE - LJP_VMMAP_FFI_CALL - 1)
    return ljp_vm_step_host(regs, 0, stack) ? LJP_GUEST_STEPPED
                                            : LJP_GUEST_STOPPED;
  if (offset == 1) {
    if (!ljp_vm_step_host(regs, 8, stack))
      return LJP_GUEST_STOPPED;
    return LJP_GUEST_STEPPED;
  }
  uint64_t fp = regs->r[LJP_RBP];
  ljp_memo_use(regs->notes, 1u << LJP_RBP);
  if (!KNOWN(regs, LJP_RBP) && !regs->exact) {
    ljp_memo_blur(regs->notes);
    fp = ffi_frame_pointer(regs);
  } else if (!KNOWN(regs, LJP_RBP)) {
    fp = 0;
  }
  if (fp < sp) {
    stack->cut = LJP_CUT_NO_BASE;
    return LJP_GUEST_STOPPED;
  }
  if (offset > 4) {
    saved_rbx = true;
    if (!ljp_load_noted(fp - 8, &rbx, regs->notes)) {
      stack->cut = LJP_CUT_BAD_READ;
      return LJP_GUEST_STOPPED;
    }
  }
  if (!ljp_load_noted(fp, &rbp, regs->notes) ||
      !ljp_load_noted(fp + 8, &ret, regs->notes)) {
    stack->cut = LJP_CUT_BAD_READ;
    return LJP_GUEST_STOPPED;
  }
  if (saved_rbx) {
    regs->r[LJP_RBX] = rbx;
    regs->known |= 1u << LJP_RBX;
  }
  regs->r[LJP_RBP] = rbp;
  regs->known |= 1u << LJP_RBP;
  regs->r[LJP_RIP] = ret;
  regs->r[LJP_RSP] = fp + 16;
  regs->known &= LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP;
  regs->exact = false;
  return LJP_GUEST_STEPPED;
}
