/*
** Tarantool's builtins by number.
*/
#ifndef LJP_PARSERS_TARANTOOL_BUILTINS_H
#define LJP_PARSERS_TARANTOOL_BUILTINS_H

#include <stdint.h>

/* NULL: there is none with this number. */
const char *ljp_tarantool_builtin(uint64_t number);

#endif
