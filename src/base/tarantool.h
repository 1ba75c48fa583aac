/*
** The file formats of Tarantool's profilers, as their LuaJIT writes them, for
** readers and writers:
**
**   file    symtab events          one stream of bytes, no padding
**   symtab  "ljs" 3 reserved[3] { symbol } end
**   events  "ljm" 3 reserved[3] { event  } end     (memprof)
**           "ljp" 2 reserved[3] { sample } end     (sysprof)
**   end     a byte with the bit LJP_TARANTOOL_END
**
**   symbol  LJP_LJS_LFUNC  proto chunk line
**           LJP_LJS_CFUNC  address name
**           LJP_LJS_TRACE  number proto line
**
**   event   kind | source << 2, then for a symbol the fields of the symbol;
**           else the place and the sizes:
**     place LJP_LJM_INTERNAL   nothing
**           LJP_LJM_LFUNC      proto line       (the current line)
**           LJP_LJM_CFUNC      address
**           LJP_LJM_TRACE      number
**     sizes LJP_LJM_ALLOC      address size
**           LJP_LJM_FREE       old address, old size
**           LJP_LJM_REALLOC    old address, old size, address, size
**
**   sample  a state of the VM, or LJP_LJP_SYMBOL + kind and a symbol's fields
**     LFUNC, FFUNC, CFUNC      { guest frame } end { host address } 0
**     TRACE                    number proto line
**     others                   { host address } 0
**   guest   LJP_LJP_FRAME_LUA      proto line   (the line of the definition)
**   frame   LJP_LJP_FRAME_C        address
**           LJP_LJP_FRAME_BUILTIN  number
**
** Frames and addresses come leaf first. Everything but the header bytes is an
** ULEB128 number; a string (chunk, name) is its length and its bytes. A symbol
** is valid from its place in the stream on, until another one has its key.
**
** Library functions that LuaJIT has as bytecode are Lua functions, too: their
** chunk is their name, and their line is LJP_TARANTOOL_NO_LINE.
*/
#ifndef LJP_TARANTOOL_H
#define LJP_TARANTOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/base/format.h"

#define LJP_TARANTOOL_MAGIC_BYTES 3u
#define LJP_TARANTOOL_HEAD_BYTES 7u /* Magic, version, three reserved bytes. */
#define LJP_TARANTOOL_END 0x80u
#define LJP_TARANTOOL_NO_LINE UINT64_MAX

#define LJP_LJS_MAGIC "ljs"
#define LJP_LJS_VERSION 3u
#define LJP_LJM_MAGIC "ljm"
#define LJP_LJM_VERSION 3u
#define LJP_LJP_MAGIC "ljp"
#define LJP_LJP_VERSION 2u

/* Kinds of symbols. */
#define LJP_LJS_LIST(_)                                                        \
  _(LFUNC, 0, "Lua function")                                                  \
  _(CFUNC, 1, "C function")                                                    \
  _(TRACE, 2, "trace")

enum ljp_ljs_kind {
#define LJP_X(name, number, text) LJP_LJS_##name = number,
  LJP_LJS_LIST(LJP_X)
#undef LJP_X
};

/* Kinds of memory events: bits 0-1 of the header. */
#define LJP_LJM_KIND_LIST(_)                                                   \
  _(SYMBOL, 0, "symbol")                                                       \
  _(ALLOC, 1, "alloc")                                                         \
  _(FREE, 2, "free")                                                           \
  _(REALLOC, 3, "realloc")

/* Where the event happened, or the symbol's kind: bits 2-4. */
#define LJP_LJM_SOURCE_LIST(_)                                                 \
  _(INTERNAL, 1, "INTERNAL")                                                   \
  _(LFUNC, 2, "Lua")                                                           \
  _(CFUNC, 3, "C")                                                             \
  _(TRACE, 4, "trace")

enum ljp_ljm_kind {
#define LJP_X(name, number, text) LJP_LJM_##name = number,
  LJP_LJM_KIND_LIST(LJP_X)
#undef LJP_X
};

enum ljp_ljm_source {
#define LJP_X(name, number, text) LJP_LJM_##name = number,
  LJP_LJM_SOURCE_LIST(LJP_X)
#undef LJP_X
};
#define LJP_LJM_SOURCE_SHIFT 2u

/* States of the VM; the name of ours that means the same. */
#define LJP_LJP_STATE_LIST(_)                                                  \
  _(INTERP, 0, "INTERP", INTERP)                                               \
  _(LFUNC, 1, "LFUNC", INTERP)                                                 \
  _(FFUNC, 2, "FFUNC", BUILTIN)                                                \
  _(CFUNC, 3, "CFUNC", C)                                                      \
  _(GC, 4, "GC", GC)                                                           \
  _(EXIT, 5, "EXIT", EXIT)                                                     \
  _(RECORD, 6, "RECORD", RECORD)                                               \
  _(OPT, 7, "OPT", OPT)                                                        \
  _(ASM, 8, "ASM", ASM)                                                        \
  _(TRACE, 9, "TRACE", TRACE)

enum ljp_ljp_state {
#define LJP_X(name, number, text, ours) LJP_LJP_##name = number,
  LJP_LJP_STATE_LIST(LJP_X)
#undef LJP_X
      LJP_LJP_STATES
};
#define LJP_LJP_SYMBOL 10u /* + enum ljp_ljs_kind */

