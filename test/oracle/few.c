/*
** Walks that know few registers; see few.h.
**
** At each instruction only the program counter and the stack pointer are known.
** What the walk finds must be the stack of a walk that knows all registers, or
** the beginning of that stack with a cut. A frame may lack its line: the
** position was in a register. Cuts behind system calls, where waiting threads
** stand, are counted.
*/
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "src/base/saferead.h"
#include "test/oracle/few.h"
#include "test/oracle/report.h"

enum { FRAMES = 8192 };
static uint64_t frames[FRAMES];
static uint64_t walks, whole, calls, calls_cut, without_line, wrong;
static bool is_verbose;

void few_init(bool verbose)
{
  is_verbose = verbose;
}

static bool few_same(uint64_t found, uint64_t wanted)
{
  if (found == wanted)
    return true;
  if (ljp_frame_kind(found) != LJP_FRAME_LUA ||
      ljp_frame_kind(wanted) != LJP_FRAME_LUA || ljp_frame_line(found) ||
      ljp_frame_proto_ref(found) != ljp_frame_proto_ref(wanted))
    return false;
  without_line++;
  return true;
}

/* from: the first frame to compare. */
static bool few_agrees(const struct ljp_stack *few, const struct ljp_stack *all,
                       uint32_t from)
{
  if (few->count > all->count || (!few->cut && few->count < all->count))
    return false;
  for (uint32_t i = from; i < few->count; i++)
    if (!few_same(few->frames[i], all->frames[i]))
      return false;
  return true;
}

static bool few_at_call(uint64_t rip)
{
  uint8_t code[2] = {0, 0};
  return ljp_safe_copy(code, (const void *)(uintptr_t)rip, 2) == 2 &&
         code[0] == 0x0f && code[1] == 0x05;
}

static void few_show(const char *what, const struct ljp_stack *few,
                     const struct ljp_stack *all, uint64_t rip)
{
  fprintf(stderr, "few registers: %s (%d) at %#lx\n", what, few->cut,
          (long)rip);
  report_host(rip);
  report_frames("walked", few->frames, few->count);
  report_frames("with all registers", all->frames, all->count);
}

void few_check(const struct ljp_unwind_map *map, const void *context,
               const struct ljp_walk *walk, enum ljp_walk_result result)
{
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  struct ljp_walk few;
  if (result != LJP_WALK_DONE || walk->stack.cut)
    return;
  ljp_regs_from_context(&regs, context, &room);
  uint64_t rip = regs.r[LJP_RIP];
  regs.known = 1u << LJP_RIP | 1u << LJP_RSP;
  for (int i = 0; i < LJP_REGS; i++)
    if (!(regs.known >> i & 1))
      regs.r[i] = UINT64_C(0xdeadbeefdeadbeef);
  /* No step ends behind the call: the kernel steps over what follows, too. */
  bool call = few_at_call(rip);
  regs.r[LJP_RIP] += call ? 2 : 0;
  result = ljp_walk(&few, map, &regs, frames, FRAMES);
  walks++;
  whole += !few.stack.cut;
  calls += call;
  if (result != LJP_WALK_DONE || !few_agrees(&few.stack, &walk->stack, call)) {
    if (is_verbose && wrong < 8)
      few_show("wrong", &few.stack, &walk->stack, rip);
    wrong++;
  } else if (call && few.stack.cut) {
    if (is_verbose && calls_cut < 8)
      few_show("cut", &few.stack, &walk->stack, rip);
    calls_cut++;
  }
}

uint64_t few_report(void)
{
  printf("few registers: walks %lu, whole %lu, frames without line %lu; behind "
         "system calls %lu, cut there %lu; differences %lu\n",
         (long)walks, (long)whole, (long)without_line, (long)calls,
         (long)calls_cut, (long)wrong);
  return wrong;
}
