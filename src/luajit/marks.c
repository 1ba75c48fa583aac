/*
** Marks: what compiled code stems from, from bytecode through the compiler's
** intermediate code (IR) to machine code. doc/rfc/0004-traces.md, traces.h.
**
** The recorder notes a mark before each bytecode (ljp_mark() of the patch): its
** address, and the next IR reference. The hooks here see to the rest: which
** chain of functions the marks from now on are in, where a loop that is unrolled
** has its copies, and where the code of each reference begins. Nothing is worked
** out before somebody asks (trace_find.c, trace_lines.c): a trace that is done
** takes a copy of the notes along.
**
** Invariant: references of marks ascend; chain[0] is no chain.
** The hooks run on the VM's own thread, inside of its compiler: they must not
** call into the VM. What cannot be marked (a bound, no memory) is counted and
** has no mark; nothing fails.
*/
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/guest_priv.h"
#include "src/luajit/traces.h"

enum {
  MARKS_BYTES = LJP_MARKS_MAX * sizeof(struct LJPMark),
  MOST_CODE = 0xffff /* bytes of a trace that 16 bits tell apart */
};
_Static_assert(LJP_MARKS == MARKS_BYTES, "another block of marks");
_Static_assert(sizeof(struct LJPMark) == sizeof(struct ljp_mark) &&
                   offsetof(struct LJPMark, ref) ==
                       offsetof(struct ljp_mark, ref),
               "the handler reads other marks");

_Static_assert(LJP_REF_BASE == REF_BASE, "other references");

static _Atomic uint64_t bytes_alive;

uint64_t ljp_marks_bytes(void)
{
  return atomic_load_explicit(&bytes_alive, memory_order_relaxed);
}

bool ljp_marks_wanted(void)
{
#ifdef LJP_NO_MARKERS
  return false;
#else
  enum { NOT_ASKED, NEVER, ALWAYS };
  static _Atomic int wanted = NOT_ASKED;
  int known = atomic_load_explicit(&wanted, memory_order_relaxed);
  if (LJP_UNLIKELY(known == NOT_ASKED)) {
    const char *text = getenv("LJPROF_MARKERS");
    known = text && strcmp(text, "0") == 0 ? NEVER : ALWAYS;
    atomic_store_explicit(&wanted, known, memory_order_relaxed);
  }
  return known == ALWAYS;
#endif
}

/* What ljp_hook_mark() finds at the block's start, where J->ljp stands while the
** next mark asks for a call, and at its end. */
struct head {
  struct LJPMark *next; /* NULL: the block is full */
  struct ljp_jit *jit;
};
_Static_assert(sizeof(struct head) == LJP_FIRST_MARK * sizeof(struct LJPMark),
               "marks begin behind the head");

static struct LJPMark *block_of(const struct ljp_jit *jit)
{
  return (struct LJPMark *)(void *)jit->block;
}

__attribute__((noinline)) static bool make_block(struct ljp_jit *jit)
{
  enum { CHAINS = 64, SHIFTS = 256 };
  void *block = NULL;
  jit->chain = malloc(CHAINS * sizeof *jit->chain);
  jit->shift = malloc(SHIFTS * sizeof *jit->shift);
  if (!jit->chain || !jit->shift ||
      posix_memalign(&block, LJP_MARKS, LJP_MARKS + sizeof(struct head))) {
    free(jit->chain);
    free(jit->shift);
    return false;
  }
  jit->chain_capacity = CHAINS;
  jit->shift_capacity = SHIFTS;
  jit->block = block;
  *(struct head *)block = (struct head){.jit = jit};
  *(struct head *)(void *)((char *)block + LJP_MARKS) =
      (struct head){.jit = jit};
  return true;
}

void ljp_marks_begin(struct ljp_jit *jit, jit_State *J)
{
  jit->chains = 1;
  jit->shifts = 0;
  jit->now = 0;
  jit->at_base = 0;
  jit->code_refs = jit->copied_refs = 0;
  jit->full = false;
  J->ljp = NULL;
  if (LJP_UNLIKELY(!ljp_marks_wanted()))
    return;
  if (LJP_UNLIKELY(!jit->block) && !make_block(jit)) {
    jit->full = true;
    return;
  }
  J->ljp = block_of(jit);
  ((struct head *)jit->block)->next = J->ljp + LJP_FIRST_MARK;
}

/* -- Which frame the recorder is in -------------------------------------------
 */

