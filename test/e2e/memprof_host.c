/*
** A host program that uses the memory profiler through its C interface.
** Usage: memprof_host CASE OUTPUT; exits 0 if the case behaves as stated.
**   writer    on_stop is called once; the stream is whole
**   short     the writer takes a few bytes at a time; the stream is whole
**   ended     the writer ends the stream: stop fails with ECANCELED
**   refused   the writer takes nothing: PROFILE_ERRIO, and on_stop once
**   errno     the same, and the writer sets errno: stop fails with it
**   greedy    the writer claims more than it was given; the stream is whole
**   first     the writer refuses or ends the first bytes; start or stop fails
**   onstop    on_stop fails: stop fails with its errno
**   again     on_stop starts the next session
**   wrong     wrong calls and their codes
**   bare      the C API without any Lua function: sizes are known
**   oom       the host's allocator runs out of memory; the program goes on
**   other     another VM cannot stop a session
**   close     lua_close() ends a session
**   covered   the host puts another allocator on top of ours: noticed
**   replaced  the same, and then one in the place of ours: noticed
**   swapped   its own allocator takes the place of ours, and gives it back
**   shared    "replaced" in a session of both profilers
**   thread    the VM moves to another thread
*/
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"
#include "test/support/check.h"
#include "test/support/host_vm.h"

enum { ENOUGH = 30000 }; /* bytes; start writes fewer */

struct context {
  FILE *out;
  int stops, error;
  size_t bytes, enough;
  bool refuse, end, greedy, piecemeal;
  uint8_t buffer[509];
  lua_State *next; /* in which on_stop starts a session */
};

static size_t host_write(const void **data, size_t len, void *ctx)
{
  struct context *c = ctx;
  c->bytes += len;
  errno = c->error;
  if (c->refuse && c->bytes > c->enough)
    return 0;
  if (c->piecemeal && len > 7)
    len = 1 + len % 7;
  size_t taken = fwrite(*data, 1, len, c->out);
  if (c->end && c->bytes > c->enough)
    *data = NULL;
  return taken + (c->greedy ? 4096 : 0);
}

static int on_stop(void *ctx, uint8_t *buf)
{
  struct context *c = ctx;
  c->stops++;
  if (c->next) {
    struct luam_Memprof_Options o = {.ctx = c,
                                     .buf = buf,
                                     .len = sizeof c->buffer,
                                     .writer = host_write,
                                     .on_stop = on_stop};
    lua_State *L = c->next;
    c->next = NULL;
    CHECK(luaM_memprof_start(L, &o) == PROFILE_SUCCESS);
  }
  errno = c->error;
  return c->error || buf != c->buffer;
}

static const char work[] = "for i = 1, 20000 do keep = {tostring(i)} end";

static void *run_there(void *L)
{
  run(L, work);
  return NULL;
}

struct below {
  lua_Alloc alloc;
  void *ud;
  unsigned long calls;
};

static void *on_top(void *ud, void *ptr, size_t osize, size_t nsize)
{
  struct below *b = ud;
  b->calls++;
  return b->alloc(b->ud, ptr, osize, nsize);
}

/* The host saves the allocator that it finds and puts its own on top. again:
** then it puts the original one in the place of ours. */
static void replace(lua_State *L, const struct luam_Memprof_Options *options,
                    struct context *c, bool again)
{
  struct below mine = {.calls = 0};
  lua_Alloc original, found;
  void *original_ud, *ud;
  original = lua_getallocf(L, &original_ud);
  CHECK(luaM_memprof_start(L, options) == PROFILE_SUCCESS);
  run(L, work);
  mine.alloc = lua_getallocf(L, &mine.ud);
  CHECK(mine.alloc != original);
  lua_setallocf(L, on_top, &mine);
  run(L, work);
  CHECK(luaM_memprof_stop(L) == PROFILE_ERRRUN && errno == ECANCELED);
  found = lua_getallocf(L, &ud);
  CHECK(found == on_top && ud == &mine && mine.calls > 1000);
  CHECK(c->stops == 1);
  CHECK(luaM_memprof_stop(L) == PROFILE_ERRRUN && errno == EINVAL);
  run(L, work); /* calls ours, which passes on */
  lua_setallocf(L, original, original_ud);
  run(L, work);
  if (!again)
    return;
  c->stops = 0;
  CHECK(luaM_memprof_start(L, options) == PROFILE_SUCCESS);
  run(L, work);
  lua_setallocf(L, original, original_ud);
  run(L, work);
  CHECK(luaM_memprof_stop(L) == PROFILE_ERRRUN && errno == ECANCELED);
  CHECK(c->stops == 1);
  CHECK(lua_getallocf(L, &ud) == original && ud == original_ud);
}

