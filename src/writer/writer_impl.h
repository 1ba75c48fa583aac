/*
** Inside of the writer: what writer.c (rounds), take.c (entries), stacks.c,
** define.c, describe.c (definitions), epoch.c, rotate.c and ljm*.c share. No
** other source file includes it.
*/
#ifndef LJP_WRITER_IMPL_H
#define LJP_WRITER_IMPL_H

#include <string.h>

#include "src/base/assert.h"
#include "src/push/producer_state.h"
#include "src/writer/block_out.h"
#include "src/writer/builder.h"
#include "src/writer/definitions.h"
#include "src/writer/held.h"
#include "src/writer/intern.h"
#include "src/writer/ljm.h"
#include "src/writer/modules.h"
#include "src/writer/proto_numbers.h"
#include "src/writer/writer.h"

#ifdef LJP_DEBUG
#define LJP_DEFAULT_MAX_NODES 4096u /* More than one stack may have. */
#define LJP_DEFAULT_EPOCH_BYTES (64u << 10)
#define LJP_MAX_DEFS_BYTES (256u << 10)
#else
#define LJP_DEFAULT_MAX_NODES (1u << 18)
#define LJP_DEFAULT_EPOCH_BYTES (64u << 20)
#define LJP_MAX_DEFS_BYTES (16u << 20)
#endif
#define LJP_DEFAULT_EPOCH_NS (60 * UINT64_C(1000000000))
_Static_assert(LJP_DEFAULT_MAX_NODES > LJP_STACK_MAX_FRAMES, "a stack fits");
_Static_assert(LJP_DEFAULT_MAX_NODES <= LJP_EPOCH_MAX_NODES, "RFC 1");

enum {
  LJP_ADDRESS_CACHE = 4096,
  LJP_GONE_AT_ONCE = 256,
  LJP_RELEASE_BYTES = 16384
};

/* What has become of a stack that a producer has pushed. The nodes of its first
** `valid` frames are in its chain, as long as the generations match. */
struct ljp_taken_stack {
  unsigned depth, valid;
  uint32_t node_generation, module_generation, proto_generation;
  uint32_t labels, root; /* The node of the labels below the first frame. */
  /* The id of the whole stack, if ljp_writer_stack_valid(). */
  uint32_t id_epoch;
  uint64_t id;
};

struct ljp_numbered_stack {
  struct ljp_taken_stack stack;
  uint64_t words[LJP_NUMBERED_FRAMES]; /* Root first. */
};

/* What the writer knows of one producer. */
struct ljp_source {
  struct ljp_source *next;
  struct ljp_producer *producer; /* NULL: retired. */
  uint32_t id;
  uint64_t end; /* Drain up to here. */
  /* The producer's last stack: words[0..depth), root first. */
  struct ljp_taken_stack last;
  struct ljp_numbered_stack *numbered; /* By number; NULL: there is none. */
  uint64_t lost[LJP_LOSS_COUNT];       /* As last written. */
  uint64_t overruns;
  uint64_t own_loss[LJP_LOSS_COUNT]; /* Lost by the writer, not by the push;
                                     ** once retired: all losses. */
  uint64_t own_overruns;             /* Once retired: all overruns. */
  struct ljp_mem mem; /* For brief events: time and VM of the one before. */
  uint32_t labels;    /* Of the events that follow; 0: none. */
  uint64_t words[LJP_STACK_MAX_FRAMES];
  uint32_t chain[LJP_STACK_MAX_FRAMES];
};

struct ljp_writer {
  struct ljp_writer_options options;
  struct ljp_sink *sink;
  _Atomic uint64_t bytes; /* Of the file segment; for other threads. */
  struct ljp_block_out out;
  struct ljp_ljm
      *ljm; /* NULL: the output is a stream; otherwise `out` drops blocks. */
  struct ljp_builder builder;
  struct ljp_intern nodes;
  struct ljp_defs defs;
  struct ljp_proto_numbers proto_numbers;
  struct ljp_modules modules;
  struct ljp_held held;
  struct ljp_source *sources;
  uint64_t now_ns; /* When the round began. */
  uint64_t epoch_start_ns;
  uint64_t segment_end_ns;     /* When it is due by time; else UINT64_MAX. */
  uint64_t size_limit;         /* When it is time to rotate; else UINT64_MAX. */
  uint64_t segment_head_bytes; /* What the file segment began with. */
  struct {
    uint32_t failures; /* In a row. */
    int error;         /* Of the last one; 0: none. */
    uint64_t again_ns; /* The next attempt; 0: when it is time to. */
  } rotation;
  /* The file's place in a store (room.c): when to look at it again, and from how
  ** many bytes on the file segment should end. All 0: not yet looked at. */
  struct {
    uint64_t look_bytes, most_bytes;
    uint64_t again_ns, pause_ns; /* After a full disk: the next attempt. */
    int error; /* Of the last look, or of a removal; 0: none. */
    int told;  /* The error that the stream tells of; 0: none. */
    bool full; /* The disk is full: events are losses. */
  } room;
  bool appending; /* A heap snapshot: it is to be in one file segment. */
  uint32_t modules_announced; /* Generation. */
  uint32_t info_count;
  struct {
    uint64_t word, stable;
  } addresses[LJP_ADDRESS_CACHE];
  uint32_t addresses_generation;
  uint32_t path[1 + LJP_STACK_MAX_FRAMES];
  struct ljp_body body;
  uint8_t record[LJP_RECORD_MAX_BYTES + 16];
};

