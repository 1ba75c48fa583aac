/*
** References of a thread: what its stack holds, by frame and local variable.
** The innermost frame comes first. See refs.h.
*/
#define LUA_CORE

#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"
#include "lj_frame.h"

#include "src/luajit/heap/refs.h"

#define NO_POSITION (~(BCPos)0)

/* Where the function of this frame goes on. Not known if a hook or a finalizer
** has interrupted it: only C frames have it then. */
static BCPos stack_position(const GCfunc *fn, cTValue *next)
{
  BCPos pc = NO_POSITION;
  if (fn->c.gct != (uint8_t)~LJ_TFUNC || !isluafunc(fn) || !next)
    return NO_POSITION;
  if (frame_islua(next))
    pc = proto_bcpos(funcproto(fn), frame_pc(next)) - 1;
  else if (frame_iscont(next) && !frame_iscont_fficb(next))
    pc = proto_bcpos(funcproto(fn), frame_contpc(next)) - 1;
  return pc < funcproto(fn)->sizebc ? pc : NO_POSITION;
}

static uint32_t stack_uleb(const uint8_t **at)
{
  uint32_t value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    uint8_t byte = *(*at)++;
    value |= (uint32_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      break;
  }
  return value;
}

/* The name of the local variable in a slot; NULL: it has none. */
static const char *stack_local(const GCproto *pt, BCPos pc, BCReg slot)
{
  const uint8_t *at = proto_varinfo(pt);
  BCPos start = 0;
  while (at && *at != VARNAME_END) {
    const char *name = *at < VARNAME__MAX ? NULL : (const char *)at;
    at += name ? strlen(name) + 1 : 1;
    start += stack_uleb(&at);
    BCPos end = start + stack_uleb(&at);
    if (start > pc)
      return NULL;
    if (pc < end && slot-- == 0)
      return name;
  }
  return NULL;
}

/* The values in [from, to) that are objects. fn: their frame's, at pc. */
static bool stack_slots(struct ljp_heap_walk *w, cTValue *from, cTValue *to,
                        const GCfunc *fn, BCPos pc)
{
  bool ok = true;
  for (cTValue *o = from; ok && o < to; o++) {
    if (!tvisgcv(o))
      continue;
    uint64_t slot = (uint64_t)(o - from);
    const char *name = NULL;
    if (pc != NO_POSITION && slot < LJ_MAX_SLOTS)
      name = stack_local(funcproto(fn), pc, (BCReg)slot);
    ok = name ? w->out->named(w->out, LJP_HEAP_HOW_LOCAL, name, strlen(name),
                              ljp_heap_address(gcV(o)))
              : ljp_heap_ref(w, LJP_HEAP_HOW_SLOT, slot, gcV(o));
  }
  return ok;
}

bool ljp_heap_thread_refs(struct ljp_heap_walk *w, lua_State *th)
{
  bool ok = ljp_heap_ref(w, LJP_HEAP_HOW_ENVIRONMENT, 0, gcref(th->env));
  cTValue *bottom = tvref(th->stack), *to = th->top, *next = NULL;
  if (!bottom)
    return ok; /* No memory for a stack. */
  TValue *frame = th->base - 1;
  while (ok && frame > bottom + LJ_FR2) {
    GCfunc *fn = frame_func(frame);
    BCPos pc = stack_position(fn, next);
    uint64_t line = 0;
    if (pc != NO_POSITION) {
      BCLine at = lj_debug_line(funcproto(fn), pc);
      line = at > 0 ? (uint64_t)at : 0;
    }
    ok = ljp_heap_ref(w, LJP_HEAP_HOW_FRAME, line, obj2gco(fn)) &&
         stack_slots(w, frame + 1, to, fn, pc);
    to = frame - LJ_FR2;
    next = frame;
    frame = frame_prev(frame);
  }
  return ok && stack_slots(w, bottom + 1 + LJ_FR2, to, NULL, NO_POSITION);
}
