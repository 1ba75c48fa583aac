/*
** A host program that uses the CPU profiler through its C interface and with
** threads. Usage: sysprof_host CASE OUTPUT; prints what the shell test checks.
**   threads    two VMs in two threads, and a third thread without Lua
**   short      threads that live for about 30 ms
**   moving     one VM that moves from thread to thread
**   conflict   the host has handlers of its own for the default signals
**   reset      the host resets all signals, then takes ours for itself
**   starved    the host resets the signal of a thread that hardly gets a CPU
**   sleeps     no sleep is cut short, at 4 kHz, nor by posix
**   other      a VM that did not start the session tries to stop it
**   close      lua_close() of the VM that started the session ends it
**   writer     a writer callback and on_stop; wrong calls
**   backtracer libunwind as the host's backtracer
**   slow       a backtracer that takes longer than the writer's rounds
*/
#define UNW_LOCAL_ONLY
#include <errno.h>
#include <libunwind.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "lmisclib.h"
#include "test/support/check.h"
#include "test/support/host_vm.h"

static const char *output;

static void start(lua_State *L, const char *options)
{
  start_session(L, output, options);
}

#define SPIN(name, seconds)                                                    \
  "jit.off() local x = 0 local function " name "(n) for i = 1, n do "          \
  "x = x + i % 3 end end local t0 = os.clock() "                               \
  "while os.clock() - t0 < " seconds " do " name "(10000) end"

/* os.clock() is the time of the process: with two threads it runs twice as
** fast. */
static void *second_vm(void *arg)
{
  lua_State *L = new_vm();
  (void)arg;
  pthread_setname_np(pthread_self(), "second");
  run(L, SPIN("in_second", "1.2"));
  lua_close(L);
  return NULL;
}

static _Atomic bool enough;

static void *no_lua(void *arg)
{
  volatile unsigned n = 0;
  (void)arg;
  pthread_setname_np(pthread_self(), "nolua");
  while (!atomic_load(&enough))
    n++;
  return NULL;
}

