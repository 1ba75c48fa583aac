/*
** Gathers what `ljprof report --jit` shows.
*/
#include "tools/report/jit.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/profile/table.h"

static void add(struct ljp_value *to, const struct ljp_value *from)
{
  to->count += from->count;
  to->weight += from->weight;
}

/* -- Samples ----------------------------------------------------------------- */

/* What a stack says: its innermost Lua function, and the trace that runs. */
struct inside {
  uint32_t function, trace;
  bool compiled;
};

static struct inside look(const struct ljp_profile *p, uint32_t node)
{
  struct inside in = {0};
  for (; node; node = p->nodes[node].parent) {
    const struct ljp_profile_frame *f = &p->frames[p->nodes[node].frame];
    if (f->kind == LJP_FRAME_LUA_INLINED) {
      in.compiled = true;
      if (!in.function)
        in.function = f->function;
    } else if (f->kind == LJP_FRAME_TRACE) {
      in.compiled = true;
      in.trace = f->trace;
      if (in.function)
        break;
    } else if (f->kind == LJP_FRAME_LUA) {
      if (!in.function)
        in.function = f->function;
      break;
    }
  }
  return in;
}

static enum ljp_jit_kind kind_of(unsigned state, const struct inside *in)
{
  switch (state) {
  case LJP_VMSTATE_RECORD:
    return LJP_JIT_RECORD;
  case LJP_VMSTATE_OPT:
    return LJP_JIT_OPT;
  case LJP_VMSTATE_ASM:
    return LJP_JIT_ASM;
  case LJP_VMSTATE_GC:
    return LJP_JIT_GC;
  case LJP_VMSTATE_EXIT:
    return LJP_JIT_EXIT;
  }
  if (!in->function && !in->compiled)
    return LJP_JIT_OTHER;
  return in->compiled ? LJP_JIT_COMPILED : LJP_JIT_INTERPRETED;
}

static void count_samples(const struct ljp_report *r, struct ljp_jit *jit)
{
  const struct ljp_profile *p = r->p;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_value *v = &r->select.rows[i];
    if (!v->count && !v->weight)
      continue;
    struct inside in = look(p, p->rows[i].node);
    enum ljp_jit_kind kind =
        kind_of(p->contexts[p->rows[i].context].state, &in);
    add(&jit->kinds[kind], v);
    add(&jit->functions[in.function][kind], v);
    if (!in.trace)
      continue;
    struct ljp_jit_trace *t = &jit->traces[in.trace];
    t->shown = true;
    if (kind == LJP_JIT_EXIT)
      add(&t->exit, v);
    else if (kind == LJP_JIT_COMPILED || kind == LJP_JIT_GC)
      add(&t->self, v);
  }
}

/* -- Traces ------------------------------------------------------------------- */

/* Whose side trace it is; 0: a root. A parent's id is smaller; what breaks that
** in a damaged file is taken for a root. */
static uint32_t parent_of(const struct ljp_profile *p, uint32_t trace)
{
  uint32_t parent = p->traces[trace].parent;
  return parent && p->traces[parent].id < p->traces[trace].id ? parent : 0;
}

/* Children in the given order. */
static void link_up(const struct ljp_profile *p, struct ljp_jit *jit,
                    const uint32_t *order, uint32_t count)
{
  for (uint32_t i = 0; i < p->trace_count; i++)
    jit->traces[i].child = jit->traces[i].sibling = 0;
  for (uint32_t i = count; i-- > 0;) {
    uint32_t at = order[i], parent = parent_of(p, at);
    jit->traces[at].sibling = jit->traces[parent].child;
    jit->traces[parent].child = at;
  }
}

/* What a trace and its side traces count, depth first. */
static void sum_up_traces(const struct ljp_profile *p, struct ljp_jit *jit)
{
  struct ljp_jit_trace *traces = jit->traces;
  for (uint32_t at = traces[0].child; at;) {
    add(&traces[at].tree, &traces[at].self);
    add(&traces[at].tree, &traces[at].exit);
    if (traces[at].child) {
      at = traces[at].child;
      continue;
    }
    for (;;) {
      uint32_t parent = parent_of(p, at), next = traces[at].sibling;
      if (parent) {
        add(&traces[parent].tree, &traces[at].tree);
        traces[parent].shown |= traces[at].shown;
      }
      at = next ? next : parent;
      if (next || !at)
        break;
    }
  }
}

static const struct ljp_jit_trace *sort_traces;

