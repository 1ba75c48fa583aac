/*
** A host that relies on faults: a write barrier by mprotect() and SIGSEGV, as
** in collectors and databases, and pages of a file that is too short, by
** SIGBUS.
** zoo: cases early late
*/
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/hosts/zoo/zoo.h"

enum { PAGES = 61, PAGE = 4096 };

static char *heap, *file;
static volatile sig_atomic_t faults, foreign;
static sigjmp_buf out;

static void fault(int number, siginfo_t *info, void *context)
{
  char *at = info->si_addr;
  (void)context;
  if (number == SIGSEGV && at >= heap && at < heap + PAGES * PAGE) {
    faults++;
    mprotect((void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1)), PAGE,
             PROT_READ | PROT_WRITE);
    return;
  }
  if (number == SIGBUS && at >= file && at < file + PAGE)
    siglongjmp(out, 1);
  foreign++;
  _exit(3);
}

static void install(void)
{
  struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
  zoo_need(!sigaction(SIGSEGV, &action, NULL), "sigaction");
  zoo_need(!sigaction(SIGBUS, &action, NULL), "sigaction");
}

int main(int argc, char **argv)
{
  lua_State *L = zoo_vm_and(install, argc, argv);
  heap =
      mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int descriptor = open("short", O_RDWR | O_CREAT, 0600);
  file = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, descriptor, 0);
  zoo_need(heap != MAP_FAILED && file != MAP_FAILED, "mmap");
  for (int i = 0; i < PAGES; i++) {
    heap[i * PAGE + i] = (char)i;
    zoo_work(L, 1);
  }
  int buses = 0;
  for (volatile int i = 0; i < 7; i++) {
    if (sigsetjmp(out, 1))
      buses++;
    else
      zoo_say("%d in a page that is not there", *(volatile char *)file);
  }
  zoo_say("work %ld", zoo_work(L, ZOO_ROUNDS));
  zoo_say("%d faults, %d of the file, %d foreign", (int)faults, buses,
          (int)foreign);
  lua_close(L);
  return 0;
}
