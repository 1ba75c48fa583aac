/*
** misc.memprof: start, stop, status, mark. A call that fails returns nil, a
** message and an errno number; no call raises an error or prints.
*/
#include "profilers/api/memprof_lua.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/api/lua_tables.h"
#include "profilers/api/output_options.h"
#include "profilers/api/snapshot_lua.h"
#include "profilers/session/side_run.h"

/* -- Options --------------------------------------------------------------- */
static bool memprof_read_every(lua_State *L, void *to, const char **wants)
{
  struct ljp_memprof_lua *m = to;
  bool ok = ljp_option_bool(L, &m->every, wants);
  m->not_every = !m->every;
  return ok;
}

static bool memprof_read_sample(lua_State *L, void *to, const char **wants)
{
  struct ljp_memprof_lua *m = to;
  double bytes = 0;
  *wants = "the mean number of bytes between two samples, at least 1";
  m->sampled = ljp_option_number(L, 1, (double)LJP_MEMPROF_SAMPLE_MAX, &bytes);
  m->options.sample_bytes = (uint64_t)bytes;
  return m->sampled;
}

static bool memprof_read_max_samples(lua_State *L, void *to, const char **wants)
{
  struct ljp_memprof_lua *m = to;
  int samples = 0;
  *wants = "a whole number of samples a second from 0 (no limit) to 1000000";
  bool ok = ljp_option_whole(L, 0, LJP_MEMPROF_SAMPLES_MAX, &samples);
  m->options.max_samples = (uint32_t)samples;
  m->limited = ok && samples;
  return ok;
}

static bool memprof_read_native(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct ljp_memprof_lua *)to)->options.native,
                         wants);
}

static bool memprof_read_vms(lua_State *L, void *to, const char **wants)
{
  static const char *const words[] = {"own", "all", NULL};
  int i = 0;
  *wants = "\"own\" or \"all\"";
  bool ok = ljp_option_one_of(L, words, &i);
  ((struct ljp_memprof_lua *)to)->options.all = i == 1;
  return ok;
}

static bool memprof_read_depth(lua_State *L, void *to, const char **wants)
{
  int depth = 0;
  *wants = "a number of frames from 8 to 2048";
  bool ok = ljp_option_whole(L, 8, LJP_STACK_MAX_FRAMES, &depth);
  ((struct ljp_memprof_lua *)to)->options.depth = (uint32_t)depth;
  return ok;
}

static bool memprof_read_format(lua_State *L, void *to, const char **wants)
{
  static const char *const words[] = {"ljprof", "ljm", NULL};
  int i = 0;
  *wants = "\"ljprof\" or \"ljm\"";
  bool ok = ljp_option_one_of(L, words, &i);
  ((struct ljp_memprof_lua *)to)->options.output.ljm = i == 1;
  return ok;
}

static bool memprof_read_snapshot(lua_State *L, void *to, const char **wants)
{
  struct ljp_memprof_options *o = &((struct ljp_memprof_lua *)to)->options;
  double seconds = 0;
  if (!lua_isnumber(L, -1) && ljp_option_bool(L, &o->snapshot, wants))
    return true;
  *wants = "true, false, or a number of seconds between snapshots, from 0.1 to "
           "1e9";
  o->snapshot = ljp_option_number(L, 0.1, 1e9, &seconds);
  o->snapshot_ns = (uint64_t)(seconds * 1e9);
  return o->snapshot;
}

/* The first ones are also the options of the memory part of a combined
** session. */
static const struct ljp_option memory_options[] = {
    {"every", memprof_read_every},
    {"sample", memprof_read_sample},
    {"native", memprof_read_native},
    {"depth", memprof_read_depth},
    {"vms", memprof_read_vms},
    {"format", memprof_read_format},
    {"snapshot", memprof_read_snapshot},
    {"max_samples", memprof_read_max_samples},
    LJP_OUTPUT_OPTIONS,
};
enum {
  MEMORY_OPTIONS = sizeof memory_options / sizeof *memory_options,
  SHARED_OPTIONS = 8
};

/* Tarantool's format has each event of one VM with one line, in one file. */
static int memprof_check_ljm(lua_State *L, const struct ljp_memprof_lua *m)
{
  const struct ljp_memprof_options *o = &m->options;
  const struct ljp_output *out = &o->output;
  const struct {
    bool asked;
    const char *name, *why;
  } list[] = {
      {m->sampled, "sample", "it records every event"},
      {m->limited, "max_samples", "it records every event"},
      {m->not_every, "every = false", "it records every event"},
      {o->all, "vms", "it has the events of one VM"},
      {o->native, "native", "it has no stacks"},
      {o->snapshot, "snapshot", "it has no heap snapshots"},
      {o->depth != LJP_STACK_MAX_FRAMES, "depth", "it has no stacks"},
      {out->zstd_level != 0, "compress", "it is never compressed"},
      {out->segment_bytes != 0, "rotate_bytes", "it is one file"},
      {out->segment_ms != 0, "rotate_seconds", "it is one file"},
      {out->keep_segments != 0, "keep", "it is one file"},
      {out->service != NULL, "service", "it is one file"},
      {out->ring_bytes != 0, "ring", "it is one file"},
  };
  char text[192];
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    if (!list[i].asked)
      continue;
    snprintf(text, sizeof text,
             "format \"ljm\" cannot have option '%s': %s; leave the option "
             "out, or record in format \"ljprof\"",
             list[i].name, list[i].why);
    return ljp_options_misused(L, text);
  }
  return 0;
}