/* heap_frames.c: writes a record of a heap snapshot. fields: its body; the time
** is put before it, if the record has one. */
void ljp_writer_put_heap(struct ljp_writer *w, enum ljp_record tag,
                         uint64_t time_ns, const uint8_t *fields, size_t len);

/* define.c. There is one body: whatever defines something uses it. */

/* The body, emptied. */
struct ljp_body *ljp_writer_body(struct ljp_writer *w);
/* The body, beginning with a time, for an event of the block being built. */
struct ljp_body *ljp_writer_timed_body(struct ljp_writer *w, uint64_t time_ns);
/* Writes the body as an event. */
void ljp_writer_put_event(struct ljp_writer *w, enum ljp_record tag);
/* Writes the body as a definition that is not kept. */
void ljp_writer_put_body(struct ljp_writer *w, enum ljp_record tag);
/* Keeps the body as a definition, but does not write it. NULL: no memory. */
struct ljp_def *ljp_writer_keep_def(struct ljp_writer *w,
                                    enum ljp_def_class class, uint64_t key,
                                    uint64_t id, enum ljp_record tag);
/* Writes a kept definition unless this epoch has it. NULL: does nothing. */
void ljp_writer_put_def(struct ljp_writer *w, struct ljp_def *def);
/* Keeps the body as a definition and writes it. NULL: there was no memory to
** keep it; it is written all the same, but later epochs will lack it. */
struct ljp_def *ljp_writer_define(struct ljp_writer *w,
                                  enum ljp_def_class class, uint64_t key,
                                  uint64_t id, enum ljp_record tag);
/* Writes the records so far as a block; only if the builder is full. */
enum ljp_status ljp_writer_put_block(struct ljp_writer *w, uint16_t flags);
void ljp_writer_make_room(struct ljp_writer *w);
/* Looks at the loader's list and writes what changed. */
void ljp_writer_update_modules(struct ljp_writer *w);

/* describe.c. "Need": make sure that this epoch has the definition. */

/* The number of the prototype that a reference stands for now; 0: unknown. */
uint32_t ljp_writer_proto_number(struct ljp_writer *w, uint32_t ref);
/* The id in the file of a prototype's number; 0 for 0. */
uint64_t ljp_writer_need_proto(struct ljp_writer *w, uint32_t number);
void ljp_writer_need_trace(struct ljp_writer *w, uint64_t id);
void ljp_writer_need_builtin(struct ljp_writer *w, uint64_t ffid);
void ljp_writer_need_labels(struct ljp_writer *w, uint64_t id);
/* Forgets references whose prototypes have gone and that no ring holds. */
void ljp_writer_forget_protos(struct ljp_writer *w);

/* writer.c: gives back room in the ring, and wakes a producer that waits. */
void ljp_writer_release(struct ljp_producer *p, uint64_t pos);

/* stacks.c */

/* Makes the source's last stack that of its first `keep` frames and n new
** words, root first. False: these numbers make no sense. */
static inline bool ljp_writer_keep_words(struct ljp_source *s, unsigned keep,
                                         unsigned n, const uint64_t *words)
{
  struct ljp_taken_stack *last = &s->last;
  if (keep > last->depth || n > LJP_STACK_MAX_FRAMES - keep) {
    last->depth = last->valid = 0;
    last->id_epoch = 0;
    return false;
  }
  if (n)
    memcpy(s->words + keep, words, 8 * (size_t)n);
  last->depth = keep + n;
  if (last->valid > keep)
    last->valid = keep;
  return true;
}

/* Sets *id to the stack of the source's last `keep` frames and n new words,
** root first, and makes sure that this epoch has it. If the tree is full,
** begins a new epoch. False: the stack is lost, and that is counted. */
bool ljp_writer_stack(struct ljp_writer *w, struct ljp_source *s, unsigned keep,
                      unsigned n, const uint64_t *words, uint64_t time_ns,
                      uint64_t *id);
/* The same for the stack that has a number; number 0: the source's last
** stack. */
bool ljp_writer_numbered_stack(struct ljp_writer *w, struct ljp_source *s,
                               unsigned number, uint64_t time_ns, uint64_t *id);
/* From now on the number means this stack, root first. */
void ljp_writer_number_stack(struct ljp_source *s, unsigned number,
                             const uint64_t *words, size_t n);
