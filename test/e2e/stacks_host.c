/*
** A program whose threads hang, until SIGKILL. Usage: stacks_host FILE.lua. Each
** thread has a VM of its own, which runs the function of the thread's name in the
** file: "blocked" blocks all signals; "locked" may call take_lock(), which waits
** for ever for a lock; "sleeps" may call sleep(), a condition. The first thread
** waits in pause().
*/
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *host_file;
static _Atomic int host_begun;

static int host_take_lock(lua_State *L)
{
  (void)L;
  atomic_fetch_add(&host_begun, 1);
  pthread_mutex_lock(&host_lock);
  return 0;
}

__attribute__((noreturn)) static int host_sleep(lua_State *L)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  (void)L;
  pthread_mutex_lock(&lock);
  atomic_fetch_add(&host_begun, 1);
  for (;;)
    pthread_cond_wait(&never, &lock);
}

static int host_begins(lua_State *L)
{
  (void)L;
  atomic_fetch_add(&host_begun, 1);
  return 0;
}

static void *host_run(void *name)
{
  sigset_t all;
  pthread_setname_np(pthread_self(), name);
  sigfillset(&all);
  if (strcmp(name, "blocked") == 0)
    pthread_sigmask(SIG_SETMASK, &all, NULL);
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "take_lock", host_take_lock);
  lua_register(L, "sleep", host_sleep);
  lua_register(L, "begins", host_begins);
  if (luaL_dofile(L, host_file)) {
    fprintf(stderr, "stacks_host: %s\n", lua_tostring(L, -1));
    exit(1);
  }
  lua_getglobal(L, name);
  if (lua_pcall(L, 0, 0, 0))
    fprintf(stderr, "stacks_host: %s\n", lua_tostring(L, -1));
  exit(1);
}

int main(int argc, char **argv)
{
  static const char *const names[] = {"blocked", "locked", "sleeps"};
  enum { NAMES = sizeof names / sizeof *names };
  pthread_t thread;
  if (argc != 2)
    return 2;
  host_file = argv[1];
  pthread_mutex_lock(&host_lock);
  for (int i = 0; i < NAMES; i++)
    if (pthread_create(&thread, NULL, host_run, (void *)(uintptr_t)names[i]))
      return 1;
  while (atomic_load(&host_begun) < NAMES)
    usleep(1000);
  puts("ready");
  fflush(stdout);
  for (;;)
    pause();
}
