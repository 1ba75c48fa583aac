/*
** The push that waits. Ordinary code only; the thread sleeps until the writer
** has made room. It never waits for ever: if the writer is stuck, gone, or left
** behind by a fork, one push waits for two seconds, and the events that find
** the ring full after that are losses.
*/
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/push/brief.h"

enum { LOOK_NS = 1000000, PATIENCE_NS = 2000000000 };

static __attribute__((noinline)) void backpressure_wait(struct ljp_producer *p,
                                                        uint32_t entry_bytes)
{
  uint64_t since = 0;
  if (p->gave_up || p->pid != getpid())
    return;
  while (!ljp_ring_reserve(&p->ring, entry_bytes) && ljp_producer_active(p)) {
    uint64_t now = ljp_clock_ns();
    since = since ? since : now;
    if (now - since > PATIENCE_NS) {
      p->gave_up = true;
      break;
    }
    /* `space` is read before the writer is woken: if it makes room between
    ** here and the futex, the word has changed and we do not sleep. */
    uint32_t space = atomic_load_explicit(&p->space, memory_order_acquire);
    atomic_store_explicit(&p->waiting, true, memory_order_relaxed);
    ljp_producer_wake(p);
    ljp_futex_wait(&p->space, space, LOOK_NS);
  }
  atomic_store_explicit(&p->waiting, false, memory_order_relaxed);
}

static bool backpressure_push(struct ljp_producer *p, const struct ljp_mem *m,
                              unsigned keep, const uint64_t *frames, unsigned n,
                              bool root_first)
{
  bool full = false;
  if (LJP_LIKELY(
          ljp_producer_put_mem(p, m, keep, frames, n, root_first, &full))) {
    p->gave_up = false;
    return true;
  }
  if (!full) /* Another loss; it is counted. */
    return false;
  const unsigned fresh = keep == LJP_KEEP_NUMBER ? 0 : n;
  backpressure_wait(p, (uint32_t)ljp_mem_entry_bytes(m, fresh));
  return ljp_producer_put_mem(p, m, keep, frames, n, root_first, NULL);
}

bool ljp_push_mem_all_wait(struct ljp_producer *p, const struct ljp_mem *m,
                           const uint64_t *frames, unsigned n)
{
  unsigned keep = ljp_producer_common(p, frames, n);
  return backpressure_push(p, m, keep, frames, n - keep, false);
}

bool ljp_push_mem_wait(struct ljp_producer *p, const struct ljp_mem *m,
                       unsigned keep, const uint64_t *frames, unsigned n,
                       unsigned *depth)
{
  bool done = backpressure_push(p, m, keep, frames, n, false);
  if (depth)
    *depth = done ? p->depth : 0;
  return done;
}

bool ljp_push_mem_number_wait(struct ljp_producer *p, const struct ljp_mem *m,
                              unsigned number)
{
  return backpressure_push(p, m, LJP_KEEP_NUMBER, NULL, number, true);
}

bool ljp_push_stack_wait(struct ljp_producer *p, unsigned number,
                         const uint64_t *frames, unsigned n)
{
  if (LJP_LIKELY(ljp_producer_put_stack(p, number, frames, n)))
    return true;
  if (!ljp_producer_active(p))
    return false;
  backpressure_wait(p, (uint32_t)ljp_stack_entry_bytes(n));
  return ljp_producer_put_stack(p, number, frames, n);
}

bool ljp_push_labels_wait(struct ljp_producer *p, uint32_t labels)
{
  if (LJP_LIKELY(ljp_producer_put_labels(p, labels)))
    return true;
  if (!ljp_producer_active(p))
    return false;
  backpressure_wait(p, sizeof(struct ljp_labels_entry));
  return ljp_producer_put_labels(p, labels);
}

bool ljp_push_mem_same_wait(struct ljp_producer *p, const struct ljp_mem *m)
{
  return backpressure_push(p, m, p->depth, NULL, 0, true);
}

bool ljp_push_mem_root_wait(struct ljp_producer *p, const struct ljp_mem *m,
                            const uint64_t *stack, unsigned n, unsigned same)
{
  unsigned keep = ljp_push_common(p, stack, n, same);
  return backpressure_push(p, m, keep, stack + keep, n - keep, true);
}

/* Before the push of an event whose fields have this size. */
static void backpressure_await(struct ljp_producer *p, size_t field_bytes)
{
  const uint32_t bytes =
      (uint32_t)(sizeof(struct ljp_event_entry) + field_bytes);
  if (!ljp_ring_reserve(&p->ring, bytes))
    backpressure_wait(p, bytes);
}

bool ljp_push_gc_fields_wait(struct ljp_producer *p, uint64_t time_ns,
                             const struct ljp_gc_fields *fields)
{
  backpressure_await(p, sizeof *fields);
  bool done = ljp_push_gc_fields(p, time_ns, fields);
  p->gave_up = p->gave_up && !done;
  return done;
}

bool ljp_push_moment_wait(struct ljp_producer *p, uint64_t time_ns,
                          const struct ljp_moment_fields *fields)
{
  backpressure_await(p, sizeof *fields);
  bool done = ljp_push_event(p, LJP_REC_HEAP_MOMENT, time_ns, fields,
                             sizeof *fields, "", 0);
  p->gave_up = p->gave_up && !done;
  return done;
}

void ljp_producer_give_up(struct ljp_producer *p)
{
  p->gave_up = true;
}

void ljp_producer_pass_on(struct ljp_producer *p)
{
  p->mem_time = 0;
}
