/*
** misc.sysprof: start, stop, report, status. A call that fails returns nil, a
** message and an errno number; none raises an error, none prints.
*/
#include "profilers/sysprof_lua.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "profilers/sysprof.h"

static int failed(lua_State *L, int error, const char *text)
{
  lua_pushnil(L);
  lua_pushstring(L, text);
  lua_pushinteger(L, error);
  return 3;
}

/* -- Options ----------------------------------------------------------------------- */

/* Each has a reader of its own, which says what it wants. The value is on top
** of the stack. */
typedef bool option_reader(lua_State *L, struct ljp_sysprof_options *o,
                           const char **wants);

static bool one_of(lua_State *L, const char *const *words, int *out)
{
  if (lua_type(L, -1) != LUA_TSTRING)
    return false;
  for (int i = 0; words[i]; i++) {
    if (strcmp(lua_tostring(L, -1), words[i]) == 0) {
      *out = i;
      return true;
    }
  }
  return false;
}

static bool number_within(lua_State *L, double low, double high, double *out)
{
  if (lua_type(L, -1) != LUA_TNUMBER)
    return false;
  *out = lua_tonumber(L, -1);
  return *out >= low && *out <= high; /* false for NaN */
}

static bool whole_within(lua_State *L, double low, double high, int *out)
{
  double number;
  if (!number_within(L, low, high, &number) || number != floor(number))
    return false;
  *out = (int)number;
  return true;
}

static bool read_mode(lua_State *L, struct ljp_sysprof_options *o,
                      const char **wants)
{
  static const char *const words[] = {"D", "L", "C", NULL};
  int i = 0;
  *wants = "\"D\" (counters), \"L\" (leaf) or \"C\" (call graph)";
  bool ok = one_of(L, words, &i);
  o->mode = (enum ljp_sampler_mode)i;
  return ok;
}

static bool read_interval(lua_State *L, struct ljp_sysprof_options *o,
                          const char **wants)
{
  double ms = 0;
  *wants = "milliseconds, a number from 0.05 to 60000";
  bool ok = number_within(L, LJP_INTERVAL_MIN_NS / 1e6,
                          (double)LJP_INTERVAL_MAX_NS / 1e6, &ms);
  if (ok)
    o->interval_ns = (uint64_t)(ms * 1e6 + 0.5);
  return ok;
}

static bool read_path(lua_State *L, struct ljp_sysprof_options *o,
                      const char **wants)
{
  size_t len = 0;
  *wants = "the name of a file, a string that is not empty";
  if (lua_type(L, -1) != LUA_TSTRING)
    return false;
  o->path = lua_tolstring(L, -1, &len); /* the caller's table keeps it */
  return len > 0 && strlen(o->path) == len;
}

static bool read_event(lua_State *L, struct ljp_sysprof_options *o,
                       const char **wants)
{
  static const char *const words[] = {"cpu", "wall", NULL};
  int i = 0;
  *wants = "\"cpu\" or \"wall\"";
  bool ok = one_of(L, words, &i);
  o->wall = i == 1;
  return ok;
}

static bool read_timer(lua_State *L, struct ljp_sysprof_options *o,
                       const char **wants)
{
  static const char *const words[] = {"auto", "perf", "posix", NULL};
  int i = 0;
  *wants = "\"auto\", \"perf\" or \"posix\"";
  bool ok = one_of(L, words, &i);
  o->source = (enum ljp_sysprof_source)i;
  return ok;
}

static bool read_threads(lua_State *L, struct ljp_sysprof_options *o,
                         const char **wants)
{
  static const char *const words[] = {"lua", "all", "this", NULL};
  int i = 0;
  *wants = "\"lua\" (all that run Lua), \"all\" or \"this\"";
  bool ok = one_of(L, words, &i);
  o->threads = (enum ljp_sysprof_threads)i;
  return ok;
}

