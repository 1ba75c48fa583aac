/*
** Prints what precedes the rows of a report: what was measured, and what is
** missing.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/labels.h"
#include "parsers/stream/names.h"
#include "tools/report/report.h"
#include "tools/shared/gc_phases.h"
#include "tools/shared/units.h"

#define BOLD "\033[1m"
#define RED "\033[31m"
#define PLAIN "\033[0m"

static void summary_json_key(struct ljp_print *out, const char *key,
                             uint64_t value)
{
  ljp_print_format(out, ",\"%s\":%" PRIu64, key, value);
}

/* Sums of the selected rows. */
struct sums {
  uint64_t samples, ns;
  struct ljp_profile_memory memory;
  bool any_memory;
};

static struct sums summary_sum_up(const struct ljp_report *r)
{
  const struct ljp_profile *p = r->p;
  struct sums s = {0};
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    const struct ljp_profile_memory *m = &p->memory[row->memory];
    unsigned kind = p->contexts[row->context].kind;
    if (!r->select.in[i])
      continue;
    if (kind == LJP_PRODUCER_CPU) {
      s.samples += row->count;
      s.ns += row->weight;
    }
    if (!row->memory)
      continue;
    s.any_memory = true;
    s.memory.alloc_objects += m->alloc_objects;
    s.memory.alloc_bytes += m->alloc_bytes;
    s.memory.free_events += m->free_events;
    s.memory.free_objects += m->free_objects;
    s.memory.free_bytes += m->free_bytes;
    s.memory.moved_objects_in += m->moved_objects_in;
    s.memory.live_objects += m->live_objects;
    s.memory.live_bytes += m->live_bytes;
  }
  return s;
}

/* The balance of CPU time. */
static void summary_json_times(const struct ljp_report *r)
{
  const struct ljp_balance *b = &r->p->balance;
  uint64_t own = b->unsampled_ns[LJP_UNSAMPLED_WRITER], all = 0;
  for (unsigned why = 0; why < LJP_UNSAMPLED_COUNT; why++)
    all += why == LJP_UNSAMPLED_WRITER ? 0 : b->unsampled_ns[why];
  if (b->told)
    summary_json_key(r->out, "used_ns", ljp_balance_used(b));
  if (b->told || all)
    summary_json_key(r->out, "unsampled_ns", all);
  if (b->told || own)
    summary_json_key(r->out, "recorder_ns", own);
}

/* Time of one thread that was not sampled, for one reason. */
static void summary_json_gap(const struct ljp_report *r, uint32_t i)
{
  const struct ljp_balance_gap *gap = &r->p->balance.gaps[i];
  const char *why = ljp_name_unsampled(gap->why);
  struct ljp_print *out = r->out;
  ljp_print_format(out, "%s{\"thread\":%" PRIu64 ",\"tid\":%" PRIu64,
                   i ? "," : "", gap->thread, gap->tid);
  ljp_print_str(out, ",\"name\":");
  ljp_print_json(out, ljp_str(gap->name, gap->name_bytes));
  ljp_print_format(out, ",\"time\":\"%s\",\"reason\":",
                   gap->kind == LJP_PRODUCER_CPU ? "cpu" : "wall");
  why = why ? why : "unknown";
  ljp_print_json(out, ljp_str(why, strlen(why)));
  summary_json_key(out, "ns", gap->ns);
  ljp_print_str(out, "}");
}

/* The keys of labels that the file has. */
static void summary_labels(const struct ljp_report *r)
{
  struct ljp_print *out = r->out;
  struct ljp_labels_keys keys;
  if (!r->p->label_pair_count || !ljp_labels_keys(r->p, &keys))
    return;
  ljp_print_str(out, r->json ? ",\"labels\":[" : "labels: ");
  for (uint32_t i = 0; i < keys.count; i++) {
    const struct ljp_labels_key *key = &keys.list[i];
    const struct ljp_str name = ljp_profile_str(r->p, key->key);
    if (r->json) {
      ljp_print_str(out, i ? ",{\"key\":" : "{\"key\":");
      ljp_print_json(out, name);
      ljp_print_format(out, ",\"values\":%" PRIu32 "}", key->values);
    } else {
      ljp_print_str(out, i ? ", " : "");
      ljp_print_safe(out, name);
      ljp_print_format(out, " (%" PRIu32 " value%s)", key->values,
                       key->values == 1 ? "" : "s");
    }
  }
  ljp_print_str(out, r->json ? "]" : " (--by label:KEY, --label KEY=VALUE)\n");
  free(keys.list);
}