/* The host puts another allocator in place, and ours back after a moment. What
** was allocated meanwhile is unknown, so the recording has ended. */
static void swap(lua_State *L, const struct luam_Memprof_Options *options)
{
  struct below mine = {.calls = 0};
  CHECK(luaM_memprof_start(L, options) == PROFILE_SUCCESS);
  mine.alloc = lua_getallocf(L, &mine.ud);
  lua_setallocf(L, mine.alloc, mine.ud); /* this replaces nothing */
  run(L, work);
  run(L, "assert(misc.memprof.status().state == 'running')");
  lua_setallocf(L, on_top, &mine);
  lua_pushstring(L, "not by the recorder itself, which passes it on");
  lua_setallocf(L, mine.alloc, mine.ud);
  run(L, "allocs = misc.memprof.status().allocs assert(allocs > 1000)");
  run(L, work);
  run(L, "local now = misc.memprof.status()\n"
         "assert(now.state == 'failed' and now.allocs == allocs)");
  CHECK(luaM_memprof_stop(L) == PROFILE_ERRRUN && errno == ECANCELED);
}

/* In a session that is shared with the CPU profiler the CPU profiler's writer
** has to notice. */
static void replace_in_shared(lua_State *L, const char *path)
{
  lua_Alloc original;
  void *original_ud;
  original = lua_getallocf(L, &original_ud);
  lua_pushstring(L, path);
  lua_setglobal(L, "path");
  run(L, "assert(misc.profile.start{path = path, cpu = true, "
         "memory = {every = true}})");
  run(L, work);
  lua_setallocf(L, original, original_ud);
  run(L, "local give_up = os.time() + 20\n"
         "while misc.memprof.status().state ~= 'failed' do\n"
         "  assert(os.time() < give_up, misc.memprof.status().state)\n"
         "end\n"
         "assert(misc.sysprof.status().state == 'running')");
  run(L, "local done, message = misc.profile.stop()\n"
         "assert(not done and message:find('allocator', 1, true), message)");
}

/* No Lua function is called: there are no frames, and the sizes are known. */
static void bare(lua_State *L)
{
  lua_newtable(L);
  for (int i = 1; i <= 211; i++) {
    lua_newuserdata(L, 1009);
    lua_rawseti(L, -2, i);
  }
  for (int i = 1; i <= 223; i++) {
    lua_createtable(L, 131, 0);
    lua_rawseti(L, -2, i);
  }
  for (int i = 1; i <= 227; i++) {
    lua_pushfstring(L, "%d%s", 100000 + i, work); /* 6 bytes, and these */
    lua_rawseti(L, -2, i);
  }
  for (int i = 1; i <= 229; i++) {
    lua_pushnumber(L, i);
    lua_pushnumber(L, i);
    lua_pushnumber(L, i);
    lua_pushcclosure(L, (lua_CFunction)(void (*)(void))run_there, 3);
    lua_rawseti(L, -2, i);
  }
  lua_pop(L, 1);
}

/* The VM's own allocator, which at times refuses memory. */
static struct {
  lua_Alloc alloc;
  void *ud;
  bool empty;
  unsigned long refused;
} scarce;

static void *allocate_scarce(void *ud, void *ptr, size_t osize, size_t nsize)
{
  (void)ud;
  if (scarce.empty && nsize > osize) {
    scarce.refused++;
    errno = ENOMEM;
    return NULL;
  }
  return scarce.alloc(scarce.ud, ptr, osize, nsize);
}