static bool read_fork(lua_State *L, struct ljp_sysprof_options *o,
                      const char **wants)
{
  static const char *const words[] = {"stop", "follow", NULL};
  int i = 0;
  *wants = "\"stop\" or \"follow\"";
  bool ok = one_of(L, words, &i);
  o->follow_fork = i == 1;
  return ok;
}

/* Those that mean a fault or cannot be caught are no choice. */
static bool usable_signal(int number)
{
  switch (number) {
  case SIGKILL:
  case SIGSTOP:
  case SIGSEGV:
  case SIGBUS:
  case SIGILL:
  case SIGFPE:
  case SIGTRAP:
  case SIGABRT:
    return false;
  }
  /* The first two after 31 are libc's own. */
  return number > 0 && number <= SIGRTMAX &&
         (number < 32 || number >= SIGRTMIN);
}

static bool read_signal(lua_State *L, struct ljp_sysprof_options *o,
                        const char **wants)
{
  *wants = "the number or the name of a signal that a program may handle";
  if (lua_type(L, -1) == LUA_TSTRING) {
    const char *name = lua_tostring(L, -1);
    if (strncmp(name, "SIG", 3) == 0)
      name += 3;
    for (int i = 1; i < 32; i++) {
      const char *known = sigabbrev_np(i);
      if (known && strcmp(known, name) == 0) {
        o->signal = i;
        return usable_signal(i);
      }
    }
    return false;
  }
  return whole_within(L, 1, SIGRTMAX, &o->signal) && usable_signal(o->signal);
}

static bool read_max_overhead(lua_State *L, struct ljp_sysprof_options *o,
                              const char **wants)
{
  double percent = 0;
  *wants = "percent of a thread's time, a number from 0 (no limit) to 100";
  bool ok = number_within(L, 0, 100, &percent);
  o->max_overhead = percent / 100;
  return ok;
}

static bool read_depth(lua_State *L, struct ljp_sysprof_options *o,
                       const char **wants)
{
  int depth = 0;
  *wants = "a number of frames from 8 to 2048";
  bool ok = whole_within(L, 8, LJP_DEPTH_MAX, &depth);
  o->depth = (uint32_t)depth;
  return ok;
}

static bool read_flush(lua_State *L, struct ljp_sysprof_options *o,
                       const char **wants)
{
  int ms = 0;
  *wants = "milliseconds, a whole number from 10 to 10000";
  bool ok = whole_within(L, 10, 10000, &ms);
  o->flush_ms = (uint32_t)ms;
  return ok;
}

static bool read_compress(lua_State *L, struct ljp_sysprof_options *o,
                          const char **wants)
{
  *wants = "a level of compression, a whole number from 0 (none) to 19";
  return whole_within(L, 0, 19, &o->zstd_level);
}

static bool read_sync(lua_State *L, struct ljp_sysprof_options *o,
                      const char **wants)
{
  *wants = "true or false";
  o->sync = lua_toboolean(L, -1);
  return lua_isboolean(L, -1);
}

static bool read_rotate_bytes(lua_State *L, struct ljp_sysprof_options *o,
                              const char **wants)
{
  double bytes = 0;
  *wants = "a number of bytes from 4096";
  bool ok = number_within(L, 4096, 1e15, &bytes);
  o->segment_bytes = (uint64_t)bytes;
  return ok;
}

static bool read_rotate_seconds(lua_State *L, struct ljp_sysprof_options *o,
                                const char **wants)
{
  double seconds = 0;
  *wants = "a number of seconds from 0.1";
  bool ok = number_within(L, 0.1, 1e9, &seconds);
  o->segment_ms = (uint64_t)(seconds * 1000);
  return ok;
}

static bool read_keep(lua_State *L, struct ljp_sysprof_options *o,
                      const char **wants)
{
  int files = 0;
  *wants = "a number of files, from 1 (0: all)";
  bool ok = whole_within(L, 0, 1000000, &files);
  o->keep_segments = (uint32_t)files;
  return ok;
}

