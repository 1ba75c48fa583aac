/*
** The recorder's entries; see entry.h. x86-64, System V: ud in rdi, ptr
** in rsi, osize in rdx, nsize in rcx.
*/
#include "profilers/memory/entry.h"

#include <stddef.h>

_Static_assert(sizeof(struct ljp_caller) == 7 * 8 &&
                   offsetof(struct ljp_caller, r15) == 0 &&
                   offsetof(struct ljp_caller, rbp) == 5 * 8 &&
                   offsetof(struct ljp_caller, rip) == 6 * 8,
               "CALLER pushes these registers in this order");
_Static_assert(LJP_TRACK_FILTER_BITS == 12,
               "the hooks hash as ljp_track_filter_at() and _wide_at() do");

/* Field offsets as symbols of the assembler, since only assembly inside a
** function can use constants of the compiler. Never called. */
#define VALUE(name, value)                                                     \
  __asm__ volatile(".set .Lljp_" name ", %c0" : : "i"(value))
static __attribute__((used)) void entry_values(void)
{
  VALUE("alloc", offsetof(struct ljp_recorder, alloc));
  VALUE("ud", offsetof(struct ljp_recorder, ud));
  VALUE("give_back", offsetof(struct ljp_recorder, give_back));
  VALUE("fresh", offsetof(struct ljp_recorder, fresh));
  VALUE("filter", offsetof(struct ljp_recorder, track.filter));
  VALUE("wide", offsetof(struct ljp_recorder, track.wide));
  VALUE("wide_shift", offsetof(struct ljp_recorder, track.wide_shift));
  VALUE("until", offsetof(struct ljp_recorder, here.until));
  VALUE("own_until", offsetof(struct ljp_own, down.until));
  VALUE("own_last_size", offsetof(struct ljp_own, down.last_size));
  VALUE("own_ud", offsetof(struct ljp_own, ud));
  VALUE("own_recorder", offsetof(struct ljp_own, recorder));
  VALUE("own_alloc", offsetof(struct ljp_own, alloc));
  VALUE("block_flag", LJP_GUEST_BLOCK_FLAG);
}

/* clang-format off */
#define PUSH(reg)                                                              \
  "  pushq %" reg "\n"                                                         \
  "  .cfi_adjust_cfa_offset 8\n"
#define POP(reg)                                                               \
  "  popq %" reg "\n"                                                          \
  "  .cfi_adjust_cfa_offset -8\n"
/* Pushes the registers that functions preserve, in the order of struct
** ljp_caller from its end. Since the callees preserve them, they need not be
** popped again. */
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
/* Around a call of the allocator: if it refuses, the recorder gets the arguments. */
#define KEEP_ARGUMENTS                                                         \
  "  subq $40, %rsp\n"                                                         \
  "  .cfi_adjust_cfa_offset 40\n"                                              \
  "  movq %rdi, (%rsp)\n"                                                      \
  "  movq %rsi, 8(%rsp)\n"                                                     \
  "  movq %rdx, 16(%rsp)\n"                                                    \
  "  movq %rcx, 24(%rsp)\n"
#define GET_ARGUMENTS                                                          \
  "  movq (%rsp), %rdi\n"                                                      \
  "  movq 8(%rsp), %rsi\n"                                                     \
  "  movq 16(%rsp), %rdx\n"                                                    \
  "  movq 24(%rsp), %rcx\n"                                                    \
  "  addq $40, %rsp\n"                                                         \
  "  .cfi_adjust_cfa_offset -40\n"
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
        "  movq .Lljp_give_back(%rdi), %rax\n"
        "  movq .Lljp_ud(%rdi), %rdi\n"
        "  jmp *%rax\n"
        "3:\n"
        "  .cfi_adjust_cfa_offset 48\n"
        "  testq %rcx, %rcx\n"
        "  jz 1f\n"
        CALL("*.Lljp_fresh(%rdi)")
        "2:\n"
        "  .cfi_adjust_cfa_offset 48\n"
        "  movq %rsp, %r8\n"
        "1:\n"
        CALL("ljp_recorder_every")
        END("ljp_every_hook"));
/* clang-format on */

/* The entry of a sampled session on LuaJIT's own allocator. */
/* clang-format off */
#define DOWN "ljp_own+.Lljp_own_until(%rip)"
#define LAST_SIZE "ljp_own+.Lljp_own_last_size(%rip)"
#define UD "ljp_own+.Lljp_own_ud(%rip)"
#define RECORDER "ljp_own+.Lljp_own_recorder(%rip)"
#define ALLOC "ljp_own+.Lljp_own_alloc(%rip)"

