/*
** What it costs a program of one thread to become one of two, as each recorded
** program does: the kernel then counts each use of a descriptor, and libc takes
** the locks of malloc(). The second thread does nothing here.
**
** Prints, for one thread and for two, the CPU time of a message to oneself (three
** system calls on descriptors) and of a large block of memory: the median of the
** rounds, in which processes of both kinds take turns.
*/
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static void *wait_for_ever(void *unused)
{
  for (;;)
    pause();
  return unused;
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
static struct costs measure(int threads)
{
  int result[2];
  struct costs costs;
  if (pipe(result))
    exit(1);
  pid_t pid = fork();
  if (pid == 0) {
    pthread_t thread;
    if (threads > 1 && pthread_create(&thread, NULL, wait_for_ever, NULL))
      _exit(1);
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

static void print(const char *what, double values[2][ROUNDS])
{
  double median[2], half[2];
  for (int i = 0; i < 2; i++) {
    qsort(values[i], ROUNDS, sizeof values[i][0], by_value);
    median[i] = values[i][ROUNDS / 2];
    half[i] = (values[i][ROUNDS * 3 / 4] - values[i][ROUNDS / 4]) / 2;
  }
  printf("%-42s %7.0f ns +- %-4.0f %7.0f ns +- %-4.0f %+6.0f ns\n", what,
         median[0], half[0], median[1], half[1], median[1] - median[0]);
}

int main(void)
{
  static double messages[2][ROUNDS], blocks[2][ROUNDS];
  for (int i = 0; i < ROUNDS; i++)
    for (int k = 0; k < 2; k++) {
      int kind = (i + k) % 2;
      struct costs costs = measure(kind + 1);
      messages[kind][i] = costs.message_ns;
      blocks[kind][i] = costs.block_ns;
    }
  printf("%-42s %-19s %s\n", "", "one thread", "two");
  print("a message: writev, epoll_wait, recv", messages);
  print("malloc and free of 4 KiB", blocks);
  return 0;
}
