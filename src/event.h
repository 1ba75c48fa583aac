/*
** The rarer events, one function each, over ljp_push_event. LJP_SIGSAFE like
** it. Text is cut to 4,096 bytes.
*/
#ifndef LJP_EVENT_H
#define LJP_EVENT_H

#include <string.h>

#include "src/producer.h"

static inline bool ljp_push_gc(struct ljp_producer *p, uint64_t time_ns,
                               uint32_t vm, enum ljp_gc_phase phase,
                               uint64_t heap_bytes, uint64_t cycle)
{
  const uint64_t words[] = {vm, phase, heap_bytes, cycle};
  return ljp_push_event(p, LJP_REC_GC, time_ns, words, 4, "", 0);
}

/* place: frame word of kind LUA (prototype and line) or 0. trace: the trace's
** id or 0; with TRACE_STOP the writer asks describe() about it. */
static inline bool ljp_push_trace(struct ljp_producer *p, uint64_t time_ns,
                                  uint32_t vm, enum ljp_trace_what what,
                                  uint64_t trace, uint64_t place,
                                  uint32_t reason, const char *text)
{
  const uint64_t words[] = {vm, what, trace, place, reason};
  return ljp_push_event(p, LJP_REC_TRACE_EVENT, time_ns, words, 5, text,
                        (unsigned)strlen(text));
}

/* counters[i]: of state i (enum ljp_vmstate); at most 16 of them. */
static inline bool ljp_push_vmstate(struct ljp_producer *p, uint64_t time_ns,
                                    uint32_t vm, const uint64_t *counters,
                                    unsigned n)
{
  uint64_t words[17] = {vm};
  if (n > 16)
    n = 16;
  for (unsigned i = 0; i < n; i++)
    words[i + 1] = counters[i];
  return ljp_push_event(p, LJP_REC_VMSTATE, time_ns, words, n + 1, "", 0);
}

static inline bool ljp_push_mark(struct ljp_producer *p, uint64_t time_ns,
                                 uint32_t thread, uint32_t vm, int64_t value,
                                 const char *text, size_t text_bytes)
{
  const uint64_t words[] = {thread, vm, (uint64_t)value};
  return ljp_push_event(p, LJP_REC_MARK, time_ns, words, 3, text,
                        text_bytes > LJP_EVENT_MAX_TEXT ? LJP_EVENT_MAX_TEXT
                                                        : (unsigned)text_bytes);
}

static inline bool ljp_push_interval(struct ljp_producer *p, uint64_t time_ns,
                                     uint64_t interval_ns,
                                     enum ljp_interval_why why)
{
  const uint64_t words[] = {interval_ns, why};
  return ljp_push_event(p, LJP_REC_INTERVAL, time_ns, words, 2, "", 0);
}

static inline bool ljp_push_note(struct ljp_producer *p, uint64_t time_ns,
                                 enum ljp_note severity, const char *text)
{
  const uint64_t words[] = {severity};
  return ljp_push_event(p, LJP_REC_NOTE, time_ns, words, 1, text,
                        (unsigned)strlen(text));
}

#endif
