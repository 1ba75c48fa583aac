/*
** Options of the Lua interface: tables like {interval = 1, path = "x"}. Each
** option has a reader, which knows the values that it takes. The message about
** a wrong value has the option's name; the message about an unknown option has
** the nearest known name. Raises no error except Lua's own when memory runs
** out.
**
** On the VM's own thread.
*/
#ifndef LJP_OPTIONS_H
#define LJP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lua.h"
#include "lauxlib.h"

#include "profilers/api/option_places.h"
#include "profilers/session/failure.h"

/* Reads the value on top of the stack into *to. False: the value is refused,
** and *wants says what the option wants. Strings in *to are borrowed from the
** value. */
typedef bool ljp_option_reader(lua_State *L, void *to, const char **wants);

/* What the option `compress` takes. */
#define LJP_COMPRESS_WANTS                                                     \
  "a level of compression, a whole number from 0 (none) to 19"
enum { LJP_COMPRESS_MOST = 19 };

struct ljp_option {
  const char *name; /* of at most 31 bytes */
  ljp_option_reader *read;
};

/* Reads all options of a table, which stands in this place. Returns 0, or the
** number of results that a failed call returns to Lua. */
int ljp_options_read(lua_State *L, int table, enum ljp_option_place here,
                     const struct ljp_option *known, size_t count, void *to);
bool ljp_options_have(const struct ljp_option *known, size_t count,
                      const char *name);

/* Checks what start() and snapshot() take: a table of options, or the path of a
** file, which means the same as a table with this path, or nothing. Makes no
** garbage, which programs that count events would see. *path is borrowed.
** Returns as above. */
int ljp_options_argument(lua_State *L, enum ljp_option_place here,
                         const char **path);

/* Sets a field of the table on top of the stack. */
void ljp_options_set_count(lua_State *L, const char *name, uint64_t count);

/* Pushes nil, text and error. Returns 3. */
int ljp_options_failed(lua_State *L, int error, const char *text);
/* The same for a call that is wrong: EINVAL, and the text follows the words
** that Tarantool's profilers use for all such calls. */
int ljp_options_misused(lua_State *L, const char *text);
/* The same for a profiler that refused. */
int ljp_options_refused(lua_State *L, enum ljp_status status,
                        const struct ljp_failure *why);

/* The value on top of the stack, if it is of the type and within the bounds.
** False: it is not. words ends with NULL; *out is an index into it. */
bool ljp_option_one_of(lua_State *L, const char *const *words, int *out);
bool ljp_option_number(lua_State *L, double low, double high, double *out);
bool ljp_option_whole(lua_State *L, double low, double high, int *out);
bool ljp_option_bool(lua_State *L, bool *out, const char **wants);
bool ljp_option_path(lua_State *L, const char **out, const char **wants);

#endif
