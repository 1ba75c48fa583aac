/*
** Evaluates trace events for `ljprof report --jit`: what became of each trace,
** where the compiler gave up and why, and what that cost.
*/
#include "tools/report/jit.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/named_functions.h"

static const struct ljp_profile *jit_sort_profile;

static int jit_by_time(const void *a, const void *b)
{
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  const struct ljp_profile_trace_event *x = &jit_sort_profile->trace_events[i];
  const struct ljp_profile_trace_event *y = &jit_sort_profile->trace_events[k];
  if (x->time_ns != y->time_ns)
    return x->time_ns < y->time_ns ? -1 : 1;
  return i < k ? -1 : 1;
}

/* Finds out what became of each trace. A flush ends all traces of its VM. */
static bool jit_follow_fates(const struct ljp_profile *p, struct ljp_jit *jit)
{
  uint32_t n = p->trace_event_count;
  uint32_t *order = malloc(((size_t)n + 1) * sizeof *order);
  uint32_t *next = calloc(p->trace_count + (size_t)1, sizeof *next);
  uint32_t *alive = calloc(p->vm_count + (size_t)1, sizeof *alive);
  bool ok = order && next && alive;
  for (uint32_t i = 0; ok && i < n; i++)
    order[i] = i;
  jit_sort_profile = p;
  if (ok && n)
    qsort(order, n, sizeof *order, jit_by_time);
  for (uint32_t i = 0; ok && i < n; i++) {
    const struct ljp_profile_trace_event *e = &p->trace_events[order[i]];
    if (e->what == LJP_TRACE_FREE && e->trace) {
      jit->traces[e->trace].fate = LJP_JIT_FREED;
    } else if ((e->what == LJP_TRACE_STOP || e->what == LJP_TRACE_EXISTS) &&
               e->trace && !next[e->trace]) {
      next[e->trace] = alive[e->vm] ? alive[e->vm] : UINT32_MAX;
      alive[e->vm] = e->trace;
    } else if (e->what == LJP_TRACE_FLUSH) {
      for (uint32_t t = alive[e->vm]; t && t != UINT32_MAX; t = next[t])
        if (!jit->traces[t].fate)
          jit->traces[t].fate = LJP_JIT_FLUSHED;
      alive[e->vm] = 0;
    }
  }
  free(order);
  free(next);
  free(alive);
  return ok;
}

/* The innermost Lua frame of a stack; 0: none. */
static uint32_t jit_lua_frame(const struct ljp_profile *p, uint32_t node)
{
  for (; node; node = p->nodes[node].parent) {
    unsigned kind = p->frames[p->nodes[node].frame].kind;
    if (kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED)
      return p->nodes[node].frame;
  }
  return 0;
}

static int jit_by_place(const void *a, const void *b)
{
  const struct ljp_jit_place *x = a, *y = b;
  const uint32_t left[] = {x->reason, x->file,   x->name,        x->first_line,
                           x->line,   x->parent, x->parent_exit, x->at};
  const uint32_t right[] = {y->reason, y->file,   y->name,        y->first_line,
                            y->line,   y->parent, y->parent_exit, y->at};
  for (unsigned i = 0; i < sizeof left / sizeof *left; i++)
    if (left[i] != right[i])
      return left[i] < right[i] ? -1 : 1;
  return 0;
}

static int jit_by_count(const void *a, const void *b)
{
  const struct ljp_jit_place *x = a, *y = b;
  if (x->reason != y->reason)
    return x->reason < y->reason ? -1 : 1;
  if (x->count != y->count)
    return x->count > y->count ? -1 : 1;
  return jit_by_place(a, b);
}

/* Sorts the places and joins equal ones. */
static uint32_t jit_merge_places(struct ljp_jit_place *places, uint32_t count)
{
  uint32_t n = 0;
  if (!count)
    return 0;
  qsort(places, count, sizeof *places, jit_by_place);
  for (uint32_t i = 0; i < count; i++) {
    if (n && jit_by_place(&places[n - 1], &places[i]) == 0)
      places[n - 1].count += places[i].count;
    else
      places[n++] = places[i];
  }
  qsort(places, n, sizeof *places, jit_by_count);
  return n;
}

/* Adds functions that were blacklisted before the session began, if no event
** tells of them. Line 0 sorts them before the places of events. */
static void jit_add_blacklisted(const struct ljp_profile *p,
                                const struct ljp_index *names,
                                struct ljp_jit *jit)
{
  struct ljp_jit_place *list = jit->blacklisted;
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->blacklisted_count; i++) {
    const struct ljp_profile_blacklisted *b = &p->blacklisted[i];
    list[jit->blacklisted_count++] =
        (struct ljp_jit_place){.name = b->name,
                               .file = b->file,
                               .first_line = b->first_line,
                               .function = ljp_named_function(
                                   p, names, b->file, b->name, b->first_line),
                               .count = 1};
  }
  if (jit->blacklisted_count)
    qsort(list, jit->blacklisted_count, sizeof *list, jit_by_place);
  for (uint32_t i = 0; i < jit->blacklisted_count; i++) {
    const struct ljp_jit_place *next =
        i + 1 < jit->blacklisted_count ? &list[i + 1] : NULL;
    if (!list[i].line && next && next->file == list[i].file &&
        next->name == list[i].name && next->first_line == list[i].first_line)
      continue;
    list[n] = list[i];
    if (!list[n].line)
      list[n].line = list[n].first_line;
    n++;
  }
  jit->blacklisted_count = n;
}

