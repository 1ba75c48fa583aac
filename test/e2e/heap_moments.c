/*
** Heap snapshots at hard moments in the life of a host. Each mode is a process.
** Usage: heap_moments MODE FILE
**
**   threads    two threads with VMs of their own ask at once, a third one forks
**   foreign    a VM that another thread has made, and used
**   running    a VM that runs compiled code on another thread: refused
**   allocator  from within the allocator of the host
**   close      lua_close() directly after the call
**   exec, _exit, exit_thread
**              directly after the call: the program true, _exit(7), exit(7) of
**              another thread
**   handler    exit(7) in a signal handler, while a call waits
**   handler_early
**              the same, before the call waits: while it blocks all signals
*/
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"
#include "test/support/check.h"
#include "test/support/host_vm.h"

enum { CODE = 7, ROUNDS = 20, CHILDREN = 20, CHILD_MS = 30000, PATH = 256 };

static const char *file;
static _Thread_local bool slow_loader, alarm_in_loader;
static atomic_int in_loader, takers;
static atomic_int taken, busy;

static const char *const grow =
    "kept = {} for i = 1, 10000 do kept[i] = {i, 'item ' .. i} end";

/* One snapshot; false: another one is being written. */
static bool snapshot(lua_State *L, const char *path, int wait)
{
  const struct luam_Heap_Options options = {.strings = 16, .wait = wait};
  int result = luaM_heap_snapshot(L, path, &options);
  CHECK(result == PROFILE_SUCCESS ||
        (result == PROFILE_ERRRUN && errno == EBUSY));
  atomic_fetch_add(result == PROFILE_SUCCESS ? &taken : &busy, 1);
  return result == PROFILE_SUCCESS;
}

static lua_State *grown_vm(void)
{
  lua_State *L = new_vm();
  run(L, grow);
  return L;
}

/* The library calls this function, as the program comes before libc. A child that
** fork() makes meanwhile must not wait for the thread that is in here. */
__attribute__((visibility("default"))) int
dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *ctx)
{
  enum { PAUSE_US = 2000 };
  static __typeof__(&dl_iterate_phdr) libc;
  if (!libc)
    *(void **)&libc = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  if (slow_loader) {
    atomic_fetch_add(&in_loader, 1);
    usleep(PAUSE_US);
    atomic_fetch_sub(&in_loader, 1);
  }
  if (alarm_in_loader)
    raise(SIGALRM);
  return libc(each, ctx);
}

/* -- threads --------------------------------------------------------------- */

static void *take_many(void *suffix)
{
  char path[PATH];
  lua_State *L = grown_vm();
  slow_loader = true;
  snprintf(path, sizeof path, "%s.%s", file, (const char *)suffix);
  for (int i = 0; i < ROUNDS; i++) {
    while (!snapshot(L, path, i % 2))
      usleep(100);
    run(L, "for i = 1, 2000 do kept[i] = {i} end");
  }
  while (!snapshot(L, path, 1))
    usleep(100);
  atomic_fetch_sub(&takers, 1);
  lua_close(L);
  return NULL;
}

/* Children at any moment of the others' snapshots take their own. */
static void *fork_many(void *unused)
{
  char path[PATH];
  lua_State *L = grown_vm();
  for (int i = 0; i < CHILDREN; i++) {
    int status = 0;
    while (!atomic_load(&in_loader) && atomic_load(&takers))
      usleep(20);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      snprintf(path, sizeof path, "%s.child-%d", file, i);
      CHECK(snapshot(L, path, 1)); /* Nobody else's is in the way. */
      if (i % 2)
        exit(CODE);
      _exit(CODE);
    }
    for (int ms = 0; !waitpid(pid, &status, WNOHANG); ms++) {
      CHECK(ms < CHILD_MS ||
            !kill(pid, SIGKILL)); /* It has all signals blocked. */
      usleep(1000);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CODE);
  }
  lua_close(L);
  return unused;
}

static void moment_threads(void)
{
  pthread_t threads[3];
  atomic_store(&takers, 2);
  CHECK(!pthread_create(&threads[0], NULL, take_many, "one"));
  CHECK(!pthread_create(&threads[1], NULL, take_many, "two"));
  CHECK(!pthread_create(&threads[2], NULL, fork_many, NULL));
  for (int i = 0; i < 3; i++)
    CHECK(!pthread_join(threads[i], NULL));
}

/* -- foreign --------------------------------------------------------------- */

static void *take_foreign(void *L)
{
  while (!snapshot(L, file, 1))
    usleep(100);
  return NULL;
}

static void moment_foreign(void)
{
  pthread_t thread;
  lua_State *L = grown_vm();
  lua_State *co = lua_newthread(L);
  for (int i = 0; i < ROUNDS / 2; i++) {
    CHECK(!pthread_create(&thread, NULL, take_foreign, i % 2 ? co : L));
    CHECK(!pthread_join(thread, NULL));
    run(L, "for i = 1, 2000 do kept[i] = {i} end");
  }
  lua_close(L);
}

/* -- running --------------------------------------------------------------- */

static atomic_bool running_began, running_ends;

static int running_is_over(void)
{
  return atomic_load(&running_ends);
}

static int begin_running(lua_State *L)
{
  lua_pushlightuserdata(L, (void *)(uintptr_t)running_is_over);
  atomic_store(&running_began, true);
  return 1;
}

