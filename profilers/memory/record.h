/*
** The recorder: an allocator between a VM and the VM's own allocator. It passes
** every call on and records it. Runs on the VM's own thread, whichever that is
** at the moment. Used by memprof.c.
**
** Invariants: the stack is found before the VM's allocator is called, because
** that call may free the very stack that is walked; the event is pushed after
** the call. An allocation is held back until the next event, because only then
** does the new object have its type. No memory comes from the VM's allocator.
*/
#ifndef LJP_MEMORY_RECORD_H
#define LJP_MEMORY_RECORD_H

#include <stdatomic.h>

#include "lua.h"

#include "profilers/memory/memprof.h"
#include "profilers/memory/stack.h"
#include "profilers/memory/track.h"
#include "src/luajit/phases.h"

/* The distance to the next sample. */
struct ljp_countdown {
  int64_t until;      /* bytes */
  uint64_t last_size; /* size of the last request that bypassed the recorder and
                      ** went to LuaJIT's own allocator; 0: the recorder is
                      ** making one */
  uint64_t sample_bytes, random;
};

/* Where the entry of a sampled session on LuaJIT's own allocator finds its
** recorder. There the VM's allocator keeps its `ud`, and only the function is
** replaced. A host that has got both (lua_getallocf) may go on calling the
** function after the session. The function then passes the calls on with the
** help of this struct. */
struct ljp_own {
  _Alignas(64) struct ljp_countdown down; /* a cache line of its own */
  _Alignas(64) void *_Atomic ud; /* of the VM's allocator; NULL: no session
                                 ** now */
  struct ljp_recorder *recorder;
  lua_Alloc alloc; /* LuaJIT's */
  bool kept;       /* a host still had the function at the end, and may call it
                   ** on any thread: no later session uses this struct */
};
extern struct ljp_own ljp_own __attribute__((visibility("hidden")));

struct ljp_recorder {
  /* The allocator below. The fields that entry.c reads come first. */
  lua_Alloc alloc;
  void *ud;
  struct ljp_countdown *down;        /* &here, or that of ljp_own */
  struct ljp_recorder *_Atomic next; /* in a list of followed.c */
  lua_Alloc give_back;               /* the allocator below, for frees */
  void *(*fresh)(struct ljp_recorder *r, void *ptr, size_t osize, size_t nsize,
                 const struct ljp_caller *caller); /* records a new block */
  struct ljp_track track;
  struct ljp_countdown here;
  _Atomic bool on; /* false: the recorder only passes calls on, for good */
  _Atomic bool
      inside; /* the VM's thread is in ljp_recorder_enter() ... leave() */
  _Atomic bool noted; /* noted_bytes is valid, or will not be needed */
  bool every;
  bool own;      /* the allocator below is LuaJIT's own */
  bool fixed;    /* ... and this is ljp_own's recorder. Blocks in the table have
              ** their flag set (ljp_guest_block_flag); blocks with the flag
              ** need not be in the table */
  bool replaced; /* another allocator is on top of this one */
  /* It is being put into its VM, or taken out. For children of fork(). */
  _Atomic bool moves;
  _Atomic bool ended; /* from another thread: still in place, passes calls on */
  bool spare;         /* no host can call it any more */
  struct ljp_guest_heap heap;
  struct ljp_producer *producer; /* NULL: no session, and `stacks` is empty */
  bool abandoned; /* the VM's thread may still use the producer, which nobody
                  ** reads any more */
  /* The producer's flag, or one that is always false: is there anything to
  ** record? */
  const _Atomic bool *_Atomic active;
  uint32_t number; /* of the VM */
  uint32_t vm;     /* the VM's id in the session */
  uint64_t sample_bytes, asked_bytes;
  uint64_t told_bytes;   /* of these, what the producer's stream says */
  uint64_t told_ns;      /* since then */
  uint32_t max_samples;  /* followed.h */
  uint32_t pace_samples; /* since pace_ns */
  uint64_t pace_ns;
  bool told_at_once; /* followed.h */
  struct ljp_phase_log log;
  uint64_t tsc, clock_ns; /* at the last reading of the clock; at the first: */
  uint64_t first_tsc, first_ns;
  double tick_ns;   /* length of one tick of the counter; 0: not known */
  uint64_t time_ns; /* of the last event */
  enum ljp_gc_phase phase;
  uint8_t sweep_phase; /* the same in a sweep, else LJP_NO_PHASE */
  uint64_t cycle;
  uint64_t dense_tsc;  /* of the last event that read the counter; */
  uint32_t dense_more; /* how many later ones need not */
  uint64_t swept_step; /* gc_step when a sweep last read the time */
  uint32_t swept_more; /* how many later events of it need not */
  struct ljp_mem held; /* the event that is held back; its stack is `stack` */
  bool holds, held_object, held_part;
  uint8_t held_type; /* if the memory does not tell its type itself */
  struct ljp_memprof_counts counts;
  uint64_t noted_bytes; /* in use when the first call was not recorded */
  uint64_t other_bytes; /* in use, but not allocated by recorded events */
  struct ljp_found_stack stack; /* of the last event that has a stack */
  struct ljp_stacks stacks;
};

