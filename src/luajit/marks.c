/*
** Marks: what compiled code stems from, from bytecode through the compiler's
** intermediate code (IR) to machine code. doc/rfc/0004-traces.md, traces.h.
**
** The recorder notes a mark before each bytecode: the next IR reference, and
** where in which chain of functions the bytecode is. A loop that is unrolled
** copies instructions, and their marks. The assembler goes backwards: when it
** passes the reference of a mark, that mark's code begins where it is.
**
** Invariant: references of marks ascend strictly; chain[0] is no chain.
** The hooks run on the VM's own thread, inside of its compiler: they must not
** call into the VM. What cannot be marked (a bound, no memory) is counted and
** has no mark; nothing fails.
*/
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_bc.h"
#include "lj_debug.h"
#include "lj_frame.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_dispatch.h"

#include "src/luajit/guest_priv.h"
#include "src/luajit/traces.h"
#include "src/varint.h"

static _Atomic uint64_t bytes_alive;

/* Marks have been asked for: what the VM's compiler looks at before it calls the
** hooks. Never 0 again: several VMs may be at work. */
int ljp_marking;

uint64_t ljp_marks_bytes(void)
{
  return atomic_load_explicit(&bytes_alive, memory_order_relaxed);
}

bool ljp_marks_wanted(void)
{
#ifdef LJP_NO_MARKERS
  return false;
#else
  enum { NOT_ASKED, NEVER, IN_SESSIONS, ALWAYS };
  static _Atomic int wanted = NOT_ASKED;
  int known = atomic_load_explicit(&wanted, memory_order_relaxed);
  if (LJP_UNLIKELY(known == NOT_ASKED)) {
    const char *text = getenv("LJPROF_MARKERS");
    known = !text ? IN_SESSIONS : strcmp(text, "0") == 0 ? NEVER : ALWAYS;
    atomic_store_explicit(&wanted, known, memory_order_relaxed);
  }
  return known == ALWAYS || (known == IN_SESSIONS && ljp_guest_protos_held());
#endif
}

bool ljp_marks_begin(struct ljp_jit *jit)
{
  jit->marks = jit->recorded = jit->code_left = 0;
  jit->chains = 0; /* not at work */
  jit->now = 0;
  jit->now_slot = 0;
  jit->now_function = NULL;
  jit->full = false;
  jit->code_ref = 0;
  if (!ljp_marks_wanted())
    return false;
  ljp_marking = 1;
  if (!jit->mark) {
    enum { MARKS = 256, CHAINS = 64 };
    jit->mark = malloc(MARKS * sizeof *jit->mark);
    jit->chain = malloc(CHAINS * sizeof *jit->chain);
    if (!jit->mark || !jit->chain) {
      free(jit->mark);
      free(jit->chain);
      jit->mark = NULL;
      jit->chain = NULL;
      return false;
    }
    jit->mark_capacity = MARKS;
    jit->chain_capacity = CHAINS;
  }
  jit->chains = 1;
  return true;
}

/* -- While a trace is recorded -------------------------------------------------
 */

static bool more_marks(struct ljp_jit *jit)
{
  uint32_t capacity = jit->mark_capacity * 2;
  struct ljp_mark *mark = NULL;
  if (capacity && capacity <= LJP_MARKS_MAX)
    mark = realloc(jit->mark, capacity * sizeof *mark);
  if (!mark)
    return false;
  jit->mark = mark;
  jit->mark_capacity = capacity;
  return true;
}

/* From ref on the code is of this chain and instruction. */
static void add_mark(struct ljp_jit *jit, uint32_t ref, uint32_t chain,
                     const uint32_t *pc)
{
  /* An instruction that left no IR behind; or a loop was not unrolled after
  ** all, and its copies are gone. */
  while (jit->marks && jit->mark[jit->marks - 1].ref >= ref)
    jit->marks--;
  if (LJP_UNLIKELY(jit->marks == jit->mark_capacity) && !more_marks(jit)) {
    jit->full = true;
    /* What follows belongs to nobody, least of all to the last mark. */
    jit->mark[jit->marks - 1].chain = 0;
    return;
  }
  struct ljp_mark *mark = &jit->mark[jit->marks++];
  mark->ref = ref;
  mark->chain = chain;
  mark->pc = pc;
}

