/*
** The decisive test of host unwinding: workloads run one instruction at a time
** (trap flag), and at every instruction our walk is compared with a shadow
** stack that knows nothing of CFI. Any wrong frame fails the test; so do too
** many stacks that are cut.
**
** The shadow: after a call instruction rsp points at the return address, which
** is noted with its place; an entry is dead once rsp is above its place (ret,
** longjmp and unwinding alike). A signal is noted by its handler. The frames
** below the stepped function come from glibc's backtrace().
**
** Usage: unwind_oracle [-v]
*/
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <locale.h>
#include <math.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unwind.h>

#include "profilers/unwind/unwind.h"
#include "src/base/saferead.h"

enum { SHADOW = 4096, BASE = 64, CUTS = 4096 };
#define NOINLINE __attribute__((noinline, noclone))

/* -- Shadow stacks, one for each stack that workloads run on -------------- */

struct shadow {
  uint64_t pc[SHADOW], place[SHADOW];
  unsigned count;
  uint64_t lo, hi; /* of the stack; 0, 0: the thread's own */
};

static struct shadow main_shadow, fiber_shadow;
static char fiber_stack[1 << 16] __attribute__((aligned(16)));
static struct ljp_unwind *unwinder;
static uint64_t last_rsp;
static bool last_was_call;

static struct counts {
  uint64_t complete, cut, wrong, frames;
  uint64_t switching; /* inside a stack switch: not judged */
} counts;
static uint64_t switch_from, switch_to; /* swapcontext's code */
static bool switching;
static struct {
  uint64_t pc, count;
  enum ljp_unwind_result why;
} cuts[CUTS];
static uint64_t first_wrong_rip, first_wrong_got, first_wrong_expected;
static unsigned first_wrong_frame;

static struct shadow *shadow_of(uint64_t rsp)
{
  uint64_t lo = (uintptr_t)fiber_stack;
  return rsp - lo <= sizeof fiber_stack ? &fiber_shadow : &main_shadow;
}

static void push(struct shadow *shadow, uint64_t pc, uint64_t place)
{
  if (shadow->count == SHADOW)
    abort();
  shadow->pc[shadow->count] = pc;
  shadow->place[shadow->count++] = place;
}

static bool is_call(uint64_t rip)
{
  const uint8_t *code = (const uint8_t *)(uintptr_t)rip;
  while (*code == 0x66 || *code == 0x67 || *code == 0x3e || *code == 0x2e ||
         *code == 0xf2 || (*code & 0xf0) == 0x40)
    code++;
  return *code == 0xe8 || (*code == 0xff && (code[1] >> 3 & 7) == 2);
}

static void note_cut(uint64_t pc, enum ljp_unwind_result why)
{
  unsigned at = (unsigned)(pc * 2654435761u >> 7) % CUTS;
  for (unsigned i = 0; i < CUTS; i++, at = (at + 1) % CUTS)
    if (!cuts[at].count || (cuts[at].pc == pc && cuts[at].why == why)) {
      cuts[at].pc = pc;
      cuts[at].why = why;
      cuts[at].count++;
      return;
    }
}

static void compare(const struct shadow *shadow, const ucontext_t *uc)
{
  struct ljp_regs regs;
  enum ljp_unwind_result result = LJP_UNWIND_STEPPED;
  unsigned left = shadow->count;
  const struct ljp_unwind_view *view = ljp_unwind_acquire(unwinder);
  ljp_regs_from_context(&regs, uc);
  while (!(result = ljp_unwind_step(view, &regs))) {
    uint64_t expected = left ? shadow->pc[left - 1] : 0;
    if (left == 0 || regs.r[LJP_RIP] != expected) {
      if (counts.wrong++ == 0) {
        first_wrong_rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
        first_wrong_got = regs.r[LJP_RIP];
        first_wrong_expected = expected;
        first_wrong_frame = shadow->count - left;
      }
      ljp_unwind_release(unwinder, view);
      return;
    }
    counts.frames++;
    left--;
  }
  ljp_unwind_release(unwinder, view);
  if (result == LJP_UNWIND_END && left == 0)
    counts.complete++;
  else if (result == LJP_UNWIND_END) {
    if (counts.wrong++ == 0) {
      first_wrong_rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
      first_wrong_expected = shadow->pc[left - 1];
    }
  } else {
    counts.cut++;
    note_cut(regs.r[LJP_RIP], result);
  }
}

