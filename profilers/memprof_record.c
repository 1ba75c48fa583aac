/*
** The recorder between a VM and its allocator; see memprof_record.h.
*/
#include "profilers/memprof_record.h"

#include <errno.h>
#include <math.h>
#include <x86intrin.h>

#include "src/clock.h"
#include "src/event.h"

enum {
  LOOK_CYCLES = 60000, /* the clock is asked again after some 20 us */
  OWN_FRAMES = 3,      /* record(), record_it(), hook() */
  ASKERS = 8           /* host frames that are asked what memory is for */
};

/* -- Time, chance -------------------------------------------------------------- */

uint64_t ljp_recorder_time(struct ljp_recorder *r)
{
  uint64_t tsc = __rdtsc();
  if (tsc - r->tsc > LOOK_CYCLES) {
    r->tsc = tsc;
    r->time_ns = ljp_clock_ns();
  }
  return r->time_ns;
}

/* Bytes that pass until one is hit, when each is hit with the probability
** 1 / sample_bytes: geometric, so that what was before does not matter. */
static void draw(struct ljp_recorder *r)
{
  uint64_t x = r->random;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  r->random = x;
  double u = (double)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 11) + 1;
  r->until = (int64_t)(-log(u * 0x1p-53) * (double)r->sample_bytes);
}

/* The bytes that a sampled block stands for: its own by the probability that
** one of them is hit. */
static uint64_t weight_of(const struct ljp_recorder *r, uint64_t size)
{
  double chance = -expm1(-(double)size / (double)r->sample_bytes);
  return (uint64_t)((double)size / chance + 0.5);
}

/* -- The stack ------------------------------------------------------------------- */

/* Of the caller, as they are at this instruction. */
static inline __attribute__((always_inline)) void
registers_here(struct ljp_regs *regs)
{
  __asm__ volatile(
      "movq %%rbx, %c[rbx](%[r])\n\t"
      "movq %%rbp, %c[rbp](%[r])\n\t"
      "movq %%rsp, %c[rsp](%[r])\n\t"
      "movq %%r12, %c[r12](%[r])\n\t"
      "movq %%r13, %c[r13](%[r])\n\t"
      "movq %%r14, %c[r14](%[r])\n\t"
      "movq %%r15, %c[r15](%[r])\n\t"
      "leaq 0(%%rip), %%rax\n\t"
      "movq %%rax, %c[rip](%[r])"
      :
      : [r] "r"(regs->r), [rbx] "i"(8 * LJP_RBX), [rbp] "i"(8 * LJP_RBP),
        [rsp] "i"(8 * LJP_RSP), [r12] "i"(8 * LJP_R12), [r13] "i"(8 * LJP_R13),
        [r14] "i"(8 * LJP_R14), [r15] "i"(8 * LJP_R15), [rip] "i"(8 * LJP_RIP)
      : "rax", "memory");
  regs->known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP;
  regs->exact = true;
  regs->module = 0;
}

/* Walks into r->frames; regs are those of record(). What it is for goes to
** *type. */
static void walk(struct ljp_recorder *r, struct ljp_regs *regs,
                 enum ljp_mem_type *type, bool *object)
{
  struct ljp_walk walk = {.stack = {.cut = LJP_CUT_ABORTED}};
  const struct ljp_unwind_view *view = ljp_unwind_acquire(r->unwind);
  uint64_t askers[ASKERS];
  unsigned n = 0;
  r->count = 0;
  if (view) {
    /* The stack of Lua that may be about to be moved is still where it was. */
    bool resizing = ljp_guest_set_resizing(&r->heap, false);
    if (ljp_walk_memo(&walk, view, regs, r->frames, r->depth, &r->memo) !=
        LJP_WALK_DONE)
      walk.stack.cut = LJP_CUT_RESIZE;
    if (resizing)
      ljp_guest_set_resizing(&r->heap, true);
    ljp_unwind_release(r->unwind, view);
  }
  uint32_t count = walk.stack.count, i = OWN_FRAMES, kept = 0;
  for (; i < count && n < ASKERS &&
         ljp_frame_kind(r->frames[i]) == LJP_FRAME_HOST;
       i++)
    askers[n++] = ljp_frame_payload(r->frames[i]);
  *type = ljp_guest_mem_type(askers, n, object);
  for (i = OWN_FRAMES; i < count; i++)
    if (r->native || ljp_guest_is_frame(r->frames[i]))
      r->frames[kept++] = r->frames[i];
  if (walk.stack.cut) {
    r->frames[kept++] = ljp_frame(LJP_FRAME_CUT, 0, walk.stack.cut);
    r->counts.cut++;
  }
  r->count = kept;
}

