/*
** Entries: what a push writes into a producer's ring and the writer takes out
** of it. One struct for each kind, which both sides use, so that the compiler
** notices a field that moves. The layout is ours alone: it never reaches a
** file, and both sides are always of the same build.
**
** An entry with a stack gives the difference to the producer's stack before:
** `keep` frames stay, counted from the root, and `n` new ones follow the fixed
** part, root first.
**
** A stack of few frames can get a number, by an entry of its own. Memory events
** then bring the number instead of frames; the producer's stack before stays
** what it is.
*/
#ifndef LJP_ENTRY_H
#define LJP_ENTRY_H

#include "src/base/format.h"
#include "src/push/ring.h"

enum ljp_entry_type {
  LJP_ENTRY_SAMPLE = 1,
  LJP_ENTRY_MEM = 2,
  LJP_ENTRY_EVENT = 3,
  LJP_ENTRY_BRIEF = 4,
  LJP_ENTRY_STACK = 5,
  LJP_ENTRY_LABELS = 6
};

/* The start of each entry: the ring's part, with names for the three bytes that
** belong to the kind. */
#define LJP_ENTRY_HEAD(first, second, third)                                   \
  union {                                                                      \
    struct ljp_ring_entry head;                                                \
    struct {                                                                   \
      uint32_t size;                                                           \
      uint8_t type;                                                            \
      uint8_t first, second, third;                                            \
    };                                                                         \
  }

struct ljp_sample_entry {
  LJP_ENTRY_HEAD(vmstate, cut, unused);
  uint64_t time_ns;
  uint64_t weight;
  uint32_t vm;
  uint16_t keep, n;
  uint64_t frames[];
};
_Static_assert(sizeof(struct ljp_sample_entry) == 32, "no padding");

/* From here on the producer's samples and memory events have these labels. */
struct ljp_labels_entry {
  LJP_ENTRY_HEAD(unused_a, unused_b, unused_c);
  uint64_t labels; /* Number; 0: none. */
};
_Static_assert(sizeof(struct ljp_labels_entry) == 16, "no padding");

/* -- Memory events --------------------------------------------------------- */

struct ljp_mem_entry {
  LJP_ENTRY_HEAD(vmstate, op, what); /* op: with LJP_MEM_ENTRY_WEIGHTED */
  uint64_t time_ns;
  uint64_t address;
  uint64_t bytes; /* Of the block; `size` is that of the entry. */
  uint32_t vm;
  uint16_t keep, n; /* keep LJP_KEEP_NUMBER: n is the stack's number. */
  uint64_t rest[];  /* See ljp_mem_entry_parts(). */
};
_Static_assert(sizeof(struct ljp_mem_entry) == 40, "no padding");

enum { LJP_MEM_ENTRY_WEIGHTED = LJP_MEM_OP_MASK + 1 };

struct ljp_mem_entry_old {
  uint64_t address, bytes;
};

/* Where the parts behind the fixed one are. */
struct ljp_mem_parts {
  struct ljp_mem_entry_old *old; /* NULL: it is no reallocation. */
  uint64_t *weight;              /* NULL: it has none. */
  uint64_t *frames;
};

/* op: the entry's. */
LJP_SIGSAFE static inline struct ljp_mem_parts
ljp_mem_entry_parts(const struct ljp_mem_entry *entry, uint8_t op)
{
  struct ljp_mem_parts parts = {.frames = (uint64_t *)entry->rest};
  if ((op & LJP_MEM_OP_MASK) == LJP_MEM_REALLOC) {
    parts.old = (void *)parts.frames;
    parts.frames += sizeof *parts.old / sizeof *parts.frames;
  }
  if (op & LJP_MEM_ENTRY_WEIGHTED)
    parts.weight = parts.frames++;
  return parts;
}

/* Gives a stack a number, which it has until the number is given again. */
struct ljp_stack_entry {
  LJP_ENTRY_HEAD(number, unused_b, unused_c);
  uint64_t frames[]; /* Root first; `size` tells how many. */
};
_Static_assert(sizeof(struct ljp_stack_entry) == 8, "no padding");

