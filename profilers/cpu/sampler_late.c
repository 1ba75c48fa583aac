/*
** A sample that falls into the move of a Lua stack is taken at its end, from a
** hook there. What makes its stack that of the place where it fell: the
** registers of ordinary code, and the hook's own frames taken off. LJP_SIGSAFE
** throughout; part of sampler.c, and of the oracle, which proves it.
*/
#include "profilers/cpu/sampler.h"

#include <stddef.h>

void ljp_sampler_note_place(struct ljp_sampler_place *place,
                            const struct ljp_stack *stack)
{
  uint32_t n = stack->count;
  while (n && ljp_frame_kind(stack->frames[n - 1]) != LJP_FRAME_HOST)
    n--;
  place->count = 0;
  while (place->count < LJP_SAMPLER_DEFERRED && n--)
    place->frames[place->count++] = stack->frames[n];
}

/* The callers of the move are those of the place that was put off. The frame
** above them is the place's own: the move may have left by a tail call into
** the hook. All above that is the hook. */
void ljp_sampler_drop_hook(const struct ljp_sampler_place *place,
                           struct ljp_stack *stack)
{
  uint32_t hosts = 0, same = 0;
  while (hosts < stack->count &&
         ljp_frame_kind(stack->frames[hosts]) == LJP_FRAME_HOST)
    hosts++;
  while (same < place->count && same < hosts &&
         stack->frames[hosts - 1 - same] == place->frames[same])
    same++;
  if (hosts == same)
    return;
  uint32_t drop = hosts - same - 1;
  if (place->count > same)
    stack->frames[drop] = place->frames[same];
  else if (!drop)
    drop = 1; /* our own */
  for (uint32_t i = drop; i < stack->count; i++)
    stack->frames[i - drop] = stack->frames[i];
  stack->count -= drop;
}

/* rdi: regs. A leaf without a frame of its own: what it sees in the registers
** that functions preserve is the caller's. */
__asm__(".text\n"
        ".globl ljp_sampler_registers\n"
        ".hidden ljp_sampler_registers\n"
        ".type ljp_sampler_registers, @function\n"
        "ljp_sampler_registers:\n"
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
        ".size ljp_sampler_registers, .-ljp_sampler_registers\n");
_Static_assert(LJP_RBX == 3 && LJP_RBP == 6 && LJP_RSP == 7 && LJP_R12 == 12 &&
                   LJP_R15 == 15 && LJP_RIP == 16,
               "the offsets above");
_Static_assert(offsetof(struct ljp_regs, r) == 0, "the offsets above");
