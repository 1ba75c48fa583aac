/*
** What the exports for Tarantool's tools share: the bytes of their formats
** (src/base/tarantool.h).
*/
#ifndef LJP_TOOLS_TARANTOOL_H
#define LJP_TOOLS_TARANTOOL_H

#include "src/base/tarantool.h"
#include "tools/export/export.h"

void ljp_tarantool_put(struct ljp_print *out, uint64_t number);
void ljp_tarantool_put_byte(struct ljp_print *out, unsigned byte);
void ljp_tarantool_put_string(struct ljp_print *out, struct ljp_str s);
void ljp_tarantool_put_head(struct ljp_print *out, const char *magic,
                            unsigned version);

/* Symbols of the table. */
void ljp_tarantool_put_lfunc(struct ljp_print *out, uint64_t address,
                             struct ljp_str chunk, uint64_t line);
void ljp_tarantool_put_cfunc(struct ljp_print *out, uint64_t address,
                             struct ljp_str name);
void ljp_tarantool_put_trace(struct ljp_print *out, uint64_t number,
                             uint64_t proto, uint64_t line);

#endif
