/*
** The push that waits. Ordinary code only; the thread sleeps until the writer
** has made room. Never for ever: a writer that is stuck, gone, or left behind
** by a fork costs two seconds once, then losses.
*/
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/push/producer_impl.h"

enum { LOOK_NS = 1000000, PATIENCE_NS = 2000000000 };

static __attribute__((noinline)) bool wait_for_room(struct ljp_producer *p,
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

static bool put(struct ljp_producer *p, const struct ljp_mem *m, unsigned keep,
                const uint64_t *frames, unsigned n, bool root_first)
{
  bool full = false;
  if (LJP_LIKELY(
          ljp_producer_put_mem(p, m, keep, frames, n, root_first, &full))) {
    p->gave_up = false;
    return true;
  }
  if (!full) /* another loss, counted */
    return false;
  wait_for_room(p, (uint32_t)ljp_ring_mem_size(m, n));
  return ljp_producer_put_mem(p, m, keep, frames, n, root_first, NULL);
}

bool ljp_push_mem_all_wait(struct ljp_producer *p, const struct ljp_mem *m,
                           const uint64_t *frames, unsigned n)
{
  unsigned keep = ljp_producer_common(p, frames, n);
  return put(p, m, keep, frames, n - keep, false);
}

bool ljp_push_mem_wait(struct ljp_producer *p, const struct ljp_mem *m,
                       unsigned keep, const uint64_t *frames, unsigned n,
                       unsigned *depth)
{
  bool done = put(p, m, keep, frames, n, false);
  if (depth)
    *depth = done ? p->depth : 0;
  return done;
}

bool ljp_push_mem_same_wait(struct ljp_producer *p, const struct ljp_mem *m)
{
  return put(p, m, p->depth, NULL, 0, true);
}

bool ljp_push_mem_root_wait(struct ljp_producer *p, const struct ljp_mem *m,
                            const uint64_t *stack, unsigned n, unsigned same)
{
  unsigned keep = same <= p->depth ? same : 0;
  unsigned max = n < p->depth ? n : p->depth;
  while (keep < max && p->stack[keep] == stack[keep])
    keep++;
  return put(p, m, keep, stack + keep, n - keep, true);
}
