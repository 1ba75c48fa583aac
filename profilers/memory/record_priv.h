/*
** Internals of the recorder: what its two allocators (every.c and sampled.c)
** share with the code around them (record.c). No other file includes this
** header.
*/
#ifndef LJP_MEMORY_RECORD_PRIV_H
#define LJP_MEMORY_RECORD_PRIV_H

#include <x86intrin.h>

#include "profilers/memory/entry.h"
#include "profilers/session/stand_in.h"
#include "src/push/event.h"
#include "src/push/producer_state.h"

/* The clock is read again after about 20 us. */
enum { LJP_LOOK_CYCLES = 60000 };

/* The time of an event that happens now. tsc: the counter's value now. */
static inline uint64_t ljp_recorder_at(struct ljp_recorder *r, uint64_t tsc)
{
  if (LJP_UNLIKELY(tsc - r->tsc > LJP_LOOK_CYCLES))
    return ljp_recorder_time(r);
  return r->time_ns;
}

/* Times never go back. */
static inline uint64_t ljp_recorder_advance_time(struct ljp_recorder *r,
                                                 uint64_t now)
{
  if (LJP_LIKELY(now > r->time_ns))
    r->time_ns = now;
  return r->time_ns;
}

/* The time to the microsecond, at half the cost of the clock: the collector's
** phases may be that short, and may follow each other quickly. */
uint64_t ljp_recorder_time_now(struct ljp_recorder *r);

/* Inline, because a CPU profiler that interrupts a callee could not walk it. */
static inline bool ljp_recorder_is_active(const struct ljp_recorder *r)
{
  return atomic_load_explicit(
      atomic_load_explicit(&r->active, memory_order_relaxed),
      memory_order_relaxed);
}

/* Begins work with what belongs to a session: the producer, the stacks. False:
** there is nothing to record. Another thread may end the session at any time,
** which takes two steps (ljp_recorder_switch_off(), ljp_recorder_await()): it
** makes this function fail, and then waits until nobody is inside. Neither side
** needs a barrier here, since the other thread leaves this store enough time to
** become visible. */
static inline bool ljp_recorder_enter(struct ljp_recorder *r)
{
  atomic_store_explicit(&r->inside, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  if (LJP_LIKELY(ljp_recorder_is_active(r)))
    return true;
  /* Release: the thread that waits sees what was done inside. */
  atomic_store_explicit(&r->inside, false, memory_order_release);
  return false;
}

static inline void ljp_recorder_leave(struct ljp_recorder *r)
{
  atomic_store_explicit(&r->inside, false, memory_order_release);
}

/* A call that is not recorded any more. The first one notes what was in use at
** the last recorded event, so that a thread that ends the session can tell.
** leaving: as below. */
static inline void ljp_recorder_note_bytes(struct ljp_recorder *r,
                                           size_t leaving)
{
  if (LJP_LIKELY(atomic_load_explicit(&r->noted, memory_order_relaxed)))
    return;
  r->noted_bytes = ljp_guest_heap_bytes(&r->heap) + leaving;
  atomic_store_explicit(&r->noted, true, memory_order_release);
}

/* The events that follow have the labels of what the VM does now. Call it when no
** event is held back. */
static inline void ljp_recorder_see_labels(struct ljp_recorder *r)
{
  const uint32_t labels = ljp_guest_heap_labels(&r->heap);
  if (LJP_UNLIKELY(labels != r->producer->labels))
    ljp_push_labels_wait(r->producer, labels);
}

#define LJP_NO_PHASE ((enum ljp_gc_phase)255)

static inline bool ljp_is_sweeping(const struct ljp_recorder *r)
{
  return r->phase == LJP_GC_SWEEP || r->phase == LJP_GC_SWEEPSTRING;
}

/* The VM's state. The frame on top tells C functions and builtins apart. */
static inline enum ljp_vmstate
ljp_recorder_state(const struct ljp_recorder *r,
                   const struct ljp_found_stack *stack)
{
  enum ljp_vmstate state = ljp_guest_heap_state(&r->heap);
  if (state != LJP_VMSTATE_INTERP && state != LJP_VMSTATE_C)
    return state;
  return stack->top == LJP_VMSTATE_UNKNOWN ? LJP_VMSTATE_HOST
                                           : (enum ljp_vmstate)stack->top;
}

/* The type of the memory of the event that is held back. By now the VM has
** initialised that memory, so it can tell. */
static inline uint8_t ljp_recorder_type(const struct ljp_recorder *r)
{
  const struct ljp_mem *m = &r->held;
  if (LJP_LIKELY(r->held_object))
    return (uint8_t)ljp_guest_object_type(m->address);
  if (r->held_part)
    return (uint8_t)ljp_guest_part_type(m->address, m->size);
  return r->held_type;
}

static inline void ljp_recorder_set_type(struct ljp_recorder *r)
{
  r->held.what |= ljp_recorder_type(r);
  r->holds = false;
}

/* Holds back the event r->held, with the stack r->stack, and decides how its
** type will be found. */
static inline void ljp_recorder_hold(struct ljp_recorder *r)
{
  enum ljp_mem_type type = (enum ljp_mem_type)r->stack.type;
  bool object = r->stack.object;
  bool part = !object && type == LJP_MEM_TYPE_TABLE;
  r->holds = true;
  r->held_object = object;
  /* Of a table, only the array part is ever reallocated. */
  if (LJP_UNLIKELY(part && r->held.op == LJP_MEM_REALLOC)) {
    part = false;
    type = LJP_MEM_TYPE_ARRAY_PART;
  }
  r->held_part = part;
  r->held_type = (uint8_t)type;
}

/* The functions below preserve errno. Their callers have called
** ljp_stand_in(). */

struct ljp_mem ljp_recorder_mem(struct ljp_recorder *r, void *ptr, size_t osize,
                                size_t nsize);

/* Pushes an event if the collector is in another phase. Call it before an event
** is made. leaving: the size of a block that is about to be freed; LuaJIT has
** already subtracted it from its count, but the block is still there. */
void ljp_recorder_check_phase(struct ljp_recorder *r, size_t leaving);

/* Pushes an event with the stack r->stack. */
void ljp_recorder_push(struct ljp_recorder *r, const struct ljp_mem *m);
void ljp_recorder_push_free(struct ljp_recorder *r, struct ljp_mem *m);

/* Pushes the mean distance between samples, if the stream says another one; a longer
** one than was asked for also once a second, for each file segment. After the last
** block that was drawn with the old one. */
void ljp_recorder_tell_distance(struct ljp_recorder *r);
/* Makes the distance shorter, if samples have become rare (max_samples). */
void ljp_recorder_shorten_distance(struct ljp_recorder *r);

/* Records that the allocator below has refused a request. m: its event. */
void ljp_recorder_failed(struct ljp_recorder *r, struct ljp_mem *m, void *ptr,
                         size_t osize);

/* What only sampled sessions need. At the begin, before the VM gets the recorder; in
** the child of fork(), whose stream begins with the distance that was asked for; at
** the end, after the VM has its old allocator back (ours), or after the recorder had
** to stay. */
void ljp_recorder_begin_sampled(struct ljp_recorder *r);
void ljp_recorder_restart_sampled(struct ljp_recorder *r);
void ljp_recorder_end_sampled(struct ljp_recorder *r, bool ours);

#endif
