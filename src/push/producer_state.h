/*
** The inside of a producer, for those who work on it: the pushes here, the
** writer that drains it, the session that makes and frees it, and the inline
** pushes of brief.h. Profilers include producer.h instead.
*/
#ifndef LJP_PRODUCER_STATE_H
#define LJP_PRODUCER_STATE_H

#include <string.h>
#include <sys/types.h>

#include "src/push/entry.h"
#include "src/push/producer.h"

/* What the writer sleeps on; one for each session. */
struct ljp_wake {
  _Atomic uint32_t word; /* Why somebody asked the writer to come. */
};
enum {
  LJP_WAKE_ROUND = 1,
  LJP_WAKE_LOOK = 2,   /* Only for a look; see ljp_session_on_look(). */
  LJP_WAKE_DECIDED = 4 /* The fate of a provisional session is known. */
};

struct ljp_producer {
  struct ljp_ring ring;
  /* The producer's side. */
  _Atomic bool busy; /* In a push: only a signal can find it set. */
  unsigned depth;    /* Frames in stack. */
  uint32_t labels;   /* Of the last event, as the writer knows. */
  uint64_t mem_time; /* Of the last memory event in the ring; 0: the writer
                     ** knows of none. */
  uint64_t look_at;  /* Brief events fit up to here; then look again. */
  bool gave_up;  /* Waited in vain: do not wait again until there is room. */
  uint64_t half; /* Wake the writer when more bytes are in use. */
  _Atomic uint64_t lost[LJP_LOSS_COUNT];
  _Atomic uint64_t overruns;
  /* Shared. */
  _Alignas(64) _Atomic bool active;
  struct ljp_wake *wake;
  _Atomic uint32_t space; /* Counts the writer's releases while `waiting`. */
  _Atomic bool waiting;
  pid_t pid;
  /* Constant. */
  uint32_t id, thread;
  enum ljp_producer_kind kind;
  enum ljp_timer timer;
  int refused; /* Why it is no better timer, an errno. */
  size_t mapped_bytes;
  struct ljp_session *session;
  struct ljp_producer *next;            /* In the session's list. */
  uint64_t stack[LJP_STACK_MAX_FRAMES]; /* Last stack, root first. */
};

/* Pushes a memory event whose stack is the first keep frames of the last stack
** and n new frames on top, leaf first or root first; with keep LJP_KEEP_NUMBER the
** stack that has the number n. If full is given and there
** is no room, sets *full and counts no loss yet. */
LJP_SIGSAFE bool ljp_producer_put_mem(struct ljp_producer *p,
                                      const struct ljp_mem *m, unsigned keep,
                                      const uint64_t *frames, unsigned n,
                                      bool root_first, bool *full);

/* Gives a stack, root first, a number. False: there is no room; no loss is
** counted. */
LJP_SIGSAFE bool ljp_producer_put_stack(struct ljp_producer *p, unsigned number,
                                        const uint64_t *frames, unsigned n);

/* Puts labels into the ring. False: there is no room; no loss is counted. */
LJP_SIGSAFE bool ljp_producer_put_labels(struct ljp_producer *p,
                                         uint32_t labels);

/* The number of frames, counted from the root, that are the same as in the last
** stack. frames: leaf first. */
LJP_SIGSAFE unsigned ljp_producer_common(const struct ljp_producer *p,
                                         const uint64_t *frames, unsigned n);

/* Looks how full the ring is, wakes the writer if it is half full, and sets
** look_at. False: a brief event does not fit, here or at all. */
LJP_SIGSAFE bool ljp_producer_look(struct ljp_producer *p);

/* Bytes of the entry of a memory event with n new frames. */
static inline size_t ljp_mem_entry_bytes(const struct ljp_mem *m, unsigned n)
{
  size_t bytes = sizeof(struct ljp_mem_entry) + sizeof(uint64_t) * (size_t)n;
  if (m->op == LJP_MEM_REALLOC)
    bytes += sizeof(struct ljp_mem_entry_old);
  return m->weight ? bytes + sizeof(uint64_t) : bytes;
}

static inline size_t ljp_stack_entry_bytes(unsigned n)
{
  return sizeof(struct ljp_stack_entry) + sizeof(uint64_t) * (size_t)n;
}

#endif