static uint32_t find_chain(struct ljp_jit *jit, const GCfunc *fn,
                           uint32_t caller, const uint32_t *call)
{
  const void *proto = NULL;
  uint32_t function = LJP_CHAIN_BUILTIN | fn->c.ffid;
  if (isluafunc(fn)) {
    GCproto *pt = funcproto(fn);
    proto = pt;
    function = pt->unused_gc64;
  }
  for (uint32_t i = jit->chains; --i;) {
    const struct ljp_live_chain *c = &jit->chain[i];
    if (c->proto == proto && c->function == function && c->caller == caller &&
        c->call == call)
      return i;
  }
  if (jit->chains == jit->chain_capacity) {
    uint32_t capacity = jit->chain_capacity * 2;
    struct ljp_live_chain *chain = NULL;
    if (capacity <= LJP_CHAINS_MAX)
      chain = realloc(jit->chain, capacity * sizeof *chain);
    if (!chain) {
      jit->full = true;
      return 0;
    }
    jit->chain = chain;
    jit->chain_capacity = capacity;
  }
  jit->chain[jit->chains] = (struct ljp_live_chain){
      .proto = proto, .function = function, .caller = caller, .call = call};
  return jit->chains++;
}

/* The chain of the frame that the recorder is in: the frames of the Lua stack
** down to the one at which the trace began. */
static uint32_t chain_of(struct ljp_jit *jit, jit_State *J)
{
  struct {
    const GCfunc *fn;
    const uint32_t *call;
  } level[LJ_MAX_JSLOTS];
  cTValue *frame = J->L->base - 1;
  cTValue *lowest = J->L->base - J->baseslot + LJ_FR2;
  uint32_t levels = 0, chain = 0;
  for (;;) {
    const uint32_t *call = NULL;
    const GCfunc *fn = frame_func(frame);
    bool varargs = false;
    bool end = frame <= lowest;
    if (!end) {
      if (frame_islua(frame)) {
        call = frame_pc(frame) - 1;
        frame = frame_prevl(frame);
      } else {
        varargs = frame_isvarg(frame);
        if (frame_iscont(frame))
          call = frame_contpc(frame) - 1;
        frame = frame_prevd(frame);
      }
    }
    if (!varargs) { /* such a frame comes twice */
      if (levels == LJ_MAX_JSLOTS)
        return 0;
      level[levels].fn = fn;
      level[levels++].call = call;
    }
    if (end)
      break;
  }
  while (levels--) {
    chain = find_chain(jit, level[levels].fn, chain, level[levels].call);
    if (!chain)
      return 0;
  }
  return chain;
}

void ljp_hook_mark(jit_State *J)
{
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  if (LJP_UNLIKELY(!vm))
    return;
  struct ljp_jit *jit = vm->jit;
  if (LJP_UNLIKELY(!jit || !jit->chains || jit->full))
    return;
  if (J->baseslot != jit->now_slot || J->fn != jit->now_function) {
    jit->now_slot = J->baseslot;
    jit->now_function = J->fn;
    jit->now = chain_of(jit, J);
  }
  add_mark(jit, J->cur.nins, jit->now, J->pt ? J->pc : NULL);
}

/* -- In the optimiser and the assembler --------------------------------------
 */

/* The loop optimiser is about to copy instruction ins. Returns the first one
** at which it is to ask again. */
IRRef ljp_hook_mark_copy(jit_State *J, IRRef ins)
{
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  struct ljp_jit *jit = vm ? vm->jit : NULL;
  if (!jit || !jit->chains || jit->full)
    return ~(IRRef)0;
  if (ins == REF_FIRST) {
    jit->recorded = jit->marks;
    jit->copy_next = 0;
    /* The instructions before the first mark have none; nor do their copies,
    ** which would be the last mark's otherwise. */
    if (!jit->marks || jit->mark[0].ref > ins)
      add_mark(jit, J->cur.nins, 0, NULL);
  }
  uint32_t next = jit->copy_next;
  while (next < jit->recorded && jit->mark[next].ref <= ins)
    next++;
  if (next != jit->copy_next) {
    jit->copy_next = next;
    add_mark(jit, J->cur.nins, jit->mark[next - 1].chain,
             jit->mark[next - 1].pc);
  }
  return next < jit->recorded ? jit->mark[next].ref : ~(IRRef)0;
}

