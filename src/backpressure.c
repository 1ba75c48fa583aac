/*
** The push that waits. Ordinary code only; the thread sleeps until the writer
** has made room. Never for ever: a writer that is stuck, gone, or left behind
** by a fork costs two seconds once, then losses.
*/
#include <unistd.h>

#include "src/clock.h"
#include "src/futex.h"
#include "src/producer_impl.h"

enum { LOOK_NS = 1000000, PATIENCE_NS = 2000000000 };

static __attribute__((noinline)) bool wait_longer(struct ljp_producer *p,
                                                  uint32_t size)
{
  uint64_t since = 0;
  bool room;
  if (p->gave_up || p->pid != getpid())
    return false;
  while (!(room = ljp_ring_reserve(&p->ring, size) != NULL) &&
         ljp_producer_active(p)) {
    uint64_t now = ljp_clock_ns();
    since = since ? since : now;
    if (now - since > PATIENCE_NS) {
      p->gave_up = true;
      break;
    }
    uint32_t space = atomic_load_explicit(&p->space, memory_order_acquire);
    atomic_store_explicit(&p->waiting, true, memory_order_relaxed);
    ljp_producer_wake(p);
    ljp_futex_wait(&p->space, space, LOOK_NS);
  }
  atomic_store_explicit(&p->waiting, false, memory_order_relaxed);
  return room;
}

static bool wait_for_room(struct ljp_producer *p, uint32_t size)
{
  if (LJP_LIKELY(ljp_ring_reserve(&p->ring, size) != NULL)) {
    p->gave_up = false;
    return true;
  }
  return wait_longer(p, size);
}

bool ljp_push_mem_all_wait(struct ljp_producer *p, const struct ljp_mem *m,
                           const uint64_t *frames, unsigned n)
{
  size_t size = ljp_ring_mem_size(m, n);
  if (n <= LJP_STACK_MAX_FRAMES && size <= ljp_ring_max_record(&p->ring))
    wait_for_room(p, (uint32_t)size);
  return ljp_push_mem(p, m, frames, n);
}

bool ljp_push_mem_wait(struct ljp_producer *p, const struct ljp_mem *m,
                       unsigned keep, const uint64_t *frames, unsigned n,
                       unsigned *depth)
{
  size_t size = ljp_ring_mem_size(m, n);
  if (n <= LJP_STACK_MAX_FRAMES && size <= ljp_ring_max_record(&p->ring))
    wait_for_room(p, (uint32_t)size);
  return ljp_push_mem_keep(p, m, keep, frames, n, depth);
}

bool ljp_push_mem_root_wait(struct ljp_producer *p, const struct ljp_mem *m,
                            const uint64_t *stack, unsigned n, unsigned same)
{
  unsigned keep = same <= p->depth ? same : 0;
  unsigned max = n < p->depth ? n : p->depth;
  while (keep < max && p->stack[keep] == stack[keep])
    keep++;
  if (keep > n)
    keep = n;
  size_t size = ljp_ring_mem_size(m, n - keep);
  if (n <= LJP_STACK_MAX_FRAMES && size <= ljp_ring_max_record(&p->ring))
    wait_for_room(p, (uint32_t)size);
  return ljp_producer_put_mem(p, m, keep, stack + keep, n - keep, true);
}
