/*
** Inside of a producer: what the pushes (producer.c, LJP_SIGSAFE) and the
** writer share. Nobody else includes it.
*/
#ifndef LJP_PRODUCER_IMPL_H
#define LJP_PRODUCER_IMPL_H

#include <string.h>
#include <sys/types.h>

#include "src/push/producer.h"

enum ljp_ring_type {
  LJP_RING_SAMPLE = 1, /* a: VM state, b: cut. */
  LJP_RING_MEM = 2,    /* a: VM state, b: op | weight << 2, c: what. */
  LJP_RING_EVENT = 3,  /* a: tag, b: number of words, c: has a stack. */
  LJP_RING_BRIEF = 4   /* a: VM state, b: op, c: what. See brief.h. */
};

/* Where a stack is given: new frames follow the fixed part, root first. */
struct ljp_ring_sample {
  struct ljp_ring_record head;
  uint64_t time_ns;
  uint64_t weight;
  uint32_t vm;
  uint16_t keep, n;
  uint64_t frames[];
};
_Static_assert(sizeof(struct ljp_ring_sample) == 32, "no padding");

struct ljp_ring_mem {
  struct ljp_ring_record head;
  uint64_t time_ns;
  uint64_t address;
  uint64_t size;
  uint32_t vm;
  uint16_t keep, n;
  uint64_t rest[]; /* Realloc: old address, old size. Weight. Frames. */
};
_Static_assert(sizeof(struct ljp_ring_mem) == 40, "no padding");

/* Time, VM and stack are those of the memory event before. */
struct ljp_ring_brief {
  struct ljp_ring_record head;
  uint64_t word; /* address << 16 | size */
};
_Static_assert(sizeof(struct ljp_ring_brief) == 16, "no padding");
enum { LJP_BRIEF_SIZE_BITS = 16, LJP_BRIEF_SIZE_MAX = 0xffff };

struct ljp_ring_event {
  struct ljp_ring_record head;
  uint64_t time_ns;
  uint32_t text_bytes;
  uint16_t keep, n;
  uint64_t words[]; /* Then frames, then the text. */
};
_Static_assert(sizeof(struct ljp_ring_event) == 24, "no padding");

/* A memory event: the first keep frames of the last stack, and n new ones on
** top, leaf first or root first. full: set if there was no room, which is then
** no loss yet; or NULL. */
struct ljp_producer;
LJP_SIGSAFE bool ljp_producer_put_mem(struct ljp_producer *p,
                                      const struct ljp_mem *m, unsigned keep,
                                      const uint64_t *frames, unsigned n,
                                      bool root_first, bool *full);

/* How many frames from the root are as in the stack before; frames: leaf
** first. */
LJP_SIGSAFE unsigned ljp_producer_common(const struct ljp_producer *p,
                                         const uint64_t *frames, unsigned n);

/* How full is the ring? Has the writer come above half. False: there is no room
** for a brief event, or not before the ring's end. Sets look_at. */
LJP_SIGSAFE bool ljp_producer_look(struct ljp_producer *p);

static inline size_t ljp_ring_mem_size(const struct ljp_mem *m, unsigned n)
{
  unsigned extra = (m->op == LJP_MEM_REALLOC ? 2 : 0) + (m->weight != 0);
  return sizeof(struct ljp_ring_mem) + 8 * (size_t)(extra + n);
}

/* What the writer sleeps on; one a session. */
struct ljp_wake {
  _Atomic uint32_t word; /* 1: somebody asked the writer to come. */
};

struct ljp_producer {
  struct ljp_ring ring;
  /* Producer's side. */
  _Atomic bool busy; /* In a push: only ever contended by a signal. */
  unsigned depth;    /* Frames in stack. */
  uint64_t mem_time; /* Of the last memory event that is in the ring; 0: the
                     ** writer knows of none. */
  uint64_t look_at; /* Up to there is room for brief events; then look again. */
  bool gave_up;     /* Waited in vain: do not wait again until room. */
  uint64_t half;    /* Wake the writer above so many bytes. */
  _Atomic uint64_t lost[LJP_LOSS_COUNT];
  _Atomic uint64_t overruns;
  /* Shared. */
  _Alignas(64) _Atomic bool active;
  struct ljp_wake *wake;
  _Atomic uint32_t space; /* Counts the writer's releases while waited for. */
  _Atomic bool waiting;
  pid_t pid;
  /* Constant. */
  uint32_t id, thread;
  enum ljp_producer_kind kind;
  size_t mapped_bytes;
  struct ljp_session *session;
  struct ljp_producer *next;            /* In the session's list. */
  uint64_t stack[LJP_STACK_MAX_FRAMES]; /* Last stack, root first. */
};

#endif
