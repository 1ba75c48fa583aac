/*
** A host with a malloc of its own, whose lock a signal handler must not take: it
** ends the program if a thread asks for memory while it holds the lock itself.
*/
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

#if !ZOO_SANITIZED
enum { POOL = 96 << 20, CLASSES = 28 };

static char pool[POOL] __attribute__((aligned(64)));
static size_t used;
static void *free_lists[CLASSES];
static _Atomic pid_t owner;

static void lock(void)
{
  pid_t self = gettid(), nobody = 0;
  while (!atomic_compare_exchange_weak(&owner, &nobody, self)) {
    if (nobody == self) {
      static const char text[] = "malloc was called inside of malloc\n";
      if (write(STDOUT_FILENO, text, sizeof text - 1) > 0)
        _exit(1);
    }
    nobody = 0;
  }
}

static unsigned class_of(size_t size)
{
  unsigned c = 5;
  while (((size_t)1 << c) < size + 16)
    c++;
  return c;
}

ZOO_PUBLIC void *malloc(size_t size)
{
  unsigned c = class_of(size);
  if (c >= CLASSES) {
    errno = ENOMEM;
    return NULL;
  }
  lock();
  char *block = free_lists[c];
  if (block) {
    memcpy(&free_lists[c], block, sizeof(void *));
  } else if (POOL - used >= ((size_t)1 << c)) {
    block = pool + used;
    used += (size_t)1 << c;
  }
  atomic_store(&owner, 0);
  if (!block) {
    errno = ENOMEM;
    return NULL;
  }
  *(size_t *)(void *)block = size;
  return block + 16;
}

ZOO_PUBLIC void free(void *at)
{
  if (!at)
    return;
  char *block = (char *)at - 16;
  unsigned c = class_of(*(size_t *)(void *)block);
  lock();
  memcpy(block, &free_lists[c], sizeof(void *));
  free_lists[c] = block;
  atomic_store(&owner, 0);
}

ZOO_PUBLIC void *calloc(size_t n, size_t size)
{
  void *at = size && n > SIZE_MAX / size ? NULL : malloc(n * size);
  __asm__(""
          : "+r"(at)); /* Else the compiler makes a call of calloc() of it. */
  return at ? memset(at, 0, n * size) : NULL;
}

ZOO_PUBLIC void *realloc(void *at, size_t size)
{
  void *fresh = malloc(size);
  if (at && fresh) {
    size_t old = *(size_t *)(void *)((char *)at - 16);
    memcpy(fresh, at, old < size ? old : size);
    free(at);
  }
  return fresh;
}
#endif

static void *allocate(lua_State *L, size_t size)
{
  return lua_newuserdata(L, size);
}

static void *host_alloc(void *ud, void *at, size_t old, size_t size)
{
  (void)ud;
  (void)old;
  if (size)
    return realloc(at, size);
  free(at);
  return NULL;
}

int main(void)
{
  if (ZOO_SANITIZED)
    zoo_skip("the sanitizer has a malloc of its own");
  lua_State *L = lua_newstate(host_alloc, NULL);
  zoo_open(L);
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  memset(allocate(L, 100000), 1, 100000);
  zoo_say("thread %ld", zoo_result(zoo_worker(ZOO_ROUNDS / 2)));
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS / 2));
  lua_close(L);
  return 0;
}
