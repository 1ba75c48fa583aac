/*
** The allocator of a session that records every event. The two most frequent
** cases have short paths: a new block whose stack is an answer, and a block
** that a sweep frees. All other cases have functions of their own.
**
** Invariant: nothing on a short path changes errno.
*/
#include "profilers/memory/record_priv.h"

#include "profilers/memory/answers.h"
#include "src/push/brief.h"

/* Reading the time takes as long as the rest of a short path. So a sweep reads
** it only now and then, and so do small blocks in quick succession: one of
** AT_A_TIME. After a pause, up to AT_A_TIME - 1 events may carry the time from
** before it. */
enum {
  SWEPT_AT_A_TIME = 16,
  AT_A_TIME = 4,
  SMALL_BYTES = 1024,
  DENSE_CYCLES = 4000 /* between two events that read the time */
};

static inline bool every_push_brief(struct ljp_recorder *r,
                                    const struct ljp_mem *m, uint8_t op,
                                    uint8_t what)
{
  return ljp_push_mem_brief(r->producer, m->time_ns, m->address, m->size,
                            ljp_brief_kinds(m->vmstate, op, what) |
                                ljp_brief_number(r->stack.number));
}

static inline bool every_push_whole(struct ljp_recorder *r,
                                    const struct ljp_mem *m)
{
  const struct ljp_found_stack *stack = &r->stack;
  return stack->number
             ? ljp_push_mem_top(r->producer, m, NULL, stack->number, 0)
             : ljp_push_mem_top(r->producer, m, stack->frames, stack->count,
                                stack->same);
}

/* Is the stack the last one that the ring has frames of? Then a brief event
** needs none. */
static inline bool every_is_last_stack(struct ljp_recorder *r)
{
  struct ljp_found_stack *stack = &r->stack;
  if (!stack->root_first || stack->number)
    return false;
  stack->same =
      ljp_push_common(r->producer, stack->frames, stack->count, stack->same);
  return stack->same == stack->count && stack->same == r->producer->depth &&
         stack->same;
}

/* Pushes an event with the stack r->stack. */
static __attribute__((noinline)) void every_push(struct ljp_recorder *r,
                                                 const struct ljp_mem *m)
{
  bool may = r->stack.root_first;
  if (m->op != LJP_MEM_REALLOC && every_is_last_stack(r) &&
      LJP_LIKELY(every_push_brief(r, m, m->op, m->what)))
    return;
  if (LJP_LIKELY(may && every_push_whole(r, m)))
    return;
  if (!ljp_brief_look(r->producer) || !may || !every_push_whole(r, m))
    ljp_recorder_push(r, m);
}

static inline void every_push_held(struct ljp_recorder *r)
{
  uint8_t what = ljp_recorder_type(r);
  r->holds = false;
  if (LJP_LIKELY(r->stack.number && r->held.op == LJP_MEM_ALLOC) &&
      LJP_LIKELY(every_push_brief(r, &r->held, LJP_MEM_ALLOC, what)))
    return;
  r->held.what |= what;
  every_push(r, &r->held);
}

static inline uint64_t every_time(struct ljp_recorder *r, size_t size)
{
  if (LJP_LIKELY(r->dense_more && size <= SMALL_BYTES)) {
    r->dense_more--;
    return r->time_ns;
  }
  uint64_t before = r->dense_tsc;
  r->dense_tsc = __rdtsc();
  r->dense_more = r->dense_tsc - before < DENSE_CYCLES ? AT_A_TIME - 1 : 0;
  return ljp_recorder_at(r, r->dense_tsc);
}

/* The collector frees many blocks in a row. Each of its steps reads the time
** anew. */
static inline void every_time_sweep(struct ljp_recorder *r)
{
  r->swept_more = SWEPT_AT_A_TIME - 1;
  r->swept_step = *r->heap.gc_step;
  ljp_recorder_at(r, __rdtsc());
}

