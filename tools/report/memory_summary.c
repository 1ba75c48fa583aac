/*
** Prints the summary of a report on memory: sums, LuaJIT's own count, bounds of
** estimates, and the growth between marks.
*/
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tools/report/report.h"

enum { MARKS_SHOWN = 20 };

bool ljp_report_grows(const struct ljp_value *value)
{
  return __builtin_popcountll(value->slices) >= LJP_PROFILE_GROWS;
}

static uint64_t memory_objects(uint64_t objects)
{
  return objects / LJP_OBJECT + (objects % LJP_OBJECT >= LJP_OBJECT / 2);
}

/* Three rounded estimates need not add up; the difference of two does. */
uint64_t ljp_report_freed(const struct ljp_profile_memory *m)
{
  if (m->alloc_objects == m->free_objects + m->live_objects)
    return memory_objects(m->alloc_objects) - memory_objects(m->live_objects);
  return memory_objects(m->free_objects);
}

/* Compares the growth of the heaps by LuaJIT's own count and by the events.
** False: they cannot be compared. */
static bool memory_heap_growth(const struct ljp_profile *p, int64_t *counted,
                               int64_t *seen)
{
  *counted = p->growth.counted;
  *seen = p->growth.events;
  return p->growth.comparable;
}

/* Prints "12 KiB to 34 KiB". */
static void memory_print_bytes(const struct ljp_report *r,
                               const struct ljp_estimate *e, uint64_t bytes)
{
  char low[24], high[24];
  struct ljp_bounds b =
      ljp_estimate_bytes(e, (double)bytes, (double)r->p->sample_bytes);
  ljp_bound_amount(r, b.low, low);
  ljp_bound_amount(r, ceil(b.high), high);
  ljp_print_format(r->out, "%s to %s", low, high);
}

static void memory_print_objects(const struct ljp_report *r,
                                 const struct ljp_estimate *e, uint64_t objects)
{
  struct ljp_bounds b = ljp_estimate_objects(e, (double)objects / LJP_OBJECT,
                                             (double)r->p->sample_bytes);
  ljp_print_format(r->out, "%.0f to %.0f", floor(b.low), ceil(b.high));
}

static void memory_print_estimates(const struct ljp_report *r)
{
  const struct ljp_profile *p = r->p;
  const struct ljp_profile_memory *m = &p->totals.memory;
  const struct ljp_profile_estimates *e = &p->totals.estimates;
  const struct ljp_value nothing = {0};
  struct ljp_print *out = r->out;
  char amount[24];
  ljp_print_format(out, "estimated from %" PRIu64 " samples", e->alloc.samples);
  if (p->asked_bytes && p->sample_bytes > p->asked_bytes) {
    ljp_bound_amount(r, (double)p->sample_bytes, amount);
    ljp_print_format(out, " (a limit made them rarer: one for %s at times)",
                     amount);
  }
  ljp_print_str(out, "; in 95 of 100 cases the truth is ");
  memory_print_bytes(r, &e->alloc, m->alloc_bytes);
  ljp_print_str(out, " in ");
  memory_print_objects(r, &e->alloc, m->alloc_objects);
  ljp_print_str(out, " objects allocated, ");
  memory_print_bytes(r, &e->live, m->live_bytes);
  ljp_print_str(out, " in ");
  memory_print_objects(r, &e->live, m->live_objects);
  ljp_print_str(out, " live, ");
  memory_print_bytes(r, &e->peak, m->peak_bytes);
  ljp_bound_amount(r, ceil(ljp_value_bytes(r, &nothing).high), amount);
  ljp_print_format(
      out, " at the peak; stacks without a sample have at most %s each\n",
      amount);
}

static void memory_print_marks(const struct ljp_report *r)
{
  const struct ljp_profile *p = r->p;
  const char *about = p->sampled_memory ? "~" : "";
  char amount[24];
  uint64_t before = 0;
  for (uint32_t i = 0; i < p->mark_count; i++) {
    const struct ljp_profile_mark *m = &p->marks[i];
    if (i < MARKS_SHOWN) {
      ljp_amount(r, m->live_bytes, amount);
      ljp_print_format(r->out,
                       "mark after %.3f s: %s in %s%" PRIu64
                       " objects live (%s%+" PRId64 " bytes): ",
                       (double)m->time_ns / 1e9, amount, about,
                       memory_objects(m->live_objects), about,
                       (int64_t)(m->live_bytes - before));
      ljp_print_quoted(r->out, ljp_profile_str(p, m->text));
      ljp_print_str(r->out, "\n");
    }
    before = m->live_bytes;
  }
  if (p->mark_count > MARKS_SHOWN)
    ljp_print_format(r->out, "... and %u more marks\n",
                     p->mark_count - MARKS_SHOWN);
}