static void on_trap(int number, siginfo_t *info, void *context)
{
  const ucontext_t *uc = context;
  uint64_t rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
  uint64_t rsp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
  struct shadow *shadow = shadow_of(rsp);
  (void)number;
  (void)info;
  if (last_was_call && rsp == last_rsp - 8)
    push(shadow, *(uint64_t *)(uintptr_t)rsp, rsp);
  while (shadow->count && shadow->place[shadow->count - 1] < rsp)
    shadow->count--;
  /* From where swapcontext changes stacks until it has left, whose stack it is
  ** is a matter of taste. */
  if (last_rsp - rsp + 65536 > 131072)
    switching = rip >= switch_from && rip < switch_to;
  else if (rip < switch_from || rip >= switch_to)
    switching = false;
  if (switching)
    counts.switching++;
  else
    compare(shadow, uc);
  last_rsp = rsp;
  last_was_call = is_call(rip);
}

/* Functions of their own, so that CFI can be right about their pushes. */
#define FLAG_FUNCTION(name, operation)                                         \
  __asm__(".pushsection .text\n" #name ":\n"                                   \
          ".cfi_startproc\n pushfq\n.cfi_adjust_cfa_offset 8\n" operation      \
          "\n popfq\n.cfi_adjust_cfa_offset -8\n ret\n"                        \
          ".cfi_endproc\n.popsection\n");                                      \
  void name(void)
FLAG_FUNCTION(step_on, "orq $0x100, (%rsp)");
FLAG_FUNCTION(step_off, "andq $~0x100, (%rsp)");

/* -- Workloads ------------------------------------------------------------ */

static volatile double sink;
static volatile int isink;

