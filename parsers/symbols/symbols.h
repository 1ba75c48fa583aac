/*
** Symbols: from a module and an address to a function, the functions that it
** is inlined into, and source lines. All addresses are looked up in one batch
** after a profile was read, so that each file is opened once:
**
**   ljp_symbols_module, ljp_symbols_want ... ljp_symbols_resolve,
**   ljp_symbols_get ...
**
** Addresses are virtual addresses as in the ELF file, and name the instruction
** itself; for a caller, pass the return address minus one.
**
** A child process (child.c) reads the files: the path of a module comes from a
** profile, and the file there may be hostile. A file that crashes or stalls the
** child costs only its own names. A file is used if its build-id is the one
** recorded; if none was recorded, if it spans the recorded number of bytes. The
** network is used only if the user has set DEBUGINFOD_URLS.
**
** One thread. Strings and results are valid until ljp_symbols_free().
*/
#ifndef LJP_PARSERS_SYMBOLS_H
#define LJP_PARSERS_SYMBOLS_H

#include <string.h>

#include "parsers/stream/item.h"
#include "src/base/status.h"

struct ljp_symbols;

struct ljp_symbols_options {
  /* Folders with debug files, separated by colons. NULL: the environment
  ** variable LJPROF_DEBUG_PATH; if that is not set, /usr/lib/debug. Tried in
  ** each: .build-id/xx/yyyy.debug, the module's path, its base name. */
  const char *debug_path;
  bool no_dwarf;    /* Names only. */
  bool no_files;    /* Embedded symbols only; no file is opened. */
  bool no_network;  /* As if DEBUGINFOD_URLS were not set. */
  bool in_process;  /* No child process; for tests. */
  unsigned seconds; /* Time limit for the files of one module; 0: 60. */
};

/* NULL: no memory. options may be NULL; their strings are borrowed. */
struct ljp_symbols *ljp_symbols_new(const struct ljp_symbols_options *options);
void ljp_symbols_free(struct ljp_symbols *symbols);

/* The handle of a module; equal modules have the same handle. span: the number
** of bytes that it took in memory; flags: those of MODULE. 0: no memory. */
uint32_t ljp_symbols_module(struct ljp_symbols *symbols, struct ljp_str path,
                            struct ljp_str build_id, uint64_t span,
                            uint64_t flags);

/* Asks for an address. LJP_ERR_USE: no such module. LJP_ERR_LIMIT: too many
** addresses. LJP_ERR_MEM. */
enum ljp_status ljp_symbols_want(struct ljp_symbols *symbols, uint32_t module,
                                 uint64_t address);

/* Compilers move parts of a function into functions of their own (f.part.0),
** which f calls. The outermost function of such code ends in this text. */
#define LJP_SYMBOL_PART ".part"

/* A function at an address. */
struct ljp_symbol_frame {
  const char *function; /* "": not known. */
  const char *file;     /* "": not known. */
  uint32_t line;        /* 0: not known. */
};

/*
** Adds one level of an answer that is embedded in the stream: level 0 is the
** code itself, levels 1, 2 ... the functions that it is inlined into. An
** address with an embedded answer is not looked up in files. Errors as above.
*/
enum ljp_status ljp_symbols_embedded(struct ljp_symbols *symbols,
                                     uint32_t module, uint64_t address,
                                     uint64_t level, uint32_t line,
                                     struct ljp_str function,
                                     struct ljp_str file);

/* Looks up all addresses that were asked for and are not known yet. A file that
** cannot be used makes a notice, not an error. LJP_ERR_IO: no child process
** could be started. LJP_ERR_MEM. */
enum ljp_status ljp_symbols_resolve(struct ljp_symbols *symbols);

/* The length of a function's name without LJP_SYMBOL_PART; whether it had it. */
static inline size_t ljp_symbol_length(const char *function, bool *part)
{
  size_t len = strnlen(function, LJP_STRING_MAX_BYTES);
  size_t end = sizeof LJP_SYMBOL_PART - 1;
  *part = len > end && memcmp(function + len - end, LJP_SYMBOL_PART, end) == 0;
  return *part ? len - end : len;
}

/* The code itself first, then the functions that it is inlined into. */
struct ljp_symbol {
  uint32_t count; /* 0: nothing is known about the address. */
  const struct ljp_symbol_frame *frames;
};

/* The answer for an address; NULL: it was not asked for. */
const struct ljp_symbol *ljp_symbols_get(const struct ljp_symbols *symbols,
                                         uint32_t module, uint64_t address);

/* The answer for the n-th of a module's resolved addresses, ascending; NULL
** after the last. */
const struct ljp_symbol *ljp_symbols_each(const struct ljp_symbols *symbols,
                                          uint32_t module, size_t n,
                                          uint64_t *address);

/* Asks for all functions in a module's tables of symbols. LJP_ERR_USE: no such
** module. */
enum ljp_status ljp_symbols_want_functions(struct ljp_symbols *symbols,
                                           uint32_t module);

/* The n-th of them, after ljp_symbols_resolve(); in ascending order, but an
** address may come twice. NULL after the last. */
const char *ljp_symbols_function(const struct ljp_symbols *symbols,
                                 uint32_t module, size_t n, uint64_t *address);

/* The n-th of the sentences that a view shows once, on files that could not be
** used; NULL after the last. */
const char *ljp_symbols_notice(const struct ljp_symbols *symbols, size_t n);

#endif
