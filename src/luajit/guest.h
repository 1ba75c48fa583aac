/*
** The guest side of a stack walk: Lua, builtin and C functions as LuaJIT's
** interpreter and its compiled traces keep them, and the C frames by which
** they hang in the machine's stack. The one header of this folder that the
** rest of the project includes; it shows nothing of LuaJIT's own types.
**
** The walk (profilers/unwind/walk.c) starts at the interrupted instruction. For an
** address in the VM's assembly, in trace code or in a callback stub it asks
** this side, which appends the guest frames down to the next C boundary and
** sets the registers to those of the C function below; for all other
** addresses it asks the host unwinder. doc/rfc/0003-guest-walk.md has the
** rules.
**
** Safety: what is marked LJP_SIGSAFE runs in the sampler's handler, on the
** thread that was interrupted; all reads of VM memory are fault-safe.
*/
#ifndef LJP_GUEST_H
#define LJP_GUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/describe.h"
#include "src/base/format.h"
#include "src/base/regs.h"
#include "src/base/sigsafe.h"

/* -- Walking --------------------------------------------------------------- */

/* Frames of one sample as words of src/base/format.h, leaf first. */
struct ljp_stack {
  uint64_t *frames;
  uint32_t count;
  uint32_t limit;
  enum ljp_cut cut; /* 0 while whole */
  /* The thread's last walk, NULL if there is none to be remembered. */
  struct ljp_memo *memo;
};

/* False, and the cut noted, if there is no room. */
LJP_SIGSAFE static inline bool ljp_stack_add(struct ljp_stack *stack,
                                             uint64_t frame)
{
  if (LJP_UNLIKELY(stack->count >= stack->limit)) {
    stack->cut = LJP_CUT_DEPTH;
    return false;
  }
  stack->frames[stack->count++] = frame;
  return true;
}

/* A frame of the program, not of the machine that runs it. */
static inline bool ljp_guest_is_frame(uint64_t frame)
{
  unsigned kind = ljp_frame_kind(frame);
  return kind != LJP_FRAME_HOST && kind != LJP_FRAME_VM;
}

/* A Lua thread that the walk has left for another one, with frames below: where
** they begin. A walk may come back to it (a C function calls another VM, which
** calls back), and what the thread says of itself is its innermost segment. */
struct ljp_left {
  uint64_t L, g, base;
};
enum { LJP_GUEST_LEFT = 4 };

/* What the guest side knows while a walk goes down. All zero at the start. */
struct ljp_guest {
  uint64_t L;             /* Lua thread whose frames are being walked, or 0 */
  uint64_t base;          /* its next frame's BASE, valid if L is not 0 */
  uint64_t g;             /* its VM, or 0 if none was met yet */
  uint32_t mark;          /* frames on the stack before those of L */
  enum ljp_vmstate state; /* by where the first VM or trace address fell */
  uint32_t vm;            /* number of the first VM met, or 0 */
  bool open;              /* there are more frames of L */
  bool forgot;            /* too many were left */
  uint32_t left_count;
  struct ljp_left left[LJP_GUEST_LEFT];
};

/* What the rest of a walk may still find out, beside frames. */
LJP_SIGSAFE static inline uint64_t
ljp_guest_unmet(const struct ljp_guest *guest)
{
  return (guest->vm == 0) | (guest->state == LJP_VMSTATE_UNKNOWN) << 1;
}

enum ljp_guest_result {
  LJP_GUEST_STEPPED, /* registers are the C caller's */
  LJP_GUEST_FOREIGN, /* address is not the guest's: ask the host unwinder */
  LJP_GUEST_DEFER,   /* the VM's stack is being moved: sample at its end */
  LJP_GUEST_STOPPED  /* the stack ends here, stack->cut says why */
};

/* Is this address inside the VM's assembly? Cheap; asked first. */
LJP_SIGSAFE bool ljp_guest_in_vm(uint64_t rip);