static NOINLINE int fib(int n)
{
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void calls(void)
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

static void blocks(void)
{
  isink = with_blocks(40);
}

static int by_string(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sorting(void)
{
  char text[97][16], *pointers[97];
  for (int i = 0; i < 97; i++) {
    snprintf(text[i], sizeof text[i], "%d-%x", i * 7919 % 101, i);
    pointers[i] = text[i];
  }
  qsort(pointers, 97, sizeof *pointers, by_string);
  isink = pointers[3][0];
}

static void formatting(void)
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

static void memory(void)
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

static void matching(void)
{
  regex_t regex;
  regmatch_t match[3];
  if (regcomp(&regex, "^(a+|b[c-f]*)x\\1$", REG_EXTENDED))
    return;
  isink = regexec(&regex, "bcdefxbcdef", 3, match, 0);
  regfree(&regex);
}

static void clocks(void)
{
  struct timespec now;
  for (int i = 0; i < 5; i++) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    isink = (int)time(NULL);
  }
}

static void mathematics(void)
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

static void jumping(void)
{
  if (setjmp(jump) == 0)
    jump_out(9);
}

/* A shared object is loaded, bound lazily, used and let go. */
static void loading(void)
{
  void *library = dlopen("libcrypt.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    return;
  isink = dlsym(library, "crypt") != NULL;
  dlclose(library);
}

static void on_user_signal(int number, siginfo_t *info, void *context)
{
  const ucontext_t *uc = context;
  uint64_t rsp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
  const uint64_t *pretcode = (const uint64_t *)context - 1;
  struct shadow *shadow = shadow_of(rsp);
  (void)info;
  /* The frames of this signal: whom it interrupted, and the trampoline. */
  push(shadow, (uint64_t)uc->uc_mcontext.gregs[REG_RIP], rsp - 8);
  push(shadow, *pretcode, (uintptr_t)pretcode);
  last_was_call = false;
  step_on();
  isink = fib(4) + number;
  /* Stepping goes on past the return, since the context has the flag. */
}

static void signals(void)
{
  for (int i = 0; i < 3; i++)
    raise(SIGUSR1);
}

static ucontext_t home, fiber;

static NOINLINE void in_fiber(void)
{
  for (;;) {
    isink = fib(5);
    swapcontext(&fiber, &home);
  }
}

static void fibers(void)
{
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = fiber_stack;
  fiber.uc_stack.ss_size = sizeof fiber_stack;
  fiber.uc_link = NULL;
  makecontext(&fiber, in_fiber, 0);
  /* Its first frame was planted, not called. */
  fiber_shadow.count = 0;
  greg_t rsp = fiber.uc_mcontext.gregs[REG_RSP];
  push(&fiber_shadow, *(uint64_t *)rsp, (uint64_t)rsp);
  for (int i = 0; i < 3; i++)
    swapcontext(&home, &fiber);
}

/* Frames unwound by force, each with a clean-up, as a thrown error does. */
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

static void throwing(void)
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

static void backtraces(void)
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

static const struct {
  const char *name;
  void (*run)(void);
} workloads[] = {
#define ENTRY(name) {#name, name},
    WORKLOADS(ENTRY)
#undef ENTRY
};
enum { COUNT = sizeof workloads / sizeof *workloads };

/* -- Running -------------------------------------------------------------- */

static NOINLINE void step_through(void (*run)(void))
{
  void *base[BASE];
  int frames = backtrace(base, BASE);
  main_shadow.count = 0;
  /* base[0] is in here; its callers never die. */
  for (int i = frames - 1; i > 0; i--)
    push(&main_shadow, (uintptr_t)base[i], UINT64_MAX);
  last_was_call = false;
  step_on();
  run();
  step_off();
}

static void print_place(const char *text, uint64_t pc)
{
  Dl_info info;
  if (dladdr((void *)(uintptr_t)pc, &info) && info.dli_fname)
    printf("    %s %#lx = %s + %#lx (%s)\n", text, (unsigned long)pc,
           info.dli_fname,
           (unsigned long)(pc - (uint64_t)(uintptr_t)info.dli_fbase),
           info.dli_sname ? info.dli_sname : "?");
  else
    printf("    %s %#lx = ?\n", text, (unsigned long)pc);
}

static void run_round(const char *how, struct counts *total, bool verbose)
{
  for (unsigned i = 0; i < COUNT; i++) {
    memset(&counts, 0, sizeof counts);
    memset(cuts, 0, sizeof cuts);
    step_through(workloads[i].run);
    printf("%-11s %-11s complete %8lu  cut %6lu  wrong %4lu  frames %9lu\n",
           how, workloads[i].name, (unsigned long)counts.complete,
           (unsigned long)counts.cut, (unsigned long)counts.wrong,
           (unsigned long)counts.frames);
    if (counts.wrong) {
      print_place("first wrong: at", first_wrong_rip);
      printf("    frame %u\n", first_wrong_frame);
      print_place("got", first_wrong_got);
      print_place("expected", first_wrong_expected);
    }
    for (unsigned k = 0; k < CUTS && verbose; k++)
      if (cuts[k].count) {
        printf("    %6lu cut: %s\n", (unsigned long)cuts[k].count,
               ljp_unwind_result_text(cuts[k].why));
        print_place("at", cuts[k].pc);
      }
    total->complete += counts.complete;
    total->cut += counts.cut;
    total->wrong += counts.wrong;
    total->switching += counts.switching;
  }
}

int main(int argc, char **argv)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO};
  struct counts total = {0};
  bool verbose = argc > 1 && !strcmp(argv[1], "-v");
  void *warm[2];
  backtrace(warm, 2); /* loads libgcc now */
  setvbuf(stdout, NULL, _IOLBF, 0);
  action.sa_sigaction = on_trap;
  sigaction(SIGTRAP, &action, NULL);
  action.sa_sigaction = on_user_signal;
  sigaction(SIGUSR1, &action, NULL);
  switch_from = (uintptr_t)dlsym(RTLD_DEFAULT, "swapcontext");
  switch_to = switch_from + 512;
  if (ljp_saferead_install() || ljp_unwind_new(&unwinder))
    return 1;
  run_round("interpreted", &total, verbose);
  ljp_unwind_poll(unwinder, 0);
  run_round("table", &total, verbose);
  uint64_t all = total.complete + total.cut + total.wrong;
  printf("all: %lu instructions, %.3f %% complete, %lu cut, %lu wrong, %lu "
         "not judged\n",
         (unsigned long)all, 100.0 * (double)total.complete / (double)all,
         (unsigned long)total.cut, (unsigned long)total.wrong,
         (unsigned long)total.switching);
  ljp_unwind_free(unwinder);
  ljp_saferead_remove();
  /* Two in a thousand may be cut (libc code that pushes without saying so, a
  ** library not yet in the view); none may be wrong. */
  return total.wrong || all < 200000 || total.cut * 500 > all;
}
