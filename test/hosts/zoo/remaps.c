/*
** A host that manages its stacks itself: threads on memory of its own that is
** unmapped as soon as they have ended, coroutines whose suspended stacks move
** away and back by mremap(), and pages below the stack pointer that are given
** back by madvise().
** zoo: glibc musl has no swapcontext()
*/
#include <sys/mman.h>
#include <ucontext.h>

#include "test/hosts/zoo/zoo.h"

enum { STACK = 256 << 10, TURNS = 15 };

static ucontext_t outside, inside;
static long sum;

static char *stack_new(void)
{
  void *at = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  zoo_need(at != MAP_FAILED, "a stack");
  return at;
}

static int leave(lua_State *L)
{
  swapcontext(&inside, &outside);
  return lua_gettop(L) - lua_gettop(L);
}

static void coroutine(void)
{
  lua_State *L = zoo_vm();
  lua_register(L, "leave", leave);
  for (int i = 0; i < TURNS; i++) {
    sum += zoo_light(L, 1);
    zoo_need(!luaL_dostring(L, "local x = 0 for i = 1, 200 do x = x + i end "
                               "leave()"),
             "leave");
  }
  lua_close(L);
}

static void *thread(void *arg)
{
  lua_State *L = arg;
  char here;
  for (int i = 0; i < 4; i++) {
    char *below = (char *)((((size_t)&here) & ~(size_t)4095) - (32 << 10));
    madvise(below, 16 << 10, MADV_DONTNEED);
    zoo_need(zoo_light(L, 1) != 0, "work");
  }
  return arg;
}

static void run_thread(lua_State *L)
{
  char *stack = stack_new();
  pthread_attr_t attr;
  pthread_t id;
  pthread_attr_init(&attr);
  zoo_need(!pthread_attr_setstack(&attr, stack, STACK) &&
               !pthread_create(&id, &attr, thread, L),
           "a thread");
  pthread_attr_destroy(&attr);
  zoo_join(id);
  zoo_need(!munmap(stack, STACK), "munmap");
}

int main(void)
{
  if (ZOO_SANITIZED)
    zoo_skip("sanitizers do not follow stacks that move");
  lua_State *L = zoo_vm();
  char *stack = stack_new();
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = STACK;
  inside.uc_link = &outside;
  makecontext(&inside, coroutine, 0);
  for (int i = 0; i <= TURNS; i++) {
    swapcontext(&outside, &inside);
    char *away = stack_new();
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    /* Nobody else may get the place meanwhile. */
    if (mremap(stack, STACK, STACK, flags | MREMAP_DONTUNMAP, away) != away)
      zoo_skip("mremap() cannot leave a mapping behind");
    mprotect(stack, STACK, PROT_NONE);
    run_thread(L);
    zoo_need(mremap(away, STACK, STACK, flags, stack) == stack, "mremap back");
  }
  zoo_say("coroutine %ld, work %ld", sum, zoo_work(L, ZOO_ROUNDS / 4));
  lua_close(L);
  return 0;
}
