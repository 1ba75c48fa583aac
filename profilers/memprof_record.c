/*
** The recorder between a VM and its allocator; see memprof_record.h.
*/
#include "profilers/memprof_record.h"

#include <errno.h>
#include <math.h>
#include <x86intrin.h>

#include "profilers/memprof_entry.h"
#include "src/clock.h"
#include "src/event.h"

enum {
  LOOK_CYCLES = 60000 /* the clock is asked again after some 20 us */
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

/* C functions and builtins are told by the frame on top. */
static enum ljp_vmstate state_of(const struct ljp_recorder *r,
                                 const struct ljp_found_stack *stack)
{
  enum ljp_vmstate state = ljp_guest_heap_state(&r->heap);
  if (state != LJP_VMSTATE_INTERP && state != LJP_VMSTATE_C)
    return state;
  return stack->top == LJP_VMSTATE_UNKNOWN ? LJP_VMSTATE_HOST
                                           : (enum ljp_vmstate)stack->top;
}

/* -- Events ------------------------------------------------------------------------ */

static void push(struct ljp_recorder *r, const struct ljp_mem *m)
{
  const struct ljp_found_stack *stack = &r->stack;
  if (LJP_LIKELY(stack->root_first))
    ljp_push_mem_root_wait(r->producer, m, stack->frames, stack->count,
                           stack->same);
  else
    ljp_push_mem_all_wait(r->producer, m, stack->frames, stack->count);
}

static void flush(struct ljp_recorder *r)
{
  r->holds = false;
  if (r->held_object)
    r->held.what |= ljp_guest_object_type(r->held.address);
  else if (r->held_part)
    r->held.what |= ljp_guest_part_type(r->held.address, r->held.size);
  push(r, &r->held);
}

/* A CPU profiler that interrupts a push has no tables for what it sees there
** (and nobody wants to see it): this is where we are. */
static const struct ljp_regs *aside(const struct ljp_regs *regs)
{
  const struct ljp_regs *before = ljp_sampler_instead;
  if (!before) {
    atomic_signal_fence(memory_order_seq_cst);
    ljp_sampler_instead = regs;
  }
  return before;
}

void ljp_recorder_flush(struct ljp_recorder *r)
{
  struct ljp_regs here;
  if (!r->holds)
    return;
  registers_here(&here);
  const struct ljp_regs *before = aside(&here);
  flush(r);
  ljp_sampler_instead = before;
}

#define NO_PHASE ((enum ljp_gc_phase)255)

/* Before an event is told. LuaJIT takes a block's size off its count before it
** frees it: `leaving` is what is still there all the same. */
static void look_at_collector(struct ljp_recorder *r, size_t leaving)
{
  enum ljp_gc_phase phase = ljp_guest_gc_phase(&r->heap);
  struct ljp_regs here;
  if (phase == r->phase)
    return;
  registers_here(&here);
  const struct ljp_regs *before = aside(&here);
  ljp_recorder_flush(r);
  /* Entered now, or passed without our being told. */
  if (r->phase != NO_PHASE && (phase == LJP_GC_PAUSE || phase < r->phase))
    r->counts.cycles = ++r->cycle;
  r->phase = phase;
  r->tsc = 0;
  ljp_push_gc(r->producer, ljp_recorder_time(r), r->vm, phase,
              ljp_guest_heap_bytes(&r->heap) + leaving, r->cycle);
  ljp_sampler_instead = before;
}

void ljp_recorder_mark(struct ljp_recorder *r, const char *name, size_t bytes)
{
  struct ljp_regs here;
  registers_here(&here);
  const struct ljp_regs *before = aside(&here);
  ljp_recorder_flush(r);
  r->tsc = 0;
  ljp_push_mark(r->producer, ljp_recorder_time(r), 0, r->vm,
                (int64_t)ljp_guest_heap_bytes(&r->heap), name, bytes);
  ljp_sampler_instead = before;
}

void ljp_recorder_forked(struct ljp_recorder *r)
{
  r->holds = false;
  r->phase = NO_PHASE; /* the first event tells the heap's size */
}

void ljp_recorder_phase(struct ljp_recorder *r)
{
  if (atomic_load_explicit(&r->on, memory_order_relaxed))
    look_at_collector(r, 0);
}

/* Not by a call: a CPU profiler that interrupts the callee could not walk it. */
static inline bool is_active(const struct ljp_recorder *r)
{
  return atomic_load_explicit(r->active, memory_order_relaxed);
}

/* r->held is filled in; its type is yet to be told. */
static void hold(struct ljp_recorder *r)
{
  enum ljp_mem_type type = (enum ljp_mem_type)r->stack.type;
  r->holds = true;
  r->held_object = r->stack.object;
  /* Only array parts are reallocated. */
  r->held_part = !r->held_object && type == LJP_MEM_TYPE_TABLE;
  if (r->held_part && r->held.op == LJP_MEM_REALLOC) {
    r->held_part = false;
    type = LJP_MEM_TYPE_ARRAY_PART;
  }
  if (!r->held_object && !r->held_part)
    r->held.what |= (uint8_t)type;
}

static void push_free(struct ljp_recorder *r, struct ljp_mem *m)
{
  r->counts.frees++;
  r->counts.free_bytes += m->weight ? m->weight : m->size;
  m->op = LJP_MEM_FREE;
  if (m->what & LJP_MEM_SWEPT)
    /* The collector has no stack of its own: that of the event before. */
    ljp_push_mem_same_wait(r->producer, m);
  else
    push(r, m);
}

static bool is_sweeping(const struct ljp_recorder *r)
{
  return r->phase == LJP_GC_SWEEP || r->phase == LJP_GC_SWEEPSTRING;
}

/* What was sampled is freed, or moves: with the stack of who does so, which has
** been walked unless the collector sweeps. */
static void free_tracked(struct ljp_recorder *r, const struct ljp_mem *m,
                         const struct ljp_tracked *block, uint8_t flag)
{
  struct ljp_mem gone = *m;
  gone.address = block->address;
  gone.size = block->size;
  gone.weight = block->weight;
  gone.what = flag;
  push_free(r, &gone);
}

static void failed_event(struct ljp_recorder *r, struct ljp_mem *m, void *ptr,
                         size_t osize)
{
  m->what = (uint8_t)(r->stack.type | LJP_MEM_FAILED);
  if (!r->every)
    m->weight = m->size; /* itself, and no other */
  m->old_address = ptr ? m->address : 0;
  m->old_size = ptr ? osize : 0;
  r->counts.failed++;
  push(r, m);
}

static void allocated_sample(struct ljp_recorder *r, struct ljp_mem *m)
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
  r->held = *m;
  hold(r);
}

