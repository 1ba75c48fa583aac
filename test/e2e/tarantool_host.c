/*
** A program written for the C interface of Tarantool's profilers, with its
** habits. Usage: tarantool_host CASE OUTPUT; prints nothing.
**   asked     a timer that never expires, and SIGPROFs that the program sends
**   buffers   the writer keeps the buffer that it gets, and gives another one
**   greedy    the writer returns more than it was given
**   handled   the program handles SIGPROF itself
**   memory    the first design of the memory profiler's interface
**   metrics   luaM_metrics
**   freed     luaM_metrics against the VM's own allocator
*/
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"
#include "test/support/check.h"

enum { BUFFER = 997 };

struct context {
  FILE *out;
  uint8_t one[BUFFER], other[BUFFER];
  uint8_t *expected; /* where the next piece must lie; NULL: anywhere */
  bool greedy;
  int stops;
};

static struct context context;

static size_t writer(const void **data, size_t len, void *ctx)
{
  struct context *c = ctx;
  CHECK(!c->expected || *data == c->expected);
  CHECK(!c->expected || len <= BUFFER);
  CHECK(fwrite(*data, 1, len, c->out) == len);
  if (c->expected) {
    memset(c->expected, 0xee, BUFFER); /* the piece is the program's now */
    c->expected = c->expected == c->one ? c->other : c->one;
    *data = c->expected;
  }
  return c->greedy ? 8 * 1024 * 1024 : len;
}

static int on_stop(void *ctx, uint8_t *buf)
{
  struct context *c = ctx;
  CHECK(!c->expected || buf == c->expected);
  c->stops++;
  return fclose(c->out);
}

