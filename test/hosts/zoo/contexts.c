/*
** makecontext() coroutines with stacks of 16 KiB and a guard page below. Each
** has a VM; Lua switches between them through a C function.
** zoo: glibc musl has no swapcontext()
*/
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "test/hosts/zoo/zoo.h"

enum { CONTEXTS = 4, STACK = 16384, TURNS = 23 };

static ucontext_t scheduler, contexts[CONTEXTS];
static lua_State *vms[CONTEXTS];
static long sums[CONTEXTS];
static int current, ended;

static int yield(lua_State *L)
{
  int self = current;
  zoo_need(!swapcontext(&contexts[self], &scheduler), "swapcontext");
  lua_pushinteger(L, self);
  return 1;
}

static void run(void)
{
  lua_State *L = vms[current];
  int self = current;
  lua_getglobal(L, "turns");
  lua_pushinteger(L, TURNS);
  zoo_need(!lua_pcall(L, 1, 1, 0), "pcall");
  sums[self] = (long)lua_tointeger(L, -1);
  ended++;
  for (;;)
    swapcontext(&contexts[self], &scheduler);
}

int main(void)
{
  if (ZOO_SANITIZED)
    zoo_skip("the sanitizer's own functions need more stack");
  for (int i = 0; i < CONTEXTS; i++) {
    vms[i] = zoo_vm();
    lua_register(vms[i], "yield", yield);
    zoo_need(!luaL_dostring(vms[i], "function turns(n)\n"
                                    "  local sum = 0\n"
                                    "  for i = 1, n do\n"
                                    "    sum = sum + light(1) + yield()\n"
                                    "  end\n"
                                    "  return sum\n"
                                    "end\n"),
             "dostring");
    char *memory = mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    zoo_need(memory != MAP_FAILED && !mprotect(memory, 4096, PROT_NONE),
             "mmap");
    zoo_need(!getcontext(&contexts[i]), "getcontext");
    contexts[i].uc_stack.ss_sp = memory + 4096;
    contexts[i].uc_stack.ss_size = STACK;
    makecontext(&contexts[i], run, 0);
  }
  while (ended < CONTEXTS) {
    zoo_need(!swapcontext(&scheduler, &contexts[current]), "swapcontext");
    current = (current + 1) % CONTEXTS;
  }
  for (int i = 0; i < CONTEXTS; i++)
    zoo_say("context %d: %ld", i, sums[i]);
  return 0;
}