enum { LJP_NUMBERED_STACKS = 128, LJP_NUMBERED_FRAMES = 192 };
enum { LJP_KEEP_NUMBER = 0xffff };
_Static_assert((int)LJP_STACK_MAX_FRAMES < (int)LJP_KEEP_NUMBER,
               "no number of frames");

/* An allocation or a free with the time and the VM of the memory event before
** it, and a numbered stack; number 0 is the producer's stack before. */
struct ljp_brief_entry {
  LJP_ENTRY_HEAD(vmstate, op, what); /* op: with the number above its low bit */
  uint64_t block;                    /* See ljp_brief_block(). */
};
_Static_assert(sizeof(struct ljp_brief_entry) == 16, "no padding");

enum { LJP_BRIEF_SIZE_BITS = 16, LJP_BRIEF_SIZE_MAX = 0xffff };

LJP_SIGSAFE static inline uint64_t ljp_brief_block(uint64_t address,
                                                   uint64_t bytes)
{
  return address << LJP_BRIEF_SIZE_BITS | bytes;
}

static inline uint64_t ljp_brief_address(const struct ljp_brief_entry *entry)
{
  return entry->block >> LJP_BRIEF_SIZE_BITS;
}

static inline uint64_t ljp_brief_bytes(const struct ljp_brief_entry *entry)
{
  return entry->block & LJP_BRIEF_SIZE_MAX;
}

/* -- Other events ---------------------------------------------------------- */

struct ljp_event_entry {
  LJP_ENTRY_HEAD(tag, words, has_stack); /* words: of the fields */
  uint64_t time_ns;
  uint32_t text_bytes;
  uint16_t keep, n;
  uint64_t rest[]; /* The fields of the event's tag, frames, text. */
};
_Static_assert(sizeof(struct ljp_event_entry) == 24, "no padding");

/* The fields of each tag. The writer accepts an entry that has more. */
struct ljp_gc_fields {
  uint64_t vm, phase, heap_bytes, cycle;
};

struct ljp_trace_fields {
  uint64_t vm, what, trace;
  uint64_t place; /* Frame word of kind LUA, or 0. */
  uint64_t reason, parent, parent_exit;
};

enum { LJP_VMSTATE_MAX_COUNTERS = 16 };

struct ljp_vmstate_fields {
  uint64_t vm;
  uint64_t counters[LJP_VMSTATE_MAX_COUNTERS]; /* As many as `words` says. */
};

struct ljp_mark_fields {
  uint64_t thread, vm;
  int64_t value;
};

struct ljp_interval_fields {
  uint64_t interval, why; /* In ns, or bytes for memory. */
};

struct ljp_note_fields {
  uint64_t severity;
};

struct ljp_moment_fields {
  uint64_t snapshot, vm, heap_bytes;
};

/* _(tag, fields, the bytes of the fields that an entry must have) */
#define LJP_EVENT_FIELDS_LIST(_)                                               \
  _(GC, ljp_gc_fields, sizeof(struct ljp_gc_fields))                           \
  _(TRACE_EVENT, ljp_trace_fields, sizeof(struct ljp_trace_fields))            \
  _(VMSTATE, ljp_vmstate_fields,                                               \
    offsetof(struct ljp_vmstate_fields, counters))                             \
  _(MARK, ljp_mark_fields, sizeof(struct ljp_mark_fields))                     \
  _(INTERVAL, ljp_interval_fields, sizeof(struct ljp_interval_fields))         \
  _(NOTE, ljp_note_fields, sizeof(struct ljp_note_fields))                     \
  _(HEAP_MOMENT, ljp_moment_fields, sizeof(struct ljp_moment_fields))

#define LJP_X(tag, fields, bytes)                                              \
  _Static_assert(sizeof(struct fields) % 8 == 0 && (bytes) % 8 == 0,           \
                 "fields are counted in words");
LJP_EVENT_FIELDS_LIST(LJP_X)
#undef LJP_X

#endif
