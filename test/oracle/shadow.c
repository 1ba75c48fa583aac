/*
** The oracle's truth; see shadow.h.
*/
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"
#include "lj_frame.h"
#include "lj_state.h"
#include "lj_vm.h"
#include "lj_dispatch.h"

#include "src/base/format.h"
#include "src/luajit/frames.h"
#include "test/oracle/shadow.h"

/* -- Host ------------------------------------------------------------------ */

void shadow_step(struct shadow *shadow, uint64_t rip, uint64_t rsp)
{
  while (shadow->count && shadow->entry[shadow->count - 1].at < rsp)
    shadow->count--;
  if (rsp == shadow->last_rsp - 8 && rip != shadow->last_rip) {
    uint64_t ret = *(const uint64_t *)(uintptr_t)rsp;
    uint64_t length = ret - shadow->last_rip;
    /* A call: it has pushed the address of the instruction behind it. */
    if (length >= 2 && length <= 8 && rip - shadow->last_rip != length &&
        shadow->count < SHADOW_MAX) {
      shadow->entry[shadow->count].ret = ret;
      shadow->entry[shadow->count++].at = rsp;
    }
  }
  shadow->last_rip = rip;
  shadow->last_rsp = rsp;
}

/* -- Guest ----------------------------------------------------------------- */

static const char *shadow_vm_symbol(uint64_t rip, uint32_t *offset)
{
  return ljp_guest_vm_symbol(rip, offset);
}

bool truth_settled(uint64_t rip)
{
  uint32_t offset;
  const char *name = shadow_vm_symbol(rip, &offset);
  if (!name || offset != 0)
    return false;
  /* Where the dispatch table leads, with hooks and without. */
  static const char *const hooks[] = {"lj_vm_record", "lj_vm_rethook",
                                      "lj_vm_inshook", "lj_vm_callhook",
                                      "lj_vm_profhook"};
  for (unsigned i = 0; i < sizeof hooks / sizeof hooks[0]; i++)
    if (strcmp(name, hooks[i]) == 0)
      return true;
  return strncmp(name, "lj_BC_", 6) == 0 || strncmp(name, "lj_ff_", 6) == 0;
}

/* Does a return address in this part of the VM belong to a C frame with guest
** frames? */
static bool shadow_holds_frames(uint64_t ret)
{
  uint32_t offset;
  const char *name = shadow_vm_symbol(ret - 1, &offset);
  return name && strcmp(name, "lj_vm_cpcall") != 0 &&
         strcmp(name, "lj_vm_ffi_callback") != 0 &&
         strcmp(name, "lj_vm_ffi_call") != 0 &&
         strcmp(name, "lj_vm_leave_unw") != 0;
}

/* Calls inside the VM's assembly. */
static bool shadow_is_internal(uint64_t ret, uint64_t callee)
{
  uint32_t offset;
  const char *name = shadow_vm_symbol(callee, &offset);
  if (!shadow_vm_symbol(ret - 1, &offset) || !name)
    return false;
  return strcmp(name, "lj_fff_gcstep") == 0 ||
         strncmp(name, "lj_vm_floor", 11) == 0 ||
         strncmp(name, "lj_vm_ceil", 10) == 0 ||
         strncmp(name, "lj_vm_mod", 9) == 0;
}

static void shadow_put_frame(struct truth *truth, lua_State *L, TValue *frame,
                             const BCIns *pc)
{
  GCfunc *fn = frame_func(frame);
  uint64_t word;
  if (fn->c.gct != (uint8_t)~LJ_TFUNC)
    return; /* a dummy */
  if (isluafunc(fn)) {
    GCproto *pt = funcproto(fn);
    uint32_t line = 0;
    if (pc && pc > proto_bc(pt) && pc <= proto_bc(pt) + pt->sizebc)
      line = (uint32_t)lj_debug_line(pt, proto_bcpos(pt, pc) - 1);
    word = ljp_frame_lua(LJP_FRAME_LUA, 0, pt->unused_gc64, line);
  } else if (isffunc(fn)) {
    word = ljp_frame(LJP_FRAME_BUILTIN, 0, fn->c.ffid);
  } else {
    word = ljp_frame(LJP_FRAME_CFUNC, 0, (uint64_t)(uintptr_t)fn->c.f);
  }
  if (truth->frames < TRUTH_MAX) {
    truth->at[truth->frames] = (uint64_t)(uintptr_t)frame;
    truth->slot[truth->frames] = (frame - 1)->u64;
    truth->thread[truth->frames] = L;
    truth->entry[truth->frames] = truth->segment[truth->segments - 1].cframe;
    truth->frame[truth->frames++] = word;
  }
}

