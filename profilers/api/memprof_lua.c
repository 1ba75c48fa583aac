/*
** misc.memprof (start, stop, status, mark) and misc.profile (start, stop,
** status): memory alone, and with CPU samples in one session. A call that fails
** returns nil, a message and an errno number; none raises an error, none prints.
*/
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profilers/api/output_options.h"
#include "profilers/api/sysprof_lua.h"
#include "profilers/cpu/sysprof.h"
#include "profilers/memory/memprof.h"

/* -- Options of memprof --------------------------------------------------------- */

struct memory {
  struct ljp_memprof_options o;
  bool every, sampled;
};

static bool read_every(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct memory *)to)->every, wants);
}

static bool read_sample(lua_State *L, void *to, const char **wants)
{
  struct memory *m = to;
  double bytes = 0;
  *wants = "the mean number of bytes between two samples, at least 1";
  m->sampled = ljp_option_number(L, 1, (double)LJP_MEMPROF_SAMPLE_MAX, &bytes);
  m->o.sample_bytes = (uint64_t)bytes;
  return m->sampled;
}

static bool read_native(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct memory *)to)->o.native, wants);
}

static bool read_depth(lua_State *L, void *to, const char **wants)
{
  int depth = 0;
  *wants = "a number of frames from 8 to 2048";
  bool ok = ljp_option_whole(L, 8, LJP_STACK_MAX_FRAMES, &depth);
  ((struct memory *)to)->o.depth = (uint32_t)depth;
  return ok;
}

/* Those of a combined session are the first ones. */
static const struct ljp_option memory_options[] = {
    {"every", read_every}, {"sample", read_sample}, {"native", read_native},
    {"depth", read_depth}, LJP_OUTPUT_OPTIONS,
};
enum {
  MEMORY_OPTIONS = sizeof memory_options / sizeof *memory_options,
  SHARED_OPTIONS = 4
};

/* 0, or the number of results of a call that has failed. */
static int read_memory(lua_State *L, int table, size_t count, struct memory *m)
{
  int results = ljp_options_read(L, table, memory_options, count, m);
  if (results)
    return results;
  if (m->every && m->sampled)
    return ljp_options_failed(
        L, EINVAL, "options 'every' and 'sample' contradict each other");
  if (m->every)
    m->o.sample_bytes = 0;
  return 0;
}

/* -- misc.memprof ------------------------------------------------------------------ */

static int memprof_start(lua_State *L)
{
  struct memory m = {.every = false};
  struct ljp_failure why;
  int results = 0;
  ljp_memprof_options_init(&m.o);
  if (lua_gettop(L) > 1 || (!lua_isnoneornil(L, 1) && !lua_istable(L, 1) &&
                            lua_type(L, 1) != LUA_TSTRING))
    return ljp_options_failed(L, EINVAL,
                              "start takes the name of a file, or one table of "
                              "options: start{path = \"FILE\"}");
  if (lua_type(L, 1) == LUA_TSTRING) {
    const char *wants = "";
    m.o.sample_bytes = 0;
    if (!ljp_option_path(L, &m.o.output.path, &wants))
      return ljp_options_failed(L, EINVAL,
                                "start wants the name of a file, a string "
                                "that is not empty");
  } else if (lua_istable(L, 1)) {
    results = read_memory(L, 1, MEMORY_OPTIONS, &m);
  }
  if (results)
    return results;
  if (!m.o.output.path)
    m.o.output.path = "memprof.bin";
  if (ljp_memprof_start(L, &m.o, &why))
    return ljp_options_failed(L, why.error, why.text);
  lua_pushboolean(L, 1);
  return 1;
}

static int memprof_stop(lua_State *L)
{
  struct ljp_failure why;
  if (ljp_memprof_stop(L, &why))
    return ljp_options_failed(L, why.error, why.text);
  lua_pushboolean(L, 1);
  return 1;
}

static int memprof_mark(lua_State *L)
{
  struct ljp_failure why;
  size_t bytes = 0;
  if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING)
    return ljp_options_failed(L, EINVAL, "mark takes a name, a string");
  const char *name = lua_tolstring(L, 1, &bytes);
  if (ljp_memprof_mark(L, name, bytes, &why))
    return ljp_options_failed(L, why.error, why.text);
  lua_pushboolean(L, 1);
  return 1;
}

static int memprof_status(lua_State *L)
{
  struct ljp_memprof_status s;
  ljp_memprof_status(&s);
  uint64_t lost = s.counts.untold;
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
                                          {"status", memprof_status},
                                          {"mark", memprof_mark},
                                          {NULL, NULL}};

/* -- misc.profile ------------------------------------------------------------------- */

struct combined {
  struct memory m; /* and what is of the session: path, fork, flush ... */
  bool cpu, memory, jitdump;
};

