/*
** Stand-ins; see stand_in.h. LJP_SIGSAFE throughout.
*/
#include "profilers/session/stand_in.h"

#include <stddef.h>

__thread const struct ljp_regs *volatile ljp_stand_in_regs LJP_TLS_SIGSAFE;
__thread const struct ljp_caller *volatile ljp_stand_in_caller LJP_TLS_SIGSAFE;

/* rdi: regs. A leaf function without a frame: the registers that functions
** preserve still have the caller's values. */
__asm__(".text\n"
        ".globl ljp_registers_here\n"
        ".hidden ljp_registers_here\n"
        ".type ljp_registers_here, @function\n"
        "ljp_registers_here:\n"
        "  .cfi_startproc\n"
        "  movq %rbx, 24(%rdi)\n"
        "  movq %rbp, 48(%rdi)\n"
        "  leaq 8(%rsp), %rax\n"
        "  movq %rax, 56(%rdi)\n"
        "  movq %r12, 96(%rdi)\n"
        "  movq %r13, 104(%rdi)\n"
        "  movq %r14, 112(%rdi)\n"
        "  movq %r15, 120(%rdi)\n"
        "  movq (%rsp), %rax\n"
        "  movq %rax, 128(%rdi)\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size ljp_registers_here, .-ljp_registers_here\n");
_Static_assert(LJP_RBX == 3 && LJP_RBP == 6 && LJP_RSP == 7 && LJP_R12 == 12 &&
                   LJP_R15 == 15 && LJP_RIP == 16,
               "the offsets above");
_Static_assert(offsetof(struct ljp_regs, r) == 0, "the offsets above");
