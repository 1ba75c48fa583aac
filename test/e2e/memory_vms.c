/*
** A host with several VMs, whose memory is recorded.
** Usage: memory_vms CASE [OUTPUT]; exits 0 if the case behaves as stated. Each
** VM runs one function, whose name says which VM it is, and which allocates
** TABLES + 2 tables.
**   probe    opens and closes a VM (probe) before the one that works (worker)
**   threads  eight threads, each with a VM (thread), all at the same time
**   loop     300 VMs one after the other (request), each closed with all that it
**            has, beside one that stays (worker)
**   late     a VM (old) starts to allocate before the session, which another
**            one (worker) starts, and goes on until its collector has begun
**   own      a session of one VM (worker) beside two others
**   stop     sessions start and stop while four threads allocate (thread)
**   storm    sessions start and stop while four threads open and close VMs, on
**            LuaJIT's allocator and on the host's own
*/
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "test/support/check.h"

enum {
  TABLES = 1009,
  THREADS = 8,
  REQUESTS = 300,
  SESSIONS = 5,
  BUSY = 4,
  STORM_VMS = 40
};

static void run(lua_State *L, const char *code)
{
  if (luaL_dostring(L, code)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
  lua_settop(L, 0);
}

static lua_State *vm(void)
{
  lua_State *L = luaL_newstate();
  CHECK(L);
  luaL_openlibs(L);
  run(L, "jit.off()"); /* the compiler makes tables, too */
  return L;
}

/* Calls a function of this name. Its tables stay alive. */
static void work(lua_State *L, const char *name)
{
  char code[300];
  snprintf(code, sizeof code,
           "function %s() local t = {} for i = 1, %d do t[i] = {} end "
           "kept = {kept, t} end %s() %s = nil",
           name, TABLES, name, name);
  run(L, code);
}

static void probe(void)
{
  lua_State *L = vm();
  work(L, "probe");
  lua_close(L);
  L = vm();
  work(L, "worker");
  lua_close(L);
}

static pthread_barrier_t all;

static void *thread(void *arg)
{
  lua_State *L = vm();
  (void)arg;
  pthread_barrier_wait(&all);
  work(L, "thread");
  pthread_barrier_wait(&all);
  lua_close(L);
  return NULL;
}

static void threads(void)
{
  pthread_t id[THREADS];
  CHECK(!pthread_barrier_init(&all, NULL, THREADS));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&id[i], NULL, thread, NULL));
  for (int i = 0; i < THREADS; i++)
    pthread_join(id[i], NULL);
}

static void loop(void)
{
  lua_State *worker = vm();
  work(worker, "worker");
  for (int i = 0; i < REQUESTS; i++) {
    lua_State *L = vm();
    work(L, "request");
    /* Without this, none of it would look like a leak. */
    run(L, "collectgarbage() collectgarbage() collectgarbage()");
    lua_close(L);
  }
  run(worker, "collectgarbage() collectgarbage() collectgarbage()");
  lua_close(worker);
}

static void start(lua_State *L, const char *code, const char *path)
{
  lua_pushstring(L, path);
  lua_setglobal(L, "path");
  run(L, code);
}

static void late(const char *path)
{
  lua_State *old = vm(), *L = vm();
  work(old, "before");
  start(L,
        "assert(misc.profile.start{path = path, cpu = false, "
        "memory = {every = true, vms = 'all'}})",
        path);
  work(L, "worker");
  run(old, "collectgarbage()");
  work(old, "old");
  run(L, "assert(misc.profile.stop())");
  lua_close(old);
  lua_close(L);
}

static void own(const char *path)
{
  lua_State *old = vm(), *L = vm();
  start(L, "assert(misc.memprof.start(path))", path);
  lua_State *later = vm();
  work(old, "other");
  work(later, "other");
  work(L, "worker");
  run(old, "collectgarbage()");
  run(later, "collectgarbage()");
  run(L, "assert(misc.memprof.stop())");
  lua_close(old);
  lua_close(later);
  lua_close(L);
}

static _Atomic bool enough;
static _Atomic int rounds[BUSY];

