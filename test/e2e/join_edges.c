/*
** Programs that do what a client does not expect while it joins them.
** Usage: join_edges MODE [poll], in a folder where the file "go" gives the sign.
**   exec_leader  the only thread executes another program
**   exec_thread  another thread does, while the first one waits
**   exits        another thread calls exit(7)
**   killed       another thread sends SIGKILL to the program
**   forks        another thread makes a child, and prints "forked" when that has ended
**   stops        another thread sends SIGSTOP to the program
**   two          two threads wait, until SIGTERM
**   busy         one thread works, the other one waits, and a wait that is
**                interrupted ends the program with 1
**   numbers      makes connections of its own, with the lowest numbers that are
**                free, until somebody else writes into one (code 1) or SIGTERM
** poll: the first thread waits in poll(), which the kernel continues when it was
** interrupted; otherwise in epoll_wait().
** The other program has memory where the library was. It prints how many bytes
** of it somebody has written, and ends with 1 if there are any.
*/
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua.h"
#include "test/support/check.h"
#include "test/support/host_vm.h"

static const char *program;

static void on_end(int number)
{
  (void)number;
  _exit(0);
}

static void await_go(void)
{
  while (access("go", F_OK))
    usleep(1000);
}

/* A thread that came back with the registers of another one would not know
** itself. */
static bool polls;

static void *wait_for_ever(void *unused)
{
  enum { TURN_MS = 50 };
  struct epoll_event event;
  const pid_t self = gettid();
  int fd = epoll_create1(EPOLL_CLOEXEC);
  while ((polls ? poll(NULL, 0, TURN_MS)
                : epoll_wait(fd, &event, 1, TURN_MS)) <= 0)
    CHECK(self == gettid());
  return unused;
}

/* What another thread does to the program. */
static void *act(void *mode)
{
  enum { EXIT_CODE = 7 };
  await_go();
  if (strcmp(mode, "exits") == 0)
    exit(EXIT_CODE);
  if (strcmp(mode, "killed") == 0)
    kill(getpid(), SIGKILL);
  if (strcmp(mode, "stops") == 0)
    kill(getpid(), SIGSTOP);
  if (strcmp(mode, "forks") == 0) {
    int status = 1;
    pid_t child = fork();
    if (child == 0)
      _exit(0);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
    printf("forked\n");
    fflush(stdout);
  }
  return wait_for_ever(NULL);
}

static void *work(void *unused)
{
  for (volatile uint64_t i = 0;; i++)
    ;
  return unused;
}

static void wait_uninterrupted(void)
{
  struct epoll_event event;
  int fd = epoll_create1(EPOLL_CLOEXEC);
  CHECK(epoll_wait(fd, &event, 1, -1) >= 0);
}

/* -- exec ------------------------------------------------------------------ */
/* The library's data, with the memory behind it that is in no file. */
static void find_data(uint64_t *low, uint64_t *high)
{
  char line[4096], rights[5];
  uint64_t begin, end;
  FILE *f = fopen("/proc/self/maps", "re");
  CHECK(f);
  *low = *high = 0;
  while (fgets(line, sizeof line, f)) {
    CHECK(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, rights) ==
          3);
    if (rights[1] == 'w' && strstr(line, "libluajit"))
      *low = begin;
    if (rights[1] == 'w' && (strstr(line, "libluajit") || begin == *high))
      *high = end;
  }
  fclose(f);
}

static void *execute_other(void *unused)
{
  char low[32], high[32];
  uint64_t from, to;
  await_go();
  find_data(&from, &to);
  snprintf(low, sizeof low, "%" PRIu64, from);
  snprintf(high, sizeof high, "%" PRIu64, to);
  execl(program, program, "other", low, high, (char *)NULL);
  CHECK(!"exec");
  return unused;
}

static int other(const char *from, const char *to)
{
  enum { SECONDS = 2 };
  uint64_t low = strtoull(from, NULL, 10), high = strtoull(to, NULL, 10);
  size_t written = 0, bytes = high - low;
  close(open("began", O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
  const char *at =
      mmap((void *)(uintptr_t)low, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK(at == (void *)(uintptr_t)low);
  sleep(SECONDS);
  for (size_t i = 0; i < bytes; i++)
    written += at[i] != 0;
  printf("bytes written: %zu\n", written);
  return written != 0;
}

/* -- numbers --------------------------------------------------------------- */
static void make_connections(void)
{
  enum { MOST = 200, TURN_US = 50000 };
  int fd[MOST][2], count = 0;
  char byte;
  await_go();
  for (;;) {
    if (count < MOST)
      CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd[count++]));
    for (int i = 0; i < count; i++)
      for (int end = 0; end < 2; end++)
        CHECK(recv(fd[i][end], &byte, 1, MSG_DONTWAIT) < 0);
    usleep(TURN_US);
  }
}

int main(int argc, char **argv)
{
  pthread_t thread;
  if (argc == 4 && strcmp(argv[1], "other") == 0)
    return other(argv[2], argv[3]);
  CHECK(argc == 2 || (argc == 3 && strcmp(argv[2], "poll") == 0));
  polls = argc == 3;
  program = argv[0];
  CHECK(signal(SIGTERM, on_end) != SIG_ERR);
  new_vm();
  printf("ready\n");
  fflush(stdout);
  if (strcmp(argv[1], "exec_leader") == 0)
    execute_other(NULL);
  if (strcmp(argv[1], "exec_thread") == 0)
    CHECK(!pthread_create(&thread, NULL, execute_other, NULL));
  for (const char *const *mode =
           (const char *const[]){"exits", "killed", "forks", "stops", NULL};
       *mode; mode++)
    if (strcmp(argv[1], *mode) == 0)
      CHECK(!pthread_create(&thread, NULL, act, argv[1]));
  if (strcmp(argv[1], "numbers") == 0)
    make_connections();
  if (strcmp(argv[1], "two") == 0)
    CHECK(!pthread_create(&thread, NULL, wait_for_ever, NULL));
  if (strcmp(argv[1], "busy") == 0) {
    CHECK(!pthread_create(&thread, NULL, work, NULL));
    wait_uninterrupted();
  }
  wait_for_ever(NULL);
  return 0;
}
