/*
** Finding the marker of a machine address, and the chain of inlined functions
** that the marker belongs to (RFC 4). All arrays are searched by bisection;
** everything is read fault-safely, and bounds are checked before they are used.
** LJP_SIGSAFE throughout.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"

#include "src/luajit/functions/read.h"
#include "src/luajit/traces/trace.h"

/* -- Markers --------------------------------------------------------------- */

/* The arrays of a trace. */
struct marker_arrays {
  struct ljp_markers head;
  uint64_t at[LJP_MARKERS_END]; /* addresses of the arrays */
  uint16_t code;                /* low bits of where the trace's code begins */
};

LJP_SIGSAFE static bool marker_open(const struct ljp_trace *trace,
                                    struct marker_arrays *n)
{
  uint64_t at = (uint64_t)(uintptr_t)trace->markers;
  if (!at || !ljp_load_bytes(&n->head, at, sizeof n->head))
    return false;
  for (int i = 0; i < LJP_MARKERS_END; i++)
    n->at[i] = at + ljp_markers_at(&n->head, (enum ljp_marker_array)i);
  n->code = (uint16_t)trace->code;
  return true;
}

LJP_SIGSAFE static bool marker_read16(const struct marker_arrays *n,
                                      enum ljp_marker_array which, uint32_t i,
                                      uint16_t *value)
{
  uint64_t at = n->at[which] + i * sizeof *value, word;
  if (!ljp_load(at & ~UINT64_C(7), &word))
    return false;
  *value = (uint16_t)(word >> (at & 6) * 8);
  return true;
}

/* Where the code of reference ref ends, as an offset. *visited: the assembler
** has visited it, so this is known. */
LJP_SIGSAFE static bool marker_code_end(const struct marker_arrays *n,
                                        uint32_t ref, uint32_t *end,
                                        bool *visited)
{
  uint16_t low;
  if (!marker_read16(n, LJP_MARKERS_CODE, ref, &low))
    return false;
  *visited = low != 0;
  *end = (uint16_t)(low - n->code);
  return true;
}

/* The reference whose code an offset lies in; behind all code it is the last
** one. False in the trace's head, which comes before all code. */
LJP_SIGSAFE static bool marker_ref_at(const struct marker_arrays *n,
                                      uint32_t offset, uint32_t *ref)
{
  uint32_t low = 0, high = n->head.refs, end, found_end = 0;
  bool visited;
  if (!high)
    return false;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2, at = mid;
    do {
      if (!marker_code_end(n, at, &end, &visited))
        return false;
    } while (!visited && ++at < high);
    if (!visited || end > offset) {
      high = mid;
      if (visited) {
        *ref = at;
        found_end = end;
      }
    } else {
      low = at + 1;
    }
  }
  if (!found_end) { /* in the trace's tail */
    *ref = n->head.refs - 1u;
    return true;
  }
  /* Below it there must be a reference whose code ends earlier. A reference
  ** that was not visited looks like code that begins at a multiple of 64 KiB.
  ** If such code is possible here, nothing is known. */
  uint32_t below = *ref, gap = (uint16_t)-n->code;
  for (;;) {
    if (!below || !marker_code_end(n, --below, &end, &visited))
      return false;
    if (visited)
      return below + 1 == *ref || gap < end || gap > found_end;
  }
}

/* The reference under which the trace recorder made a marker. For a copy in an
** unrolled loop this is the reference of the original. */
LJP_SIGSAFE static bool marker_recorded_ref(const struct marker_arrays *n,
                                            uint32_t *ref)
{
  uint32_t low = 1, high = n->head.loop; /* 0 is the trace's BASE */
  uint16_t begins;
  if (!high || *ref < high)
    return true;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!marker_read16(n, LJP_MARKERS_COPIES, mid, &begins))
      return false;
    if (begins - LJP_REF_BASE <= *ref)
      low = mid + 1;
    else
      high = mid;
  }
  /* Before the first copy comes the LOOP itself. */
  *ref = low > 1 ? low - 1 : n->head.loop - 1u;
  return true;
}