/* Puts the recorder between the VM and its allocator. */
void ljp_recorder_begin(struct ljp_recorder *r);

/* Pushes the event that is held back and the final state of the heap. closed:
** the VM is about to free its memory. True: the VM has its old allocator back.
** False: another allocator has been put on top; the recorder must stay for
** good. On the VM's own thread. */
bool ljp_recorder_end(struct ljp_recorder *r, bool closed);

/* The same for a VM that another thread may be running, in three steps. First
** switch off the recorders of all such VMs, and sleep for
** LJP_RECORDER_SETTLE_NS. Then call this for each; nobody is waited for after
** until_ns. False: the VM's thread does not come out of the recorder; it must
** keep its producer and its stacks. Until ljp_recorder_remove() the recorder stays
** in place and passes calls on. */
enum { LJP_RECORDER_SETTLE_NS = 2000000 };
#define LJP_RECORDER_PATIENCE_NS UINT64_C(2500000000)
bool ljp_recorder_end_elsewhere(struct ljp_recorder *r, uint64_t until_ns);

/* The last step, on the VM's own thread. Returns as ljp_recorder_end() does. */
bool ljp_recorder_remove(struct ljp_recorder *r);

/* Is the recorder still the VM's allocator? */
bool ljp_recorder_in_place(struct ljp_recorder *r);

/* The host is about to replace the recorder, which from then on would miss
** events. Pushes what is left, and switches the recorder off. On the VM's own
** thread. */
void ljp_recorder_leave_place(struct ljp_recorder *r);

/* Resets a recorder that has ended. It still passes calls on, and keeps its
** producer and its stacks. */
void ljp_recorder_reset(struct ljp_recorder *r);

/* Makes the recorder only pass calls on from now on. Any thread. */
void ljp_recorder_switch_off(struct ljp_recorder *r);

/* Pushes the event that is held back, so that all events so far have been
** pushed. */
void ljp_recorder_flush(struct ljp_recorder *r);

/* Puts a mark on the timeline, with the size of the heap. */
void ljp_recorder_mark(struct ljp_recorder *r, const char *name, size_t bytes);

/* Pushes the place of a heap snapshot among the events. */
void ljp_recorder_moment(struct ljp_recorder *r, uint64_t snapshot);

/* After fork(), in a child that has a stream of its own: drops the event that
** is held back, which is the parent's, counts from 0, and starts from the
** present heap. */
void ljp_recorder_forked(struct ljp_recorder *r);

/* Tells the recorder that the collector has entered another phase. */
void ljp_recorder_phase(struct ljp_recorder *r);

/* Adds the recorder's counts to *sums. Any thread; while the VM runs on another
** one, the counts may be a little old. */
void ljp_recorder_add_counts(const struct ljp_recorder *r,
                             struct ljp_memprof_counts *sums);

uint64_t ljp_recorder_time(struct ljp_recorder *r);

#endif
