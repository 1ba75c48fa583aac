/*
** Fibers in the manner of boost::context: a switch in assembly, stacks whose
** outermost frame has no unwind information, fibers that run on other threads
** than those that began them.
*/
#include <stdint.h>
#include <sys/mman.h>

#include "test/hosts/zoo/zoo.h"

enum { FIBERS = 3, STACK = 65536, TURNS = 17 };

/* zoo_switch(&here, there, value): leaves this stack, whose pointer goes into
** `here`, for the one that `there` points into. */
void *zoo_switch(void **here, void *there, void *value);
void zoo_begin(void);
void zoo_finish(void);
__asm__(".text\n"
        ".globl zoo_switch\n"
        "zoo_switch:\n"
        "  pushq %rbp; pushq %rbx; pushq %r15; pushq %r14; pushq %r13\n"
        "  pushq %r12\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r12; popq %r13; popq %r14; popq %r15; popq %rbx; popq %rbp\n"
        "  movq %rdx, %rax\n"
        "  movq %rdx, %rdi\n"
        "  popq %r8\n"
        "  jmpq *%r8\n"
        ".globl zoo_begin\n"
        "zoo_begin:\n"
        "  pushq %rbp\n"
        "  jmpq *%rbx\n"
        ".globl zoo_finish\n"
        "zoo_finish:\n"
        "  hlt\n");

struct fiber {
  lua_State *L;
  void *stack, *back;
  long sum;
  bool ended;
};

static struct fiber fibers[FIBERS];

static int yield(lua_State *L)
{
  struct fiber *self = lua_touserdata(L, lua_upvalueindex(1));
  zoo_switch(&self->stack, self->back, self);
  return 0;
}

static void run(struct fiber *self)
{
  lua_getglobal(self->L, "turns");
  lua_pushinteger(self->L, TURNS);
  zoo_need(!lua_pcall(self->L, 1, 1, 0), "pcall");
  self->sum = (long)lua_tointeger(self->L, -1);
  self->ended = true;
  zoo_switch(&self->stack, self->back, self);
}

static void make(struct fiber *f)
{
  uintptr_t *top;
  char *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  zoo_need(memory != MAP_FAILED, "mmap");
  f->L = zoo_vm();
  lua_pushlightuserdata(f->L, f);
  lua_pushcclosure(f->L, yield, 1);
  lua_setglobal(f->L, "yield");
  zoo_need(!luaL_dostring(f->L, "function turns(n)\n"
                                "  local sum = 0\n"
                                "  for i = 1, n do\n"
                                "    sum = sum + work(1)\n"
                                "    yield()\n"
                                "  end\n"
                                "  return sum\n"
                                "end\n"),
           "dostring");
  top = (uintptr_t *)(void *)(memory + STACK - 64);
  *--top = (uintptr_t)zoo_begin;
  *--top = (uintptr_t)zoo_finish; /* rbp, which becomes run()'s caller */
  *--top = (uintptr_t)run;        /* rbx */
  top -= 4;
  f->stack = top;
}

static void *turn_all(void *argument)
{
  for (int i = 0; i < FIBERS; i++)
    if (!fibers[i].ended)
      zoo_switch(&fibers[i].back, fibers[i].stack, &fibers[i]);
  return argument;
}

int main(void)
{
  if (ZOO_SANITIZED)
    zoo_skip("the sanitizer does not know these stacks");
  for (int i = 0; i < FIBERS; i++)
    make(&fibers[i]);
  for (int turn = 0; turn <= TURNS; turn++)
    if (turn % 3 == 2)
      zoo_join(zoo_thread(turn_all, NULL, 0));
    else
      turn_all(NULL);
  for (int i = 0; i < FIBERS; i++)
    zoo_say("fiber %d: %d %ld", i, fibers[i].ended, fibers[i].sum);
  return 0;
}