/* For an address inside the VM's assembly. */
LJP_SIGSAFE enum ljp_guest_result ljp_guest_step_vm(struct ljp_guest *guest,
                                                    struct ljp_regs *regs,
                                                    struct ljp_stack *stack);

/* For an address in no loaded object: trace code or an FFI callback stub of
** a VM that is known, else LJP_GUEST_FOREIGN. */
LJP_SIGSAFE enum ljp_guest_result ljp_guest_step_jit(struct ljp_guest *guest,
                                                     struct ljp_regs *regs,
                                                     struct ljp_stack *stack);

/* The VM state that a host frame stands for (a garbage collection step, the
** trace recorder ...), or LJP_VMSTATE_UNKNOWN. To be asked for host addresses
** above the first guest frame. */
LJP_SIGSAFE enum ljp_vmstate ljp_guest_host_state(uint64_t rip);

/* Changes when something has gone that frames refer to and that a walk does not
** read again: prototypes, with their bytecode and lines. */
LJP_SIGSAFE uint64_t ljp_guest_generation(void);

/* Name of the VM routine that holds an address, and the offset in it; for
** tests and tables. NULL outside. */
const char *ljp_guest_vm_symbol(uint64_t rip, uint32_t *offset);

/* -- Prototypes ------------------------------------------------------------ */

struct ljp_guest_proto {
  uint64_t id; /* never used twice in a process; 0: unknown */
  char chunk[LJP_NAME_BYTES];
  char name[LJP_NAME_BYTES]; /* "" if it was defined without one */
  uint32_t first_line, last_line;
  uint32_t flags; /* LJP_PROTO_* */
  bool alive;     /* or else it has been freed by now */
};

/* By the reference in a frame word; false: it stands for nothing. A reference is
** used again after its prototype was freed, but not while a hold forbids it. */
bool ljp_guest_proto(uint32_t ref, struct ljp_guest_proto *out);
/* By one that was good when no id was larger than that: false if it stands for
** another by now. */
bool ljp_guest_proto_of(uint32_t ref, uint64_t newest,
                        struct ljp_guest_proto *out);

/* What is kept of freed prototypes for writers: that much makes them be called,
** and from that on no more is kept: functions made then have no name. */
#ifdef LJP_DEBUG
enum { LJP_PROTOS_CROWD_BYTES = 4 << 10 };
#else
enum { LJP_PROTOS_CROWD_BYTES = 1 << 20 };
#endif
enum { LJP_PROTOS_WAITING_BYTES = 64 << 20 };

/* A session, whose writer may ask about what was freed. The owner's, who looks
** into it nowhere but at the ticket, which he tells his writer. */
struct ljp_guest_hold {
  struct ljp_guest_hold *next;
  uint64_t ticket;
  int pid;                          /* in which its rounds count; 0: not yet */
  uint64_t marked, drained, passed; /* deaths */
  uint32_t cursor;                  /* the last one that the writer was given */
  uint64_t unnamed;
  void (*crowded)(void);
};

/* crowded: much waits for the writer; called on a VM's thread in its collector,
** under no lock of this folder. */
void ljp_guest_protos_hold(struct ljp_guest_hold *hold, void (*crowded)(void));
/* From now on (in a fork's child: again) nothing is pushed but what is found by
** a walk, or is alive. */
void ljp_guest_protos_ready(struct ljp_guest_hold *hold);
/* The writer's part, as in describe.h; of a hold that has been released these do
** nothing. */
void ljp_guest_protos_round(uint64_t ticket);
size_t ljp_guest_protos_gone(uint64_t ticket, uint32_t *refs, size_t room);
void ljp_guest_protos_end(uint64_t ticket);
void ljp_guest_protos_release(struct ljp_guest_hold *hold);
/* Functions that were left without a name since it is held. */
uint64_t ljp_guest_protos_unnamed(const struct ljp_guest_hold *hold);

/* For tests: records ever made, prototypes, what waits, what has no record. */
struct ljp_guest_proto_counts {
  uint64_t records, made, waiting_bytes, unnamed;
};
void ljp_guest_proto_counts(struct ljp_guest_proto_counts *out);

