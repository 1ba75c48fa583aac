/*
** What a sample keeps of its walk; see sample_stack.h. LJP_SIGSAFE throughout.
*/
#include "profilers/cpu/sample_stack.h"

#include "src/base/assert.h"
#include "src/base/tls.h"

LJP_SIGSAFE static bool sample_is_guest(uint64_t frame)
{
  unsigned kind = ljp_frame_kind(frame);
  return kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED ||
         kind == LJP_FRAME_BUILTIN || kind == LJP_FRAME_CFUNC;
}

/* A frame that ljp_sample_add_leaf() has added. */
LJP_SIGSAFE static bool sample_is_added(uint64_t frame)
{
  unsigned kind = ljp_frame_kind(frame);
  return kind == LJP_FRAME_KERNEL || kind == LJP_FRAME_PROFILER;
}

enum ljp_vmstate ljp_sample_vmstate(const struct ljp_walk *walk, bool *lfunc)
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

void ljp_sample_keep_leaf(struct ljp_stack *stack)
{
  uint32_t n = stack->count > 0;
  if (stack->count > 1 && sample_is_added(stack->frames[0]))
    n = 2;
  for (uint32_t i = 0; i < stack->count; i++) {
    if (!sample_is_guest(stack->frames[i]))
      continue;
    if (i >= n)
      stack->frames[n++] = stack->frames[i];
    break;
  }
  ljp_assert(n <= stack->count);
  stack->count = n;
  stack->cut = LJP_CUT_NONE;
}

void ljp_sample_add_leaf(struct ljp_stack *stack, enum ljp_frame_kind kind,
                         uint32_t limit)
{
  ljp_assert(limit > 0);
  if (stack->count >= limit) { /* drop the outermost frame */
    stack->count = limit - 1;
    stack->cut = LJP_CUT_DEPTH;
  }
  for (uint32_t i = stack->count++; i > 0; i--)
    stack->frames[i] = stack->frames[i - 1];
  stack->frames[0] = ljp_frame(kind, 0, 0);
}

/* The backtracer's callback has no context argument. The callback runs on the
** thread of the handler, so a thread-local variable replaces the argument. */
static __thread struct ljp_stack *backtraced LJP_TLS_SIGSAFE;

static void *sample_add_frame(int number, void *address)
{
  struct ljp_stack *stack = backtraced;
  (void)number;
  if (!address || !stack ||
      !ljp_stack_add(
          stack, ljp_frame(LJP_FRAME_HOST, 0, (uint64_t)(uintptr_t)address)))
    return NULL;
  return address;
}

void ljp_sample_backtrace(struct ljp_stack *stack,
                          void (*backtracer)(void *(*frame_writer)(int frame_no,
                                                                   void *addr)))
{
  uint32_t guests = 0;
  for (uint32_t i = 0; i < stack->count; i++)
    if (ljp_frame_kind(stack->frames[i]) != LJP_FRAME_HOST)
      stack->frames[guests++] = stack->frames[i];
  stack->count = guests;
  stack->cut = LJP_CUT_NONE;
  backtraced = stack;
  backtracer(sample_add_frame);
  backtraced = NULL;
}
