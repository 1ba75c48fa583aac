/* Host unwinding compared with libunwind, where signals interrupt code of many
** shapes; and maps of the loaded objects as libraries come and go. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <alloca.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "profilers/unwind/unwind.h"
#include "src/base/saferead.h"

enum { DEPTH = 200 };

static struct ljp_unwind *unwinder;

static struct {
  int ours, theirs;
  enum ljp_unwind_result end;
  uint64_t our_pc[DEPTH], our_sp[DEPTH];
  uint64_t their_pc[DEPTH], their_sp[DEPTH];
} seen;

static void walk_ours(const void *context)
{
  const ucontext_t *uc = context;
  struct ljp_unwind_room room;
  struct ljp_regs regs;
  assert_true(ljp_saferead_enter(&uc->uc_sigmask));
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  ljp_regs_from_context(&regs, context, &room);
  seen.end = LJP_UNWIND_STEPPED;
  for (seen.ours = 0; seen.ours < DEPTH && !seen.end; seen.ours++) {
    seen.our_pc[seen.ours] = regs.r[LJP_RIP];
    seen.our_sp[seen.ours] = regs.r[LJP_RSP];
    seen.end = ljp_unwind_step(map, &regs);
  }
  ljp_unwind_release(unwinder, map);
}

static void walk_theirs(void *context)
{
  unw_cursor_t cursor;
  unw_word_t word;
  seen.theirs = 0;
  if (unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME))
    return;
  do {
    unw_get_reg(&cursor, UNW_REG_IP, &word);
    if (word == 0)
      break;
    seen.their_pc[seen.theirs] = word;
    unw_get_reg(&cursor, UNW_REG_SP, &word);
    seen.their_sp[seen.theirs++] = word;
  } while (seen.theirs < DEPTH && unw_step(&cursor) > 0);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
  (void)number;
  (void)info;
  walk_ours(context);
  walk_theirs(context);
}

static int install(int number, int flags)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO | flags};
  action.sa_sigaction = on_signal;
  return sigaction(number, &action, NULL);
}

/* Both found the same frames, down to the end of the stack. */
static void assert_same(int at_least)
{
  assert_int_equal(seen.end, LJP_UNWIND_END);
  assert_true(seen.ours >= at_least);
  assert_int_equal(seen.ours, seen.theirs);
  for (int i = 0; i < seen.ours; i++) {
    assert_true(seen.our_pc[i] == seen.their_pc[i]);
    assert_true(seen.our_sp[i] == seen.their_sp[i]);
  }
}

#define NOINLINE __attribute__((noinline, noclone))

static NOINLINE int recurse(int depth)
{
  volatile int kept = depth;
  if (depth == 0)
    return raise(SIGUSR1);
  return recurse(depth - 1) + kept;
}

static void deep_recursion(void)
{
  recurse(100);
  assert_same(103);
}

static NOINLINE int with_alloca(int depth)
{
  volatile char *block = alloca((size_t)depth * 48 + 16);
  char vla[depth + 1];
  memset(vla, depth, sizeof vla);
  block[0] = vla[0];
  if (depth == 0)
    return raise(SIGUSR1);
  return with_alloca(depth - 1) + block[0];
}

static void frames_of_unknown_size(void)
{
  with_alloca(23);
  assert_same(26);
}

static NOINLINE int realigned(int depth)
{
  _Alignas(64) volatile char block[64];
  block[1] = (char)depth;
  if (depth == 0)
    return raise(SIGUSR1);
  return realigned(depth - 1) + block[1];
}

static void realigned_frames(void)
{
  realigned(17);
  assert_same(20);
}

static int compare(const void *a, const void *b)
{
  static int calls;
  if (++calls % 7 == 0)
    raise(SIGUSR1);
  return *(const int *)a - *(const int *)b;
}

static void callbacks_out_of_qsort(void)
{
  int numbers[31];
  for (int i = 0; i < 31; i++)
    numbers[i] = i * 37 % 31;
  qsort(numbers, 31, sizeof *numbers, compare);
  assert_int_equal(numbers[30], 30);
  assert_same(6);
}

static void nested(int number)
{
  (void)number;
  recurse(3);
}

static void a_signal_within_a_signal(void)
{
  signal(SIGUSR2, nested);
  raise(SIGUSR2);
  assert_same(11);
}