static void *run_compiled(void *L)
{
  run(L, "local is_over = require('ffi').cast('int (*)(void)', begin())\n"
         "while is_over() == 0 do end");
  return NULL;
}

static void moment_running(void)
{
  enum { MANY = 1000, COMPILE_US = 200000 };
  pthread_t thread;
  lua_State *L = grown_vm();
  struct luam_Heap_Options options = {.strings = 16, .wait = 1};
  lua_register(L, "begin", begin_running);
  CHECK(!pthread_create(&thread, NULL, run_compiled, L));
  while (!atomic_load(&running_began))
    usleep(100);
  usleep(COMPILE_US);
  for (int i = 0; i < MANY; i++) {
    options.in_place = i % 2;
    CHECK(luaM_heap_snapshot(L, file, &options) == PROFILE_ERRRUN);
    CHECK(errno == EPERM);
  }
  atomic_store(&running_ends, true);
  CHECK(!pthread_join(thread, NULL));
  CHECK(snapshot(L, file, 1));
  lua_close(L);
}

/* -- allocator ------------------------------------------------------------- */

static lua_State *asked;
static bool inside;
static unsigned long calls;

/* The VM is in the middle of something: the copy may crash, the host must not. */
static void *take_inside(void *ud, void *block, size_t old, size_t size)
{
  const struct luam_Heap_Options options = {.strings = 16, .wait = 1};
  (void)ud;
  (void)old;
  if (asked && !inside && calls++ % 97 == 0) {
    inside = true;
    luaM_heap_snapshot(asked, file, &options);
    inside = false;
  }
  if (size)
    return realloc(block, size);
  free(block);
  return NULL;
}

static void moment_allocator(void)
{
  lua_State *L = lua_newstate(take_inside, NULL);
  CHECK(L);
  luaL_openlibs(L);
  asked = L;
  run(L,
      "local t = {} for i = 1, 5000 do t[i] = {('x'):rep(i % 50), i}"
      " if i % 1000 == 0 then collectgarbage() end end\n"
      "for i = 1, 5000 do assert(#t[i][1] == i % 50 and t[i][2] == i) end\n"
      "local co = coroutine.wrap(function(...) return select('#', ...) end)\n"
      "assert(co(unpack(t, 1, 3000)) == 3000)");
  asked = NULL;
  CHECK(calls > 1000);
  while (!snapshot(L, file, 1))
    usleep(100);
  lua_close(L);
}

/* -- Ends ------------------------------------------------------------------ */

static void moment_close(void)
{
  for (int i = 0; i < ROUNDS / 2; i++) {
    lua_State *L = grown_vm();
    snapshot(L, file, 0);
    lua_close(L);
  }
}

static void moment_exec(void)
{
  snapshot(grown_vm(), file, 0);
  execlp("true", "true", (char *)NULL);
  CHECK(!"exec");
}

static void moment__exit(void)
{
  snapshot(grown_vm(), file, 0);
  _exit(CODE);
}

static void *leave(void *unused)
{
  (void)unused;
  exit(CODE);
}

static void moment_exit_thread(void)
{
  pthread_t thread;
  lua_State *L = grown_vm();
  CHECK(!pthread_create(&thread, NULL, leave, NULL));
  for (;;)
    snapshot(L, file, 1);
}

static atomic_int leaving;

/* exit() must not wait for what its own thread would do after the handler: the
** library looks again and again who takes the snapshot. */
__attribute__((visibility("default"))) pid_t getpid(void)
{
  enum { LOOKS = 20 };
  static const char text[] = "exit() waits for its own thread\n";
  if (atomic_load(&leaving) && atomic_fetch_add(&leaving, 1) > LOOKS) {
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(1);
  }
  return (pid_t)syscall(SYS_getpid);
}

static void on_alarm(int number)
{
  (void)number;
  atomic_store(&leaving, 1);
  exit(CODE);
}

static void moment_handler(void)
{
  lua_State *L = grown_vm();
  CHECK(signal(SIGALRM, on_alarm) != SIG_ERR);
  ualarm(20000, 0);
  for (;;)
    snapshot(L, file, 1);
}

static void moment_handler_early(void)
{
  lua_State *L = grown_vm();
  CHECK(signal(SIGALRM, on_alarm) != SIG_ERR);
  alarm_in_loader = true;
  snapshot(L, file, 1);
  CHECK(!"a snapshot asks the loader");
}

/* The last copy ends, and somebody waits for it. */
static void await_copy(void)
{
  siginfo_t info;
  while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL))
    usleep(1000);
  CHECK(errno == ECHILD);
}

static const struct {
  const char *name;
  void (*run)(void);
} moments[] = {
    {"threads", moment_threads}, {"foreign", moment_foreign},
    {"running", moment_running}, {"allocator", moment_allocator},
    {"close", moment_close},     {"exec", moment_exec},
    {"_exit", moment__exit},     {"exit_thread", moment_exit_thread},
    {"handler", moment_handler}, {"handler_early", moment_handler_early}};

int main(int argc, char **argv)
{
  CHECK(argc == 3);
  file = argv[2];
  for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
    if (strcmp(argv[1], moments[i].name) != 0)
      continue;
    moments[i].run();
    await_copy();
    printf("%d %d\n", atomic_load(&taken), atomic_load(&busy));
    return 0;
  }
  fprintf(stderr, "heap_moments: no moment '%s'\n", argv[1]);
  return 2;
}
