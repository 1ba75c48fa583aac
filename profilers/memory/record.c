/*
** The recorder between a VM and its allocator; see record.h.
*/
#include "profilers/memory/record_priv.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/futex.h"
#include "src/base/saferead.h"

enum {
  NOTED_NS = 100000000 /* a phase that comes later than this is pushed, with
                       ** all that are noted */
};

/* Stores the caller's registers as they are at this instruction. */
static inline __attribute__((always_inline)) void
recorder_registers(struct ljp_regs *regs)
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

/* -- Events ---------------------------------------------------------------- */

void ljp_recorder_push(struct ljp_recorder *r, const struct ljp_mem *m)
{
  const struct ljp_found_stack *stack = &r->stack;
  int *error = &errno, saved = *error;
  bool told;
  if (LJP_LIKELY(stack->number))
    told = ljp_push_mem_number_wait(r->producer, m, stack->number);
  else if (stack->root_first)
    told = ljp_push_mem_root_wait(r->producer, m, stack->frames, stack->count,
                                  stack->same);
  else
    told = ljp_push_mem_all_wait(r->producer, m, stack->frames, stack->count);
  r->counts.untold += !told;
  *error = saved;
}

static void recorder_enter_phase(struct ljp_recorder *r,
                                 enum ljp_gc_phase phase)
{
  r->phase = phase;
  r->sweep_phase = ljp_is_sweeping(r) ? (uint8_t)phase : LJP_NO_PHASE;
}

/* A CPU profiler that interrupts a push has no tables for the code there, which
** is of no interest to users either. It starts its walk from these registers
** instead. */
static const struct ljp_regs *recorder_aside(const struct ljp_regs *regs)
{
  const struct ljp_regs *before = ljp_stand_in_regs;
  if (!before) {
    atomic_signal_fence(memory_order_seq_cst);
    ljp_stand_in_regs = regs;
  }
  return before;
}

static void recorder_end_cycle(struct ljp_recorder *r)
{
  r->cycle++;
  r->counts.cycles++;
}

/* If every event is recorded, phases wait for room as allocations do. */
static void recorder_push_phase(struct ljp_recorder *r, uint64_t time_ns,
                                enum ljp_gc_phase phase, uint64_t bytes)
{
  /* The pause has begun, or has passed unseen: a cycle is over. */
  if (r->phase != LJP_NO_PHASE && (phase == LJP_GC_PAUSE || phase < r->phase))
    recorder_end_cycle(r);
  recorder_enter_phase(r, phase);
  r->counts.untold_phases +=
      !(r->every
            ? ljp_push_gc_wait(r->producer, time_ns, r->vm, phase, bytes,
                               r->cycle)
            : ljp_push_gc(r->producer, time_ns, r->vm, phase, bytes, r->cycle));
}

/* Pushes the phases that the collector's hook has noted. */
static void recorder_push_noted(struct ljp_recorder *r)
{
  struct ljp_phase_log *log = &r->log;
  if (!log->count)
    return;
  for (uint32_t i = 0; i < log->count; i++) {
    const struct ljp_phase_note *note = &log->note[i];
    int64_t since = (int64_t)(note->tsc - log->base_tsc);
    uint64_t since_ns = (uint64_t)(int64_t)((double)since * r->tick_ns);
    recorder_push_phase(r,
                        ljp_recorder_advance_time(r, log->base_ns + since_ns),
                        (enum ljp_gc_phase)(note->phase_bytes & LJP_PHASE_MASK),
                        note->phase_bytes >> LJP_PHASE_BITS);
  }
  log->count = 0;
}

void ljp_recorder_flush(struct ljp_recorder *r)
{
  struct ljp_regs here;
  if (!r->holds && !r->log.count)
    return;
  /* After a session has failed the memory may have been freed unseen. */
  if (!ljp_recorder_is_active(r)) {
    r->holds = false;
    r->log.count = 0;
    return;
  }
  recorder_registers(&here);
  const struct ljp_regs *before = recorder_aside(&here);
  if (r->holds) {
    ljp_recorder_set_type(r);
    ljp_recorder_push(r, &r->held);
  }
  ljp_recorder_tell_distance(r);
  recorder_push_noted(r);
  ljp_stand_in_regs = before;
}