static char alternate[1 << 16];

static void a_signal_on_an_alternate_stack(void)
{
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  struct sigaction action = {.sa_handler = nested, .sa_flags = SA_ONSTACK};
  assert_int_equal(sigaltstack(&stack, NULL), 0);
  assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
  raise(SIGUSR2);
  assert_same(11);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, NULL);
}

static ucontext_t fiber, home;
static int fiber_rounds;

static void in_fiber(void)
{
  for (;;) {
    fiber_rounds++;
    recurse(5);
    swapcontext(&fiber, &home);
  }
}

static void fibers(void)
{
  static char stack[1 << 16];
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = stack;
  fiber.uc_stack.ss_size = sizeof stack;
  fiber.uc_link = &home;
  makecontext(&fiber, in_fiber, 0);
  for (int i = 1; i <= 3; i++) {
    swapcontext(&home, &fiber);
    assert_int_equal(seen.end, LJP_UNWIND_END);
    assert_int_equal(fiber_rounds % 3, i % 3);
    /* raise, six times recurse, in_fiber, and the function with which glibc
    ** starts a context. */
    assert_in_range(seen.ours, 9, 11);
    for (int k = 0; k < seen.ours - 1; k++)
      assert_true(seen.our_pc[k] == seen.their_pc[k]);
  }
}

/* Enters a function on another stack with the instructions that boost::context
** uses, and like it without CFI. */
void fiber_begin(void *stack, void (*function)(void));
__asm__(".pushsection .text\n"
        "fiber_begin:\n"
        "  movq %rdi, %rsp\n"
        "  movq %rsi, %rbx\n"
        "  leaq 1f(%rip), %rbp\n"
        "  pushq %rbp\n"
        "  jmpq *%rbx\n"
        "1:\n"
        "  xorq %rdi, %rdi\n"
        "  call _exit@PLT\n"
        "  hlt\n"
        ".popsection\n");

static void in_boost_fiber(void)
{
  recurse(5);
  setcontext(&home);
}

static void a_fiber_of_boost(void)
{
  static char stack[1 << 16] __attribute__((aligned(16)));
  volatile bool been = false;
  getcontext(&home);
  if (!been) {
    been = true;
    fiber_begin(stack + sizeof stack, in_boost_fiber);
  }
  assert_int_equal(seen.end, LJP_UNWIND_END);
  /* raise, six times recurse, in_boost_fiber, and where it would return to. */
  assert_in_range(seen.ours, 9, 11);
}

static jmp_buf jump;

static void after_longjmp(void)
{
  if (setjmp(jump) == 0) {
    recurse(2);
    longjmp(jump, 1);
  }
  recurse(4);
  assert_same(7);
}

static int zero_depth(void)
{
  return recurse(0);
}

static void jit_code_ends_the_walk_with_its_reason(void)
{
  static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5,
                                 0xff, 0xd7, 0x5d, 0xc3};
  int (*call)(int (*)(void));
  uint8_t *jit = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(jit, MAP_FAILED);
  memcpy(jit, code, sizeof code);
  memcpy(&call, &jit, sizeof jit);
  call(zero_depth);
  assert_int_equal(seen.end, LJP_UNWIND_NO_MODULE);
  assert_true(seen.our_pc[seen.ours - 1] == (uintptr_t)jit + 6);
  assert_in_range(seen.ours, 3, 7);
  munmap(jit, 4096);
}

