/*
** misc.sysprof: start, stop, report, status. A call that fails returns nil, a
** message and an errno number; no call raises an error or prints.
*/
#include "profilers/api/sysprof_lua.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/api/lua_tables.h"
#include "profilers/api/output_options.h"
#include "profilers/session/side_run.h"
#include "src/base/signals.h"

/* -- Options --------------------------------------------------------------- */
static bool sysprof_read_mode(lua_State *L, void *to, const char **wants)
{
  struct ljp_sysprof_options *o = to;
  static const char *const words[] = {"D", "L", "C", NULL};
  int i = 0;
  *wants = "\"D\" (counters), \"L\" (leaf) or \"C\" (call graph)";
  bool ok = ljp_option_one_of(L, words, &i);
  o->mode = (enum ljp_sampler_mode)i;
  return ok;
}

static bool sysprof_read_interval(lua_State *L, void *to, const char **wants)
{
  struct ljp_sysprof_options *o = to;
  double ms = 0;
  *wants = "milliseconds, a number from 0.05 to 60000";
  bool ok = ljp_option_number(L, LJP_INTERVAL_MIN_NS / 1e6,
                              (double)LJP_INTERVAL_MAX_NS / 1e6, &ms);
  if (ok)
    o->interval_ns = (uint64_t)(ms * 1e6 + 0.5);
  return ok;
}

static bool sysprof_read_event(lua_State *L, void *to, const char **wants)
{
  struct ljp_sysprof_options *o = to;
  static const char *const words[] = {"cpu", "wall", NULL};
  int i = 0;
  *wants = "\"cpu\" or \"wall\"";
  bool ok = ljp_option_one_of(L, words, &i);
  o->wall = i == 1;
  return ok;
}

static bool sysprof_read_timer(lua_State *L, void *to, const char **wants)
{
  struct ljp_sysprof_options *o = to;
  static const char *const words[] = {"auto",  "perf", "trap",
                                      "posix", "tick", NULL};
  int i = 0;
  *wants = "\"auto\", \"perf\", \"tick\" or \"posix\"";
  bool ok = ljp_option_one_of(L, words, &i);
  o->timer = (enum ljp_timer)i;
  return ok;
}

static bool sysprof_read_threads(lua_State *L, void *to, const char **wants)
{
  struct ljp_sysprof_options *o = to;
  static const char *const words[] = {"lua", "all", "this", NULL};
  int i = 0;
  *wants = "\"lua\" (all that run Lua), \"all\" or \"this\"";
  bool ok = ljp_option_one_of(L, words, &i);
  o->threads = (enum ljp_sysprof_threads)i;
  return ok;
}

static bool sysprof_read_signal(lua_State *L, void *to, const char **wants)
{
  struct ljp_sysprof_options *o = to;
  *wants = LJP_SIGNAL_WANTS;
  if (lua_type(L, -1) == LUA_TSTRING)
    o->signal = ljp_signal_named(lua_tostring(L, -1));
  else if (!ljp_option_whole(L, 1, SIGRTMAX, &o->signal))
    return false;
  return ljp_signal_usable(o->signal);
}

static bool sysprof_read_max_overhead(lua_State *L, void *to,
                                      const char **wants)
{
  struct ljp_sysprof_options *o = to;
  double percent = 0;
  *wants = "percent of a thread's time, a number from 0 (no limit) to 100";
  bool ok = ljp_option_number(L, 0, 100, &percent);
  o->max_overhead = percent / 100;
  return ok;
}

static bool sysprof_read_depth(lua_State *L, void *to, const char **wants)
{
  struct ljp_sysprof_options *o = to;
  int depth = 0;
  *wants = "a number of frames from 8 to 2048";
  bool ok = ljp_option_whole(L, 8, LJP_STACK_MAX_FRAMES, &depth);
  o->depth = (uint32_t)depth;
  return ok;
}