/* Name of a builtin ("table.sort"), NULL if there is none of that number. */
const char *ljp_guest_builtin(uint32_t ffid);

/* -- Traces ---------------------------------------------------------------- */

/* By the id in a frame word of kind TRACE. Known while its code is there, and
** while a hold is taken for a good while longer (traces.h has the bound). */
struct ljp_guest_trace {
  uint64_t id; /* never used twice in a process */
  uint32_t vm, number;
  uint64_t parent, root, link; /* ids, 0: none */
  uint32_t parent_exit;
  const char *link_type;
  uint32_t place_ref, place_line; /* where it starts; 0: that has been freed */
  uint64_t newest; /* references in it were good when no id was larger */
  uint64_t code;
  uint32_t code_bytes, ir_count, snapshots, marks;
  uint32_t marks_cut; /* that were left out */
  bool truncated;     /* not all of its code is marked: a bound was met */
};
bool ljp_guest_trace(uint64_t id, struct ljp_guest_trace *out);
void ljp_guest_traces_hold(void);
void ljp_guest_traces_release(void);

/* All processes' traces so far; what is alive now. */
struct ljp_guest_jit_counts {
  uint64_t made, alive, marks, marks_cut, truncated, marks_bytes, record_bytes;
};
void ljp_guest_jit_counts(struct ljp_guest_jit_counts *out);

struct lua_State;

/* The ids of all VMs' traces that are alive, in no order. From any thread;
** under a lock that a compiling VM waits for: visit must be quick. */
void ljp_guest_traces_each(void (*visit)(void *ctx, uint64_t id), void *ctx);

/* Its code as it is now, and what it is made of: from each offset on the
** innermost Lua function (a prototype reference) and line; the first one is of
** offset 0. In: room; out: how many. From any thread that may read fault-safe;
** false: it is gone, or there is no room. */
struct ljp_guest_line {
  uint32_t offset, function, line;
};
bool ljp_guest_trace_code(uint64_t id, uint8_t *code, size_t *code_bytes,
                          struct ljp_guest_line *lines, size_t *line_count);

/* For allocations and other calls out of compiled code, without unwinding the
** host: the address that the C code which L's VM is in now returns to, if it
** was called by a trace; else 0. On the VM's own thread; fault-safe. */
LJP_SIGSAFE uint64_t ljp_guest_trace_return(const struct lua_State *L);
/* Appends the frames of L from a trace's (return) address down to the next C
** boundary. False: the stack ends here, or that is no trace's code. */
LJP_SIGSAFE bool ljp_guest_trace_frames(const struct lua_State *L,
                                        uint64_t return_address,
                                        struct ljp_stack *stack);

/* Before anybody registers fork handlers that ask what stands here: in a child,
** ours have then run already. */
void ljp_guest_mind_fork(void);

/* -- VMs ------------------------------------------------------------------- */

/* Number of the VM that L belongs to (1, 2 ...), never used twice; 0 if the VM
** is not known to us (out of memory when it was created). */
uint32_t ljp_guest_vm_id(struct lua_State *L);

/* Calls for each VM that there is, under a lock: no VM comes or goes
** meanwhile. */
void ljp_guest_each_vm(void (*each)(void *ctx, uint32_t number), void *ctx);

/* -- Memory ---------------------------------------------------------------- */

/* Where a VM tells of its heap; valid as long as the VM. To be asked on the
** VM's own thread. */
struct ljp_guest_heap {
  struct lua_State *main; /* its main thread */
  uint64_t g;
  const uint8_t *gc_phase; /* enum ljp_gc_phase, of now */
  const uint64_t *bytes;   /* in use, as collectgarbage("count") counts them */
  const uint64_t *gc_step; /* changes with each step of the collector */
  const int32_t *vmstate;  /* as ljp_guest_heap_state() reads it */
};

/* False: the VM is not known. */
bool ljp_guest_heap(struct lua_State *L, struct ljp_guest_heap *heap);