/* Kinds of guest frames. */
#define LJP_LJP_FRAME_LIST(_)                                                  \
  _(LUA, 1, "Lua")                                                             \
  _(C, 2, "C")                                                                 \
  _(BUILTIN, 3, "builtin")

enum ljp_ljp_frame {
#define LJP_X(name, number, text) LJP_LJP_FRAME_##name = number,
  LJP_LJP_FRAME_LIST(LJP_X)
#undef LJP_X
};

/* -- What we write --------------------------------------------------------- */

/* Addresses for what has none in our streams: Lua functions, builtins, traces.
** They are above all addresses of programs, so that they never equal an address
** of machine code, and below 2^53, since the tools keep them as doubles. */
#define LJP_TARANTOOL_FUNCTIONS (UINT64_C(1) << 47)
#define LJP_TARANTOOL_BUILTINS (UINT64_C(1) << 48)
#define LJP_TARANTOOL_TRACES (UINT64_C(1) << 49)
#define LJP_TARANTOOL_STEP 16u

/* A line of a definition. UINT32_MAX, for a library function that LuaJIT has as
** bytecode, becomes the number that Tarantool writes for it. */
static inline uint64_t ljp_tarantool_line(uint64_t line)
{
  return line == UINT32_MAX ? LJP_TARANTOOL_NO_LINE : line;
}

/* Numbers of traces. LuaJIT gives the number of a freed trace to another, and
** every VM counts from 1; the formats know a trace by its number alone. So of
** the traces with one number, those that start elsewhere than the first one get
** a larger number. The caller asks once for each start. */
struct ljp_tarantool_traces {
  uint32_t *taken; /* By number: how often it was given. */
  uint64_t changed;
};
#define LJP_TARANTOOL_TRACE_NUMBERS UINT64_C(65536) /* LuaJIT's limit. */

/* The number that the format can have. */
static inline uint64_t ljp_tarantool_short_number(uint64_t number)
{
  number %= LJP_TARANTOOL_TRACE_NUMBERS;
  return number ? number : 1; /* LuaJIT has no 0, which means "no trace". */
}

/* false: no memory. */
static inline bool ljp_tarantool_number(struct ljp_tarantool_traces *traces,
                                        uint64_t number, uint64_t *given)
{
  number = ljp_tarantool_short_number(number);
  if (!traces->taken)
    traces->taken =
        calloc((size_t)LJP_TARANTOOL_TRACE_NUMBERS, sizeof *traces->taken);
  if (!traces->taken)
    return false;
  traces->changed += traces->taken[number] != 0;
  *given = number + LJP_TARANTOOL_TRACE_NUMBERS * traces->taken[number]++;
  return true;
}

/* -- Where a memory event happened ----------------------------------------- */

/* Whether the VM did this by itself: for its collector or its compiler. What a
** bytecode asks for while it is recorded is the program's. */
static inline bool ljp_ljm_is_internal(unsigned vmstate, unsigned type)
{
  switch (vmstate) {
  case LJP_VMSTATE_GC:
  case LJP_VMSTATE_EXIT:
  case LJP_VMSTATE_OPT:
  case LJP_VMSTATE_ASM:
    return true;
  case LJP_VMSTATE_RECORD:
    if (type == LJP_MEM_TYPE_NONE || type > LJP_MEM_TYPE_STACK)
      return true;
  }
  return type == LJP_MEM_TYPE_TRACE || type == LJP_MEM_TYPE_COMPILER;
}

/* The search for the one frame of a stack that an event of ljm names: the
** stack's innermost line, C function or trace. A builtin that a Lua function
** calls belongs to the line of the call. */
struct ljp_ljm_search {
  bool compiled; /* At first: did the event happen in compiled code? */
  bool builtin;  /* A frame was BUILTIN. */
};

enum ljp_ljm_frame {
  LJP_LJM_FRAME_FOUND,   /* It is this one. */
  LJP_LJM_FRAME_BUILTIN, /* It is this one if no other is found. */
  LJP_LJM_FRAME_LAST,    /* It is neither this one nor any outer one. */
  LJP_LJM_FRAME_NEXT
};

/* Asked of each frame, the innermost first. */
static inline enum ljp_ljm_frame ljp_ljm_look(struct ljp_ljm_search *search,
                                              unsigned kind)
{
  switch (kind) {
  case LJP_FRAME_TRACE:
    return LJP_LJM_FRAME_FOUND;
  case LJP_FRAME_LUA_INLINED: /* Its trace is an outer frame. */
    search->compiled = true;
    break;
  case LJP_FRAME_LUA:
    if (!search->compiled)
      return LJP_LJM_FRAME_FOUND;
    break;
  case LJP_FRAME_BUILTIN:
    if (search->builtin || search->compiled)
      break;
    search->builtin = true;
    return LJP_LJM_FRAME_BUILTIN;
  case LJP_FRAME_CFUNC:
    return search->builtin || search->compiled ? LJP_LJM_FRAME_LAST
                                               : LJP_LJM_FRAME_FOUND;
  }
  return LJP_LJM_FRAME_NEXT;
}

#endif
