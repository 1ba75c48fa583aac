/*
** What the addresses and numbers of Tarantool's files mean at the present place
** of the file: Lua functions, C functions and traces by the newest symbol that
** has their key, and the frames of the profile that they become. One thread a
** table.
*/
#ifndef LJP_PARSERS_PROFILE_TARANTOOL_SYMBOLS_H
#define LJP_PARSERS_PROFILE_TARANTOOL_SYMBOLS_H

#include "parsers/base/index.h"
#include "parsers/profile/profile.h"
#include "parsers/tarantool/cfuncs.h"
#include "parsers/tarantool/reader.h"

/* A Lua function or a trace, by its key. */
struct ljp_tarantool_def {
  uint64_t key;
  bool known;          /* false: asked for, but not defined yet. */
  bool builtin;        /* A library function in bytecode: file is its name. */
  uint32_t file;       /* String. */
  uint32_t line;       /* Of the definition; TRACE: where it starts. */
  uint32_t first_line; /* TRACE: of the function where it starts. */
  uint64_t proto;      /* TRACE: the key of that function. */
  uint32_t trace;      /* TRACE: in traces[]; 0: none. */
};

struct ljp_tarantool_defs {
  struct ljp_tarantool_def *list;
  uint32_t count, room;
  struct ljp_index index;
};

struct ljp_tarantool_symbols {
  struct ljp_tarantool_defs protos, traces;
  struct ljp_cfuncs cfuncs;
  bool cfuncs_used;  /* One was looked for. */
  uint32_t *aliases; /* Strings: sources that chunks have for a name. */
  uint32_t alias_count, alias_room;
  struct ljp_index alias_index;
  /* Changes when a key that was asked for gets another meaning. */
  uint32_t generation;
};

void ljp_tarantool_symbols_fini(struct ljp_tarantool_symbols *symbols);

/* A symbol was read. LJP_ERR_MEM, as for all below. */
enum ljp_status
ljp_tarantool_symbols_add(struct ljp_tarantool_symbols *symbols,
                          struct ljp_profile *p,
                          const struct ljp_tarantool_symbol *symbol);

/* The table of symbols is read: the functions of traces that came before them
** are known now. */
enum ljp_status
ljp_tarantool_symbols_whole(struct ljp_tarantool_symbols *symbols,
                            struct ljp_profile *p);

/* Adds notes on what the short names of chunks stand for. */
enum ljp_status
ljp_tarantool_symbols_note(const struct ljp_tarantool_symbols *symbols,
                           struct ljp_profile *p);

/* Frames. line: the current one; 0: not known. start: of the C function; 0: it
** has no symbol. */
enum ljp_status ljp_tarantool_frame_lua(struct ljp_tarantool_symbols *symbols,
                                        struct ljp_profile *p, uint64_t proto,
                                        uint64_t line, uint32_t *frame);
enum ljp_status ljp_tarantool_frame_c(struct ljp_tarantool_symbols *symbols,
                                      struct ljp_profile *p, uint8_t kind,
                                      uint64_t address, uint32_t *frame,
                                      uint64_t *start);
enum ljp_status ljp_tarantool_frame_builtin(struct ljp_profile *p,
                                            uint64_t number, uint32_t *frame);
/* proto, line: what the event itself says; 0: nothing. */
enum ljp_status ljp_tarantool_frame_trace(struct ljp_tarantool_symbols *symbols,
                                          struct ljp_profile *p,
                                          uint64_t number, uint64_t proto,
                                          uint64_t line, uint32_t *frame);
/* What the file calls INTERNAL. */
enum ljp_status ljp_tarantool_frame_internal(struct ljp_profile *p,
                                             uint32_t *frame);

#endif
