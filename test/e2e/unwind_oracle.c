/*
** The decisive test of host unwinding: workloads (unwind_workloads.c) run one
** instruction at a time, by the trap flag. At every instruction our walk is
** compared with a shadow stack that knows nothing of CFI. A single wrong frame
** fails the test; so do too many cut stacks.
**
** The shadow stack: after a call instruction, rsp points to the return
** address, which is pushed together with its place. An entry is dead once rsp
** is above its place, be it by ret, longjmp or unwinding. A signal's handler
** pushes the frames of the signal. The frames below the stepped function come
** from glibc's backtrace(); with musl, which has none, they are not judged.
**
** With -c each instruction's own frame is left by its code instead of its CFI
** (as where libc has no CFI), and the result compared with the shadow stack and
** with the CFI's.
**
** Usage: unwind_oracle [-v | -c]
*/
#include <dlfcn.h>
#include <features.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "profilers/unwind/step.h"
#include "profilers/unwind/unwind.h"
#include "src/base/saferead.h"
#include "unwind_workloads.h"

enum { SHADOW = 4096, BASE = 64, CUTS = 4096 };
#define NOINLINE __attribute__((noinline, noclone))
#ifdef __GLIBC__
enum { TO_ROOT = 1 };
#else
enum { TO_ROOT = 0 };
static int backtrace(void **frames, int limit)
{
  (void)frames;
  return limit ? 0 : -1;
}
#endif

/* -- Shadow stacks, one for each stack that workloads run on --------------- */

struct shadow {
  uint64_t pc[SHADOW], place[SHADOW];
  unsigned count;
};

static struct shadow main_shadow, fiber_shadow;
static struct ljp_unwind *unwinder;
static uint64_t last_rsp;
static bool last_was_call;

static struct counts {
  uint64_t complete, cut, wrong, frames;
  uint64_t switching; /* inside a stack switch: not judged */
  uint64_t differ;    /* by code: right, but a register is not as CFI says */
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
  uint64_t lo = (uintptr_t)unwind_fiber_stack;
  return rsp - lo <= sizeof unwind_fiber_stack ? &fiber_shadow : &main_shadow;
}

static void shadow_push(struct shadow *shadow, uint64_t pc, uint64_t place)
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
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  enum ljp_unwind_result result = LJP_UNWIND_STEPPED;
  unsigned left = shadow->count;
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  ljp_regs_from_context(&regs, uc, &room);
  while ((TO_ROOT || left) && !(result = ljp_unwind_step(map, &regs))) {
    uint64_t expected = left ? shadow->pc[left - 1] : 0;
    if (left == 0 || regs.r[LJP_RIP] != expected) {
      if (counts.wrong++ == 0) {
        first_wrong_rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
        first_wrong_got = regs.r[LJP_RIP];
        first_wrong_expected = expected;
        first_wrong_frame = shadow->count - left;
      }
      ljp_unwind_release(unwinder, map);
      return;
    }
    counts.frames++;
    left--;
  }
  ljp_unwind_release(unwinder, map);
  if (left == 0 && (result == LJP_UNWIND_END || !result))
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

static bool by_code;

/* Counts a step as complete, cut, or wrong. */
static void compare_code(const struct shadow *shadow, const ucontext_t *uc)
{
  struct ljp_unwind_room room;
  struct ljp_regs regs, before;
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  uint64_t expected = shadow->count ? shadow->pc[shadow->count - 1] : 0;
  ljp_regs_from_context(&regs, uc, &room);
  before = regs;
  if (ljp_unwind_run_code(&regs, LJP_UNWIND_NO_CFI)) {
    counts.cut++;
    note_cut(before.r[LJP_RIP], LJP_UNWIND_NO_CFI);
  } else {
    bool right = regs.r[LJP_RIP] == expected, same = true;
    if (right && !ljp_unwind_step(map, &before) &&
        before.r[LJP_RIP] == expected)
      for (unsigned i = 0; i < LJP_REGS; i++)
        same &=
            !(before.known & regs.known & LJP_REGS_CALLEE_SAVED & 1u << i) ||
            before.r[i] == regs.r[i];
    counts.complete += right;
    counts.differ += !same;
    if (!right && counts.wrong++ == 0) {
      first_wrong_rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
      first_wrong_got = regs.r[LJP_RIP];
      first_wrong_expected = expected;
    }
  }
  ljp_unwind_release(unwinder, map);
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
    shadow_push(shadow, *(uint64_t *)(uintptr_t)rsp, rsp);
  while (shadow->count && shadow->place[shadow->count - 1] < rsp)
    shadow->count--;
  /* Between swapcontext's change of stacks and its return, either stack would
  ** be right: not judged. */
  if (last_rsp - rsp + 65536 > 131072)
    switching = rip >= switch_from && rip < switch_to;
  else if (rip < switch_from || rip >= switch_to)
    switching = false;
  if (switching)
    counts.switching++;
  else if (!TO_ROOT && !shadow->count)
    counts.complete++; /* the stepped function itself */
  else if (by_code)
    compare_code(shadow, uc);
  else
    compare(shadow, uc);
  last_rsp = rsp;
  last_was_call = is_call(rip);
}

