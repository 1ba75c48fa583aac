/*
** The guest walk's building blocks: Lua threads, functions, lines, frame links,
** and the C frames that hold them on the machine's stack.
**
** Invariants: no pointer of the VM is followed before it was checked, and all
** reads go through fault-safe loads; a frame is emitted only if its function
** slot holds a function, and its position only if it lies in that function's
** bytecode. Frames only go down and stay inside the Lua stack.
** Runs in the sampler's handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/frames/frames.h"

_Static_assert(CFRAME_SIZE == 80 && CFRAME_OFS_L == LJP_CF_L * 8 &&
                   CFRAME_OFS_PC == LJP_CF_PC * 8,
               "another C frame");
_Static_assert(LJ_FR2 == 1 && LJ_GC64 == 1, "GC64 only");

#define BOTTOM_SLOTS (1 + LJ_FR2) /* below them no frame is anybody's */

/* -- Reads ------------------------------------------------------------------
 */

/* The header behind nextgc: marked, gct, ffid (of functions) ... */
LJP_SIGSAFE static bool load_header(uint64_t object, uint64_t *header)
{
  return ljp_load(object + offsetof(GChead, marked), header);
}

/* The mark is the collector's, and says nothing. */
LJP_SIGSAFE static void note_header(uint64_t object, uint64_t header,
                                    struct ljp_memo *notes)
{
  ljp_memo_note(notes, object + offsetof(GChead, marked), header, 1);
}
_Static_assert(offsetof(GChead, marked) % 8 == 0, "notes are of whole words");
#define HEADER_GCT(header) ((uint8_t)((header) >> 8))
#define HEADER_FFID(header) ((uint8_t)((header) >> 16))

_Static_assert(offsetof(GChead, gct) == offsetof(GChead, marked) + 1 &&
                   offsetof(GCfuncC, ffid) == offsetof(GChead, marked) + 2,
               "another object header");

/* -- A Lua thread --------------------------------------------------------- */

bool ljp_guest_thread(struct ljp_thread *thread, uint64_t L)
{
  return ljp_guest_thread_noted(thread, L, NULL);
}

bool ljp_guest_thread_noted(struct ljp_thread *thread, uint64_t L,
                            struct ljp_memo *notes)
{
  uint64_t header, value;
  /* A thread that runs is one, and stays what it is; its stack may be moved. */
  struct ljp_memo *checks = ljp_memo_is_lean(notes) ? NULL : notes;
  if (!load_header(L, &header) || HEADER_GCT(header) != (uint8_t)~LJ_TTHREAD)
    return false;
  note_header(L, header, checks);
  if (!ljp_load_noted(L + offsetof(lua_State, glref), &value, checks))
    return false;
  thread->vm = ljp_vm_of_noted(value, checks);
  if (!thread->vm)
    return false;
  thread->L = L;
  thread->g = value;
  thread->notes = notes;
  _Static_assert(offsetof(lua_State, stacksize) % 8 == 0, "its own word");
  if (!ljp_load_noted(L + offsetof(lua_State, stack), &thread->low, notes) ||
      !ljp_load_noted(L + offsetof(lua_State, stacksize), &value, checks))
    return false;
  thread->high = thread->low + (value & UINT32_MAX) * sizeof(TValue);
  return true;
}

/* Is this the BASE of a frame that can exist? */
LJP_SIGSAFE static bool base_ok(const struct ljp_thread *thread, uint64_t base)
{
  return !(base & 7) && base >= thread->low + BOTTOM_SLOTS * sizeof(TValue) &&
         base <= thread->high;
}

bool ljp_at_bottom(const struct ljp_thread *thread, uint64_t base)
{
  return base <= thread->low + BOTTOM_SLOTS * sizeof(TValue);
}

/* -- A frame's function -----------------------------------------------------
 */