static const struct {
  const char *name;
  option_reader *read;
} known[] = {
    {"mode", read_mode},   {"interval", read_interval},
    {"path", read_path},   {"event", read_event},
    {"timer", read_timer}, {"threads", read_threads},
    {"fork", read_fork},   {"signal", read_signal},
    {"depth", read_depth}, {"max_overhead", read_max_overhead},
    {"flush", read_flush}, {"compress", read_compress},
    {"sync", read_sync},   {"rotate_bytes", read_rotate_bytes},
    {"keep", read_keep},   {"rotate_seconds", read_rotate_seconds},
};
enum { KNOWN = sizeof known / sizeof known[0], NAME_BYTES = 32 };

/* Edits that turn one word into the other. */
static unsigned distance(const char *a, const char *b)
{
  unsigned row[NAME_BYTES + 1];
  size_t n = strlen(b);
  for (size_t j = 0; j <= n; j++)
    row[j] = (unsigned)j;
  for (size_t i = 1; a[i - 1]; i++) {
    unsigned corner = row[0];
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= n; j++) {
      unsigned best = corner + (a[i - 1] != b[j - 1]);
      corner = row[j];
      if (row[j] + 1 < best)
        best = row[j] + 1;
      if (row[j - 1] + 1 < best)
        best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[n];
}

static int unknown_option(lua_State *L, const char *name)
{
  char text[256];
  size_t nearest = 0;
  unsigned least = UINT_MAX;
  for (size_t i = 0; i < KNOWN; i++) {
    unsigned far = distance(name, known[i].name);
    if (far < least) {
      least = far;
      nearest = i;
    }
  }
  snprintf(text, sizeof text, "unknown option '%.60s'; the nearest is '%s'",
           name, known[nearest].name);
  return failed(L, EINVAL, text);
}

/* The value on top, for people. */
static const char *shown(lua_State *L, char *out, size_t room)
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

/* 0, or the number of results of a call that has failed. */
static int read_options(lua_State *L, int table,
                        struct ljp_sysprof_options *options)
{
  char text[256], value[96];
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      return failed(L, EINVAL, "options have names: start{mode = \"C\"}");
    const char *name = lua_tostring(L, -2), *wants = "";
    size_t i = 0;
    while (i < KNOWN && strcmp(known[i].name, name) != 0)
      i++;
    if (i == KNOWN)
      return unknown_option(L, name);
    if (!known[i].read(L, options, &wants)) {
      snprintf(text, sizeof text, "option '%s' is %s, but wants %s", name,
               shown(L, value, sizeof value), wants);
      return failed(L, EINVAL, text);
    }
    lua_pop(L, 1);
  }
  return 0;
}

/* -- The functions -------------------------------------------------------------------- */

static int sysprof_start(lua_State *L)
{
  struct ljp_sysprof_options options;
  struct ljp_failure why;
  ljp_sysprof_options_init(&options);
  if (lua_gettop(L) > 1 || (!lua_isnoneornil(L, 1) && !lua_istable(L, 1)))
    return failed(L, EINVAL,
                  "start takes one table of options: start{mode = \"C\"}");
  if (lua_istable(L, 1)) {
    int results = read_options(L, 1, &options);
    if (results)
      return results;
  }
  if (!options.path && options.mode != LJP_SAMPLER_COUNT)
    options.path = "sysprof.bin";
  if (ljp_sysprof_start(L, &options, &why))
    return failed(L, why.error, why.text);
  lua_pushboolean(L, 1);
  return 1;
}

static int sysprof_stop(lua_State *L)
{
  struct ljp_failure why;
  if (ljp_sysprof_stop(L, &why))
    return failed(L, why.error, why.text);
  lua_pushboolean(L, 1);
  return 1;
}

static void set_count(lua_State *L, const char *name, uint64_t count)
{
  lua_pushnumber(L, (lua_Number)count);
  lua_setfield(L, -2, name);
}

