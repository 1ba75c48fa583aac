/*
** Samples: counts them at their rows, many at a time. Where a row lies in
** memory is a matter of chance; a processor fetches several such places at
** once if it is asked for them one right after the other. So the samples of a
** record go through several short loops, each of which prefetches what the
** next one needs. One thread a profile.
*/
#include "parsers/profile/gc_cost.h"
#include "parsers/profile/labels.h"
#include "parsers/profile/points.h"
#include "parsers/profile/rows.h"
#include "src/base/assert.h"

enum { SAMPLES_AT_ONCE = 64 };
#define NO_ROW UINT32_MAX

/* The last loop: counts at rows that have been prefetched, or finds them. */
static enum ljp_status samples_count_rows(struct ljp_profile *p,
                                          const struct ljp_timed_sample *s,
                                          const uint32_t *context,
                                          uint32_t *row, size_t count)
{
  enum ljp_status status;
  for (size_t i = 0; i < count; i++) {
    if (LJP_UNLIKELY(row[i] == NO_ROW ||
                     p->rows[row[i]].context != context[i]) &&
        (status =
             ljp_profile_find_row(p, s[i].sample.stack, context[i], &row[i])))
      return status;
    p->rows[row[i]].count++;
    p->rows[row[i]].weight += s[i].sample.weight;
    ljp_profile_count_missing_stack(p, row[i]);
  }
  for (size_t i = 0; p->options.points && i < count; i++)
    if ((status = ljp_profile_add_point(p, ljp_profile_since(p, s[i].time_ns),
                                        row[i], 1, s[i].sample.weight, false)))
      return status;
  return LJP_OK;
}

/* Counts samples whose contexts are known; none of them is filtered out. */
static enum ljp_status samples_count(struct ljp_profile *p,
                                     const struct ljp_timed_sample *s,
                                     const uint32_t *context, size_t count)
{
  const struct ljp_profile_pass *pass = p->pass;
  const struct ljp_stack_entry *entry[SAMPLES_AT_ONCE];
  uint32_t row[SAMPLES_AT_ONCE];
  for (size_t i = 0; i < count; i++) {
    entry[i] = ljp_stack_map_at(&pass->stacks, s[i].sample.stack);
    if (LJP_LIKELY(entry[i]))
      __builtin_prefetch(entry[i]);
  }
  for (size_t i = 0; i < count; i++) {
    const struct ljp_stack_entry *e = entry[i];
    row[i] = NO_ROW;
    if (LJP_LIKELY(e &&
                   ljp_stack_entry_valid(e, s[i].sample.stack, pass->epoch))) {
      row[i] = e->rows[context[i] % LJP_STACK_ROWS] - 1; /* 0 -> NO_ROW */
      if (LJP_LIKELY(row[i] != NO_ROW))
        __builtin_prefetch(&p->rows[row[i]], 1);
    }
  }
  return samples_count_rows(p, s, context, row, count);
}

/* Notes which samples are the collector's. What the profiler does there is no
** cost of the collector. */
static enum ljp_status samples_collector(struct ljp_profile *p,
                                         const struct ljp_timed_sample *s,
                                         const uint32_t *context, size_t count)
{
  struct ljp_stack_entry *entry;
  enum ljp_status status;
  uint32_t node;
  for (size_t i = 0; i < count; i++) {
    if (s[i].sample.state != LJP_VMSTATE_GC ||
        p->contexts[context[i]].kind != LJP_PRODUCER_CPU)
      continue;
    if ((status =
             ljp_profile_find_stack(p, s[i].sample.stack, &entry, &node)) ||
        (p->frames[p->nodes[node].frame].kind != LJP_FRAME_PROFILER &&
         (status = ljp_gc_cost_add(p, ljp_profile_since(p, s[i].time_ns),
                                   context[i], s[i].sample.weight))))
      return status;
  }
  return LJP_OK;
}

/* Whether the options exclude a sample; if so, counts it and returns
** LJP_ERR_USE. LJP_ERR_MEM. */
static __attribute__((noinline)) enum ljp_status
samples_exclude(struct ljp_profile *p, const struct ljp_timed_sample *s)
{
  bool wanted = p->pass->context.wanted;
  enum ljp_status status =
      ljp_profile_filter(p, s->time_ns, s->sample.stack, &wanted);
  if (status || wanted)
    return status;
  p->totals.filtered++;
  return LJP_ERR_USE;
}

/* Finds the samples' contexts and counts those that are not filtered out. s
** is overwritten. */
static enum ljp_status samples_take(struct ljp_profile *p,
                                    const struct ljp_item *item,
                                    struct ljp_timed_sample *s, size_t count)
{
  struct ljp_context_cache *cache = &p->pass->context;
  uint32_t context[SAMPLES_AT_ONCE];
  uint64_t last = 0;
  size_t n = 0;
  enum ljp_status status;
  ljp_assert(count <= SAMPLES_AT_ONCE);
  for (size_t i = 0; i < count; i++) {
    if ((status = ljp_context_enter(cache, p, item, LJP_REC_SAMPLES,
                                    s[i].sample.vm)))
      return status;
    if (s[i].time_ns > last)
      last = s[i].time_ns;
    if (LJP_UNLIKELY(!cache->wanted || p->pass->filters) &&
        (status = samples_exclude(p, &s[i]))) {
      if (status == LJP_ERR_MEM)
        return status;
      continue;
    }
    if ((status = ljp_context_find(cache, p, s[i].sample.state, s[i].sample.cut,
                                   &context[n])))
      return status;
    p->totals.cut[s[i].sample.cut]++;
    if (LJP_UNLIKELY(n != i))
      s[n] = s[i];
    n++;
  }
  ljp_profile_see_time(p, last);
  if (p->options.gc_cost && (status = samples_collector(p, s, context, n)))
    return status;
  return samples_count(p, s, context, n);
}

enum ljp_status ljp_profile_take_samples(struct ljp_profile *p,
                                         struct ljp_reader *reader,
                                         const struct ljp_item *item)
{
  struct ljp_timed_sample many[SAMPLES_AT_ONCE];
  enum ljp_status status;
  size_t n = 1;
  many[0] = (struct ljp_timed_sample){item->time_ns, item->u.sample};
  n += ljp_reader_samples(reader, many + 1, SAMPLES_AT_ONCE - 1);
  do {
    if ((status = samples_take(p, item, many, n)))
      return status;
    n = ljp_reader_samples(reader, many, SAMPLES_AT_ONCE);
  } while (n);
  return LJP_OK;
}
