/*
** The table of traces: an entry for each piece of compiled code, by id. Entries
** whose code is gone wait in a queue while a session holds traces, so that its
** writer can describe them.
**
** ljp_guest_trace() runs on a writer thread, the hooks run on VM threads.
** Everything here is under the lock of traces.
*/
#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "src/luajit/functions/prototypes.h"
#include "src/luajit/traces/trace.h"
#include "src/luajit/vm/lock.h"

static uint64_t table_last_id;
static struct ljp_trace **table_by_id;
static uint32_t table_slots, table_count;
static struct ljp_trace *table_waiting_first, *table_waiting_last;
static uint32_t table_waiting_count, table_holds;
static struct ljp_guest_jit_counts table_counts;

/* -- Entries by id; under the lock ----------------------------------------- */

static void table_grow(void)
{
  uint32_t slots = table_slots ? table_slots * 2 : 256;
  struct ljp_trace **fresh = calloc(slots, sizeof *fresh);
  if (!fresh)
    return; /* the only harm is longer chains */
  for (uint32_t i = 0; i < table_slots; i++) {
    for (struct ljp_trace *t = table_by_id[i], *next; t; t = next) {
      next = t->next_by_id;
      t->next_by_id = fresh[t->id & (slots - 1)];
      fresh[t->id & (slots - 1)] = t;
    }
  }
  free(table_by_id);
  table_by_id = fresh;
  table_slots = slots;
}

static inline void table_enter(struct ljp_trace *trace)
{
  trace->id = ++table_last_id;
  struct ljp_trace **slot = &table_by_id[trace->id & (table_slots - 1)];
  trace->next_by_id = *slot;
  *slot = trace;
  table_count++;
  table_counts.made++;
  table_counts.alive++;
  table_counts.marks += trace->markers_count;
  table_counts.marks_cut += trace->markers_cut;
  table_counts.truncated += trace->truncated;
}

__attribute__((noinline)) static bool
table_grow_and_enter(struct ljp_trace *trace)
{
  table_grow();
  if (!table_slots)
    return false;
  table_enter(trace);
  return true;
}

bool ljp_traces_enter(struct ljp_trace *trace)
{
  if (LJP_UNLIKELY(table_count >= table_slots))
    return table_grow_and_enter(trace);
  table_enter(trace);
  return true;
}

static void table_forget(struct ljp_trace *trace)
{
  struct ljp_trace **at = &table_by_id[trace->id & (table_slots - 1)];
  while (*at != trace)
    at = &(*at)->next_by_id;
  *at = trace->next_by_id;
  table_count--;
  ljp_trace_free(trace);
}

/* Moves an entry to memory without room for markers. */
static struct ljp_trace *table_without_markers(struct ljp_trace *trace)
{
  bool marked = trace->markers;
  trace->markers = NULL;
  struct ljp_trace *small = marked ? ljp_trace_new(0) : NULL;
  if (!small)
    return trace;
  uint32_t pool_bytes = small->pool_bytes;
  struct ljp_trace **at = &table_by_id[trace->id & (table_slots - 1)];
  while (*at != trace)
    at = &(*at)->next_by_id;
  *small = *trace;
  small->pool_bytes = pool_bytes;
  *at = small;
  ljp_trace_free(trace);
  return small;
}

static void table_forget_waiting(void)
{
  struct ljp_trace *trace = table_waiting_first;
  table_waiting_first = trace->next_waiting;
  if (!table_waiting_first)
    table_waiting_last = NULL;
  table_waiting_count--;
  table_forget(trace);
}

