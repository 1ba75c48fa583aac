/*
** The oracle: runs a Lua script one machine instruction at a time. Before each
** instruction it takes the stack with the sampler's own code, and compares the
** stack with the truth of shadow.h.
**
** Usage: oracle [-j] [-v] [-n LIMIT] [-c SHARE] SCRIPT [ARG...]
**   -j        with the JIT compiler on
**   -v        print the first stacks that are wrong
**   -n LIMIT  stop stepping after this number of instructions
**   -c SHARE  fail if more than this percentage of the stacks is cut
** Walks with a memo must find the same stacks (memos.h), or the run fails; so
** must walks that know few registers (few.h).
** Prints counts, then a line for each function and reason with incomplete
** stacks. Exit status 1 if a stack was wrong. (With the JIT compiler on, only
** cuts are judged: the truth has no frames inside traces.)
*/
#define LUA_CORE

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"
#include "luajit.h"

#include "profilers/unwind/walk.h"
#include "src/luajit/frames.h"
#include "src/base/saferead.h"
#include "test/oracle/few.h"
#include "test/oracle/late.h"
#include "test/oracle/memos.h"
#include "test/oracle/report.h"
#include "test/oracle/shadow.h"

enum { FRAMES = 8192, TRAP_FLAG = 0x100 };
/* Stacks between two settled points. A callback that is being entered may step
** the collector before its first bytecode. */
enum { PENDING = 8192 };

/* A stack that differs from that of the last settled point. It must be that of
** the next one. */
struct pending {
  uint64_t rip, rsp;
  bool threw; /* an error was thrown since the last settled point */
  bool rest;  /* ... and this is the rest that it has left of the stack there */
  uint32_t count;
  uint64_t frame[FRAMES];
  struct shadow shadow;
};

static struct {
  struct ljp_unwind *unwind;
  struct shadow shadow;
  struct truth truth;
  struct pending *pending;
  uint32_t pendings;
  uint64_t steps, limit, lines_unknown;
  bool on, verbose, threw;
  uint32_t printed, printed_cut;
} run;

static uint64_t sample[FRAMES], expected[FRAMES];

/* -- Comparing ------------------------------------------------------------- */

/* Are the stacks equal, except for the line of the innermost Lua frame? Between
** two settled points the line may be that of either instruction, or unknown. */
static bool oracle_equal(const uint64_t *a, uint32_t a_count, const uint64_t *b,
                         uint32_t b_count)
{
  bool top = true;
  if (a_count != b_count)
    return false;
  for (uint32_t i = 0; i < a_count; i++) {
    if (a[i] == b[i]) {
      if (ljp_frame_kind(a[i]) == LJP_FRAME_LUA)
        top = false;
      continue;
    }
    if (ljp_frame_kind(a[i]) != LJP_FRAME_LUA ||
        ljp_frame_kind(b[i]) != LJP_FRAME_LUA ||
        ljp_frame_proto_ref(a[i]) != ljp_frame_proto_ref(b[i]))
      return false;
    if (!top && ljp_frame_line(a[i]) != 0)
      return false;
    if (ljp_frame_line(a[i]) == 0)
      run.lines_unknown++;
    top = false;
  }
  return true;
}

/* Is a what remains of b while an error unwinds it: the guest frames below some
** point, and the host frames except those that have already been unwound? */
static bool oracle_is_rest(const uint64_t *a, uint32_t a_count,
                           const uint64_t *b, uint32_t b_count, uint64_t rip)
{
  static uint64_t only_a[FRAMES], only_b[FRAMES];
  uint32_t guests_a = 0, guests_b = 0, tail = 0, at = 0;
  for (uint32_t i = 0; i < a_count; i++)
    if (ljp_frame_kind(a[i]) != LJP_FRAME_HOST)
      only_a[guests_a++] = a[i];
  for (uint32_t i = 0; i < b_count; i++)
    if (ljp_frame_kind(b[i]) != LJP_FRAME_HOST)
      only_b[guests_b++] = b[i];
  if (guests_a > guests_b ||
      !truth_taken_off(&run.truth, guests_b - guests_a, rip) ||
      !oracle_equal(only_a, guests_a, only_b + (guests_b - guests_a), guests_a))
    return false;
  /* Below the first guest frame nothing has changed. */
  while (tail < a_count && ljp_frame_kind(a[tail]) == LJP_FRAME_HOST)
    tail++;
  if (a_count - tail > b_count ||
      !oracle_equal(a + tail, a_count - tail, b + b_count - (a_count - tail),
                    a_count - tail))
    return false;
  /* Above it the host frames are in order. */
  for (uint32_t i = 0; i < tail; i++) {
    while (at < b_count && b[at] != a[i])
      at++;
    if (at++ == b_count)
      return false;
  }
  return true;
}

