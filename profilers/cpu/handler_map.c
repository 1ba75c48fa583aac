/*
** The memory of a side stack; see handler_stack.h. Ordinary code.
*/
#include "profilers/cpu/handler_stack.h"

#include <stdint.h>
#include <sys/mman.h>

enum { GUARD_BYTES = 4096 };

void *ljp_handler_map(size_t bytes)
{
  const size_t below = GUARD_BYTES + LJP_SIDE_BYTES - LJP_SIDE_READY_BYTES;
  const size_t ready = LJP_SIDE_READY_BYTES + bytes;
  const int private = MAP_PRIVATE | MAP_ANONYMOUS;
  char *at =
      mmap(NULL, below + ready, PROT_NONE, private | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return NULL;
  /* Populated now: the handler must not take the page faults. */
  if (mprotect(at + GUARD_BYTES, below - GUARD_BYTES, PROT_READ | PROT_WRITE) ||
      mmap(at + below, ready, PROT_READ | PROT_WRITE,
           private | MAP_FIXED | MAP_POPULATE, -1, 0) == MAP_FAILED) {
    munmap(at, below + ready);
    return NULL;
  }
  return at + below + LJP_SIDE_READY_BYTES;
}