void ljp_report_json_head(const struct ljp_report *r, const char *by)
{
  const struct ljp_profile *p = r->p;
  const struct ljp_profile_totals *t = &p->totals;
  struct sums s = summary_sum_up(r);
  struct ljp_print *out = r->out;
  ljp_print_format(out, "{\"totals\":{\"samples\":%" PRIu64, s.samples);
  if (!p->recorded_by)
    summary_json_key(out, "cpu_ns", s.ns);
  if (t->wall_samples) {
    summary_json_key(out, "wall_samples", t->wall_samples);
    summary_json_key(out, "wall_ns", t->wall_ns);
  }
  if (p->has_memory) {
    const struct ljp_profile_memory *m = &s.memory;
    uint64_t half = LJP_OBJECT / 2;
    summary_json_key(out, "alloc_events",
                     (m->alloc_objects + half) / LJP_OBJECT);
    summary_json_key(out, "alloc_bytes", m->alloc_bytes);
    summary_json_key(out, "free_events", ljp_report_freed(m));
    summary_json_key(out, "free_bytes", m->free_bytes);
    summary_json_key(out, "realloc_events",
                     (m->moved_objects_in + half) / LJP_OBJECT);
    summary_json_key(out, "live_objects",
                     (m->live_objects + half) / LJP_OBJECT);
    summary_json_key(out, "live_bytes", m->live_bytes);
    if (t->later) {
      summary_json_key(out, "before_live_objects",
                       (t->held_objects + half) / LJP_OBJECT);
      summary_json_key(out, "before_live_bytes", t->held_bytes);
    }
    summary_json_key(out, "before_free_events", t->before_frees);
    summary_json_key(out, "before_realloc_events", t->before_reallocs);
    summary_json_key(out, "before_free_bytes", t->before_free_bytes);
    summary_json_key(out, "failed_alloc_events", t->failed_allocs);
    summary_json_key(out, "peak_bytes", t->peak_bytes);
    if (!p->recorded_by)
      summary_json_key(out, "peak_ns", t->peak_ns);
    ljp_report_memory_json(r);
  }
  if (r->select.measure == LJP_MEASURE_GC_COST) {
    summary_json_key(out, "gc_samples", p->gc_cost.samples);
    summary_json_key(out, "gc_mark_ns", p->gc_cost.mark_ns);
    summary_json_key(out, "gc_sweep_ns", p->gc_cost.sweep_ns);
    summary_json_key(out, "gc_unknown_ns", p->gc_cost.unplaced_ns);
    summary_json_key(out, "gc_before_ns", p->gc_cost.before_ns);
  }
  summary_json_times(r);
  summary_json_key(out, "lost", t->lost_all + t->swallowed);
  summary_json_key(out, "lost_in_gaps", t->swallowed);
  summary_json_key(out, "filtered", t->filtered);
  ljp_print_format(out, "},\"report\":\"%s\",\"by\":",
                   ljp_measure_option(r->select.measure));
  ljp_print_json(out, ljp_str(by, strlen(by)));
  ljp_print_format(out, ",\"view\":\"%s\"",
                   p->options.lua_view ? "lua" : "native");
  ljp_print_format(out, ",\"sampled_memory\":%s",
                   p->sampled_memory ? "true" : "false");
  ljp_print_format(out, ",\"recording\":%s", t->recording ? "true" : "false");
  if (p->recorded_by)
    ljp_print_format(out, ",\"recorded_by\":\"%s\"", p->recorded_by);
  else
    summary_json_key(out, "duration_ns", p->end_ns);
  ljp_print_str(out, ",\"notices\":[");
  const char *text;
  for (uint32_t i = 0; (text = ljp_profile_notice(p, i)); i++) {
    ljp_print_str(out, i ? "," : "");
    ljp_print_json(out, ljp_str(text, strlen(text)));
  }
  ljp_print_str(out, "],\"unsampled\":[");
  for (uint32_t i = 0; i < p->balance.gap_count; i++)
    summary_json_gap(r, i);
  ljp_print_str(out, "]");
  summary_labels(r);
}

void ljp_report_json_begin(const struct ljp_report *r)
{
  ljp_report_json_head(r, r->by_text ? r->by_text : ljp_by_text(r->by));
  ljp_report_json_places(r);
  ljp_print_str(r->out, ",\"rows\":[");
}

void ljp_report_json_end(const struct ljp_report *r)
{
  ljp_print_str(r->out, "]}\n");
}

/* The time of the collector. */
static uint64_t summary_gc_time(const struct ljp_profile *p)
{
  return p->gc_cost.mark_ns + p->gc_cost.sweep_ns + p->gc_cost.unplaced_ns;
}