LJP_SIGSAFE static bool read_proto(uint64_t proto, struct ljp_function *fn)
{
  uint64_t header, counts, sizes;
  _Static_assert(offsetof(GCproto, sizebc) % 8 == 4 &&
                     offsetof(GCproto, unused_gc64) ==
                         offsetof(GCproto, sizebc) + 4,
                 "another GCproto");
  if (!load_header(proto, &header) ||
      HEADER_GCT(header) != (uint8_t)~LJ_TPROTO ||
      !ljp_load(proto + offsetof(GCproto, sizebc) - 4, &counts) ||
      !ljp_load(proto + offsetof(GCproto, unused_gc64), &sizes))
    return false;
  fn->proto = proto;
  fn->sizebc = (uint32_t)(counts >> 32);
  fn->ref = (uint32_t)sizes;
  return true;
}

bool ljp_read_function(uint64_t slot_value, struct ljp_function *fn)
{
  return ljp_read_function_noted(slot_value, fn, NULL);
}

/* What is read of a prototype is not noted: as long as none is freed
** (ljp_guest_generation), it stays as it is. */
bool ljp_read_function_noted(uint64_t slot_value, struct ljp_function *fn,
                             struct ljp_memo *notes)
{
  if ((int64_t)slot_value >> 47 != (int64_t)(int32_t)LJ_TFUNC)
    return false;
  fn->object = slot_value & LJ_GCVMASK;
  uint64_t header;
  if (!load_header(fn->object, &header) ||
      HEADER_GCT(header) != (uint8_t)~LJ_TFUNC) {
    ljp_memo_blur(notes);
    return false;
  }
  note_header(fn->object, header, notes);
  fn->ffid = HEADER_FFID(header);
  if (fn->ffid != FF_LUA)
    return true;
  uint64_t pc;
  if (!ljp_load_noted(fn->object + offsetof(GCfuncL, pc), &pc, notes)) {
    ljp_memo_blur(notes);
    return false;
  }
  if (!read_proto(pc - sizeof(GCproto), fn)) {
    ljp_memo_blur(notes);
    return false;
  }
  return true;
}

/* Does pc point behind an instruction of this function? */
LJP_SIGSAFE static bool pc_in(const struct ljp_function *fn, uint64_t pc)
{
  uint64_t code = fn->proto + sizeof(GCproto);
  return !(pc & 3) && pc > code && pc <= code + fn->sizebc * sizeof(BCIns);
}

/* The source line of the instruction before pc, 0 if it is not known. */
LJP_SIGSAFE static uint32_t line_of(const struct ljp_function *fn, uint64_t pc)
{
  if (!pc || !pc_in(fn, pc))
    return 0;
  uint64_t info, lines;
  _Static_assert(offsetof(GCproto, firstline) % 8 == 0 &&
                     offsetof(GCproto, numline) ==
                         offsetof(GCproto, firstline) + 4,
                 "another GCproto");
  if (!ljp_load(fn->proto + offsetof(GCproto, lineinfo), &info) || !info ||
      !ljp_load(fn->proto + offsetof(GCproto, firstline), &lines))
    return 0;
  uint32_t first = (uint32_t)lines, count = (uint32_t)(lines >> 32);
  uint64_t position = (pc - fn->proto - sizeof(GCproto)) / sizeof(BCIns) - 1;
  if (position == 0)
    return first;
  position--;
  unsigned width = count < 256 ? 1 : count < 65536 ? 2 : 4;
  uint64_t address = info + position * width, word;
  if (!ljp_load(address & ~UINT64_C(7), &word))
    return 0;
  word >>= (address & 7) * 8;
  if (width == 1)
    word &= 0xff;
  else if (width == 2)
    word &= 0xffff;
  return first + (uint32_t)word;
}

bool ljp_proto_line(uint64_t proto, uint32_t ref, uint32_t pc, uint32_t *line)
{
  struct ljp_function fn;
  if (!read_proto(proto, &fn) || fn.ref != ref)
    return false;
  uint64_t code = proto + sizeof(GCproto);
  *line = line_of(&fn, code + (uint32_t)(pc - (uint32_t)code) + sizeof(BCIns));
  return true;
}