static int by_tree(const void *a, const void *b)
{
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  const struct ljp_value *x = &sort_traces[i].tree, *y = &sort_traces[k].tree;
  if (x->weight != y->weight)
    return x->weight > y->weight ? -1 : 1;
  if (x->count != y->count)
    return x->count > y->count ? -1 : 1;
  return i < k ? -1 : 1;
}

static bool grow_tree(const struct ljp_profile *p, struct ljp_jit *jit)
{
  uint32_t count = p->trace_count ? p->trace_count - 1 : 0;
  uint32_t *order = malloc(((size_t)count + 1) * sizeof *order);
  if (!order)
    return false;
  for (uint32_t i = 0; i < count; i++) {
    order[i] = i + 1;
    jit->traces[i + 1].shown |= p->traces[i + 1].known;
  }
  link_up(p, jit, order, count);
  sum_up_traces(p, jit);
  sort_traces = jit->traces;
  if (count)
    qsort(order, count, sizeof *order, by_tree);
  link_up(p, jit, order, count);
  free(order);
  return true;
}

/* -- Events --------------------------------------------------------------------- */

static const struct ljp_profile *sort_profile;

static int by_time(const void *a, const void *b)
{
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  const struct ljp_profile_trace_event *x = &sort_profile->trace_events[i];
  const struct ljp_profile_trace_event *y = &sort_profile->trace_events[k];
  if (x->time_ns != y->time_ns)
    return x->time_ns < y->time_ns ? -1 : 1;
  return i < k ? -1 : 1;
}

