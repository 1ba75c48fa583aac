/*
** Lines and inlined functions from DWARF. Runs in the child process
** (lookup.h).
*/
#ifndef LJP_PARSERS_SYMBOLS_DWARF_LINES_H
#define LJP_PARSERS_SYMBOLS_DWARF_LINES_H

#include <elfutils/libdw.h>

#include "parsers/symbols/lookup.h"

/* Calls each() for every address that DWARF knows something about, ascending
** within a unit. frames[count - 1] is the outermost function; its name is ""
** if only the symbol table can name it. */
void ljp_sym_dwarf(Dwarf *dwarf, const struct ljp_sym_request *request,
                   void (*each)(void *ctx, size_t index,
                                const struct ljp_symbol_frame *frames,
                                unsigned count),
                   void *ctx);

#endif