/* Double an array's room, up to a bound. */
__attribute__((noinline)) static bool grow(void **array, uint32_t *capacity,
                                           uint32_t most, size_t size)
{
  uint32_t fresh = *capacity * 2;
  void *p = fresh <= most ? realloc(*array, fresh * size) : NULL;
  if (!p)
    return false;
  *array = p;
  *capacity = fresh;
  return true;
}

static uint32_t low32(const BCIns *pc)
{
  return (uint32_t)(uintptr_t)pc;
}

/* How a function is told from others: a prototype by its address. */
static inline uint64_t identity(const GCfunc *fn)
{
  return isluafunc(fn) ? (uint64_t)(uintptr_t)funcproto(fn)
                       : LJP_NOTE_BUILTIN | fn->c.ffid;
}

__attribute__((noinline)) static bool more_chains(struct ljp_jit *jit)
{
  jit->full = !grow((void **)&jit->chain, &jit->chain_capacity, LJP_CHAINS_MAX,
                    sizeof *jit->chain);
  return !jit->full;
}

/* There is room for one more. */
static inline uint32_t add_chain(struct ljp_jit *jit, const GCfunc *fn,
                                 uint32_t caller, uint32_t call)
{
  struct ljp_chain_note *c = &jit->chain[jit->chains];
  c->function = identity(fn);
  c->ref = isluafunc(fn) ? funcproto(fn)->unused_gc64 : 0;
  c->call = call;
  c->caller = (uint16_t)caller;
  return jit->chains++;
}

/* The chain of a frame: a function, called at that instruction of the caller. It
** comes behind its caller's. */
static inline uint32_t find_chain(struct ljp_jit *jit, const GCfunc *fn,
                                  uint32_t caller, uint32_t call, uint32_t slot)
{
  uint64_t function = identity(fn);
  uint32_t i = jit->chains;
  struct ljp_chain_note *c;
  while (--i > caller) {
    c = &jit->chain[i];
    if (c->call == call && c->function == function && c->caller == caller) {
      c->slot = (uint16_t)slot;
      return i;
    }
  }
  if (LJP_UNLIKELY(jit->chains == jit->chain_capacity) && !more_chains(jit))
    return 0;
  i = add_chain(jit, fn, caller, call);
  jit->chain[i].slot = (uint16_t)slot;
  return i;
}

/* As in a chain's function. */
static uint32_t ref_of(const GCfunc *fn)
{
  return isluafunc(fn) ? funcproto(fn)->unused_gc64
                       : LJP_CHAIN_BUILTIN | fn->c.ffid;
}

/* The outermost frame of a chain. Compiled code that makes a tail call there
** leaves the function's slot in memory as it is. */
static uint32_t find_outermost(struct ljp_jit *jit, const jit_State *J,
                               const GCfunc *fn, uint32_t slot)
{
  uint32_t ref = ref_of(fn);
  if (!jit->at_base || jit->lower_returns != (uint32_t)J->retdepth) {
    jit->at_base = ref;
    jit->lower_returns = (uint32_t)J->retdepth;
  }
  return find_chain(jit, fn, 0, jit->at_base == ref ? 0 : jit->at_base, slot);
}

/* The chain by the frames of the Lua stack, down to the one at which the trace
** began. */
__attribute__((noinline)) static uint32_t walk_chain(struct ljp_jit *jit,
                                                     const jit_State *J)
{
  struct {
    const GCfunc *fn;
    uint32_t call, slot;
  } level[LJ_MAX_JSLOTS];
  cTValue *frame = J->L->base - 1;
  cTValue *lowest = J->L->base - J->baseslot + LJ_FR2;
  uint32_t levels = 0, chain = 0, slot = 0;
  for (;;) {
    uint32_t call = 0;
    const GCfunc *fn = frame_func(frame);
    bool varargs = false;
    bool end = frame <= lowest;
    if (!slot)
      slot = (uint32_t)(frame - lowest) + 1 + LJ_FR2;
    if (!end) {
      if (frame_islua(frame)) {
        call = low32(frame_pc(frame) - 1);
        frame = frame_prevl(frame);
      } else {
        varargs = frame_isvarg(frame);
        if (frame_iscont(frame))
          call = low32(frame_contpc(frame) - 1);
        frame = frame_prevd(frame);
      }
    }
    if (!varargs) { /* such a frame comes twice */
      if (levels == LJ_MAX_JSLOTS)
        return 0;
      level[levels].fn = fn;
      level[levels].slot = slot;
      level[levels++].call = call;
      slot = 0;
    }
    if (end)
      break;
  }
  while (levels--) {
    chain = chain
                ? find_chain(jit, level[levels].fn, chain, level[levels].call,
                             level[levels].slot)
                : find_outermost(jit, J, level[levels].fn, level[levels].slot);
    if (!chain)
      return 0;
  }
  return chain;
}