static bool read_part(lua_State *L, bool *out, const char **wants)
{
  *wants = "true, false, or a table of options";
  *out = lua_istable(L, -1) || lua_toboolean(L, -1);
  return lua_istable(L, -1) || lua_isboolean(L, -1);
}

static bool read_cpu(lua_State *L, void *to, const char **wants)
{
  return read_part(L, &((struct combined *)to)->cpu, wants);
}

static bool read_memory_part(lua_State *L, void *to, const char **wants)
{
  return read_part(L, &((struct combined *)to)->memory, wants);
}

static bool read_jitdump(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct combined *)to)->jitdump, wants);
}

static const struct ljp_option profile_options[] = {
    {"cpu", read_cpu},
    {"memory", read_memory_part},
    {"jitdump", read_jitdump},
    LJP_OUTPUT_OPTIONS,
};

/* Reads the options of one part, which is a table or not. */
static bool open_part(lua_State *L, const char *name)
{
  lua_getfield(L, 1, name);
  return lua_istable(L, -1);
}

static int start_parts(lua_State *L, struct combined *c)
{
  struct ljp_memprof_options *m = &c->m.o;
  struct ljp_sysprof_options cpu;
  struct ljp_failure why, ignored;
  int results = 0;
  struct ljp_memprof_status now;
  ljp_sysprof_options_init(&cpu);
  /* Before a file is made for the part that could start. */
  ljp_memprof_status(&now);
  if (c->memory && now.running)
    return ljp_options_failed(L, EBUSY, "memory profiler is running already");
  if (open_part(L, "cpu"))
    results = ljp_sysprof_read_part(L, lua_gettop(L), &cpu);
  if (!results && open_part(L, "memory"))
    results = read_memory(L, lua_gettop(L), SHARED_OPTIONS, &c->m);
  if (results)
    return results;
  cpu.jitdump |= c->jitdump;
  if (!m->output.path)
    m->output.path = "profile.bin";
  if (c->cpu) {
    cpu.output = m->output;
    if (ljp_sysprof_start(L, &cpu, &why))
      return ljp_options_failed(L, why.error, why.text);
    m->output.path = NULL;
    m->shared = true;
  }
  if (c->memory && ljp_memprof_start(L, m, &why)) {
    if (c->cpu)
      ljp_sysprof_stop(L, &ignored);
    return ljp_options_failed(L, why.error, why.text);
  }
  lua_pushboolean(L, 1);
  return 1;
}

static int profile_start(lua_State *L)
{
  struct combined c = {.cpu = true, .memory = true};
  int results = 0;
  ljp_memprof_options_init(&c.m.o);
  if (lua_gettop(L) > 1 || (!lua_isnoneornil(L, 1) && !lua_istable(L, 1)))
    return ljp_options_failed(
        L, EINVAL, "start takes one table of options: start{path = \"FILE\"}");
  if (lua_gettop(L) == 0 || lua_isnil(L, 1)) {
    lua_settop(L, 0);
    lua_newtable(L);
  }
  results =
      ljp_options_read(L, 1, profile_options,
                       sizeof profile_options / sizeof *profile_options, &c);
  if (results)
    return results;
  if (!c.cpu && !c.memory)
    return ljp_options_failed(L, EINVAL,
                              "options 'cpu' and 'memory' are both false: "
                              "nothing would be recorded");
  if (c.jitdump && !c.cpu)
    return ljp_options_failed(L, EINVAL,
                              "option 'jitdump' is about sessions with CPU "
                              "samples, but 'cpu' is false");
  return start_parts(L, &c);
}

static int profile_stop(lua_State *L)
{
  struct ljp_memprof_status memory;
  struct ljp_sysprof_status cpu;
  struct ljp_failure why, also;
  enum ljp_status status = LJP_OK, second = LJP_OK;
  ljp_memprof_status(&memory);
  ljp_sysprof_status(&cpu);
  if (!memory.running && !cpu.running)
    return ljp_options_failed(L, EINVAL, "no profiler is running");
  if (memory.running)
    status = ljp_memprof_stop(L, &why);
  if (cpu.running)
    second = ljp_sysprof_stop(L, status ? &also : &why);
  if (status || second)
    return ljp_options_failed(L, why.error, why.text);
  lua_pushboolean(L, 1);
  return 1;
}

static int profile_status(lua_State *L)
{
  lua_settop(L, 0);
  lua_newtable(L);
  ljp_sysprof_push_status(L);
  lua_setfield(L, 1, "cpu");
  memprof_status(L);
  lua_setfield(L, 1, "memory");
  return 1;
}

const luaL_Reg ljp_profile_functions[] = {{"start", profile_start},
                                          {"stop", profile_stop},
                                          {"status", profile_status},
                                          {NULL, NULL}};
