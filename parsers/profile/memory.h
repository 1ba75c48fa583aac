/*
** Memory events on their way into the profile. memory_batch.c collects a few
** and prefetches what they need; memory.c counts them.
*/
#ifndef LJP_PARSERS_PROFILE_MEMORY_H
#define LJP_PARSERS_PROFILE_MEMORY_H

#include "parsers/profile/live_blocks.h"
#include "parsers/profile/profile.h"

#define LJP_MEMORY_BATCH 32u

struct ljp_memory_event {
  struct ljp_rec_mem mem;
  uint64_t time_ns; /* As in the stream. */
  uint32_t context;
  bool wanted; /* The options do not filter it out. */
  /* Nor, if it frees a block that is older than the session, this: such a block
  ** has no labels. */
  bool wanted_before;
  /* Not of a MEM record, but a LIVE one: the block was alive when the file began, and
  ** was allocated in this GC cycle. */
  bool held;
  uint32_t held_cycle;
};

struct ljp_memory_batch {
  struct ljp_memory_event events[LJP_MEMORY_BATCH];
  unsigned count;
};

/* A VM that has memory in the table. */
struct ljp_memory_vm {
  uint64_t id;    /* In the stream. */
  uint32_t cycle; /* Its newest GC cycle; of a free one, the next free one. */
  uint32_t first_cycle; /* In which the file begins. */
  bool open;            /* The stream tells of it, and not that it is closed. */
  struct ljp_live_owner blocks;
};

/* VMs at a time; those beyond share number 0. */
#ifdef LJP_DEBUG
#define LJP_MEMORY_VMS 8u
#else
#define LJP_MEMORY_VMS 4096u
#endif

/* What is counted beside the table of live blocks. */
struct ljp_memory_sums {
  struct ljp_memory_vm *vms; /* Number 0 is for those that have none. */
  uint32_t vm_count, vm_room;
  uint32_t vm_last;    /* Found last. */
  uint32_t vm_free;    /* First of the numbers that are free again; 0: none. */
  uint32_t open;       /* How many are. */
  uint32_t closed;     /* The last VM of the program; 0: there is another. */
  uint32_t since_mark; /* Blocks allocated from this mark on are recent. */

  uint64_t events;              /* That have allocated a block. */
  uint64_t objects, bytes;      /* Live now, as in struct ljp_profile_memory. */
  struct ljp_estimate estimate; /* Of these. */
  uint64_t peak_bytes;          /* The most that bytes has been. */
  uint64_t fall;                /* Number of times bytes fell from a peak. */
  bool falling;                 /* bytes has fallen since the newest peak. */
};

/* Adds a MEM item to the batch; counts the batch when it is full.
** LJP_ERR_MEM, as for all below. */
enum ljp_status ljp_profile_take_memory(struct ljp_profile *p,
                                        const struct ljp_item *item);

/* The same for a block that is alive when a file begins (LIVE), and for what is
** told before (HELD). */
enum ljp_status ljp_profile_take_live(struct ljp_profile *p,
                                      const struct ljp_item *item);
enum ljp_status ljp_profile_take_held(struct ljp_profile *p,
                                      const struct ljp_rec_held *held);

/* Counts the batch. Must precede every other item. */
enum ljp_status ljp_profile_flush_memory(struct ljp_profile *p);

/* Counts an event. row is that of its stack; not used for a free. */
enum ljp_status ljp_profile_count_memory(struct ljp_profile *p,
                                         const struct ljp_memory_event *event,
                                         uint32_t row);

/* A VM has reached a GC cycle, or its end. */
enum ljp_status ljp_profile_take_heap(struct ljp_profile *p,
                                      const struct ljp_rec_gc *gc);

/* The number of the VM with an id; 0: it has none. */
uint32_t ljp_memory_find_vm(struct ljp_memory_sums *sums, uint64_t id);

/* Finds the VM, or gives it a number. */
enum ljp_status ljp_memory_take_vm(struct ljp_profile *p, uint64_t id,
                                   uint32_t *vm);

/* Counts what is live at the end of a session and empties the table. */
enum ljp_status ljp_profile_end_memory(struct ljp_profile *p);

#endif
