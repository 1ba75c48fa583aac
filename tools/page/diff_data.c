/*
** Puts two profiles on one stack tree, and lists what changed.
*/
#include "tools/page/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/whole.h"
#include "parsers/profile/frame_name.h"
#include "src/base/assert.h"
#include "tools/page/match.h"
#include "tools/page/stacks.h"
#include "tools/shared/damage.h"
#include "tools/shared/related.h"

uint64_t ljp_diff_whole(double x)
{
  return ljp_whole(round(x));
}

const char *ljp_diff_verdict(const struct ljp_diff_value *v,
                             const struct ljp_diff_value *whole)
{
  if (!ljp_diff_sure(v))
    return "same";
  return whole->value[0] <= 0        ? "new"
         : whole->value[1] <= 0      ? "gone"
         : v->value[1] > v->value[0] ? "more"
                                     : "less";
}

double ljp_diff_error(const struct ljp_diff_value *v)
{
  return LJP_DIFF_SURE * sqrt(v->variance[0] + v->variance[1]);
}

bool ljp_diff_sure(const struct ljp_diff_value *v)
{
  return fabs(v->value[1] - v->value[0]) > ljp_diff_error(v);
}

static void diff_add(struct ljp_diff_value *to, int side, double value,
                     double variance)
{
  to->value[side] += value;
  to->variance[side] += variance;
}

static void diff_add_value(struct ljp_diff_value *to,
                           const struct ljp_diff_value *v)
{
  for (int side = 0; side < 2; side++)
    diff_add(to, side, v->value[side], v->variance[side]);
}

/* Adds the rows of one side. The lists in nodes[] grow with the page. same: of
** ljp_page_match(), for the first side. */
static enum ljp_status diff_take_side(struct ljp_diff *d,
                                      const struct ljp_profile *p, int side,
                                      const uint32_t *same,
                                      const struct ljp_profile *after)
{
  struct ljp_page_stacks stacks;
  enum ljp_status status =
      ljp_page_stacks_init_compared(&stacks, &d->page, p, same, after);
  uint32_t *nodes = calloc(p->row_count + 1, sizeof *nodes);
  if (!nodes)
    status = LJP_ERR_MEM;
  for (uint32_t i = 0; !status && i < p->row_count; i++)
    nodes[i] = ljp_page_stacks_node(&stacks, &p->rows[i]);
  if (!status)
    status = d->page.failed;
  for (int v = 0; !status && v < LJP_PAGE_VIEWS; v++) {
    struct ljp_diff_value *grown = calloc(d->page.node_count, sizeof *grown);
    if (!grown) {
      status = LJP_ERR_MEM;
      break;
    }
    if (d->nodes[v])
      memcpy(grown, d->nodes[v], d->node_count * sizeof *grown);
    free(d->nodes[v]);
    d->nodes[v] = grown;
  }
  d->node_count = d->page.node_count;
  static const struct ljp_profile_estimates exact;
  double second = d->by == LJP_DIFF_PER_SECOND ? 1 / d->sides[side].seconds : 1;
  for (uint32_t i = 0; !status && i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    const struct ljp_profile_memory *m = &p->memory[row->memory];
    enum ljp_page_view view = ljp_page_stacks_view(&stacks, row);
    double w = (double)row->weight * second, n = (double)row->count;
    double variance =
        n > 0 ? w * w / n : 0; /* The variance of a sum of n equal samples. */
    if (view == LJP_PAGE_VIEW_ALLOC) {
      const struct ljp_profile_estimates *e =
          p->estimates && row->memory ? &p->estimates[row->memory] : &exact;
      variance = e->alloc.variance_bytes * second * second;
      diff_add(&d->totals[view], side, (double)row->weight,
               e->alloc.variance_bytes);
      diff_add(&d->totals[LJP_PAGE_VIEW_LIVE], side, (double)m->live_bytes,
               e->live.variance_bytes);
      diff_add(&d->totals[LJP_PAGE_VIEW_LEAK], side, (double)m->old_bytes,
               e->old.variance_bytes);
      diff_add(&d->nodes[LJP_PAGE_VIEW_LIVE][nodes[i]], side,
               (double)m->live_bytes, e->live.variance_bytes);
      d->sums[LJP_PAGE_VIEW_LIVE][side] += (double)m->live_bytes;
      diff_add(&d->nodes[LJP_PAGE_VIEW_LEAK][nodes[i]], side,
               (double)m->old_bytes, e->old.variance_bytes);
      d->sums[LJP_PAGE_VIEW_LEAK][side] += (double)m->old_bytes;
    } else {
      diff_add(&d->totals[view], side, (double)row->weight, 0);
    }
    diff_add(&d->nodes[view][nodes[i]], side, w, variance);
    d->sums[view][side] += w;
  }
  free(nodes);
  ljp_page_stacks_fini(&stacks);
  return status;
}

