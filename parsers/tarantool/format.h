/*
** The file formats of Tarantool's profilers, as their LuaJIT writes them:
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
** holds from its place in the stream on, until another one has its key.
**
** Library functions that LuaJIT has as bytecode are Lua functions, too: their
** chunk is their name, and their line is LJP_TARANTOOL_NO_LINE.
*/
#ifndef LJP_PARSERS_TARANTOOL_FORMAT_H
#define LJP_PARSERS_TARANTOOL_FORMAT_H

#include <stdint.h>

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

#endif
