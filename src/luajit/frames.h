/*
** Walking frames: the guest's part of a stack walk. The walk
** (profilers/unwind/walk.c) starts at the interrupted instruction. For an
** address in the VM's assembly, in a trace or in a callback stub it calls the
** functions below. They append the guest frames down to the next C boundary and
** set the registers to those of the C function below. All other addresses go to
** the host unwinder. doc/rfc/0003-guest-walk.md has the rules.
**
** Safety: what is marked LJP_SIGSAFE may run in the sampler's signal handler,
** on the thread that was interrupted. All reads of VM memory are fault-safe.
*/
#ifndef LJP_GUEST_FRAMES_H
#define LJP_GUEST_FRAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/format.h"
#include "src/base/regs.h"
#include "src/base/sigsafe.h"

/* Frames of one sample as words of src/base/format.h, leaf first. */
struct ljp_stack {
  uint64_t *frames;
  uint32_t count;
  uint32_t limit;
  enum ljp_cut cut; /* 0 while whole */
  /* The thread's previous walk; NULL: do not remember walks. */
  struct ljp_memo *memo;
};

/* If there is no room, sets the cut and returns false. */
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

/* A frame of the guest, not of the host. */
static inline bool ljp_guest_is_frame(uint64_t frame)
{
  unsigned kind = ljp_frame_kind(frame);
  return kind != LJP_FRAME_HOST && kind != LJP_FRAME_VM;
}

/* A Lua thread that the walk has left for another one although it has more
** frames, which begin at `base`. A walk may come back to the thread: a C
** function calls another VM, which calls back. The thread itself only knows its
** innermost segment. */
struct ljp_left {
  uint64_t L, g, base;
};
enum { LJP_GUEST_LEFT = 4 };

/* The state of the guest's part of a walk. All zero at the start. */
struct ljp_guest {
  uint64_t L;             /* Lua thread whose frames are being walked, or 0 */
  uint64_t base;          /* BASE of its next frame, valid if L is not 0 */
  uint64_t g;             /* its VM, or 0 if none was met yet */
  uint32_t first;         /* number of frames on the stack before those of L */
  enum ljp_vmstate state; /* from the first address in the VM or a trace */
  uint32_t vm;            /* number of the first VM met, or 0 */
  uint64_t thread;        /* first Lua thread met: it has the labels; or 0 */
  bool open;              /* there are more frames of L */
  bool forgot;            /* more threads were left than there is room for */
  uint32_t left_count;
  struct ljp_left left[LJP_GUEST_LEFT];
};

/* What the rest of a walk may still find besides frames: bit 0 the VM, bit 1
** its state. */
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

/* Is this address inside the VM's assembly? A cheap test, made first. */
LJP_SIGSAFE bool ljp_guest_in_vm(uint64_t rip);

/* For an address inside the VM's assembly. */
LJP_SIGSAFE enum ljp_guest_result ljp_guest_step_vm(struct ljp_guest *guest,
                                                    struct ljp_regs *regs,
                                                    struct ljp_stack *stack);

/* For an address in no loaded object: trace code or an FFI callback stub of a
** known VM, else LJP_GUEST_FOREIGN. */
LJP_SIGSAFE enum ljp_guest_result ljp_guest_step_jit(struct ljp_guest *guest,
                                                     struct ljp_regs *regs,
                                                     struct ljp_stack *stack);

/* The VM state that a host frame stands for (a garbage collection step, the
** trace recorder ...), or LJP_VMSTATE_UNKNOWN. For host addresses above the
** first guest frame. */
LJP_SIGSAFE enum ljp_vmstate ljp_guest_host_state(uint64_t rip);

/* The number of the labels that the program gave to a Lua thread; 0: none. */
LJP_SIGSAFE uint32_t ljp_guest_labels_at(uint64_t thread);

/* Counts of prototypes freed in any VM, and of traces made or freed. */
extern _Atomic uint64_t ljp_protos_gone;
extern _Atomic uint64_t ljp_traces_changed;

/* Changes when a prototype is freed. Frames refer to prototypes, and a walk
** does not read their bytecode and lines again. */
LJP_SIGSAFE static inline uint64_t ljp_guest_generation(void)
{
  /* Acquire: what is read afterwards is not older. */
  return atomic_load_explicit(&ljp_protos_gone, memory_order_acquire);
}

/* Also changes when a trace is made or freed. */
static inline uint64_t ljp_guest_code_generation(void)
{
  /* Both only grow. Acquire: as above. */
  return atomic_load_explicit(&ljp_protos_gone, memory_order_acquire) +
         atomic_load_explicit(&ljp_traces_changed, memory_order_acquire);
}

/* Name of the VM routine that holds an address, and the offset in it; for
** tests and tables. NULL outside the VM's assembly. */
const char *ljp_guest_vm_symbol(uint64_t rip, uint32_t *offset);

#endif
