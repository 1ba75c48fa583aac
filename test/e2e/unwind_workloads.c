/*
** The workloads of unwind_oracle: code of many shapes, most of it in libraries
** that we did not compile.
*/
#include "unwind_workloads.h"

#include <alloca.h>
#include <dlfcn.h>
#include <locale.h>
#include <math.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define NOINLINE __attribute__((noinline, noclone))

char unwind_fiber_stack[1 << 16] __attribute__((aligned(16)));

static volatile double sink;
static volatile int isink;

static NOINLINE int fib(int n)
{
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void work_calls(void)
{
  isink = fib(12);
}

static NOINLINE int with_blocks(int depth)
{
  volatile char *block = alloca((size_t)depth * 40 + 16);
  char vla[depth * 3 + 1];
  _Alignas(64) volatile char aligned[64];
  memset(vla, depth, sizeof vla);
  block[0] = vla[depth];
  aligned[3] = block[0];
  return depth ? with_blocks(depth - 1) + aligned[3] : 0;
}

static void work_blocks(void)
{
  isink = with_blocks(40);
}

static int by_string(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void work_sorting(void)
{
  char text[97][16], *pointers[97];
  for (int i = 0; i < 97; i++) {
    snprintf(text[i], sizeof text[i], "%d-%x", i * 7919 % 101, i);
    pointers[i] = text[i];
  }
  qsort(pointers, 97, sizeof *pointers, by_string);
  isink = pointers[3][0];
}

static void work_formatting(void)
{
  char buffer[400];
  setlocale(LC_ALL, "C");
  snprintf(buffer, sizeof buffer, "%.17g %a %'d %s %*d %Lf %p", 1.0 / 3,
           2.5e300, 1234567, "text", 20, 7, 1e30L, (void *)buffer);
  sink = strtod(buffer, NULL) + strtod("1.7976931348623157e308", NULL);
  sscanf("12 abc 3.5", "%d %*s %lf", (int *)&isink, (double *)&sink);
  time_t now = 1700000000;
  struct tm tm;
  gmtime_r(&now, &tm);
  strftime(buffer, sizeof buffer, "%c %Z %j", &tm);
}

static void work_memory(void)
{
  void *blocks_[61];
  for (int i = 0; i < 61; i++)
    blocks_[i] = malloc((size_t)(i * i * 97 % 9000));
  for (int i = 0; i < 61; i += 2)
    blocks_[i] = realloc(blocks_[i], 5000);
  for (int i = 0; i < 61; i++)
    free(blocks_[i]);
  char from[2100], to[2100];
  for (size_t size = 0; size < sizeof from; size += 1 + size / 3) {
    memset(from, (int)size, sizeof from);
    memcpy(to, from, size);
    memmove(to + 1, to, size ? size - 1 : 0);
    isink = memcmp(to, from, size) + (int)strnlen(to, size);
  }
}

static void work_matching(void)
{
  regex_t regex;
  regmatch_t match[3];
  if (regcomp(&regex, "^(a+|b[c-f]*)x\\1$", REG_EXTENDED))
    return;
  isink = regexec(&regex, "bcdefxbcdef", 3, match, 0);
  regfree(&regex);
}

static void work_clocks(void)
{
  struct timespec now;
  for (int i = 0; i < 5; i++) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    isink = (int)time(NULL);
  }
}

static void work_mathematics(void)
{
  for (double x = 0.1; x < 40; x *= 3)
    sink = sin(x) + pow(x, 1.7) + exp(x) + log(x) + tgamma(x / 9) + fmod(x, 3) +
           cbrt(x) + atan2(x, 2);
}

static jmp_buf jump;

static NOINLINE void jump_out(int depth)
{
  volatile int kept = depth;
  if (depth == 0)
    longjmp(jump, 1);
  jump_out(depth - 1);
  isink = kept;
}

static void work_jumping(void)
{
  if (setjmp(jump) == 0)
    jump_out(9);
}

/* Loads a shared object, binds it lazily, uses it, and lets it go. */
static void work_loading(void)
{
  void *library = dlopen("libcrypt.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    return;
  isink = dlsym(library, "crypt") != NULL;
  dlclose(library);
}

void unwind_workload_in_signal(int number)
{
  isink = fib(4) + number;
}

static void work_signals(void)
{
  /* musl's raise() blocks all signals, and so single steps. */
  for (int i = 0; i < 3; i++)
    syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1);
}

#ifdef __GLIBC__ /* musl has no makecontext() */
static ucontext_t home, fiber;

static NOINLINE void in_fiber(void)
{
  for (;;) {
    isink = fib(5);
    swapcontext(&fiber, &home);
  }
}

static void work_fibers(void)
{
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = unwind_fiber_stack;
  fiber.uc_stack.ss_size = sizeof unwind_fiber_stack;
  fiber.uc_link = NULL;
  makecontext(&fiber, in_fiber, 0);
  /* Its first frame was planted, not called. */
  greg_t rsp = fiber.uc_mcontext.gregs[REG_RSP];
  oracle_begin_fiber(*(uint64_t *)rsp, (uint64_t)rsp);
  for (int i = 0; i < 3; i++)
    swapcontext(&home, &fiber);
}
#else
static void work_fibers(void)
{
}
#endif

/* Unwinds frames by force, each with a clean-up, as a thrown error does. */
static void clean(int *counter)
{
  ++*counter;
}

static jmp_buf caught;
static struct _Unwind_Exception exception;

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions,
                                _Unwind_Exception_Class class,
                                struct _Unwind_Exception *object,
                                struct _Unwind_Context *context, void *depth)
{
  (void)version;
  (void)actions;
  (void)class;
  (void)object;
  (void)context;
  if (--*(int *)depth == 0)
    longjmp(caught, 1);
  return _URC_NO_REASON;
}

static NOINLINE void throw_from(int depth, int *left)
{
  int counter __attribute__((cleanup(clean))) = 0;
  volatile int kept = depth;
  if (depth == 0)
    _Unwind_ForcedUnwind(&exception, stop, left);
  throw_from(depth - 1, left);
  isink = kept + counter;
}

static void work_throwing(void)
{
  static int left;
  left = 6;
  if (setjmp(caught) == 0)
    throw_from(6, &left);
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context,
                                       void *count)
{
  isink = (int)_Unwind_GetIP(context);
  return ++*(int *)count < 40 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void work_backtraces(void)
{
  int count = 0;
  _Unwind_Backtrace(count_frame, &count);
}

#define WORKLOADS(_)                                                           \
  _(calls)                                                                     \
  _(blocks)                                                                    \
  _(sorting)                                                                   \
  _(formatting)                                                                \
  _(memory)                                                                    \
  _(matching)                                                                  \
  _(clocks)                                                                    \
  _(mathematics)                                                               \
  _(jumping)                                                                   \
  _(loading)                                                                   \
  _(signals)                                                                   \
  _(fibers)                                                                    \
  _(throwing)                                                                  \
  _(backtraces)

const struct unwind_workload unwind_workloads[] = {
#define ENTRY(name) {#name, work_##name},
    WORKLOADS(ENTRY)
#undef ENTRY
};
const unsigned unwind_workloads_count =
    sizeof unwind_workloads / sizeof *unwind_workloads;
