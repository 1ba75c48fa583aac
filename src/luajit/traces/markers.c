/*
** Making markers. They lead from bytecode through the compiler's intermediate
** code (IR) to machine code (RFC 4, markers.h).
**
** The trace recorder stores a marker before each bytecode (ljp_marker_put() of
** patch 0007): the bytecode's address and the next IR reference. The hooks here
** add the rest: which function's frame the next markers are of and where that
** frame lies, where an unrolled loop has its copies, and where the code of each
** reference begins. A finished trace gets a copy of these notes. What the notes
** mean is worked out only when it is needed (marker_find.c, lines.c), even who
** called whom.
**
** Invariant: references of markers ascend.
** The hooks run on the VM's own thread, inside its compiler, so they must not
** call into the VM. At a bound or without memory, no marker is made and the
** missing marker is counted; nothing fails.
*/
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"

#include "src/base/assert.h"
#include "src/luajit/traces/trace.h"
#include "src/luajit/vm/lock.h"
#include "src/luajit/vm/vm_of.h"

enum {
  MOST_REFS = 0x10000 - REF_BASE,
  MOST_CODE = 0xffff /* bytes of a trace that 16 bits can address */
};
_Static_assert(sizeof(struct LJPMarker) == sizeof(struct ljp_marker) &&
                   offsetof(struct LJPMarker, ref) ==
                       offsetof(struct ljp_marker, ref),
               "the handler reads other markers");
_Static_assert(LJP_REF_BASE == REF_BASE, "other references");

/* At the start and the end of a block of markers. J->ljp points to a head while
** the next marker must be made by a call of ljp_hook_marker(). */
struct marker_head {
  union {
    struct LJPMarker *next;          /* NULL: there is no room */
    struct ljp_marker_notes *unused; /* in the list of unused notes */
  };
  struct ljp_jit *jit;
};

/* The notes about the trace that is being compiled, aligned to
** LJP_MARKER_BLOCK. They are so large that malloc() maps fresh pages, which
** cost nothing until used. */
struct ljp_marker_notes {
  union {
    struct marker_head head;
    struct LJPMarker marker[LJP_MARKERS_MAX];
  };
  struct marker_head end;
  struct ljp_shift shift[LJP_SHIFTS_MAX];
  uint16_t code[MOST_REFS], copied[MOST_REFS];
  /* Of marker_put_given(): too large for a coroutine's stack. */
  struct marker_level {
    const GCfunc *fn;
    uint32_t call, slot;
  } level[LJ_MAX_JSLOTS];
};
_Static_assert(sizeof(struct marker_head) ==
                   LJP_FIRST_MARKER * sizeof(struct LJPMarker),
               "markers begin behind the head");
_Static_assert(offsetof(struct ljp_marker_notes, end) == LJP_MARKER_BLOCK,
               "another block of markers");
_Static_assert(LJP_SHIFTS_MAX > LJ_MAX_JSLOTS,
               "the frames of a side trace have room");

/* Written when there is no memory for notes, and never read. */
static uint16_t marker_nowhere[MOST_REFS];

static _Atomic uint64_t marker_bytes_alive;

/* Notes that no VM is using. VMs share them, because few compile at the same
** time, and pages once written stay in memory. The first notes are in
** marker_spare, all others in a list, under the lock of traces. */
static struct ljp_marker_notes *_Atomic marker_spare;
static struct ljp_marker_notes *marker_unused;

uint32_t ljp_markers_count(const struct ljp_jit *jit,
                           const struct ljp_markers *head)
{
  /* If marking was given up, the last marker marks nothing. */
  return head->markers ? head->markers - LJP_FIRST_MARKER - (jit->markers != 0)
                       : 0;
}

uint64_t ljp_markers_bytes(void)
{
  return atomic_load_explicit(&marker_bytes_alive, memory_order_relaxed);
}

static _Atomic enum {
  MARKER_NOT_ASKED,
  MARKER_NEVER,
  MARKER_ALWAYS
} marker_wanted;

/* False until the first trace of the process has asked. */
static inline bool marker_known_wanted(void)
{
  return atomic_load_explicit(&marker_wanted, memory_order_relaxed) ==
         MARKER_ALWAYS;
}

