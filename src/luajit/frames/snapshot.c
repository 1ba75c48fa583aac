/*
** Snapshots: what LuaJIT itself keeps of a trace, to leave it at a few places.
** For code without a marker, the last snapshot before it tells the inlined
** functions. The innermost position may be earlier than the true one.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/frames/snapshot.h"
#include "src/luajit/frames/walk.h"

enum { MAX_INLINED = 256 };

_Static_assert(sizeof(SnapShot) == 12 && sizeof(SnapEntry) == 4,
               "another snapshot");

LJP_SIGSAFE static bool snap_read_shot(const GCtrace *head, uint32_t number,
                                       SnapShot *shot)
{
  uint64_t at = (uint64_t)(uintptr_t)head->snap + number * sizeof *shot;
  return number < head->nsnap &&
         ljp_safe_copy(shot, (const void *)(uintptr_t)at, sizeof *shot) ==
             sizeof *shot;
}

LJP_SIGSAFE static bool snap_read_head(uint64_t object, GCtrace *head)
{
  return ljp_safe_copy(head, (const void *)(uintptr_t)object, sizeof *head) ==
             sizeof *head &&
         head->gct == (uint8_t)~LJ_TTRACE;
}

LJP_SIGSAFE static bool snap_use(const GCtrace *head, const SnapShot *shot,
                                 struct ljp_snapshot *snap)
{
  uint64_t pcbase;
  snap->ir = (uint64_t)(uintptr_t)head->ir;
  snap->map = (uint64_t)(uintptr_t)head->snapmap +
              (uint64_t)shot->mapofs * sizeof(SnapEntry);
  snap->entries = shot->nent;
  snap->loop = head->mcloop;
  /* The trace's last jump. It has 5 bytes if it leads to a trace; only a jump
  ** into the interpreter, which is not asked for here, may have 6. */
  snap->jump = head->szmcode - 5;
  if (head->spadjust)
    snap->jump -= head->spadjust < 128 ? 4 : 7;
  uint64_t at = snap->map + snap->entries * sizeof(SnapEntry);
  if (ljp_safe_copy(&pcbase, (const void *)(uintptr_t)at, 8) != 8)
    return false;
  snap->pc = pcbase >> 8;
  snap->baseslot = (uint32_t)(pcbase & 0xff) + 2;
  return true;
}

bool ljp_snap_at(uint64_t object, uint32_t offset, struct ljp_snapshot *snap)
{
  GCtrace head;
  SnapShot shot;
  if (!snap_read_head(object, &head))
    return false;
  uint32_t low = 0, high = head.nsnap;
  while (low < high) {
    uint32_t mid = (low + high) / 2;
    if (!snap_read_shot(&head, mid, &shot))
      return false;
    if (offset < shot.mcofs)
      high = mid;
    else
      low = mid + 1;
  }
  return low && snap_read_shot(&head, low - 1, &shot) &&
         snap_use(&head, &shot, snap);
}

bool ljp_snap_number(uint64_t object, uint32_t number,
                     struct ljp_snapshot *snap)
{
  GCtrace head;
  SnapShot shot;
  return snap_read_head(object, &head) &&
         snap_read_shot(&head, number, &shot) && snap_use(&head, &shot, snap);
}

/* The constant that a snapshot entry refers to: a pointer for IR_KGC, a bit
** pattern for the others. */
LJP_SIGSAFE static bool snap_constant(uint64_t ir, uint32_t ref,
                                      bool *is_object, uint64_t *value)
{
  uint64_t word;
  uint64_t at = ir + (uint64_t)ref * sizeof(IRIns);
  if (ref >= REF_BIAS || !ljp_load(at, &word))
    return false;
  uint8_t op = (uint8_t)(word >> 40);
  *is_object = op == IR_KGC;
  if (op != IR_KGC && op != IR_KNUM && op != IR_KINT64)
    return false;
  return ljp_load(at + sizeof(IRIns), value);
}

_Static_assert(offsetof(IRIns, o) == 5 && sizeof(IRIns) == 8,
               "another IR instruction");

bool ljp_snap_inlined(const struct ljp_snapshot *snap, struct ljp_stack *stack,
                      uint64_t *pc)
{
  uint64_t ir = snap->ir;
  *pc = snap->pc;
  int32_t slot = (int32_t)snap->baseslot - 1; /* of the link */
  int32_t entry = (int32_t)snap->entries - 1;
  for (int depth = 0; slot > 1 && depth < MAX_INLINED; depth++) {
    uint64_t link = 0, object = 0, value;
    bool have_link = false, have_function = false, is_object;
    for (; entry >= 0; entry--) {
      uint32_t sn;
      if (!ljp_load32(snap->map + (uint32_t)entry * sizeof sn, &sn))
        return false;
      int32_t s = (int32_t)snap_slot(sn);
      if (s > slot)
        continue;
      if (s == slot) {
        if ((sn & (SNAP_FRAME | SNAP_CONT)) &&
            snap_constant(ir, snap_ref(sn), &is_object, &value) && !is_object) {
          link = value;
          have_link = true;
        }
      } else {
        if (s == slot - 1 &&
            snap_constant(ir, snap_ref(sn), &is_object, &value) && is_object) {
          object = value;
          have_function = true;
        }
        break;
      }
    }
    if (!have_link)
      return false;
    if ((link & FRAME_TYPEP) != FRAME_VARG) {
      struct ljp_function fn;
      /* The function is no constant if it is one of many closures. Its code
      ** is: the snapshot says where in the bytecode the frame is. */
      if ((have_function &&
           ljp_function_read((uint64_t)LJ_TFUNC << 47 | object, &fn)) ||
          (*pc && ljp_function_at(*pc, &fn))) {
        if (!ljp_emit_inlined(stack, &fn, *pc))
          return true;
      } else if (!ljp_stack_add(stack,
                                ljp_frame_lua(LJP_FRAME_LUA_INLINED,
                                              LJP_EXACT_SNAPSHOT, 0, 0))) {
        return true;
      }
      *pc = 0;
    }
    if ((link & FRAME_TYPE) == FRAME_LUA) {
      uint32_t ins;
      if (!ljp_load32(link - sizeof(BCIns), &ins))
        return false;
      *pc = link;
      slot -= 2 + (int32_t)bc_a(ins);
    } else {
      slot -= (int32_t)(link >> 3);
      if ((link & FRAME_TYPE) == FRAME_CONT)
        *pc = 0;
    }
  }
  return slot == 1;
}