static inline uint64_t ljp_guest_heap_bytes(const struct ljp_guest_heap *heap)
{
  return *heap->bytes;
}

static inline enum ljp_gc_phase
ljp_guest_gc_phase(const struct ljp_guest_heap *heap)
{
  uint8_t phase = *heap->gc_phase;
  return (enum ljp_gc_phase)phase;
}

/* Is LuaJIT's own allocator that of the VM, with nothing in between? Then
** the memory profiler may go on to lj_alloc_malloc(ud, size) and
** lj_alloc_free(ud, ptr) by itself; ptr is not NULL. */
bool ljp_guest_owns_allocator(const struct ljp_guest_heap *heap);

/* A bit of the word before a block of LuaJIT's own allocator, which has no use for
** it: set by the memory profiler, lost when the allocator writes that word anew (the
** block is freed, or resized). On the VM's thread, while the block lives. */
enum { LJP_GUEST_BLOCK_FLAG = 4 };
static inline bool ljp_guest_block_flag(const void *block)
{
  return ((const size_t *)block)[-1] & LJP_GUEST_BLOCK_FLAG;
}
static inline void ljp_guest_set_block_flag(void *block, bool set)
{
  size_t *head = (size_t *)block - 1;
  *head = set ? *head | LJP_GUEST_BLOCK_FLAG
              : *head & ~(size_t)LJP_GUEST_BLOCK_FLAG;
}

/* Called when LuaJIT's own allocator gets no more memory from the system; ud: of
** which VM's; nb: for a block of that size, all told. One listener a process, set
** and taken away (ud NULL) on that VM's thread, or when it does nothing. */
void ljp_guest_listen_refused(void *ud, void (*refused)(void *ctx, size_t nb),
                              void *ctx);

/* What the VM does now, as far as it says so itself. */
extern const uint8_t ljp_guest_states[16];
static inline enum ljp_vmstate
ljp_guest_heap_state(const struct ljp_guest_heap *heap)
{
  int32_t state = *heap->vmstate; /* a trace's number, or ~ of a state */
  return state >= 0 ? LJP_VMSTATE_TRACE
                    : (enum ljp_vmstate)ljp_guest_states[~state & 15];
}

/* The same, when it is the collector. */
enum { LJP_GUEST_COLLECTS = -3 };
static inline bool ljp_guest_heap_collects(const struct ljp_guest_heap *heap)
{
  return *heap->vmstate == LJP_GUEST_COLLECTS;
}

/* While a stack is being moved no walk is possible, except before its memory
** has been moved, which only the allocator knows. Returns what it was. */
bool ljp_guest_set_resizing(const struct ljp_guest_heap *heap, bool resizing);

enum { LJP_GUEST_OBJECT_TAG_AT = 9, LJP_GUEST_OBJECT_TAGS = 13 };
extern const uint8_t ljp_guest_object_types[LJP_GUEST_OBJECT_TAGS];

/* What memory is for, by the machine code that asks for it: addresses in it,
** innermost first. *object: it is a whole object, which itself tells its type
** once it has been made (ljp_guest_object_type). */
enum ljp_mem_type ljp_guest_mem_type(const uint64_t *addresses, unsigned count,
                                     bool *object);
static inline enum ljp_mem_type ljp_guest_object_type(uint64_t object)
{
  uint8_t tag = ((const uint8_t *)(uintptr_t)object)[LJP_GUEST_OBJECT_TAG_AT];
  return tag < LJP_GUEST_OBJECT_TAGS
             ? (enum ljp_mem_type)ljp_guest_object_types[tag]
             : LJP_MEM_TYPE_OTHER;
}

/* Array or hash part of a table, by what is in it. */
enum ljp_mem_type ljp_guest_part_type(uint64_t address, uint64_t bytes);

/* -- The same stack once more ------------------------------------------------
** For who asks at every call of the allocator, on the VM's own thread and in
** ordinary code: what the walk above would find of the topmost segment, from
** where host code returns to the guest, by following only what has changed
** since the last time. RFC 3, "Again and again". Not for a handler: it relies
** on the VM being between two instructions of its own. */