static void an_object_loaded_later_is_followed_and_let_go(void)
{
  struct ljp_unwind_stats before, during, after;
  ljp_unwind_stats(unwinder, &before);
  void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    library = dlopen("libcrypt.so.1", RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  void *inside = dlsym(library, "crc32");
  if (!inside)
    inside = dlsym(library, "crypt");
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  assert_false(ljp_unwind_has_module(map, (uintptr_t)inside));
  /* The map stays while it is held. */
  assert_int_equal(ljp_unwind_poll(unwinder, 1), LJP_OK);
  assert_false(ljp_unwind_has_module(map, (uintptr_t)inside));
  ljp_unwind_release(unwinder, map);
  map = ljp_unwind_acquire(unwinder);
  assert_true(ljp_unwind_has_module(map, (uintptr_t)inside));
  ljp_unwind_stats(unwinder, &during);
  assert_int_equal(during.maps, before.maps + 1);
  assert_int_equal(during.objects, before.objects + 1);
  /* Objects that are still loaded keep their tables. */
  assert_int_equal(during.tables, before.tables);
  /* The object is unloaded while the map is held: a step in it does not fault,
  ** and says why. */
  struct ljp_unwind_room room;
  struct ljp_regs regs = {.known = LJP_REGS_ALL, .exact = true, .room = &room};
  regs.r[LJP_RIP] = (uintptr_t)inside;
  regs.r[LJP_RSP] = (uintptr_t)&regs & ~UINT64_C(15);
  dlclose(library);
  assert_int_equal(ljp_unwind_step(map, &regs), LJP_UNWIND_STALE);
  assert_true(ljp_unwind_wants_poll(unwinder));
  ljp_unwind_release(unwinder, map);
  assert_int_equal(ljp_unwind_poll(unwinder, 1), LJP_OK);
  ljp_unwind_stats(unwinder, &after);
  assert_int_equal(after.objects, before.objects);
  assert_int_equal(after.maps, before.maps + 2);
}

/* Takes one exact step at an address. words: how many are on the stack before
** the return address. */
static void expect_step(const struct ljp_unwind_map *map, uintptr_t address,
                        int words)
{
  static uint64_t stack[8];
  uint64_t back = (uintptr_t)__builtin_return_address(0);
  stack[words] = back;
  struct ljp_unwind_room room;
  struct ljp_regs regs = {.known = LJP_REGS_ALL, .exact = true, .room = &room};
  regs.r[LJP_RIP] = address;
  regs.r[LJP_RSP] = (uintptr_t)stack;
  assert_int_equal(ljp_unwind_step(map, &regs), LJP_UNWIND_STEPPED);
  assert_true(regs.r[LJP_RIP] == back);
  assert_true(regs.r[LJP_RSP] == (uintptr_t)&stack[words + 1]);
  stack[words] = 0;
}

static void an_object_that_no_view_knows_is_asked_of_glibc(void)
{
  if (!dlsym(RTLD_DEFAULT, "_dl_find_object"))
    return;
  void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  uintptr_t inside = (uintptr_t)dlsym(library, "crc32"), init = 0;
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  assert_false(ljp_unwind_has_module(map, inside));
  expect_step(map, inside, 0);
  /* _init comes from a start file without CFI and is known by its bytes. */
  struct link_map *link;
  assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &link), 0);
  for (const ElfW(Dyn) *d = link->l_ld; d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_INIT)
      init = link->l_addr + d->d_un.d_ptr;
  assert_true(init != 0);
  bool marked = *(const uint8_t *)init == 0xf3; /* endbr64 */
  expect_step(map, init, 0);
  expect_step(map, init + 4, marked ? 0 : 1);
  dlclose(library);
  struct ljp_unwind_room room;
  struct ljp_regs regs = {.known = LJP_REGS_ALL, .exact = true, .room = &room};
  regs.r[LJP_RIP] = inside;
  regs.r[LJP_RSP] = (uintptr_t)&regs & ~UINT64_C(15);
  assert_int_equal(ljp_unwind_step(map, &regs), LJP_UNWIND_NO_MODULE);
  ljp_unwind_release(unwinder, map);
  assert_int_equal(ljp_unwind_poll(unwinder, 1), LJP_OK);
}

static void views_in_use_are_never_freed(void)
{
  const struct ljp_unwind_map *held[3];
  struct ljp_unwind_stats before, after;
  ljp_unwind_stats(unwinder, &before);
  /* Three maps are held and a fourth is current: no slot is left for a
  ** fifth. */
  for (int i = 0; i < 3; i++) {
    held[i] = ljp_unwind_acquire(unwinder);
    void *library = dlopen("libcrypt.so.1", RTLD_NOW);
    assert_non_null(library);
    if (i % 2)
      dlclose(library);
    dlclose(library);
    assert_int_equal(ljp_unwind_poll(unwinder, 1), LJP_OK);
  }
  void *library = dlopen("libcrypt.so.1", RTLD_NOW);
  assert_non_null(library);
  void *inside = dlsym(library, "crypt");
  assert_int_equal(ljp_unwind_poll(unwinder, 1), LJP_OK);
  ljp_unwind_stats(unwinder, &after);
  assert_int_equal(after.maps, before.maps + 3);
  assert_true(after.retired_busy > before.retired_busy);
  for (int i = 0; i < 3; i++)
    ljp_unwind_release(unwinder, held[i]);
  assert_int_equal(ljp_unwind_poll(unwinder, 1), LJP_OK);
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  assert_true(ljp_unwind_has_module(map, (uintptr_t)inside));
  ljp_unwind_release(unwinder, map);
  dlclose(library);
  assert_int_equal(ljp_unwind_poll(unwinder, 1), LJP_OK);
}