void ljp_report_memory_head(const struct ljp_report *r)
{
  const struct ljp_profile *p = r->p;
  const struct ljp_profile_totals *t = &p->totals;
  const struct ljp_profile_memory *m = &t->memory;
  struct ljp_print *out = r->out;
  const char *about = p->sampled_memory ? "~" : "";
  int64_t counted, seen;
  ljp_print_format(
      out,
      "allocated %s%" PRIu64 " objects and %s%" PRIu64 " bytes (%s%" PRIu64
      " reallocations), freed %s%" PRIu64 " and %s%" PRIu64 ", live %s%" PRIu64
      " and %s%" PRIu64 "; peak %s%" PRIu64 " bytes",
      about, memory_objects(m->alloc_objects), about, m->alloc_bytes, about,
      memory_objects(m->moved_objects_in), about, ljp_report_freed(m), about,
      m->free_bytes, about, memory_objects(m->live_objects), about,
      m->live_bytes, about, t->peak_bytes);
  if (!p->recorded_by)
    ljp_print_format(out, " after %.3f s", (double)t->peak_ns / 1e9);
  ljp_print_str(out, "\n");
  if (t->held_objects)
    ljp_print_format(out,
                     "alive when the file began: ~%" PRIu64
                     " objects and ~%" PRIu64
                     " bytes; freed and live include them\n",
                     memory_objects(t->held_objects), t->held_bytes);
  if (t->before_frees || t->before_reallocs)
    ljp_print_format(out,
                     "blocks from before the %s: %" PRIu64 " freed and %" PRIu64
                     " reallocated, which released %" PRIu64 " bytes\n",
                     t->later ? "file" : "session", t->before_frees,
                     t->before_reallocs, t->before_free_bytes);
  if (memory_heap_growth(p, &counted, &seen))
    ljp_print_format(out,
                     "the heap grew by %" PRId64
                     " bytes by LuaJIT's own count, by %" PRId64
                     " by the events: difference %" PRId64 "\n",
                     counted, seen, counted - seen);
  if (p->sampled_memory)
    memory_print_estimates(r);
  if (!p->has_gc && (r->select.measure == LJP_MEASURE_CHURN ||
                     r->select.measure == LJP_MEASURE_LEAKS))
    ljp_print_str(out, "! the file has no GC cycles: no object is known to be "
                       "temporary, and every live object may be a leak\n");
  memory_print_marks(r);
}

static void memory_json_estimate(const struct ljp_report *r, const char *what,
                                 const struct ljp_estimate *e, uint64_t objects,
                                 uint64_t bytes)
{
  const struct ljp_value v = {
      .count = objects, .weight = bytes, .estimate = *e};
  ljp_json_bounds(r, what, "objects", (double)memory_objects(objects),
                  ljp_value_objects(r, &v));
  ljp_json_bounds(r, what, "bytes", (double)bytes, ljp_value_bytes(r, &v));
}

static void memory_json_estimates(const struct ljp_report *r)
{
  const struct ljp_profile *p = r->p;
  const struct ljp_profile_memory *m = &p->totals.memory;
  const struct ljp_profile_estimates *e = &p->totals.estimates;
  memory_json_estimate(r, "alloc", &e->alloc, m->alloc_objects, m->alloc_bytes);
  memory_json_estimate(r, "live", &e->live, m->live_objects, m->live_bytes);
  memory_json_estimate(r, "peak", &e->peak, m->peak_objects, m->peak_bytes);
  ljp_print_format(r->out, ",\"sample_bytes\":%" PRIu64, p->sample_bytes);
}

void ljp_report_memory_json(const struct ljp_report *r)
{
  const struct ljp_profile *p = r->p;
  struct ljp_print *out = r->out;
  int64_t counted, seen;
  if (memory_heap_growth(p, &counted, &seen))
    ljp_print_format(out,
                     ",\"heap_growth_bytes\":%" PRId64
                     ",\"heap_difference_bytes\":%" PRId64,
                     counted, counted - seen);
  if (p->sampled_memory)
    memory_json_estimates(r);
  ljp_print_str(out, ",\"marks\":[");
  for (uint32_t i = 0; i < p->mark_count; i++) {
    const struct ljp_profile_mark *m = &p->marks[i];
    ljp_print_format(out, "%s{\"ns\":%" PRIu64 ",\"text\":", i ? "," : "",
                     m->time_ns);
    ljp_print_json(out, ljp_profile_str(p, m->text));
    ljp_print_format(out,
                     ",\"value\":%" PRId64 ",\"live_objects\":%" PRIu64
                     ",\"live_bytes\":%" PRIu64,
                     m->value, memory_objects(m->live_objects), m->live_bytes);
    if (p->sampled_memory)
      memory_json_estimate(r, "live", &m->estimate, m->live_objects,
                           m->live_bytes);
    ljp_print_str(out, "}");
  }
  ljp_print_str(out, "]");
}