/* These push in functions of their own, so that the CFI can say so. */
#define FLAG_FUNCTION(name, operation)                                         \
  __asm__(".pushsection .text\n" #name ":\n"                                   \
          ".cfi_startproc\n pushfq\n.cfi_adjust_cfa_offset 8\n" operation      \
          "\n popfq\n.cfi_adjust_cfa_offset -8\n ret\n"                        \
          ".cfi_endproc\n.popsection\n");                                      \
  void name(void)
FLAG_FUNCTION(step_on, "orq $0x100, (%rsp)");
FLAG_FUNCTION(step_off, "andq $~0x100, (%rsp)");

/* -- Signals and fibers of the workloads ----------------------------------- */

static void on_user_signal(int number, siginfo_t *info, void *context)
{
  const ucontext_t *uc = context;
  uint64_t rsp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
  const uint64_t *pretcode = (const uint64_t *)context - 1;
  struct shadow *shadow = shadow_of(rsp);
  (void)info;
  /* A signal has two frames: the interrupted one, and the trampoline. */
  shadow_push(shadow, (uint64_t)uc->uc_mcontext.gregs[REG_RIP], rsp - 8);
  shadow_push(shadow, *pretcode, (uintptr_t)pretcode);
  last_was_call = false;
  step_on();
  unwind_workload_in_signal(number);
  /* Stepping continues after the return, because the context has the flag. */
}

void oracle_begin_fiber(uint64_t pc, uint64_t place)
{
  fiber_shadow.count = 0;
  shadow_push(&fiber_shadow, pc, place);
}

/* -- Running --------------------------------------------------------------- */

static NOINLINE void step_through(void (*run)(void))
{
  void *base[BASE];
  int frames = backtrace(base, BASE);
  main_shadow.count = 0;
  /* base[0] is this function; its callers stay alive. */
  for (int i = frames - 1; i > 0; i--)
    shadow_push(&main_shadow, (uintptr_t)base[i], UINT64_MAX);
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
  for (unsigned i = 0; i < unwind_workloads_count; i++) {
    memset(&counts, 0, sizeof counts);
    memset(cuts, 0, sizeof cuts);
    step_through(unwind_workloads[i].run);
    printf("%-11s %-11s complete %8lu  cut %6lu  wrong %4lu  frames %9lu\n",
           how, unwind_workloads[i].name, (unsigned long)counts.complete,
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
    total->differ += counts.differ;
  }
}

int main(int argc, char **argv)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO};
  struct counts total = {0};
  bool verbose = argc > 1 && !strcmp(argv[1], "-v");
  by_code = argc > 1 && !strcmp(argv[1], "-c");
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
  if (by_code || TO_ROOT)
    run_round("interpreted", &total, verbose);
  if (!by_code) {
    ljp_unwind_poll(unwinder, 0);
    run_round("table", &total, verbose);
  }
  uint64_t all = total.complete + total.cut + total.wrong;
  printf("all: %lu instructions, %.3f %% complete, %lu cut, %lu wrong, %lu "
         "not judged, %lu with other registers\n",
         (unsigned long)all, 100.0 * (double)total.complete / (double)all,
         (unsigned long)total.cut, (unsigned long)total.wrong,
         (unsigned long)total.switching, (unsigned long)total.differ);
  ljp_unwind_free(unwinder);
  ljp_saferead_remove();
  /* Two stacks in a thousand may be cut (libc code that pushes without saying
  ** so, a library that is not in the map yet), or five if libc has no CFI. None
  ** may be wrong. */
  if (by_code) /* eh_return restores registers in ways of its own */
    return total.wrong || all < 200000 || total.cut * 2 > all ||
           total.differ * 2000 > all;
  return total.wrong || all < 200000 || total.cut * (TO_ROOT ? 500 : 200) > all;
}
