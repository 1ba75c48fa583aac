/*
** Formats amounts, shares and bounds, as text and as JSON.
*/
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "parsers/base/whole.h"
#include "tools/report/report.h"

static void amount_scale(uint64_t n, unsigned step, const char *const *units,
                         char out[24])
{
  double value = (double)n;
  unsigned unit = 0;
  while (value >= step && units[unit + 1]) {
    value /= step;
    unit++;
  }
  if (!unit)
    snprintf(out, 24, "%" PRIu64 " %s", n, units[0]);
  else
    snprintf(out, 24,
             value < 10    ? "%.3f %s"
             : value < 100 ? "%.2f %s"
                           : "%.1f %s",
             value, units[unit]);
}

static void amount_plain(const struct ljp_report *r, uint64_t weight,
                         char out[24])
{
  static const char *const times[] = {"ns", "us", "ms", "s", NULL};
  static const char *const sizes[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};
  if (ljp_measure_is_memory(r->select.measure))
    amount_scale(weight, 1024, sizes, out);
  else if (ljp_is_untimed(r))
    snprintf(out, 24, "%" PRIu64, weight);
  else
    amount_scale(weight, 1000, times, out);
}

void ljp_amount(const struct ljp_report *r, uint64_t weight, char out[24])
{
  bool estimated =
      ljp_is_estimated(r) ||
      (r->p->sampled_memory && r->select.measure == LJP_MEASURE_GC_COST);
  char text[24];
  amount_plain(r, weight, text);
  snprintf(out, 24, "%s%.22s", estimated ? "~" : "", text);
}

void ljp_bound_amount(const struct ljp_report *r, double bytes, char out[24])
{
  amount_plain(r, ljp_whole(bytes), out);
}

void ljp_count_amount(const struct ljp_report *r, uint64_t count, char out[24])
{
  snprintf(out, 24, "%s%" PRIu64, ljp_is_estimated(r) ? "~" : "",
           ljp_count_of(r, count));
}

bool ljp_is_untimed(const struct ljp_report *r)
{
  return r->p->recorded_by && !ljp_measure_is_memory(r->select.measure);
}

bool ljp_has_counts(const struct ljp_report *r)
{
  return !ljp_is_untimed(r) && r->select.measure != LJP_MEASURE_GC_COST;
}

uint64_t ljp_count_of(const struct ljp_report *r, uint64_t count)
{
  if (!ljp_measure_is_memory(r->select.measure))
    return count;
  return count / LJP_OBJECT + (count % LJP_OBJECT >= LJP_OBJECT / 2);
}

double ljp_percent(const struct ljp_report *r, const struct ljp_value *value)
{
  const struct ljp_value *all = &r->select.total;
  if (all->weight)
    return 100.0 * (double)value->weight / (double)all->weight;
  return all->count ? 100.0 * (double)value->count / (double)all->count : 0;
}

bool ljp_is_estimated(const struct ljp_report *r)
{
  return r->p->sampled_memory && ljp_measure_is_memory(r->select.measure);
}

struct ljp_bounds ljp_value_bytes(const struct ljp_report *r,
                                  const struct ljp_value *value)
{
  return ljp_estimate_bytes(&value->estimate, (double)value->weight,
                            (double)r->p->sample_bytes);
}

struct ljp_bounds ljp_value_objects(const struct ljp_report *r,
                                    const struct ljp_value *value)
{
  return ljp_estimate_objects(&value->estimate,
                              (double)value->count / LJP_OBJECT,
                              (double)r->p->sample_bytes);
}

void ljp_json_bounds(const struct ljp_report *r, const char *prefix,
                     const char *name, double value, struct ljp_bounds bounds)
{
  double low = floor(bounds.low), high = ceil(bounds.high);
  ljp_print_format(r->out,
                   ",\"%s_%s_low\":%.0f,\"%s_%s_high\":%.0f,"
                   "\"%s_%s_error\":%.0f",
                   prefix, name, low, prefix, name, high, prefix, name,
                   ceil(fmax(high - value, value - low)));
}

void ljp_json_value(const struct ljp_report *r, const char *prefix,
                    const struct ljp_value *value)
{
  const char *count = "", *weight = "";
  switch (r->select.measure) {
#define LJP_X(name, option, count_text, weight_text, text)                     \
  case LJP_MEASURE_##name:                                                     \
    count = count_text;                                                        \
    weight = weight_text;                                                      \
    break;
    LJP_MEASURE_LIST(LJP_X)
#undef LJP_X
  }
  bool counted = r->select.measure != LJP_MEASURE_GC_COST;
  if (counted)
    ljp_print_format(r->out, "\"%s_%s\":%" PRIu64, prefix, count,
                     ljp_count_of(r, value->count));
  if (!ljp_is_untimed(r))
    ljp_print_format(r->out, "%s\"%s_%s\":%" PRIu64, counted ? "," : "", prefix,
                     weight, value->weight);
  ljp_print_format(r->out, ",\"%s_percent\":%.4f", prefix,
                   ljp_percent(r, value));
  if (!ljp_is_estimated(r))
    return;
  ljp_json_bounds(r, prefix, count, (double)ljp_count_of(r, value->count),
                  ljp_value_objects(r, value));
  ljp_json_bounds(r, prefix, weight, (double)value->weight,
                  ljp_value_bytes(r, value));
}
