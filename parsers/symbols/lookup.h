/*
** Looking up addresses of one module in its files. This runs in the child
** process (child.h): what a hostile file does to
** the process is the child's loss. The code here takes care of what a child
** could do to others: it bounds time, memory and output.
*/
#ifndef LJP_PARSERS_SYMBOLS_LOOKUP_H
#define LJP_PARSERS_SYMBOLS_LOOKUP_H

#include "parsers/symbols/symbols.h"

/* What one file can make us use or tell, at most. */
#define LJP_SYM_FRAMES_MAX 256u       /* Inlined levels at an address. */
#define LJP_SYM_NAME_MAX 4096u        /* Bytes of a name or path; cut beyond. */
#define LJP_SYM_FILE_MAX (8LL << 30)  /* Bytes of a debug file. */
#define LJP_SYM_NAMES_MAX (16u << 20) /* Symbols in a table. */

/* What is asked about one module. */
struct ljp_sym_request {
  const char *path; /* Terminated. */
  const uint8_t *build_id;
  uint32_t build_id_len;
  uint64_t span, flags;
  const uint64_t *addresses; /* Ascending, each once. */
  size_t count;
  bool functions; /* All functions are asked for, too. */
};

/* How thoroughly a module is read: less after a child has died of it. */
enum ljp_sym_level { LJP_SYM_FULL, LJP_SYM_NAMES, LJP_SYM_NOTHING };

/* Where answers go. index is a place in the request's addresses. */
struct ljp_sym_sink {
  void *ctx;
  void (*answer)(void *ctx, size_t index, const struct ljp_symbol_frame *frames,
                 unsigned count);
  void (*notice)(void *ctx, const char *text);
  void (*function)(void *ctx, uint64_t address, const char *name);
};

/* Answers a request in this process. Addresses without an answer are not
** known. */
void ljp_sym_lookup(const struct ljp_symbols_options *options,
                    const struct ljp_sym_request *request,
                    enum ljp_sym_level level, const struct ljp_sym_sink *sink);

#endif