/* The assembler has made the code of all instructions above ins; it begins at
** mcp. Returns the reference below which it is to call again. */
IRRef ljp_hook_mark_code(jit_State *J, IRRef ins, MCode *mcp)
{
  struct ljp_vm *vm = ljp_vm_at(J2GG(J)->ljp);
  struct ljp_jit *jit = vm ? vm->jit : NULL;
  if (!jit || !jit->chains)
    return 0;
  if (ins >= jit->code_ref) /* the first call, or all over again */
    jit->code_left = jit->marks;
  jit->code_ref = ins;
  while (jit->code_left && jit->mark[jit->code_left - 1].ref > ins)
    jit->mark[--jit->code_left].code = mcp;
  return jit->code_left ? jit->mark[jit->code_left - 1].ref : 0;
}

/* -- When it is done ---------------------------------------------------------
 */

static uint32_t line_at(const struct ljp_jit *jit, uint32_t chain,
                        const uint32_t *pc)
{
  GCproto *pt = (GCproto *)(uintptr_t)jit->chain[chain].proto;
  if (!pc || !pt || pc < proto_bc(pt) || pc >= proto_bc(pt) + pt->sizebc)
    return 0;
  return (uint32_t)lj_debug_line(pt, proto_bcpos(pt, pc));
}

struct ljp_marks *ljp_marks_finish(struct ljp_jit *jit, struct ljp_trace *trace)
{
  trace->truncated = jit->full;
  if (jit->code_left || !jit->marks)
    return NULL;
  /* Worst case; what is too much is given back. */
  size_t head =
      sizeof(struct ljp_marks) + jit->chains * sizeof(struct ljp_chain);
  size_t room = head + ((size_t)jit->marks + 1) * 12;
  if (ljp_marks_bytes() + room > LJP_MARKS_TOTAL_BYTES) {
    trace->truncated = true;
    return NULL;
  }
  struct ljp_marks *out = malloc(room);
  if (!out) {
    trace->truncated = true;
    return NULL;
  }
  struct ljp_chain *chain = (struct ljp_chain *)(void *)(out + 1);
  for (uint32_t i = 1; i < jit->chains; i++) {
    const struct ljp_live_chain *from = &jit->chain[i];
    chain[i - 1] =
        (struct ljp_chain){.function = from->function, .caller = from->caller};
    if (from->caller)
      chain[i - 1].line = line_at(jit, from->caller, from->call);
  }
  uint8_t *bytes = (uint8_t *)out + head - sizeof(struct ljp_chain), *p = bytes;
  uint32_t at = 0, last_chain = 0, last_line = 0;
  for (uint32_t i = 0; i < jit->marks; i++) {
    const struct ljp_mark *mark = &jit->mark[i];
    if (i + 1 < jit->marks && mark[1].code == mark->code)
      continue; /* no code is left of it */
    uint32_t offset = (uint32_t)((uint64_t)(uintptr_t)mark->code - trace->code);
    uint32_t number = mark->chain;
    uint32_t line = number ? line_at(jit, number, mark->pc) : 0;
    if (offset >= trace->code_bytes)
      break;
    if (number == last_chain && line == last_line)
      continue;
    p = ljp_put_varint(p, offset - at);
    uint64_t step = ljp_zigzag((int64_t)line - (int64_t)last_line) << 1;
    p = ljp_put_varint(p, step | (number != last_chain));
    if (number != last_chain)
      p = ljp_put_varint(p, number);
    at = offset;
    last_chain = number;
    last_line = line;
    trace->marks_count++;
  }
  out->chains = jit->chains - 1;
  out->bytes = (uint32_t)(p - bytes);
  size_t size = (size_t)(p - (uint8_t *)out);
  atomic_fetch_add_explicit(&bytes_alive, size, memory_order_relaxed);
  struct ljp_marks *fit = realloc(out, size);
  return fit ? fit : out;
}

void ljp_marks_free(struct ljp_marks *marks)
{
  if (!marks)
    return;
  atomic_fetch_sub_explicit(
      &bytes_alive,
      sizeof *marks + marks->chains * sizeof(struct ljp_chain) + marks->bytes,
      memory_order_relaxed);
  free(marks);
}