/* Scales both sides to a sum of one second (of memory: one GiB; of samples
** without times: a thousand). */
static void diff_equalize(struct ljp_diff *d, int view)
{
  double one = view == LJP_PAGE_VIEW_ALLOC ? 0x1p30
               : ljp_diff_is_untimed(d)    ? 1000
                                           : 1e9;
  for (int side = 0; side < 2; side++) {
    double k = d->sums[view][side] > 0 ? one / d->sums[view][side] : 0;
    for (size_t i = 0; i < d->node_count; i++) {
      d->nodes[view][i].value[side] *= k;
      d->nodes[view][i].variance[side] *= k * k;
    }
    d->sums[view][side] *= k;
  }
}

static struct ljp_str diff_base_name(struct ljp_page *page, const char *path)
{
  struct ljp_str s = ljp_base_name(ljp_str(path, strlen(path)));
  return ljp_page_text(
      page, strcmp(path, "-") == 0 ? ljp_str("standard input", 14) : s);
}

static bool diff_same_text(struct ljp_str a, struct ljp_str b)
{
  return a.len == b.len && (!a.len || memcmp(a.data, b.data, a.len) == 0);
}

/* Not what all programs have: main chunk, collector, kernel, outside Lua. */
static bool diff_is_function(const struct ljp_page_frame *frame)
{
  return frame->kind <= LJP_PAGE_VM &&
         !(frame->name.len && frame->name.data[0] == '[') &&
         !diff_same_text(frame->name, ljp_str("main chunk", 10));
}

/* The share of functions' weight that is in functions of both sides, in the
** view where it is largest. 1: there is no view to tell it. */
static double diff_shared(const struct ljp_diff *d)
{
  double most = -1;
  for (int v = 0; v < LJP_PAGE_VIEWS; v++) {
    double shared = 0, all = 0;
    size_t count;
    if (!ljp_diff_has(d, (enum ljp_page_view)v))
      continue;
    struct ljp_diff_function *f =
        ljp_diff_functions(d, (enum ljp_page_view)v, &count);
    for (size_t i = 0; f && i < count; i++) {
      double weight = f[i].self.value[0] + f[i].self.value[1];
      if (!diff_is_function(&d->page.frames[f[i].frame]))
        continue;
      all += weight;
      if (f[i].total.value[0] > 0 && f[i].total.value[1] > 0)
        shared += weight;
    }
    if (f && all > 0)
      most = fmax(most, shared / all);
    free(f);
  }
  return most < 0 ? 1 : most;
}

/* Adds notices about what makes the comparison doubtful. */
static void diff_add_doubts(struct ljp_diff *d, const struct ljp_profile *a,
                            const struct ljp_profile *b)
{
  struct ljp_page *page = &d->page;
  const struct ljp_diff_side *s = d->sides;
  static const char *const when[] = {"before", "after"};
  const struct ljp_profile *both[] = {a, b};
  if (!s[0].untimed && !s[1].untimed &&
      !diff_same_text(s[0].program, s[1].program))
    ljp_page_notice(
        page, false,
        ljp_page_format(page,
                        "the profiles are of different programs: before %.*s,"
                        " after %.*s",
                        (int)s[0].program.len, s[0].program.data,
                        (int)s[1].program.len, s[1].program.data));
  struct ljp_str x = ljp_related_script(a), y = ljp_related_script(b);
  enum ljp_related related;
  if (diff_same_text(s[0].program, s[1].program) &&
      !ljp_related(a, b, &related) && related == LJP_RELATED_NOT) {
    ljp_page_notice(
        page, false,
        ljp_page_format(page,
                        "the profiles are of different scripts: before %.*s,"
                        " after %.*s",
                        (int)x.len, x.len ? x.data : "", (int)y.len,
                        y.len ? y.data : ""));
  }
  if (!a->recorded_by && a->origin_ns == b->origin_ns && a->pid == b->pid &&
      a->origin_wall_ns == b->origin_wall_ns)
    ljp_page_notice(page, false,
                    ljp_str("both files are of the same session", 34));
  /* A fix may replace all that a script spent its time in. */
  double shared = x.len && ljp_str_same(x, y) ? 1 : diff_shared(d);
  if (shared < 0.1)
    ljp_page_notice(
        page, false,
        ljp_page_format(page,
                        "the files have hardly any function in common"
                        " (%.1f %% of the weight): do they belong"
                        " together?",
                        100 * shared));
  for (int side = 0; side < 2; side++)
    for (uint32_t n = 0; ljp_profile_notice(both[side], n); n++)
      ljp_page_notice(page, false,
                      ljp_page_format(page, "%s: %.900s", when[side],
                                      ljp_profile_notice(both[side], n)));
}