/* C functions and builtins are told by the frame on top. */
static enum ljp_vmstate state_of(const struct ljp_recorder *r)
{
  enum ljp_vmstate state = ljp_guest_heap_state(&r->heap);
  if (state != LJP_VMSTATE_INTERP && state != LJP_VMSTATE_C)
    return state;
  for (uint32_t i = 0; i < r->count; i++) {
    switch (ljp_frame_kind(r->frames[i])) {
    case LJP_FRAME_LUA:
    case LJP_FRAME_LUA_INLINED:
      return LJP_VMSTATE_INTERP;
    case LJP_FRAME_BUILTIN:
      return LJP_VMSTATE_BUILTIN;
    case LJP_FRAME_CFUNC:
      return LJP_VMSTATE_C;
    default:
      break;
    }
  }
  return LJP_VMSTATE_HOST;
}

/* -- Events ------------------------------------------------------------------------ */

static void push(struct ljp_recorder *r, const struct ljp_mem *m)
{
  ljp_push_mem_all_wait(r->producer, m, r->frames, r->count);
}

void ljp_recorder_flush(struct ljp_recorder *r)
{
  if (!r->holds)
    return;
  r->holds = false;
  if (r->held_object)
    r->held.what |= ljp_guest_object_type(r->held.address);
  else if (r->held_part)
    r->held.what |= ljp_guest_part_type(r->held.address, r->held.size);
  push(r, &r->held);
}

static void look_at_collector(struct ljp_recorder *r)
{
  enum ljp_gc_phase phase = ljp_guest_gc_phase(&r->heap);
  if (phase == r->phase)
    return;
  ljp_recorder_flush(r);
  /* Entered now, or passed without our being told. */
  if (phase == LJP_GC_PAUSE || phase < r->phase)
    r->counts.cycles = ++r->cycle;
  r->phase = phase;
  r->tsc = 0;
  ljp_push_gc(r->producer, ljp_recorder_time(r), r->vm, phase,
              ljp_guest_heap_bytes(&r->heap), r->cycle);
}

void ljp_recorder_phase(struct ljp_recorder *r)
{
  if (atomic_load_explicit(&r->on, memory_order_relaxed))
    look_at_collector(r);
}

static void hold(struct ljp_recorder *r, const struct ljp_mem *m,
                 enum ljp_mem_type type, bool object)
{
  r->held = *m;
  r->holds = true;
  r->held_object = object;
  /* Only array parts are reallocated. */
  r->held_part = !object && type == LJP_MEM_TYPE_TABLE;
  if (r->held_part && m->op == LJP_MEM_REALLOC) {
    r->held_part = false;
    type = LJP_MEM_TYPE_ARRAY_PART;
  }
  if (!object && !r->held_part)
    r->held.what |= (uint8_t)type;
}

static void push_free(struct ljp_recorder *r, struct ljp_mem *m)
{
  r->counts.frees++;
  r->counts.free_bytes += m->weight ? m->weight : m->size;
  m->op = LJP_MEM_FREE;
  if (m->what & LJP_MEM_SWEPT)
    /* The collector has no stack of its own: that of the event before. */
    ljp_push_mem_wait(r->producer, m, ljp_producer_depth(r->producer), NULL, 0,
                      NULL);
  else
    push(r, m);
}