static int need_memory(lua_State *L)
{
  static char zeros[70000];
  scarce.empty = true;
  lua_pushlstring(L, zeros, sizeof zeros);
  return 1;
}

static void out_of_memory(const struct luam_Memprof_Options *o)
{
  lua_State *L = new_vm();
  scarce.alloc = lua_getallocf(L, &scarce.ud);
  lua_setallocf(L, allocate_scarce, NULL);
  CHECK(luaM_memprof_start(L, o) == PROFILE_SUCCESS);
  run(L, work);
  for (int i = 0; i < 17; i++) {
    lua_pushcfunction(L, need_memory);
    int code = lua_pcall(L, 0, 0, 0);
    scarce.empty = false;
    CHECK(code == LUA_ERRMEM);
    CHECK(strcmp(lua_tostring(L, -1), "not enough memory") == 0);
    lua_pop(L, 1);
  }
  CHECK(scarce.refused == 17);
  run(L, work);
  CHECK(luaM_memprof_stop(L) == PROFILE_SUCCESS);
  void *ud;
  CHECK(lua_getallocf(L, &ud) == allocate_scarce && !ud);
  lua_close(L);
}

/* The writer does not even take the first bytes. */
static void refuse_at_once(lua_State *L, const struct luam_Memprof_Options *o,
                           struct context *c)
{
  for (int i = 0; i < 2; i++) {
    c->stops = 0;
    c->bytes = c->enough = 0;
    c->refuse = i == 0;
    c->end = i == 1;
    int code = luaM_memprof_start(L, o);
    if (code == PROFILE_SUCCESS) {
      run(L, work);
      code = luaM_memprof_stop(L);
      CHECK(c->stops == 1);
    } else {
      CHECK(c->stops == 0); /* no session, so none ends */
      CHECK(luaM_memprof_stop(L) == PROFILE_ERRRUN);
    }
    CHECK(code == PROFILE_ERRIO);
  }
  c->refuse = c->end = false;
  c->stops = 0;
  CHECK(luaM_memprof_start(L, o) == PROFILE_SUCCESS);
  CHECK(luaM_memprof_stop(L) == PROFILE_SUCCESS && c->stops == 1);
}

static void start_in_on_stop(lua_State *L, const struct luam_Memprof_Options *o,
                             struct context *c)
{
  c->next = L;
  CHECK(luaM_memprof_start(L, o) == PROFILE_SUCCESS);
  run(L, work);
  CHECK(luaM_memprof_stop(L) == PROFILE_SUCCESS && c->stops == 1);
  CHECK(luaM_memprof_start(L, o) == PROFILE_ERRRUN && errno == EBUSY);
  run(L, work);
  CHECK(luaM_memprof_stop(L) == PROFILE_SUCCESS && c->stops == 2);
  CHECK(luaM_memprof_stop(L) == PROFILE_ERRRUN && c->stops == 2);
  c->stops = 1;
}

static void misuse(lua_State *L, const struct luam_Memprof_Options *o,
                   struct context *c)
{
  struct luam_Memprof_Options none = {.ctx = c};
  CHECK(luaM_memprof_start(NULL, o) == PROFILE_ERRUSE && errno == EINVAL);
  CHECK(luaM_memprof_start(L, NULL) == PROFILE_ERRUSE && errno == EINVAL);
  CHECK(luaM_memprof_start(L, &none) == PROFILE_ERRUSE && errno == EINVAL);
  CHECK(luaM_memprof_stop(L) == PROFILE_ERRRUN);
  CHECK(luaM_memprof_stop(NULL) == PROFILE_ERRUSE);
  CHECK(luaM_memprof_start(L, o) == PROFILE_SUCCESS);
  CHECK(luaM_memprof_start(L, o) == PROFILE_ERRRUN && errno == EBUSY);
  CHECK(c->stops == 0);
  CHECK(luaM_memprof_stop(L) == PROFILE_SUCCESS && c->stops == 1);
}

