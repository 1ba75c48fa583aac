/*
** The child process that reads files with symbols.
*/
#ifndef LJP_PARSERS_SYMBOLS_CHILD_H
#define LJP_PARSERS_SYMBOLS_CHILD_H

#include "parsers/symbols/lookup.h"

struct ljp_sym_job {
  struct ljp_sym_request request;
  struct ljp_sym_sink sink;
};

/* Answers many requests, in child processes unless options say otherwise.
** false: no child could be started. */
bool ljp_sym_run(const struct ljp_symbols_options *options,
                 const struct ljp_sym_job *jobs, size_t count);

#endif
