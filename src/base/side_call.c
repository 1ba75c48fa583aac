/*
** The switch to a side stack and back; see side_stack.h. LJP_SIGSAFE.
**
** The frame uses rbp as its frame pointer, so every unwinder can step over it.
** The processor's shadow stack keeps working as in any other call, because the
** switch leaves the return addresses in order.
*/
#include "src/base/side_stack.h"

#if defined(__x86_64__)

__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl ljp_side_call\n"
        ".hidden ljp_side_call\n"
        ".type ljp_side_call, @function\n"
        "ljp_side_call:\n"
        ".cfi_startproc\n"
        "  pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset rbp, -16\n"
        "  movq %rsp, %rbp\n"
        ".cfi_def_cfa_register rbp\n"
        "  movq %r8, %rsp\n"
        "  call *%rcx\n"
        "  leave\n"
        ".cfi_def_cfa rsp, 8\n"
        "  ret\n"
        ".cfi_endproc\n"
        ".size ljp_side_call, . - ljp_side_call\n"
        ".popsection\n");

#else

void ljp_side_call(void *a, void *b, void *c,
                   void (*function)(void *a, void *b, void *c), void *top)
{
  (void)top;
  function(a, b, c);
}

#endif
