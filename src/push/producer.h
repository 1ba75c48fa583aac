/*
** Producer: one source of events of one thread, with a ring of its own. What a
** profiler calls to record something.
**
** One producer serves one context: a signal handler, *or* ordinary code of one
** thread, never both. A thread has as many producers as it has contexts. A push
** that interrupts another push into the same producer is refused and counted
** (NESTED), not mixed in.
**
** All ljp_push_* and ljp_count_* are LJP_SIGSAFE but ljp_push_mem_wait. They
** return true if the event is in the ring; false if not, and then a loss is
** counted (it reaches the file as a LOSS record). Stacks are arrays of frame
** words (format.h), leaf first. Times: CLOCK_MONOTONIC, ns.
**
** A stack goes into the ring as the difference to this producer's stack
** before: K frames kept, counted from the root, then the new ones. An event
** with the same stack as before costs no frame at all.
*/
#ifndef LJP_PRODUCER_H
#define LJP_PRODUCER_H

#include "src/base/format.h"
#include "src/push/ring.h"

struct ljp_producer;

struct ljp_sample {
  uint64_t time_ns;
  uint64_t weight; /* ns of CPU or wall time that the sample stands for. */
  uint32_t vm;     /* Id from ljp_session_add_vm, or 0. */
  uint8_t vmstate; /* enum ljp_vmstate. */
  uint8_t cut;     /* enum ljp_cut. */
};

struct ljp_mem {
  uint64_t time_ns;
  uint64_t address;
  uint64_t size;        /* Free: of what is freed. */
  uint64_t old_address; /* Realloc only. */
  uint64_t old_size;    /* Realloc only. */
  uint64_t weight;      /* Bytes that it stands for; 0 if all are recorded. */
  uint32_t vm;
  uint8_t op; /* enum ljp_mem_op. */
  uint8_t vmstate;
  uint8_t what; /* enum ljp_mem_type, with flags of enum ljp_mem_flag. */
};

LJP_SIGSAFE bool ljp_push_sample(struct ljp_producer *producer,
                                 const struct ljp_sample *sample,
                                 const uint64_t *frames, unsigned n);

/* Does not wait: a full ring is a loss. */
LJP_SIGSAFE bool ljp_push_mem(struct ljp_producer *producer,
                              const struct ljp_mem *mem, const uint64_t *frames,
                              unsigned n);

/* For a caller who compares stacks himself: the stack is the first keep frames
** (from the root) of this producer's last stack and, on top, n new frames, leaf
** first. keep more than *depth is misuse (BAD_RECORD). depth, if given, is set
** to what may be kept next time: 0 after a loss. */
LJP_SIGSAFE bool ljp_push_mem_keep(struct ljp_producer *producer,
                                   const struct ljp_mem *mem, unsigned keep,
                                   const uint64_t *frames, unsigned n,
                                   unsigned *depth);

/* The same, but waits for the writer while the ring is full (back-pressure);
** after two seconds without progress it gives up and counts a loss. Not for
** signal handlers, and not while holding a lock that describe() takes. */
bool ljp_push_mem_wait(struct ljp_producer *producer, const struct ljp_mem *mem,
                       unsigned keep, const uint64_t *frames, unsigned n,
                       unsigned *depth);

/* The same for a whole stack. */
bool ljp_push_mem_all_wait(struct ljp_producer *producer,
                           const struct ljp_mem *mem, const uint64_t *frames,
                           unsigned n);

/* With this producer's last stack. */
bool ljp_push_mem_same_wait(struct ljp_producer *producer,
                            const struct ljp_mem *mem);

/* The same for a whole stack, root first, of which the caller knows that the
** first `same` frames are those of this producer's last stack, if nothing else
** was pushed or lost since. */
bool ljp_push_mem_root_wait(struct ljp_producer *producer,
                            const struct ljp_mem *mem, const uint64_t *stack,
                            unsigned n, unsigned same);

/* The rarer events; see event.h for one function each. */
LJP_SIGSAFE bool ljp_push_event(struct ljp_producer *producer,
                                enum ljp_record tag, uint64_t time_ns,
                                const uint64_t *words, unsigned n,
                                const char *text, unsigned text_bytes);

/* The same for what comes often. */
LJP_SIGSAFE bool ljp_push_four_words(struct ljp_producer *producer,
                                     enum ljp_record tag, uint64_t time_ns,
                                     const uint64_t *words);

/* The same with a stack; frames NULL: without. */
LJP_SIGSAFE bool ljp_push_event_at(struct ljp_producer *producer,
                                   enum ljp_record tag, uint64_t time_ns,
                                   const uint64_t *words, unsigned n,
                                   const char *text, unsigned text_bytes,
                                   const uint64_t *frames, unsigned depth);

/* An event that never came to a push; timer expiries that were merged. */
LJP_SIGSAFE void ljp_count_loss(struct ljp_producer *producer,
                                enum ljp_loss reason, uint64_t count);
LJP_SIGSAFE void ljp_count_overrun(struct ljp_producer *producer,
                                   uint64_t count);

/* Frames of the last stack that ljp_push_mem_keep may keep. */
LJP_SIGSAFE unsigned ljp_producer_depth(const struct ljp_producer *producer);

/* False once the session has stopped or failed: nothing will be recorded. */
LJP_SIGSAFE bool ljp_producer_active(const struct ljp_producer *producer);
/* Where that stands, for those who ask at each event; as long as the producer. */
const _Atomic bool *ljp_producer_active_flag(const struct ljp_producer *p);

/* Asks the writer to come now (to drain, to look at the loader's list). */
LJP_SIGSAFE void ljp_producer_wake(struct ljp_producer *producer);

uint32_t ljp_producer_id(const struct ljp_producer *producer);

#define LJP_EVENT_MAX_WORDS 24u
#define LJP_EVENT_MAX_TEXT 4096u

#endif