/* For the next tenth of a second, phases are only noted, unless the heap changes
** much: if the program idles then, the stream has no figure that is far off. */
static void recorder_let_note(struct ljp_recorder *r)
{
  struct ljp_phase_log *log = &r->log;
  if (!atomic_load_explicit(&log->on, memory_order_relaxed))
    return;
  const uint64_t bytes = ljp_guest_heap_bytes(&r->heap);
  log->least_bytes = bytes / 4;
  log->most_bytes = bytes * 4;
  log->base_ns = ljp_recorder_time_now(r);
  log->base_tsc = __rdtsc();
  log->due_tsc =
      r->tick_ns > 0 ? log->base_tsc + (uint64_t)(NOTED_NS / r->tick_ns) : 0;
}

void ljp_recorder_check_phase(struct ljp_recorder *r, size_t leaving)
{
  enum ljp_gc_phase phase = ljp_guest_gc_phase(&r->heap);
  struct ljp_regs here;
  if (phase == r->phase && !r->log.count)
    return;
  int *error = &errno, saved = *error;
  recorder_registers(&here);
  const struct ljp_regs *before = recorder_aside(&here);
  ljp_recorder_flush(r);
  ljp_recorder_shorten_distance(r);
  if (phase != r->phase)
    recorder_push_phase(r, ljp_recorder_time_now(r), phase,
                        ljp_guest_heap_bytes(&r->heap) + leaving);
  recorder_let_note(r);
  ljp_stand_in_regs = before;
  *error = saved;
}

void ljp_recorder_mark(struct ljp_recorder *r, const char *name, size_t bytes)
{
  struct ljp_regs here;
  recorder_registers(&here);
  const struct ljp_regs *before = recorder_aside(&here);
  ljp_recorder_flush(r);
  r->tsc = 0;
  ljp_push_mark(r->producer, ljp_recorder_time(r), 0, r->vm,
                (int64_t)ljp_guest_heap_bytes(&r->heap), name, bytes);
  ljp_stand_in_regs = before;
}

void ljp_recorder_moment(struct ljp_recorder *r, uint64_t snapshot)
{
  struct ljp_regs here;
  recorder_registers(&here);
  const struct ljp_regs *before = recorder_aside(&here);
  const struct ljp_moment_fields fields = {.snapshot = snapshot,
                                           .vm = r->vm,
                                           .heap_bytes =
                                               ljp_guest_heap_bytes(&r->heap)};
  ljp_recorder_flush(r);
  r->tsc = 0;
  ljp_push_moment_wait(r->producer, ljp_recorder_time(r), &fields);
  ljp_stand_in_regs = before;
}

void ljp_recorder_forked(struct ljp_recorder *r)
{
  r->holds = false;
  r->cycle += ljp_phases_cycles(&r->log);
  r->log.count = 0;
  atomic_store(&r->log.inside, false);
  atomic_store(&r->inside, false);
  ljp_stacks_forked(&r->stacks);
  /* The child's file has none of these events. */
  memset(&r->counts, 0, sizeof r->counts);
  r->stacks.cut = r->stacks.remembered = 0;
  r->stacks.checked = r->stacks.differed = 0;
  if (!r->every)
    ljp_recorder_restart_sampled(r);
  recorder_enter_phase(
      r, LJP_NO_PHASE); /* the first event will push the heap's size */
}

void ljp_recorder_phase(struct ljp_recorder *r)
{
  if (!ljp_recorder_enter(r))
    return;
  ljp_recorder_check_phase(r, 0);
  ljp_recorder_leave(r);
}

void ljp_recorder_push_free(struct ljp_recorder *r, struct ljp_mem *m)
{
  r->counts.frees++;
  r->counts.free_bytes += m->weight ? m->weight : m->size;
  m->op = LJP_MEM_FREE;
  if (!(m->what & LJP_MEM_SWEPT)) {
    ljp_recorder_push(r, m);
    return;
  }
  /* A sweep has no stack of its own, so the event gets the stack of the one
  ** before. */
  int *error = &errno, saved = *error;
  r->counts.untold += !ljp_push_mem_same_wait(r->producer, m);
  *error = saved;
}

void ljp_recorder_failed(struct ljp_recorder *r, struct ljp_mem *m, void *ptr,
                         size_t osize)
{
  m->what = (uint8_t)(r->stack.type | LJP_MEM_FAILED);
  if (!r->every)
    m->weight = m->size; /* it stands for itself only */
  m->old_address = ptr ? m->address : 0;
  m->old_size = ptr ? osize : 0;
  r->counts.failed++;
  ljp_recorder_push(r, m);
}

struct ljp_mem ljp_recorder_mem(struct ljp_recorder *r, void *ptr, size_t osize,
                                size_t nsize)
{
  return (struct ljp_mem){.time_ns = ljp_recorder_time(r),
                          .address = (uint64_t)(uintptr_t)ptr,
                          .size = nsize ? nsize : osize,
                          .vm = r->vm,
                          .op = nsize ? ptr ? LJP_MEM_REALLOC : LJP_MEM_ALLOC
                                      : LJP_MEM_FREE};
}

