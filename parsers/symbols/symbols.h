/*
** Symbols: (module, address in its file) -> function, the chain of inlined
** functions around it, source lines. Asked for in one batch after a profile is
** read, so that each file is opened once:
**
**   ljp_symbols_module, ljp_symbols_want ... ljp_symbols_resolve,
**   ljp_symbols_get ...
**
** Addresses are what the ELF file calls virtual addresses, and name the
** instruction itself: for a caller that is its return address less one.
**
** Files are looked at in a child process (child.c): a module's path
** comes from a profile, and what stands there may be hostile. It may crash or
** stall the child, and then costs its own names only. A file is used if its
** build-id is the one recorded; without one, if it spans as many bytes.
** The network is used if the user has set DEBUGINFOD_URLS, never otherwise.
**
** One thread; strings and results live until ljp_symbols_free().
*/
#ifndef LJP_PARSERS_SYMBOLS_H
#define LJP_PARSERS_SYMBOLS_H

#include "parsers/stream/item.h"
#include "src/base/status.h"

struct ljp_symbols;

struct ljp_symbols_options {
  /* Folders to look for debug files in, separated by colons. NULL: what the
  ** environment variable LJPROF_DEBUG_PATH says, then /usr/lib/debug. In each
  ** are tried .build-id/xx/yyyy.debug, the module's path, its base name. */
  const char *debug_path;
  bool no_dwarf;    /* Names only. */
  bool no_files;    /* Nothing is opened; embedded symbols only. */
  bool no_network;  /* As if DEBUGINFOD_URLS was not set. */
  bool in_process;  /* No child: for tests. */
  unsigned seconds; /* Given to one module's files; 0: 60. */
};

/* NULL: no memory. options may be NULL. */
struct ljp_symbols *ljp_symbols_new(const struct ljp_symbols_options *options);
void ljp_symbols_free(struct ljp_symbols *symbols);

/* A module by its file and contents: the same twice is the same handle. span
** is how many bytes it took in memory, flags are those of MODULE. 0: no
** memory. */
uint32_t ljp_symbols_module(struct ljp_symbols *symbols, struct ljp_str path,
                            struct ljp_str build_id, uint64_t span,
                            uint64_t flags);

/* Asks for an address. LJP_ERR_MEM. */
enum ljp_status ljp_symbols_want(struct ljp_symbols *symbols, uint32_t module,
                                 uint64_t address);

/* A function at an address: the code itself first, then the functions that it
** is inlined in. */
struct ljp_symbol_frame {
  const char *function; /* "": not known. */
  const char *file;     /* "": not known. */
  uint32_t line;        /* 0: not known. */
};

/*
** An answer that the stream itself brings along: level 0 first, then those of
** the functions that it is inlined in. What is embedded is not looked for in
** files. LJP_ERR_MEM, LJP_ERR_LIMIT.
*/
enum ljp_status ljp_symbols_embedded(struct ljp_symbols *symbols,
                                     uint32_t module, uint64_t address,
                                     uint64_t level, uint32_t line,
                                     struct ljp_str function,
                                     struct ljp_str file);

/* Looks up everything that is wanted and not yet known. Files that cannot be
** used are notices, not errors. LJP_ERR_MEM, LJP_ERR_IO (no child process). */
enum ljp_status ljp_symbols_resolve(struct ljp_symbols *symbols);

struct ljp_symbol {
  uint32_t count; /* 0: nothing is known. */
  const struct ljp_symbol_frame *frames;
};

/* NULL: was not asked for. */
const struct ljp_symbol *ljp_symbols_get(const struct ljp_symbols *symbols,
                                         uint32_t module, uint64_t address);

/* The n-th address of a module that was asked for and resolved, ascending;
** NULL after the last. */
const struct ljp_symbol *ljp_symbols_each(const struct ljp_symbols *symbols,
                                          uint32_t module, size_t n,
                                          uint64_t *address);

/* Sentences that a view shows once: files that could not be used, and why.
** The n-th, NULL after the last. */
const char *ljp_symbols_notice(const struct ljp_symbols *symbols, size_t n);

#endif
