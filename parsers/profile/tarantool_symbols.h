/*
** What the addresses and numbers of Tarantool's files mean at the present place
** of the file: Lua functions, C functions and traces by the newest symbol that
** has their key, and the frames of the profile that they become. One thread a
** table.
*/
#ifndef LJP_PARSERS_PROFILE_TARANTOOL_SYMBOLS_H
#define LJP_PARSERS_PROFILE_TARANTOOL_SYMBOLS_H

#include <string.h>

#include "parsers/base/index.h"
#include "parsers/profile/intern.h"
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
  uint32_t asked;      /* Newest of its places in asked[], + 1; 0: none. */
  uint32_t asked_age;  /* The table's, when `asked` was set. */
  uint64_t changed;    /* Generation that gave it another meaning; 0: none. */
};

struct ljp_tarantool_defs {
  struct ljp_tarantool_def *list;
  uint32_t count, room;
  struct ljp_index index;
};

/* A place of memory events whose row somebody keeps (tarantool_places.h). */
struct ljp_tarantool_asked {
  uint64_t number;
  uint32_t what;
  uint32_t next; /* Of the same definition, changed or free; + 1. */
};

#ifdef LJP_DEBUG
#define LJP_TARANTOOL_CHANGED_BITS 2u
#else
#define LJP_TARANTOOL_CHANGED_BITS 12u
#endif

struct ljp_tarantool_symbols {
  struct ljp_tarantool_defs protos, traces;
  struct ljp_tarantool_defs names; /* Of C functions, by address: file. */
  struct ljp_cfuncs cfuncs;
  bool cfuncs_used; /* A C function was looked for. */
  struct ljp_tarantool_asked *asked;
  uint32_t asked_count, asked_room;
  uint32_t asked_free;    /* First of those that are free again, + 1. */
  uint32_t asked_changed; /* First of those that changed, + 1. */
  uint32_t asked_age;     /* How often all were dropped. */
  uint32_t *aliases;      /* Strings: sources that chunks have for a name. */
  uint32_t alias_count, alias_room;
  struct ljp_index alias_index;
  /* How often a key that was asked for got another meaning. */
  uint64_t generation;
  uint64_t cfunc_generation; /* The newest that was about C functions. */
  /* By hash of Lua functions: the newest that was about one of them. */
  uint64_t changed[1u << LJP_TARANTOOL_CHANGED_BITS];
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

/* What makes up the frame of a Lua function, but for the line: equal numbers
** give equal frames. 0: the function is not known. */
enum ljp_status
ljp_tarantool_symbols_meaning(struct ljp_tarantool_symbols *symbols,
                              struct ljp_profile *p, uint64_t proto,
                              uint64_t *meaning);

/* Notes that a row is kept for a place of a Lua function or a trace. */
enum ljp_status ljp_tarantool_symbols_ask(struct ljp_tarantool_symbols *symbols,
                                          struct ljp_profile *p, bool trace,
                                          uint64_t number, uint32_t what);
/* The next noted place that means something else now; false: there is none. */
bool ljp_tarantool_symbols_changed(struct ljp_tarantool_symbols *symbols,
                                   uint64_t *number, uint32_t *what);
/* No row is kept any more. */
void ljp_tarantool_symbols_unask(struct ljp_tarantool_symbols *symbols);

/* Whether what a sample's frames mean has not changed since a generation. */
bool ljp_tarantool_symbols_hold(struct ljp_tarantool_symbols *symbols,
                                const struct ljp_profile *p,
                                const struct ljp_tarantool_sample *sample,
                                uint64_t generation);

static inline uint64_t *
ljp_tarantool_symbols_changed_at(struct ljp_tarantool_symbols *symbols,
                                 uint64_t proto)
{
  uint64_t hash = ljp_hash_mix(proto, 0);
  return &symbols->changed[hash >> (64 - LJP_TARANTOOL_CHANGED_BITS)];
}

/* Whether a Lua function has certainly not changed since a generation. */
static inline bool
ljp_tarantool_symbols_same(struct ljp_tarantool_symbols *symbols,
                           uint64_t proto, uint64_t generation)
{
  return *ljp_tarantool_symbols_changed_at(symbols, proto) <= generation;
}

/* -- For tarantool_frames.c ------------------------------------------------ */

/* The definition of a key, which is made if it is new. NULL: no memory. */
struct ljp_tarantool_def *
ljp_tarantool_symbols_at(const struct ljp_profile *p,
                         struct ljp_tarantool_defs *defs, uint64_t key);

/* The file and first line of a prototype in *def. */
enum ljp_status
ljp_tarantool_symbols_start(struct ljp_tarantool_symbols *symbols,
                            struct ljp_profile *p, uint64_t proto,
                            struct ljp_tarantool_def *def);

/* A line of a definition; library functions in bytecode have a negative one. */
static inline bool ljp_tarantool_is_builtin(uint64_t line)
{
  return line > INT32_MAX;
}

static inline enum ljp_status
ljp_tarantool_intern_text(struct ljp_profile *p, const char *text, uint32_t *id)
{
  return ljp_profile_intern_string(
      p, (struct ljp_str){text, (uint32_t)strlen(text)}, id);
}

/* -- Frames (tarantool_frames.c) -------------------------------------------
** line: the current one; 0: not known. start: of the C function; 0: it
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
