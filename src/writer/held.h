/*
** Held blocks: the sampled memory blocks that are alive, as the writer's events
** tell, with the node of their stack. A later file segment begins with a LIVE record
** of each (held_out.c), so that its live memory is whole without the segments before.
** Open addressing with linear probing; the table doubles up to a bound, beyond
** which no segment has blocks. Writer thread only.
*/
#ifndef LJP_HELD_H
#define LJP_HELD_H

#include <stdbool.h>
#include <stdint.h>

#ifdef LJP_DEBUG
enum { LJP_HELD_MAX = 512, LJP_HELD_VMS = 8 };
#else
enum { LJP_HELD_MAX = 1 << 16, LJP_HELD_VMS = 4096 };
#endif

struct ljp_held_block {
  uint64_t address; /* 0: free slot */
  uint64_t time_ns, size, weight, cycle;
  uint32_t vm, producer;
  uint32_t node; /* Index in the stack tree; LJP_NO_NODE: no stack. */
  uint8_t state, type;
};
_Static_assert(sizeof(struct ljp_held_block) == 56, "doc/guide/always-on.md");

struct ljp_held_vm {
  uint64_t cycle; /* Of the collector, by the VM's newest GC event. */
  uint32_t vm, blocks;
  bool closed; /* VM_CLOSE has not come yet. */
};

struct ljp_held {
  struct ljp_held_block *slots; /* NULL until the first block. */
  uint32_t mask, count;
  struct ljp_held_vm *vms;
  uint32_t vm_count, vm_room, vm_last; /* Found last. */
  bool wanted; /* The session may begin another file segment. */
  bool every;  /* Every event is recorded, so no blocks are kept. */
  bool
      full; /* There were too many blocks or VMs, or memory ran out: likewise. */
};

void ljp_held_fini(struct ljp_held *held);

/* Adds a block, or replaces the one at its address. */
void ljp_held_put(struct ljp_held *held, const struct ljp_held_block *block);
/* Removes a block, if the table has it. */
void ljp_held_take(struct ljp_held *held, uint64_t address);
/* Removes all blocks. The caller sets `every` or `full`, so that none is added. */
void ljp_held_stop(struct ljp_held *held);

/* A VM has reached this cycle. */
void ljp_held_see_cycle(struct ljp_held *held, uint32_t vm, uint64_t cycle);
/* Removes the blocks of a VM that is closed; and the VM itself, too. */
void ljp_held_close_vm(struct ljp_held *held, uint32_t vm);
void ljp_held_forget_vm(struct ljp_held *held, uint32_t vm);

static inline bool ljp_held_is_kept(const struct ljp_held *held)
{
  return held->wanted && !held->every && !held->full;
}

#endif
