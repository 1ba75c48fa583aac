/*
** Programs that can be joined only later, or never. Usage: join_faulty MODE, in a
** folder where the file "go" ends what is in the way. SIGTERM ends it with 0.
**   wedged        a thread holds malloc's lock; the other one waits in epoll_wait()
**   wedged_all    likewise, and the other one waits for the lock
**   wedges        as wedged, once there is a file "wedge"
**   vfork         the only thread waits for a child of vfork()
**   nproc         it may make no thread more (as root: as user 65534)
**   container     all threads are in a sandbox that lets some calls fail
**   sandbox       a thread runs Lua in a sandbox, which ends the program for
**                 most system calls; the other one waits
**   tracer TID    traces that thread, as a debugger does that has not stopped it
** malloc() is that of libc, behind a lock.
*/
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua.h"
#include "test/support/check.h"
#include "test/support/host_vm.h"

/* -- An allocator with a lock ---------------------------------------------- */
#ifdef __GLIBC__
#pragma GCC visibility push(default)
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *block);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool locks;
enum { HOLD_BYTES = 7919 }; /* who wants so many keeps the lock until "go" */

static void lock_take(size_t bytes)
{
  if (bytes != HOLD_BYTES && !locks)
    return;
  pthread_mutex_lock(&lock);
  while (bytes == HOLD_BYTES && access("go", F_OK)) {
    locks = true;
    sched_yield();
  }
  locks = false;
  pthread_mutex_unlock(&lock);
}

void *malloc(size_t bytes)
{
  lock_take(bytes);
  return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
  lock_take(0);
  return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
  lock_take(0);
  return __libc_realloc(block, bytes);
}

void *memalign(size_t align, size_t bytes)
{
  lock_take(0);
  return __libc_memalign(align, bytes);
}

void free(void *block)
{
  __libc_free(block);
}
#pragma GCC visibility pop
#else
static bool locks = true;
enum { HOLD_BYTES = 1 };
#endif

/* -- Modes ----------------------------------------------------------------- */
static void on_end(int number)
{
  (void)number;
  _exit(0);
}

static void *hold_lock(void *unused)
{
  /* Not inlined: the stack shows that the thread is in malloc(). */
  void *(*volatile take)(size_t) = malloc;
  free(take(HOLD_BYTES));
  return unused;
}

static void wait_for_ever(void)
{
  struct epoll_event event;
  int fd = epoll_create1(EPOLL_CLOEXEC);
  CHECK(epoll_wait(fd, &event, 1, -1) >= 0);
}

static void *wedge_later(void *unused)
{
  while (access("wedge", F_OK))
    usleep(1000);
  return hold_lock(unused);
}

static void wedge(bool all)
{
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, hold_lock, NULL));
  while (!locks)
    usleep(1000);
  printf("stuck\n");
  fflush(stdout);
  if (all) {
    void *(*volatile take)(size_t) = malloc;
    free(take(1));
  }
}

static void wait_for_child(void)
{
  int status = 0;
  printf("stuck\n");
  fflush(stdout);
  pid_t child = vfork();
  if (child == 0) {
    while (access("go", F_OK))
      usleep(1000);
    _exit(7);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void limit_threads(void)
{
  const uid_t nobody = 65534;
  const struct rlimit none = {1, 1};
  CHECK(!setrlimit(RLIMIT_NPROC, &none));
  if (geteuid() == 0)
    CHECK(!setresuid(nobody, nobody, nobody));
}

/* What the collector, the trace compiler and the end of a program need. */
static void enter_sandbox(void)
{
  static const int calls[] = {SYS_mmap,  SYS_munmap,       SYS_mremap,
                              SYS_brk,   SYS_madvise,      SYS_mprotect,
                              SYS_futex, SYS_rt_sigreturn, SYS_exit_group};
  enum { CALLS = sizeof calls / sizeof *calls };
  struct sock_filter code[2 + 2 * CALLS];
  struct sock_fprog filter = {0, code};
  code[filter.len++] = (struct sock_filter)BPF_STMT(
      BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < CALLS; i++) {
    code[filter.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                      (unsigned)calls[i], 0, 1);
    code[filter.len++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  code[filter.len++] =
      (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
        !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

static void *run_in_sandbox(void *unused)
{
  lua_State *L = new_vm();
  enter_sandbox();
  run(L, "while true do local t = {tostring(os)} end");
  return unused;
}

static void run_sandboxed(void)
{
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, run_in_sandbox, NULL));
  usleep(100000);
  printf("stuck\n");
  fflush(stdout);
}

/* What containers do: some calls fail, and programs of another machine end. */
static void enter_container(void)
{
  static const int calls[] = {SYS_perf_event_open, SYS_ptrace, SYS_keyctl,
                              SYS_userfaultfd, SYS_bpf};
  enum { CALLS = sizeof calls / sizeof *calls };
  struct sock_filter code[6 + 2 * CALLS] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  struct sock_fprog filter = {4, code};
  for (int i = 0; i < CALLS; i++) {
    code[filter.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                      (unsigned)calls[i], 0, 1);
    code[filter.len++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1);
  }
  code[filter.len++] =
      (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
        !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

static void *work_in_container(void *unused)
{
  lua_State *L = new_vm();
  run(L, "while true do local t = {tostring(os)} end");
  return unused;
}

static int trace(const char *thread)
{
  pid_t tid = (pid_t)atol(thread);
  int status;
  CHECK(!ptrace(PTRACE_SEIZE, tid, NULL, NULL));
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    pid_t stopped = waitpid(-1, &status, __WALL);
    if (stopped < 0 || !WIFSTOPPED(status))
      return 0;
    ptrace(PTRACE_CONT, stopped, NULL, NULL);
  }
}

int main(int argc, char **argv)
{
  CHECK(argc >= 2 && signal(SIGTERM, on_end) != SIG_ERR);
  if (strcmp(argv[1], "tracer") == 0 && argc == 3)
    return trace(argv[2]);
  if (strcmp(argv[1], "container") == 0)
    enter_container();
  new_vm();
  printf("ready\n");
  fflush(stdout);
  pthread_t thread;
  if (strcmp(argv[1], "wedges") == 0)
    CHECK(!pthread_create(&thread, NULL, wedge_later, NULL));
  if (strncmp(argv[1], "wedged", 6) == 0)
    wedge(strcmp(argv[1], "wedged_all") == 0);
  if (strcmp(argv[1], "vfork") == 0)
    wait_for_child();
  if (strcmp(argv[1], "nproc") == 0)
    limit_threads();
  if (strcmp(argv[1], "sandbox") == 0)
    run_sandboxed();
  if (strcmp(argv[1], "container") == 0)
    CHECK(!pthread_create(&thread, NULL, work_in_container, NULL));
  wait_for_ever();
  return 0;
}