__attribute__((noinline)) static bool more_shifts(struct ljp_jit *jit)
{
  if (grow((void **)&jit->shift, &jit->shift_capacity, LJP_MARKS_MAX,
           sizeof *jit->shift))
    return true;
  jit->full = true;
  jit->shift[jit->shifts - 1].chain = 0;
  return false;
}

/* From the mark on, code is of this chain. */
static inline void shift_to(struct ljp_jit *jit, uint32_t mark, uint32_t chain)
{
  struct ljp_shift *shift = &jit->shift[jit->shifts++];
  jit->now = chain;
  shift->mark = (uint16_t)mark;
  shift->chain = (uint16_t)chain;
}

static inline void put_mark(jit_State *J, struct LJPMark *m)
{
  m->pc = low32(J->pc);
  m->ref = J->cur.nins;
  J->ljp = m + 1;
}

/* Where a block begins or ends, a frame is not one that is known already, or
** something has to grow. */
__attribute__((noinline)) static void mark_slowly(jit_State *J)
{
  const struct head *head = (const struct head *)(const void *)J->ljp;
  struct ljp_jit *jit = head->jit;
  struct LJPMark *block = block_of(jit), *m = head->next;
  bool more = jit->shifts < jit->shift_capacity || more_shifts(jit);
  if (!m || m >= block + LJP_MARKS_MAX - 1) {
    /* What follows belongs to nobody, least of all to the last mark. */
    block[LJP_MARKS_MAX - 1].ref = J->cur.nins;
    jit->full = true;
    if (more)
      shift_to(jit, LJP_MARKS_MAX - 1, 0);
    J->ljp = NULL;
    return;
  }
  cTValue *frame = J->L->base - 1;
  uint32_t slot = J->baseslot, chain;
  if (slot == 1 + LJ_FR2)
    chain = find_outermost(jit, J, J->fn, slot);
  else if (jit->now && frame_islua(frame) &&
           low32(frame_pc(frame) - 1) == m[-1].pc)
    chain = find_chain(jit, J->fn, jit->now, m[-1].pc, slot);
  else
    chain = walk_chain(jit, J);
  if (more && chain != jit->now)
    shift_to(jit, (uint32_t)(m - block), chain);
  put_mark(J, m);
}

/* Mostly a Lua function or a builtin was called by the bytecode that was marked
** last, or has returned to the one that did so. No calls, so that it is short. */
void ljp_hook_mark(jit_State *J)
{
  const struct head *head = (const struct head *)(const void *)J->ljp;
  if (!head)
    return;
  struct ljp_jit *jit = head->jit;
  struct LJPMark *block = block_of(jit), *m = head->next;
  uint32_t slot = J->baseslot, now = jit->now, chain = 0;
  if (!now && slot == 1 + LJ_FR2 && jit->chains == 1) { /* the first one */
    jit->at_base = ref_of(J->fn);
    jit->lower_returns = (uint32_t)J->retdepth;
    jit->chain[1].slot = 1 + LJ_FR2;
    shift_to(jit, LJP_FIRST_MARK, add_chain(jit, J->fn, 0, 0));
    put_mark(J, m);
    return;
  }
  if (LJP_UNLIKELY(!m || !now || m >= block + LJP_MARKS_MAX - 1 ||
                   jit->shifts == jit->shift_capacity)) {
    mark_slowly(J);
    return;
  }
  struct ljp_chain_note *c = &jit->chain[now];
  cTValue *frame = J->L->base - 1;
  uint64_t function = identity(J->fn);
  if (slot > 1 + LJ_FR2 && frame_islua(frame) &&
      low32(frame_pc(frame) - 1) == m[-1].pc) {
    c->slot = (uint16_t)(slot - (1 + LJ_FR2 + bc_a(frame_pc(frame)[-1])));
    for (chain = jit->chains; --chain > now;) {
      c = &jit->chain[chain];
      if (c->call == m[-1].pc && c->function == function && c->caller == now)
        break;
    }
    if (chain == now) { /* a new one */
      if (LJP_UNLIKELY(jit->chains == jit->chain_capacity)) {
        mark_slowly(J);
        return;
      }
      chain = add_chain(jit, J->fn, now, m[-1].pc);
      c = &jit->chain[chain];
    }
    c->slot = (uint16_t)slot;
  } else {
    for (chain = now; chain && c->slot > slot; c = &jit->chain[chain])
      chain = c->caller;
    if (!chain || c->slot != slot || c->function != function) {
      mark_slowly(J);
      return;
    }
  }
  if (chain != now)
    shift_to(jit, (uint32_t)(m - block), chain);
  put_mark(J, m);
}