static void run(lua_State *L, const char *code)
{
  if (luaL_dostring(L, code)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
}

static void start(lua_State *L, uint64_t interval, const char *path)
{
  struct luam_Sysprof_Options opt = {0};
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  opt.interval = interval;
  opt.ctx = &context;
  opt.buf = context.one;
  opt.len = BUFFER;
  context.out = fopen(path, "wb");
  CHECK(context.out);
  CHECK(luaM_sysprof_set_writer(writer) == PROFILE_SUCCESS);
  CHECK(luaM_sysprof_set_on_stop(on_stop) == PROFILE_SUCCESS);
  CHECK(luaM_sysprof_set_backtracer(NULL) == PROFILE_SUCCESS);
  CHECK(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
}

static int send(lua_State *L)
{
  (void)L;
  raise(SIGPROF);
  return 0;
}

static void *send_there(void *unused)
{
  raise(SIGPROF); /* this thread is not sampled */
  return unused;
}

static struct luam_Sysprof_Counters stop(lua_State *L)
{
  struct luam_Sysprof_Counters c;
  CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
  CHECK(context.stops == 1);
  CHECK(luaM_sysprof_report(&c) == PROFILE_SUCCESS);
  CHECK(c.samples == c.vmst_interp + c.vmst_lfunc + c.vmst_ffunc +
                         c.vmst_cfunc + c.vmst_gc + c.vmst_exit +
                         c.vmst_record + c.vmst_opt + c.vmst_asm +
                         c.vmst_trace);
  return c;
}

static void asked(lua_State *L, const char *path)
{
  struct sigaction now;
  pthread_t thread;
  lua_register(L, "send", send);
  start(L, UINT64_MAX, path);
  run(L, "for i = 1, 7 do send() end");
  raise(SIGPROF); /* outside of the VM */
  CHECK(!pthread_create(&thread, NULL, send_there, NULL));
  pthread_join(thread, NULL);
  struct luam_Sysprof_Counters c = stop(L);
  CHECK(c.vmst_cfunc == 7);
  CHECK(c.samples == 8 && c.vmst_interp == 1);
  CHECK(!sigaction(SIGPROF, NULL, &now) && now.sa_handler == SIG_DFL);
}

static volatile sig_atomic_t handled_count;

static void handler(int number)
{
  (void)number;
  handled_count++;
}

static void handled(lua_State *L, const char *path)
{
  signal(SIGPROF, handler);
  start(L, UINT64_MAX, path);
  raise(SIGPROF);
  CHECK(stop(L).samples == 0);
  raise(SIGPROF);
  CHECK(handled_count == 2);
}

/* Works until there are samples, however slow the machine is. */
static void work(lua_State *L, const char *path)
{
  start(L, 1, path);
  run(L, "jit.off() function busy() local x = 0 "
         "for i = 1, 1e5 do x = x + i % 7 end end "
         "repeat busy() until misc.sysprof.report().samples > 20");
  CHECK(stop(L).vmst_lfunc > 0);
}

static void memory(lua_State *L, const char *path)
{
  struct luam_Prof_options opt = {0};
  const lua_State *constant = L;
  opt.ctx = &context;
  opt.buf = context.expected = context.one;
  opt.len = BUFFER;
  opt.writer = writer;
  opt.on_stop = on_stop;
  context.out = fopen(path, "wb");
  CHECK(context.out && !luaM_memprof_isrunning());
  CHECK(luaM_memprof_start(L, &opt) == LUAM_PROFILE_SUCCESS);
  CHECK(luaM_memprof_isrunning() == 1);
  CHECK(luaM_memprof_start(L, &opt) == LUAM_PROFILE_ERRRUN);
  run(L, "local t = {} for i = 1, 211 do t[i] = {i} end");
  CHECK(luaM_memprof_stop(constant) == LUAM_PROFILE_SUCCESS);
  CHECK(!luaM_memprof_isrunning() && context.stops == 1);
}

/* Makes strings until their index has grown (and the old one is freed), so that
** it has room for more. */
static void grow_index(lua_State *L)
{
  struct luam_Metrics a, b;
  char name[32];
  int n = 0;
  luaM_metrics(L, &a);
  do {
    int len = snprintf(name, sizeof name, "string %d", n++);
    lua_pushlstring(L, name, (size_t)len);
    lua_pop(L, 1);
    luaM_metrics(L, &b);
  } while (b.gc_freed == a.gc_freed);
}

static void metrics(lua_State *L)
{
  struct luam_Metrics a, b;
  lua_gc(L, LUA_GCCOLLECT, 0);
  lua_gc(L, LUA_GCSTOP, 0);
  grow_index(L);
  lua_pushstring(L, "exists");
  luaM_metrics(L, &a);
  lua_pushstring(L, "exists");
  lua_pushstring(L, "is new");
  lua_newuserdata(L, 71);
  lua_newtable(L);
  luaM_metrics(L, &b);
  CHECK(b.strhash_hit - a.strhash_hit == 1);
  CHECK(b.strhash_miss - a.strhash_miss == 1);
  CHECK(b.gc_strnum - a.gc_strnum == 1);
  CHECK(b.gc_tabnum - a.gc_tabnum == 1);
  CHECK(b.gc_udatanum - a.gc_udatanum == 1);
  CHECK(b.gc_allocated - a.gc_allocated == b.gc_total - a.gc_total);
  CHECK(b.gc_allocated > a.gc_allocated && b.gc_freed == a.gc_freed);
}

/* What an allocator of the program sees. */
static struct {
  size_t allocated, freed;
} seen;

static void *seeing(void *ud, void *p, size_t osize, size_t nsize)
{
  (void)ud;
  seen.freed += osize;
  seen.allocated += nsize;
  if (nsize)
    return realloc(p, nsize);
  free(p);
  return NULL;
}

/* Lua: compare(): the metrics are what the allocator has seen. */
static int compare(lua_State *L)
{
  struct luam_Metrics m;
  luaM_metrics(L, &m);
  CHECK(m.gc_freed == seen.freed);
  CHECK(m.gc_allocated == seen.allocated);
  CHECK(m.gc_total == seen.allocated - seen.freed);
  return 0;
}

/* Memory of each kind is resized and freed, in the sweep and outside of it, by
 * whole collections and by steps, of which finalizers make some, too. */
static void freed(void)
{
  lua_State *L = lua_newstate(seeing, NULL);
  CHECK(L);
  luaL_openlibs(L);
  lua_register(L, "compare", compare);
  for (int jit = 0; jit < 2; jit++) {
    run(L, jit ? "jit.on() jit.opt.start('hotloop=3')" : "jit.off()");
    run(L,
        "local ffi = require('ffi')\n"
        "local got, buffer = pcall(require, 'string.buffer')\n"
        "collectgarbage('setpause', 100)\n"
        "local finalized = 0\n"
        "local function finalizer()\n"
        "  finalized = finalized + 1\n"
        "  local t = {} for k = 1, 31 do t['f' .. k] = k end\n"
        "  compare()\n"
        "  for k = 1, finalized % 37 do collectgarbage('step', 0) end\n"
        "  if finalized % 19 == 0 then collectgarbage() end\n"
        "  compare()\n"
        "end\n"
        "for i = 1, 157 do\n"
        "  local t, text = {}, {}\n"
        "  for k = 1, i * 3 do t[k] = {k} t['x' .. k] = k end\n"
        "  for k = i * 3, 1, -1 do t[k] = nil t['x' .. k] = nil end\n"
        "  t.another = 1\n"
        "  for k = 1, i do text[k] = ('y'):rep(k % 13 * 11) end\n"
        "  local all = table.concat(text) .. tostring(i)\n"
        "  coroutine.wrap(function(...) return select('#', ...) end)(all, t)\n"
        "  loadstring('local z = {} return function() return z end ' .. i)\n"
        "  loadstring('return ' .. ('{'):rep(i % 90) .. ('}'):rep(i % 90))()\n"
        "  getmetatable(newproxy(true)).__gc = finalizer\n"
        "  ffi.gc(ffi.new('int[?]', i), finalizer)\n"
        "  for k = 1, 41 do t[k] = ffi.new('int64_t', k) end\n"
        "  for k = 1, 41 do t[k] = function() return k end end\n"
        "  if got then buffer.new():put(all):reset():put(t.another) end\n"
        "  if i % 7 == 0 then collectgarbage('step', i) end\n"
        "  if i % 23 == 0 then collectgarbage() end\n"
        "  if i % 29 == 0 then jit.flush() end\n"
        "  compare()\n"
        "end\n"
        "collectgarbage() collectgarbage()\n"
        "compare()\n"
        "assert(finalized >= 157)\n");
  }
  compare(L);
  lua_close(L);
  CHECK(seen.allocated == seen.freed);
}

int main(int argc, char **argv)
{
  CHECK(argc == 3);
  const char *what = argv[1], *path = argv[2];
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (strcmp(what, "asked") == 0)
    asked(L, path);
  else if (strcmp(what, "handled") == 0)
    handled(L, path);
  else if (strcmp(what, "memory") == 0)
    memory(L, path);
  else if (strcmp(what, "metrics") == 0)
    metrics(L);
  else if (strcmp(what, "freed") == 0)
    freed();
  else {
    context.greedy = strcmp(what, "greedy") == 0;
    context.expected = context.greedy ? NULL : context.one;
    work(L, path);
  }
  lua_close(L);
  return 0;
}
