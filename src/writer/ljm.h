/*
** The output of a session of memory events whose file has Tarantool's format
** ljm from the start (base/tarantool.h, RFC 5), in place of the blocks of a
** stream. Writer thread only, except that the thread that starts the session
** may call ljp_ljm_begin().
**
** The table of symbols is empty; a symbol stands before the first event that
** needs it. Whole events and symbols are collected and handed to the sink at
** the end of each round and whenever 64 KiB have come together. So whatever
** ends the process, the file holds what was written before, and a reader finds
** the end of its last whole event. The byte that ends the file is written only
** if nothing went wrong.
**
** The format has no record for a loss. So what the writer itself cannot write
** ends the session with an error.
**
** Memory: 200 KiB, at most 1.3 MiB for the numbers of traces, and the names of
** C functions (elf_functions.h).
*/
#ifndef LJP_LJM_H
#define LJP_LJM_H

#include "src/base/status.h"
#include "src/base/tarantool.h"
#include "src/writer/elf_functions.h"

struct ljp_source;
struct ljp_writer;

enum {
  LJP_LJM_CACHED_TRACES = 4096,
  LJP_LJM_CACHED_CFUNCS = 4096,
  LJP_LJM_BUILTIN_WORDS = 64 /* of 64 bits each */
};

/* Of the traces with one number, the one that was met last. */
struct ljp_ljm_start {
  uint32_t function, line; /* where it starts */
  uint64_t given;          /* its number in the file; 0: there is none */
};

struct ljp_ljm {
  uint8_t *data; /* not handed to the sink yet */
  size_t len;
  uint64_t events; /* in data */
  bool broken;     /* what the program did last was not recorded */
  /* Symbols that the file has. */
  bool unknown_function;
  uint64_t builtins[LJP_LJM_BUILTIN_WORDS];
  struct ljp_ljm_start *starts; /* by LuaJIT's number; NULL: none yet */
  struct ljp_tarantool_traces traces;
  struct {
    uint64_t id, given;
  } cached_traces[LJP_LJM_CACHED_TRACES];
  /* C functions, as long as the list of modules is the same. */
  struct {
    uint64_t address;
    uint32_t generation;
  } cached_cfuncs[LJP_LJM_CACHED_CFUNCS];
  struct ljp_elf_modules names;
  uint32_t names_generation;
};

/* ljm.c */
enum ljp_status ljp_ljm_new(struct ljp_ljm **out);
void ljp_ljm_free(struct ljp_ljm *ljm);
/* Writes the head of the file. */
enum ljp_status ljp_ljm_begin(struct ljp_writer *w);
/* To be called when the list of modules may have changed. */
void ljp_ljm_update_modules(struct ljp_writer *w);
/* Takes the entries of a source up to a position of its ring, which then is
** released. After an error they are losses. */
void ljp_ljm_drain(struct ljp_writer *w, struct ljp_source *s, uint64_t end);
enum ljp_status ljp_ljm_flush(struct ljp_writer *w);
/* The last byte of a whole file, if it is whole. */
enum ljp_status ljp_ljm_end(struct ljp_writer *w);

/* ljm_symbols.c: what an event names. Each function writes the symbol if the
** file does not have it yet. */
enum { LJP_LJM_MAX_SYMBOLS = 4, LJP_LJM_SYMBOL_BYTES = 2048 };
uint64_t ljp_ljm_function(struct ljp_writer *w, uint32_t ref);
uint64_t ljp_ljm_builtin(struct ljp_writer *w, uint64_t ffid);
uint64_t ljp_ljm_cfunc(struct ljp_writer *w, uint64_t address,
                       uint64_t time_ns);
/* 0: the trace is not known. */
uint64_t ljp_ljm_trace(struct ljp_writer *w, uint64_t id);

#endif