static void fail_in_on_stop(lua_State *L, const struct luam_Memprof_Options *o,
                            struct context *c)
{
  CHECK(luaM_memprof_start(L, o) == PROFILE_SUCCESS);
  c->error = ENOLINK;
  CHECK(luaM_memprof_stop(L) == PROFILE_ERRIO && errno == ENOLINK);
  CHECK(c->stops == 1);
  CHECK(luaM_memprof_stop(L) == PROFILE_ERRRUN);
}

static void run_elsewhere(lua_State *L)
{
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run_there, L) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

static void stop_by_other(const struct context *c)
{
  lua_State *other = new_vm();
  CHECK(luaM_memprof_stop(other) == PROFILE_ERRUSE && errno == EPERM);
  CHECK(c->stops == 0);
  lua_close(other);
}

/* The cases in which a session runs, and ends well or by its writer. Closes the
** VM. */
static void run_session(lua_State *L, const struct luam_Memprof_Options *o,
                        struct context *c, const char *what)
{
  c->error = strcmp(what, "errno") == 0 ? ENOSPC : 0;
  c->refuse = strcmp(what, "refused") == 0 || c->error;
  c->end = strcmp(what, "ended") == 0;
  c->greedy = strcmp(what, "greedy") == 0;
  c->piecemeal = strcmp(what, "short") == 0;
  CHECK(luaM_memprof_start(L, o) == PROFILE_SUCCESS);
  run(L, work);
  if (strcmp(what, "thread") == 0)
    run_elsewhere(L);
  if (strcmp(what, "other") == 0)
    stop_by_other(c);
  if (strcmp(what, "close") == 0) {
    lua_close(L);
    CHECK(c->stops == 1);
    return;
  }
  int code = luaM_memprof_stop(L);
  if (c->refuse || c->end)
    CHECK(code == PROFILE_ERRIO && errno == (c->end     ? ECANCELED
                                             : c->error ? c->error
                                                        : EIO));
  else
    CHECK(code == PROFILE_SUCCESS);
  CHECK(c->stops == 1);
  lua_close(L);
}

static void run_bare(lua_State *L, const struct luam_Memprof_Options *o,
                     const struct context *c)
{
  CHECK(luaM_memprof_start(L, o) == PROFILE_SUCCESS);
  bare(L);
  lua_gc(L, LUA_GCCOLLECT, 0);
  CHECK(luaM_memprof_stop(L) == PROFILE_SUCCESS && c->stops == 1);
}

/* False: the case is one of run_session(). */
static bool run_special(lua_State *L, const struct luam_Memprof_Options *o,
                        struct context *c, const char *what, const char *path)
{
  if (strcmp(what, "wrong") == 0)
    misuse(L, o, c);
  else if (strcmp(what, "replaced") == 0 || strcmp(what, "covered") == 0)
    replace(L, o, c, *what == 'r');
  else if (strcmp(what, "swapped") == 0)
    swap(L, o);
  else if (strcmp(what, "shared") == 0) {
    replace_in_shared(L, path);
    c->stops = 1;
  } else if (strcmp(what, "bare") == 0)
    run_bare(L, o, c);
  else if (strcmp(what, "oom") == 0)
    out_of_memory(o);
  else if (strcmp(what, "first") == 0)
    refuse_at_once(L, o, c);
  else if (strcmp(what, "again") == 0)
    start_in_on_stop(L, o, c);
  else if (strcmp(what, "onstop") == 0)
    fail_in_on_stop(L, o, c);
  else
    return false;
  return true;
}

int main(int argc, char **argv)
{
  struct context c = {.enough = ENOUGH};
  struct luam_Memprof_Options o = {.ctx = &c,
                                   .buf = c.buffer,
                                   .len = sizeof c.buffer,
                                   .writer = host_write,
                                   .on_stop = on_stop};
  CHECK(argc == 3);
  c.out = fopen(argv[2], "wb");
  CHECK(c.out);
  lua_State *L = new_vm();
  if (run_special(L, &o, &c, argv[1], argv[2])) {
    fclose(c.out);
    lua_close(L);
  } else {
    run_session(L, &o, &c, argv[1]);
    fclose(c.out);
  }
  CHECK(c.stops == 1);
  return 0;
}