bool ljp_markers_wanted(void)
{
#ifndef LJP_NO_MARKERS
  if (atomic_load_explicit(&marker_wanted, memory_order_relaxed) ==
      MARKER_NOT_ASKED) {
    const char *text = getenv("LJPROF_MARKERS");
    atomic_store_explicit(&marker_wanted,
                          text && strcmp(text, "0") == 0 ? MARKER_NEVER
                                                         : MARKER_ALWAYS,
                          memory_order_relaxed);
  }
#endif
  return marker_known_wanted();
}

/* The spare notes are in use by another VM, or there are none yet. */
__attribute__((noinline)) static struct ljp_marker_notes *
marker_find_notes(void)
{
  ljp_lock(LJP_LOCK_TRACES);
  struct ljp_marker_notes *notes = marker_unused;
  if (notes)
    marker_unused = notes->head.unused;
  ljp_unlock(LJP_LOCK_TRACES);
  void *p = notes;
  if (notes || !posix_memalign(&p, LJP_MARKER_BLOCK, sizeof *notes))
    return p;
  /* With musl it fails if the program has a malloc() of its own. Notes are never
  ** freed. */
  uintptr_t start = (uintptr_t)malloc(sizeof *notes + LJP_MARKER_BLOCK);
  if (!start)
    return NULL;
  return (void *)((start + LJP_MARKER_BLOCK - 1) & ~(LJP_MARKER_BLOCK - 1));
}

__attribute__((noinline)) static void
marker_put_notes(struct ljp_marker_notes *notes)
{
  ljp_lock(LJP_LOCK_TRACES);
  notes->head.unused = marker_unused;
  marker_unused = notes;
  ljp_unlock(LJP_LOCK_TRACES);
}

void ljp_markers_end(struct ljp_jit *jit)
{
  struct ljp_marker_notes *notes = jit->notes, *none = NULL;
  jit->next_shift = NULL;
  jit->notes = NULL;
  /* Release and acquire: a VM on another thread may take the notes next. */
  if (notes && LJP_UNLIKELY(!atomic_compare_exchange_strong_explicit(
                   &marker_spare, &none, notes, memory_order_release,
                   memory_order_relaxed)))
    marker_put_notes(notes);
}

static inline void marker_begin(struct ljp_jit *jit, jit_State *J,
                                struct ljp_marker_notes *notes, bool wanted)
{
  jit->notes = notes;
  jit->cut = 0;
  jit->full = wanted && !notes;
  jit->next_shift = NULL;
  J->ljp = NULL;
  if (LJP_UNLIKELY(!notes))
    return;
  notes->head = notes->end = (struct marker_head){.jit = jit};
  if (LJP_UNLIKELY(!wanted))
    return;
  jit->next_shift = notes->shift;
  jit->given = 1;
  jit->markers = jit->code_refs = jit->copied_refs = 0;
  J->ljp = notes->marker;
  notes->head.next = J->ljp + LJP_FIRST_MARKER;
}

__attribute__((noinline)) static void marker_begin_slowly(struct ljp_jit *jit,
                                                          jit_State *J)
{
  marker_begin(jit, J, jit->notes ? jit->notes : marker_find_notes(),
               ljp_markers_wanted());
}

void ljp_markers_begin(struct ljp_jit *jit, jit_State *J)
{
  struct ljp_marker_notes *notes = NULL;
  if (LJP_LIKELY(!jit->notes))
    notes = atomic_exchange_explicit(&marker_spare, NULL, memory_order_acquire);
  if (LJP_LIKELY(notes))
    marker_begin(jit, J, notes, marker_known_wanted());
  else
    marker_begin_slowly(jit, J);
}

/* -- Which frame the trace recorder is in ---------------------------------- */

enum { OWN_SLOT = 1 + LJ_FR2 }; /* of the frame at the trace's BASE */

static uint32_t marker_low32(const BCIns *pc)
{
  return (uint32_t)(uintptr_t)pc;
}

/* A block is aligned to its size. */
static inline uint32_t marker_number(const struct LJPMarker *m)
{
  return (uint32_t)((uintptr_t)m & (LJP_MARKER_BLOCK - 1)) /
         (uint32_t)sizeof(struct LJPMarker);
}

static inline void marker_shift_to(struct ljp_jit *jit, const GCfunc *fn,
                                   const struct LJPMarker *m, uint32_t slot)
{
  struct ljp_shift *shift = jit->next_shift++;
  ljp_assert(shift < jit->notes->shift + LJP_SHIFTS_MAX);
  ljp_assert(marker_number(m) >= LJP_FIRST_MARKER);
  if (isluafunc(fn)) {
    const GCproto *pt = funcproto(fn);
    shift->function = (uint64_t)(uintptr_t)pt;
    shift->ref = pt->unused_gc64;
  } else {
    shift->function = 0;
    shift->ref = LJP_CHAIN_BUILTIN | fn->c.ffid;
  }
  shift->marker = (uint16_t)marker_number(m);
  shift->slot = (uint16_t)slot;
}

