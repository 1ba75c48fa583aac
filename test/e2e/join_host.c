/*
** A program to be joined. Usage: join_host MODE, until SIGTERM. It prints what
** it did, and anything that went wrong: a wait that ended early, a register, a
** flag or a word of the red zone that changed, a signal that was lost.
**   epoll    waits in epoll_wait() without a time
**   poll     waits in poll() for 20 ms at a time
**   cancel   the same as glibc from 2.41 on does it, for 300 ms at a time
**   sleep    the same in nanosleep()
**   read     waits in read() of a pipe
**   send     waits in send() to a full socket, for a minute at most
**   queue    waits in mq_receive()
**   loop     a compiled loop of Lua, whose sum is known
**   busy     a loop with live vector registers and a red zone
**   storm    three threads do nothing but malloc() and free()
**   signals  as read, with a timer's signal each millisecond, all counted
*/
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include "test/support/host_vm.h"

static volatile sig_atomic_t host_end;
static volatile uint64_t host_handled, host_overruns;

static void host_stop(int number)
{
  (void)number;
  host_end = 1;
}

static int host_pipe[2], host_epoll, host_full[2];

static void host_count(int number, siginfo_t *info, void *context)
{
  (void)number;
  (void)context;
  host_handled++;
  host_overruns += (uint64_t)info->si_overrun;
  /* SIGTERM may come together with this one: then read() begins again. */
  if (host_end)
    (void)!write(host_pipe[1], "", 1);
}

static uint64_t host_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* -- Waits ----------------------------------------------------------------- */
static mqd_t host_queue;

static void host_fill_socket(void)
{
  const struct timeval minute = {.tv_sec = 60};
  static const char bytes[4096];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, host_full) ||
      setsockopt(host_full[0], SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof minute))
    exit(1);
  while (send(host_full[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    ;
}

static void host_open_queue(void)
{
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 1};
  char name[32];
  snprintf(name, sizeof name, "/join_host-%d", (int)getpid());
  host_queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
  if (host_queue < 0 || mq_unlink(name))
    exit(1);
}

/* poll() as glibc 2.41 makes it in a process with threads, instruction by
** instruction: the number of the call is on the caller's stack only. */
__asm__(".text\n"
        "host_cancel_arch:\n"
        "  movq %rdi, %r11\n"
        "  movq %rsi, %rax\n"
        "  movq %rdx, %rdi\n"
        "  movq %rcx, %rsi\n"
        "  movq %r8, %rdx\n"
        "  movq %r9, %r10\n"
        "  movq 8(%rsp), %r8\n"
        "  movq 16(%rsp), %r9\n"
        "  movq %r11, 8(%rsp)\n"
        "  syscall\n"
        "  ret\n"
        "host_cancel_internal:\n"
        "  pushq %rbx\n"
        "  movq %rsp, %rbx\n"
        "  pushq %r9\n"
        "  leaq -128(%rsp), %r11\n"
        "  movq %rcx, %r9\n"
        "  movq %rsi, %rcx\n"
        "  pushq %r8\n"
        "  movq 32(%rsp), %rsi\n"
        "  movq %rdx, %r8\n"
        "  movq %rdi, %rdx\n"
        "  movq %r11, %rdi\n"
        "  call host_cancel_arch\n"
        "  popq %rcx\n"
        "  popq %rsi\n"
        "  popq %rbx\n"
        "  ret\n"
        "host_cancel_poll:\n"
        "  subq $16, %rsp\n"
        "  pushq $7\n"
        "  call host_cancel_internal\n"
        "  addq $24, %rsp\n"
        "  ret\n");
long host_cancel_poll(void *fds, long count, long ms);

/* So long that several clients meet the same call. */
enum { CANCEL_MS = 300 };

static int host_cancel(void)
{
  long result = host_cancel_poll(NULL, 0, CANCEL_MS);
  if (result >= 0)
    return (int)result;
  errno = (int)-result;
  return -1;
}

static int host_wait(const char *mode)
{
  struct timespec time = {0, 20000000};
  struct epoll_event event;
  char byte = 0;
  if (strcmp(mode, "epoll") == 0)
    return epoll_wait(host_epoll, &event, 1, -1);
  if (strcmp(mode, "poll") == 0)
    return poll(NULL, 0, 20);
  if (strcmp(mode, "cancel") == 0)
    return host_cancel();
  if (strcmp(mode, "sleep") == 0)
    return nanosleep(&time, NULL);
  if (strcmp(mode, "send") == 0)
    return (int)send(host_full[0], &byte, 1, 0);
  if (strcmp(mode, "queue") == 0)
    return (int)mq_receive(host_queue, &byte, 1, NULL);
  return (int)read(host_pipe[0], &byte, 1);
}

static int host_waits(const char *mode)
{
  const uint64_t least = strcmp(mode, "cancel") == 0
                             ? CANCEL_MS * UINT64_C(1000000) - 100000
                             : 19900000;
  const bool timed = least > 19900000 || strcmp(mode, "poll") == 0 ||
                     strcmp(mode, "sleep") == 0;
  uint64_t count = 0, interrupted = 0, early = 0;
  host_epoll = epoll_create1(0);
  if (pipe(host_pipe))
    return 1;
  host_fill_socket();
  host_open_queue();
  while (!host_end) {
    uint64_t begin = host_now();
    int result = host_wait(mode);
    count++;
    interrupted += result < 0 && errno == EINTR && !host_end;
    early += timed && !host_end && host_now() - begin < least;
  }
  printf("%s: interrupted %d early %d\n", mode, (int)interrupted, (int)early);
  return count == 0;
}

static int host_signals(void)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                           .sigev_signo = SIGUSR1};
  const struct itimerspec each = {{0, 1000000}, {0, 1000000}};
  timer_t timer;
  char byte;
  uint64_t begin = host_now();
  action.sa_sigaction = host_count;
  sigaction(SIGUSR1, &action, NULL);
  if (pipe(host_pipe) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
      timer_settime(timer, 0, &each, NULL))
    return 1;
  while (!host_end)
    if (read(host_pipe[0], &byte, 1) < 0 && errno != EINTR)
      return 1;
  /* Each expiry was handled, or counted with one that was. */
  uint64_t ms = (host_now() - begin) / 1000000;
  uint64_t got = host_handled + host_overruns;
  printf("signals: lost %d\n", got + 3 < ms ? (int)(ms - got) : 0);
  return 0;
}