/* -- The allocator: every event ------------------------------------------------- */

static struct ljp_mem mem_of(struct ljp_recorder *r, void *ptr, size_t osize,
                             size_t nsize)
{
  return (struct ljp_mem){.time_ns = ljp_recorder_time(r),
                          .address = (uint64_t)(uintptr_t)ptr,
                          .size = nsize ? nsize : osize,
                          .vm = r->vm,
                          .op = nsize ? ptr ? LJP_MEM_REALLOC : LJP_MEM_ALLOC
                                      : LJP_MEM_FREE};
}

/* A profiler of CPU time that interrupts us sees our caller. */
static void stand_in(struct ljp_regs *regs, const struct ljp_caller *caller)
{
  regs->r[LJP_RBX] = caller->rbx;
  regs->r[LJP_RBP] = caller->rbp;
  regs->r[LJP_R12] = caller->r12;
  regs->r[LJP_R13] = caller->r13;
  regs->r[LJP_R14] = caller->r14;
  regs->r[LJP_R15] = caller->r15;
  regs->r[LJP_RIP] = caller->rip;
  regs->r[LJP_RSP] = (uint64_t)(uintptr_t)(caller + 1);
  regs->known = LJP_REGS_CALLEE_SAVED | 1u << LJP_RSP | 1u << LJP_RIP;
  regs->module = 0;
  regs->exact = false;
  regs->notes = NULL;
  atomic_signal_fence(memory_order_seq_cst);
}

static void *free_block(struct ljp_recorder *r, void *ptr, size_t osize,
                        const struct ljp_caller *caller)
{
  struct ljp_mem m = mem_of(r, ptr, osize, 0);
  m.vmstate = (uint8_t)ljp_guest_heap_state(&r->heap);
  if (m.vmstate == LJP_VMSTATE_GC && is_sweeping(r)) {
    m.what = LJP_MEM_SWEPT;
  } else {
    ljp_stacks_find(&r->stacks, caller, &r->stack);
    m.vmstate = (uint8_t)state_of(r, &r->stack);
  }
  const struct ljp_regs *instead = ljp_sampler_instead;
  ljp_sampler_instead = NULL;
  void *result = r->alloc(r->ud, ptr, osize, 0);
  ljp_sampler_instead = instead;
  push_free(r, &m);
  ljp_sampler_instead = NULL;
  return result;
}

