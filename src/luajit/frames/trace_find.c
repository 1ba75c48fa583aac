/*
** What the handler reads of the table of traces: which trace an address lies
** in, and the mark there. traces.h has the picture.
**
** The table is changed by the thread that is interrupted, in an order in which
** each state that a handler can see is a true one. Still everything is read
** fault-safely and bounds are checked before they are used.
** LJP_SIGSAFE throughout.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"

#include "src/luajit/traces/traces.h"

#include "src/luajit/frames/frames.h"

LJP_SIGSAFE static bool copy(void *to, uint64_t from, size_t size)
{
  return ljp_safe_copy(to, (const void *)(uintptr_t)from, size) == size;
}

LJP_SIGSAFE static bool find_area(const struct ljp_vm *vm, uint64_t rip,
                                  struct ljp_code_area *area)
{
  uint64_t map;
  uint32_t low = 0, high;
  if (!vm->jit)
    return false;
  /* Acquire: what it leads to was complete before. */
  map = (uint64_t)(uintptr_t)atomic_load_explicit(&vm->jit->map,
                                                  memory_order_acquire);
  if (!map || !ljp_load32(map, &high))
    return false;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!copy(area,
              map + offsetof(struct ljp_code_map, area) + mid * sizeof *area,
              sizeof *area))
      return false;
    if (rip - area->low < area->high - area->low)
      return true;
    if (area->low > rip)
      high = mid;
    else
      low = mid + 1;
  }
  return false;
}

bool ljp_trace_area(const struct ljp_vm *vm, uint64_t rip)
{
  struct ljp_code_area area;
  return find_area(vm, rip, &area);
}

bool ljp_trace_find(const struct ljp_vm *vm, uint64_t rip,
                    struct ljp_trace *trace)
{
  struct ljp_code_area area;
  struct ljp_code_range range;
  if (!find_area(vm, rip, &area))
    return false;
  uint64_t ranges = (uint64_t)(uintptr_t)area.ranges;
  uint32_t low = 0, high, offset = (uint32_t)(rip - area.low);
  if (!ranges || !ljp_load32(ranges, &high))
    return false;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!copy(&range,
              ranges + offsetof(struct ljp_code_ranges, range) +
                  mid * sizeof range,
              sizeof range))
      return false;
    if (offset - range.start < range.bytes) {
      return range.trace &&
             copy(trace, (uint64_t)(uintptr_t)range.trace, sizeof *trace) &&
             trace->object && rip - trace->code < trace->code_bytes;
    }
    if (range.start > offset)
      low = mid + 1; /* the later the lower */
    else
      high = mid;
  }
  return false;
}

/* -- Marks --------------------------------------------------------------------- */

/* The notes of a trace, to be read. */
struct notes {
  struct ljp_marks head;
  uint64_t at[LJP_MARKS_END]; /* addresses of the arrays */
  uint16_t code;              /* low bits of where the trace's code begins */
};

LJP_SIGSAFE static bool open_notes(const struct ljp_trace *trace,
                                   struct notes *n)
{
  uint64_t at = (uint64_t)(uintptr_t)trace->marks;
  if (!at || !copy(&n->head, at, sizeof n->head))
    return false;
  for (int i = 0; i < LJP_MARKS_END; i++)
    n->at[i] = at + ljp_marks_at(&n->head, (enum ljp_marks_array)i);
  n->code = (uint16_t)trace->code;
  return true;
}

LJP_SIGSAFE static bool note16(const struct notes *n,
                               enum ljp_marks_array which, uint32_t i,
                               uint16_t *value)
{
  uint64_t at = n->at[which] + i * sizeof *value, word;
  if (!ljp_load(at & ~UINT64_C(7), &word))
    return false;
  *value = (uint16_t)(word >> (at & 6) * 8);
  return true;
}

/* Where the code of reference ref ends, as an offset; *visited: it is noted. */
LJP_SIGSAFE static bool code_end(const struct notes *n, uint32_t ref,
                                 uint32_t *end, bool *visited)
{
  uint16_t low;
  if (!note16(n, LJP_MARKS_CODE, ref, &low))
    return false;
  *visited = low != 0;
  *end = (uint16_t)(low - n->code);
  return true;
}

