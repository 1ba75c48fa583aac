/*
** A host that forks while other threads of it make VMs or load chunks, without
** any session: every child must be able to use Lua, and end in time.
**
** usage: fork_host LIBRARY vms|chunks|first|unload
**
** LIBRARY is opened by its path, so that a library without the profiler can
** take the test, too, and so that it can be closed again.
*/
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"

enum { PROGRAMS = 151, CHILDREN = 3, LIMIT_S = 5, ENOUGH_HUNG = 3 };

static struct {
  void *handle;
  lua_State *(*newstate)(void);
  int (*loadstring)(lua_State *L, const char *s);
  void (*settop)(lua_State *L, int index);
  void (*close)(lua_State *L);
} lua;

static _Atomic bool stop;
static pthread_barrier_t barrier;

static bool lua_open_library(const char *path)
{
  lua.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lua.handle)
    return false;
  *(void **)&lua.newstate = dlsym(lua.handle, "luaL_newstate");
  *(void **)&lua.loadstring = dlsym(lua.handle, "luaL_loadstring");
  *(void **)&lua.settop = dlsym(lua.handle, "lua_settop");
  *(void **)&lua.close = dlsym(lua.handle, "lua_close");
  return lua.newstate && lua.loadstring && lua.settop && lua.close;
}

static bool use_vm(void)
{
  static const char chunk[] = "local function a() end\n"
                              "local function b() return a end\n"
                              "return function() return a, b end\n";
  lua_State *L = lua.newstate();
  bool good = L && lua.loadstring(L, chunk) == 0;
  if (L)
    lua.close(L);
  return good;
}

static void *make_vms(void *arg)
{
  (void)arg;
  pthread_barrier_wait(&barrier);
  while (!atomic_load(&stop))
    use_vm();
  return NULL;
}

static void *load_chunks(void *arg)
{
  char chunk[4096] = "";
  for (int i = 0; i < 61; i++)
    strcat(chunk, "local function f() end ");
  lua_State *L = lua.newstate();
  (void)arg;
  pthread_barrier_wait(&barrier);
  while (!atomic_load(&stop)) {
    lua.loadstring(L, chunk);
    lua.settop(L, 0);
  }
  lua.close(L);
  return NULL;
}

static int child_status(pid_t child)
{
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

/* A program that has no VM yet: `threads` threads use Lua, this one forks.
** Returns how many children did not end well. */
static int fork_beside(void *(*work)(void *), unsigned threads)
{
  pthread_t thread[2];
  int bad = 0;
  pthread_barrier_init(&barrier, NULL, threads + 1);
  for (unsigned i = 0; i < threads; i++)
    if (pthread_create(&thread[i], NULL, work, NULL))
      return CHILDREN;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < CHILDREN; i++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(LIMIT_S);
      _exit(use_vm() ? 0 : 1);
    }
    bad += child < 0 || child_status(child) != 0;
  }
  atomic_store(&stop, true);
  for (unsigned i = 0; i < threads; i++)
    pthread_join(thread[i], NULL);
  return bad;
}

static int run_programs(void *(*work)(void *), unsigned threads)
{
  int bad = 0;
  for (int i = 0; i < PROGRAMS && bad < ENOUGH_HUNG; i++) {
    pid_t program = fork();
    if (program == 0)
      _exit(fork_beside(work, threads));
    int status = child_status(program);
    bad += program < 0 || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
  }
  printf("%d children did not end well\n", bad);
  return bad != 0;
}

/* The library may go: what it asked fork() to do goes with it. */
static int unload(const char *path)
{
  for (int i = 0; i < 7; i++) {
    if (!use_vm() || dlclose(lua.handle)) {
      printf("the library cannot be closed\n");
      return 1;
    }
    void *still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    pid_t child = fork();
    if (child == 0)
      _exit(0);
    if (still || child < 0 || child_status(child) != 0) {
      printf("still loaded: %d; or a child failed\n", still != NULL);
      return 1;
    }
    if (!lua_open_library(path))
      return 1;
  }
  return 0;
}

int main(int argc, char **argv)
{
  const char *mode = argc > 2 ? argv[2] : "";
  if (argc < 3 || !lua_open_library(argv[1])) {
    fprintf(stderr, "usage: fork_host LIBRARY vms|chunks|first|unload\n");
    return 2;
  }
  if (!strcmp(mode, "vms"))
    return run_programs(make_vms, 2);
  if (!strcmp(mode, "first"))
    return run_programs(make_vms, 1);
  if (!strcmp(mode, "chunks"))
    return run_programs(load_chunks, 1);
  return unload(argv[1]);
}