static void bad_stacks_stop_the_walk_with_a_reason(void)
{
  const struct ljp_unwind_map *map = ljp_unwind_acquire(unwinder);
  char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct ljp_unwind_room room;
  struct ljp_regs regs = {.known = LJP_REGS_ALL, .exact = true, .room = &room},
                  kept;
  /* At a function's first instruction the CFA is rsp + 8. */
  regs.r[LJP_RIP] = (uintptr_t)zero_depth;
  regs.r[LJP_RSP] = (uintptr_t)none + 64;
  kept = regs;
  assert_int_equal(ljp_unwind_step(map, &regs), LJP_UNWIND_UNREADABLE);
  assert_memory_equal(regs.r, kept.r, sizeof regs.r);
  regs.r[LJP_RSP] = (uintptr_t)none + 67;
  assert_int_equal(ljp_unwind_step(map, &regs), LJP_UNWIND_BAD_CFA);
  regs.r[LJP_RSP] = UINT64_MAX - 7;
  assert_int_equal(ljp_unwind_step(map, &regs), LJP_UNWIND_UNREADABLE);
  regs.known = LJP_REGS_ALL & ~(1u << LJP_RSP);
  assert_int_equal(ljp_unwind_step(map, &regs), LJP_UNWIND_UNKNOWN_REG);
  munmap(none, 4096);
  ljp_unwind_release(unwinder, map);
}

static int use_tables(void **state)
{
  (void)state;
  struct ljp_unwind_stats stats;
  ljp_unwind_poll(unwinder, 0);
  ljp_unwind_stats(unwinder, &stats);
  return stats.tables < 2 || stats.failed;
}

static int set_up(void **state)
{
  (void)state;
  return ljp_unwind_new(&unwinder) || install(SIGUSR1, 0);
}

static int tear_down(void **state)
{
  (void)state;
  ljp_unwind_free(unwinder);
  return 0;
}

/* cmocka installs a SIGSEGV handler of its own for each test; ours goes on
** top. */
static void protect(void **state)
{
  void (*body)(void);
  memcpy(&body, state, sizeof body);
  assert_int_equal(ljp_saferead_install(), LJP_OK);
  assert_true(ljp_saferead_check());
  body();
  ljp_saferead_remove();
}

int main(void)
{
#define SHAPE(body)                                                            \
  {                                                                            \
#body, protect, NULL, NULL, body                                           \
  }
#define SHAPES                                                                 \
  SHAPE(deep_recursion), SHAPE(frames_of_unknown_size),                        \
      SHAPE(realigned_frames), SHAPE(callbacks_out_of_qsort),                  \
      SHAPE(a_signal_within_a_signal), SHAPE(a_signal_on_an_alternate_stack),  \
      SHAPE(fibers), SHAPE(a_fiber_of_boost), SHAPE(after_longjmp),            \
      SHAPE(jit_code_ends_the_walk_with_its_reason),                           \
      SHAPE(bad_stacks_stop_the_walk_with_a_reason)
  const struct CMUnitTest interpreted[] = {SHAPES};
  const struct CMUnitTest by_table[] = {
      SHAPES,
      SHAPE(an_object_loaded_later_is_followed_and_let_go),
      SHAPE(an_object_that_no_view_knows_is_asked_of_glibc),
      SHAPE(views_in_use_are_never_freed),
  };
  int failed = set_up(NULL);
  if (failed)
    return 1;
  failed = cmocka_run_group_tests(interpreted, NULL, NULL);
  failed += cmocka_run_group_tests(by_table, use_tables, NULL);
  return failed + tear_down(NULL);
}