static bool is_sweeping(const struct ljp_recorder *r)
{
  return r->phase == LJP_GC_SWEEP || r->phase == LJP_GC_SWEEPSTRING;
}

/* What was sampled is freed, or moves. Not walked yet: stacks are for those who
** free on purpose. */
static void free_tracked(struct ljp_recorder *r, struct ljp_mem *m,
                         const struct ljp_tracked *block, uint8_t flag)
{
  struct ljp_mem gone = *m;
  gone.address = block->address;
  gone.size = block->size;
  gone.weight = block->weight;
  gone.what = flag;
  push_free(r, &gone);
}

static void allocated_every(struct ljp_recorder *r, struct ljp_mem *m,
                            enum ljp_mem_type type, bool object)
{
  if (m->op == LJP_MEM_REALLOC) {
    r->counts.reallocs++;
    r->counts.free_bytes += m->old_size;
  } else {
    r->counts.allocs++;
  }
  r->counts.alloc_bytes += m->size;
  hold(r, m, type, object);
}

static void allocated_sample(struct ljp_recorder *r, struct ljp_mem *m,
                             enum ljp_mem_type type, bool object)
{
  const struct ljp_tracked block = {m->address, m->size, weight_of(r, m->size)};
  draw(r);
  if (!ljp_track_put(&r->track, &block)) {
    r->counts.lost[LJP_LOSS_TRACK_FULL]++;
    ljp_count_loss(r->producer, LJP_LOSS_TRACK_FULL, 1);
    return;
  }
  if (m->op == LJP_MEM_REALLOC)
    m->what |= LJP_MEM_MOVED;
  m->op = LJP_MEM_ALLOC;
  m->weight = block.weight;
  r->counts.allocs++;
  r->counts.alloc_bytes += block.weight;
  hold(r, m, type, object);
}

/* -- The allocator ---------------------------------------------------------------- */

/* All that is not plainly of no interest. sampled: this allocation is one.
** failed: the old allocator was asked already, in vain. */
static __attribute__((noinline)) void *record(struct ljp_recorder *r, void *ptr,
                                              size_t osize, size_t nsize,
                                              bool sampled, bool failed)
{
  int saved = errno;
  struct ljp_regs regs;
  struct ljp_tracked block;
  enum ljp_mem_type type = LJP_MEM_TYPE_NONE;
  bool object = false, tracked = false;
  registers_here(&regs);
  const struct ljp_regs here = regs; /* a walk uses them up */
  ljp_sampler_instead = &here;
  ljp_recorder_flush(r);
  look_at_collector(r);
  struct ljp_mem m = {.time_ns = ljp_recorder_time(r),
                      .address = (uint64_t)(uintptr_t)ptr,
                      .size = nsize ? nsize : osize,
                      .vm = r->vm,
                      .op = nsize ? ptr ? LJP_MEM_REALLOC : LJP_MEM_ALLOC
                                  : LJP_MEM_FREE,
                      .vmstate = (uint8_t)ljp_guest_heap_state(&r->heap)};
  bool swept = !nsize && m.vmstate == LJP_VMSTATE_GC && is_sweeping(r);
  if (!r->every && ptr)
    tracked = ljp_track_take(&r->track, m.address, &block);
  if (!swept && (r->every || tracked || sampled)) {
    walk(r, &regs, &type, &object);
    m.vmstate = (uint8_t)state_of(r);
  }
  errno = saved;
  ljp_sampler_instead = NULL;
  void *result = failed ? NULL : r->alloc(r->ud, ptr, osize, nsize);
  saved = errno;
  ljp_sampler_instead = &here;
  if (!nsize) {
    uint8_t flag = swept ? LJP_MEM_SWEPT : 0;
    if (tracked)
      free_tracked(r, &m, &block, flag);
    else if (r->every) {
      m.what = flag;
      push_free(r, &m);
    }
  } else if (!result) {
    if (tracked) /* it is where it was */
      ljp_track_put(&r->track, &block);
    if (!r->every && !sampled && !tracked)
      walk(r, &regs, &type, &object);
    m.what = (uint8_t)(type | LJP_MEM_FAILED);
    if (!r->every)
      m.weight = nsize; /* itself, and no other */
    m.old_address = ptr ? m.address : 0;
    m.old_size = ptr ? osize : 0;
    r->counts.failed++;
    push(r, &m);
  } else {
    if (tracked)
      free_tracked(r, &m, &block, LJP_MEM_MOVED);
    if (ptr) {
      m.old_address = m.address;
      m.old_size = osize;
    }
    m.address = (uint64_t)(uintptr_t)result;
    if (r->every)
      allocated_every(r, &m, type, object);
    else if (sampled)
      allocated_sample(r, &m, type, object);
  }
  ljp_sampler_instead = NULL;
  errno = saved;
  return result;
}