LJP_SIGSAFE static bool emit(struct ljp_stack *stack,
                             const struct ljp_function *fn, uint64_t pc,
                             enum ljp_frame_kind kind, enum ljp_exact exact,
                             struct ljp_memo *notes)
{
  if (fn->ffid == FF_LUA)
    return ljp_stack_add(stack,
                         ljp_frame_lua(kind, exact, fn->ref, line_of(fn, pc)));
  if (fn->ffid > FF_C)
    return ljp_stack_add(stack, ljp_frame(LJP_FRAME_BUILTIN, 0, fn->ffid));
  uint64_t f;
  if (!ljp_load_noted(fn->object + offsetof(GCfuncC, f), &f, notes)) {
    ljp_memo_blur(notes);
    f = 0;
  }
  return ljp_stack_add(stack, ljp_frame(LJP_FRAME_CFUNC, 0, f));
}

bool ljp_emit(struct ljp_stack *stack, const struct ljp_function *fn,
              uint64_t pc)
{
  return emit(stack, fn, pc, LJP_FRAME_LUA, LJP_EXACT_EXACT, NULL);
}

bool ljp_emit_inlined(struct ljp_stack *stack, const struct ljp_function *fn,
                      uint64_t pc)
{
  return emit(stack, fn, pc, LJP_FRAME_LUA_INLINED, LJP_EXACT_SNAPSHOT, NULL);
}

/* -- Links ------------------------------------------------------------------
 */

LJP_SIGSAFE static bool is_call(uint32_t ins)
{
  switch (bc_op(ins)) {
  case BC_CALLM:
  case BC_CALL:
  case BC_ITERC:
  case BC_ITERN:
  case BC_JLOOP: /* an ITERN that was compiled */
    return true;
  default:
    return false;
  }
}

bool ljp_follow(const struct ljp_thread *thread, uint64_t base, uint64_t value,
                struct ljp_link *link)
{
  link->pc = 0;
  link->boundary = link->same = link->lua = false;
  if ((value & FRAME_TYPE) == FRAME_LUA) {
    uint32_t ins;
    uint64_t slot;
    /* The position tells the function. */
    struct ljp_memo *notes =
        ljp_memo_is_lean(thread->notes) ? NULL : thread->notes;
    if (!ljp_load32(value - sizeof(BCIns), &ins) || !is_call(ins))
      return false;
    link->base = base - (2 + (uint64_t)bc_a(ins)) * sizeof(TValue);
    link->pc = value;
    link->lua = true;
    link->note = thread->notes ? thread->notes->reads : 0;
    return base_ok(thread, link->base) && link->base < base &&
           ljp_load_noted(link->base - 2 * sizeof(TValue), &slot, notes) &&
           ljp_read_function_noted(slot, &link->fn, notes) &&
           link->fn.ffid == FF_LUA && pc_in(&link->fn, value);
  }
  uint64_t delta = value & ~(uint64_t)FRAME_TYPEP;
  link->base = base - delta;
  if (!base_ok(thread, link->base) || link->base >= base)
    return false;
  switch (value & FRAME_TYPEP) {
  case FRAME_C:
  case FRAME_CP:
    link->boundary = true;
    return true;
  case FRAME_CONT: {
    uint64_t kind;
    if (!ljp_load_noted(base - 4 * sizeof(TValue), &kind, thread->notes))
      return false;
    if (kind == LJ_CONT_FFI_CALLBACK) {
      link->boundary = true;
      return true;
    }
    return ljp_load_noted(base - 3 * sizeof(TValue), &link->pc, thread->notes);
  }
  case FRAME_VARG:
    link->same = true;
    return true;
  default: /* FRAME_LUAP, FRAME_PCALL, FRAME_PCALLH */
    return true;
  }
}

/* -- From one Lua thread to another ---------------------------------------------
 */

LJP_SIGSAFE static void leave_open(struct ljp_guest *guest)
{
  if (LJP_LIKELY(!guest->open))
    return;
  struct ljp_left *left = &guest->left[guest->left_count++ % LJP_GUEST_LEFT];
  guest->forgot |= left->L != 0;
  *left = (struct ljp_left){guest->L, guest->g, guest->base};
}

void ljp_guest_come_to(struct ljp_guest *guest, const struct ljp_thread *thread,
                       uint64_t base)
{
  if (guest->L != thread->L)
    leave_open(guest);
  guest->L = thread->L;
  guest->g = thread->g;
  guest->base = base;
  guest->open = !ljp_at_bottom(thread, base);
}