static inline void marker_put(jit_State *J, struct LJPMarker *m, uint32_t pc)
{
  m->pc = pc;
  m->ref = J->cur.nins;
  J->ljp = m + 1;
}

/* A side trace begins with frames that its parent has inlined. Each of them,
** beginning with the one at BASE, gets a shift and a marker for its call. */
static bool marker_put_given(struct ljp_jit *jit, jit_State *J,
                             struct LJPMarker *m)
{
  struct marker_level *level = jit->notes->level;
  cTValue *frame = J->L->base - 1;
  cTValue *lowest = J->L->base - J->baseslot + LJ_FR2;
  uint32_t levels = 0, slot = 0, pc = marker_low32(J->pc);
  for (;;) {
    uint32_t call = 0;
    const GCfunc *fn = frame_func(frame);
    bool varargs = false;
    bool end = frame <= lowest;
    if (!slot)
      slot = (uint32_t)(frame - lowest) + OWN_SLOT;
    if (!end) {
      if (frame_islua(frame)) {
        call = marker_low32(frame_pc(frame) - 1);
        frame = frame_prevl(frame);
      } else {
        varargs = frame_isvarg(frame);
        if (frame_iscont(frame))
          call = marker_low32(frame_contpc(frame) - 1);
        frame = frame_prevd(frame);
      }
    }
    if (!varargs) { /* a frame with varargs comes twice */
      if (levels == LJ_MAX_JSLOTS)
        return false;
      level[levels].fn = fn;
      level[levels].slot = slot;
      level[levels++].call = pc;
      pc = call;
      slot = 0;
    }
    if (end)
      break;
  }
  jit->given = levels;
  while (levels--) {
    marker_shift_to(jit, level[levels].fn, m, level[levels].slot);
    marker_put(J, m++, level[levels].call);
  }
  return true;
}

/* The rest of the trace has no markers: ends the last marker with one that
** marks nothing. */
static void marker_give_up(struct ljp_jit *jit, jit_State *J,
                           struct LJPMarker *m)
{
  jit->cut = ((const struct marker_head *)(const void *)J->ljp)->next ? 1 : 2;
  m->ref = J->cur.nins;
  jit->markers = marker_number(m) + 1;
  *jit->next_shift++ = (struct ljp_shift){.marker = (uint16_t)marker_number(m)};
  jit->full = true;
  J->ljp = NULL;
}

/* The first marker of a side trace, or something is full. */
__attribute__((noinline)) static void marker_slow(jit_State *J)
{
  const struct marker_head *head =
      (const struct marker_head *)(const void *)J->ljp;
  struct ljp_jit *jit = head->jit;
  struct LJPMarker *last = jit->notes->marker + LJP_MARKERS_MAX - 1;
  struct LJPMarker *m = head->next && head->next < last ? head->next : last;
  if (m == last || jit->next_shift != jit->notes->shift ||
      !marker_put_given(jit, J, m))
    marker_give_up(jit, J, m);
}

/* Called where no marker is made. It counts as left out only if markers are
** wanted. */
__attribute__((noinline)) static void marker_count_cut(const jit_State *J)
{
  struct ljp_vm *vm = ljp_vm_of_jit(J);
  if (vm && vm->jit && vm->jit->full)
    vm->jit->cut++;
}

/* A function was called, or has returned. */
void ljp_hook_marker(jit_State *J)
{
  const struct marker_head *head =
      (const struct marker_head *)(const void *)J->ljp;
  if (LJP_UNLIKELY(!head)) {
    marker_count_cut(J);
    return;
  }
  struct ljp_jit *jit = head->jit;
  struct LJPMarker *m = head->next;
  const struct ljp_shift *first = jit->notes->shift, *next = jit->next_shift;
  uint32_t slot = J->baseslot;
  /* The last number is kept for the marker that marks nothing. */
  if (LJP_UNLIKELY(marker_number(m) - 1u >= LJP_MARKERS_MAX - 2u ||
                   next == first + LJP_SHIFTS_MAX - 1 ||
                   (next == first && slot != OWN_SLOT))) {
    marker_slow(J);
    return;
  }
  marker_shift_to(jit, J->fn, m, slot);
  marker_put(J, m, marker_low32(J->pc));
}

