/*
** What a session must not do to the program: harmless_host MODE FILE.
**
** hang     a host's backtracer does not return while the session is stopped, nor
**          in the next one, and goes on at last; writes FILE.1 and FILE.2
** ignored  signals that the program ignores end no wait, in a session and after it
** starts   threads start and stop sessions of the C interface at the same time
** late     a thread takes its signal when its sampler is another thread's already
** cancel   a thread that ends its session is to be cancelled
** queue    a thread blocks a real-time signal for long, with few places in the queue
*/
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lmisclib.h"
#include "lualib.h"

static void need(bool okay, const char *what)
{
  if (okay)
    return;
  fprintf(stderr, "%s\n", what);
  exit(2);
}

static lua_State *vm(void)
{
  lua_State *L = luaL_newstate();
  need(L != NULL, "no VM");
  luaL_openlibs(L);
  return L;
}

static void run(lua_State *L, const char *code)
{
  if (luaL_dostring(L, code)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(2);
  }
}

/* Works in Lua for so much CPU time of the process. */
static void work(lua_State *L, double seconds)
{
  lua_pushnumber(L, seconds);
  lua_setglobal(L, "seconds");
  run(L, "local past = os.clock() + seconds repeat until os.clock() > past");
}

static void nap(long ms)
{
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&time, &time) && errno == EINTR)
    ;
}

/* -- hang, starts ---------------------------------------------------------- */
static _Atomic int step;
static _Atomic bool holds, held, stop;
static _Atomic pid_t holding;

static void backtrace_and_hang(void *(*write)(int frame, void *address))
{
  write(0, (void *)(uintptr_t)work);
  if (gettid() != atomic_load(&holding))
    return;
  while (atomic_load(&holds)) {
    atomic_store(&held, true);
    nap(1);
  }
}

static size_t into_file(const void **data, size_t len, void *file)
{
  return fwrite(*data, 1, len, file);
}

static int never_mind(void *ctx, uint8_t *buf)
{
  (void)ctx;
  (void)buf;
  return 0;
}

static void *works_on(void *unused)
{
  lua_State *L = vm();
  atomic_store(&holding, gettid());
  while (!atomic_load(&stop))
    work(L, 0.01);
  lua_close(L);
  return unused;
}

static int hang(const char *path)
{
  char name[2][512];
  FILE *file[2];
  pthread_t thread;
  struct luam_Sysprof_Options options = {.mode = LUAM_SYSPROF_CALLGRAPH,
                                         .interval = 1};
  lua_State *L = vm();
  for (int i = 0; i < 2; i++) {
    snprintf(name[i], sizeof name[i], "%s.%d", path, i + 1);
    need((file[i] = fopen(name[i], "w")) != NULL, "no file");
  }
  luaM_sysprof_set_writer(into_file);
  luaM_sysprof_set_on_stop(never_mind);
  luaM_sysprof_set_backtracer(backtrace_and_hang);
  atomic_store(&holds, true);
  need(!pthread_create(&thread, NULL, works_on, NULL), "no thread");
  options.ctx = file[0];
  need(!luaM_sysprof_start(L, &options), "the first session does not start");
  while (!atomic_load(&held))
    nap(1);
  luaM_sysprof_stop(L);
  luaM_sysprof_set_backtracer(NULL);
  options.ctx = file[1];
  need(!luaM_sysprof_start(L, &options), "the second session does not start");
  work(L, 0.2);
  atomic_store(&holds, false); /* the handler returns in the wrong session */
  work(L, 0.4);
  need(!luaM_sysprof_stop(L), "the second session does not end well");
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
  lua_close(L);
  need(!fclose(file[0]) && !fclose(file[1]), "the files do not close");
  return 0;
}

struct starter {
  int sessions, ended, wrong;
  bool open;
};

static size_t starter_write(const void **data, size_t len, void *ctx)
{
  struct starter *me = ctx;
  (void)data;
  me->wrong += !me->open;
  return len;
}

static int starter_stopped(void *ctx, uint8_t *buf)
{
  struct starter *me = ctx;
  (void)buf;
  me->ended++;
  me->wrong += !me->open;
  me->open = false;
  return 0;
}

static void *starts(void *ctx)
{
  struct starter *me = ctx;
  lua_State *L = vm();
  struct luam_Memprof_Options options = {
      .ctx = ctx, .writer = starter_write, .on_stop = starter_stopped};
  for (int i = 0; i < 4000 || me->sessions < 20; i++) {
    me->open = true; /* the writer may be called before start returns */
    if (luaM_memprof_start(L, &options)) {
      me->open = false;
      continue;
    }
    me->sessions++;
    need(!luaM_memprof_stop(L), "a session does not end well");
  }
  lua_close(L);
  return NULL;
}