static bool sysprof_read_jitdump(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct ljp_sysprof_options *)to)->jitdump,
                         wants);
}

/* The first ones are also the options of the CPU part of a combined session. */
static const struct ljp_option sysprof_options[] = {
    {"mode", sysprof_read_mode},
    {"interval", sysprof_read_interval},
    {"event", sysprof_read_event},
    {"timer", sysprof_read_timer},
    {"threads", sysprof_read_threads},
    {"signal", sysprof_read_signal},
    {"depth", sysprof_read_depth},
    {"max_overhead", sysprof_read_max_overhead},
    {"jitdump", sysprof_read_jitdump},
    LJP_OUTPUT_OPTIONS,
};
enum {
  OPTIONS = sizeof sysprof_options / sizeof *sysprof_options,
  SHARED_OPTIONS = 9
};

bool ljp_option_is_cpu(const char *name)
{
  return ljp_options_have(sysprof_options, SHARED_OPTIONS, name);
}

int ljp_sysprof_read_part(lua_State *L, int table,
                          struct ljp_sysprof_options *options)
{
  return ljp_options_read(L, table, LJP_PLACE_CPU_PART, sysprof_options,
                          SHARED_OPTIONS, options);
}

/* -- Functions ------------------------------------------------------------- */
/* A mode where the table of options should be is a mistake that Tarantool's
** profiler refuses, too, and hardly the name of a file. */
static int sysprof_is_mode(lua_State *L)
{
  const char *word =
      lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "none";
  char text[160];
  if (strcmp(word, "D") != 0 && strcmp(word, "L") != 0 &&
      strcmp(word, "C") != 0)
    return 0;
  snprintf(text, sizeof text,
           "start takes the name of a file, or one table of options; '%s' is a "
           "mode: start{mode = \"%s\"}, or path = \"./%s\" for such a file",
           word, word, word);
  return ljp_options_misused(L, text);
}

static int sysprof_start(lua_State *L)
{
  struct ljp_sysprof_options options;
  struct ljp_failure why;
  ljp_side_bind();
  ljp_sysprof_options_init(&options);
  int results = sysprof_is_mode(L);
  if (!results)
    results = ljp_options_argument(L, LJP_PLACE_SYSPROF, &options.output.path);
  if (!results && lua_istable(L, 1))
    results = ljp_options_read(L, 1, LJP_PLACE_SYSPROF, sysprof_options,
                               OPTIONS, &options);
  if (results)
    return results;
  if (!options.output.path && options.mode != LJP_SAMPLER_COUNT)
    options.output.path = "sysprof.bin";
  enum ljp_status status = ljp_sysprof_start(L, &options, &why);
  if (status)
    return ljp_options_refused(L, status, &why);
  lua_pushboolean(L, 1);
  return 1;
}

static int sysprof_stop(lua_State *L)
{
  struct ljp_failure why;
  enum ljp_status status = ljp_sysprof_stop(L, &why);
  if (status)
    return ljp_options_refused(L, status, &why);
  lua_pushboolean(L, 1);
  return 1;
}

