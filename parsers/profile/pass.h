/*
** The pass over the streams: what exists only between ljp_profile_new() and
** ljp_profile_finish(). The files of parsers/profile share it; nobody else
** includes it. One thread a profile.
**
** profile.c drives the pass. Samples go to samples.c, memory events to
** memory_batch.c and from there to memory.c, everything else to rare_events.c
** and traces.c. All of them count at rows (rows.h), which lead from a stack
** (stack.h) and a context (context.h) of the stream to a row of the profile.
*/
#ifndef LJP_PARSERS_PROFILE_PASS_H
#define LJP_PARSERS_PROFILE_PASS_H

#include "parsers/base/index.h"
#include "parsers/profile/context.h"
#include "parsers/profile/definitions.h"
#include "parsers/profile/live_blocks.h"
#include "parsers/profile/memory.h"
#include "parsers/profile/profile.h"
#include "parsers/profile/stack.h"

struct ljp_profile_pass {
  struct ljp_memory_batch batch;

  /* Indexes over the profile's arrays, and the room of each array. */
  struct ljp_index frame_index, node_index, context_index, row_index;
  struct ljp_index trace_index, blacklisted_index, label_index;
  uint32_t frame_room, node_room, context_room, row_room, memory_room;
  uint32_t estimate_room, site_room;
  uint32_t module_room, thread_room, vm_room, function_room;
  uint32_t gc_room, mark_room, trace_event_room, point_room;
  uint32_t trace_room, blacklisted_room, notice_room;
  uint32_t label_room, label_pair_room;
  uint32_t notes[LJP_PROFILE_MAX_NOTES], note_count; /* Strings. */
  uint64_t more_notes;
  uint32_t too_many_names; /* The string for names beyond the limit. */

  struct ljp_stack_map stacks;
  struct ljp_profile_proto *protos; /* LJP_PROFILE_PROTOS of them. */
  uint32_t epoch;                   /* Number of epochs and inputs so far. */

  const struct ljp_reader *reader; /* The input that is being read. */
  uint32_t source;                 /* Number of its session, from 0. */
  uint64_t stream;                 /* Of the newest block; see `begun`. */
  uint64_t told_cpu_ns; /* Of the samples before the newest CPU_TIME. */
  bool begun;           /* A block was read. */
  unsigned placed;      /* Epochs of the session that were read; 2: or more. */
  bool held_seen;       /* A HELD record of the session was read. */

  struct ljp_context_cache context;
  bool filters_time; /* The options select a span of time. */
  bool filters;      /* Or events with some labels. */

  struct ljp_gc_sample *gc_samples; /* options.gc_cost: see gc_cost.c. */
  struct ljp_gc_turn *gc_turns;
  struct ljp_gc_vm *gc_vms;
  uint32_t gc_sample_count, gc_sample_room, gc_turn_count, gc_turn_room;
  uint32_t gc_vm_count, gc_vm_room;

  struct ljp_live live;
  struct ljp_memory_sums memory;
  struct ljp_growth growth;
  char ends[LJP_READER_ERROR_BYTES]; /* Of a foreign file: how it ends, if it
                                     ** is not whole. */
  bool since_seen; /* The mark that options.since names was read. */
};

/* A time of the stream as nanoseconds since the origin. */
static inline uint64_t ljp_profile_since(const struct ljp_profile *p,
                                         uint64_t time_ns)
{
  return time_ns > p->origin_ns ? time_ns - p->origin_ns : 0;
}

/* Moves the profile's end to the time of an event, if that is later. */
static inline void ljp_profile_see_time(struct ljp_profile *p, uint64_t time_ns)
{
  if (time_ns > p->origin_ns + p->end_ns)
    p->end_ns = ljp_profile_since(p, time_ns);
}

/* A number of the stream as 32 bits; too large ones become UINT32_MAX. */
static inline uint32_t ljp_clamp_u32(uint64_t number)
{
  return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* -- The steps that profile.c calls ------------------------------------------
** LJP_ERR_MEM is the only failure of each. */

/* samples.c: counts a SAMPLES item and those that follow it in its record. */
enum ljp_status ljp_profile_take_samples(struct ljp_profile *p,
                                         struct ljp_reader *reader,
                                         const struct ljp_item *item);

/* rare_events.c: everything that is neither sample, memory event nor block. */
enum ljp_status ljp_profile_take_event(struct ljp_profile *p,
                                       const struct ljp_item *item);

/* births.c: the moment of a heap snapshot; and rows have new numbers. */
enum ljp_status ljp_profile_take_moment(struct ljp_profile *p,
                                        const struct ljp_rec_heap_moment *m);
void ljp_profile_move_births(struct ljp_profile *p, const uint32_t *row_map);

/* rebuild.c: looks up symbols and makes the tables that views see. */
enum ljp_status ljp_profile_rebuild(struct ljp_profile *p);

/* functions.c: numbers the functions of p->frames. */
/* The line of builtins in bytecode during the pass. Their frames become frames
** of builtins when it is over, because until then a builtin's frame stands for
** machine code, too. */
#define LJP_PROFILE_BUILTIN_LINE UINT32_MAX

enum ljp_status ljp_profile_number_functions(struct ljp_profile *p);

/* profile.c: the pass is over. */
void ljp_profile_free_pass(struct ljp_profile *p);

/* notices.c: writes the sentences of ljp_profile_notice(). */
enum ljp_status ljp_profile_make_notices(struct ljp_profile *p);

#endif
