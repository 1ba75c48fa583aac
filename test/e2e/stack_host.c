/*
** A host whose Lua code runs where there is little stack, and that measures how
** much of it is used. Each stack is filled with a pattern before.
**
** usage: stack_host PLACE BYTES START STOP
**
**   PLACE  alternate  BYTES are an alternate signal stack; Lua runs on the
**                     thread's own large stack
**          thread     Lua runs on a thread with a stack of BYTES
**          fiber      Lua runs on a coroutine of makecontext() or its like
**          faults     as alternate; then samples make the handler fault
**   BYTES  with a "g" the page below the stack may not be touched; without it
**          the pattern goes on below, and must be unchanged at the end. With an
**          "a" the VM is made there, too, and START and STOP run there
**   START  Lua code that runs before, on the thread's own stack, with the VM
**   STOP   the same after it
**
** prints "used N frame M": the bytes of the stack that were written, and those
** that a handler which does nothing takes of it.
*/
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#ifdef __GLIBC__
#include <ucontext.h>
#else
#include "src/base/side_stack.h"
#endif

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

enum { PAGE = 4096, BELOW = 4 * PAGE, MOST = 1 << 20 };
#define PATTERN UINT64_C(0x5a17c0de5a17c0de)

/* -- A painted stack ------------------------------------------------------- */
static struct {
  char *low, *top;  /* the stack */
  uint64_t *lowest; /* of what is painted */
} stack;

static void stack_paint(void)
{
  for (uint64_t *at = stack.lowest; at < (uint64_t *)(void *)stack.top; at++)
    *(volatile uint64_t *)at = PATTERN;
}

