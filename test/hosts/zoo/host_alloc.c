/*
** A host with an allocator of its own: it counts, refuses what is above its
** limit, and checks that it is called as the manual promises. "swap" replaces
** the allocator while the VM works, and puts the one that was there back.
** zoo: cases counts limit swap
** zoo: cut swap
*/
#include <stdlib.h>
#include <string.h>

#include "test/hosts/zoo/zoo.h"

struct pool {
  size_t used, limit, wrong;
};

/* Before each block stands its size, with which the VM's claim is compared. */
static void *pool_alloc(void *ud, void *at, size_t old, size_t size)
{
  struct pool *pool = ud;
  size_t *block = at ? (size_t *)at - 2 : NULL;
  pool->wrong += block && (block[0] != old || block[1] != ~old);
  if (!size) {
    pool->used -= block ? old : 0;
    free(block);
    return NULL;
  }
  if (pool->limit && size > old && pool->used + size > pool->limit)
    return NULL;
  block = realloc(block, size + 2 * sizeof *block);
  if (!block)
    return NULL;
  pool->used += size - (at ? old : 0);
  block[0] = size;
  block[1] = ~size;
  return block + 2;
}

static void *pool_alloc_again(void *ud, void *at, size_t old, size_t size)
{
  return pool_alloc(ud, at, old, size);
}

int main(int argc, char **argv)
{
  const char *which = argc > 1 ? argv[1] : "";
  struct pool pool = {0, 0, 0};
  void *ud;
  lua_State *L = lua_newstate(pool_alloc, &pool);
  zoo_need(L != NULL, "lua_newstate");
  zoo_open(L);
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  if (!strcmp(which, "swap")) {
    lua_Alloc now = lua_getallocf(L, &ud);
    for (int i = 0; i < 9; i++) {
      if (i % 2)
        lua_setallocf(L, now, ud);
      else
        lua_setallocf(L, pool_alloc_again, &pool);
      zoo_work(L, ZOO_ROUNDS / 9);
    }
  }
  if (!strcmp(which, "limit")) {
    pool.limit = pool.used + 4000000;
    for (int i = 0; i < 5; i++) {
      int failed = luaL_dostring(L, "local t = {}\n"
                                    "for i = 1, 1e7 do t[i] = {i} end");
      zoo_say("%d: %s", failed, lua_tostring(L, -1));
      lua_settop(L, 0);
      lua_gc(L, LUA_GCCOLLECT, 0);
    }
    pool.limit = 0;
  }
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 4));
  lua_close(L);
  zoo_say("%zu bytes used, %zu wrong sizes", pool.used, pool.wrong);
  return 0;
}