/* A program that ran to its end did a piece of work, and what counts is what
** that took. A session of a service is a part of its life. */
static void diff_choose(struct ljp_diff *d, const struct ljp_profile *before,
                        const struct ljp_profile *after, enum ljp_diff_by by)
{
  bool untimed = before->recorded_by && after->recorded_by;
  bool ended = before->ran_to_end && after->ran_to_end;
  d->by = by ? by : ended || untimed ? LJP_DIFF_TOTAL : LJP_DIFF_PER_SECOND;
  if (by)
    return;
  d->why = untimed ? "the files have no times"
           : ended ? "both programs ran to their end"
           : before->ran_to_end || after->ran_to_end
               ? "one session is only a part of its program's life"
               : "the sessions are parts of their programs' lives";
}

/* What is known about a side before its rows are read. */
static void diff_describe_side(struct ljp_diff *d, const struct ljp_profile *p,
                               const char *file, struct ljp_diff_side *s)
{
  /* A session without length has no rates. This avoids a division by zero. */
  s->seconds = p->end_ns ? (double)p->end_ns / 1e9 : 1e-9;
  s->untimed = p->recorded_by;
  if (s->untimed) /* Values are not per second. */
    s->seconds = 1;
  d->page.untimed |= s->untimed;
  s->samples = p->totals.samples + p->totals.wall_samples;
  s->file = diff_base_name(&d->page, file);
  s->program =
      ljp_page_text(&d->page, ljp_base_name(ljp_profile_str(p, p->executable)));
  s->events = (p->totals.memory.alloc_objects + LJP_OBJECT / 2) / LJP_OBJECT;
  s->estimated = p->sampled_memory;
  s->damage = ljp_damage_hint(p);
  s->holds[LJP_PAGE_VIEW_CPU] =
      p->recorded[LJP_PRODUCER_CPU] || p->totals.samples;
  s->holds[LJP_PAGE_VIEW_WALL] =
      p->recorded[LJP_PRODUCER_WALL] || p->totals.wall_samples;
  for (int v = LJP_PAGE_VIEW_ALLOC; v <= LJP_PAGE_VIEW_LEAK; v++)
    s->holds[v] = p->has_memory;
}

/* Fills nodes[], sums[] and totals[], and adds the doubts. */
static enum ljp_status diff_take(struct ljp_diff *d,
                                 const struct ljp_profile *before,
                                 const struct ljp_profile *after)
{
  uint32_t *same = ljp_page_match(before, after);
  if (!same)
    return LJP_ERR_MEM;
  d->folded = before->folded || after->folded;
  enum ljp_status status = diff_take_side(d, before, 0, same, after);
  if (!status)
    status = diff_take_side(d, after, 1, NULL, after);
  free(same);
  for (int v = 0;
       !status && d->by == LJP_DIFF_SHARE && v <= LJP_PAGE_VIEW_ALLOC; v++)
    diff_equalize(d, v);
  if (!status)
    diff_add_doubts(d, before, after);
  return status ? status : d->page.failed;
}

enum ljp_status ljp_diff_init(struct ljp_diff *diff,
                              const struct ljp_profile *before,
                              const struct ljp_profile *after,
                              const char *const files[2], enum ljp_diff_by by)
{
  memset(diff, 0, sizeof *diff);
  diff_choose(diff, before, after, by);
  enum ljp_status status = ljp_page_init(&diff->page);
  if (status)
    return status;
  diff_describe_side(diff, before, files[0], &diff->sides[0]);
  diff_describe_side(diff, after, files[1], &diff->sides[1]);
  return diff_take(diff, before, after);
}

enum ljp_status ljp_diff_fold(struct ljp_diff *diff, struct ljp_profile *before,
                              struct ljp_profile *after)
{
  enum ljp_status status;
  ljp_assert(!diff->native_count);
  memcpy(diff->native, diff->nodes, sizeof diff->native);
  diff->native_count = diff->node_count;
  memset(diff->nodes, 0, sizeof diff->nodes);
  memset(diff->sums, 0, sizeof diff->sums);
  memset(diff->totals, 0, sizeof diff->totals);
  diff->node_count = 0;
  diff->page.notice_count = 0; /* diff_take() adds those of the Lua view. */
  if ((status = ljp_profile_fold(before, NULL)) ||
      (after != before && (status = ljp_profile_fold(after, NULL))))
    return status;
  return diff_take(diff, before, after);
}