/* What has become of each trace. A flush ends all of its VM's. */
static bool follow(const struct ljp_profile *p, struct ljp_jit *jit)
{
  uint32_t n = p->trace_event_count;
  uint32_t *order = malloc(((size_t)n + 1) * sizeof *order);
  uint32_t *next = calloc(p->trace_count + (size_t)1, sizeof *next);
  uint32_t *alive = calloc(p->vm_count + (size_t)1, sizeof *alive);
  bool ok = order && next && alive;
  for (uint32_t i = 0; ok && i < n; i++)
    order[i] = i;
  sort_profile = p;
  if (ok && n)
    qsort(order, n, sizeof *order, by_time);
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

/* Functions by what events know of them. */
struct names {
  struct ljp_index index;
};

static uint32_t name_hash(uint32_t file, uint32_t name, uint32_t first_line)
{
  return ljp_hash_end(
      ljp_mix(ljp_mix((uint64_t)file << 32 | name, 0), first_line));
}

static bool name_functions(const struct ljp_profile *p, struct names *names)
{
  for (uint32_t i = 1; i < p->function_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[p->functions[i].frame];
    if (f->kind != LJP_FRAME_LUA && f->kind != LJP_FRAME_LUA_INLINED)
      continue;
    if (!ljp_index_reserve(&names->index))
      return false;
    uint32_t hash = name_hash(f->file, f->name, f->first_line);
    struct ljp_index_slot *slot = ljp_index_at(&names->index, hash);
    while (slot->item)
      slot = ljp_index_next(&names->index, slot);
    ljp_index_put(&names->index, slot, hash, i);
  }
  return ljp_index_reserve(&names->index);
}

static uint32_t function_of(const struct ljp_profile *p,
                            const struct names *names,
                            const struct ljp_profile_trace_event *e)
{
  uint32_t hash = name_hash(e->file, e->name, e->first_line);
  struct ljp_index_slot *slot = ljp_index_at(&names->index, hash);
  for (; slot->item; slot = ljp_index_next(&names->index, slot)) {
    const struct ljp_profile_frame *f =
        &p->frames[p->functions[slot->item - 1].frame];
    if (slot->hash == hash && f->file == e->file && f->name == e->name &&
        f->first_line == e->first_line)
      return slot->item - 1;
  }
  return 0;
}

/* The innermost Lua frame of where it gave up. */
static uint32_t lua_frame(const struct ljp_profile *p, uint32_t node)
{
  for (; node; node = p->nodes[node].parent) {
    unsigned kind = p->frames[p->nodes[node].frame].kind;
    if (kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED)
      return p->nodes[node].frame;
  }
  return 0;
}

static int by_place(const void *a, const void *b)
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

static int by_count(const void *a, const void *b)
{
  const struct ljp_jit_place *x = a, *y = b;
  if (x->reason != y->reason)
    return x->reason < y->reason ? -1 : 1;
  if (x->count != y->count)
    return x->count > y->count ? -1 : 1;
  return by_place(a, b);
}

/* Sorts, and adds equal ones up. */
static uint32_t merge_places(struct ljp_jit_place *places, uint32_t count)
{
  uint32_t n = 0;
  if (!count)
    return 0;
  qsort(places, count, sizeof *places, by_place);
  for (uint32_t i = 0; i < count; i++) {
    if (n && by_place(&places[n - 1], &places[i]) == 0)
      places[n - 1].count += places[i].count;
    else
      places[n++] = places[i];
  }
  qsort(places, n, sizeof *places, by_count);
  return n;
}

static bool take_events(const struct ljp_profile *p, struct ljp_jit *jit)
{
  struct names names = {0};
  size_t room = (size_t)p->trace_event_count + 1;
  jit->places = malloc(room * sizeof *jit->places);
  jit->black = malloc(room * sizeof *jit->black);
  bool ok = jit->places && jit->black && name_functions(p, &names);
  for (uint32_t i = 0; ok && i < p->trace_event_count; i++) {
    const struct ljp_profile_trace_event *e = &p->trace_events[i];
    jit->has_events = true;
    if (e->time_ns < p->options.from_ns ||
        (p->options.to_ns && e->time_ns >= p->options.to_ns))
      continue;
    if (e->what < sizeof jit->events / sizeof *jit->events)
      jit->events[e->what]++;
    struct ljp_jit_place place = {.name = e->name,
                                  .file = e->file,
                                  .first_line = e->first_line,
                                  .line = e->line,
                                  .function = function_of(p, &names, e),
                                  .count = 1};
    if (e->what == LJP_TRACE_ABORT) {
      place.reason = e->reason;
      place.parent = e->parent;
      place.parent_exit = e->parent_exit;
      place.at = lua_frame(p, e->stack);
      jit->places[jit->place_count++] = place;
      if (e->parent)
        jit->traces[e->parent].blamed++;
    } else if (e->what == LJP_TRACE_BLACKLIST) {
      jit->black[jit->black_count++] = place;
    }
  }
  ljp_index_fini(&names.index);
  if (ok) {
    jit->place_count = merge_places(jit->places, jit->place_count);
    jit->black_count = merge_places(jit->black, jit->black_count);
  }
  return ok;
}

static int by_lost(const void *a, const void *b)
{
  const struct ljp_jit_reason *x = a, *y = b;
  if (x->lost.weight != y->lost.weight)
    return x->lost.weight > y->lost.weight ? -1 : 1;
  if (x->count != y->count)
    return x->count > y->count ? -1 : 1;
  return x->reason < y->reason ? -1 : x->reason > y->reason;
}

/* What it cost that this function was not compiled, once for each reason. */
static void lose(const struct ljp_jit *jit, struct ljp_jit_reason *reason,
                 uint32_t *seen, uint32_t mark, uint32_t function)
{
  static const enum ljp_jit_kind kinds[] = {LJP_JIT_INTERPRETED, LJP_JIT_RECORD,
                                            LJP_JIT_OPT, LJP_JIT_ASM};
  if (!function || seen[function] == mark)
    return;
  seen[function] = mark;
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
    add(&reason->lost, &jit->functions[function][kinds[i]]);
}

static bool sum_up_reasons(const struct ljp_profile *p, struct ljp_jit *jit)
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
    lose(jit, reason, seen, jit->reason_count, place->function);
    if (place->at)
      lose(jit, reason, seen, jit->reason_count, p->frames[place->at].function);
  }
  if (jit->reason_count)
    qsort(jit->reasons, jit->reason_count, sizeof *jit->reasons, by_lost);
  free(seen);
  return true;
}

bool ljp_jit_make(const struct ljp_report *r, struct ljp_jit *jit)
{
  const struct ljp_profile *p = r->p;
  *jit = (struct ljp_jit){0};
  jit->functions =
      calloc((size_t)p->function_count + 1, sizeof *jit->functions);
  jit->traces = calloc((size_t)p->trace_count + 1, sizeof *jit->traces);
  bool ok = jit->functions && jit->traces;
  if (ok)
    count_samples(r, jit);
  if (ok && grow_tree(p, jit) && follow(p, jit) && take_events(p, jit) &&
      sum_up_reasons(p, jit))
    return true;
  ljp_jit_fini(jit);
  return false;
}

void ljp_jit_fini(struct ljp_jit *jit)
{
  free(jit->functions);
  free(jit->traces);
  free(jit->places);
  free(jit->reasons);
  free(jit->black);
  *jit = (struct ljp_jit){0};
}