static void stack_map(size_t bytes, bool guard)
{
  char *at = mmap(NULL, BELOW + bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    exit(2);
  stack.low = at + BELOW;
  stack.top = stack.low + bytes;
  stack.lowest = (uint64_t *)(void *)(guard ? stack.low : at);
  if (guard && mprotect(at, BELOW, PROT_NONE))
    exit(2);
  stack_paint();
}

static size_t stack_used(void)
{
  const uint64_t *at = stack.lowest;
  while ((const char *)at < stack.top && *at == PATTERN)
    at++;
  return (size_t)(stack.top - (const char *)at);
}

/* -- What Lua does --------------------------------------------------------- */
static lua_State *vm;

static void run(const char *code)
{
  if (luaL_loadbuffer(vm, code, strlen(code), "=stack_host") ||
      lua_pcall(vm, 0, 0, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(vm, -1));
    exit(1);
  }
}

static int call_back(lua_State *L)
{
  lua_settop(L, 1);
  lua_call(L, 0, 1);
  return 1;
}

static const char work[] =
    "local keep = {}\n"
    "local function deep(n) return n == 0 and {} or (deep(n - 1)) end\n"
    "local function branchy(i)\n"
    "  if i % 7 == 0 then return {i} elseif i % 3 == 0 then return 'x' .. i\n"
    "  else return function() return i end end\n"
    "end\n"
    "local function round(i)\n"
    "  for j = 1, 50 do keep[j] = branchy(i + j) end\n"
    "  keep[51] = call_back(function() return deep(9) end)\n"
    "  keep[52] = ('a b ' .. i):match('%d+') .. ('x'):rep(i % 90)\n"
    "  keep[53] = select(2, pcall(error, {}))\n"
    "  local co = coroutine.wrap(function()\n"
    "    for k = 1, 5 do coroutine.yield({k}) end\n"
    "  end)\n"
    "  for _ = 1, 5 do keep[54] = co() end\n"
    "  table.sort({3, 1, 2, i}, function(a, b) return a < b end)\n"
    "  local grown = {}\n"
    "  for k = 1, 40 do grown[k] = tostring(k + i) end\n"
    "end\n"
    "local till = os.clock() + 0.3\n"
    "local i = 0\n"
    "repeat\n"
    "  for _ = 1, 20 do i = i + 1; round(i) end\n"
    "  if i % 400 == 0 then jit.flush() end\n"
    "until os.clock() > till and i > 400\n"
    "collectgarbage()\n";

static void nothing(int number, siginfo_t *info, void *context)
{
  (void)number;
  (void)info;
  (void)context;
}

static size_t frame_bytes(void)
{
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  action.sa_sigaction = nothing;
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  /* With a handler the timer posix would be tick. */
  signal(SIGUSR1, SIG_DFL);
  return stack_used();
}

static const char *start, *stop;
static bool all_there; /* the VM's and the session's beginning and end, too */

static void begin(void)
{
  vm = luaL_newstate();
  luaL_openlibs(vm);
  lua_pushcfunction(vm, call_back);
  lua_setglobal(vm, "call_back");
  run(start);
  if (luaL_loadbuffer(vm, work, sizeof work - 1, "=work"))
    exit(2);
}

static void end(void)
{
  run(stop);
  lua_close(vm);
}

static void do_work(void)
{
  if (all_there)
    begin();
  if (lua_pcall(vm, 0, 0, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(vm, -1));
    exit(1);
  }
  if (all_there)
    end();
}

/* -- Where it runs --------------------------------------------------------- */
static void *in_thread(void *unused)
{
  do_work();
  return unused;
}

static void on_thread(void)
{
  pthread_t thread;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  if (pthread_attr_setstack(&attr, stack.low,
                            (size_t)(stack.top - stack.low)) ||
      pthread_create(&thread, &attr, in_thread, NULL) ||
      pthread_join(thread, NULL))
    exit(2);
}

/* A function whose CFI leads to where nothing can be read: each sample of it
** makes a fault in the handler. rdi: where; rsi: turns. */
void spin_at(const void *where, uint64_t turns);
__asm__(".text\n"
        ".globl spin_at\n"
        ".type spin_at, @function\n"
        "spin_at:\n"
        ".cfi_startproc\n"
        "  pushq %rbp\n"
        ".cfi_def_cfa rbp, 16\n"
        ".cfi_offset rbp, -16\n"
        "  movq %rdi, %rbp\n"
        "1:\n"
        "  decq %rsi\n"
        "  jnz 1b\n"
        "  popq %rbp\n"
        "  ret\n"
        ".cfi_endproc\n"
        ".size spin_at, . - spin_at\n");

/* On a thread whose stack has an unreadable page above, where a step may lead.
*/
static void *in_faults(void *page)
{
  const stack_t alternate = {.ss_sp = stack.low,
                             .ss_size = (size_t)(stack.top - stack.low)};
  if (sigaltstack(&alternate, NULL))
    exit(2);
  do_work(); /* so that the thread has run Lua */
  for (clock_t end_at = clock() + CLOCKS_PER_SEC / 5; clock() < end_at;)
    spin_at((char *)page + 64, 100000);
  return NULL;
}

static void on_faults(void)
{
  pthread_t thread;
  pthread_attr_t attr;
  char *at = mmap(NULL, MOST + PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_init(&attr);
  if (at == MAP_FAILED || mprotect(at + MOST, PAGE, PROT_NONE) ||
      pthread_attr_setstack(&attr, at, MOST) ||
      pthread_create(&thread, &attr, in_faults, at + MOST) ||
      pthread_join(thread, NULL))
    exit(2);
}

#ifdef __GLIBC__
static ucontext_t fiber, back;

static void in_fiber(void)
{
  do_work();
}

static void on_fiber(void)
{
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = stack.low;
  fiber.uc_stack.ss_size = (size_t)(stack.top - stack.low);
  fiber.uc_link = &back;
  makecontext(&fiber, in_fiber, 0);
  swapcontext(&back, &fiber);
}
#else /* musl has no makecontext() */
static void in_fiber(void *a, void *b, void *c)
{
  (void)a;
  (void)b;
  (void)c;
  do_work();
}

static void on_fiber(void)
{
  ljp_side_call(NULL, NULL, NULL, in_fiber, stack.top);
}
#endif

int main(int argc, char **argv)
{
  char *flags = "";
  size_t bytes = argc == 5 ? strtoul(argv[2], &flags, 10) : 0, frame = 0;
  if (bytes < 2048 || bytes > MOST || strspn(flags, "ga") != strlen(flags)) {
    fprintf(stderr, "usage: stack_host PLACE BYTES START STOP\n");
    return 2;
  }
  start = argv[3];
  stop = argv[4];
  all_there = strchr(flags, 'a') != NULL;
  stack_map(bytes, strchr(flags, 'g') != NULL);
  if (strcmp(argv[1], "alternate") == 0) {
    stack_t alternate = {.ss_sp = stack.low, .ss_size = bytes};
    if (sigaltstack(&alternate, NULL))
      return 2;
    frame = frame_bytes();
    stack_paint();
  }
  if (!all_there)
    begin();
  if (strcmp(argv[1], "alternate") == 0)
    do_work();
  else if (strcmp(argv[1], "faults") == 0)
    on_faults();
  else if (strcmp(argv[1], "thread") == 0)
    on_thread();
  else
    on_fiber();
  if (!all_there)
    end();
  size_t used = stack_used();
  printf("used %zu frame %zu\n", used, frame);
  if (used > bytes) {
    fprintf(stderr, "%zu bytes below the stack were written\n", used - bytes);
    return 1;
  }
  return 0;
}