enum { LJP_SITE_FRAMES = 14 };

/* An address in the VM's assembly or in compiled code that host code returns
** to, and what is true whenever it does. Good as long as
** ljp_guest_code_generation() does not change. */
enum ljp_guest_site_kind {
  LJP_SITE_NONE,
  LJP_SITE_VM,
  LJP_SITE_TRACE,
  LJP_SITE_EXIT /* of a trace, which drives the collector; never on top */
};
struct ljp_guest_site {
  enum ljp_guest_site_kind kind;
  uint32_t mode, cframe_bytes; /* VM: as in the map; BASE: */
  bool in_rbp, reads_pc, reads_frame;
  uint64_t code; /* TRACE: of the function at BASE; and what is compiled: */
  uint32_t count;
  uint64_t frame[LJP_SITE_FRAMES]; /* root first */
};

/* The registers of the guest at a site: sp behind the return address. */
struct ljp_guest_regs {
  uint64_t rip, sp;
  const uint64_t *rbx, *rbp, *r14; /* where they are saved */
};

/* Where a segment begins; what the walk calls a start. */
struct ljp_guest_start {
  uint64_t L, base, pc, cframe;
  bool skip;
};

/* Prototypes that were freed so far, in any VM; traces that came or went. */
extern _Atomic uint64_t ljp_protos_gone;
extern _Atomic uint64_t ljp_traces_changed;

static inline uint64_t ljp_guest_code_generation(void)
{
  /* Either only grows. Acquire: as ljp_guest_generation(). */
  return atomic_load_explicit(&ljp_protos_gone, memory_order_acquire) +
         atomic_load_explicit(&ljp_traces_changed, memory_order_acquire);
}

/* kind NONE: nothing is known of it beforehand. regs are those of now. */
void ljp_guest_site(const struct ljp_guest_heap *heap,
                    const struct ljp_guest_regs *regs,
                    struct ljp_guest_site *site);

/* False: this is something else, ask the walk. */
bool ljp_guest_start_at(const struct ljp_guest_heap *heap,
                        const struct ljp_guest_site *site,
                        const struct ljp_guest_regs *regs,
                        struct ljp_guest_start *start);

/* One frame of a segment, with the words that it was made of. */
struct ljp_level {
  uint64_t base, link;
  uint64_t pc;     /* with which it was come to */
  uint64_t shown;  /* its frame, unless it is skipped */
  uint32_t frames; /* on the stack below it */
  bool skip;       /* come to as the lower half of varargs */
  bool beside;     /* one of these: */
  bool checked, continues;
  uint8_t ffid;
  uint64_t slot;    /* checked: its function, and a word of that */
  uint64_t body;    /* checked: the function's code */
  uint64_t word[2]; /* of: a continuation */
};

/* What a position behind a call told the last time, of any spine: where the
** caller's frame is, whose code that is, and what it shows. */
enum {
#ifdef LJP_DEBUG
  LJP_SPINE_CALLS = 4
#else
  LJP_SPINE_CALLS = 128 /* a power of two */
#endif
};
struct ljp_spine_calls {
  uint64_t generation; /* of the code: of an older one, nothing is true */
  struct ljp_spine_call {
    uint64_t pc; /* 0: none */
    uint64_t delta, code;
    uint64_t frame; /* 0: not known yet */
  } call[LJP_SPINE_CALLS];
};

/* A segment as it was the last time, root first. stack[]: `rest` frames that
** are below it, then those of its levels. link[]: of each level the word that
** tells whether it is what it was, side by side. */
struct ljp_memo_read;
enum { LJP_SPINE_SPARE = 3 };
struct ljp_spine {
  uint64_t L, low, cframe;
  uint64_t below; /* BASE of the frame below the C boundary */
  uint32_t count; /* levels */
  uint32_t rest, frames;
  /* The owner's arrays: `levels` of the first two, of links LJP_SPINE_SPARE
  ** more; `room` frames. */
  uint32_t levels, room;
  bool tight; /* set when it did not fit */
  struct ljp_memo_read *link;
  struct ljp_level *level;
  uint64_t *stack;
  struct ljp_spine_calls *calls; /* the owner's; many spines may share them */
};

