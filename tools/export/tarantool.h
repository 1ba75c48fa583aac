/*
** What the exports for Tarantool's tools share: the bytes of their formats
** (parsers/tarantool/format.h), and the addresses that stand for functions.
**
** Our streams have no addresses of Lua functions and builtins. These get
** numbers above all addresses of programs, so that they never meet an address
** of machine code, and below 2^53, since the tools keep them as doubles.
*/
#ifndef LJP_TOOLS_TARANTOOL_H
#define LJP_TOOLS_TARANTOOL_H

#include "parsers/tarantool/format.h"
#include "tools/export/export.h"

#define LJP_TARANTOOL_FUNCTIONS (UINT64_C(1) << 47)
#define LJP_TARANTOOL_BUILTINS (UINT64_C(1) << 48)
#define LJP_TARANTOOL_TRACES (UINT64_C(1) << 49)
#define LJP_TARANTOOL_STEP 16u

void ljp_tarantool_put(struct ljp_print *out, uint64_t number);
void ljp_tarantool_put_byte(struct ljp_print *out, unsigned byte);
void ljp_tarantool_put_string(struct ljp_print *out, struct ljp_str s);
void ljp_tarantool_put_head(struct ljp_print *out, const char *magic,
                            unsigned version);

/* A line of a definition. UINT32_MAX, for a library function that LuaJIT has as
** bytecode, becomes the number that Tarantool writes for it. */
static inline uint64_t ljp_tarantool_line(uint64_t line)
{
  return line == UINT32_MAX ? LJP_TARANTOOL_NO_LINE : line;
}

/* Symbols of the table. */
void ljp_tarantool_put_lfunc(struct ljp_print *out, uint64_t address,
                             struct ljp_str chunk, uint64_t line);
void ljp_tarantool_put_cfunc(struct ljp_print *out, uint64_t address,
                             struct ljp_str name);
void ljp_tarantool_put_trace(struct ljp_print *out, uint64_t number,
                             uint64_t proto, uint64_t line);

/* Numbers of traces. LuaJIT gives the number of a freed trace to another, and
** every VM counts from 1; the formats know a trace by its number alone. So of
** the traces with one number, those that start elsewhere than the first one get
** a larger number. The caller asks once for each start. */
struct ljp_tarantool_traces {
  uint32_t *taken; /* By number: the times that it was given. */
  uint64_t changed;
};
#define LJP_TARANTOOL_TRACE_NUMBERS UINT64_C(65536) /* LuaJIT's limit. */

/* false: no memory. */
bool ljp_tarantool_number(struct ljp_tarantool_traces *traces, uint64_t number,
                          uint64_t *given);

#endif