/* One segment, from frame (its link slot) down to C. Returns the frame below
** the boundary. */
static TValue *shadow_read_segment(struct truth *truth, lua_State *L,
                                   TValue *frame, const BCIns *pc)
{
  TValue *bottom = tvref(L->stack) + LJ_FR2;
  bool upper_half = false;
  while (frame > bottom) {
    if (!upper_half)
      shadow_put_frame(truth, L, frame, pc);
    pc = NULL;
    upper_half = false;
    if (frame_islua(frame)) {
      pc = frame_pc(frame);
      frame = frame_prevl(frame);
      continue;
    }
    TValue *below = frame_prevd(frame);
    if (frame_isc(frame))
      return below;
    if (frame_iscont(frame)) {
      if (frame_iscont_fficb(frame))
        return below;
      pc = frame_contpc(frame);
    }
    upper_half = frame_isvarg(frame);
    frame = below;
  }
  return frame;
}

static void shadow_read_activation(struct truth *truth, lua_State **L,
                                   TValue **frame, uint64_t cframe,
                                   TValue *live_base, const BCIns *live_pc)
{
  void *cf = (void *)(uintptr_t)cframe;
  lua_State *own = cframe_L(cf);
  const BCIns *pc = live_pc ? live_pc : cframe_pc(cf);
  if (own != *L) {
    *L = own;
    *frame = (live_base ? live_base : own->base) - 1;
  }
  if (truth->segments == SEGMENTS_MAX)
    return;
  struct truth_segment *segment = &truth->segment[truth->segments++];
  segment->cframe = cframe;
  segment->first = truth->frames;
  *frame = shadow_read_segment(truth, own, *frame, pc);
  segment->count = truth->frames - segment->first;
}

void truth_read(struct truth *truth, const struct shadow *shadow, uint64_t rsp,
                uint64_t rdx, uint64_t rbx)
{
  lua_State *L = NULL;
  TValue *frame = NULL;
  truth->frames = truth->segments = 0;
  truth->valid = true;
  shadow_read_activation(truth, &L, &frame, rsp, (TValue *)(uintptr_t)rdx,
                         (const BCIns *)(uintptr_t)rbx);
  for (uint32_t i = shadow->count; i-- > 0;) {
    const struct shadow_entry *entry = &shadow->entry[i];
    if (ljp_guest_in_vm(entry->ret - 1) && shadow_holds_frames(entry->ret))
      shadow_read_activation(truth, &L, &frame, entry->at + 8, NULL, NULL);
  }
}

bool truth_left(struct truth *truth, uint64_t rsp)
{
  uint32_t left = 0;
  while (left < truth->segments && truth->segment[left].cframe < rsp)
    left++;
  truth->segments -= left;
  memmove(truth->segment, truth->segment + left,
          truth->segments * sizeof *truth->segment);
  return left != 0;
}

void truth_top_replaced(struct truth *truth, bool replaced)
{
  struct truth_segment *top = truth->segment;
  if (replaced) {
    top->first++;
    top->count--;
  } else {
    top->first--;
    top->count++;
  }
}

bool truth_top_is_builtin(const struct truth *truth)
{
  if (!truth->segments)
    return false;
  const struct truth_segment *top = truth->segment;
  for (uint32_t i = 0; i < 2 && i < top->count; i++)
    if (ljp_frame_kind(truth->frame[top->first + i]) != LJP_FRAME_LUA)
      return true;
  return false;
}