/* Makes the spine that of a start; *kept: so many frames from the root are as
** before. False: it is not understood, or does not fit; the spine is as good as
** empty then. A spine is begun with count 0, rest frames in stack. */
bool ljp_spine_follow(struct ljp_spine *spine,
                      const struct ljp_guest_start *start, uint32_t *kept);

/* The words of memory that a start and the spine that is followed from it were
** made of: as long as all of them are what they were, so are both. Those of
** which the low byte does not matter: as in memo.h. 0: there is no room. */
unsigned ljp_guest_start_words(const struct ljp_guest_heap *heap,
                               const struct ljp_guest_site *site,
                               const struct ljp_guest_regs *regs,
                               const struct ljp_guest_start *start,
                               const struct ljp_spine *spine,
                               struct ljp_memo_read *out, unsigned room);

/* Registers and state of a walk that goes on below the spine's C frame. False:
** there is no such C frame. */
bool ljp_spine_leave(const struct ljp_spine *spine, struct ljp_guest *guest,
                     struct ljp_regs *regs);

/* Of the words that what is below a spine was made of: is this one true as long as
** the spine's place is what it was? */
bool ljp_spine_tells(const struct ljp_spine *spine, uint64_t address);

/* Registers of the C code that entered the VM by a C frame. */
void ljp_spine_caller(uint64_t cframe, struct ljp_guest_regs *regs);

/* Where the segment below one of that thread and C frame is left: at that site
** of the VM's assembly, by which C frame of whose. False: ask the walk. */
bool ljp_guest_below(const struct ljp_guest_heap *heap, uint64_t L,
                     uint64_t cframe, const struct ljp_guest_site *site,
                     const struct ljp_guest_regs *regs, uint64_t *below_L,
                     uint64_t *below_cframe);

/* That segment's start, with the frame on top of it if that is none of it (or
** else 0). False: ask the walk. */
bool ljp_spine_below(const struct ljp_guest_heap *heap,
                     const struct ljp_spine *spine,
                     const struct ljp_guest_site *site,
                     const struct ljp_guest_regs *regs,
                     struct ljp_guest_start *below, uint64_t *frame);

/* Called on the VM's own thread when it is being made, at the end of a stack
** resize during which a sample was deferred, and when lua_close() begins. One
** listener a profiler, asked in this order; NULL takes it away. */
enum ljp_guest_listeners { LJP_LISTENER_MEM, LJP_LISTENER_CPU, LJP_LISTENERS };
struct ljp_guest_listener {
  void (*created)(uint32_t number);
  void (*deferred)(void);
  void (*closing)(struct lua_State *L);
};
void ljp_guest_listen(enum ljp_guest_listeners which,
                      const struct ljp_guest_listener *listener);

/* Called on the VM's own thread, inside its collector, when that has entered
** another phase; vm: the VM's number, heap_bytes: what it has allocated. Must
** not call into the VM. One listener a process; NULL takes it away. */
void ljp_guest_listen_gc(void (*entered)(uint32_t vm, enum ljp_gc_phase phase,
                                         uint64_t heap_bytes));

/* What becomes of traces, as it happens: on the VM's thread, inside of its
** compiler or collector, so the listener must not call into the VM. */
struct ljp_guest_trace_event {
  enum ljp_trace_what what;
  uint32_t vm;
  uint64_t trace, parent;
  uint32_t parent_exit;
  uint32_t place_ref, place_line; /* where the trace starts */
  uint32_t reason;                /* of an abort: LuaJIT's number, its text: */
  const char *text;
  struct lua_State *L;
};
void ljp_guest_listen_traces(
    void (*listener)(const struct ljp_guest_trace_event *event));

#endif