/* -- Begin and end --------------------------------------------------------- */

/* Pushes what is in use. The figures at both ends are what all events must add
** up to, so a full ring is waited for. */
static void recorder_push_bytes(struct ljp_recorder *r, enum ljp_gc_phase phase,
                                uint64_t bytes)
{
  r->tsc = 0;
  r->counts.untold_phases += !ljp_push_gc_wait(
      r->producer, ljp_recorder_time(r), r->vm, phase, bytes, r->cycle);
}

static lua_Alloc recorder_hook(const struct ljp_recorder *r)
{
  return r->every   ? ljp_every_hook
         : r->fixed ? ljp_sampled_own_hook
                    : ljp_sampled_hook;
}

static void *recorder_ud(struct ljp_recorder *r)
{
  return r->fixed ? r->ud : r;
}

bool ljp_recorder_in_place(struct ljp_recorder *r)
{
  void *ud;
  return lua_getallocf(r->heap.main, &ud) == recorder_hook(r) &&
         ud == recorder_ud(r);
}

void ljp_recorder_begin(struct ljp_recorder *r)
{
  r->every = r->sample_bytes == 0;
  r->stacks.producer = r->producer;
  ljp_assert(r->producer && !atomic_load(&r->on));
  recorder_enter_phase(r, ljp_guest_gc_phase(&r->heap));
  r->tsc = 0;
  r->held = (struct ljp_mem){.vm = r->vm};
  r->other_bytes = ljp_guest_heap_bytes(&r->heap);
  recorder_push_bytes(r, r->phase, r->other_bytes);
  r->alloc = lua_getallocf(r->heap.main, &r->ud);
  r->own = ljp_guest_owns_allocator(&r->heap);
  if (!r->every)
    ljp_recorder_begin_sampled(r);
  r->fresh = r->own ? ljp_recorder_fresh : ljp_recorder_every;
  /* lj_alloc_free reads only the first two arguments. */
  r->give_back = r->own ? (lua_Alloc)(void (*)(void))lj_alloc_free : r->alloc;
  atomic_store(&r->noted, false);
  atomic_store(&r->active, ljp_producer_active_flag(r->producer));
  atomic_store(&r->log.on, !r->every && !r->told_at_once);
  atomic_store(&r->on, true);
  lua_setallocf(r->heap.main, recorder_hook(r), recorder_ud(r));
}

void ljp_recorder_switch_off(struct ljp_recorder *r)
{
  static const _Atomic bool never;
  atomic_store(&r->active, &never);
  atomic_store(&r->log.on, false);
  atomic_store(&r->on, false);
}

void ljp_recorder_reset(struct ljp_recorder *r)
{
  const lua_Alloc alloc = r->alloc, give_back = r->give_back;
  void *const ud = r->ud;
  const bool every = r->every, own = r->own;
  struct ljp_producer *producer = r->producer;
  const uint64_t told_bytes = r->told_bytes;
  memset(r, 0, offsetof(struct ljp_recorder, stacks));
  r->alloc = alloc;
  r->ud = ud;
  r->give_back = give_back;
  r->fresh = own ? ljp_recorder_fresh : ljp_recorder_every;
  r->every = every;
  r->own = own;
  r->producer = producer;
  r->told_bytes = told_bytes;
  r->down = &r->here;
  r->here.until = INT64_MAX;
  atomic_store(&r->noted, true);
  ljp_recorder_switch_off(r);
}

static void recorder_add_counts(struct ljp_memprof_counts *sums,
                                const struct ljp_memprof_counts *counts)
{
  uint64_t *to = (uint64_t *)sums;
  const uint64_t *from = (const uint64_t *)counts;
  _Static_assert(sizeof *sums % sizeof *to == 0, "counters only");
  for (size_t i = 0; i < sizeof *sums / sizeof *to; i++)
    to[i] += from[i];
}

/* The VM's thread may be counting meanwhile. */
__attribute__((no_sanitize("thread"))) void
ljp_recorder_add_counts(const struct ljp_recorder *r,
                        struct ljp_memprof_counts *sums)
{
  struct ljp_memprof_counts counts = r->counts;
  counts.cycles += ljp_phases_cycles(&r->log);
  counts.cut = r->stacks.cut;
  counts.remembered = r->stacks.remembered;
  counts.checked = r->stacks.checked;
  counts.differed = r->stacks.differed;
  recorder_add_counts(sums, &counts);
}