static inline bool every_push_swept(struct ljp_recorder *r, void *ptr,
                                    size_t osize)
{
  if (LJP_UNLIKELY(!ljp_push_mem_brief(
          r->producer, r->time_ns, (uint64_t)(uintptr_t)ptr, osize,
          ljp_brief_kinds(LJP_VMSTATE_GC, LJP_MEM_FREE, LJP_MEM_SWEPT))))
    return false;
  r->counts.frees++;
  r->counts.free_bytes += osize;
  return true;
}

/* Reads the time, and looks for room in the ring if the push fails. */
static bool every_push_swept_now(struct ljp_recorder *r, void *ptr,
                                 size_t osize)
{
  every_time_sweep(r);
  return every_push_swept(r, ptr, osize) ||
         (ljp_brief_look(r->producer) && every_push_swept(r, ptr, osize));
}

static __attribute__((noinline)) bool
every_push_swept_anew(struct ljp_recorder *r, void *ptr, size_t osize,
                      const struct ljp_caller *caller)
{
  ljp_stand_in(caller);
  bool done = every_push_swept_now(r, ptr, osize);
  ljp_stand_in(NULL);
  return done;
}

static inline bool every_swept(struct ljp_recorder *r, void *ptr, size_t osize,
                               const struct ljp_caller *caller)
{
  if (LJP_UNLIKELY(*r->heap.gc_phase != r->sweep_phase || r->holds ||
                   !ljp_guest_heap_collects(&r->heap)))
    return false;
  if (LJP_UNLIKELY(*r->heap.gc_step != r->swept_step || !r->swept_more))
    return every_push_swept_anew(r, ptr, osize, caller);
  ljp_stand_in(caller);
  r->swept_more--;
  bool done = every_push_swept(r, ptr, osize);
  ljp_stand_in(NULL);
  return LJP_LIKELY(done) || every_push_swept_anew(r, ptr, osize, caller);
}

bool ljp_recorder_swept(struct ljp_recorder *r, void *ptr, size_t osize,
                        size_t nsize, const struct ljp_caller *caller)
{
  (void)nsize;
  if (LJP_UNLIKELY(!ljp_recorder_enter(r)))
    return false;
  bool done = every_swept(r, ptr, osize, caller);
  ljp_recorder_leave(r);
  return done;
}

/* A free by a sweep that did not take the short path, for instance because an
** allocation had been held back until now. */
static __attribute__((noinline)) void *every_sweep(struct ljp_recorder *r,
                                                   void *ptr, size_t osize)
{
  if (!every_push_swept_now(r, ptr, osize)) {
    struct ljp_mem m = ljp_recorder_mem(r, ptr, osize, 0);
    m.vmstate = LJP_VMSTATE_GC;
    m.what = LJP_MEM_SWEPT;
    ljp_recorder_push_free(r, &m);
  }
  ljp_stand_in(NULL);
  ljp_recorder_leave(r);
  return r->alloc(r->ud, ptr, osize, 0);
}

static __attribute__((noinline)) void *
every_free(struct ljp_recorder *r, void *ptr, size_t osize,
           const struct ljp_caller *caller)
{
  struct ljp_mem m = {.time_ns = every_time(r, osize),
                      .address = (uint64_t)(uintptr_t)ptr,
                      .size = osize,
                      .vm = r->vm,
                      .op = LJP_MEM_FREE};
  ljp_recorder_see_labels(r);
  ljp_stacks_find(&r->stacks, caller, &r->stack);
  m.vmstate = (uint8_t)ljp_recorder_state(r, &r->stack);
  ljp_stand_in(NULL);
  ljp_recorder_leave(r);
  void *result = r->alloc(r->ud, ptr, osize, 0);
  if (LJP_UNLIKELY(!ljp_recorder_enter(r))) {
    ljp_recorder_note_bytes(r, osize);
    return result;
  }
  ljp_stand_in(caller);
  r->counts.frees++;
  r->counts.free_bytes += osize;
  if (!r->stack.number || !every_push_brief(r, &m, LJP_MEM_FREE, 0))
    every_push(r, &m);
  ljp_stand_in(NULL);
  ljp_recorder_leave(r);
  return result;
}