static bool shadow_put_segment(struct truth *truth, uint64_t cframe,
                               uint64_t *frames, uint32_t *count,
                               uint32_t limit)
{
  for (uint32_t s = 0; s < truth->segments; s++) {
    const struct truth_segment *segment = &truth->segment[s];
    if (segment->cframe != cframe)
      continue;
    for (uint32_t i = 0; i < segment->count; i++) {
      if (*count == limit)
        return false;
      truth->put[truth->puts++] = segment->first + i;
      frames[(*count)++] = truth->frame[segment->first + i];
    }
    return true;
  }
  return true; /* it has none yet, or none any more */
}

/* Is the C frame one of the thread's? */
static bool shadow_entered(lua_State *L, uint64_t cframe)
{
  for (void *cf = L->cframe; cf; cf = cframe_prev(cf))
    if ((uint64_t)(uintptr_t)cframe_raw(cf) == cframe)
      return true;
  return false;
}

bool truth_taken_off(const struct truth *truth, uint32_t missing, uint64_t rip)
{
  uint32_t offset;
  const char *name = shadow_vm_symbol(rip, &offset);
  /* A frame that an error has reached returns immediately: its link is in a
  ** register. */
  bool returning = name && strncmp(name, "lj_vm_return", 12) == 0;
  if (missing > truth->puts)
    return false;
  for (uint32_t i = 0; i + returning < missing; i++) {
    uint32_t frame = truth->put[i];
    lua_State *L = truth->thread[frame];
    uint64_t at = truth->at[frame], base = (uint64_t)(uintptr_t)L->base;
    /* Below BASE a frame is gone when its function's slot holds something
    ** else. */
    if (at < base && shadow_entered(L, truth->entry[frame]) &&
        ((const TValue *)(uintptr_t)at - 1)->u64 == truth->slot[frame])
      return false;
  }
  return true;
}

bool truth_expect(struct truth *truth, const struct shadow *shadow,
                  uint64_t rip, uint64_t rsp, uint64_t *frames, uint32_t *count,
                  uint32_t limit)
{
  uint32_t i = shadow->count;
  uint64_t callee = rip;
  *count = 0;
  truth->puts = 0;
  if (ljp_guest_in_vm(rip)) {
    uint32_t offset;
    const char *name = shadow_vm_symbol(rip, &offset);
    /* Either a leaf of the VM that was called from inside the VM, or a C frame
    ** of its own. The value of rsp tells which. */
    uint64_t cframe = rsp;
    if (i && shadow_is_internal(shadow->entry[i - 1].ret, rip)) {
      cframe = shadow->entry[i - 1].at + 8;
      callee = rip;
      i--;
      if (!shadow_put_segment(truth, cframe, frames, count, limit))
        return false;
    } else if (name && strcmp(name, "lj_vm_ffi_call") != 0) {
      /* lj_fff_gcstep pops and pushes its return address. */
      if (strcmp(name, "lj_fff_gcstep") == 0)
        cframe = (cframe + 15) & ~UINT64_C(15);
      if (!shadow_put_segment(truth, cframe, frames, count, limit))
        return false;
    }
  } else if (!shadow_put_segment(truth, rsp, frames, count, limit)) {
    /* Code outside the VM with rsp where a C frame begins: libgcc is jumping
    ** into the C frame. */
    return false;
  }
  while (i-- > 0) {
    const struct shadow_entry *entry = &shadow->entry[i];
    if (!ljp_guest_in_vm(entry->ret - 1)) {
      if (*count == limit)
        return false;
      frames[(*count)++] = ljp_frame(LJP_FRAME_HOST, 0, entry->ret);
    } else if (!shadow_is_internal(entry->ret, callee)) {
      if (!shadow_put_segment(truth, entry->at + 8, frames, count, limit))
        return false;
    }
    callee = entry->ret;
  }
  return true;
}