/* -- Loops ----------------------------------------------------------------- */
static int host_loop(lua_State *L)
{
  uint64_t rounds = 0, wrong = 0;
  run(L, "function round() local x = 0 "
         "for i = 1, 2e7 do x = x + (i % 7) * 0.5 end return x end");
  while (!host_end) {
    lua_getglobal(L, "round");
    lua_call(L, 0, 1);
    wrong += lua_tonumber(L, -1) != 30000001.5;
    lua_pop(L, 1);
    rounds++;
  }
  printf("loop: wrong %d\n", (int)wrong);
  return rounds == 0;
}

/* Vector registers are filled with what they must still be at the end, the
** carry flag with what the loop keeps. */
static int host_busy(void)
{
  uint64_t wrong = 0;
  while (!host_end) {
    uint64_t sum = 0, out[2];
    __asm__ volatile("pcmpeqd %%xmm7, %%xmm7\n\t"
                     "movdqa %%xmm7, %%xmm15\n\t"
                     "psllq $3, %%xmm15\n\t"
                     "movq $0x1234567, -64(%%rsp)\n\t"
                     "movl $20000000, %%ecx\n\t"
                     "stc\n"
                     "1:\n\t"
                     "paddq %%xmm7, %%xmm15\n\t"
                     "psubq %%xmm7, %%xmm15\n\t"
                     "adcq $0, -64(%%rsp)\n\t"
                     "stc\n\t"
                     "decl %%ecx\n\t"
                     "jnz 1b\n\t"
                     "movdqu %%xmm15, (%1)\n\t"
                     "movq -64(%%rsp), %%rax\n\t"
                     "movq %%rax, %0"
                     : "=m"(sum)
                     : "r"(out)
                     : "rax", "rcx", "memory", "cc", "xmm7", "xmm15");
    wrong += out[0] != UINT64_MAX - 7 || out[1] != UINT64_MAX - 7;
    wrong += sum != 0x1234567 + 20000000;
  }
  printf("busy: wrong %d\n", (int)wrong);
  return 0;
}

static void *host_allocate(void *argument)
{
  enum { BLOCKS = 64 };
  unsigned random = (unsigned)(uintptr_t)argument * 7 + 1;
  char *block[BLOCKS] = {NULL};
  while (!host_end) {
    random = random * 1103515245 + 12345;
    unsigned i = random >> 16 & (BLOCKS - 1);
    free(block[i]);
    block[i] = malloc(1500 + (random >> 8 & 8191));
    if (block[i])
      *block[i] = 1;
  }
  for (unsigned i = 0; i < BLOCKS; i++)
    free(block[i]);
  return NULL;
}

static int host_storm(void)
{
  pthread_t threads[2];
  for (uintptr_t i = 0; i < 2; i++)
    if (pthread_create(&threads[i], NULL, host_allocate, (void *)i))
      return 1;
  host_allocate((void *)9);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  printf("storm: done\n");
  return 0;
}

static int host_run(lua_State *L, const char *mode)
{
  if (strcmp(mode, "loop") == 0)
    return host_loop(L);
  if (strcmp(mode, "busy") == 0)
    return host_busy();
  if (strcmp(mode, "storm") == 0)
    return host_storm();
  if (strcmp(mode, "signals") == 0)
    return host_signals();
  return host_waits(mode);
}

int main(int argc, char **argv)
{
  struct sigaction stop = {.sa_handler = host_stop};
  sigaction(SIGTERM, &stop, NULL);
  lua_State *L = new_vm();
  printf("ready\n");
  fflush(stdout);
  int code = host_run(L, argc > 1 ? argv[1] : "");
  lua_close(L);
  return code;
}