bool ljp_guest_come_back(struct ljp_guest *guest, uint64_t L, uint64_t g,
                         const struct ljp_stack *stack)
{
  uint32_t known =
      guest->left_count < LJP_GUEST_LEFT ? guest->left_count : LJP_GUEST_LEFT;
  for (uint32_t i = 1; i <= known; i++) {
    struct ljp_left *left =
        &guest->left[(guest->left_count - i) % LJP_GUEST_LEFT];
    struct ljp_left found = *left;
    if (!found.L || (L ? found.L != L : found.g != g))
      continue;
    left->L = left->g = 0;
    leave_open(guest);
    guest->L = found.L;
    guest->g = found.g;
    guest->base = found.base;
    guest->open = true;
    guest->mark = stack->count;
    return true;
  }
  return false;
}

/* -- Segments ---------------------------------------------------------------
 */

enum { POINT_GUEST = 1, POINT_SKIP = 2, POINT_COMPILED = 4 };

/* The state between two frames, with all that the rest of a walk depends on:
** BASE and position of the frame below, its Lua thread, and what leaving the
** segment needs. Is the rest known? A point is recorded only where what is read
** behind it is noted. */
LJP_SIGSAFE static bool rest_is_known(const struct ljp_guest *guest,
                                      const struct ljp_thread *thread,
                                      const struct ljp_start *at,
                                      const struct ljp_link *link, bool skip,
                                      struct ljp_stack *stack)
{
  const struct ljp_regs *regs = at->regs;
  const uint32_t kept = 1u << LJP_R12 | 1u << LJP_R13;
  if (LJP_UNLIKELY(stack->memo->mode == LJP_MEMO_RECORD && !thread->notes) ||
      LJP_UNLIKELY(guest->left_count))
    return false;
  struct ljp_memo_point now = {.sp = at->cframe, .order = link->base};
  now.word[0] = link->pc;
  now.word[1] = thread->L;
  now.word[2] = thread->low;
  now.word[3] = thread->high;
  now.word[4] = KNOWN(regs, LJP_R12) ? regs->r[LJP_R12] : 0;
  now.word[5] = KNOWN(regs, LJP_R13) ? regs->r[LJP_R13] : 0;
  now.word[6] = ljp_guest_unmet(guest);
  now.wants = (uint32_t)now.word[6];
  if (thread->notes)
    now.read = link->lua ? link->note : thread->notes->reads;
  now.flags = POINT_GUEST | (skip ? POINT_SKIP : 0) |
              (at->compiled ? POINT_COMPILED : 0) | (regs->known & kept) << 8;
  return ljp_memo_meet(stack->memo, &now, stack->frames, &stack->count,
                       stack->limit);
}

bool ljp_walk_segment(struct ljp_guest *guest, const struct ljp_thread *thread,
                      struct ljp_start at, struct ljp_stack *stack)
{
  bool skip = at.skip_top;
  struct ljp_link link = {.base = at.base, .pc = at.pc};
  struct ljp_memo *notes = thread->notes;
  do {
    uint64_t base = link.base, slot, value;
    if (stack->memo && at.cframe && !at.use_link &&
        ljp_memo_near(stack->memo, at.cframe, base) &&
        rest_is_known(guest, thread, &at, &link, skip, stack))
      return false;
    if (!base_ok(thread, base)) {
      stack->cut = LJP_CUT_BAD_FRAME;
      return false;
    }
    if (ljp_at_bottom(thread, base))
      break;
    if (!ljp_load_noted(base - sizeof(TValue), &value, notes) ||
        (!link.lua &&
         !ljp_load_noted(base - 2 * sizeof(TValue), &slot, notes))) {
      stack->cut = LJP_CUT_BAD_READ;
      return false;
    }
    if (at.use_link) {
      value = at.link;
      at.use_link = false;
    }
    /* A link back to a Lua function has read it already. */
    if (!skip && (link.lua || ljp_read_function_noted(slot, &link.fn, notes)) &&
        !emit(stack, &link.fn, link.pc, LJP_FRAME_LUA, LJP_EXACT_EXACT, notes))
      return false;
    if (!ljp_follow(thread, base, value, &link)) {
      stack->cut = LJP_CUT_BAD_FRAME;
      return false;
    }
    skip = link.same && !skip;
  } while (!link.boundary);
  ljp_guest_come_to(guest, thread, link.base);
  return true;
}

