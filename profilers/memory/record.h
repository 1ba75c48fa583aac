/*
** The recorder: an allocator that stands between a VM and the VM's own
** allocator, passes every call on and records it. On the VM's own thread,
** whichever that is at the moment. Used by memprof.c.
**
** Invariants: the stack is found before the VM's allocator is called, which may
** free the very stack that is walked; the event is pushed after it. An
** allocation is held back until the next event, when the new object can tell
** its type. No memory comes from the VM's allocator.
*/
#ifndef LJP_MEMORY_RECORD_H
#define LJP_MEMORY_RECORD_H

#include <stdatomic.h>

#include "lua.h"

#include "profilers/memory/memprof.h"
#include "profilers/memory/stack.h"
#include "profilers/memory/track.h"

/* The way to the next sample. */
struct ljp_countdown {
  int64_t until;      /* bytes */
  uint64_t last_size; /* of the last request that went by the recorder, to
                      ** LuaJIT's own allocator; 0: one is made by it */
  uint64_t sample_bytes, random;
};

/* Where the entry of a session that samples, on LuaJIT's own allocator,
** finds its recorder: the VM's allocator keeps the `ud` that it had, and
** only the function is another. So whoever got the two (lua_getallocf) may
** go on calling that function when the session is over: it passes on, by
** what is here. */
struct ljp_own {
  _Alignas(64) struct ljp_countdown down; /* nobody else's cache line */
  _Alignas(64) void *_Atomic ud; /* of the VM's allocator; NULL: no session */
  struct ljp_recorder *recorder;
  lua_Alloc alloc; /* LuaJIT's */
  bool kept;       /* by somebody who was there at the end, and may use it on
                   ** any thread: there will be no other session here */
};
extern struct ljp_own ljp_own __attribute__((visibility("hidden")));

struct ljp_recorder {
  /* The allocator below; what entry.c looks at comes first. */
  lua_Alloc alloc;
  void *ud;
  struct ljp_countdown *down; /* `here`, or that of ljp_own */
  struct ljp_recorder *left;  /* the next that was left behind */
  lua_Alloc give_back; /* the allocator below, for a block that is freed */
  void *(*fresh)(struct ljp_recorder *r, void *ptr, size_t osize, size_t nsize,
                 const struct ljp_caller *caller); /* records a new one */
  struct ljp_track track;
  struct ljp_countdown here;
  _Atomic bool on; /* off: only passes on, for good */
  bool every;
  bool own;   /* LuaJIT's own allocator is the one below */
  bool fixed; /* ... and this is ljp_own's recorder. Blocks in the table have
              ** their flag set (ljp_guest_block_flag); who has the flag need
              ** not be in the table */
  struct ljp_guest_heap heap;
  struct ljp_producer *producer;
  /* The producer's, or one that is always false: is there anything to do? */
  const _Atomic bool *_Atomic active;
  uint32_t number; /* of the VM, and: */
  uint32_t vm;     /* its id in the session */
  uint64_t sample_bytes;
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
  uint8_t held_type; /* if it does not tell that itself */
  struct ljp_memprof_counts counts;
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
bool ljp_recorder_in_place(struct ljp_recorder *r);

/* After its end: all of it is as new, but it still passes on. */
void ljp_recorder_renew(struct ljp_recorder *r);

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
