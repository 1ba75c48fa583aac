/*
** A host that keeps allocators that lua_getallocf() has returned, and uses each
** of them on the same blocks at any time: the one from before a session, and
** the session's own, during the session, after it, and during others.
** Usage: memprof_captured OUTPUT; exits 0 if every block kept its content and
** each session recorded only its own events.
*/
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "test/support/check.h"

enum { BLOCKS = 1009, STEPS = 40009 };

static struct {
  uint8_t *at;
  size_t size;
  uint8_t fill;
} blocks[BLOCKS];

struct allocator {
  lua_Alloc alloc;
  void *ud;
};

static uint64_t random_state = 88172645463325252;

static uint32_t next_random(uint32_t below)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 32) % below;
}

/* Mostly small; one in 61 gets a mapping of its own. */
static size_t next_size(void)
{
  return next_random(61) ? 1 + next_random(next_random(7) ? 300 : 9000)
                         : 130000 + next_random(300000);
}

static bool whole(const uint8_t *at, size_t size, uint8_t fill)
{
  return !size || (at[0] == fill && memcmp(at, at + 1, size - 1) == 0);
}

/* Makes, resizes or frees one block. */
static void step(const struct allocator *a, unsigned i)
{
  size_t before = blocks[i].size, size = next_random(3) ? next_size() : 0;
  CHECK(whole(blocks[i].at, before, blocks[i].fill));
  uint8_t *at = a->alloc(a->ud, blocks[i].at, before, size);
  CHECK(!at == !size);
  CHECK(whole(at, before < size ? before : size, blocks[i].fill));
  blocks[i].at = at;
  blocks[i].size = size;
  blocks[i].fill = next_random(2) ? 0xff : (uint8_t)next_random(256);
  if (at)
    memset(at, blocks[i].fill, size);
}

static void check_all(void)
{
  for (unsigned i = 0; i < BLOCKS; i++)
    CHECK(whole(blocks[i].at, blocks[i].size, blocks[i].fill));
}

static struct allocator allocator_of(lua_State *L)
{
  struct allocator a;
  a.alloc = lua_getallocf(L, &a.ud);
  return a;
}

