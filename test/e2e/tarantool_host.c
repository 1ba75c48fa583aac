/*
** A program written for the C interface of Tarantool's profilers, with its
** habits. Usage: tarantool_host CASE OUTPUT; prints nothing.
**   asked     a timer that never expires, and SIGPROFs that the program sends
**   buffers   the writer keeps the buffer that it gets, and gives another one
**   greedy    the writer returns more than it was given
**   handled   the program handles SIGPROF itself
**   memory    the first design of the memory profiler's interface
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
  else {
    context.greedy = strcmp(what, "greedy") == 0;
    context.expected = context.greedy ? NULL : context.one;
    work(L, path);
  }
  lua_close(L);
  return 0;
}
