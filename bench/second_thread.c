/*
** What a second thread costs a program of one thread: each recorded program gets a
** second one. The kernel then counts each use of a descriptor, unless the second
** thread has a table of its own, and libc takes the locks of malloc(). The second
** thread does nothing here.
**
** Prints the CPU time of a message to oneself (three system calls on descriptors) and
** of a large block of memory: the median of the rounds, in which processes of all
** kinds take turns.
*/
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum kind { ALONE, SHARED, APART, KINDS };
enum { ROUNDS = 41, MESSAGES = 20000, BLOCK_BYTES = 4096, BLOCKS = 4 };

struct costs {
  double message_ns, block_ns;
};

static double cpu_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *wait_for_ever(void *kind)
{
  if (*(const enum kind *)kind == APART && unshare(CLONE_FILES))
    exit(1);
  for (;;)
    pause();
  return NULL;
}

static double message_ns(void)
{
  int ends[2], set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  char text[64] = {0};
  struct iovec part = {text, sizeof text};
  if (set < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
      epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event))
    exit(1);
  double began = cpu_ns();
  for (int i = 0; i < MESSAGES; i++)
    if (writev(ends[0], &part, 1) != sizeof text ||
        epoll_wait(set, &event, 1, -1) != 1 ||
        recv(ends[1], text, sizeof text, 0) != sizeof text)
      exit(1);
  return (cpu_ns() - began) / MESSAGES;
}

static double block_ns(void)
{
  double began = cpu_ns();
  for (int i = 0; i < MESSAGES; i++) {
    char *volatile blocks[BLOCKS];
    for (int k = 0; k < BLOCKS; k++)
      blocks[k] = malloc(BLOCK_BYTES);
    for (int k = 0; k < BLOCKS; k++)
      free(blocks[k]);
  }
  return (cpu_ns() - began) / MESSAGES / BLOCKS;
}

/* In a process of its own: libc does not forget that there was a second thread. */
static struct costs measure(enum kind kind)
{
  int result[2];
  struct costs costs;
  if (pipe(result))
    exit(1);
  pid_t pid = fork();
  if (pid == 0) {
    pthread_t thread;
    if (kind != ALONE && pthread_create(&thread, NULL, wait_for_ever, &kind))
      _exit(1);
    usleep(1000); /* It waits by now. */
    costs.message_ns = message_ns();
    costs.block_ns = block_ns();
    _exit(write(result[1], &costs, sizeof costs) != sizeof costs);
  }
  close(result[1]);
  int status = 1;
  if (pid < 0 || read(result[0], &costs, sizeof costs) != sizeof costs ||
      waitpid(pid, &status, 0) != pid || status)
    exit(1);
  close(result[0]);
  return costs;
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print(const char *what, double values[KINDS][ROUNDS])
{
  printf("%-36s", what);
  for (int kind = 0; kind < KINDS; kind++) {
    double *v = values[kind];
    qsort(v, ROUNDS, sizeof *v, by_value);
    printf(" %7.0f ns +- %-5.0f", v[ROUNDS / 2],
           (v[ROUNDS * 3 / 4] - v[ROUNDS / 4]) / 2);
  }
  printf("\n");
}

int main(void)
{
  static double messages[KINDS][ROUNDS], blocks[KINDS][ROUNDS];
  for (int i = 0; i < ROUNDS; i++)
    for (int k = 0; k < KINDS; k++) {
      enum kind kind = (enum kind)((i + k) % KINDS);
      struct costs costs = measure(kind);
      messages[kind][i] = costs.message_ns;
      blocks[kind][i] = costs.block_ns;
    }
  printf("%-36s %-19s %-19s %s\n", "", "one thread", "two",
         "two, each with its own table");
  print("a message: writev, epoll_wait, recv", messages);
  print("malloc and free of 4 KiB", blocks);
  return 0;
}