static __attribute__((noinline)) void *
every_refused(struct ljp_recorder *r, void *ptr, size_t osize,
              const struct ljp_caller *caller)
{
  ljp_stand_in(caller);
  r->held.address = (uint64_t)(uintptr_t)ptr;
  ljp_recorder_failed(r, &r->held, ptr, osize);
  ljp_stand_in(NULL);
  ljp_recorder_leave(r);
  return NULL;
}

void *ljp_recorder_fresh(struct ljp_recorder *r, void *ptr, size_t osize,
                         size_t nsize, const struct ljp_caller *caller)
{
  struct ljp_mem *m = &r->held;
  if (LJP_UNLIKELY(!ljp_recorder_enter(r)))
    return ljp_recorder_every(r, ptr, osize, nsize, caller);
  ljp_stand_in(caller);
  if (LJP_LIKELY(r->holds))
    every_push_held(r);
  if (LJP_UNLIKELY(*r->heap.gc_phase != r->phase))
    ljp_recorder_check_phase(r, 0);
  ljp_recorder_see_labels(r);
  m->time_ns = every_time(r, nsize);
  m->size = nsize;
  if (LJP_UNLIKELY(!ljp_answers_find(&r->stacks, caller, &r->stack)))
    ljp_stacks_put_together(&r->stacks, caller, &r->stack);
  m->what = 0;
  m->vmstate = (uint8_t)ljp_recorder_state(r, &r->stack);
  ljp_stand_in(NULL);
  void *result = lj_alloc_malloc(r->ud, nsize);
  m->op = LJP_MEM_ALLOC;
  if (LJP_UNLIKELY(!result))
    return every_refused(r, NULL, 0, caller);
  m->address = (uint64_t)(uintptr_t)result;
  r->counts.alloc_bytes += nsize;
  r->counts.allocs++;
  ljp_recorder_hold(r);
  ljp_recorder_leave(r);
  return result;
}

void *ljp_recorder_every(struct ljp_recorder *r, void *ptr, size_t osize,
                         size_t nsize, const struct ljp_caller *caller)
{
  if (LJP_UNLIKELY(!ptr && !nsize))
    return r->alloc(r->ud, ptr, osize, nsize);
  if (LJP_UNLIKELY(!ljp_recorder_enter(r))) {
    ljp_recorder_note_bytes(r, nsize ? 0 : osize);
    return r->alloc(r->ud, ptr, osize, nsize);
  }
  ljp_stand_in(caller);
  if (LJP_LIKELY(r->holds))
    every_push_held(r);
  if (LJP_UNLIKELY(*r->heap.gc_phase != r->phase))
    ljp_recorder_check_phase(r, nsize ? 0 : osize);
  if (!nsize) {
    if (LJP_UNLIKELY(!ljp_is_sweeping(r) ||
                     ljp_guest_heap_state(&r->heap) != LJP_VMSTATE_GC))
      return every_free(r, ptr, osize, caller);
    return every_sweep(r, ptr, osize);
  }
  ljp_recorder_see_labels(r);
  r->held.time_ns = every_time(r, nsize);
  r->held.size = nsize;
  r->held.op = ptr ? LJP_MEM_REALLOC : LJP_MEM_ALLOC;
  r->held.what = 0;
  ljp_stacks_find(&r->stacks, caller, &r->stack);
  r->held.vmstate = (uint8_t)ljp_recorder_state(r, &r->stack);
  ljp_stand_in(NULL);
  ljp_recorder_leave(r);
  void *result = r->alloc(r->ud, ptr, osize, nsize);
  if (LJP_UNLIKELY(!ljp_recorder_enter(r))) {
    ljp_recorder_note_bytes(r, 0);
    return result;
  }
  if (LJP_UNLIKELY(!result))
    return every_refused(r, ptr, osize, caller);
  r->held.address = (uint64_t)(uintptr_t)result;
  r->counts.alloc_bytes += nsize;
  if (LJP_UNLIKELY(ptr != NULL)) {
    r->held.old_address = (uint64_t)(uintptr_t)ptr;
    r->held.old_size = osize;
    r->counts.reallocs++;
    r->counts.free_bytes += osize;
  } else {
    r->counts.allocs++;
  }
  ljp_recorder_hold(r);
  ljp_recorder_leave(r);
  return result;
}