void *ljp_recorder_every(struct ljp_recorder *r, void *ptr, size_t osize,
                         size_t nsize, const struct ljp_caller *caller)
{
  if (LJP_UNLIKELY(!atomic_load_explicit(&r->on, memory_order_relaxed) ||
                   !is_active(r) || (!ptr && !nsize)))
    return r->alloc(r->ud, ptr, osize, nsize);
  int *error = &errno, saved = *error;
  struct ljp_regs regs;
  stand_in(&regs, caller);
  ljp_sampler_instead = &regs;
  if (LJP_LIKELY(r->holds))
    flush(r);
  if (LJP_UNLIKELY(*r->heap.gc_phase != r->phase))
    look_at_collector(r, nsize ? 0 : osize);
  void *result;
  if (!nsize) {
    result = free_block(r, ptr, osize, caller);
    *error = saved;
    return result;
  }
  r->held = mem_of(r, ptr, osize, nsize);
  ljp_stacks_find(&r->stacks, caller, &r->stack);
  r->held.vmstate = (uint8_t)state_of(r, &r->stack);
  *error = saved;
  ljp_sampler_instead = NULL;
  result = r->alloc(r->ud, ptr, osize, nsize);
  if (LJP_UNLIKELY(!result)) {
    saved = *error;
    ljp_sampler_instead = &regs;
    failed_event(r, &r->held, ptr, osize);
    ljp_sampler_instead = NULL;
    *error = saved;
    return NULL;
  }
  r->held.address = (uint64_t)(uintptr_t)result;
  r->counts.alloc_bytes += nsize;
  if (ptr) {
    r->held.old_address = (uint64_t)(uintptr_t)ptr;
    r->held.old_size = osize;
    r->counts.reallocs++;
    r->counts.free_bytes += osize;
  } else {
    r->counts.allocs++;
  }
  hold(r);
  return result;
}

/* -- The allocator: sampled --------------------------------------------------------- */

void *ljp_recorder_sampled(struct ljp_recorder *r, void *ptr, size_t osize,
                           size_t nsize, const struct ljp_caller *caller,
                           bool failed)
{
  bool sampled = nsize && !failed && r->until < 0;
  if (LJP_UNLIKELY(!atomic_load_explicit(&r->on, memory_order_relaxed) ||
                   !is_active(r))) {
    if (sampled) /* for good */
      r->until = INT64_MAX;
    return failed ? NULL : r->alloc(r->ud, ptr, osize, nsize);
  }
  int *error = &errno, saved = *error;
  struct ljp_regs regs;
  struct ljp_tracked block;
  stand_in(&regs, caller);
  ljp_sampler_instead = &regs;
  bool tracked =
      ptr && ljp_track_take(&r->track, (uint64_t)(uintptr_t)ptr, &block);
  struct ljp_mem m = {.vm = 0};
  bool swept = false, tells = tracked || sampled || failed;
  if (tells) {
    ljp_recorder_flush(r);
    look_at_collector(r, nsize ? 0 : osize);
    m = mem_of(r, ptr, osize, nsize);
    m.vmstate = (uint8_t)ljp_guest_heap_state(&r->heap);
    swept = !nsize && m.vmstate == LJP_VMSTATE_GC && is_sweeping(r);
    if (!swept) {
      ljp_stacks_walk_from(&r->stacks, caller, &r->stack);
      m.vmstate = (uint8_t)state_of(r, &r->stack);
    }
  }
  *error = saved;
  ljp_sampler_instead = NULL;
  void *result = failed ? NULL : r->alloc(r->ud, ptr, osize, nsize);
  saved = *error;
  ljp_sampler_instead = &regs;
  if (nsize && !result) {
    if (tracked) /* it is where it was */
      ljp_track_put(&r->track, &block);
    if (sampled)
      draw(r);
    if (!tells) {
      ljp_recorder_flush(r);
      m = mem_of(r, ptr, osize, nsize);
      ljp_stacks_walk_from(&r->stacks, caller, &r->stack);
      m.vmstate = (uint8_t)state_of(r, &r->stack);
    }
    failed_event(r, &m, ptr, osize);
  } else {
    if (tracked)
      free_tracked(r, &m, &block,
                   nsize   ? LJP_MEM_MOVED
                   : swept ? LJP_MEM_SWEPT
                           : 0);
    if (sampled) {
      if (ptr) {
        m.old_address = m.address;
        m.old_size = osize;
      }
      m.address = (uint64_t)(uintptr_t)result;
      allocated_sample(r, &m);
    }
  }
  ljp_sampler_instead = NULL;
  *error = saved;
  return result;
}

static lua_Alloc hook_of(const struct ljp_recorder *r)
{
  return r->every ? ljp_every_hook : ljp_sampled_hook;
}

bool ljp_recorder_in_place(const struct ljp_recorder *r)
{
  void *ud;
  return lua_getallocf(r->heap.main, &ud) == hook_of(r) && ud == r;
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
  lua_setallocf(r->heap.main, hook_of(r), r);
}

void ljp_recorder_count(struct ljp_recorder *r)
{
  r->counts.cut = r->stacks.cut;
  r->counts.remembered = r->stacks.remembered;
  r->counts.checked = r->stacks.checked;
  r->counts.differed = r->stacks.differed;
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
  ljp_recorder_count(r);
  return ours;
}
