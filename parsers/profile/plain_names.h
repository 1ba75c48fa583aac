/*
** Names for people of functions that have none in Lua: iterators that a library
** returns, and functions that LuaJIT's C code has under other names. Any thread.
*/
#ifndef LJP_PARSERS_PLAIN_NAMES_H
#define LJP_PARSERS_PLAIN_NAMES_H

#include "parsers/base/str.h"

/* The name to show for LuaJIT's own name of a builtin or C function; NULL: its
** own name is the one that Lua has. */
const char *ljp_plain_name(struct ljp_str name);

#endif