void ljp_traces_retire(struct ljp_trace *trace)
{
  ljp_markers_free(trace->markers);
  ljp_assert(trace->object && table_counts.alive > 0);
  trace->object = NULL;
  trace->newest = ljp_protos_newest();
  table_counts.alive--;
  if (!table_holds) {
    table_forget(trace);
    return;
  }
  trace = table_without_markers(trace);
  trace->next_waiting = NULL;
  if (table_waiting_last)
    table_waiting_last->next_waiting = trace;
  else
    table_waiting_first = trace;
  table_waiting_last = trace;
  /* A writer asks about a trace when it reads that the trace was made, so it
  ** has asked about the oldest one long ago. */
  if (++table_waiting_count > LJP_TRACES_WAITING)
    table_forget_waiting();
}

void ljp_traces_count_cut(uint32_t markers)
{
  table_counts.marks_cut += markers;
}

void ljp_guest_traces_hold(bool *held)
{
  ljp_lock(LJP_LOCK_TRACES);
  table_holds += !*held;
  *held = true;
  ljp_unlock(LJP_LOCK_TRACES);
}

void ljp_guest_traces_release(bool *held)
{
  ljp_lock(LJP_LOCK_TRACES);
  ljp_assert(!*held || table_holds > 0);
  if (*held && --table_holds == 0)
    while (table_waiting_first)
      table_forget_waiting();
  *held = false;
  ljp_unlock(LJP_LOCK_TRACES);
}

static const char *const table_link_names[] = {
    "none",           "root",        "loop",   "tail recursion", "up recursion",
    "down recursion", "interpreter", "return", "stitch"};

bool ljp_traces_with(uint64_t id,
                     void (*use)(const struct ljp_trace *trace, void *ctx),
                     void *ctx)
{
  ljp_lock(LJP_LOCK_TRACES);
  const struct ljp_trace *t =
      table_slots ? table_by_id[id & (table_slots - 1)] : NULL;
  while (t && t->id != id)
    t = t->next_by_id;
  if (t)
    use(t, ctx);
  ljp_unlock(LJP_LOCK_TRACES);
  return t != NULL;
}

static void table_describe(const struct ljp_trace *t, void *ctx)
{
  *(struct ljp_guest_trace *)ctx = (struct ljp_guest_trace){
      .id = t->id,
      .vm = t->vm,
      .number = t->number,
      .parent = t->parent,
      .parent_exit = t->parent_exit,
      .root = t->root,
      .link = t->link,
      .link_type =
          t->link_type < sizeof table_link_names / sizeof *table_link_names
              ? table_link_names[t->link_type]
              : "?",
      .place_ref = t->place_ref,
      .place_line = t->place_line,
      .newest = t->object ? ljp_protos_newest() : t->newest,
      .code = t->code,
      .code_bytes = t->code_bytes,
      .ir_count = t->ir_count,
      .snapshots = t->snapshots,
      .marks = t->markers_count,
      .marks_cut = t->markers_cut,
      .truncated = t->truncated};
}

bool ljp_guest_trace(uint64_t id, struct ljp_guest_trace *out)
{
  if (!ljp_traces_with(id, table_describe, out))
    return false;
  /* The collector may free the prototype where garbage code began before the
  ** code itself. Then the reference may stand for another prototype. */
  if (!ljp_protos_stand(out->place_ref, out->newest))
    out->place_ref = out->place_line = 0;
  return true;
}

void ljp_guest_jit_counts(struct ljp_guest_jit_counts *out)
{
  ljp_lock(LJP_LOCK_TRACES);
  *out = table_counts;
  out->marks_bytes = ljp_markers_bytes();
  out->record_bytes = (uint64_t)table_count * sizeof(struct ljp_trace);
  ljp_unlock(LJP_LOCK_TRACES);
}

void ljp_guest_traces_each(void (*visit)(void *ctx, uint64_t id), void *ctx)
{
  ljp_lock(LJP_LOCK_TRACES);
  for (uint32_t i = 0; i < table_slots; i++)
    for (const struct ljp_trace *t = table_by_id[i]; t; t = t->next_by_id)
      if (t->object)
        visit(ctx, t->id);
  ljp_unlock(LJP_LOCK_TRACES);
}
