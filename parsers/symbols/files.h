/*
** The files with a module's symbols. Runs in the child process (lookup.h).
*/
#ifndef LJP_PARSERS_SYMBOLS_FILES_H
#define LJP_PARSERS_SYMBOLS_FILES_H

#include <gelf.h>

#include "parsers/symbols/lookup.h"

struct ljp_sym_file {
  int fd;   /* -1: bytes in memory (the vDSO), or not open. */
  Elf *elf; /* NULL: there is no such file, or it may not be used. */
};

/* The module's own file, and the one with its debug information, which may be
** the same. */
struct ljp_sym_files {
  struct ljp_sym_file own, debug;
};

void ljp_sym_files_open(struct ljp_sym_files *files,
                        const struct ljp_symbols_options *options,
                        const struct ljp_sym_request *request,
                        const struct ljp_sym_sink *sink);
void ljp_sym_files_close(struct ljp_sym_files *files);

#endif
