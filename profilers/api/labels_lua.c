/*
** misc.profile.label, label_requests, labels, with: what the program calls its
** work. The labels belong to the coroutine that runs. A call that fails returns
** nil, a message and an errno number; `with` raises an error, since its results
** are the function's. On the VM's own thread.
*/
#include "profilers/api/labels_lua.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/api/options.h"
#include "profilers/session/labels.h"
#include "profilers/session/request_labels.h"
#include "profilers/session/side_run.h"
#include "src/luajit/heap.h"

enum { LABELS_TEXT = 160 };

/* The value on top of the stack as a label's. False: it is none. */
static bool labels_value(lua_State *L, const char **value, size_t *bytes)
{
  *value = NULL;
  *bytes = 0;
  if (lua_isboolean(L, -1)) {
    *value = lua_toboolean(L, -1) ? "true" : NULL;
    return true;
  }
  /* The pair stays in place: the conversion changes a copy. */
  return (lua_isnumber(L, -1) || lua_isstring(L, -1)) &&
         (*value = lua_tolstring(L, -1, bytes)) != NULL;
}

/* Checks the pair on top of the stack and sets the label. False: why[] says why
** not. */
static bool labels_take_pair(lua_State *L, struct ljp_labels *labels,
                             char why[LABELS_TEXT])
{
  size_t key_bytes = 0, bytes;
  const char *value, *key = lua_type(L, -2) == LUA_TSTRING
                                ? lua_tolstring(L, -2, &key_bytes)
                                : NULL;
  if (!key) {
    snprintf(why, LABELS_TEXT, "a label's key is a string, not a %s",
             luaL_typename(L, -2));
  } else if (!key_bytes || key_bytes > LJP_LABELS_KEY_BYTES ||
             strlen(key) != key_bytes || strchr(key, '=')) {
    snprintf(why, LABELS_TEXT,
             "'%.70s' cannot be the key of a label: a key has 1 to %d bytes, "
             "without '=' "
             "and NUL",
             key, LJP_LABELS_KEY_BYTES);
  } else if (!labels_value(L, &value, &bytes)) {
    snprintf(why, LABELS_TEXT,
             "label '%s' is a string, a number, true or false, not a %s", key,
             luaL_typename(L, -1));
  } else if (value && (bytes > LJP_LABELS_VALUE_BYTES ||
                       (bytes && strlen(value) != bytes))) {
    snprintf(why, LABELS_TEXT,
             "label '%s' has a value of %zu bytes; it has at most %d, without "
             "NUL",
             key, bytes, LJP_LABELS_VALUE_BYTES);
  } else if (!ljp_labels_put(labels, key, value)) {
    snprintf(why, LABELS_TEXT, "label '%s' is one too many: at most %d", key,
             LJP_LABELS_PAIRS);
  } else {
    return true;
  }
  return false;
}

/* Adds the labels of the table in place 1. Returns 0 or an errno, with why[].
** Numbers in the table become strings on the stack, where they stay. */
static int labels_add_table(lua_State *L, struct ljp_labels *labels,
                            char why[LABELS_TEXT])
{
  if (!lua_istable(L, 1)) {
    snprintf(why, LABELS_TEXT,
             "labels are a table like {route = \"/a\"}, not a %s",
             luaL_typename(L, 1));
    return EINVAL;
  }
  if (!lua_checkstack(L, 4 * LJP_LABELS_PAIRS)) {
    snprintf(why, LABELS_TEXT, "no room on the Lua stack for labels");
    return ENOMEM;
  }
  int room = 3 * LJP_LABELS_PAIRS;
  for (lua_pushnil(L); lua_next(L, 1);) {
    if (!labels_take_pair(L, labels, why))
      return EINVAL;
    if (!room--) {
      snprintf(why, LABELS_TEXT, "a table of labels has at most %d",
               3 * LJP_LABELS_PAIRS);
      return EINVAL;
    }
    lua_insert(L, -2); /* The value stays, below the key. */
  }
  if (ljp_labels_bytes(labels) > LJP_NAME_BYTES) {
    snprintf(why, LABELS_TEXT,
             "labels of %zu bytes are too long together: at most %d",
             ljp_labels_bytes(labels), (int)LJP_NAME_BYTES);
    return EINVAL;
  }
  return 0;
}

/* The set of the thread's labels with those of the table in place 1. Returns 0 or
** an errno, with why[]. */
static int labels_read(lua_State *L, uint32_t *set, char why[LABELS_TEXT])
{
  struct ljp_labels labels;
  ljp_labels_get(ljp_guest_labels(L), &labels);
  int error = labels_add_table(L, &labels, why);
  if (error)
    return error;
  if (!ljp_labels_intern(&labels, set)) {
    snprintf(why, LABELS_TEXT, "no memory for labels");
    return ENOMEM;
  }
  return 0;
}

