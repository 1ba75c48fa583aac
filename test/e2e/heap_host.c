/*
** A host whose VM takes heap snapshots while four threads use malloc and the
** loader all the time, and while the host makes children of its own. Neither
** its signals, nor its waits, nor its handlers of fork() notice the copies; the
** copies wait for nobody's lock; and all of them are gone in the end.
** Usage: heap_host SNAPSHOTS FILE
*/
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"
#include "test/support/check.h"

enum { THREADS = 4, BLOCKS = 50, CODE = 7 };

static atomic_bool stop;
static atomic_int signals, prepared;

static void on_child(int number)
{
  (void)number;
  atomic_fetch_add(&signals, 1);
}

static void on_prepare(void)
{
  atomic_fetch_add(&prepared, 1);
}

static void *hammer(void *arg)
{
  void *blocks[BLOCKS];
  while (!atomic_load(&stop)) {
    for (int i = 0; i < BLOCKS; i++)
      blocks[i] = malloc(100 + (size_t)i * 1000);
    for (int i = 0; i < BLOCKS; i++)
      free(blocks[i]);
    CHECK(!dlsym(RTLD_DEFAULT, "no_such_function"));
    FILE *f = fopen("/dev/null", "r");
    CHECK(f && fclose(f) == 0);
  }
  return arg;
}

/* Waits for any child: the only one is our own. */
static void make_child(void)
{
  int status = 0;
  pid_t pid = fork();
  if (pid == 0)
    _exit(CODE);
  CHECK(pid > 0);
  pid_t got;
  while ((got = waitpid(-1, &status, 0)) < 0 && errno == EINTR)
    ;
  CHECK(got == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CODE);
  CHECK(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD);
}

static void run(lua_State *L, const char *code)
{
  if (luaL_dostring(L, code)) {
    fprintf(stderr, "heap_host: %s\n", lua_tostring(L, -1));
    exit(1);
  }
}

int main(int argc, char **argv)
{
  pthread_t threads[THREADS];
  CHECK(argc == 3);
  int snapshots = atoi(argv[1]);
  CHECK(signal(SIGCHLD, on_child) != SIG_ERR);
  CHECK(pthread_atfork(on_prepare, NULL, NULL) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, hammer, NULL) == 0);
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushstring(L, argv[2]);
  lua_setglobal(L, "file");
  run(L, "t = {} for i = 1, 5000 do t[i] = {i, 's' .. i} end");
  for (int i = 0; i < snapshots; i++) {
    lua_pushboolean(L, i % 3 == 0);
    lua_setglobal(L, "wait");
    run(L, "local r, message, errno\n"
           "repeat\n"
           "  r, message, errno = misc.memprof.snapshot{\n"
           "    path = file, wait = wait}\n"
           "until errno ~= 16\n" /* EBUSY: the one before is not complete */
           "assert(r, message)\n"
           "assert(r.taken == 'copy', r.taken)\n"
           "assert(r.bytes == r.heap_bytes)");
    make_child();
    while (atomic_load(&signals) <= i) /* It may reach another thread. */
      usleep(100);
  }
  CHECK(atomic_load(&signals) == snapshots);
  CHECK(atomic_load(&prepared) == snapshots);
  run(L, "repeat until misc.memprof.snapshot{path = file, wait = true}");
  const struct luam_Heap_Options options = {.strings = 16, .wait = 1};
  CHECK(luaM_heap_snapshot(L, argv[2], &options) == PROFILE_SUCCESS);
  CHECK(luaM_heap_snapshot(L, "no/such", &options) == PROFILE_ERRIO);
  CHECK(errno == ENOENT);
  CHECK(luaM_heap_snapshot(L, NULL, NULL) == PROFILE_ERRUSE && errno == EINVAL);
  int left = waitpid(-1, NULL, WNOHANG | __WALL);
  CHECK(left == -1 && errno == ECHILD);
  atomic_store(&stop, true);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(threads[i], NULL) == 0);
  lua_close(L);
  puts("ok");
  return 0;
}
