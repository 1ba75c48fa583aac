/*
** How many instructions a program executes for the same work: before it was joined,
** meanwhile, and afterwards. A child has the VM and does the work; this process counts
** its instructions by single steps, and traces it at no other time, so that ljprof can
** join it.
** Usage: join_afterwards own|host, with commands on its standard input:
**   work ROUNDS   does each work so often
**   count         prints a line for each work: its name, and the median of a few rounds
** The first line that it prints is the number of the child, which is ready then.
** own: the VM has LuaJIT's allocator, whose work depends on what it has done before.
** host: it has one that takes as many instructions each time.
*/
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua.h"
#include "test/support/check.h"
#include "test/support/host_vm.h"

static const char *const works[] = {
    "numeric",     "calls",     "tables",     "strings",     "coroutines",
    "off_numeric", "off_calls", "off_tables", "off_strings", "off_coroutines"};
enum { WORKS = sizeof works / sizeof *works, ROUNDS = 3 };

/* Loaded twice, with different functions for the interpreter. */
static const char source[] =
    "if prefix == 'off_' then jit.off(true, true) end\n"
    "local kept = {}\n"
    "local function fib(n)\n"
    "  return n < 2 and n or fib(n - 1) + fib(n - 2) end\n"
    "local works = {}\n"
    "function works.numeric() local x = 0\n"
    "  for i = 1, 100 do x = (x * 31 + i % 7) % 1000003 end return x end\n"
    "function works.calls() return fib(7) end\n"
    "function works.tables()\n"
    "  for i = 1, 30 do kept[i % 8] = { i, { i + 1 }, name = i } end end\n"
    "function works.strings() local s = ''\n"
    "  for i = 1, 12 do s = tostring(i % 5) .. s:sub(1, 20) end return s end\n"
    "function works.coroutines()\n"
    "  local step = coroutine.wrap(function()\n"
    "    for i = 1, 20 do coroutine.yield(i) end end)\n"
    "  for i = 1, 20 do step() end end\n"
    "for name, f in pairs(works) do _G[prefix .. name] = f end\n";

/* The first and the last instruction that is counted. */
__attribute__((noinline, noclone)) static void mark_begin(void)
{
  raise(SIGTRAP);
}

__attribute__((noinline, noclone)) static void mark_end(void)
{
  __asm__ volatile("nop");
}

/* -- An allocator: lists of blocks, by size -------------------------------- */
enum { UNIT = 16, SIZES = 4096 };

static struct block {
  struct block *next;
} * lists[SIZES];

static void *give(size_t bytes)
{
  size_t size = (bytes + UNIT - 1) / UNIT;
  CHECK(size < SIZES);
  struct block *b = lists[size];
  if (!b)
    return aligned_alloc(UNIT, size * UNIT);
  lists[size] = b->next;
  return b;
}

static void take(void *at, size_t bytes)
{
  struct block *b = at;
  size_t size = (bytes + UNIT - 1) / UNIT;
  b->next = lists[size];
  lists[size] = b;
}

static void *host_alloc(void *unused, void *at, size_t before, size_t bytes)
{
  (void)unused;
  void *block = bytes ? give(bytes) : NULL;
  if (block && at)
    memcpy(block, at, before < bytes ? before : bytes);
  if (at && before)
    take(at, before);
  return block;
}

/* -- The child ------------------------------------------------------------- */
enum { COUNTED = 128 }; /* added to the number of a work */

static void child_work(lua_State *L, int work, int counted)
{
  /* The collector rests meanwhile, and each round begins with the same heap. */
  lua_gc(L, LUA_GCCOLLECT, 0);
  lua_gc(L, LUA_GCCOLLECT, 0);
  lua_gc(L, LUA_GCSTOP, 0);
  lua_getglobal(L, works[work]);
  if (counted)
    mark_begin();
  lua_call(L, 0, 0);
  if (counted)
    mark_end();
  lua_gc(L, LUA_GCRESTART, 0);
}

static void child_run(const char *allocator, int in, int out)
{
  unsigned char order;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  lua_State *L = strcmp(allocator, "own") == 0 ? luaL_newstate()
                                               : lua_newstate(host_alloc, NULL);
  CHECK(L);
  luaL_openlibs(L);
  run(L, "prefix = ''");
  run(L, source);
  run(L, "prefix = 'off_'");
  run(L, source);
  order = 0;
  CHECK(write(out, &order, 1) == 1);
  while (read(in, &order, 1) == 1) {
    child_work(L, order % COUNTED, order >= COUNTED);
    CHECK(write(out, &order, 1) == 1);
  }
  lua_close(L);
  exit(0);
}

/* -- Its parent ------------------------------------------------------------ */
static pid_t child;
static int to_child[2], from_child[2];

static void order(int what)
{
  unsigned char byte = (unsigned char)what;
  CHECK(write(to_child[1], &byte, 1) == 1);
}

static void await_answer(void)
{
  unsigned char byte;
  CHECK(read(from_child[0], &byte, 1) == 1);
}

static void await_stop(int *status)
{
  CHECK(waitpid(child, status, __WALL) == child && WIFSTOPPED(*status));
}

static uint64_t count_once(int work)
{
  int status;
  uint64_t count = 0;
  long rip;
  CHECK(!ptrace(PTRACE_SEIZE, child, NULL, NULL));
  order(work + COUNTED);
  await_stop(&status);
  CHECK(WSTOPSIG(status) == SIGTRAP);
  do {
    CHECK(!ptrace(PTRACE_SINGLESTEP, child, NULL, NULL));
    await_stop(&status);
    CHECK(WSTOPSIG(status) == SIGTRAP);
    count++;
    rip = ptrace(PTRACE_PEEKUSER, child, (void *)(8L * RIP), NULL);
  } while (rip != (long)(uintptr_t)mark_end);
  CHECK(!ptrace(PTRACE_DETACH, child, NULL, NULL));
  await_answer();
  return count;
}

static int compare(const void *a, const void *b)
{
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void count_all(void)
{
  for (int work = 0; work < WORKS; work++) {
    uint64_t count[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
      count[i] = count_once(work);
    qsort(count, ROUNDS, sizeof *count, compare);
    printf("%s %llu\n", works[work], (unsigned long long)count[ROUNDS / 2]);
  }
  printf("counted\n");
}

static void work_all(long rounds)
{
  for (long i = 0; i < rounds; i++)
    for (int work = 0; work < WORKS; work++) {
      order(work);
      await_answer();
    }
  printf("worked\n");
}

int main(int argc, char **argv)
{
  char line[64];
  CHECK(argc == 2);
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(!pipe(to_child) && !pipe(from_child));
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(to_child[1]);
    child_run(argv[1], to_child[0], from_child[1]);
  }
  await_answer();
  printf("%d\n", (int)child);
  while (fgets(line, sizeof line, stdin)) {
    if (strncmp(line, "work ", 5) == 0)
      work_all(strtol(line + 5, NULL, 10));
    else if (strcmp(line, "count\n") == 0)
      count_all();
  }
  close(to_child[1]);
  CHECK(waitpid(child, NULL, 0) == child);
  return 0;
}
