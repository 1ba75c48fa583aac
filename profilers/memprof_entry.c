/*
** The recorder's entries; see memprof_entry.h. x86-64, System V: ud in rdi, ptr
** in rsi, osize in rdx, nsize in rcx.
*/
#include "profilers/memprof_entry.h"

#include <stddef.h>

_Static_assert(sizeof(struct ljp_caller) == 56 &&
                   offsetof(struct ljp_caller, rbp) == 40 &&
                   offsetof(struct ljp_caller, rip) == 48,
               "what `enter` pushes");
_Static_assert(offsetof(struct ljp_recorder, alloc) == 0 &&
                   offsetof(struct ljp_recorder, ud) == 8 &&
                   offsetof(struct ljp_recorder, until) == 16 &&
                   offsetof(struct ljp_recorder, track.filter) == 24,
               "what ljp_sampled_hook reads");
_Static_assert(LJP_TRACK_FILTER_BITS == 12 && LJP_TRACK_FILTER_SHIFT == 20,
               "... and how it hashes: see ljp_track_filter_at()");

/* clang-format off */
#define PUSH(reg)                                                              \
  "  pushq %" reg "\n"                                                         \
  "  .cfi_adjust_cfa_offset 8\n"
#define POP(reg)                                                               \
  "  popq %" reg "\n"                                                          \
  "  .cfi_adjust_cfa_offset -8\n"
/* The registers that are their owner's, in the order of struct ljp_caller from
** its end; the functions keep them, so they need not come back from there. */
#define CALLER                                                                 \
  PUSH("rbp") PUSH("rbx") PUSH("r12") PUSH("r13") PUSH("r14") PUSH("r15")      \
  "  movq %rsp, %r8\n"
#define CALL(function)                                                         \
  "  subq $8, %rsp\n"                                                         \
  "  .cfi_adjust_cfa_offset 8\n"                                              \
  "  call " function "\n"                                                     \
  "  addq $56, %rsp\n"                                                        \
  "  .cfi_adjust_cfa_offset -56\n"                                            \
  "  ret\n"
/* clang-format on */
#define BEGIN(name)                                                            \
  ".pushsection .text\n.balign 32\n.globl " name "\n.hidden " name "\n"        \
  ".type " name ", @function\n" name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " name ", . - " name "\n.popsection\n"

/* clang-format off */
__asm__(BEGIN("ljp_every_hook")
        CALLER
        "  testq %rcx, %rcx\n"
        "  jnz 1f\n"
        "  testq %rsi, %rsi\n"
        "  jz 1f\n"
        PUSH("rdi") PUSH("rsi") PUSH("rdx")
        "  call ljp_recorder_swept\n"
        POP("rdx") POP("rsi") POP("rdi")
        "  xorl %ecx, %ecx\n"
        "  testb %al, %al\n"
        "  jz 2f\n"
        "  addq $48, %rsp\n"
        "  .cfi_adjust_cfa_offset -48\n"
        "  movq (%rdi), %rax\n"
        "  movq 8(%rdi), %rdi\n"
        "  jmp *%rax\n"
        "2:\n"
        "  .cfi_adjust_cfa_offset 48\n"
        "  movq %rsp, %r8\n"
        "1:\n"
        CALL("ljp_recorder_every")
        END("ljp_every_hook"));
/* clang-format on */

__asm__(BEGIN("ljp_sampled_hook") "  testq %rcx, %rcx\n"
                                  "  jz 2f\n"
                                  "  testq %rsi, %rsi\n"
                                  "  jnz 3f\n"
                                  "  subq %rcx, 16(%rdi)\n"
                                  "  js 4f\n"
                                  "  subq $24, %rsp\n"
                                  "  .cfi_adjust_cfa_offset 24\n"
                                  "  movq %rdi, 8(%rsp)\n"
                                  "  movq %rcx, (%rsp)\n"
                                  "  movq (%rdi), %rax\n"
                                  "  movq 8(%rdi), %rdi\n"
                                  "  call *%rax\n"
                                  "  testq %rax, %rax\n"
                                  "  jz 5f\n"
                                  "  addq $24, %rsp\n"
                                  "  .cfi_adjust_cfa_offset -24\n"
                                  "  ret\n"
                                  "5:\n" /* refused: that is told in any case */
                                  "  .cfi_adjust_cfa_offset 24\n"
                                  "  movq (%rsp), %rcx\n"
                                  "  movq 8(%rsp), %rdi\n"
                                  "  addq $24, %rsp\n"
                                  "  .cfi_adjust_cfa_offset -24\n"
                                  "  xorl %esi, %esi\n"
                                  "  xorl %edx, %edx\n"
                                  "  movl $1, %r9d\n"
                                  "  jmp 6f\n"
                                  "2:\n" /* a block is freed */
                                  "  movl %esi, %eax\n"
                                  "  shrl $4, %eax\n"
                                  "  imull $0x9e3779b1, %eax, %eax\n"
                                  "  shrl $20, %eax\n"
                                  "  cmpb $0, 24(%rdi,%rax)\n"
                                  "  jne 4f\n"
                                  "  movq (%rdi), %rax\n"
                                  "  movq 8(%rdi), %rdi\n"
                                  "  jmp *%rax\n"
                                  "3:\n" /* one moves: also counts */
                                  "  subq %rcx, 16(%rdi)\n"
                                  "4:\n"
                                  "  xorl %r9d, %r9d\n"
                                  "6:\n" CALLER CALL("ljp_recorder_sampled")
                                      END("ljp_sampled_hook"));
