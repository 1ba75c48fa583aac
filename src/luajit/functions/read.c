/*
** Reading functions from a stopped VM; see read.h. Runs in the sampler's
** handler on the interrupted thread: LJP_SIGSAFE.
*/
#define LUA_CORE

#include "lj_obj.h"
#include "lj_bc.h"

#include "src/luajit/functions/read.h"

_Static_assert(offsetof(GChead, marked) % 8 == 0, "notes are of whole words");
_Static_assert(offsetof(GChead, gct) == offsetof(GChead, marked) + 1 &&
                   offsetof(GCfuncC, ffid) == offsetof(GChead, marked) + 2,
               "another object header");

bool ljp_header_read(uint64_t object, uint64_t *header)
{
  return ljp_load(object + offsetof(GChead, marked), header);
}

void ljp_header_note(uint64_t object, struct ljp_memo *notes)
{
  if (LJP_UNLIKELY(notes != NULL))
    ljp_memo_note_behind(notes, object + offsetof(GChead, marked), 1);
}

LJP_SIGSAFE static bool fn_read_proto(uint64_t proto, struct ljp_function *fn)
{
  uint64_t header, counts, sizes;
  _Static_assert(offsetof(GCproto, sizebc) % 8 == 4 &&
                     offsetof(GCproto, unused_gc64) ==
                         offsetof(GCproto, sizebc) + 4,
                 "another GCproto");
  if (!ljp_header_read(proto, &header) ||
      LJP_HEADER_GCT(header) != (uint8_t)~LJ_TPROTO ||
      !ljp_load(proto + offsetof(GCproto, sizebc) - 4, &counts) ||
      !ljp_load(proto + offsetof(GCproto, unused_gc64), &sizes))
    return false;
  fn->proto = proto;
  fn->sizebc = (uint32_t)(counts >> 32);
  fn->ref = (uint32_t)sizes;
  return true;
}

bool ljp_function_read(uint64_t slot_value, struct ljp_function *fn)
{
  return ljp_function_read_noted(slot_value, fn, NULL);
}

/* Reads of a prototype are not noted, because the contents do not change until
** a prototype is freed (ljp_guest_generation). */
bool ljp_function_read_noted(uint64_t slot_value, struct ljp_function *fn,
                             struct ljp_memo *notes)
{
  if ((int64_t)slot_value >> 47 != (int64_t)(int32_t)LJ_TFUNC)
    return false;
  fn->object = slot_value & LJ_GCVMASK;
  uint64_t header;
  if (!ljp_header_read(fn->object, &header) ||
      LJP_HEADER_GCT(header) != (uint8_t)~LJ_TFUNC) {
    ljp_memo_blur(notes);
    return false;
  }
  ljp_header_note(fn->object, notes);
  fn->ffid = LJP_HEADER_FFID(header);
  if (fn->ffid != FF_LUA)
    return true;
  uint64_t pc;
  if (!ljp_load_noted(fn->object + offsetof(GCfuncL, pc), &pc, notes) ||
      !fn_read_proto(pc - sizeof(GCproto), fn)) {
    ljp_memo_blur(notes);
    return false;
  }
  return true;
}

_Static_assert(BC_JFUNCV == BC_FUNCF + 5, "other headers of functions");

/* Instructions to look back. Only huge functions have more. */
enum { FN_REACH = 4096 };

/* A function's bytecode begins with its header, and behind the prototype; other
** instructions are no headers. */
bool ljp_function_at(uint64_t pc, struct ljp_function *fn)
{
  *fn = (struct ljp_function){.ffid = FF_LUA};
  if (pc & 3)
    return false;
  for (uint32_t i = 0; i < FN_REACH; i++) {
    uint32_t ins;
    pc -= sizeof ins;
    if (!ljp_load32(pc, &ins))
      return false;
    if (bc_op(ins) >= BC_FUNCF && bc_op(ins) <= BC_JFUNCV)
      return fn_read_proto(pc - sizeof(GCproto), fn) &&
             ljp_function_has_pc(fn, pc + (i + 1) * sizeof ins);
  }
  return false;
}

/* The line of a position inside the function's bytecode. */
LJP_SIGSAFE static uint32_t fn_line_at(const struct ljp_function *fn,
                                       uint64_t pc)
{
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

uint32_t ljp_function_line(const struct ljp_function *fn, uint64_t pc)
{
  return pc && ljp_function_has_pc(fn, pc) ? fn_line_at(fn, pc) : 0;
}

bool ljp_proto_line(uint64_t proto, uint32_t ref, uint32_t pc, uint32_t *line)
{
  struct ljp_function fn = {.ffid = FF_LUA};
  if (!fn_read_proto(proto, &fn) || fn.ref != ref)
    return false;
  uint64_t code = proto + sizeof(GCproto);
  *line = ljp_function_line(&fn, code + (uint32_t)(pc - (uint32_t)code) +
                                     sizeof(BCIns));
  return true;
}
