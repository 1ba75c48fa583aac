/*
** A host program whose threads can have some timers and not others. Usage:
** timer_host CASE OUTPUT; prints what the shell test checks, or ends with 77
** if this machine does not permit the case.
**   waits        perf is refused: waiting calls must last as long as they should
**   root         drops root, then starts threads
**   descriptors  has no descriptor left when a thread starts
**   nothing      drops root, and may have no timers at all
**   sigwait      a thread takes all signals by sigwait(), and the user has so many
**                groups that they fill the first pages of status files
**   closed       the host closes the event and opens a file by its number
**   steady       no descriptor is left, and no thread comes or goes
**   no_list      /proc is out of reach
**   ended        a thread that is looked at and never sampled ends
*/
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "test/support/check.h"
#include "test/support/host_vm.h"
#include "test/support/refuse_perf.h"

static const char *output;

static void start_with(lua_State *L, const char *options)
{
  start_session(L, output, options);
}

static void start(lua_State *L)
{
  start_with(L, "flush=20");
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

/* -- A thread that ends ---------------------------------------------------- */
/* Works for 0.1 s of CPU time, and until the stream has grown twice: a round of
** the writer has looked at the thread in between. */
static void *work_until_seen(void *argument)
{
  lua_State *L = new_vm();
  struct timespec used = {0, 0};
  struct stat now, before;
  int grown = 0;
  CHECK(!stat(output, &before));
  while (grown < 2 || (used.tv_sec == 0 && used.tv_nsec < 100000000)) {
    run(L, "local x = 0 for i = 1, 100000 do x = x + i % 3 end");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    CHECK(!stat(output, &now) && used.tv_sec < 60);
    grown += now.st_size > before.st_size;
    before = now;
  }
  lua_close(L);
  return argument;
}

/* No sample is taken within the interval, nor at the end of the thread. */
static int ended(void)
{
  pthread_t thread;
  lua_State *L = new_vm();
  start_with(L, "flush=20, interval=60000");
  CHECK(!pthread_create(&thread, NULL, work_until_seen, NULL));
  pthread_join(thread, NULL);
  run(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

/* -- Waits ----------------------------------------------------------------- */
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
  if (!refuse_perf())
    exit(77);
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
    run(L, "work(30000)");
    CHECK(how[i % 4](50) == 0);
  }
  run(L, "repeat work(20000) until misc.sysprof.report().samples > 5 "
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
  CHECK(!setgid(65534) && !setuid(65534));
  CHECK(!setrlimit(RLIMIT_SIGPENDING, &none));
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

/* -- Signals --------------------------------------------------------------- */
static sigset_t all_signals;
static sem_t taken;

/* Works for 5 ms at each SIGUSR1. */
static void *take_signals(void *argument)
{
  pthread_setname_np(pthread_self(), "taker");
  for (;;) {
    int got = 0;
    struct timespec begin, now;
    CHECK(!sigwait(&all_signals, &got));
    if (got == SIGTERM)
      return argument;
    CHECK(got == SIGUSR1);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec -
               begin.tv_nsec <
           5000000);
    sem_post(&taken);
  }
}

static int sigwait_thread(void)
{
  lua_State *L = new_vm();
  gid_t groups[1009];
  pthread_t thread;
  sigset_t before;
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    groups[i] = 1000000000 + (gid_t)i;
  if (setgroups(sizeof groups / sizeof *groups, groups))
    fprintf(stderr, "no groups of its own\n");
  sem_init(&taken, 0, 0);
  sigfillset(&all_signals);
  pthread_sigmask(SIG_SETMASK, &all_signals, &before);
  CHECK(!pthread_create(&thread, NULL, take_signals, NULL));
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  start_with(L, "flush=10");
  run(L, "function work() local x = 0 for i = 1, 100000 do x = x + i % 3 end "
         "end");
  for (int i = 0; i < 61; i++) {
    run(L, "work()");
    pthread_kill(thread, SIGUSR1);
    while (sem_wait(&taken))
      ;
  }
  pthread_kill(thread, SIGTERM);
  pthread_join(thread, NULL);
  run(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

/* -- Descriptors and files ------------------------------------------------- */
/* Replaces the perf event's file by another one; returns the descriptor. */
static int replace_event(void)
{
  char name[300], link[64];
  int found = -1;
  DIR *dir = opendir("/proc/self/fd");
  CHECK(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    snprintf(name, sizeof name, "/proc/self/fd/%s", e->d_name);
    ssize_t n = readlink(name, link, sizeof link - 1);
    link[n > 0 ? n : 0] = 0;
    if (strcmp(link, "anon_inode:[perf_event]") == 0)
      found = atoi(e->d_name);
  }
  closedir(dir);
  if (found < 0)
    exit(77);
  int file = open("/dev/null", O_WRONLY);
  CHECK(file >= 0 && dup2(file, found) == found && !close(file));
  return found;
}

static int closed(void)
{
  lua_State *L = new_vm();
  int status = 0;
  start_with(L, "flush=10000");
  int descriptor = replace_event();
  pid_t child = fork();
  CHECK(child >= 0);
  if (!child)
    _exit(fcntl(descriptor, F_GETFD) < 0);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  run(L, "assert(misc.sysprof.stop())");
  CHECK(fcntl(descriptor, F_GETFD) == 0);
  start(L);
  CHECK(replace_event() != descriptor);
  run(L, "local t0, n, x = os.clock(), misc.sysprof.report().samples, 0 "
         "repeat for i = 1, 10000 do x = x + i % 3 end "
         "assert(os.clock() - t0 < 20, 'no samples any more') "
         "until misc.sysprof.report().samples > n + 20 "
         "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

/* Works until the stream has grown that many times. */
static void work_for_rounds(int rounds)
{
  struct stat now;
  time_t began = time(NULL);
  for (off_t size = 0; rounds > 0;) {
    CHECK(!stat(output, &now) && time(NULL) - began < 60);
    rounds -= now.st_size > size;
    size = now.st_size;
  }
}

/* No descriptor is left while the writer works, and no thread comes or goes.
** One thread blocks all signals and waits. */
static int steady(void)
{
  lua_State *L = new_vm();
  pthread_t thread;
  sigset_t before;
  struct rlimit few;
  sigfillset(&all_signals);
  pthread_sigmask(SIG_SETMASK, &all_signals, &before);
  CHECK(!pthread_create(&thread, NULL, take_signals, NULL));
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  start_with(L, "flush=10");
  work_for_rounds(3);
  CHECK(!getrlimit(RLIMIT_NOFILE, &few));
  few.rlim_cur = 3; /* lower than what is open */
  CHECK(!setrlimit(RLIMIT_NOFILE, &few));
  work_for_rounds(20);
  few.rlim_cur = few.rlim_max;
  CHECK(!setrlimit(RLIMIT_NOFILE, &few));
  pthread_kill(thread, SIGTERM);
  pthread_join(thread, NULL);
  run(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return 0;
}

static void *work_in_c(void *argument)
{
  struct timespec used = {0, 0};
  while (used.tv_nsec < 100000000)
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return argument;
}

static int no_list(void)
{
  lua_State *L = new_vm();
  pthread_t thread;
  start(L);
  if (chroot(".") || chdir("/"))
    return 77;
  CHECK(!pthread_create(&thread, NULL, work_in_c, NULL));
  pthread_join(thread, NULL);
  run(L, "local n, x = misc.sysprof.report().samples, 0 "
         "repeat for i = 1, 10000 do x = x + i % 3 end "
         "until misc.sysprof.report().samples > n + 50 "
         "assert(misc.sysprof.stop())");
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
               {"nothing", nothing},
               {"sigwait", sigwait_thread},
               {"closed", closed},
               {"no_list", no_list},
               {"steady", steady},
               {"ended", ended}};
  if (argc != 3)
    return 2;
  output = argv[2];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0)
      return cases[i].run();
  return 2;
}
