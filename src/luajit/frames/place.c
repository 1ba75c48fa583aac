/*
** Places in compiled code; see place.h.
**
** Inlined frames come from the markers of the trace (traces/markers.h). Where
** there is no marker they come from the snapshot before the address, and the
** frames say so.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/frames/place.h"

LJP_SIGSAFE static bool place_goes_on(uint8_t link_type)
{
  return link_type == LJ_TRLINK_ROOT || link_type == LJ_TRLINK_TAILREC ||
         link_type == LJ_TRLINK_UPREC || link_type == LJ_TRLINK_DOWNREC;
}

/* The marker of the instruction that is executed next. */
LJP_SIGSAFE static bool place_next_marker(struct ljp_place *place)
{
  return ljp_trace_marker(&place->trace, place->offset, &place->chain,
                          &place->line);
}

/* The marker of the instruction that took the time. An interrupt waits for the
** instruction that is being executed and stops the thread at the next one: not
** at a division that took 20 cycles, but behind it. A trace's code is straight,
** so the preceding instruction was executed last, except at the head of a
** loop. */
LJP_SIGSAFE static bool place_marker(struct ljp_place *place, bool interrupted)
{
  uint32_t spent = place->offset;
  if (interrupted && spent)
    spent = spent == place->snap.loop ? place->snap.jump : spent - 1;
  return ljp_trace_marker(&place->trace, spent, &place->chain, &place->line) ||
         place_next_marker(place);
}

bool ljp_place_find(struct ljp_place *place, uint64_t rip, bool interrupted)
{
  struct ljp_trace *trace = &place->trace;
  place->exact = LJP_EXACT_SNAPSHOT;
  place->offset = (uint32_t)(rip - trace->code);
  bool snapped = ljp_snap_at((uint64_t)(uintptr_t)trace->object, place->offset,
                             &place->snap);
  /* In the last instructions of a trace that goes on in another trace, jit_base
  ** is already that of the other one, if it differs. */
  enum { OWN_SLOT = 2 };
  place->linked = snapped && interrupted && place_goes_on(trace->link_type) &&
                  place->offset >= place->snap.jump &&
                  place->snap.baseslot != OWN_SLOT;
  if (place->linked || !place_marker(place, interrupted))
    return snapped;
  place->exact = LJP_EXACT_EXACT;
  return true;
}

/* The frame word that a marker stands for. */
LJP_SIGSAFE static uint64_t place_frame(uint32_t function, unsigned flags,
                                        uint32_t line)
{
  return function & LJP_CHAIN_BUILTIN
             ? ljp_frame(LJP_FRAME_BUILTIN, flags,
                         function & ~LJP_CHAIN_BUILTIN)
             : ljp_frame_lua(LJP_FRAME_LUA_INLINED, LJP_EXACT_EXACT | flags,
                             function, line);
}

/* Appends the inlined frames by markers; *line is the line in the frame at
** BASE. If the chain does not begin with the function at BASE, appends nothing
** and returns false. *instead: the function that has replaced it by a tail
** call, or 0. */
LJP_SIGSAFE static bool place_add_marked(const struct ljp_place *place,
                                         const struct ljp_function *at_base,
                                         struct ljp_stack *stack,
                                         uint32_t *line, uint32_t *instead)
{
  struct ljp_chain chain, outer;
  uint32_t number = place->chain, count = stack->count, depth = 0;
  if (!ljp_trace_chain(&place->trace, number, &outer))
    return false;
  while (outer.caller)
    if (depth++ > LJ_MAX_JSLOTS ||
        !ljp_trace_chain(&place->trace, outer.caller, &outer))
      return false;
  uint32_t there = at_base->ffid == FF_LUA ? at_base->ref
                                           : LJP_CHAIN_BUILTIN | at_base->ffid;
  /* 0: the function has no entry, so it cannot be told from others. Only the
  ** end of a trace stores the function that a tail call has called. */
  if (!there || (there != outer.function && there != outer.at_base))
    return false;
  *instead = there == outer.function ? 0 : outer.function;
  for (*line = place->line;; *line = chain.line, number = chain.caller) {
    if (!ljp_trace_chain(&place->trace, number, &chain)) {
      stack->count = count;
      *instead = 0;
      return false;
    }
    if (!chain.caller)
      return true;
    if (!ljp_stack_add(stack, place_frame(chain.function, 0, *line)))
      return true;
  }
}

bool ljp_place_frames(struct ljp_place *place, struct ljp_start *at,
                      struct ljp_stack *stack, struct ljp_function *fn,
                      bool *known)
{
  uint64_t slot, link;
  if (!ljp_load(at->base - 2 * sizeof(TValue), &slot) ||
      !ljp_load(at->base - sizeof(TValue), &link)) {
    stack->cut = LJP_CUT_BAD_READ;
    return false;
  }
  uint32_t line = 0, instead = 0;
  uint64_t pc = at->pc;
  *known = ljp_function_read(slot, fn);
  uint32_t count = stack->count;
  /* Behind an instruction that sets another BASE, only the marker of the next
  ** instruction tells of a frame that exists. */
  if (*known && place->exact == LJP_EXACT_EXACT &&
      !place_add_marked(place, fn, stack, &line, &instead) &&
      !(place_next_marker(place) &&
        place_add_marked(place, fn, stack, &line, &instead))) {
    place->exact = LJP_EXACT_ROOT;
  } else if (place->exact == LJP_EXACT_SNAPSHOT && place->linked) {
    pc = place->snap.pc;
  } else if (place->exact == LJP_EXACT_SNAPSHOT && place->trace.id &&
             !ljp_snap_inlined(&place->snap, stack, &pc)) {
    stack->count = count;
    pc = 0;
    place->exact = LJP_EXACT_ROOT;
  }
  if (stack->cut)
    return false;
  if (instead) {
    if (!ljp_stack_add(stack, place_frame(instead, LJP_FRAME_TAIL, line)))
      return false;
  } else if (*known && fn->ffid == FF_LUA &&
             place->exact != LJP_EXACT_SNAPSHOT) {
    if (!ljp_stack_add(stack, ljp_frame_lua(LJP_FRAME_LUA_INLINED, place->exact,
                                            fn->ref, line)))
      return false;
  } else if (*known && !ljp_emit_inlined(stack, fn, pc)) {
    return false;
  }
  /* The trace into which the frames so far are compiled. */
  if (place->trace.id &&
      !ljp_stack_add(stack,
                     ljp_frame(LJP_FRAME_TRACE, place->exact, place->trace.id)))
    return false;
  if ((link & FRAME_TYPEP) == FRAME_VARG)
    at->base -=
        link & ~(uint64_t)FRAME_TYPEP; /* varargs: the same frame again */
  at->pc = 0;
  at->skip_top = true;
  return true;
}