bool ljp_option_is_memory(const char *name)
{
  return ljp_options_have(memory_options, SHARED_OPTIONS, name);
}

static int memprof_read(lua_State *L, int table, enum ljp_option_place here,
                        struct ljp_memprof_lua *m)
{
  size_t count =
      here == LJP_PLACE_MEMPROF ? (size_t)MEMORY_OPTIONS : SHARED_OPTIONS;
  int results = ljp_options_read(L, table, here, memory_options, count, m);
  if (results)
    return results;
  if (m->every && m->sampled)
    return ljp_options_misused(
        L, "options 'every' and 'sample' contradict each other");
  if (m->every && m->limited)
    return ljp_options_misused(
        L, "options 'every' and 'max_samples' contradict each other");
  if (m->every || m->options.output.ljm)
    m->options.sample_bytes = 0;
  return m->options.output.ljm ? memprof_check_ljm(L, m) : 0;
}

int ljp_memprof_read_part(lua_State *L, int table, struct ljp_memprof_lua *m)
{
  int results = memprof_read(L, table, LJP_PLACE_MEMORY_PART, m);
  if (!results && m->options.output.ljm)
    return ljp_options_misused(
        L, "format \"ljm\" has memory events only: use misc.memprof.start");
  return results;
}

/* -- Functions ------------------------------------------------------------- */
static int memprof_start(lua_State *L)
{
  struct ljp_memprof_lua m = {.every = false};
  struct ljp_failure why;
  ljp_side_bind();
  ljp_memprof_options_init(&m.options);
  /* Tarantool's call, which records every event. */
  if (lua_type(L, 1) == LUA_TSTRING)
    m.options.sample_bytes = 0;
  int results =
      ljp_options_argument(L, LJP_PLACE_MEMPROF, &m.options.output.path);
  if (!results && lua_istable(L, 1))
    results = memprof_read(L, 1, LJP_PLACE_MEMPROF, &m);
  if (results)
    return results;
  if (!m.options.output.path)
    m.options.output.path = "memprof.bin";
  enum ljp_status status = ljp_memprof_start(L, &m.options, &why);
  if (status)
    return ljp_options_refused(L, status, &why);
  lua_pushboolean(L, 1);
  return 1;
}

static int memprof_stop(lua_State *L)
{
  struct ljp_failure why;
  enum ljp_status status = ljp_memprof_stop(L, &why);
  if (status)
    return ljp_options_refused(L, status, &why);
  lua_pushboolean(L, 1);
  return 1;
}

static int memprof_mark(lua_State *L)
{
  struct ljp_failure why;
  size_t bytes = 0;
  if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING)
    return ljp_options_misused(L, "mark takes a name, a string");
  const char *name = lua_tolstring(L, 1, &bytes);
  enum ljp_status status = ljp_memprof_mark(L, name, bytes, &why);
  if (status)
    return ljp_options_refused(L, status, &why);
  lua_pushboolean(L, 1);
  return 1;
}

int ljp_memprof_push_status(lua_State *L)
{
  struct ljp_memprof_status s;
  ljp_memprof_status(&s);
  uint64_t lost = s.counts.untold;
  if (!s.ljm) /* which has no phases of the collector */
    lost += s.counts.untold_phases;
  for (int i = 0; i < LJP_LOSS_COUNT; i++)
    lost += s.counts.lost[i];
  lua_newtable(L);
  lua_pushstring(L, s.state);
  lua_setfield(L, -2, "state");
  ljp_options_set_count(L, "allocs", s.counts.allocs);
  ljp_options_set_count(L, "frees", s.counts.frees);
  ljp_options_set_count(L, "reallocs", s.counts.reallocs);
  ljp_options_set_count(L, "failed", s.counts.failed);
  ljp_options_set_count(L, "alloc_bytes", s.counts.alloc_bytes);
  ljp_options_set_count(L, "free_bytes", s.counts.free_bytes);
  ljp_options_set_count(L, "gc_cycles", s.counts.cycles);
  ljp_options_set_count(L, "cut", s.counts.cut);
  ljp_options_set_count(L, "remembered", s.counts.remembered);
  if (s.counts.checked) {
    ljp_options_set_count(L, "checked", s.counts.checked);
    ljp_options_set_count(L, "differed", s.counts.differed);
  }
  ljp_options_set_count(L, "losses", lost);
  ljp_options_set_count(L, "bytes", s.bytes);
  if (strcmp(s.state, "idle") == 0)
    return 1;
  lua_pushboolean(L, s.sample_bytes == 0);
  lua_setfield(L, -2, "every");
  ljp_options_set_count(L, "sample", s.sample_bytes);
  ljp_options_set_count(L, "sample_now", s.sample_now);
  ljp_options_set_count(L, "max_samples", s.max_samples);
  lua_pushstring(L, s.ljm ? "ljm" : "ljprof");
  lua_setfield(L, -2, "format");
  lua_pushboolean(L, s.native);
  lua_setfield(L, -2, "native");
  if (s.path[0]) {
    lua_pushstring(L, s.path);
    lua_setfield(L, -2, "path");
  }
  return 1;
}

const luaL_Reg ljp_memprof_functions[] = {{"start", memprof_start},
                                          {"stop", memprof_stop},
                                          {"status", ljp_memprof_push_status},
                                          {"mark", memprof_mark},
                                          {"snapshot", ljp_memprof_snapshot},
                                          {NULL, NULL}};