static double run(lua_State *L, const char *code)
{
  if (luaL_dostring(L, code)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
  double value = lua_gettop(L) ? lua_tonumber(L, -1) : 0;
  lua_settop(L, 0);
  return value;
}

static void start(lua_State *L, const char *path, double sample)
{
  lua_pushstring(L, path);
  lua_setglobal(L, "path");
  lua_pushnumber(L, sample);
  lua_setglobal(L, "sample");
  run(L, "assert(misc.memprof.start{path = path, every = sample == 0 or nil,"
         "                          sample = sample > 0 and sample or nil})");
}

static void stop(lua_State *L)
{
  run(L, "assert(misc.memprof.stop())");
}

static const char allocs[] = "return misc.memprof.status().allocs";
static const char frees[] = "return misc.memprof.status().frees";
static const char work[] =
    "keep = {} for i = 1, 3001 do keep[i] = {tostring(i)} end";

static void *plain(void *ud, void *ptr, size_t osize, size_t nsize)
{
  (void)ud;
  (void)osize;
  if (nsize)
    return realloc(ptr, nsize);
  free(ptr);
  return NULL;
}

static lua_State *new_vm(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  return L;
}

static void free_all(const struct allocator *a)
{
  for (unsigned i = 0; i < BLOCKS; i++) {
    CHECK(whole(blocks[i].at, blocks[i].size, blocks[i].fill));
    if (blocks[i].at)
      a->alloc(a->ud, blocks[i].at, blocks[i].size, 0);
    blocks[i].at = NULL;
    blocks[i].size = 0;
  }
}

/* Steps by either allocator, in turn at random. */
static void steps(const struct allocator *a, const struct allocator *b,
                  unsigned count)
{
  for (unsigned i = 0; i < count; i++)
    step(next_random(2) ? a : b, next_random(BLOCKS));
}

/* The session's allocator is used after its end and during later sessions, of
** the same kind and of the other. A second session may have the same one. */
static void use_after_end(lua_State *L, const char *path, bool every)
{
  const struct allocator own = allocator_of(L);
  start(L, path, every ? 0 : 4096);
  const struct allocator hook = allocator_of(L);
  CHECK(hook.alloc != own.alloc);
  steps(&hook, &own, STEPS / 9);
  stop(L);
  CHECK(allocator_of(L).alloc == own.alloc && allocator_of(L).ud == own.ud);
  for (int other = 0; other < 3; other++) {
    steps(&hook, &own, STEPS / 9);
    start(L, path, every == (other == 1) ? 4096 : 0);
    run(L, work);
    steps(&hook, &own, STEPS / 9);
    stop(L);
  }
  free_all(&hook);
}

/* During the session. Every other step bypasses it. */
static void use_during(lua_State *L, const struct allocator *own,
                       const struct allocator *hook)
{
  CHECK(!hook->alloc(hook->ud, NULL, 0, 0));
  steps(hook, own, STEPS);
  run(L, work);
  CHECK(run(L, allocs) > 1009 && run(L, frees) > 1009);
  check_all();
  /* Blocks of the session's table are freed, and others take their places. */
  free_all(own);
  for (unsigned i = 0; i < 9 * BLOCKS; i++)
    step(own, next_random(BLOCKS));
  stop(L);
  check_all();
}

/* Afterwards, when some blocks still have their flag, and during the next
** session of that VM, which takes no block for its own that it has not
** sampled. */
static void use_later(lua_State *L, const char *path,
                      const struct allocator *own, const struct allocator *hook)
{
  struct allocator now = allocator_of(L);
  CHECK(now.alloc == own->alloc && now.ud == own->ud);
  CHECK(!hook->alloc(hook->ud, NULL, 0, 0));
  steps(hook, own, STEPS);
  run(L, work);
  start(L, path, 64);
  steps(hook, own, STEPS);
  stop(L);
  start(L, path, 1e12);
  free_all(hook);
  run(L, work);
  run(L, "collectgarbage()");
  CHECK(run(L, allocs) == 0 && run(L, frees) == 0);
  stop(L);
}

/* During the session of another VM, which records nothing of this VM's. */
static void use_beside(const char *path, const struct allocator *hook)
{
  lua_State *other = new_vm();
  start(other, path, 4096);
  struct allocator others = allocator_of(other);
  CHECK(others.alloc == hook->alloc && others.ud != hook->ud);
  double before = run(other, allocs);
  for (unsigned i = 0; i < STEPS; i++)
    step(hook, next_random(BLOCKS));
  CHECK(run(other, allocs) < before + 50);
  run(other, work);
  CHECK(run(other, allocs) > before + 20);
  /* Nor is the other VM sampled more often: about one block in 70 is right. */
  before = run(other, allocs);
  for (unsigned i = 0; i < 10007; i++) {
    void *large = hook->alloc(hook->ud, NULL, 0, 100003);
    hook->alloc(hook->ud, large, 100003, 0);
    lua_newuserdata(other, 17);
    lua_pop(other, 1);
  }
  CHECK(run(other, allocs) < before + 1009);
  stop(other);
  lua_close(other);
  free_all(hook);
}

/* A host that removes a session's allocator may keep it and use it anywhere:
** later sessions have one that nobody else knows. */
static void remove_allocator(lua_State *L, const char *path,
                             const struct allocator *own)
{
  start(L, path, 64);
  CHECK(allocator_of(L).ud == own->ud);
  lua_setallocf(L, own->alloc, own->ud);
  run(L, "assert(not misc.memprof.stop())");
  start(L, path, 64);
  CHECK(allocator_of(L).ud != own->ud);
  run(L, work);
  CHECK(run(L, allocs) > 1009);
  stop(L);
  CHECK(allocator_of(L).alloc == own->alloc && allocator_of(L).ud == own->ud);
  run(L, work);
}

int main(int argc, char **argv)
{
  CHECK(argc == 2);
  const char *path = argv[1];
  lua_State *L = lua_newstate(plain, NULL);
  if (L) {
    luaL_openlibs(L);
    use_after_end(L, path, true);
    use_after_end(L, path, false);
    lua_close(L);
  }
  L = new_vm();
  use_after_end(L, path, true);
  struct allocator own = allocator_of(L);
  start(L, path, 64);
  struct allocator hook = allocator_of(L);
  CHECK(hook.alloc != own.alloc);
  if (hook.ud != own.ud) { /* LuaJIT was built with the system's allocator */
    stop(L);
    lua_close(L);
    puts("skipped");
    return 0;
  }
  use_during(L, &own, &hook);
  use_later(L, path, &own, &hook);
  use_beside(path, &hook);
  remove_allocator(L, path, &own);
  lua_close(L);
  return 0;
}
