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
                   offsetof(struct ljp_recorder, last_size) == 24 &&
                   offsetof(struct ljp_recorder, give_back) == 32 &&
                   offsetof(struct ljp_recorder, fresh) == 40 &&
                   offsetof(struct ljp_recorder, track.filter) == 64 &&
                   offsetof(struct ljp_recorder, track.wide) == 4160 &&
                   offsetof(struct ljp_recorder, track.wide_shift) == 4168,
               "what the hooks read");
_Static_assert(LJP_TRACK_FILTER_BITS == 12,
               "... and how they hash: ljp_track_filter_at(), _wide_at()");

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
  ".pushsection .text\n.balign 64\n.globl " name "\n.hidden " name "\n"        \
  ".type " name ", @function\n" name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " name ", . - " name "\n.popsection\n"

/* clang-format off */
__asm__(BEGIN("ljp_every_hook")
        CALLER
        "  testq %rsi, %rsi\n"
        "  jz 3f\n"
        "  testq %rcx, %rcx\n"
        "  jnz 1f\n"
        PUSH("rdi") PUSH("rsi") PUSH("rdx")
        "  call ljp_recorder_swept\n"
        POP("rdx") POP("rsi") POP("rdi")
        "  xorl %ecx, %ecx\n"
        "  testb %al, %al\n"
        "  jz 2f\n"
        "  addq $48, %rsp\n"
        "  .cfi_adjust_cfa_offset -48\n"
        "  movq 32(%rdi), %rax\n"
        "  movq 8(%rdi), %rdi\n"
        "  jmp *%rax\n"
        "3:\n"
        "  .cfi_adjust_cfa_offset 48\n"
        "  testq %rcx, %rcx\n"
        "  jz 1f\n"
        CALL("*40(%rdi)")
        "2:\n"
        "  .cfi_adjust_cfa_offset 48\n"
        "  movq %rsp, %r8\n"
        "1:\n"
        CALL("ljp_recorder_every")
        END("ljp_every_hook"));
/* clang-format on */

/* What the two hooks of a session that samples have in common. How they go on to
** the allocator below is their own: between these, for an allocation and, at 8,
** for a block that is freed. */
/* clang-format off */
#define COUNT_ALLOCATION                                                       \
  "  testq %rcx, %rcx\n"                                                       \
  "  jz 2f\n"                                                                  \
  "  testq %rsi, %rsi\n"                                                       \
  "  jnz 3f\n"                                                                 \
  "  subq %rcx, 16(%rdi)\n"                                                    \
  "  js 4f\n"
/* A block is freed: to 7 if the first filter knows it ... */
#define ASK_FILTER                                                             \
  "2:\n"                                                                       \
  "  movzwl %si, %eax\n"                                                       \
  "  shrl $4, %eax\n"                                                          \
  "  cmpb %cl, " FILTER "(%rdi,%rax)\n" /* that is 0 */                         \
  "  jne 7f\n"
/* ... and from there back to 8 if the wide one does not. One that moves also
** counts. */
#define OTHERS                                                                 \
  "7:\n"                                                                       \
  "  movq %rsi, %rax\n"                                                        \
  "  shrq $4, %rax\n"                                                          \
  "  imull $0x9e3779b1, %eax, %eax\n"                                          \
  "  movl " WIDE_SHIFT "(%rdi), %ecx\n"                                        \
  "  shrl %cl, %eax\n"                                                         \
  "  xorl %ecx, %ecx\n"                                                        \
  "  addq " WIDE "(%rdi), %rax\n"                                              \
  "  cmpb $0, (%rax)\n"                                                        \
  "  je 8b\n"                                                                  \
  "  jmp 4f\n"                                                                 \
  "3:\n"                                                                       \
  "  subq %rcx, 16(%rdi)\n"                                                    \
  "4:\n"                                                                       \
  "  xorl %r9d, %r9d\n"
#define FILTER "64"
#define WIDE "4160"
#define WIDE_SHIFT "4168"

__asm__(BEGIN("ljp_sampled_own_hook")
        COUNT_ALLOCATION
        "  movq %rcx, 24(%rdi)\n"
        "  movq %rcx, %rsi\n"
        "  movq 8(%rdi), %rdi\n"
        "  jmp lj_alloc_malloc\n"
        ASK_FILTER
        "8:\n"
        "  movq 8(%rdi), %rdi\n"
        "  jmp lj_alloc_free\n"
        OTHERS
        CALLER
        CALL("ljp_recorder_sampled")
        END("ljp_sampled_own_hook"));

/* What the allocator makes of a size is not much more; if it is, then this
** request is somebody's who has not come by here. */
__asm__(BEGIN("ljp_sampled_refused")
        "  movq 24(%rdi), %rcx\n"
        "  testq %rcx, %rcx\n"
        "  jz 1f\n"
        "  subq %rcx, %rsi\n"
        "  cmpq $128, %rsi\n"
        "  ja 1f\n"
        "  xorl %esi, %esi\n"
        "  xorl %edx, %edx\n"
        "  movl $1, %r9d\n"
        CALLER
        CALL("ljp_recorder_sampled")
        "1:\n"
        "  ret\n"
        END("ljp_sampled_refused"));

__asm__(BEGIN("ljp_sampled_hook")
        COUNT_ALLOCATION
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
        ASK_FILTER
        "8:\n"
        "  movq (%rdi), %rax\n"
        "  movq 8(%rdi), %rdi\n"
        "  jmp *%rax\n"
        OTHERS
        "6:\n"
        CALLER
        CALL("ljp_recorder_sampled")
        END("ljp_sampled_hook"));
/* clang-format on */
