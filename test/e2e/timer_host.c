/*
** A host program whose threads can have some timers and not others. Usage:
** timer_host CASE OUTPUT; prints what the shell test checks, or ends with 77
** if this machine does not permit the case.
**   waits        perf is refused: waiting calls must last as long as they should
**   root         drops root, then starts threads
**   descriptors  has no descriptor left when a thread starts
**   nothing      drops root, and may have no timers at all
*/
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "test/support/check.h"

static const char *output;

static lua_State *new_vm(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  return L;
}

static void run(lua_State *L, const char *code)
{
  if (luaL_loadbuffer(L, code, strlen(code), "=host") ||
      lua_pcall(L, 0, 0, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
}

static void start(lua_State *L)
{
  char code[1024];
  snprintf(code, sizeof code, "assert(misc.sysprof.start{path='%s', flush=20})",
           output);
  run(L, code);
}

/* A VM of its own works for 0.2 s of the thread's CPU time. */
static void *work(void *argument)
{
  lua_State *L = new_vm();
  struct timespec used = {0, 0};
  pthread_setname_np(pthread_self(), "worker");
  run(L, "jit.off() function in_worker(n) local x = 0 "
         "for i = 1, n do x = x + i % 3 end end");
  while (used.tv_sec == 0 && used.tv_nsec < 200000000) {
    run(L, "in_worker(10000)");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  }
  lua_close(L);
  return argument;
}

static void work_in_a_thread(void)
{
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, work, NULL));
  pthread_join(thread, NULL);
}

/* -- Waits ----------------------------------------------------------------- */
/* From here on the kernel refuses perf events, as in most containers. */
static void refuse_perf(void)
{
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    exit(77);
}

static int wait_by_usleep(unsigned us)
{
  return usleep(us);
}

static int wait_by_nanosleep(unsigned us)
{
  struct timespec time = {0, (long)us * 1000};
  return nanosleep(&time, NULL);
}

static int wait_by_poll(unsigned us)
{
  struct timespec time = {0, (long)us * 1000};
  return ppoll(NULL, 0, &time, NULL);
}

static int wait_by_semaphore(unsigned us)
{
  struct timespec until;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += (long)us * 1000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  return sem_timedwait(&semaphore, &until) == -1 && errno == ETIMEDOUT ? 0 : -1;
}

/* Long waits, and many short ones between pieces of work, so that ticks fall
** into the system calls. */
static int waits(void)
{
  int (*const how[])(unsigned) = {wait_by_usleep, wait_by_nanosleep,
                                  wait_by_poll, wait_by_semaphore};
  lua_State *L = new_vm();
  refuse_perf();
  start(L);
  run(L, "assert(misc.sysprof.status().timer == 'tick') "
         "function work(n) local x = 0 for i = 1, n do x = x + i % 3 end end");
  for (int i = 0; i < 4; i++) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    CHECK(how[i](100000) == 0);
    clock_gettime(CLOCK_MONOTONIC, &to);
    CHECK((to.tv_sec - from.tv_sec) * 1000 +
              (to.tv_nsec - from.tv_nsec) / 1000000 >=
          99);
  }
  for (int i = 0; i < 1009; i++) {
    run(L, "work(20000)");
    CHECK(how[i % 4](50) == 0);
  }
  run(L, "assert(misc.sysprof.report().samples > 5) "
         "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

/* -- Threads that cannot have a perf event --------------------------------- */
/* Where perf is permitted to root only. */
static void need_root(lua_State *L)
{
  int level = -1;
  FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
  if (f && fscanf(f, "%d", &level) != 1)
    level = -1;
  if (f)
    fclose(f);
  start(L);
  run(L, "perf = misc.sysprof.status().timer == 'perf'");
  lua_getglobal(L, "perf");
  if (getuid() || level < 2 || !lua_toboolean(L, -1))
    exit(77);
}

static int drops_root(void)
{
  lua_State *L = new_vm();
  need_root(L);
  CHECK(!setgid(65534) && !setuid(65534));
  work_in_a_thread();
  run(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

static int nothing(void)
{
  lua_State *L = new_vm();
  struct rlimit none = {0, 0};
  need_root(L);
  CHECK(!setrlimit(RLIMIT_SIGPENDING, &none));
  CHECK(!setgid(65534) && !setuid(65534));
  work_in_a_thread();
  run(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

static int descriptors(void)
{
  lua_State *L = new_vm();
  struct rlimit few;
  start(L);
  run(L, "perf = misc.sysprof.status().timer == 'perf'");
  lua_getglobal(L, "perf");
  if (!lua_toboolean(L, -1))
    return 77;
  CHECK(!getrlimit(RLIMIT_NOFILE, &few));
  few.rlim_cur = 3; /* lower than what is open */
  CHECK(!setrlimit(RLIMIT_NOFILE, &few));
  work_in_a_thread();
  few.rlim_cur = few.rlim_max;
  CHECK(!setrlimit(RLIMIT_NOFILE, &few));
  run(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*run)(void);
  } cases[] = {{"waits", waits},
               {"root", drops_root},
               {"descriptors", descriptors},
               {"nothing", nothing}};
  if (argc != 3)
    return 2;
  output = argv[2];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0)
      return cases[i].run();
  return 2;
}
