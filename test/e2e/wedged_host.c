/*
** A program in which no thread can allocate memory: one of them holds the lock of
** malloc() for ever, in a function of its own. Until SIGKILL. Prints "ready".
*/
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static pthread_mutex_t wedged_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int wedged;

static void wedged_pass(void)
{
  if (atomic_load(&wedged)) {
    pthread_mutex_lock(&wedged_lock);
    pthread_mutex_unlock(&wedged_lock);
  }
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
  wedged_pass();
  return __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
  wedged_pass();
  return __libc_calloc(count, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *block, size_t bytes)
{
  wedged_pass();
  return __libc_realloc(block, bytes);
}

__attribute__((noinline)) static void wedged_in_the_allocator(void)
{
  for (;;)
    pause();
}

static void *wedged_hold(void *arg)
{
  (void)arg;
  pthread_mutex_lock(&wedged_lock);
  atomic_store(&wedged, 1);
  wedged_in_the_allocator();
  return NULL;
}

int main(void)
{
  pthread_t thread;
  lua_State *L = luaL_newstate();
  if (!L || pthread_create(&thread, NULL, wedged_hold, NULL))
    return 1;
  while (!atomic_load(&wedged))
    usleep(1000);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6)
    return 1;
  for (;;)
    pause();
}
