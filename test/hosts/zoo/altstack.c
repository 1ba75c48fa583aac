/*
** Alternate signal stacks as Rust's runtime gives them to each thread: 8,192
** bytes, or the least that the kernel permits. In "painted" there is paint
** around each alternate stack, in "guarded" there are pages that nobody may
** touch.
** zoo: cases painted guarded
*/
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "test/hosts/zoo/zoo.h"

enum { THREADS = 3, AROUND = 16384, PAINT = 0x5a };

static bool guarded;

static void *work(void *argument)
{
  size_t size = zoo_least_stack(),
         room = 2 * AROUND + (size + 4095) / 4096 * 4096;
  unsigned char *memory = mmap(NULL, room, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  zoo_need(memory != MAP_FAILED, "mmap");
  memset(memory, PAINT, room);
  if (guarded)
    zoo_need(!mprotect(memory, AROUND, PROT_NONE), "mprotect");
  stack_t now = {.ss_sp = memory + AROUND, .ss_size = size}, before;
  zoo_need(!sigaltstack(&now, &before), "sigaltstack");
  long sum = zoo_work_alone(ZOO_ROUNDS / 2);
  now.ss_flags = SS_DISABLE;
  zoo_need(!sigaltstack(&now, NULL), "sigaltstack");
  size_t changed = 0;
  for (size_t i = guarded ? AROUND : 0; i < AROUND; i++)
    changed += memory[i] != PAINT;
  for (size_t i = AROUND + size; i < room; i++)
    changed += memory[i] != PAINT;
  if (changed)
    zoo_say("%zu bytes beside the alternate stack were overwritten", changed);
  munmap(memory, room);
  (void)argument;
  return (void *)(intptr_t)sum;
}

int main(int argc, char **argv)
{
  pthread_t threads[THREADS];
  if (ZOO_SANITIZED)
    zoo_skip("the sanitizer's own functions need more stack");
  guarded = argc > 1 && !strcmp(argv[1], "guarded");
  for (int i = 0; i < THREADS; i++)
    threads[i] = zoo_thread(work, NULL, 0);
  for (int i = 0; i < THREADS; i++)
    zoo_say("work %ld", (long)(intptr_t)zoo_join(threads[i]));
  return 0;
}