/* -- In the optimiser and the assembler ------------------------------------ */

/* What belongs to the compiling VM; NULL: it has no notes. */
static inline struct ljp_jit *marker_compiling(const jit_State *J)
{
  if (LJP_LIKELY(J->ljp)) {
    uintptr_t notes = (uintptr_t)J->ljp & ~(LJP_MARKER_BLOCK - 1);
    return ((const struct marker_head *)notes)->jit;
  }
  struct ljp_vm *vm = ljp_vm_of_jit(J);
  return vm && vm->jit && vm->jit->notes ? vm->jit : NULL;
}

/* A loop is about to be unrolled. Returns where the optimiser writes, for each
** reference, the reference at which its copy begins. */
IRRef1 *ljp_hook_marker_copies(jit_State *J)
{
  struct ljp_jit *jit = marker_compiling(J);
  if (!jit)
    return marker_nowhere - REF_BASE;
  jit->copied_refs = J->cur.nins - REF_BASE;
  return jit->notes->copied - REF_BASE;
}

/* The trace is about to be assembled, maybe once more. Returns where the
** assembler writes, for each reference, the address (its low bits) at which the
** code of the references behind it begins. References without code, or fused
** with another instruction, are not visited. */
uint16_t *ljp_hook_marker_code(jit_State *J)
{
  struct ljp_jit *jit = marker_compiling(J);
  if (!jit)
    return marker_nowhere - REF_BASE;
  jit->code_refs = J->cur.nins - REF_BASE;
  memset(jit->notes->code, 0, jit->code_refs * sizeof *jit->notes->code);
  return jit->notes->code - REF_BASE;
}

/* -- When the trace is done ------------------------------------------------ */

size_t ljp_markers_measure(struct ljp_jit *jit, const jit_State *J,
                           struct ljp_markers *head)
{
  *head = (struct ljp_markers){0};
  if (!jit->next_shift || jit->next_shift == jit->notes->shift)
    return 0; /* no markers are made, or no bytecode was recorded */
  const struct LJPMarker *next = J->ljp;
  if (next == jit->notes->marker)
    next = jit->notes->head.next;
  head->markers =
      (uint16_t)(jit->markers ? jit->markers
                              : (uint32_t)(next - jit->notes->marker));
  head->shifts = (uint16_t)(jit->next_shift - jit->notes->shift);
  head->given = (uint16_t)jit->given;
  head->refs = (uint16_t)jit->code_refs;
  head->loop = (uint16_t)(J->loopref ? J->loopref - REF_BASE : 0);
  head->bytes = (uint32_t)ljp_markers_at(head, LJP_MARKERS_END);
  if (!jit->code_refs || (head->loop && head->loop != jit->copied_refs) ||
      J->cur.szmcode > MOST_CODE ||
      ljp_markers_bytes() + head->bytes > LJP_MARKERS_TOTAL_BYTES) {
    jit->full = true;
    jit->cut += ljp_markers_count(jit, head);
    head->markers = 0;
    return 0;
  }
  return head->bytes;
}

static char *marker_copy_array(char *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return to + bytes;
}

void ljp_markers_copy(const struct ljp_jit *jit, const struct ljp_markers *head,
                      struct ljp_markers *out)
{
  const struct ljp_marker_notes *notes = jit->notes;
  char *to = (char *)(out + 1);
  *out = *head;
  /* In the order of LJP_MARKER_ARRAYS. */
  to = marker_copy_array(to, notes->shift, head->shifts * sizeof *notes->shift);
  to = marker_copy_array(to, notes->marker,
                         head->markers * sizeof *notes->marker);
  to = marker_copy_array(to, notes->code, head->refs * sizeof *notes->code);
  if (head->loop)
    to = marker_copy_array(to, notes->copied,
                           head->loop * sizeof *notes->copied);
  (void)to; /* read by the assert only */
  ljp_assert(to == (char *)out + head->bytes);
  atomic_fetch_add_explicit(&marker_bytes_alive, head->bytes,
                            memory_order_relaxed);
}

void ljp_markers_free(const struct ljp_markers *markers)
{
  if (markers)
    atomic_fetch_sub_explicit(&marker_bytes_alive, markers->bytes,
                              memory_order_relaxed);
}
