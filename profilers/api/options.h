/*
** Options of the Lua interface: tables like {interval = 1, path = "x"}, each
** option with a reader of its own that says what it wants. A value that it
** does not want is refused by name, an unknown option with the nearest known.
** Raises no error but Lua's own for want of memory.
*/
#ifndef LJP_OPTIONS_H
#define LJP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lua.h"
#include "lauxlib.h"

/* The value is on top of the stack. False: refused; *wants says what it wants
** instead. What is put into *to is borrowed from the value. */
typedef bool ljp_option_reader(lua_State *L, void *to, const char **wants);

struct ljp_option {
  const char *name; /* of at most 31 bytes */
  ljp_option_reader *read;
};

/* 0, or the number of results of a call that has failed. */
int ljp_options_read(lua_State *L, int table, const struct ljp_option *known,
                     size_t count, void *to);

/* Of the table on top of the stack. */
void ljp_options_set_count(lua_State *L, const char *name, uint64_t count);

/* Pushes nil, text, error; 3. */
int ljp_options_failed(lua_State *L, int error, const char *text);

bool ljp_option_one_of(lua_State *L, const char *const *words, int *out);
bool ljp_option_number(lua_State *L, double low, double high, double *out);
bool ljp_option_whole(lua_State *L, double low, double high, int *out);
bool ljp_option_bool(lua_State *L, bool *out, const char **wants);
bool ljp_option_path(lua_State *L, const char **out, const char **wants);

#endif
