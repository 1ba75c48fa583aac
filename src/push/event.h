/*
** The rarer events, one function each, over ljp_push_event. LJP_SIGSAFE like
** it. Text is cut to 4,096 bytes.
*/
#ifndef LJP_EVENT_H
#define LJP_EVENT_H

#include <string.h>

#include "src/push/producer.h"

static inline bool ljp_push_gc(struct ljp_producer *p, uint64_t time_ns,
                               uint32_t vm, enum ljp_gc_phase phase,
                               uint64_t heap_bytes, uint64_t cycle)
{
  const uint64_t words[] = {vm, phase, heap_bytes, cycle};
  return ljp_push_four_words(p, LJP_REC_GC, time_ns, words);
}

struct ljp_trace_event {
  uint64_t time_ns;
  uint32_t vm;
  enum ljp_trace_what what;
  uint64_t trace; /* Id, 0: none yet. STOP, EXISTS: the writer asks about it. */
  uint64_t parent; /* Id of the trace whose exit it is compiled for, or 0. */
  uint32_t parent_exit;
  uint32_t reason; /* Of an abort. */
  uint64_t place;  /* Frame word of kind LUA (prototype and line) or 0. */
  const char *text;
  const uint64_t *frames; /* Leaf first; NULL: no stack. */
  unsigned depth;
};

static inline bool ljp_push_trace(struct ljp_producer *p,
                                  const struct ljp_trace_event *e)
{
  const uint64_t words[] = {e->vm,     e->what,   e->trace,      e->place,
                            e->reason, e->parent, e->parent_exit};
  const char *text = e->text ? e->text : "";
  return ljp_push_event_at(p, LJP_REC_TRACE_EVENT, e->time_ns, words, 7, text,
                           (unsigned)strlen(text), e->frames, e->depth);
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