/* Prints what was measured. */
static void summary_print_measured(const struct ljp_report *r)
{
  const struct ljp_profile *p = r->p;
  const struct ljp_value *all = &r->select.total;
  struct ljp_print *out = r->out;
  char amount[24];
  ljp_amount(r, all->weight, amount);
  const char *measured = amount;
  /* Only the parts are estimated: the whole is the sum of the samples. */
  if (r->select.measure == LJP_MEASURE_GC_COST &&
      all->weight == summary_gc_time(p) && *amount == '~')
    measured++;
  ljp_print_format(out, "%s: ", ljp_measure_text(r->select.measure));
  if (!ljp_is_untimed(r))
    ljp_print_format(out, ljp_has_counts(r) ? "%s in " : "%s", measured);
  ljp_count_amount(r, all->count, amount);
  if (ljp_has_counts(r) || ljp_is_untimed(r))
    ljp_print_format(out, "%s %s%s", amount,
                     ljp_measure_is_memory(r->select.measure) ? "object"
                                                              : "sample",
                     ljp_count_of(r, all->count) == 1 ? "" : "s");
  if (p->recorded_by) {
    ljp_print_format(out, ", recorded by %s\n", p->recorded_by);
    return;
  }
  ljp_print_format(out, ", over %.3f s of ", (double)p->end_ns / 1e9);
  struct ljp_str name = ljp_profile_str(p, p->executable);
  const char *slash = name.len ? memrchr(name.data, '/', name.len) : NULL;
  if (slash)
    name = ljp_str(slash + 1, (size_t)(name.data + name.len - slash - 1));
  if (name.len)
    ljp_print_safe(out, name);
  else
    ljp_print_str(out, "an unknown program");
  if (p->source_count > 1)
    ljp_print_format(out, " (%u sessions)", p->source_count);
  else
    ljp_print_format(out, " (pid %" PRIu64 ")", p->pid);
  uint64_t missing = ljp_balance_missing(&p->balance);
  if (r->select.measure == LJP_MEASURE_CPU && missing) {
    ljp_print_str(out, "; ");
    ljp_units_time(out, missing);
    ljp_print_str(out, " more not sampled");
  }
  if (p->totals.filtered)
    ljp_print_format(out, "; filters excluded %" PRIu64 " events",
                     p->totals.filtered);
  ljp_print_str(out, "\n");
}

/* CPU time for freeing VMs that were closed: the collector's work while no VM
** runs. The Lua view tells it, if there are symbols. */
static uint64_t summary_closing_ns(const struct ljp_profile *p)
{
  uint64_t ns = 0;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    const struct ljp_profile_context *c = &p->contexts[row->context];
    if (c->kind == LJP_PRODUCER_CPU && c->state == LJP_VMSTATE_HOST &&
        p->frames[p->nodes[row->node].frame].kind == LJP_FRAME_COLLECTOR)
      ns += row->weight;
  }
  return ns;
}

static void summary_print_gc(const struct ljp_report *r)
{
  const uint64_t ns = summary_closing_ns(r->p);
  ljp_gc_phases(r->out, &r->p->gc_cost);
  if (ns) {
    ljp_print_str(r->out, "\nfreeing closed VMs took ");
    ljp_units_time(r->out, ns);
    ljp_print_str(r->out, " more, which no row has here, but "
                          "[garbage collector] in reports of CPU time");
  }
  ljp_print_str(r->out, "\n");
}

void ljp_report_head(const struct ljp_report *r)
{
  struct ljp_print *out = r->out;
  const char *text;
  for (uint32_t i = 0; (text = ljp_profile_notice(r->p, i)); i++) {
    ljp_print_str(out, r->color ? RED "! " : "! ");
    ljp_print_safe(out, ljp_str(text, strlen(text)));
    ljp_print_str(out, r->color ? PLAIN "\n" : "\n");
  }
  ljp_print_str(out, r->color ? BOLD : "");
  summary_print_measured(r);
  ljp_print_str(out, r->color ? PLAIN : "");
  if (ljp_measure_is_memory(r->select.measure))
    ljp_report_memory_head(r);
  if (r->select.measure == LJP_MEASURE_GC_COST)
    summary_print_gc(r);
  if (r->hint && r->p->folded)
    ljp_print_str(out, "machine code counts for the function that made it run "
                       "(--native shows it)\n");
  summary_labels(r);
  ljp_report_text_places(r);
  ljp_print_str(out, "\n");
}