static int threads(void)
{
  pthread_t second, third;
  lua_State *L = new_vm();
  start(L, "interval=1");
  CHECK(!pthread_create(&second, NULL, second_vm, NULL));
  CHECK(!pthread_create(&third, NULL, no_lua, NULL));
  run(L, SPIN("in_first", "1.2"));
  pthread_join(second, NULL);
  atomic_store(&enough, true);
  pthread_join(third, NULL);
  run(L, "assert(misc.sysprof.report().outside > 0) "
         "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

/* Threads that live for less than a round of the writer: 23 with a VM and 23
** without Lua, each for about 30 ms. */
static void *short_vm(void *arg)
{
  lua_State *L = new_vm();
  (void)arg;
  run(L, "jit.off() local x = 0 local function in_short(n) for i = 1, n do "
         "x = x + i % 3 end end local t0 = os.clock() "
         "while os.clock() - t0 < 0.03 do in_short(10000) end");
  lua_close(L);
  return NULL;
}

static void *short_c(void *arg)
{
  struct timespec used = {0, 0};
  while (used.tv_nsec < 30000000)
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return arg;
}

static int short_lived(void)
{
  lua_State *L = new_vm();
  pthread_t thread;
  start(L, "interval=1, flush=10000");
  for (int i = 0; i < 46; i++) {
    CHECK(!pthread_create(&thread, NULL, i % 2 ? short_c : short_vm, NULL));
    pthread_join(thread, NULL);
  }
  run(L, "local r = misc.sysprof.report() assert(misc.sysprof.stop()) "
         "local s = misc.sysprof.report() "
         "for _, v in ipairs{r.unsampled_seconds, s.unsampled_seconds} do "
         "assert(v > 0.3 and v < 1.2, v) end "
         "assert(r.mean_interval > 0.5, r.mean_interval)");
  lua_close(L);
  return 0;
}

static void *carry(void *arg)
{
  run(arg, SPIN("in_moved", "0.5"));
  return NULL;
}

static int moving(void)
{
  lua_State *L = new_vm();
  pthread_t carrier;
  start(L, "interval=1, flush=20");
  run(L, SPIN("in_main", "0.3"));
  CHECK(!pthread_create(&carrier, NULL, carry, L));
  pthread_join(carrier, NULL);
  run(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

static _Atomic int host_signals;

static void host_handler(int number)
{
  (void)number;
  host_signals++;
}

static int conflict(void)
{
  lua_State *L = new_vm();
  signal(SIGURG, host_handler);
  start(L, "interval=1");
  run(L, "assert(misc.sysprof.status().signal == 28) "
         "assert(misc.sysprof.stop())");
  signal(SIGWINCH, host_handler);
  run(L, "local ok, message, errno = misc.sysprof.start{path='none'}"
         "assert(not ok and errno == 16, message) "
         "assert(message:find('SIGURG') and message:find('signal='), message)");
  CHECK(access("none", F_OK) != 0);
  raise(SIGURG);
  CHECK(host_signals == 1);
  start(L, "signal='USR2'");
  run(L, SPIN("busy", "0.2"));
  raise(SIGURG);
  CHECK(host_signals == 2);
  raise(SIGUSR2); /* not from our timers: no sample, and no death */
  run(L, "assert(misc.sysprof.report().samples > 50) "
         "assert(misc.sysprof.stop())");
  raise(SIGUSR2); /* the same after the end */
  lua_close(L);
  return 0;
}

/* Works until there are samples of the function that were taken after now. That
** takes a tenth of a second, and so does not wait for a flush (10 s here). */
#define UNTIL_SAMPLED                                                          \
  "local n, t0 = misc.sysprof.report().samples, os.clock() "                   \
  "repeat busy(10000) until misc.sysprof.report().samples > n + 10 "           \
  "assert(os.clock() - t0 < 8, os.clock() - t0)"

static int reset(void)
{
  static const char *const timers[] = {"auto", "posix"};
  lua_State *L = new_vm();
  run(L, "jit.off() function busy(n) local x = 0 "
         "for i = 1, n do x = x + i % 3 end end");
  for (size_t t = 0; t < sizeof timers / sizeof *timers; t++) {
    char options[64];
    snprintf(options, sizeof options, "timer='%s', flush=10000", timers[t]);
    start(L, options);
    run(L, UNTIL_SAMPLED);
    for (int i = 1; i < 32; i++)
      signal(i, SIG_DFL);
    run(L, UNTIL_SAMPLED);
    signal(SIGURG, SIG_IGN);
    run(L, UNTIL_SAMPLED);
    run(L, "assert(misc.sysprof.stop())");
  }
  start(L, "flush=10000");
  host_signals = 0;
  signal(SIGURG, host_handler);
  run(L, "local t0 = os.clock() "
         "repeat busy(10000) until misc.sysprof.status().threads == 0 "
         "assert(os.clock() - t0 < 8, os.clock() - t0) "
         "assert(misc.sysprof.stop())");
  raise(SIGURG);
  CHECK(host_signals > 0);
  lua_close(L);
  return 0;
}

static void pin(void)
{
  cpu_set_t all, one;
  int cpu = 0;
  CHECK(!sched_getaffinity(0, sizeof all, &all));
  while (!CPU_ISSET(cpu, &all))
    cpu++;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  CHECK(!sched_setaffinity(0, sizeof one, &one));
}

/* A process that works on the CPU of this thread until it is ended. */
static pid_t rival(void)
{
  pid_t pid = fork();
  if (pid)
    return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin();
  for (volatile unsigned n = 0;;)
    n++;
}

/* Nearly always when the writer looks, this thread waits for its CPU, so the
** writer cannot tell whether the thread takes the signal. The next regular
** round comes ten seconds later. In the time of four the thread uses more than a
** second of its CPU. */
static int starved(void)
{
  lua_State *L = new_vm();
  pid_t pid = rival();
  CHECK(pid > 0);
  run(L, "jit.off() function busy(n) local x = 0 "
         "for i = 1, n do x = x + i % 3 end end");
  start(L, "interval=1, flush=10000");
  run(L, UNTIL_SAMPLED);
  pin();
  CHECK(!setpriority(PRIO_PROCESS, 0, 15));
  for (int i = 0; i < 4; i++) {
    signal(SIGURG, SIG_DFL);
    run(L, "local n = misc.sysprof.report().samples "
           "repeat busy(10000) until misc.sysprof.report().samples > n "
           "assert(os.clock() < 0.8, os.clock())");
  }
  run(L, "assert(misc.sysprof.stop())");
  kill(pid, SIGKILL);
  CHECK(waitpid(pid, NULL, 0) == pid);
  lua_close(L);
  return 0;
}

/* Sleeps and works in turn, so that periods end while the thread falls asleep.
** How many sleeps were cut short. */
static int short_sleeps(void)
{
  struct timespec ms = {0, 1000000};
  volatile unsigned n = 0;
  int cut_short = 0;
  for (int i = 0; i < 211; i++) {
    for (int k = 0; k < 200000; k++)
      n++;
    cut_short += nanosleep(&ms, NULL) != 0;
  }
  return cut_short;
}

static int sleeps(void)
{
  lua_State *L = new_vm();
  start(L, "interval=0.25, timer='posix'");
  CHECK(short_sleeps() == 0);
  run(L, "assert(misc.sysprof.status().timer == 'posix')"
         "assert(misc.sysprof.stop())");
  start(L, "interval=0.25");
  CHECK(short_sleeps() == 0);
  run(L, "assert(misc.sysprof.stop())");
  /* The program takes signals now: posix gives way. */
  start(L, "timer='posix'");
  signal(SIGUSR1, host_handler);
  run(L, "repeat for i = 1, 100000 do end "
         "until misc.sysprof.status().timer == 'tick' "
         "assert(misc.sysprof.stop())");
  start(L, "timer='posix'");
  CHECK(short_sleeps() == 0);
  run(L, "assert(misc.sysprof.status().timer == 'tick') "
         "assert(misc.sysprof.stop())");
  signal(SIGUSR1, SIG_DFL);
  lua_close(L);
  return 0;
}

static int other(void)
{
  lua_State *L = new_vm(), *M = new_vm();
  start(L, "interval=1");
  run(M, "local ok, message, errno = misc.sysprof.stop() "
         "assert(not ok and errno == 1, message) "
         "assert(message:find('started by another VM'), message)");
  errno = 0;
  CHECK(luaM_sysprof_stop(M) == PROFILE_ERRUSE && errno == EPERM);
  lua_close(M);
  run(L, "assert(misc.sysprof.status().state == 'running') "
         "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

static int close_vm(void)
{
  lua_State *L = new_vm(), *M = new_vm();
  start(L, "interval=1");
  run(L, SPIN("busy", "0.2"));
  lua_close(L);
  run(M, "assert(misc.sysprof.status().state == 'stopped') "
         "assert(misc.sysprof.report().samples > 50)");
  lua_close(M);
  return 0;
}

/* -- The C interface ------------------------------------------------------- */
static FILE *file;
static _Atomic int stops, calls;
static int context;

static size_t writer(const void **data, size_t len, void *ctx)
{
  CHECK(ctx == &context);
  calls++;
  return fwrite(*data, 1, len, file);
}

static int on_stop(void *ctx, uint8_t *buf)
{
  CHECK(ctx == &context && !buf);
  stops++;
  return fclose(file);
}

static void begin(lua_State *L, uint8_t mode)
{
  const struct luam_Sysprof_Options options = {
      .mode = mode, .interval = 1, .ctx = &context};
  file = fopen(output, "wb");
  CHECK(file);
  CHECK(luaM_sysprof_set_writer(writer) == PROFILE_SUCCESS);
  CHECK(luaM_sysprof_set_on_stop(on_stop) == PROFILE_SUCCESS);
  CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
}

/* least: the number of samples to be exceeded. */
static void end(lua_State *L, uint64_t least)
{
  struct luam_Sysprof_Counters c;
  run(L, SPIN("c_started", "0.4"));
  CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
  CHECK(stops == 1 && calls > 0);
  CHECK(luaM_sysprof_report(&c) == PROFILE_SUCCESS);
  CHECK(c.samples > least && c.vmst_lfunc > c.samples / 2);
  lua_close(L);
  CHECK(stops == 1);
}

static int writers(void)
{
  lua_State *L = new_vm();
  struct luam_Sysprof_Options options = {
      .mode = LUAM_SYSPROF_CALLGRAPH, .interval = 1, .ctx = &context};
  errno = 0;
  CHECK(luaM_sysprof_start(L, &options) == PROFILE_ERRUSE && errno == EINVAL);
  CHECK(luaM_sysprof_set_writer(NULL) == PROFILE_ERRUSE);
  CHECK(luaM_sysprof_set_on_stop(NULL) == PROFILE_ERRUSE);
  CHECK(luaM_sysprof_report(NULL) == PROFILE_ERRUSE);
  CHECK(luaM_sysprof_stop(L) == PROFILE_ERRRUN);
  CHECK(luaM_sysprof_start(L, NULL) == PROFILE_ERRUSE);
  CHECK(luaM_sysprof_start(NULL, &options) == PROFILE_ERRUSE);
  options.mode = 3;
  CHECK(luaM_sysprof_start(L, &options) == PROFILE_ERRUSE);
  options.mode = LUAM_SYSPROF_DEFAULT;
  options.interval = 0;
  CHECK(luaM_sysprof_start(L, &options) == PROFILE_ERRUSE);
  begin(L, LUAM_SYSPROF_CALLGRAPH);
  options.interval = 1;
  errno = 0;
  CHECK(luaM_sysprof_start(L, &options) == PROFILE_ERRRUN && errno == EBUSY);
  end(L, 150);
  return 0;
}

static _Atomic int walks;

static void libunwind_walk(void *(*frame_writer)(int frame_no, void *addr))
{
  unw_context_t uc;
  unw_cursor_t cursor;
  int n = 0;
  walks++;
  unw_getcontext(&uc);
  unw_init_local(&cursor, &uc);
  do {
    unw_word_t ip;
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    if (!frame_writer(n++, (void *)ip))
      break;
  } while (unw_step(&cursor) > 0 && n < 64);
}

static int backtracer(void)
{
  lua_State *L = new_vm();
  CHECK(luaM_sysprof_set_backtracer(libunwind_walk) == PROFILE_SUCCESS);
  begin(L, LUAM_SYSPROF_CALLGRAPH);
  end(L, 150);
  CHECK(walks > 150);
  CHECK(luaM_sysprof_set_backtracer(NULL) == PROFILE_SUCCESS);
  return 0;
}

/* The first two calls take longer than the writer waits between rounds. */
static void slow_walk(void *(*frame_writer)(int frame_no, void *addr))
{
  struct timespec began, now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
  for (now = began;
       walks < 2 && (now.tv_sec - began.tv_sec) * 1000 +
                            (now.tv_nsec - began.tv_nsec) / 1000000 <
                        600;)
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  walks++;
  frame_writer(0, (void *)(uintptr_t)slow_walk);
}

/* The kernel blocks the signal while its handler runs. */
static int slow(void)
{
  lua_State *L = new_vm();
  CHECK(luaM_sysprof_set_backtracer(slow_walk) == PROFILE_SUCCESS);
  begin(L, LUAM_SYSPROF_CALLGRAPH);
  run(L, SPIN("in_slow", "1.5"));
  end(L, 15); /* the interval grows up to 16 times, for so slow a handler */
  CHECK(luaM_sysprof_set_backtracer(NULL) == PROFILE_SUCCESS);
  return 0;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*run)(void);
  } cases[] = {{"threads", threads},       {"moving", moving},
               {"short", short_lived},     {"conflict", conflict},
               {"sleeps", sleeps},         {"reset", reset},
               {"starved", starved},       {"other", other},
               {"close", close_vm},        {"writer", writers},
               {"backtracer", backtracer}, {"slow", slow}};
  if (argc != 3)
    return 2;
  output = argv[2];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0)
      return cases[i].run();
  return 2;
}
