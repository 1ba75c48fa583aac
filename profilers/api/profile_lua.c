/*
** misc.profile: start, stop, status of both profilers in one session; listen is
** in listen_lua.c, label in labels_lua.c. A call that fails returns nil, a message and an errno number; no call raises an
** error or prints.
*/
#include <errno.h>

#include "profilers/api/labels_lua.h"
#include "profilers/api/listen_lua.h"
#include "profilers/api/lua_tables.h"
#include "profilers/api/memprof_lua.h"
#include "profilers/api/output_options.h"
#include "profilers/api/publish_lua.h"
#include "profilers/api/sysprof_lua.h"
#include "profilers/session/side_run.h"

struct combined {
  struct ljp_memprof_lua m; /* with the output of the session */
  bool cpu, memory, jitdump;
};

static bool profile_read_part(lua_State *L, bool *out, const char **wants)
{
  *wants = "true, false, or a table of options";
  *out = lua_istable(L, -1) || lua_toboolean(L, -1);
  return lua_istable(L, -1) || lua_isboolean(L, -1);
}

static bool profile_read_cpu(lua_State *L, void *to, const char **wants)
{
  return profile_read_part(L, &((struct combined *)to)->cpu, wants);
}

static bool profile_read_memory(lua_State *L, void *to, const char **wants)
{
  return profile_read_part(L, &((struct combined *)to)->memory, wants);
}

static bool profile_read_jitdump(lua_State *L, void *to, const char **wants)
{
  return ljp_option_bool(L, &((struct combined *)to)->jitdump, wants);
}

static const struct ljp_option profile_options[] = {
    {"cpu", profile_read_cpu},
    {"memory", profile_read_memory},
    {"jitdump", profile_read_jitdump},
    LJP_OUTPUT_OPTIONS,
};

/* Pushes the option of one part. True: it is a table. */
static bool profile_push_part(lua_State *L, const char *name)
{
  lua_getfield(L, 1, name);
  return lua_istable(L, -1);
}

static int profile_start_parts(lua_State *L, struct combined *c)
{
  struct ljp_memprof_options *m = &c->m.options;
  struct ljp_sysprof_options cpu;
  struct ljp_failure why, ignored;
  enum ljp_status status;
  int results = 0;
  ljp_sysprof_options_init(&cpu);
  /* Refuse before anything starts. */
  if (c->memory && ljp_memprof_running())
    return ljp_options_failed(L, EBUSY, "memory profiler is running already");
  if (profile_push_part(L, "cpu"))
    results = ljp_sysprof_read_part(L, lua_gettop(L), &cpu);
  if (!results && profile_push_part(L, "memory"))
    results = ljp_memprof_read_part(L, lua_gettop(L), &c->m);
  if (results)
    return results;
  cpu.jitdump |= c->jitdump;
  if (!m->output.path)
    m->output.path = "profile.ljp";
  if (c->cpu) {
    cpu.output = m->output;
    cpu.joint = true;
    status = ljp_sysprof_start(L, &cpu, &why);
    if (status)
      return ljp_options_refused(L, status, &why);
    m->output.path = NULL;
    m->shared = true;
  }
  status = c->memory ? ljp_memprof_start(L, m, &why) : LJP_OK;
  if (status) {
    if (c->cpu)
      ljp_sysprof_stop(L, &ignored);
    return ljp_options_refused(L, status, &why);
  }
  if (c->cpu && ljp_sysprof_commit(&why)) {
    if (c->memory)
      ljp_memprof_stop(L, &ignored);
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
  ljp_side_bind();
  ljp_memprof_options_init(&c.m.options);
  results =
      ljp_options_argument(L, LJP_PLACE_PROFILE, &c.m.options.output.path);
  if (!results && !lua_istable(L, 1)) {
    lua_newtable(L);
    lua_insert(L, 1);
  }
  if (!results)
    results =
        ljp_options_read(L, 1, LJP_PLACE_PROFILE, profile_options,
                         sizeof profile_options / sizeof *profile_options, &c);
  if (results)
    return results;
  if (!c.cpu && !c.memory)
    return ljp_options_misused(L, "options 'cpu' and 'memory' are both false: "
                                  "nothing would be recorded");
  if (c.jitdump && !c.cpu)
    return ljp_options_misused(L, "option 'jitdump' is about sessions with CPU "
                                  "samples, but 'cpu' is false");
  return profile_start_parts(L, &c);
}

static int profile_stop(lua_State *L)
{
  struct ljp_failure why, also;
  enum ljp_status status = LJP_OK, second = LJP_OK;
  bool memory = ljp_memprof_running(), cpu = ljp_sysprof_running();
  if (!memory && !cpu)
    return ljp_options_failed(L, EINVAL, "no profiler is running");
  if (memory)
    status = ljp_memprof_stop(L, &why);
  if (cpu)
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
  ljp_memprof_push_status(L);
  lua_setfield(L, 1, "memory");
  ljp_profile_set_listen(L);
  ljp_profile_set_published(L);
  return 1;
}

const luaL_Reg ljp_profile_functions[] = {
    {"start", profile_start},
    {"stop", profile_stop},
    {"status", profile_status},
    {"listen", ljp_profile_listen},
    {"label", ljp_profile_label},
    {"label_requests", ljp_profile_label_requests},
    {"labels", ljp_profile_labels},
    {"publish_labels", ljp_profile_publish_labels},
    {NULL, NULL}};