/* The reference whose code an offset lies in; behind all code it is the last
** one. False in the head, which is before all. */
LJP_SIGSAFE static bool ref_at(const struct notes *n, uint32_t offset,
                               uint32_t *ref)
{
  uint32_t low = 0, high = n->head.refs, end, found_end = 0;
  bool visited;
  if (!high)
    return false;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2, at = mid;
    do {
      if (!code_end(n, at, &end, &visited))
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
  /* Below it there must be one whose code ends before. What was not visited
  ** looks like a code that begins at a multiple of 64 KiB: rather know nothing
  ** than take the one for the other. */
  uint32_t below = *ref, gap = (uint16_t)-n->code;
  for (;;) {
    if (!below || !code_end(n, --below, &end, &visited))
      return false;
    if (visited)
      return below + 1 == *ref || gap < end || gap > found_end;
  }
}

/* Under whose name the recorder noted it: a copy in an unrolled loop goes by what
** it is a copy of. */
LJP_SIGSAFE static bool recorded_ref(const struct notes *n, uint32_t *ref)
{
  uint32_t low = 1, high = n->head.loop; /* 0 is the trace's BASE */
  uint16_t begins;
  if (!high || *ref < high)
    return true;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!note16(n, LJP_MARKS_COPIES, mid, &begins))
      return false;
    if (begins - LJP_REF_BASE <= *ref)
      low = mid + 1;
    else
      high = mid;
  }
  /* Before the first copy there is the LOOP itself. */
  *ref = low > 1 ? low - 1 : n->head.loop - 1u;
  return true;
}

LJP_SIGSAFE static bool read_mark(const struct notes *n, uint32_t i,
                                  struct ljp_mark *mark)
{
  return copy(mark, n->at[LJP_MARKS_MARKS] + i * sizeof *mark, sizeof *mark);
}

/* The last mark that begins at the reference or before. 0: none does. */
LJP_SIGSAFE static uint32_t mark_at(const struct notes *n, uint32_t ref,
                                    struct ljp_mark *mark)
{
  uint32_t low = LJP_FIRST_MARK, high = n->head.marks;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!read_mark(n, mid, mark))
      return 0;
    if (mark->ref - LJP_REF_BASE <= ref)
      low = mid + 1;
    else
      high = mid;
  }
  return low > LJP_FIRST_MARK && read_mark(n, low - 1, mark) ? low - 1 : 0;
}

/* -- Chains ------------------------------------------------------------------

** A frame is known by its slot, since nothing else can lie there as long as it is
** there. The one that called it is that of the last shift before it with a lower
** slot, and the call is the last mark before that shift's frame was left.
** Shifts are read backwards one by one: there are LJP_SHIFTS_MAX at most. */

enum { OWN_SLOT = 1 + LJ_FR2 }; /* of the frame at the trace's BASE */

LJP_SIGSAFE static bool read_shift(const struct notes *n, uint32_t i,
                                   struct ljp_shift *shift)
{
  return i < n->head.shifts &&
         copy(shift, n->at[LJP_MARKS_SHIFTS] + i * sizeof *shift,
              sizeof *shift) &&
         (shift->function || shift->ref);
}

/* The last shift at the mark or before. */
LJP_SIGSAFE static bool shift_at(const struct notes *n, uint32_t mark,
                                 uint32_t *i, struct ljp_shift *shift)
{
  uint32_t low = 0, high = n->head.shifts;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (!copy(shift, n->at[LJP_MARKS_SHIFTS] + mid * sizeof *shift,
              sizeof *shift))
      return false;
    if (shift->mark <= mark)
      low = mid + 1;
    else
      high = mid;
  }
  *i = low - 1; /* or no shift's number */
  return read_shift(n, *i, shift);
}

/* The last shift before i whose slot is most or lower. */
LJP_SIGSAFE static bool shift_below(const struct notes *n, uint32_t i,
                                    uint32_t most, uint32_t *below,
                                    struct ljp_shift *shift)
{
  while (i--)
    if (!read_shift(n, i, shift)) {
      return false;
    } else if (shift->slot <= most) {
      *below = i;
      return true;
    }
  return false;
}

/* Is the function called there? Nothing ever returns into a builtin. */
LJP_SIGSAFE static bool is_entry(const struct notes *n,
                                 const struct ljp_shift *shift)
{
  struct ljp_mark mark;
  return !shift->function ||
         (read_mark(n, shift->mark, &mark) &&
          mark.pc == (uint32_t)(shift->function + sizeof(GCproto)));
}

