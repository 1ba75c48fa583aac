/*
** Takes a figure from a profile.
**
** A sample says of a moment whether a function ran, so the share of a function
** has the error of a share of n samples. The sum of all time has no such error:
** each sample's weight was measured. Sampled memory has the bounds of
** parsers/profile/estimate.h.
*/
#include "tools/expect/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report.h"

static void figure_set(struct ljp_figure_value *v, double value, double low,
                       double high)
{
  v->known = true;
  v->value = value;
  v->low = low;
  v->high = high;
}

static void figure_time(const struct ljp_budget *b,
                        const struct ljp_figure_match *m,
                        struct ljp_figure_value *v)
{
  double all = (double)m->all.weight, n = (double)m->all.count;
  double x = all > 0 ? (double)m->value.weight / all : 0;
  struct ljp_bounds share = {x, x};
  v->samples = m->value.count;
  if (b->unit->kind == LJP_UNIT_COUNT) {
    figure_set(v, (double)v->samples, (double)v->samples, (double)v->samples);
    return;
  }
  if (b->subject.len) {
    share = ljp_share_bounds(x * n, n);
    share.low = fmin(share.low, x); /* Rounding. */
    share.high = fmax(share.high, x);
    v->sampled = true;
  }
  bool percent = b->unit->kind == LJP_UNIT_PERCENT;
  double value = percent ? 100 * x : (double)m->value.weight;
  double scale = percent ? 100 : all;
  figure_set(v, value, fmin(scale * share.low, value),
             fmax(scale * share.high, value));
}

/* The collector's time: what it does for whom is known from the samples that met
** it, and how long it ran from all samples. The bounds leave out that sampled
** memory is estimated, too. */
static void figure_gc_cost(const struct ljp_profile *p,
                           const struct ljp_budget *b,
                           const struct ljp_figure_match *m,
                           struct ljp_figure_value *v)
{
  double value = (double)m->value.weight, all = (double)m->all.weight;
  bool percent = b->unit->kind == LJP_UNIT_PERCENT;
  double whole = percent ? all : (double)p->totals.cpu_ns;
  double n = (double)(percent ? p->gc_cost.samples : p->totals.samples);
  double x = whole > 0 ? value / whole : 0;
  struct ljp_bounds share = ljp_share_bounds(x * n, n);
  double scale = percent ? 100 : whole;
  v->samples = p->gc_cost.samples;
  v->sampled = true;
  v->estimated = p->sampled_memory && b->subject.len;
  value = percent ? 100 * x : value;
  figure_set(v, value, fmin(scale * share.low, value),
             fmax(scale * share.high, value));
}

static void figure_memory(const struct ljp_profile *p,
                          const struct ljp_budget *b,
                          const struct ljp_figure_match *m,
                          struct ljp_figure_value *v)
{
  double interval = p->sampled_memory ? (double)p->sample_bytes : 0;
  double bytes = (double)m->value.weight, all = (double)m->all.weight;
  double objects = (double)m->value.count / LJP_OBJECT;
  const struct ljp_estimate *e = &m->value.estimate;
  struct ljp_bounds of;
  v->sampled = v->estimated = p->sampled_memory;
  v->samples = v->sampled ? e->samples : (uint64_t)llround(objects);
  if (b->unit->kind == LJP_UNIT_COUNT) {
    of = ljp_estimate_objects(e, objects, interval);
    figure_set(v, objects, of.low, of.high);
    return;
  }
  of = ljp_estimate_bytes(e, bytes, interval);
  if (b->unit->kind == LJP_UNIT_BYTES) {
    figure_set(v, bytes, of.low, of.high);
    return;
  }
  /* Shares: the whole varies less than its part. */
  double scale = all > 0 ? 100 / all : 0;
  figure_set(v, bytes * scale, fmin(of.low * scale, 100),
             fmin(of.high * scale, 100));
}

static bool figure_lacks(struct ljp_figure_value *v, const char *file,
                         const char *what, const char *remedy)
{
  snprintf(v->why, sizeof v->why, "%.300s holds no %s%s", file, what, remedy);
  return false;
}

/* Leaks are what outlives two GC cycles: whether a VM finished as many. Its
** first event only says in which phase the session found it. */
static bool figure_has_leaks(const struct ljp_profile *p)
{
  if (!p->totals.memory.live_bytes)
    return true;
  uint32_t *events = calloc((size_t)p->vm_count + 1, sizeof *events);
  uint32_t *cycles = calloc((size_t)p->vm_count + 1, sizeof *cycles);
  bool enough = false;
  for (uint32_t i = 0; events && cycles && !enough && i < p->gc_count; i++) {
    uint32_t vm = p->gc[i].vm;
    cycles[vm] += events[vm]++ && p->gc[i].phase == LJP_GC_PAUSE;
    enough = cycles[vm] >= 2;
  }
  free(events);
  free(cycles);
  return enough;
}