LJP_SIGSAFE static bool marker_read(const struct marker_arrays *n, uint32_t i,
                                    struct ljp_marker *marker)
{
  return ljp_load_bytes(marker, n->at[LJP_MARKERS_MARKERS] + i * sizeof *marker,
                        sizeof *marker);
}

/* The last marker at or before the reference; 0 if there is none. */
LJP_SIGSAFE static uint32_t marker_number_at(const struct marker_arrays *n,
                                             uint32_t ref,
                                             struct ljp_marker *marker)
{
  uint32_t low = LJP_FIRST_MARKER, high = n->head.markers;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!marker_read(n, mid, marker))
      return 0;
    if (marker->ref - LJP_REF_BASE <= ref)
      low = mid + 1;
    else
      high = mid;
  }
  return low > LJP_FIRST_MARKER && marker_read(n, low - 1, marker) ? low - 1
                                                                   : 0;
}

/* -- Chains
** --------------------------------------------------------------------
**
** A frame is identified by its slot, since nothing else can lie there while the
** frame exists.
** The frame that called it belongs to the last earlier shift with a lower slot,
** and the call is the last marker before that frame was left. Shifts are read
** one by one, backwards: there are at most LJP_SHIFTS_MAX. */

enum { OWN_SLOT = 1 + LJ_FR2 }; /* of the frame at the trace's BASE */

LJP_SIGSAFE static bool shift_read(const struct marker_arrays *n, uint32_t i,
                                   struct ljp_shift *shift)
{
  return i < n->head.shifts &&
         ljp_load_bytes(shift, n->at[LJP_MARKERS_SHIFTS] + i * sizeof *shift,
                        sizeof *shift) &&
         (shift->function || shift->ref);
}

/* The last shift at or before the marker. */
LJP_SIGSAFE static bool shift_at(const struct marker_arrays *n, uint32_t marker,
                                 uint32_t *i, struct ljp_shift *shift)
{
  uint32_t low = 0, high = n->head.shifts;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!ljp_load_bytes(shift, n->at[LJP_MARKERS_SHIFTS] + mid * sizeof *shift,
                        sizeof *shift))
      return false;
    if (shift->marker <= marker)
      low = mid + 1;
    else
      high = mid;
  }
  *i = low - 1; /* or no shift's number */
  return shift_read(n, *i, shift);
}

/* The last shift before i whose slot is at most `most`. */
LJP_SIGSAFE static bool shift_below(const struct marker_arrays *n, uint32_t i,
                                    uint32_t most, uint32_t *below,
                                    struct ljp_shift *shift)
{
  while (i--)
    if (!shift_read(n, i, shift)) {
      return false;
    } else if (shift->slot <= most) {
      *below = i;
      return true;
    }
  return false;
}

/* Is the shift a call of its function? Nothing ever returns into a builtin. */
LJP_SIGSAFE static bool shift_is_entry(const struct marker_arrays *n,
                                       const struct ljp_shift *shift)
{
  struct ljp_marker marker;
  return !shift->function ||
         (marker_read(n, shift->marker, &marker) &&
          marker.pc == (uint32_t)(shift->function + sizeof(GCproto)));
}

LJP_SIGSAFE static bool shift_is_vararg(uint64_t function)
{
  uint8_t flags;
  return ljp_load_bytes(&flags, function + offsetof(GCproto, flags),
                        sizeof flags) &&
         (flags & PROTO_VARARG);
}