LJP_SIGSAFE static bool is_vararg(uint64_t function)
{
  uint8_t flags;
  return copy(&flags, function + offsetof(GCproto, flags), sizeof flags) &&
         (flags & PROTO_VARARG);
}

/* From a shift to the one at which its frame was entered: called, given, or
** returned to from the frame at BASE, whose place it took (*lower). */
LJP_SIGSAFE static bool entered_at(const struct notes *n, uint32_t *i,
                                   struct ljp_shift *shift, bool *lower)
{
  struct ljp_shift before;
  uint32_t at;
  *lower = false;
  while (*i >= n->head.given && !is_entry(n, shift)) {
    if (!shift_below(n, *i, shift->slot, &at, &before))
      return false;
    if (at + 1 == *i && before.slot == OWN_SLOT && shift->slot == OWN_SLOT) {
      *lower = true;
      return true;
    }
    /* Behind its header, a frame with variable arguments lies higher. */
    if (before.function != shift->function ||
        (before.slot < shift->slot && !is_vararg(before.function)))
      return false;
    *i = at;
    *shift = before;
  }
  return true;
}

/* The line of an instruction of the shift's function; 0 in a builtin. */
LJP_SIGSAFE static bool line_in(const struct ljp_shift *shift, uint32_t pc,
                                uint32_t *line)
{
  *line = 0;
  return !shift->function ||
         ljp_proto_line(shift->function, shift->ref, pc, line);
}

/* Is it an instruction that leaves the frame? */
LJP_SIGSAFE static bool is_return(const struct ljp_shift *shift, uint32_t pc)
{
  uint64_t code = shift->function + sizeof(GCproto);
  uint32_t ins;
  if (!shift->function)
    return false;
  return !ljp_load32(code + (uint32_t)(pc - (uint32_t)code), &ins) ||
         bc_isret(bc_op(ins));
}

/* What lies in the slot of the frame at BASE, whose place others took by tail
** calls up to shift i: the function that was there when the trace began or
** returned to it. */
LJP_SIGSAFE static bool lies_at_base(const struct notes *n, uint32_t i,
                                     uint32_t *function)
{
  struct ljp_shift shift;
  bool lower = false;
  do {
    if (!shift_below(n, i + 1, OWN_SLOT, &i, &shift) ||
        !entered_at(n, &i, &shift, &lower))
      return false;
    *function = shift.ref;
  } while (!lower && i-- >= n->head.given);
  return true;
}

bool ljp_trace_mark(const struct ljp_trace *trace, uint32_t offset,
                    uint32_t *chain, uint32_t *line)
{
  struct notes n;
  struct ljp_mark mark;
  struct ljp_shift shift;
  uint32_t ref = 0, number, i;
  if (!open_notes(trace, &n) || !ref_at(&n, offset, &ref) ||
      !recorded_ref(&n, &ref))
    return false;
  number = mark_at(&n, ref, &mark);
  if (!number || !shift_at(&n, number, &i, &shift))
    return false;
  *chain = i + 1;
  return line_in(&shift, mark.pc, line);
}

bool ljp_trace_chain(const struct ljp_trace *trace, uint32_t number,
                     struct ljp_chain *chain)
{
  struct notes n;
  struct ljp_shift shift, caller, left;
  struct ljp_mark call;
  uint32_t i = number - 1, below;
  bool lower;
  if (!open_notes(trace, &n) || !read_shift(&n, i, &shift) ||
      !entered_at(&n, &i, &shift, &lower))
    return false;
  *chain = (struct ljp_chain){.function = shift.ref};
  if (shift.slot == OWN_SLOT) {
    if (!lies_at_base(&n, i, &chain->at_base))
      return false;
    if (chain->at_base == shift.ref)
      chain->at_base = 0;
    return true;
  }
  if (!shift_below(&n, i, shift.slot - 1u, &below, &caller) ||
      !read_shift(&n, below + 1, &left) || left.mark <= LJP_FIRST_MARK ||
      !read_mark(&n, left.mark - 1u, &call))
    return false;
  chain->caller = below + 1;
  return !is_return(&caller, call.pc) &&
         line_in(&caller, call.pc, &chain->line);
}