static int sysprof_report(lua_State *L)
{
  struct ljp_sysprof_report r;
  ljp_sysprof_report(&r);
  lua_newtable(L);
  ljp_options_set_count(L, "samples", r.samples);
  ljp_options_set_count(L, "overruns", r.overruns);
  ljp_options_set_count(L, "deferred", r.deferred);
  ljp_options_set_count(L, "outside", r.outside);
  ljp_options_set_count(L, "idle", r.idle);
  ljp_options_set_count(L, "looks", r.looks);
  ljp_options_set_count(L, "moved", r.moved);
  lua_pushnumber(L, (double)r.unsampled_ns * 1e-9);
  lua_setfield(L, -2, "unsampled_seconds");
  lua_pushnumber(L,
                 r.samples ? (double)r.time_ns / (double)r.samples * 1e-6 : 0);
  lua_setfield(L, -2, "mean_interval");
  lua_pushnumber(L, (lua_Number)r.time_ns / 1e9);
  lua_setfield(L, -2, "seconds");
  lua_pushnumber(L, (lua_Number)r.handler_ns / 1e9);
  lua_setfield(L, -2, "handler_seconds");
  lua_pushnumber(L, (lua_Number)r.watcher_ns / 1e9);
  lua_setfield(L, -2, "watcher_seconds");

  lua_newtable(L);
  ljp_options_set_count(L, "INTERP", r.state[LJP_VMSTATE_INTERP] - r.lfunc);
  ljp_options_set_count(L, "LFUNC", r.lfunc);
  ljp_options_set_count(L, "FFUNC", r.state[LJP_VMSTATE_BUILTIN]);
  ljp_options_set_count(L, "CFUNC", r.state[LJP_VMSTATE_C]);
  ljp_options_set_count(L, "GC", r.state[LJP_VMSTATE_GC]);
  ljp_options_set_count(L, "EXIT", r.state[LJP_VMSTATE_EXIT]);
  ljp_options_set_count(L, "RECORD", r.state[LJP_VMSTATE_RECORD]);
  ljp_options_set_count(L, "OPT", r.state[LJP_VMSTATE_OPT]);
  ljp_options_set_count(L, "ASM", r.state[LJP_VMSTATE_ASM]);
  ljp_options_set_count(L, "TRACE", r.state[LJP_VMSTATE_TRACE]);
  ljp_options_set_count(L, "HOST", r.state[LJP_VMSTATE_HOST]);
  ljp_options_set_count(L, "WAITING", r.state[LJP_VMSTATE_WAITING]);
  ljp_options_set_count(L, "UNKNOWN", r.state[LJP_VMSTATE_UNKNOWN]);
  lua_setfield(L, -2, "vmstate");

  lua_newtable(L);
#define LJP_X(name, number, text)                                              \
  ljp_options_set_count(L, #name, r.lost[number]);
  LJP_LOSS_LIST(LJP_X)
#undef LJP_X
  lua_setfield(L, -2, "losses");

  lua_newtable(L);
#define LJP_X(name, number, text)                                              \
  if (number)                                                                  \
    ljp_options_set_count(L, #name, r.cut[number]);
  LJP_CUT_LIST(LJP_X)
#undef LJP_X
  lua_setfield(L, -2, "cuts");
  return 1;
}

static void sysprof_set_string(lua_State *L, const char *name,
                               const char *value)
{
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

int ljp_sysprof_push_status(lua_State *L)
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
  sysprof_set_string(L, "state", s.state);
  ljp_options_set_count(L, "samples", r.samples);
  ljp_options_set_count(L, "losses", lost);
  ljp_options_set_count(L, "bytes", s.bytes);
  ljp_options_set_count(L, "threads", s.threads);
  ljp_options_set_count(L, "marks_cut", s.marks_cut);
  if (!s.timer)
    return 1;
  if (s.path[0])
    sysprof_set_string(L, "path", s.path);
  sysprof_set_string(L, "timer", s.timer);
  sysprof_set_string(L, "mode", modes[s.mode]);
  sysprof_set_string(L, "event", s.wall ? "wall" : "cpu");
  lua_pushnumber(L, (lua_Number)s.interval_ns / 1e6);
  lua_setfield(L, -2, "interval");
  lua_pushboolean(L, s.throttled);
  lua_setfield(L, -2, "throttled");
  ljp_options_set_count(L, "signal", (uint64_t)s.signal);
  ljp_options_set_count(L, "threads_blocked", s.blocked);
  return 1;
}

const luaL_Reg ljp_sysprof_functions[] = {{"start", sysprof_start},
                                          {"stop", sysprof_stop},
                                          {"report", sysprof_report},
                                          {"status", ljp_sysprof_push_status},
                                          {NULL, NULL}};
