/*
** Deferred samples; see deferred.h. LJP_SIGSAFE throughout.
*/
#include "profilers/cpu/deferred.h"

#include "src/base/assert.h"

void ljp_deferred_note(struct ljp_deferred_place *place,
                       const struct ljp_stack *stack)
{
  uint32_t n = stack->count;
  while (n && ljp_frame_kind(stack->frames[n - 1]) != LJP_FRAME_HOST)
    n--;
  place->count = 0;
  while (place->count < LJP_DEFERRED_FRAMES && n--)
    place->frames[place->count++] = stack->frames[n];
}

/* The callers of the move are the same at the place and in the hook. The next
** frame above them becomes that of the place, because the move may have reached
** the hook by a tail call. All frames above belong to the hook. */
void ljp_deferred_drop_hook(const struct ljp_deferred_place *place,
                            struct ljp_stack *stack)
{
  uint32_t hosts = 0, same = 0;
  ljp_assert(place->count <= LJP_DEFERRED_FRAMES);
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
    drop = 1; /* the frame is the hook's */
  ljp_assert(drop <= stack->count);
  for (uint32_t i = drop; i < stack->count; i++)
    stack->frames[i - drop] = stack->frames[i];
  stack->count -= drop;
}