/* -- C frames ---------------------------------------------------------------
 */

bool ljp_leave(struct ljp_regs *regs, uint64_t cframe, struct ljp_stack *stack)
{
  static const uint8_t reg[LJP_CF_WORDS] = {[LJP_CF_R14] = LJP_R14,
                                            [LJP_CF_R15] = LJP_R15,
                                            [LJP_CF_RBX] = LJP_RBX,
                                            [LJP_CF_RBP] = LJP_RBP};
  uint64_t word[LJP_CF_WORDS];
  for (int i = LJP_CF_R14; i < LJP_CF_WORDS; i++) {
    uint64_t at = cframe + (unsigned)i * 8;
    if (!ljp_load(at, &word[i])) {
      stack->cut = LJP_CUT_BAD_READ;
      return false;
    }
    if (i == LJP_CF_RET)
      ljp_memo_note(regs->notes, at, word[i], 0);
    else
      ljp_memo_restore(regs->notes, (enum ljp_reg)reg[i], at, word[i]);
  }
  uint64_t sp = cframe + LJP_CF_WORDS * 8;
  if (sp <= regs->r[LJP_RSP]) {
    stack->cut = LJP_CUT_BAD_FRAME;
    return false;
  }
  regs->r[LJP_R14] = word[LJP_CF_R14];
  regs->r[LJP_R15] = word[LJP_CF_R15];
  regs->r[LJP_RBX] = word[LJP_CF_RBX];
  regs->r[LJP_RBP] = word[LJP_CF_RBP];
  regs->r[LJP_RIP] = word[LJP_CF_RET];
  regs->r[LJP_RSP] = sp;
  regs->known = (regs->known & (1u << LJP_R12 | 1u << LJP_R13)) |
                1u << LJP_R14 | 1u << LJP_R15 | 1u << LJP_RBX | 1u << LJP_RBP |
                1u << LJP_RIP | 1u << LJP_RSP;
  regs->exact = false;
  return true;
}

bool ljp_leave_compiled(struct ljp_regs *regs, uint64_t cframe,
                        struct ljp_stack *stack)
{
  uint64_t r12, r13;
  bool known = ljp_load(cframe, &r12) && ljp_load(cframe - 8, &r13);
  if (known) {
    ljp_memo_restore(regs->notes, LJP_R12, cframe, r12);
    ljp_memo_restore(regs->notes, LJP_R13, cframe - 8, r13);
  } else {
    ljp_memo_blur(regs->notes);
  }
  if (!ljp_leave(regs, cframe, stack))
    return false;
  regs->known &= ~(1u << LJP_R12 | 1u << LJP_R13);
  if (known) {
    regs->r[LJP_R12] = r12;
    regs->r[LJP_R13] = r13;
    regs->known |= 1u << LJP_R12 | 1u << LJP_R13;
  }
  return true;
}

uint64_t ljp_cframe_above(uint64_t L, uint64_t sp)
{
  uint64_t cframe;
  if (!ljp_load(L + offsetof(lua_State, cframe), &cframe))
    return 0;
  for (int i = 0; i < LJP_GUEST_MAX_CFRAMES; i++) {
    cframe &= (uint64_t)(int64_t)CFRAME_RAWMASK;
    if (cframe >= sp || !cframe)
      return cframe;
    if (!ljp_load(cframe + LJP_CF_PREV * 8, &cframe))
      return 0;
  }
  return 0;
}

/* Is this C frame still linked, or has an error already unwound it? */
bool ljp_cframe_linked(uint64_t L, uint64_t wanted, struct ljp_memo *notes)
{
  uint64_t cframe;
  if (!ljp_load_noted(L + offsetof(lua_State, cframe), &cframe, notes))
    return false;
  for (int i = 0; i < LJP_GUEST_MAX_CFRAMES; i++) {
    cframe &= (uint64_t)(int64_t)CFRAME_RAWMASK;
    if (cframe == wanted)
      return true;
    if (!cframe)
      return false;
    if (!ljp_load_noted(cframe + LJP_CF_PREV * 8, &cframe, notes)) {
      ljp_memo_blur(notes);
      return false;
    }
  }
  return false;
}
