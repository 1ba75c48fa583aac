/*
** What a sample says beside its stack: which VM, in which state, and how much
** of the stack the mode wants. LJP_SIGSAFE throughout; part of sampler.c.
*/
#include "profilers/cpu/sampler_priv.h"

#define shared ljp_sampler_shared

LJP_SIGSAFE static bool is_guest(uint64_t frame)
{
  unsigned kind = ljp_frame_kind(frame);
  return kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED ||
         kind == LJP_FRAME_BUILTIN || kind == LJP_FRAME_CFUNC;
}

LJP_SIGSAFE static bool is_put(uint64_t frame)
{
  unsigned kind = ljp_frame_kind(frame);
  return kind == LJP_FRAME_KERNEL || kind == LJP_FRAME_PROFILER;
}

/* The interpreter's state is refined by the function that it is in. */
LJP_SIGSAFE enum ljp_vmstate ljp_sampler_state_of(const struct ljp_walk *walk,
                                                  bool *lfunc)
{
  const struct ljp_stack *stack = &walk->stack;
  enum ljp_vmstate state = walk->guest.state;
  *lfunc = false;
  if (state == LJP_VMSTATE_UNKNOWN)
    return walk->guest.vm || stack->cut ? LJP_VMSTATE_UNKNOWN
                                        : LJP_VMSTATE_HOST;
  if (state != LJP_VMSTATE_INTERP)
    return state;
  for (uint32_t i = 0; i < stack->count; i++) {
    switch (ljp_frame_kind(stack->frames[i])) {
    case LJP_FRAME_LUA:
      *lfunc = ljp_frame_kind(stack->frames[0]) == LJP_FRAME_VM;
      return LJP_VMSTATE_INTERP;
    case LJP_FRAME_BUILTIN:
      return LJP_VMSTATE_BUILTIN;
    case LJP_FRAME_CFUNC:
      return LJP_VMSTATE_C;
    default:
      break;
    }
  }
  return LJP_VMSTATE_INTERP;
}

/* Mode L: where it is (the kernel or ourselves, and their caller), and the function
** that this belongs to. */
LJP_SIGSAFE void ljp_sampler_keep_leaf(struct ljp_stack *stack)
{
  uint32_t n = stack->count > 1 && is_put(stack->frames[0]) ? 2
               : stack->count                               ? 1
                                                            : 0;
  for (uint32_t i = 0; i < stack->count; i++) {
    if (!is_guest(stack->frames[i]))
      continue;
    if (i >= n)
      stack->frames[n++] = stack->frames[i];
    break;
  }
  stack->count = n;
  stack->cut = LJP_CUT_NONE;
}

LJP_SIGSAFE void ljp_sampler_put_leaf(struct ljp_stack *stack,
                                      enum ljp_frame_kind kind, uint32_t limit)
{
  if (stack->count >= limit) { /* The outermost one is not among them. */
    stack->count = limit - 1;
    stack->cut = LJP_CUT_DEPTH;
  }
  for (uint32_t i = stack->count++; i > 0; i--)
    stack->frames[i] = stack->frames[i - 1];
  stack->frames[0] = ljp_frame(kind, 0, 0);
}

/* A host's own backtracer: its frames take the place of ours. Its callback
** has no argument; the handler is on this thread, so the thread's own word
** will do. */
static __thread struct ljp_stack *plugged
    __attribute__((tls_model("initial-exec")));

static void *plugged_frame(int number, void *address)
{
  struct ljp_stack *stack = plugged;
  (void)number;
  if (!address || !stack ||
      !ljp_stack_add(
          stack, ljp_frame(LJP_FRAME_HOST, 0, (uint64_t)(uintptr_t)address)))
    return NULL;
  return address;
}

LJP_SIGSAFE void ljp_sampler_plug_in(struct ljp_stack *stack)
{
  uint32_t guests = 0;
  for (uint32_t i = 0; i < stack->count; i++)
    if (ljp_frame_kind(stack->frames[i]) != LJP_FRAME_HOST)
      stack->frames[guests++] = stack->frames[i];
  stack->count = guests;
  stack->cut = LJP_CUT_NONE;
  plugged = stack;
  shared.backtracer(plugged_frame);
  plugged = NULL;
}