/* -- In the optimiser and the assembler --------------------------------------
 */

/* Room for a number for each reference up to the next one. Biased by REF_BASE. */
static uint16_t *refs_of(struct ljp_jit *jit, uint16_t **array,
                         uint32_t *capacity, uint32_t refs)
{
  if (LJP_UNLIKELY(refs > *capacity)) {
    uint32_t fresh = refs < 512 ? 512 : refs * 2;
    free(*array);
    *array = malloc(fresh * sizeof **array);
    *capacity = *array ? fresh : 0;
    if (!*array) {
      jit->full = true;
      return NULL;
    }
  }
  return *array - REF_BASE;
}

static struct ljp_jit *recording(const jit_State *J)
{
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  struct ljp_jit *jit = vm ? vm->jit : NULL;
  return jit && jit->shifts ? jit : NULL;
}

/* A loop is about to be unrolled. Where to write, for each reference, at which
** one its copy begins. */
IRRef1 *ljp_hook_mark_copy(jit_State *J)
{
  struct ljp_jit *jit = recording(J);
  if (!jit)
    return NULL;
  uint32_t refs = J->cur.nins - REF_BASE;
  uint16_t *copied = refs_of(jit, &jit->copied, &jit->copied_capacity, refs);
  jit->copied_refs = copied ? refs : 0;
  return copied;
}

/* The trace is about to be assembled, maybe once more. Where to write, for each
** reference, at which address (its low half) the code of those behind it begins.
** What is fused with another instruction is not visited. */
uint16_t *ljp_hook_mark_code(jit_State *J)
{
  struct ljp_jit *jit = recording(J);
  if (!jit)
    return NULL;
  uint32_t refs = J->cur.nins - REF_BASE;
  uint16_t *code = refs_of(jit, &jit->code, &jit->code_capacity, refs);
  jit->code_refs = code ? refs : 0;
  if (code)
    memset(jit->code, 0, refs * sizeof *code);
  return code;
}

/* -- When it is done ---------------------------------------------------------
 */

size_t ljp_marks_measure(struct ljp_jit *jit, const jit_State *J,
                         struct ljp_marks *head)
{
  memset(head, 0, sizeof *head);
  if (!jit->shifts)
    return 0;
  const struct LJPMark *block = block_of(jit), *next = J->ljp;
  if (next == block)
    next = ((const struct head *)jit->block)->next;
  uint32_t marks = next ? (uint32_t)(next - block) : LJP_MARKS_MAX;
  head->chains = (uint16_t)jit->chains;
  head->marks = (uint16_t)marks;
  head->shifts = (uint16_t)jit->shifts;
  head->refs = (uint16_t)jit->code_refs;
  head->loop = (uint16_t)(J->loopref ? J->loopref - REF_BASE : 0);
  head->bytes = (uint32_t)ljp_marks_at(head, LJP_MARKS_END);
  if (!jit->code_refs || (head->loop && head->loop != jit->copied_refs) ||
      J->cur.szmcode > MOST_CODE ||
      ljp_marks_bytes() + head->bytes > LJP_MARKS_TOTAL_BYTES) {
    jit->full = true;
    return 0;
  }
  return head->bytes;
}

void ljp_marks_take(const struct ljp_jit *jit, const struct ljp_marks *head,
                    struct ljp_marks *out)
{
  char *to = (char *)out;
  *out = *head;
  memcpy(to + ljp_marks_at(head, LJP_MARKS_CHAINS), jit->chain,
         head->chains * sizeof *jit->chain);
  memcpy(to + ljp_marks_at(head, LJP_MARKS_MARKS), jit->block,
         head->marks * sizeof(struct LJPMark));
  memcpy(to + ljp_marks_at(head, LJP_MARKS_SHIFTS), jit->shift,
         head->shifts * sizeof *jit->shift);
  memcpy(to + ljp_marks_at(head, LJP_MARKS_CODE), jit->code,
         head->refs * sizeof *jit->code);
  if (head->loop)
    memcpy(to + ljp_marks_at(head, LJP_MARKS_COPIES), jit->copied,
           head->loop * sizeof *jit->copied);
  atomic_fetch_add_explicit(&bytes_alive, head->bytes, memory_order_relaxed);
}

void ljp_marks_gone(const struct ljp_marks *marks)
{
  if (marks)
    atomic_fetch_sub_explicit(&bytes_alive, marks->bytes, memory_order_relaxed);
}
