/*
** Reading functions from a stopped VM: what a stack slot holds, and which line
** a bytecode position is on. Everything is checked before it is believed, and
** all reads are fault-safe. All LJP_SIGSAFE. Include LuaJIT's headers first.
*/
#ifndef LJP_FUNCTION_READ_H
#define LJP_FUNCTION_READ_H

#include "src/base/assert.h"
#include "src/luajit/vm/load.h"

/* A function object, checked. */
struct ljp_function {
  uint64_t object;
  uint64_t proto;  /* of Lua functions only, as the next two fields */
  uint32_t sizebc; /* bytecode instructions */
  uint32_t ref;
  uint8_t ffid; /* FF_LUA, FF_C, or a builtin's */
};

/* Reads the function in the value of a stack slot. False: the slot holds no
** function. */
LJP_SIGSAFE bool ljp_function_read(uint64_t slot_value,
                                   struct ljp_function *fn);
LJP_SIGSAFE bool ljp_function_read_noted(uint64_t slot_value,
                                         struct ljp_function *fn,
                                         struct ljp_memo *notes);

/* Does pc point behind an instruction of this Lua function? */
LJP_SIGSAFE static inline bool
ljp_function_has_pc(const struct ljp_function *fn, uint64_t pc)
{
  uint64_t code = fn->proto + sizeof(GCproto);
  ljp_assert(fn->ffid == FF_LUA);
  return !(pc & 3) && pc > code && pc <= code + fn->sizebc * sizeof(BCIns);
}

/* Finds the Lua function in whose bytecode pc points behind an instruction; its
** object stays unknown (0). False: there is none. */
LJP_SIGSAFE bool ljp_function_at(uint64_t pc, struct ljp_function *fn);

/* The source line of the instruction before pc, 0 if it is not known. */
LJP_SIGSAFE uint32_t ljp_function_line(const struct ljp_function *fn,
                                       uint64_t pc);

/* The source line of the instruction whose address has the low half pc, in the
** prototype at that address. False: the prototype there has another
** reference. */
LJP_SIGSAFE bool ljp_proto_line(uint64_t proto, uint32_t ref, uint32_t pc,
                                uint32_t *line);

/* The header of a collectable object, behind nextgc: marked, gct, and ffid if
** the object is a function. Notes leave out `marked`, which belongs to the
** collector. */
LJP_SIGSAFE bool ljp_header_read(uint64_t object, uint64_t *header);
LJP_SIGSAFE void ljp_header_note(uint64_t object, struct ljp_memo *notes);
#define LJP_HEADER_GCT(header) ((uint8_t)((header) >> 8))
#define LJP_HEADER_FFID(header) ((uint8_t)((header) >> 16))

#endif
