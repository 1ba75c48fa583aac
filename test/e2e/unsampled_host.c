/*
** A program with a VM in its first thread, and a thread that blocks every
** signal. Each uses the CPU time given as argument, in milliseconds. After half
** of it the blocking thread takes the name that may follow.
*/
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lauxlib.h"
#include "lualib.h"

static long ms = 300;
static const char *later = "blocker";

static void use(long until_ms)
{
  struct timespec used;
  do
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < until_ms);
}

static void *blocker(void *arg)
{
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  pthread_setname_np(pthread_self(), "blocker");
  use(ms / 2);
  pthread_setname_np(pthread_self(), later);
  use(ms);
  return arg;
}

int main(int argc, char **argv)
{
  char code[160];
  pthread_t thread;
  ms = argc > 1 ? atol(argv[1]) : ms;
  later = argc > 2 ? argv[2] : later;
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (pthread_create(&thread, NULL, blocker, NULL))
    return 1;
  pthread_join(thread, NULL);
  snprintf(code, sizeof code,
           "local stop = os.clock() + %ld / 1000 "
           "repeat local s = 0 for i = 1, 1000 do s = s + i end "
           "until os.clock() > stop",
           ms);
  if (luaL_loadstring(L, code) || lua_pcall(L, 0, 0, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return 1;
  }
  lua_close(L);
  return 0;
}