void ljp_diff_fini(struct ljp_diff *diff)
{
  for (int v = 0; v < LJP_PAGE_VIEWS; v++) {
    free(diff->nodes[v]);
    free(diff->native[v]);
  }
  ljp_page_fini(&diff->page);
}

bool ljp_diff_comparable(const struct ljp_diff *diff, enum ljp_page_view view)
{
  return diff->by == LJP_DIFF_SHARE || view == LJP_PAGE_VIEW_LIVE ||
         view == LJP_PAGE_VIEW_LEAK ||
         diff->sides[0].untimed == diff->sides[1].untimed;
}

bool ljp_diff_has(const struct ljp_diff *diff, enum ljp_page_view view)
{
  return diff->sums[view][0] > 0 && diff->sums[view][1] > 0;
}

/* Orders changes beyond the error first, then by size. */
static int diff_by_change(const struct ljp_diff_value *a,
                          const struct ljp_diff_value *b)
{
  double x = fabs(a->value[1] - a->value[0]);
  double y = fabs(b->value[1] - b->value[0]);
  bool p = ljp_diff_sure(a), q = ljp_diff_sure(b);
  return p != q ? q - p : (x < y) - (x > y);
}

static int diff_function_order(const void *a, const void *b)
{
  const struct ljp_diff_function *x = a, *y = b;
  int order = diff_by_change(&x->self, &y->self);
  order = order ? order : diff_by_change(&x->total, &y->total);
  return order ? order : (x->frame > y->frame) - (x->frame < y->frame);
}

static int diff_stack_order(const void *a, const void *b)
{
  const struct ljp_diff_stack *x = a, *y = b;
  int order = diff_by_change(&x->self, &y->self);
  return order ? order : (x->node > y->node) - (x->node < y->node);
}

struct ljp_diff_function *ljp_diff_functions(const struct ljp_diff *diff,
                                             enum ljp_page_view view,
                                             size_t *count)
{
  const struct ljp_page *page = &diff->page;
  ljp_assert(diff->node_count == page->node_count);
  struct ljp_diff_function *f = calloc(page->frame_count + 1, sizeof *f);
  struct ljp_diff_value *total = calloc(page->node_count + 1, sizeof *total);
  *count = 0;
  if (!f || !total) {
    free(f);
    free(total);
    return NULL;
  }
  memcpy(total, diff->nodes[view], page->node_count * sizeof *total);
  for (size_t i = page->node_count; i-- > 1;)
    diff_add_value(&total[page->nodes[i].parent], &total[i]);
  for (size_t i = 1; i < page->node_count; i++) {
    uint32_t frame = page->nodes[i].frame, up = page->nodes[i].parent;
    while (up && page->nodes[up].frame != frame)
      up = page->nodes[up].parent;
    diff_add_value(&f[frame].self, &diff->nodes[view][i]);
    if (!up) /* Recursion counts once. */
      diff_add_value(&f[frame].total, &total[i]);
  }
  for (uint32_t i = 1; i < page->frame_count; i++) {
    f[i].frame = i;
    if (f[i].total.value[0] > 0 || f[i].total.value[1] > 0)
      f[(*count)++] = f[i];
  }
  free(total);
  qsort(f, *count, sizeof *f, diff_function_order);
  return f;
}

static int diff_function_order_total(const void *a, const void *b)
{
  const struct ljp_diff_function *x = a, *y = b;
  int order = diff_by_change(&x->total, &y->total);
  return order ? order : diff_function_order(a, b);
}

struct ljp_diff_function *
ljp_diff_functions_by_total(const struct ljp_diff_function *functions,
                            size_t count)
{
  struct ljp_diff_function *f = calloc(count + 1, sizeof *f);
  if (f && count) {
    memcpy(f, functions, count * sizeof *f);
    qsort(f, count, sizeof *f, diff_function_order_total);
  }
  return f;
}

struct ljp_diff_stack *ljp_diff_stacks(const struct ljp_diff *diff,
                                       enum ljp_page_view view, size_t *count)
{
  size_t n = diff->page.node_count;
  struct ljp_diff_stack *s = calloc(n + 1, sizeof *s);
  *count = 0;
  for (size_t i = 0; s && i < n; i++) {
    const struct ljp_diff_value *v = &diff->nodes[view][i];
    if (v->value[0] > 0 || v->value[1] > 0)
      s[(*count)++] = (struct ljp_diff_stack){.node = (uint32_t)i, .self = *v};
  }
  if (s)
    qsort(s, *count, sizeof *s, diff_stack_order);
  return s;
}
