/*
** Names of symbols for people. Runs in the child process (lookup.h).
*/
#ifndef LJP_PARSERS_SYMBOLS_DEMANGLE_H
#define LJP_PARSERS_SYMBOLS_DEMANGLE_H

#include "parsers/symbols/lookup.h"

/* Writes a symbol's name for people: demangled, and without the suffixes of
** versions and of copies that compilers make. */
void ljp_sym_demangle(const char *name, char out[LJP_SYM_NAME_MAX]);

#endif