/* Whether the file holds what the measure is about. */
static bool figure_has(const struct ljp_profile *p, const char *file,
                       const struct ljp_budget *b, enum ljp_measure *measure,
                       struct ljp_figure_value *v)
{
  bool cpu = p->totals.samples, wall = p->totals.wall_samples;
  *measure = b->figure != LJP_FIGURE_TIME ? (enum ljp_measure)b->figure
             : cpu                        ? LJP_MEASURE_CPU
                                          : LJP_MEASURE_WALL;
  if (b->figure == LJP_FIGURE_TIME && !cpu && !wall)
    return figure_lacks(v, file, "samples of time",
                        p->has_memory ? " (write alloc.own(NAME) for memory)"
                                      : "");
  if (*measure == LJP_MEASURE_CPU && !cpu)
    return figure_lacks(v, file, "CPU samples", "");
  if (*measure == LJP_MEASURE_GC_COST && (!cpu || !p->has_memory))
    return figure_lacks(v, file, cpu ? "memory events" : "CPU samples",
                        " (record with --memory: the time of the collector "
                        "needs both)");
  if (*measure == LJP_MEASURE_GC_COST &&
      (p->options.thread || p->options.labels.count)) {
    snprintf(v->why, sizeof v->why,
             "gc-cost is known for all %s together (leave out %s)",
             p->options.thread ? "threads" : "labels",
             p->options.thread ? "--thread" : "--label");
    return false;
  }
  if (*measure == LJP_MEASURE_WALL && !wall)
    return figure_lacks(v, file, "wall-clock samples",
                        " (record with --event wall)");
  if (ljp_measure_is_memory(*measure) && !p->has_memory)
    return figure_lacks(v, file, "memory events", " (record with --memory)");
  if (!ljp_measure_is_memory(*measure) && p->recorded_by &&
      b->unit->kind == LJP_UNIT_TIME)
    return figure_lacks(v, file, "times",
                        ", only samples (write a limit in % or samples)");
  if (*measure == LJP_MEASURE_LEAKS && !figure_has_leaks(p))
    return figure_lacks(v, file, "two finished GC cycles",
                        ", so what is leaked is not known (record for longer, "
                        "or call collectgarbage() twice at the end)");
  return true;
}

/* Figures of the whole file that are no measures. */
static void figure_of_file(const struct ljp_profile *p, const char *file,
                           const struct ljp_budget *b,
                           struct ljp_figure_value *v)
{
  const struct ljp_profile_totals *t = &p->totals;
  double x = 0;
  if (p->recorded_by && b->figure != LJP_FIGURE_SAMPLES) {
    figure_lacks(v, file, ljp_figure_name(b->figure),
                 " (another profiler wrote it)");
    return;
  }
  if (b->figure == LJP_FIGURE_SAMPLES)
    x = (double)(t->samples + t->wall_samples);
  else if (b->figure == LJP_FIGURE_DURATION)
    x = (double)p->end_ns;
  else if (b->figure == LJP_FIGURE_UNSAMPLED)
    x = (double)ljp_balance_missing(&p->balance);
  else
    x = (double)(t->lost_all + t->swallowed);
  figure_set(v, x, x, x);
}

enum ljp_status ljp_figure_take(struct ljp_profile *p, const char *file,
                                const struct ljp_budget *b,
                                struct ljp_figure_value *v)
{
  struct ljp_figure_match match = {0};
  enum ljp_measure measure;
  *v = (struct ljp_figure_value){0};
  if (!ljp_figure_is_measure(b->figure)) {
    figure_of_file(p, file, b, v);
    return LJP_OK;
  }
  if (!figure_has(p, file, b, &measure, v))
    return LJP_OK;
  enum ljp_status status = ljp_figure_find(p, file, b, measure, &match, v->why);
  if (status || (!match.found && !b->optional) || *v->why)
    return status;
  if (measure == LJP_MEASURE_GC_COST)
    figure_gc_cost(p, b, &match, v);
  else if (ljp_measure_is_memory(measure))
    figure_memory(p, b, &match, v);
  else
    figure_time(b, &match, v);
  return LJP_OK;
}