/* Goes from a shift to the one at which its frame was entered. The frame was
** called, given at the start, or (*lower) returned to from the frame at BASE,
** whose place it took. */
LJP_SIGSAFE static bool shift_entered_at(const struct marker_arrays *n,
                                         uint32_t *i, struct ljp_shift *shift,
                                         bool *lower)
{
  struct ljp_shift before;
  uint32_t at;
  *lower = false;
  while (*i >= n->head.given && !shift_is_entry(n, shift)) {
    if (!shift_below(n, *i, shift->slot, &at, &before))
      return false;
    if (at + 1 == *i && before.slot == OWN_SLOT && shift->slot == OWN_SLOT) {
      *lower = true;
      return true;
    }
    /* Behind its header, a frame with variable arguments lies higher. */
    if (before.function != shift->function ||
        (before.slot < shift->slot && !shift_is_vararg(before.function)))
      return false;
    *i = at;
    *shift = before;
  }
  return true;
}

/* The line of an instruction of the shift's function; 0 in a builtin. */
LJP_SIGSAFE static bool shift_line(const struct ljp_shift *shift, uint32_t pc,
                                   uint32_t *line)
{
  *line = 0;
  return !shift->function ||
         ljp_proto_line(shift->function, shift->ref, pc, line);
}

/* Does the instruction leave the frame? */
LJP_SIGSAFE static bool shift_is_return(const struct ljp_shift *shift,
                                        uint32_t pc)
{
  uint64_t code = shift->function + sizeof(GCproto);
  uint32_t ins;
  if (!shift->function)
    return false;
  return !ljp_load32(code + (uint32_t)(pc - (uint32_t)code), &ins) ||
         bc_isret(bc_op(ins));
}

/* The function that lies in memory in the slot at BASE at shift i. Tail calls
** up to there have not stored their functions, so it is the function that was
** there when the trace began or returned to it. */
LJP_SIGSAFE static bool shift_lies_at_base(const struct marker_arrays *n,
                                           uint32_t i, uint32_t *function)
{
  struct ljp_shift shift;
  bool lower = false;
  do {
    if (!shift_below(n, i + 1, OWN_SLOT, &i, &shift) ||
        !shift_entered_at(n, &i, &shift, &lower))
      return false;
    *function = shift.ref;
  } while (!lower && i-- >= n->head.given);
  return true;
}

bool ljp_trace_marker(const struct ljp_trace *trace, uint32_t offset,
                      uint32_t *chain, uint32_t *line)
{
  struct marker_arrays n;
  struct ljp_marker marker;
  struct ljp_shift shift;
  uint32_t ref = 0, number, i;
  if (!marker_open(trace, &n) || !marker_ref_at(&n, offset, &ref) ||
      !marker_recorded_ref(&n, &ref))
    return false;
  number = marker_number_at(&n, ref, &marker);
  if (!number || !shift_at(&n, number, &i, &shift))
    return false;
  *chain = i + 1;
  return shift_line(&shift, marker.pc, line);
}

bool ljp_trace_chain(const struct ljp_trace *trace, uint32_t number,
                     struct ljp_chain *chain)
{
  struct marker_arrays n;
  struct ljp_shift shift, caller, left;
  struct ljp_marker call;
  uint32_t i = number - 1, below;
  bool lower;
  if (!marker_open(trace, &n) || !shift_read(&n, i, &shift) ||
      !shift_entered_at(&n, &i, &shift, &lower))
    return false;
  *chain = (struct ljp_chain){.function = shift.ref};
  if (shift.slot == OWN_SLOT) {
    if (!shift_lies_at_base(&n, i, &chain->at_base))
      return false;
    if (chain->at_base == shift.ref)
      chain->at_base = 0;
    return true;
  }
  if (!shift_below(&n, i, shift.slot - 1u, &below, &caller) ||
      !shift_read(&n, below + 1, &left) || left.marker <= LJP_FIRST_MARKER ||
      !marker_read(&n, left.marker - 1u, &call))
    return false;
  chain->caller = below + 1;
  return !shift_is_return(&caller, call.pc) &&
         shift_line(&caller, call.pc, &chain->line);
}