static void *busy(void *arg)
{
  lua_State *L = vm();
  while (!atomic_load(&enough)) {
    work(L, "thread");
    run(L, "kept = nil collectgarbage()");
    atomic_fetch_add((_Atomic int *)arg, 1);
  }
  lua_close(L);
  return NULL;
}

static void stop(const char *path)
{
  pthread_t id[BUSY];
  lua_State *L = vm();
  char name[300];
  for (int i = 0; i < BUSY; i++)
    CHECK(!pthread_create(&id[i], NULL, busy, &rounds[i]));
  for (int i = 0; i < SESSIONS; i++) {
    snprintf(name, sizeof name, "%s.%d", path, i);
    start(L,
          "assert(misc.profile.start{path = path, cpu = false, "
          "memory = {every = true, vms = 'all'}})",
          name);
    for (int t = 0; t < BUSY; t++) {
      int until = atomic_load(&rounds[t]) + 10;
      while (atomic_load(&rounds[t]) < until)
        work(L, "worker");
    }
    run(L, "kept = nil assert(misc.profile.stop())");
  }
  atomic_store(&enough, true);
  for (int i = 0; i < BUSY; i++)
    pthread_join(id[i], NULL);
  lua_close(L);
}

/* A host's allocator. Each VM has its own `ud`, which counts its bytes. */
static void *counting(void *ud, void *ptr, size_t osize, size_t nsize)
{
  size_t *bytes = ud;
  *bytes += nsize - (ptr ? osize : 0);
  if (nsize)
    return realloc(ptr, nsize);
  free(ptr);
  return NULL;
}

static _Atomic int storms;

static void *open_and_close(void *arg)
{
  (void)arg;
  for (int i = 0; i < STORM_VMS; i++) {
    size_t bytes = 0, before = 0;
    void *ud;
    lua_State *L = i % 2 ? luaL_newstate() : lua_newstate(counting, &bytes);
    if (!L) /* a library without an allocator of the host's */
      L = luaL_newstate();
    CHECK(L);
    luaL_openlibs(L);
    run(L, "local t = {} for i = 1, 3001 do t[i] = {i, tostring(i)} end "
           ""
           "local p = newproxy(true) "
           "getmetatable(p).__gc = function() for i = 1, 101 do t[i] = {} end "
           "end");
    /* Its allocator is kept and used, as modules do. */
    lua_Alloc alloc = lua_getallocf(L, &ud);
    void *kept = alloc(ud, NULL, 0, 1009);
    run(L, "collectgarbage() local s = {} for i = 1, 1009 do s[i] = {} end");
    before = bytes;
    alloc(ud, kept, 1009, 0);
    CHECK(bytes == (before ? before - 1009 : 0));
    lua_close(L);
    CHECK(bytes == 0);
  }
  atomic_fetch_add(&storms, 1);
  return NULL;
}

static void storm(const char *path)
{
  pthread_t id[BUSY];
  lua_State *L = vm();
  char name[300];
  int i = 0;
  for (int t = 0; t < BUSY; t++)
    CHECK(!pthread_create(&id[t], NULL, open_and_close, NULL));
  while (atomic_load(&storms) < BUSY) {
    snprintf(name, sizeof name, "%s.%d", path, i % 2);
    start(L,
          i++ % 2 ? "assert(misc.profile.start{path = path, cpu = false, "
                    "memory = {sample = 512, vms = 'all'}})"
                  : "assert(misc.profile.start{path = path, cpu = false, "
                    "memory = {every = true, native = true, vms = 'all'}})",
          name);
    work(L, "worker");
    run(L, "kept = nil collectgarbage() misc.memprof.status() "
           "assert(misc.profile.stop())");
  }
  for (int t = 0; t < BUSY; t++)
    pthread_join(id[t], NULL);
  lua_close(L);
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*alone)(void);
    void (*into)(const char *path);
  } cases[] = {{"probe", probe, NULL}, {"threads", threads, NULL},
               {"loop", loop, NULL},   {"late", NULL, late},
               {"own", NULL, own},     {"stop", NULL, stop},
               {"storm", NULL, storm}};
  for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
    if (strcmp(argv[1], cases[i].name) == 0) {
      if (cases[i].alone)
        cases[i].alone();
      else if (argc > 2)
        cases[i].into(argv[2]);
      return 0;
    }
  return 2;
}
