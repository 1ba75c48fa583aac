/*
** Options of the Lua interface; see options.h.
*/
#include "profilers/api/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/nearest.h"

void ljp_options_set_count(lua_State *L, const char *name, uint64_t count)
{
  lua_pushnumber(L, (lua_Number)count);
  lua_setfield(L, -2, name);
}

int ljp_options_failed(lua_State *L, int error, const char *text)
{
  lua_pushnil(L);
  lua_pushstring(L, text);
  lua_pushinteger(L, error);
  return 3;
}

static int options_misused(lua_State *L, int error, const char *text)
{
  lua_pushnil(L);
  lua_pushfstring(L, "profiler misuse: %s", text);
  lua_pushinteger(L, error);
  return 3;
}

int ljp_options_misused(lua_State *L, const char *text)
{
  return options_misused(L, EINVAL, text);
}

int ljp_options_refused(lua_State *L, enum ljp_status status,
                        const struct ljp_failure *why)
{
  return status == LJP_ERR_USE ? options_misused(L, why->error, why->text)
                               : ljp_options_failed(L, why->error, why->text);
}

bool ljp_option_one_of(lua_State *L, const char *const *words, int *out)
{
  size_t len = 0;
  if (lua_type(L, -1) != LUA_TSTRING)
    return false;
  const char *word = lua_tolstring(L, -1, &len);
  for (int i = 0; words[i]; i++) {
    if (strlen(words[i]) == len && memcmp(word, words[i], len) == 0) {
      *out = i;
      return true;
    }
  }
  return false;
}

bool ljp_option_number(lua_State *L, double low, double high, double *out)
{
  if (lua_type(L, -1) != LUA_TNUMBER)
    return false;
  *out = lua_tonumber(L, -1);
  return *out >= low && *out <= high; /* false for NaN */
}

bool ljp_option_whole(lua_State *L, double low, double high, int *out)
{
  double number;
  if (!ljp_option_number(L, low, high, &number) || number != floor(number))
    return false;
  *out = (int)number;
  return true;
}

bool ljp_option_bool(lua_State *L, bool *out, const char **wants)
{
  *wants = "true or false";
  *out = lua_toboolean(L, -1);
  return lua_isboolean(L, -1);
}

bool ljp_option_path(lua_State *L, const char **out, const char **wants)
{
  size_t len = 0;
  *wants = "the name of a file: a string that is not empty and has no NUL byte";
  if (lua_type(L, -1) != LUA_TSTRING)
    return false;
  *out = lua_tolstring(L, -1, &len);
  return len > 0 && strlen(*out) == len;
}

enum { OPTION_TEXT = 512 };

/* Appends the names of the options. */
static void option_list(const struct ljp_option *known, size_t count,
                        char text[OPTION_TEXT], size_t at)
{
  for (size_t i = 0; i < count && at < OPTION_TEXT; i++)
    at += (size_t)snprintf(text + at, OPTION_TEXT - at, "%s%s", i ? ", " : "",
                           known[i].name);
}

static int option_unknown(lua_State *L, enum ljp_option_place here,
                          const struct ljp_option *known, size_t count,
                          const char *name)
{
  char text[OPTION_TEXT], where[128];
  size_t nearest = 0;
  unsigned least = UINT_MAX;
  for (size_t i = 0; i < count; i++) {
    unsigned far = ljp_nearest_distance(name, known[i].name);
    if (far < least) {
      least = far;
      nearest = i;
    }
  }
  if (ljp_option_elsewhere(here, name, where, sizeof where))
    snprintf(text, sizeof text, "unknown option '%.60s': %s", name, where);
  else if (least <= ljp_nearest_limit(name))
    snprintf(text, sizeof text, "unknown option '%.60s'; the nearest is '%s'",
             name, known[nearest].name);
  else
    option_list(known, count, text,
                (size_t)snprintf(text, sizeof text,
                                 "unknown option '%.60s'; the options are ",
                                 name));
  return ljp_options_misused(L, text);
}

/* The value on top of the stack, for people. */
static const char *option_show(lua_State *L, char *out, size_t room)
{
  switch (lua_type(L, -1)) {
  case LUA_TNUMBER:
    snprintf(out, room, "%.14g", lua_tonumber(L, -1));
    break;
  case LUA_TSTRING:
    snprintf(out, room, "the string '%.60s'", lua_tostring(L, -1));
    break;
  case LUA_TBOOLEAN:
    snprintf(out, room, "%s", lua_toboolean(L, -1) ? "true" : "false");
    break;
  default:
    snprintf(out, room, "a %s", luaL_typename(L, -1));
  }
  return out;
}

bool ljp_options_have(const struct ljp_option *known, size_t count,
                      const char *name)
{
  for (size_t i = 0; i < count; i++)
    if (strcmp(known[i].name, name) == 0)
      return true;
  return false;
}

/* The function that takes the options. */
static const char *option_call(enum ljp_option_place here)
{
  return here == LJP_PLACE_SNAPSHOT ? "snapshot" : "start";
}

int ljp_options_argument(lua_State *L, enum ljp_option_place here,
                         const char **path)
{
  const char *call = option_call(here);
  char text[256], value[96];
  const char *wants = "";
  int type = lua_type(L, 1);
  lua_settop(L, lua_gettop(L) > 1 ? 2 : 1);
  if (lua_gettop(L) > 1 ||
      (type > LUA_TNIL && type != LUA_TSTRING && type != LUA_TTABLE)) {
    option_show(L, value, sizeof value);
    snprintf(text, sizeof text,
             "%s takes the name of a file, or one table of options: "
             "%s{path = \"FILE\"}; %s is %s",
             call, call,
             lua_gettop(L) > 1 ? "the second argument" : "the argument", value);
    return ljp_options_misused(L, text);
  }
  if (type == LUA_TSTRING && !ljp_option_path(L, path, &wants)) {
    snprintf(text, sizeof text, "%s takes %s", call, wants);
    return ljp_options_misused(L, text);
  }
  return 0;
}

int ljp_options_read(lua_State *L, int table, enum ljp_option_place here,
                     const struct ljp_option *known, size_t count, void *to)
{
  char text[256], value[96];
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (lua_type(L, -2) != LUA_TSTRING) {
      snprintf(text, sizeof text, "options have names: %s{path = \"FILE\"}",
               option_call(here));
      return ljp_options_misused(L, text);
    }
    const char *name = lua_tostring(L, -2), *wants = "";
    size_t i = 0;
    while (i < count && strcmp(known[i].name, name) != 0)
      i++;
    if (i == count)
      return option_unknown(L, here, known, count, name);
    if (!known[i].read(L, to, &wants)) {
      snprintf(text, sizeof text, "option '%s' is %s, but must be %s", name,
               option_show(L, value, sizeof value), wants);
      return ljp_options_misused(L, text);
    }
    lua_pop(L, 1);
  }
  return 0;
}
