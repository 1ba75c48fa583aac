/*
** The threads that a session samples; under the lock of the CPU profiler.
*/
#ifndef LJP_THREADS_H
#define LJP_THREADS_H

#include "profilers/cpu/sysprof.h"

/* For each sampler of a thread: FOR_EACH_SAMPLER(s) statement. */
#define LJP_FOR_EACH_SAMPLER(s)                                                \
  for (uint32_t i_ = 0; i_ < LJP_SAMPLERS && ljp_threads_at(i_); i_++)         \
    for (struct ljp_sampler *s = ljp_threads_at(i_);                           \
         s && s->used && !s->hangs; s = NULL)

/* The sampler with this index, or NULL if there are no more. */
static inline struct ljp_sampler *ljp_threads_at(uint32_t i)
{
  return atomic_load_explicit(&ljp_samplers[i], memory_order_acquire);
}

enum ljp_thread_age {
  LJP_THREAD_FIRST, /* it starts the session */
  LJP_THREAD_OLD,   /* it was there when the session began */
  LJP_THREAD_NEW
};

/* Begins to sample a thread. Returns an errno, or 0. */
int ljp_threads_add(pid_t tid, const char *name, enum ljp_thread_age age);
/* The same for this thread, unless it is sampled already or blocks the signal;
** at once, or in the writer's next round. */
void ljp_threads_ensure(pid_t tid);
/* Ends the sampling of all threads. why: the reason for the time since the last
** samples. stay: the session goes on without them. */
void ljp_threads_drop_all(enum ljp_unsampled why, bool stay);
/* Adds the threads that have begun (age: of those that are new here), and drops
** those that have ended. */
void ljp_threads_scan(enum ljp_thread_age age);
/* In a fork's child. was: the id that its only thread had in the parent. */
void ljp_threads_after_fork(pid_t was, bool recording);

/* CPU time that the sampled threads have used since their sampling began. */
uint64_t ljp_threads_cpu_ns(void);
/* status.c: adds counts of a thread; those of all samplers in use. */
void ljp_report_add(struct ljp_sysprof_report *to,
                    struct ljp_sampler_counts *from);
void ljp_threads_add_counts(struct ljp_sysprof_report *out);

/* thread_notes.c: of the first thread that could not have the session's timer (its
** producer tells of each); of a thread whose handler did not return. */
void ljp_threads_note_refusal(const struct ljp_sampler *s);
void ljp_threads_note_hanging(const struct ljp_sampler *s);

/* silence.c: why the thread has got no signal, with cpu_ns of CPU time, though it
** worked for some periods since the last look: it may block the signal now, or
** the host has closed its event. 0: it gets signals. */
enum ljp_unsampled ljp_threads_silence(struct ljp_sampler *s, uint64_t cpu_ns);

/* throttle.c: sets each thread's interval according to the share of its time
** that the handler takes. */
void ljp_throttle_update(void);

#endif
