/*
** Producer: one source of events of one thread, with a ring of its own. A
** profiler calls it to record something.
**
** One producer serves one context: a signal handler, *or* ordinary code of one
** thread, never both. A thread has as many producers as it has contexts. A push
** that interrupts another push into the same producer is refused and counted
** (NESTED), not mixed in.
**
** All ljp_push_* and ljp_count_* are LJP_SIGSAFE, except those that wait
** (ljp_push_mem_..._wait). A push returns true if the event is in the ring.
** Otherwise it has counted a loss, which reaches the file as a LOSS record.
** Stacks are arrays of frame words (format.h), leaf first. Times are
** CLOCK_MONOTONIC in nanoseconds.
**
** A stack goes into the ring as the difference to this producer's stack before
** (entry.h). An event with the same stack as before costs no frame at all.
*/
#ifndef LJP_PRODUCER_H
#define LJP_PRODUCER_H

#include "src/base/format.h"
#include "src/push/entry.h"

struct ljp_producer;

struct ljp_sample {
  uint64_t time_ns;
  uint64_t weight; /* ns of CPU or wall time that the sample stands for. */
  uint32_t vm;     /* Id from ljp_session_add_vm, or 0. */
  uint32_t labels; /* What describe.labels() knows it by, or 0. */
  uint8_t vmstate; /* enum ljp_vmstate. */
  uint8_t cut;     /* enum ljp_cut. */
};

struct ljp_mem {
  uint64_t time_ns;
  uint64_t address;
  uint64_t size;        /* Free: of the block that is freed. */
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

/* For a caller that compares stacks itself: the stack is the first keep frames
** (from the root) of this producer's last stack and, on top, n new frames, leaf
** first. keep greater than *depth is misuse (BAD_RECORD). depth, if given, is
** set to the number of frames that may be kept next time: 0 after a loss. */
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

/* Waits as well; with a whole stack. */
bool ljp_push_mem_all_wait(struct ljp_producer *producer,
                           const struct ljp_mem *mem, const uint64_t *frames,
                           unsigned n);

/* Waits as well; with the stack that has this number. */
bool ljp_push_mem_number_wait(struct ljp_producer *producer,
                              const struct ljp_mem *mem, unsigned number);

/* Gives a stack of at most LJP_NUMBERED_FRAMES frames, root first, a number from
** 1 to LJP_NUMBERED_STACKS - 1. Waits as well; false: the number means what it
** meant before. In a child of fork() no number means anything. */
bool ljp_push_stack_wait(struct ljp_producer *producer, unsigned number,
                         const uint64_t *frames, unsigned n);

/* From now on memory events have these labels. Waits as well; false: there is no
** room, and they have those that they had. */
bool ljp_push_labels_wait(struct ljp_producer *producer, uint32_t labels);

/* Waits as well; with this producer's last stack. */
bool ljp_push_mem_same_wait(struct ljp_producer *producer,
                            const struct ljp_mem *mem);

/* Waits as well; with a whole stack, root first. The caller knows that its
** first `same` frames are those of this producer's last stack, unless something
** else was pushed or lost since. */
bool ljp_push_mem_root_wait(struct ljp_producer *producer,
                            const struct ljp_mem *mem, const uint64_t *stack,
                            unsigned n, unsigned same);

/* The less frequent events; event.h has one function for each. fields: the
** struct of the event's tag (entry.h), or its first field_bytes. */
LJP_SIGSAFE bool ljp_push_event(struct ljp_producer *producer,
                                enum ljp_record tag, uint64_t time_ns,
                                const void *fields, size_t field_bytes,
                                const char *text, unsigned text_bytes);

/* The same with a stack; frames NULL: without. */
LJP_SIGSAFE bool ljp_push_event_with_stack(
    struct ljp_producer *producer, enum ljp_record tag, uint64_t time_ns,
    const void *fields, size_t field_bytes, const char *text,
    unsigned text_bytes, const uint64_t *frames, unsigned depth);

/* The same for GC, which is frequent. */
LJP_SIGSAFE bool ljp_push_gc_fields(struct ljp_producer *producer,
                                    uint64_t time_ns,
                                    const struct ljp_gc_fields *fields);

/* Counts events that were lost before a push; timer expiries that were merged.
** */
LJP_SIGSAFE void ljp_count_loss(struct ljp_producer *producer,
                                enum ljp_loss reason, uint64_t count);
LJP_SIGSAFE void ljp_count_overrun(struct ljp_producer *producer,
                                   uint64_t count);

/* The same, but waits as ljp_push_mem_wait() does. */
bool ljp_push_gc_fields_wait(struct ljp_producer *producer, uint64_t time_ns,
                             const struct ljp_gc_fields *fields);
/* The same for the moment of a heap snapshot. */
bool ljp_push_moment_wait(struct ljp_producer *producer, uint64_t time_ns,
                          const struct ljp_moment_fields *fields);

/* The producer goes over to another VM, which another thread may run: the next
** memory event says its time and its VM. */
void ljp_producer_pass_on(struct ljp_producer *producer);
/* The pushes that wait do not until there is room again. */
void ljp_producer_give_up(struct ljp_producer *producer);

/* The number of frames of the last stack that ljp_push_mem_keep may keep. */
LJP_SIGSAFE unsigned ljp_producer_depth(const struct ljp_producer *producer);

/* False once the session has stopped or failed: nothing will be recorded. */
LJP_SIGSAFE bool ljp_producer_active(const struct ljp_producer *producer);
/* The flag behind it, for callers that check it at each event; valid as long as
** the producer. */
const _Atomic bool *ljp_producer_active_flag(const struct ljp_producer *p);

/* A half-full ring does not wake the writer: the ring has room for all that will
** be pushed. Before the first push; not for brief events. */
void ljp_producer_let_fill(struct ljp_producer *producer);

/* Asks the writer to come now (to drain, to look at the loader's list). */
LJP_SIGSAFE void ljp_producer_wake(struct ljp_producer *producer);
/* Asks the writer to look (ljp_session_on_look()) now instead of later. */
LJP_SIGSAFE void ljp_producer_ask_look(struct ljp_producer *producer);

uint32_t ljp_producer_id(const struct ljp_producer *producer);

enum { LJP_EVENT_MAX_WORDS = 24 };
#define LJP_EVENT_MAX_TEXT 4096u

#endif
