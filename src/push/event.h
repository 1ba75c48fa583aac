/*
** The less frequent events: one function for each, over ljp_push_event().
** LJP_SIGSAFE like it. Text is cut to LJP_EVENT_MAX_TEXT bytes.
*/
#ifndef LJP_EVENT_H
#define LJP_EVENT_H

#include <string.h>

#include "src/push/entry.h"
#include "src/push/producer.h"

static inline bool ljp_push_gc(struct ljp_producer *p, uint64_t time_ns,
                               uint32_t vm, enum ljp_gc_phase phase,
                               uint64_t heap_bytes, uint64_t cycle)
{
  const struct ljp_gc_fields fields = {
      .vm = vm, .phase = phase, .heap_bytes = heap_bytes, .cycle = cycle};
  return ljp_push_gc_fields(p, time_ns, &fields);
}

static inline bool ljp_push_gc_wait(struct ljp_producer *p, uint64_t time_ns,
                                    uint32_t vm, enum ljp_gc_phase phase,
                                    uint64_t heap_bytes, uint64_t cycle)
{
  const struct ljp_gc_fields fields = {
      .vm = vm, .phase = phase, .heap_bytes = heap_bytes, .cycle = cycle};
  return ljp_push_gc_fields_wait(p, time_ns, &fields);
}

struct ljp_trace_event {
  uint64_t time_ns;
  uint32_t vm;
  enum ljp_trace_what what;
  uint64_t trace;  /* Id; 0: none yet. For STOP and EXISTS the writer asks
                   ** describe() about it. */
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
  const struct ljp_trace_fields fields = {.vm = e->vm,
                                          .what = e->what,
                                          .trace = e->trace,
                                          .place = e->place,
                                          .reason = e->reason,
                                          .parent = e->parent,
                                          .parent_exit = e->parent_exit};
  const char *text = e->text ? e->text : "";
  return ljp_push_event_with_stack(p, LJP_REC_TRACE_EVENT, e->time_ns, &fields,
                                   sizeof fields, text, (unsigned)strlen(text),
                                   e->frames, e->depth);
}

/* counters[i]: of state i (enum ljp_vmstate). Counters beyond
** LJP_VMSTATE_MAX_COUNTERS are left out. */
static inline bool ljp_push_vmstate(struct ljp_producer *p, uint64_t time_ns,
                                    uint32_t vm, const uint64_t *counters,
                                    unsigned n)
{
  struct ljp_vmstate_fields fields = {.vm = vm};
  if (n > LJP_VMSTATE_MAX_COUNTERS)
    n = LJP_VMSTATE_MAX_COUNTERS;
  for (unsigned i = 0; i < n; i++)
    fields.counters[i] = counters[i];
  return ljp_push_event(p, LJP_REC_VMSTATE, time_ns, &fields,
                        offsetof(struct ljp_vmstate_fields, counters) +
                            n * sizeof *counters,
                        "", 0);
}

static inline bool ljp_push_mark(struct ljp_producer *p, uint64_t time_ns,
                                 uint32_t thread, uint32_t vm, int64_t value,
                                 const char *text, size_t text_bytes)
{
  const struct ljp_mark_fields fields = {
      .thread = thread, .vm = vm, .value = value};
  return ljp_push_event(p, LJP_REC_MARK, time_ns, &fields, sizeof fields, text,
                        text_bytes > LJP_EVENT_MAX_TEXT ? LJP_EVENT_MAX_TEXT
                                                        : (unsigned)text_bytes);
}

static inline bool ljp_push_interval(struct ljp_producer *p, uint64_t time_ns,
                                     uint64_t interval,
                                     enum ljp_interval_why why)
{
  const struct ljp_interval_fields fields = {.interval = interval, .why = why};
  return ljp_push_event(p, LJP_REC_INTERVAL, time_ns, &fields, sizeof fields,
                        "", 0);
}

static inline bool ljp_push_note(struct ljp_producer *p, uint64_t time_ns,
                                 enum ljp_note severity, const char *text)
{
  const struct ljp_note_fields fields = {.severity = severity};
  return ljp_push_event(p, LJP_REC_NOTE, time_ns, &fields, sizeof fields, text,
                        (unsigned)strlen(text));
}

#endif
