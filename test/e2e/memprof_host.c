/*
** A host program with the memory profiler, through its C interface.
** Usage: memprof_host CASE OUTPUT; exits 0 if all is as it should be.
**   writer    on_stop is called once; the stream is whole
**   ended     the writer ends the stream: stop says so, by ECANCELED
**   refused   the writer takes nothing: PROFILE_ERRIO, once on_stop
**   wrong     wrong uses and their codes
**   other     another VM cannot stop a session
**   close     lua_close() ends it
**   replaced  the host puts another allocator on top and another in its place
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

#define CHECK(what)                                                            \
  do {                                                                         \
    if (!(what)) {                                                             \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);               \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { ENOUGH = 30000 }; /* more than what start writes */

struct context {
  FILE *out;
  int stops;
  size_t bytes;
  bool refuse, end;
};

static size_t put(const void **data, size_t len, void *ctx)
{
  struct context *c = ctx;
  c->bytes += len;
  if (c->refuse && c->bytes > ENOUGH)
    return 0;
  size_t taken = fwrite(*data, 1, len, c->out);
  if (c->end && c->bytes > ENOUGH)
    *data = NULL;
  return taken;
}

static int on_stop(void *ctx, uint8_t *buf)
{
  struct context *c = ctx;
  c->stops++;
  return buf != (uint8_t *)ctx;
}

static void run(lua_State *L, const char *code)
{
  if (luaL_loadbuffer(L, code, strlen(code), "=host") ||
      lua_pcall(L, 0, 0, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
}

static const char work[] = "for i = 1, 20000 do keep = {tostring(i)} end";

static lua_State *new_vm(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  return L;
}

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

/* The host saves what it finds and puts its own over it. */
static void replaced(lua_State *L, const struct luam_Memprof_Options *options,
                     struct context *c)
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
  CHECK(luaM_memprof_stop(L) != PROFILE_SUCCESS || c->stops == 1);
  found = lua_getallocf(L, &ud);
  CHECK(found == on_top && ud == &mine && mine.calls > 1000);
  CHECK(c->stops == 1);
  run(L, work); /* through what is left of ours */
  lua_setallocf(L, original, original_ud);
  run(L, work);
  /* And the host that forgets ours altogether. */
  c->stops = 0;
  CHECK(luaM_memprof_start(L, options) == PROFILE_SUCCESS);
  run(L, work);
  lua_setallocf(L, original, original_ud);
  run(L, work);
  luaM_memprof_stop(L);
  CHECK(c->stops == 1);
  CHECK(lua_getallocf(L, &ud) == original && ud == original_ud);
}

int main(int argc, char **argv)
{
  struct context c = {.stops = 0};
  struct luam_Memprof_Options o = {.ctx = &c,
                                   .buf = (uint8_t *)&c,
                                   .len = sizeof c,
                                   .writer = put,
                                   .on_stop = on_stop};
  CHECK(argc == 3);
  const char *what = argv[1];
  c.out = fopen(argv[2], "wb");
  CHECK(c.out);
  lua_State *L = new_vm();
  if (strcmp(what, "wrong") == 0) {
    struct luam_Memprof_Options none = {.ctx = &c};
    CHECK(luaM_memprof_start(NULL, &o) == PROFILE_ERRUSE && errno == EINVAL);
    CHECK(luaM_memprof_start(L, NULL) == PROFILE_ERRUSE && errno == EINVAL);
    CHECK(luaM_memprof_start(L, &none) == PROFILE_ERRUSE && errno == EINVAL);
    CHECK(luaM_memprof_stop(L) == PROFILE_ERRRUN);
    CHECK(luaM_memprof_stop(NULL) == PROFILE_ERRUSE);
    CHECK(luaM_memprof_start(L, &o) == PROFILE_SUCCESS);
    CHECK(luaM_memprof_start(L, &o) == PROFILE_ERRRUN && errno == EBUSY);
    CHECK(c.stops == 0);
    CHECK(luaM_memprof_stop(L) == PROFILE_SUCCESS && c.stops == 1);
  } else if (strcmp(what, "replaced") == 0) {
    replaced(L, &o, &c);
  } else {
    c.refuse = strcmp(what, "refused") == 0;
    c.end = strcmp(what, "ended") == 0;
    CHECK(luaM_memprof_start(L, &o) == PROFILE_SUCCESS);
    run(L, work);
    if (strcmp(what, "thread") == 0) {
      pthread_t thread;
      CHECK(pthread_create(&thread, NULL, run_there, L) == 0);
      CHECK(pthread_join(thread, NULL) == 0);
    }
    if (strcmp(what, "other") == 0) {
      lua_State *L2 = new_vm();
      CHECK(luaM_memprof_stop(L2) == PROFILE_ERRUSE && errno == EPERM);
      CHECK(c.stops == 0);
      lua_close(L2);
    }
    if (strcmp(what, "close") == 0) {
      lua_close(L);
    } else if (c.refuse || c.end) {
      CHECK(luaM_memprof_stop(L) == PROFILE_ERRIO);
      CHECK(errno == (c.end ? ECANCELED : EIO));
    } else {
      CHECK(luaM_memprof_stop(L) == PROFILE_SUCCESS);
    }
    CHECK(c.stops == 1);
    if (strcmp(what, "close") == 0)
      L = NULL;
  }
  fclose(c.out);
  if (L)
    lua_close(L);
  CHECK(c.stops == 1);
  return 0;
}