int ljp_profile_label(lua_State *L)
{
  char why[LABELS_TEXT];
  uint32_t set;
  ljp_side_bind();
  if (lua_gettop(L) != 1)
    return ljp_options_misused(L, "label takes one table of labels");
  int error = labels_read(L, &set, why);
  if (error == EINVAL)
    return ljp_options_misused(L, why);
  if (error)
    return ljp_options_failed(L, error, why);
  ljp_guest_set_labels(L, set);
  lua_pushboolean(L, 1);
  return 1;
}

/* -- label_requests -------------------------------------------------------- */

/* Whether all values of the table in place 1 are names of variables. */
static bool labels_are_variables(lua_State *L, const struct ljp_labels *labels,
                                 char why[LABELS_TEXT])
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (unsigned i = 0; i < labels->count; i++) {
    const struct ljp_label *label = &labels->list[i];
    lua_getfield(L, 1, label->key);
    const bool named = lua_type(L, -1) == LUA_TSTRING;
    lua_pop(L, 1);
    if (named && label->value[0] &&
        !label->value[strspn(label->value, letters)])
      continue;
    snprintf(why, LABELS_TEXT,
             "label '%s' has the variable '%.40s'; that is a name without '$', "
             "like uri",
             label->key, label->value);
    return false;
  }
  if (labels->count <= LJP_REQUEST_VARIABLES)
    return true;
  snprintf(why, LABELS_TEXT, "requests have at most %d labels, not %u",
           LJP_REQUEST_VARIABLES, labels->count);
  return false;
}

int ljp_profile_label_requests(lua_State *L)
{
  char why[LABELS_TEXT];
  struct ljp_labels variables = {0};
  ljp_side_bind();
  if (lua_gettop(L) != 1)
    return ljp_options_misused(L,
                               "label_requests takes one table of variables");
  int error = labels_add_table(L, &variables, why);
  if (error == EINVAL || (!error && !labels_are_variables(L, &variables, why)))
    return ljp_options_misused(L, why);
  if (!error) {
    error = ljp_request_labels_set(&variables);
    snprintf(why, sizeof why, "%s",
             error == ENOTSUP ? "this process is no nginx with lua-nginx-module"
             : error == ENOSPC ? "the process has too many sets of labels"
                               : "no memory for labels");
  }
  if (error)
    return ljp_options_failed(L, error, why);
  lua_pushboolean(L, 1);
  return 1;
}

/* -- labels ---------------------------------------------------------------- */

int ljp_profile_labels(lua_State *L)
{
  struct ljp_labels labels;
  ljp_labels_get(ljp_guest_labels(L), &labels);
  lua_createtable(L, 0, (int)labels.count);
  for (unsigned i = 0; i < labels.count; i++) {
    lua_pushstring(L, labels.list[i].value);
    lua_setfield(L, -2, labels.list[i].key);
  }
  return 1;
}

/* -- with ------------------------------------------------------------------ */

/* begin(labels, f, ...) -> labels before, f, ... */
static int labels_begin(lua_State *L)
{
  char why[LABELS_TEXT];
  uint32_t set, before = ljp_guest_labels(L);
  int top = lua_gettop(L);
  ljp_side_bind();
  luaL_checkany(L, 1);
  luaL_checkany(L, 2);
  if (labels_read(L, &set, why))
    return luaL_argerror(L, 1, why);
  lua_settop(L, top);
  ljp_guest_set_labels(L, set);
  lua_pushinteger(L, (lua_Integer)before);
  lua_replace(L, 1);
  return top;
}

/* finish(labels before, ok, ...) -> ..., or the error again */
static int labels_finish(lua_State *L)
{
  ljp_guest_set_labels(L, (uint32_t)lua_tointeger(L, 1));
  if (!lua_toboolean(L, 2)) {
    lua_settop(L, 3);
    return lua_error(L);
  }
  return lua_gettop(L) - 2;
}

/* In Lua, so that the function may yield. labels_begin() is `with` there, which is
** its name in messages. */
static const char labels_with[] =
    "local with, finish, pcall = ...\n"
    "local function run(before, ...) return finish(before, pcall(...)) end\n"
    "return function(...) return run(with(...)) end\n";

/* misc.profile's __index: makes `with` when it is asked for. */
static int labels_index(lua_State *L)
{
  const char *key = lua_tostring(L, 2);
  if (lua_type(L, 2) != LUA_TSTRING || strcmp(key, "with") != 0)
    return 0;
  if (luaL_loadbuffer(L, labels_with, sizeof labels_with - 1,
                      "=misc.profile.with"))
    return lua_error(L);
  lua_pushcfunction(L, labels_begin);
  lua_pushcfunction(L, labels_finish);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_call(L, 3, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, 1, "with");
  return 1;
}

void ljp_profile_add_with(lua_State *L)
{
  lua_createtable(L, 0, 1);
  lua_getglobal(L, "pcall");
  lua_pushcclosure(L, labels_index, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}
