/*
** The recorder: an allocator of the VM's that passes every call on to the one
** that was there before and records what happened. On the VM's own thread,
** whichever that is at the moment; part of memprof.c.
**
** Invariants: the stack is walked before the old allocator is called (it may
** free the very stack that is walked), the event is pushed after it. An
** allocation is held back until the next event, when what was allocated can
** tell what it is. No memory comes from the Lua allocator.
*/
#ifndef LJP_MEMPROF_RECORD_H
#define LJP_MEMPROF_RECORD_H

#include <stdatomic.h>

#include "lua.h"

#include "profilers/memprof.h"
#include "profilers/memprof_stack.h"
#include "profilers/memprof_track.h"

struct ljp_recorder {
  /* The allocator below; what memprof_entry.c looks at comes first. */
  lua_Alloc alloc;
  void *ud;
  int64_t until;       /* bytes to the next sample */
  uint64_t last_size;  /* of the last request that went by the recorder, to
                      ** LuaJIT's own allocator; 0: one is made by it */
  lua_Alloc give_back; /* the allocator below, for a block that is freed */
  void *(*fresh)(struct ljp_recorder *r, void *ptr, size_t osize, size_t nsize,
                 const struct ljp_caller *caller); /* records a new one */
  struct ljp_track track;
  _Atomic bool on; /* off: only passes on, for good */
  bool every;
  bool own; /* LuaJIT's own allocator is the one below */
  struct ljp_guest_heap heap;
  struct ljp_producer *producer;
  /* The producer's, or one that is always false: is there anything to do? */
  const _Atomic bool *_Atomic active;
  uint32_t number; /* of the VM, and: */
  uint32_t vm;     /* its id in the session */
  uint64_t sample_bytes;
  uint64_t random;
  uint64_t tsc, clock_ns; /* of the last look at the clock, and the first: */
  uint64_t first_tsc, first_ns;
  double tick_ns;   /* of the counter; 0: not known */
  uint64_t time_ns; /* of the last event */
  enum ljp_gc_phase phase;
  uint8_t sweep_phase; /* the same, if it is one that sweeps */
  uint64_t cycle;
  uint64_t dense_tsc;  /* of the last allocation that was asked for the time, */
  uint32_t dense_more; /* and how many that follow are not */
  uint64_t swept_step; /* of the last event of a sweep; and so many more */
  uint32_t swept_more; /* take the time as it is */
  struct ljp_mem held; /* the event that waits; its stack is `stack` */
  bool holds, held_object, held_part;
  bool held_same;    /* it is an allocation, of the stack of the event before;
                     ** stays until there is another one in `stack` */
  uint8_t held_type; /* if it does not tell that itself */
  struct ljp_memprof_counts counts;
  struct ljp_recorder *left;    /* the next that was left behind */
  struct ljp_found_stack stack; /* of the last event that has one */
  struct ljp_stacks stacks;
};

/* Goes between the VM and its allocator. */
void ljp_recorder_begin(struct ljp_recorder *r);

/* Pushes what is held back and the last state of the heap. True: the VM has
** its old allocator back. False: somebody has put another one on top; the
** recorder must stay for good. */
bool ljp_recorder_end(struct ljp_recorder *r);

/* Is it still the VM's allocator? */
bool ljp_recorder_in_place(const struct ljp_recorder *r);

/* It only passes on from now on. From any thread. */
void ljp_recorder_rest(struct ljp_recorder *r);

/* In a moment when all that happened so far has been pushed. */
void ljp_recorder_flush(struct ljp_recorder *r);

/* A point in time, with the size of the heap. */
void ljp_recorder_mark(struct ljp_recorder *r, const char *name, size_t bytes);

/* In a child, which has a stream of its own: what is held back is its parent's,
** and its heap begins as it is now. */
void ljp_recorder_forked(struct ljp_recorder *r);

/* The collector has entered another phase. */
void ljp_recorder_phase(struct ljp_recorder *r);

/* Brings r->counts up to date. */
void ljp_recorder_count(struct ljp_recorder *r);

uint64_t ljp_recorder_time(struct ljp_recorder *r);

#endif