static int start_together(void)
{
  enum { THREADS = 3 };
  static struct starter starters[THREADS];
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    need(!pthread_create(&threads[i], NULL, starts, &starters[i]), "no thread");
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    if (starters[i].wrong || starters[i].sessions != starters[i].ended) {
      fprintf(stderr, "%d sessions, %d ended, %d calls for others\n",
              starters[i].sessions, starters[i].ended, starters[i].wrong);
      return 1;
    }
  }
  return 0;
}

/* -- ignored --------------------------------------------------------------- */
static _Atomic int interrupted;

static void *waits(void *unused)
{
  struct timespec time = {0, 1000000};
  while (!atomic_load(&stop))
    if (nanosleep(&time, NULL))
      atomic_fetch_add(&interrupted, 1);
  return unused;
}

static int send_ignored(const char *when, pthread_t thread)
{
  atomic_store(&interrupted, 0);
  for (int i = 0; i < 300; i++) {
    pthread_kill(thread, SIGURG);
    nap(1);
  }
  if (!atomic_load(&interrupted))
    return 0;
  fprintf(stderr, "%s: %d waits ended\n", when, atomic_load(&interrupted));
  return 1;
}

static int ignored(const char *path)
{
  pthread_t thread;
  lua_State *L = vm();
  lua_pushstring(L, path);
  lua_setglobal(L, "file");
  need(!pthread_create(&thread, NULL, waits, NULL), "no thread");
  int bad = send_ignored("before", thread);
  run(L, "assert(misc.sysprof.start({path = file, signal = 'URG'}))");
  bad |= send_ignored("in the session", thread);
  run(L, "assert(misc.sysprof.stop())");
  bad |= send_ignored("after the session", thread);
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
  lua_close(L);
  return bad;
}

/* -- cancel ---------------------------------------------------------------- */
static void *is_cancelled(void *file)
{
  lua_State *L = vm();
  lua_pushstring(L, file);
  lua_setglobal(L, "file");
  run(L, "assert(misc.sysprof.start({path = file, jitdump = true}))");
  work(L, 0.1);
  pthread_cancel(pthread_self());
  run(L, "local x = 0 for i = 1, 1000 do x = x + i % 7 end " /* a trace */
         "assert(misc.sysprof.stop())");
  lua_close(L);
  atomic_store(&step, 1);
  pthread_testcancel();
  return NULL;
}

static int cancel(char *file)
{
  pthread_t thread;
  void *result;
  alarm(60);
  need(!pthread_create(&thread, NULL, is_cancelled, file), "no thread");
  pthread_join(thread, &result);
  need(result == PTHREAD_CANCELED, "the thread is not cancelled");
  need(atomic_load(&step), "the thread is cancelled in the profiler");
  lua_State *L = vm();
  run(L, "assert(not misc.sysprof.status().running)");
  lua_close(L);
  return 0;
}

/* -- late, queue ----------------------------------------------------------- */
static void until(int wanted)
{
  while (atomic_load(&step) < wanted)
    nap(1);
}

static double thread_seconds(void)
{
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *blocks(void *number)
{
  sigset_t set;
  lua_State *L = vm();
  sigemptyset(&set);
  sigaddset(&set, *(int *)number);
  while (thread_seconds() < 0.3)
    work(L, 0.01);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  while (thread_seconds() < 2) /* until it is no longer sampled */
    work(L, 0.01);
  atomic_store(&step, 1);
  until(2);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* the late signal comes */
  atomic_store(&step, 3);
  lua_close(L);
  return NULL;
}

static void *comes_later(void *unused)
{
  lua_State *L = vm();
  for (int i = 0; i < 20; i++)
    work(L, 0.01);
  atomic_store(&step, 2);
  until(3);
  while (thread_seconds() < 0.6)
    work(L, 0.01);
  lua_close(L);
  return unused;
}

static int late(const char *path, const char *options, int number)
{
  pthread_t first, second;
  lua_State *L = vm();
  lua_pushstring(L, path);
  lua_setglobal(L, "file");
  run(L, options);
  need(!pthread_create(&first, NULL, blocks, &number), "no thread");
  pthread_setname_np(first, "first");
  until(1);
  need(!pthread_create(&second, NULL, comes_later, NULL), "no thread");
  pthread_setname_np(second, "second");
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  run(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

int main(int argc, char **argv)
{
  struct rlimit few = {50, 50};
  need(argc == 3, "usage: harmless_host MODE FILE");
  if (!strcmp(argv[1], "hang"))
    return hang(argv[2]);
  if (!strcmp(argv[1], "ignored"))
    return ignored(argv[2]);
  if (!strcmp(argv[1], "starts"))
    return start_together();
  if (!strcmp(argv[1], "cancel"))
    return cancel(argv[2]);
  if (!strcmp(argv[1], "late"))
    return late(argv[2], "assert(misc.sysprof.start({path = file}))", SIGURG);
  if (!strcmp(argv[1], "queue") && !setrlimit(RLIMIT_SIGPENDING, &few))
    return late(argv[2],
                "assert(misc.sysprof.start({path = file, signal = 'RTMIN+5'}))",
                SIGRTMIN + 5);
  need(false, "unknown mode");
}