/* The address ranges of the libraries that throw errors. */
static struct {
  const char *name;
  uint64_t low, size;
} thrower[] = {{.name = "libgcc_s"}, {.name = "libunwind"}};

static int oracle_find_throwers(struct dl_phdr_info *info, size_t size,
                                void *arg)
{
  (void)size;
  (void)arg;
  for (int k = 0; k < 2; k++) {
    if (!strstr(info->dlpi_name, thrower[k].name))
      continue;
    for (int i = 0; i < info->dlpi_phnum; i++) {
      const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
      if (ph->p_type == PT_LOAD && ph->p_flags & PF_X) {
        thrower[k].low = info->dlpi_addr + ph->p_vaddr;
        thrower[k].size = ph->p_memsz;
      }
    }
  }
  return 0;
}

/* A program with musl has libgcc in itself. */
static bool oracle_throws(uint64_t rip)
{
  return rip == (uintptr_t)&_Unwind_RaiseException ||
         rip == (uintptr_t)&_Unwind_Resume ||
         rip - thrower[0].low < thrower[0].size ||
         rip - thrower[1].low < thrower[1].size;
}

/* libunwind blocks all signals while it looks for code. The kernel would end a
** process that blocks the signal of its single steps, and that of bad reads. */
__attribute__((visibility("default"))) int
sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
  static const int needed[] = {SIGTRAP, SIGSEGV, SIGBUS};
  sigset_t less;
  if (set && how != SIG_UNBLOCK) {
    less = *set;
    for (int i = 0; i < 3; i++)
      sigdelset(&less, needed[i]);
    set = &less;
  }
  return (int)syscall(SYS_rt_sigprocmask, how, set, old, 8);
}

static void oracle_judge(const struct pending *p)
{
  uint32_t count;
  if (truth_expect(&run.truth, &p->shadow, p->rip, p->rsp, expected, &count,
                   FRAMES) &&
      oracle_equal(p->frame, p->count, expected, count)) {
    report_note(COMPLETE, 0, p->rip);
    return;
  }
  if (p->rest) {
    report_note(PARTIAL, 0, p->rip);
    return;
  }
  report_note(WRONG, 0, p->rip);
  if (run.verbose && run.printed++ < 8) {
    uint32_t offset = 0;
    const char *symbol = ljp_guest_vm_symbol(p->rip, &offset);
    fprintf(stderr, "wrong at %s+%#x%s\n", symbol ? symbol : "host", offset,
            p->threw ? " (an error is on its way)" : "");
    if (!symbol)
      report_host(p->rip);
    report_frames("walked", p->frame, p->count);
    report_frames("next truth", expected, count);
  }
}

static void oracle_judge_pending(void)
{
  for (uint32_t i = 0; i < run.pendings; i++)
    oracle_judge(&run.pending[i]);
  run.pendings = 0;
}

/* -- Late samples ---------------------------------------------------------- */

static void oracle_judged_late(bool right, uint64_t rip)
{
  report_note(right ? DEFERRED : WRONG, 0, rip);
}

static void oracle_defer(const struct ljp_stack *stack, uint64_t rip,
                         uint64_t rsp)
{
  uint32_t want;
  if (!truth_expect(&run.truth, &run.shadow, rip, rsp, expected, &want,
                    FRAMES) ||
      !run.shadow.count ||
      !late_add(rip, stack, expected, want, run.shadow.entry[0].ret))
    report_note(WRONG, 0, rip);
}

/* -- Stepping -------------------------------------------------------------- */

static void oracle_print_cut(const struct ljp_walk *walk,
                             const struct ljp_regs *regs, uint64_t rip)
{
  uint32_t offset = 0;
  const char *symbol = ljp_guest_vm_symbol(rip, &offset);
  fprintf(stderr, "cut (%d) at %s+%#x (%#lx)\n", walk->stack.cut,
          symbol ? symbol : "host", offset, (long)rip);
  report_frames("walked", sample, walk->stack.count);
  fprintf(stderr, "    stopped with rip %#lx rsp %#lx known %#x\n",
          (long)regs->r[LJP_RIP], (long)regs->r[LJP_RSP], regs->known);
}