static bool jit_take_events(const struct ljp_profile *p, struct ljp_jit *jit)
{
  struct ljp_index names;
  size_t room = (size_t)p->trace_event_count + p->blacklisted_count + 1;
  bool ok = ljp_named_functions_init(p, &names);
  jit->places = malloc(room * sizeof *jit->places);
  jit->blacklisted = malloc(room * sizeof *jit->blacklisted);
  ok = ok && jit->places && jit->blacklisted;
  for (uint32_t i = 0; ok && i < p->trace_event_count; i++) {
    const struct ljp_profile_trace_event *e = &p->trace_events[i];
    jit->has_events = true;
    if (e->time_ns < p->options.from_ns ||
        (p->options.to_ns && e->time_ns >= p->options.to_ns))
      continue;
    if (e->what < sizeof jit->events / sizeof *jit->events)
      jit->events[e->what]++;
    struct ljp_jit_place place = {
        .name = e->name,
        .file = e->file,
        .first_line = e->first_line,
        .line = e->line,
        .function =
            ljp_named_function(p, &names, e->file, e->name, e->first_line),
        .count = 1};
    if (e->what == LJP_TRACE_ABORT) {
      place.reason = e->reason;
      place.parent = e->parent;
      place.parent_exit = e->parent_exit;
      place.at = jit_lua_frame(p, e->stack);
      jit->places[jit->place_count++] = place;
      if (e->parent)
        jit->traces[e->parent].given_up++;
    } else if (e->what == LJP_TRACE_BLACKLIST) {
      jit->blacklisted[jit->blacklisted_count++] = place;
    }
  }
  if (ok)
    jit_add_blacklisted(p, &names, jit);
  ljp_named_functions_fini(&names);
  if (ok) {
    jit->place_count = jit_merge_places(jit->places, jit->place_count);
    jit->blacklisted_count =
        jit_merge_places(jit->blacklisted, jit->blacklisted_count);
  }
  return ok;
}

static int jit_by_lost(const void *a, const void *b)
{
  const struct ljp_jit_reason *x = a, *y = b;
  if (x->lost.weight != y->lost.weight)
    return x->lost.weight > y->lost.weight ? -1 : 1;
  if (x->count != y->count)
    return x->count > y->count ? -1 : 1;
  return x->reason < y->reason ? -1 : x->reason > y->reason;
}

/* Adds the time spent in a function that was not compiled, once per reason. */
static void jit_add_lost(const struct ljp_jit *jit,
                         struct ljp_jit_reason *reason, uint32_t *seen,
                         uint32_t mark, uint32_t function)
{
  static const enum ljp_jit_kind kinds[] = {LJP_JIT_INTERPRETED, LJP_JIT_RECORD,
                                            LJP_JIT_OPT, LJP_JIT_ASM};
  if (!function || seen[function] == mark)
    return;
  seen[function] = mark;
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
    ljp_jit_add(&reason->lost, &jit->functions[function][kinds[i]]);
}

static bool jit_sum_up_reasons(const struct ljp_profile *p, struct ljp_jit *jit)
{
  uint32_t *seen = calloc((size_t)p->function_count + 1, sizeof *seen);
  jit->reasons = malloc(((size_t)jit->place_count + 1) * sizeof *jit->reasons);
  if (!seen || !jit->reasons) {
    free(seen);
    return false;
  }
  struct ljp_jit_reason *reason = NULL;
  for (uint32_t i = 0; i < jit->place_count; i++) {
    const struct ljp_jit_place *place = &jit->places[i];
    if (!reason || reason->reason != place->reason) {
      reason = &jit->reasons[jit->reason_count++];
      *reason = (struct ljp_jit_reason){.reason = place->reason, .first = i};
    }
    reason->places++;
    reason->count += place->count;
    jit_add_lost(jit, reason, seen, jit->reason_count, place->function);
    if (place->at)
      jit_add_lost(jit, reason, seen, jit->reason_count,
                   p->frames[place->at].function);
  }
  if (jit->reason_count)
    qsort(jit->reasons, jit->reason_count, sizeof *jit->reasons, jit_by_lost);
  free(seen);
  return true;
}

bool ljp_jit_make_events(const struct ljp_profile *p, struct ljp_jit *jit)
{
  return jit_follow_fates(p, jit) && jit_take_events(p, jit) &&
         jit_sum_up_reasons(p, jit);
}
