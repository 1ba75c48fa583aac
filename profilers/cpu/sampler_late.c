/*
** A sample that falls into the move of a Lua stack is taken at its end, from a
** hook there. What makes its stack that of the place where it fell: the
** registers of ordinary code, and the hook's own frames taken off. LJP_SIGSAFE
** throughout; part of sampler.c, and of the oracle, which proves it.
*/
#include "profilers/cpu/sampler.h"

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