/* In a frame of its own, whatever becomes of its caller. */
static __attribute__((noinline)) void *record_it(struct ljp_recorder *r,
                                                 void *ptr, size_t osize,
                                                 size_t nsize, bool sampled,
                                                 bool failed)
{
  void *result;
  if (!ljp_producer_active(r->producer) || (!ptr && !nsize))
    return failed ? NULL : r->alloc(r->ud, ptr, osize, nsize);
  result = record(r, ptr, osize, nsize, sampled, failed);
  __asm__ volatile("" : "+r"(result)); /* no tail call */
  return result;
}

static void *hook(void *ud, void *ptr, size_t osize, size_t nsize)
{
  struct ljp_recorder *r = ud;
  void *result;
  if (LJP_UNLIKELY(!atomic_load_explicit(&r->on, memory_order_relaxed)))
    return r->alloc(r->ud, ptr, osize, nsize);
  if (!r->every) {
    /* Nearly every call of a sampled session ends here. */
    bool sampled = nsize && (r->until -= (int64_t)nsize) < 0;
    if (LJP_LIKELY(!sampled &&
                   !(ptr && ljp_track_maybe(&r->track, (uintptr_t)ptr)))) {
      if (LJP_UNLIKELY(*r->heap.gc_phase != r->phase) &&
          ljp_producer_active(r->producer))
        look_at_collector(r);
      result = r->alloc(r->ud, ptr, osize, nsize);
      if (LJP_LIKELY(result || !nsize))
        return result;
      /* That is told in any case. */
      result = record_it(r, ptr, osize, nsize, false, true);
    } else {
      result = record_it(r, ptr, osize, nsize, sampled, false);
    }
  } else {
    result = record_it(r, ptr, osize, nsize, false, false);
  }
  __asm__ volatile("" : "+r"(result)); /* no tail call */
  return result;
}

bool ljp_recorder_in_place(const struct ljp_recorder *r)
{
  void *ud;
  return lua_getallocf(r->heap.main, &ud) == hook && ud == r;
}

void ljp_recorder_begin(struct ljp_recorder *r)
{
  r->every = r->sample_bytes == 0;
  r->phase = ljp_guest_gc_phase(&r->heap);
  r->tsc = 0;
  if (!r->every)
    draw(r);
  ljp_push_gc(r->producer, ljp_recorder_time(r), r->vm, r->phase,
              ljp_guest_heap_bytes(&r->heap), 0);
  r->alloc = lua_getallocf(r->heap.main, &r->ud);
  atomic_store(&r->on, true);
  lua_setallocf(r->heap.main, hook, r);
}

bool ljp_recorder_end(struct ljp_recorder *r)
{
  bool ours = ljp_recorder_in_place(r);
  if (atomic_exchange(&r->on, false)) {
    ljp_recorder_flush(r);
    r->tsc = 0;
    ljp_push_gc(r->producer, ljp_recorder_time(r), r->vm,
                ljp_guest_gc_phase(&r->heap), ljp_guest_heap_bytes(&r->heap),
                r->cycle);
  }
  if (ours)
    lua_setallocf(r->heap.main, r->alloc, r->ud);
  ljp_track_fini(&r->track);
  return ours;
}