static void recorder_push_last(struct ljp_recorder *r, enum ljp_gc_phase phase)
{
  if (atomic_load(&r->on)) {
    ljp_recorder_flush(r);
    recorder_push_bytes(r, phase, ljp_guest_heap_bytes(&r->heap));
  }
  ljp_recorder_switch_off(r);
}

bool ljp_recorder_end(struct ljp_recorder *r, bool closed)
{
  recorder_push_last(r, closed ? LJP_GC_CLOSED : ljp_guest_gc_phase(&r->heap));
  return ljp_recorder_remove(r);
}

void ljp_recorder_leave_place(struct ljp_recorder *r)
{
  recorder_push_last(r, ljp_guest_gc_phase(&r->heap));
}

bool ljp_recorder_remove(struct ljp_recorder *r)
{
  bool ours = ljp_recorder_in_place(r);
  if (ours)
    lua_setallocf(r->heap.main, r->alloc, r->ud);
  ljp_recorder_end_sampled(r, ours);
  r->ended = false;
  atomic_store(&r->noted, true);
  return ours;
}

/* -- The end from another thread ------------------------------------------- */

/* Waits until the VM's thread is not inside. It may be waiting for room in the
** ring, but not for long. */
static bool recorder_await(const struct ljp_recorder *r, uint64_t until)
{
  enum { PAUSE_NS = 100000 };
  _Atomic uint32_t never = 0;
  /* Acquire: pairs with ljp_recorder_leave(), and with the end of a note. */
  while (atomic_load_explicit(&r->inside, memory_order_acquire) ||
         atomic_load_explicit(&r->log.inside, memory_order_acquire)) {
    if (ljp_clock_ns() > until)
      return false;
    ljp_futex_wait(&never, 0, PAUSE_NS);
  }
  return true;
}

/* The VM's own count of bytes at the last recorded event. The VM may be between
** a call of its allocator and the count of it; then a later moment tells.
** False: the VM's thread has not run on. */
static bool recorder_bytes_elsewhere(const struct ljp_recorder *r,
                                     uint64_t *bytes)
{
  enum { TRIES = 20, PAUSE_NS = 1000000 };
  _Atomic uint32_t never = 0;
  uint64_t events = r->counts.alloc_bytes - r->counts.free_bytes;
  for (int i = 0; i < TRIES; i++) {
    if (i)
      ljp_futex_wait(&never, 0, PAUSE_NS);
    /* The VM may have gone with its memory, unseen. */
    if (!ljp_safe_load(r->heap.bytes, bytes))
      return false;
    if (atomic_load_explicit(&r->noted, memory_order_acquire)) {
      *bytes = r->noted_bytes;
      return true;
    }
    if (!r->every || *bytes == r->other_bytes + events)
      return true;
  }
  return false;
}

/* The VM may be freeing the very block. So an object's type is read
** fault-safely, and a table's part stays a part. */
static void recorder_flush_elsewhere(struct ljp_recorder *r)
{
  uint64_t word;
  const uint64_t tag = r->held.address + LJP_GUEST_OBJECT_TAG_AT;
  uint8_t type = r->held_type;
  if (!r->holds)
    return;
  if (r->held_object) {
    type = LJP_MEM_TYPE_OTHER;
    if (ljp_safe_load((const void *)(uintptr_t)(tag & ~UINT64_C(7)), &word) &&
        (uint8_t)(word >> (tag & 7) * 8) < LJP_GUEST_OBJECT_TAGS)
      type = ljp_guest_object_types[(uint8_t)(word >> (tag & 7) * 8)];
  } else if (r->held_part) {
    type = LJP_MEM_TYPE_TABLE;
  }
  r->held.what |= type;
  r->holds = false;
  ljp_recorder_push(r, &r->held);
}

bool ljp_recorder_end_elsewhere(struct ljp_recorder *r, uint64_t until_ns)
{
  r->ended = true;
  if (!recorder_await(r, until_ns))
    return false;
  if (ljp_clock_ns() > until_ns)
    ljp_producer_give_up(r->producer);
  if (!r->replaced) {
    uint64_t bytes;
    recorder_flush_elsewhere(r);
    recorder_push_noted(r);
    /* Else the figure of the last phase is the last. */
    if (recorder_bytes_elsewhere(r, &bytes))
      recorder_push_bytes(r, r->phase == LJP_NO_PHASE ? LJP_GC_PAUSE : r->phase,
                          bytes);
  }
  return true;
}