/* Does the truth expect these frames here? *want: the number that it
** expects. */
static bool oracle_is_expected(const uint64_t *frames, uint32_t count,
                               uint64_t rip, uint64_t rsp, uint32_t *want)
{
  return truth_expect(&run.truth, &run.shadow, rip, rsp, expected, want,
                      FRAMES) &&
         oracle_equal(frames, count, expected, *want);
}

/* The same, if a builtin has overwritten its own frame with its results. */
static bool oracle_is_replaced(const uint64_t *frames, uint32_t count,
                               uint64_t rip, uint64_t rsp, uint32_t *want)
{
  if (!truth_top_is_builtin(&run.truth))
    return false;
  truth_top_replaced(&run.truth, true);
  bool fits = oracle_is_expected(frames, count, rip, rsp, want);
  truth_top_replaced(&run.truth, false);
  return fits;
}

/* Keeps a stack that differs from that of the last settled point, until the
** next settled point. */
static void oracle_add_pending(const uint64_t *frames, uint32_t count,
                               uint64_t rip, uint64_t rsp)
{
  uint32_t want;
  if (run.pendings == PENDING) {
    /* Too many stacks between two settled points: an error is unwinding. */
    oracle_judge_pending();
  }
  struct pending *p = &run.pending[run.pendings++];
  p->rip = rip;
  p->rsp = rsp;
  p->threw = run.threw;
  p->rest = run.threw &&
            truth_expect(&run.truth, &run.shadow, rip, rsp, expected, &want,
                         FRAMES) &&
            oracle_is_rest(frames, count, expected, want, rip);
  p->count = count;
  memcpy(p->frame, frames, count * sizeof *frames);
  p->shadow.count = run.shadow.count;
  memcpy(p->shadow.entry, run.shadow.entry,
         run.shadow.count * sizeof *run.shadow.entry);
}

/* Compares the stack in sample[] with the truth. */
static void oracle_compare(const struct ljp_stack *stack, uint64_t rip,
                           uint64_t rsp)
{
  /* The leaf is the instruction itself. The root end lies outside the
  ** workload. */
  uint64_t *frames = sample;
  uint32_t count = stack->count, want;
  if (count && ljp_frame_payload(frames[0]) == rip) {
    frames++;
    count--;
  }
  for (uint32_t i = count; i-- > 0;) {
    if (run.shadow.count && ljp_frame_kind(frames[i]) == LJP_FRAME_HOST &&
        ljp_frame_payload(frames[i]) == run.shadow.entry[0].ret) {
      count = i + 1;
      break;
    }
  }
  if (oracle_is_expected(frames, count, rip, rsp, &want) ||
      oracle_is_replaced(frames, count, rip, rsp, &want))
    report_note(COMPLETE, 0, rip);
  else
    oracle_add_pending(frames, count, rip, rsp);
}

/* Is the state that of a builtin in a builtin's own code, whatever is left of
** its frame? lj_fff_res_ ends in the caller. */
static bool oracle_is_state(const struct ljp_walk *walk, uint64_t rip)
{
  uint32_t offset = 0;
  const char *symbol = ljp_guest_vm_symbol(rip, &offset);
  return !symbol || strncmp(symbol, "lj_ff", 5) != 0 ||
         strcmp(symbol, "lj_fff_res_") == 0 ||
         walk->guest.state == LJP_VMSTATE_BUILTIN;
}

/* Takes the stack of the stopped program as the sampler would. */
static void oracle_take_stack(void *context, uint64_t rip, uint64_t rsp)
{
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  struct ljp_walk walk;
  ljp_regs_from_context(&regs, context, &room);
  const struct ljp_unwind_map *map = ljp_unwind_acquire(run.unwind);
  enum ljp_walk_result result = ljp_walk(&walk, map, &regs, sample, FRAMES);
  memos_check(run.steps, map, context, &walk, result);
  few_check(map, context, &walk, result);
  ljp_unwind_release(run.unwind, map);
  /* Not where a lock of the loader may be half taken. */
  if (truth_settled(rip) && ljp_unwind_wants_poll(run.unwind))
    ljp_unwind_poll(run.unwind, 0);
  if (result == LJP_WALK_DEFER) {
    oracle_defer(&walk.stack, rip, rsp);
  } else if (walk.stack.cut) {
    report_note(CUT, walk.stack.cut, rip);
    if (run.verbose && run.printed_cut++ < 8)
      oracle_print_cut(&walk, &regs, rip);
  } else if (!oracle_is_state(&walk, rip)) {
    report_note(WRONG, 0, rip);
  } else {
    oracle_compare(&walk.stack, rip, rsp);
  }
}