/* Do the nodes in the stack's chain still stand for its words? */
static inline bool
ljp_writer_generations_match(const struct ljp_writer *w,
                             const struct ljp_source *s,
                             const struct ljp_taken_stack *stack)
{
  return stack->labels == s->labels &&
         stack->node_generation == w->nodes.generation &&
         stack->module_generation == w->modules.generation &&
         stack->proto_generation == w->proto_numbers.generation;
}
/* Is the stack's id still true, and does this epoch have it? */
static inline bool ljp_writer_stack_valid(const struct ljp_writer *w,
                                          const struct ljp_source *s,
                                          const struct ljp_taken_stack *stack)
{
  return stack->id_epoch == w->out.epoch && stack->valid == stack->depth &&
         ljp_writer_generations_match(w, s, stack);
}

/* Writes the node and its ancestors, outermost first, unless this epoch has
** them. */
void ljp_writer_need_node(struct ljp_writer *w, uint32_t index);
/* The module that a stable word names; 0: none. */
uint32_t ljp_writer_stable_module(uint64_t word);

/* held_out.c */

/* A memory event was written with this stack. */
void ljp_writer_hold_mem(struct ljp_writer *w, const struct ljp_source *s,
                         const struct ljp_mem *mem, uint64_t stack);
void ljp_writer_hold_gc(struct ljp_writer *w, const struct ljp_gc_fields *gc);
/* An entry was lost in the writer. */
void ljp_writer_hold_lost(struct ljp_writer *w,
                          const struct ljp_ring_entry *entry);
/* Writes what is held to the file segment that begins. */
enum ljp_status ljp_writer_put_held(struct ljp_writer *w);
/* Clears the tables of stacks, prototypes and definitions, but for the stacks
** that held blocks need. */
void ljp_writer_clear_tables(struct ljp_writer *w);

/* epoch.c */
enum ljp_status ljp_writer_begin_epoch(struct ljp_writer *w,
                                       enum ljp_epoch_why why);
void ljp_writer_put_totals(struct ljp_writer *w);

/* rotate.c: decides until when a file segment that begins now goes on. */
void ljp_writer_plan_segment(struct ljp_writer *w);
/* Begins the next file segment, whether it is due or not. False: it cannot be
** made. */
bool ljp_writer_turn(struct ljp_writer *w);
/* Begins the next file segment if it is time to. False: it is not, or
** that has failed. */
bool ljp_writer_rotate(struct ljp_writer *w);
/* Asks for the limit on the size of files; once a round. */
void ljp_writer_look_at_limit(struct ljp_writer *w);
/* During a drain: begins the next file segment if this one comes close to the
** limit on the size of files. */
void ljp_writer_rotate_within(struct ljp_writer *w);
/* The file segment has met that limit all the same: goes on in the next one.
** False: this session does not rotate, that was not the error, or the limit is
** too low for any file segment. */
bool ljp_writer_rotate_past_limit(struct ljp_writer *w);

/* room.c: a store's budget. Looks at the store if it is time to, and removes the
** oldest files of the service if they take too much. During a drain, too. */
void ljp_writer_look_at_room(struct ljp_writer *w);
/* After a look: should the file segment end for the others' sake? */
bool ljp_writer_room_is_short(const struct ljp_writer *w);
/* At a round's end: tells of what looks have met. */
void ljp_writer_tell_room(struct ljp_writer *w);
/* The disk is full: makes room, and goes on, now or later. False: this is no
** store, or the writer has met another error. */
bool ljp_writer_survive_full(struct ljp_writer *w);
/* After an error: is it a full disk, and this a store? */
bool ljp_writer_outlasts_error(const struct ljp_writer *w);

/* take.c */

/* The entry of a swept block carries the stack that its producer had before,
** but the event has none. That stack's references may mean something else by
** now, so it must not be resolved. */
static inline bool ljp_writer_without_stack(uint8_t op, uint8_t what)
{
  return op == LJP_MEM_FREE && (what & LJP_MEM_SWEPT);
}
/* The event of an entry. */
static inline struct ljp_mem ljp_writer_mem_of(const struct ljp_mem_entry *e)
{
  const struct ljp_mem_parts parts = ljp_mem_entry_parts(e, e->op);
  ljp_assert((const uint8_t *)(parts.frames +
                               (e->keep == LJP_KEEP_NUMBER ? 0 : e->n)) ==
             (const uint8_t *)e + e->size);
  return (struct ljp_mem){.time_ns = e->time_ns,
                          .address = e->address,
                          .size = e->bytes,
                          .old_address = parts.old ? parts.old->address : 0,
                          .old_size = parts.old ? parts.old->bytes : 0,
                          .weight = parts.weight ? *parts.weight : 0,
                          .vm = e->vm,
                          .op = e->op & LJP_MEM_OP_MASK,
                          .vmstate = e->vmstate,
                          .what = e->what};
}

/* Takes one entry, not a brief one. */
void ljp_writer_take(struct ljp_writer *w, struct ljp_source *s,
                     const struct ljp_ring_entry *entry);
/* Takes brief entries from *pos on, as many in a row as begin before end. They
** need no definitions, unless the stack must be written again: then it takes
** one entry only, so that the caller can check the epoch's bounds. */
void ljp_writer_take_briefs(struct ljp_writer *w, struct ljp_source *s,
                            const struct ljp_ring *ring, uint64_t *pos,
                            uint64_t end);

#endif