__asm__(".hidden ljp_own\n"
        BEGIN("ljp_sampled_own_hook")
        "  testq %rcx, %rcx\n"
        "  jz 2f\n"
        "  testq %rsi, %rsi\n"
        "  jnz 3f\n"
        "  subq %rcx, " DOWN "\n"
        "  js 4f\n"
        "  movq %rcx, " LAST_SIZE "\n"
        "  movq %rcx, %rsi\n"
        "  jmp lj_alloc_malloc\n"
        "2:\n"
        "  testq %rsi, %rsi\n"
        "  jz 5f\n"
        "  testb $.Lljp_block_flag, -8(%rsi)\n" /* ljp_guest_block_flag() */
        "  jnz 4f\n"
        "  jmp lj_alloc_free\n"
        "5:\n"
        "  xorl %eax, %eax\n"
        "  ret\n"
        "3:\n" /* a block that moves also counts */
        "  subq %rcx, " DOWN "\n"
        "  js 4f\n"
        "  testb $.Lljp_block_flag, -8(%rsi)\n"
        "  jnz 4f\n"
        "  movq $0, " LAST_SIZE "\n" /* 6 tells what is refused */
        KEEP_ARGUMENTS
        "  call *" ALLOC "\n"
        GET_ARGUMENTS
        "  testq %rax, %rax\n"
        "  jz 6f\n"
        "7:\n"
        "  ret\n"
        "6:\n"
        "  movl $1, %r9d\n"
        "  cmpq %rdi, " UD "\n"
        "  jne 7b\n"
        "  jmp 8f\n"
        "4:\n"
        "  cmpq %rdi, " UD "\n"
        "  jne ljp_sampled_late\n"
        "  xorl %r9d, %r9d\n"
        "8:\n"
        "  movq " RECORDER ", %rdi\n"
        CALLER
        CALL("ljp_recorder_sampled")
        END("ljp_sampled_own_hook"));

/* The allocator rounds a size up only a little. If nb is much larger, another
** user of the allocator made this request, not through this entry. */
__asm__(BEGIN("ljp_sampled_refused")
        "  movq " LAST_SIZE ", %rcx\n"
        "  testq %rcx, %rcx\n"
        "  jz 1f\n"
        "  subq %rcx, %rsi\n"
        "  cmpq $128, %rsi\n"
        "  ja 1f\n"
        "  movq " RECORDER ", %rdi\n"
        "  xorl %esi, %esi\n"
        "  xorl %edx, %edx\n"
        "  movl $1, %r9d\n"
        CALLER
        CALL("ljp_recorder_sampled")
        "1:\n"
        "  ret\n"
        END("ljp_sampled_refused"));

/* The same on a host's own allocator. */
#define UNTIL ".Lljp_until"
#define FILTER ".Lljp_filter"
#define WIDE ".Lljp_wide"
#define WIDE_SHIFT ".Lljp_wide_shift"

__asm__(BEGIN("ljp_sampled_hook")
        "  testq %rcx, %rcx\n"
        "  jz 2f\n"
        "  testq %rsi, %rsi\n"
        "  jnz 3f\n"
        "  subq %rcx, " UNTIL "(%rdi)\n"
        "  js 4f\n"
        "  subq $24, %rsp\n"
        "  .cfi_adjust_cfa_offset 24\n"
        "  movq %rdi, 8(%rsp)\n"
        "  movq %rcx, (%rsp)\n"
        "  movq .Lljp_alloc(%rdi), %rax\n"
        "  movq .Lljp_ud(%rdi), %rdi\n"
        "  call *%rax\n"
        "  testq %rax, %rax\n"
        "  jz 5f\n"
        "  addq $24, %rsp\n"
        "  .cfi_adjust_cfa_offset -24\n"
        "  ret\n"
        "5:\n" /* refused requests are always recorded */
        "  .cfi_adjust_cfa_offset 24\n"
        "  movq (%rsp), %rcx\n"
        "  movq 8(%rsp), %rdi\n"
        "  addq $24, %rsp\n"
        "  .cfi_adjust_cfa_offset -24\n"
        "  xorl %esi, %esi\n"
        "  xorl %edx, %edx\n"
        "  movl $1, %r9d\n"
        "  jmp 6f\n"
        /* Frees: go to 7 if the first filter has the block ... */
        "2:\n"
        "  movzwl %si, %eax\n"
        "  shrl $4, %eax\n"
        "  cmpb %cl, " FILTER "(%rdi,%rax)\n" /* %cl is 0 */
        "  jne 7f\n"
        "8:\n"
        "  movq .Lljp_alloc(%rdi), %rax\n"
        "  movq .Lljp_ud(%rdi), %rdi\n"
        "  jmp *%rax\n"
        /* ... and from there back to 8 if the wide one has not. */
        "7:\n"
        "  movq %rsi, %rax\n"
        "  shrq $4, %rax\n"
        "  imull $0x9e3779b1, %eax, %eax\n"
        "  movl " WIDE_SHIFT "(%rdi), %ecx\n"
        "  shrl %cl, %eax\n"
        "  xorl %ecx, %ecx\n"
        "  addq " WIDE "(%rdi), %rax\n"
        "  cmpb $0, (%rax)\n"
        "  je 8b\n"
        "  jmp 4f\n"
        "3:\n" /* a block that moves also counts */
        "  subq %rcx, " UNTIL "(%rdi)\n"
        "  js 4f\n"
        "  movzwl %si, %eax\n"
        "  shrl $4, %eax\n"
        "  cmpb $0, " FILTER "(%rdi,%rax)\n"
        "  jne 4f\n"
        KEEP_ARGUMENTS
        "  movq .Lljp_alloc(%rdi), %rax\n"
        "  movq .Lljp_ud(%rdi), %rdi\n"
        "  call *%rax\n"
        GET_ARGUMENTS
        "  movl $1, %r9d\n"
        "  testq %rax, %rax\n"
        "  jz 6f\n"
        "  ret\n"
        "4:\n"
        "  xorl %r9d, %r9d\n"
        "6:\n"
        CALLER
        CALL("ljp_recorder_sampled")
        END("ljp_sampled_hook"));
/* clang-format on */