static int sysprof_report(lua_State *L)
{
  struct ljp_sysprof_report r;
  ljp_sysprof_report(&r);
  lua_newtable(L);
  set_count(L, "samples", r.samples);
  set_count(L, "overruns", r.overruns);
  set_count(L, "deferred", r.deferred);
  set_count(L, "outside", r.outside);
  set_count(L, "idle", r.idle);
  lua_pushnumber(L, (double)r.unsampled_ns * 1e-9);
  lua_setfield(L, -2, "unsampled_seconds");
  lua_pushnumber(L, r.samples ? (double)r.time_ns / (double)r.samples * 1e-6
                              : 0);
  lua_setfield(L, -2, "mean_interval");
  lua_pushnumber(L, (lua_Number)r.time_ns / 1e9);
  lua_setfield(L, -2, "seconds");
  lua_pushnumber(L, (lua_Number)r.handler_ns / 1e9);
  lua_setfield(L, -2, "handler_seconds");

  lua_newtable(L);
  set_count(L, "INTERP", r.state[LJP_VMSTATE_INTERP] - r.lfunc);
  set_count(L, "LFUNC", r.lfunc);
  set_count(L, "FFUNC", r.state[LJP_VMSTATE_BUILTIN]);
  set_count(L, "CFUNC", r.state[LJP_VMSTATE_C]);
  set_count(L, "GC", r.state[LJP_VMSTATE_GC]);
  set_count(L, "EXIT", r.state[LJP_VMSTATE_EXIT]);
  set_count(L, "RECORD", r.state[LJP_VMSTATE_RECORD]);
  set_count(L, "OPT", r.state[LJP_VMSTATE_OPT]);
  set_count(L, "ASM", r.state[LJP_VMSTATE_ASM]);
  set_count(L, "TRACE", r.state[LJP_VMSTATE_TRACE]);
  set_count(L, "HOST", r.state[LJP_VMSTATE_HOST]);
  set_count(L, "UNKNOWN", r.state[LJP_VMSTATE_UNKNOWN]);
  lua_setfield(L, -2, "vmstate");

  lua_newtable(L);
#define LJP_X(name, number, text) set_count(L, #name, r.lost[number]);
  LJP_LOSS_LIST(LJP_X)
#undef LJP_X
  lua_setfield(L, -2, "losses");

  lua_newtable(L);
#define LJP_X(name, number, text)                                              \
  if (number)                                                                  \
    set_count(L, #name, r.cut[number]);
  LJP_CUT_LIST(LJP_X)
#undef LJP_X
  lua_setfield(L, -2, "cuts");
  return 1;
}

static void set_string(lua_State *L, const char *name, const char *value)
{
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

static int sysprof_status(lua_State *L)
{
  static const char *const modes[] = {"D", "L", "C"};
  struct ljp_sysprof_status s;
  struct ljp_sysprof_report r;
  uint64_t lost = 0;
  ljp_sysprof_status(&s);
  ljp_sysprof_report(&r);
  for (int i = 0; i < LJP_LOSS_COUNT; i++)
    lost += r.lost[i];
  lua_newtable(L);
  set_string(L, "state", s.state);
  set_count(L, "samples", r.samples);
  set_count(L, "losses", lost);
  set_count(L, "bytes", s.bytes);
  set_count(L, "threads", s.threads);
  if (!s.timer)
    return 1;
  if (s.path[0])
    set_string(L, "path", s.path);
  set_string(L, "timer", s.timer);
  set_string(L, "mode", modes[s.mode]);
  set_string(L, "event", s.wall ? "wall" : "cpu");
  lua_pushnumber(L, (lua_Number)s.interval_ns / 1e6);
  lua_setfield(L, -2, "interval");
  lua_pushboolean(L, s.throttled);
  lua_setfield(L, -2, "throttled");
  set_count(L, "signal", (uint64_t)s.signal);
  set_count(L, "threads_blocked", s.blocked);
  return 1;
}

const luaL_Reg ljp_sysprof_functions[] = {{"start", sysprof_start},
                                          {"stop", sysprof_stop},
                                          {"report", sysprof_report},
                                          {"status", sysprof_status},
                                          {NULL, NULL}};