static void oracle_on_trap(int sig, siginfo_t *info, void *context)
{
  (void)sig;
  (void)info;
  ucontext_t *uc = context;
  greg_t *gregs = uc->uc_mcontext.gregs;
  uint64_t rip = (uint64_t)gregs[REG_RIP], rsp = (uint64_t)gregs[REG_RSP];
  if (!run.on) {
    gregs[REG_EFL] &= ~TRAP_FLAG;
    return;
  }
  if (late_at_work())
    return;
  shadow_step(&run.shadow, rip, rsp);
  run.steps++;
  if (run.limit && run.steps >= run.limit && !late_waiting())
    run.on = false;
  if (oracle_throws(rip))
    run.threw = true;
  if (truth_left(&run.truth, rsp))
    oracle_judge_pending();
  if (truth_settled(rip)) {
    truth_read(&run.truth, &run.shadow, rsp, (uint64_t)gregs[REG_RDX],
               (uint64_t)gregs[REG_RBX]);
    oracle_judge_pending();
    run.threw = false;
  }
  if (!run.truth.valid)
    return; /* before the first bytecode */
  oracle_take_stack(context, rip, rsp);
}

/* Each of the two functions is the outermost frame that the shadow knows. */
static int oracle_lua_stepping(lua_State *L)
{
  int status;
  run.on = true;
  run.shadow.count = 0;
  run.shadow.last_rsp = 0;
  __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  status = lua_pcall(L, lua_gettop(L) - 1, 0, 0);
  run.on = false;
  __asm__ volatile("nop; nop");
  if (status)
    return lua_error(L);
  return 0;
}

int main(int argc, char **argv)
{
  bool jit = false;
  double most_cut = 100;
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; i++) {
    if (!strcmp(argv[i], "-j"))
      jit = true;
    else if (!strcmp(argv[i], "-v"))
      run.verbose = true;
    else if (!strcmp(argv[i], "-n") && i + 1 < argc)
      run.limit = strtoull(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "-c") && i + 1 < argc)
      most_cut = strtod(argv[++i], NULL);
  }
  if (i >= argc) {
    fprintf(stderr, "usage: oracle [-j] [-v] [-n LIMIT] [-c SHARE] "
                    "SCRIPT [ARG...]\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  run.pending = malloc(PENDING * sizeof *run.pending);
  if (!run.pending || ljp_saferead_install() != LJP_OK ||
      ljp_unwind_new(&run.unwind) != LJP_OK) {
    fprintf(stderr, "oracle: out of memory\n");
    return 2;
  }
  dl_iterate_phdr(oracle_find_throwers, NULL);
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (!memos_init(L, run.verbose))
    return 2;
  few_init(run.verbose);
  late_init(run.unwind, run.verbose, oracle_equal, oracle_judged_late);
  if (!jit)
    luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);

  static char stack[1 << 20];
  stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&ss, NULL);
  struct sigaction sa = {.sa_sigaction = oracle_on_trap,
                         .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGTRAP, &sa, NULL);

  lua_pushcfunction(L, oracle_lua_stepping);
  if (luaL_loadfile(L, argv[i])) {
    fprintf(stderr, "oracle: %s\n", lua_tostring(L, -1));
    return 2;
  }
  for (int k = i + 1; k < argc; k++)
    lua_pushstring(L, argv[k]);
  int status = lua_pcall(L, argc - i, 0, 0);
  run.on = false;
  report_add(WRONG, late_waiting()); /* never taken */
  if (status)
    fprintf(stderr, "oracle: script failed: %s\n", lua_tostring(L, -1));
  report_print(run.steps);
  uint64_t differ = memos_report() + few_report();
  lua_close(L);
  if (status)
    return 2;
  double cut =
      100.0 * (double)report_count(CUT) / (double)(run.steps ? run.steps : 1);
  /* The truth has no frames inside traces. */
  return (report_count(WRONG) && !jit) || differ || cut > most_cut ||
         !run.steps;
}
