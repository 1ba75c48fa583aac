/*
** Counts samples for `ljprof report --jit`: what the VM did, in which trace and
** in which function. A trace's id is larger than that of its parent; a parent
** that breaks this rule (in a damaged file) is ignored.
*/
#include "tools/report/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/frame_name.h"
#include "src/base/assert.h"

void ljp_jit_add(struct ljp_value *to, const struct ljp_value *from)
{
  to->count += from->count;
  to->weight += from->weight;
}

struct ljp_value ljp_jit_sum(const struct ljp_value kinds[LJP_JIT_KINDS])
{
  struct ljp_value all = {0};
  for (unsigned i = 0; i < LJP_JIT_KINDS; i++) {
    all.count += kinds[i].count;
    all.weight += kinds[i].weight;
  }
  return all;
}

static bool jit_is_empty(const struct ljp_value *v)
{
  return !v->count && !v->weight;
}

/* The innermost Lua function of a stack, and the trace that runs. */
struct inside {
  uint32_t function, trace;
  bool compiled;
};

static struct inside jit_inside(const struct ljp_profile *p, uint32_t node)
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

static enum ljp_jit_kind jit_kind(unsigned state, const struct inside *in)
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

static void jit_count_samples(const struct ljp_report *r, struct ljp_jit *jit)
{
  const struct ljp_profile *p = r->p;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_value *v = &r->select.rows[i];
    if (!v->count && !v->weight)
      continue;
    struct inside in = jit_inside(p, p->rows[i].node);
    enum ljp_jit_kind kind =
        jit_kind(p->contexts[p->rows[i].context].state, &in);
    ljp_jit_add(&jit->kinds[kind], v);
    ljp_jit_add(&jit->functions[in.function][kind], v);
    if (!in.trace)
      continue;
    struct ljp_jit_trace *t = &jit->traces[in.trace];
    t->shown = true;
    if (kind == LJP_JIT_EXIT)
      ljp_jit_add(&t->exit, v);
    else if (kind == LJP_JIT_COMPILED || kind == LJP_JIT_GC)
      ljp_jit_add(&t->self, v);
  }
}

/* The parent of a side trace; 0: a root trace. */
static uint32_t jit_parent(const struct ljp_profile *p, uint32_t trace)
{
  uint32_t parent = p->traces[trace].parent;
  ljp_assert(parent < p->trace_count);
  return parent && p->traces[parent].id < p->traces[trace].id ? parent : 0;
}

/* Links traces to their parents in the given order. */
static void jit_link_traces(const struct ljp_profile *p, struct ljp_jit *jit,
                            const uint32_t *order, uint32_t count)
{
  for (uint32_t i = 0; i < p->trace_count; i++)
    jit->traces[i].child = jit->traces[i].sibling = 0;
  for (uint32_t i = count; i-- > 0;) {
    uint32_t at = order[i], parent = jit_parent(p, at);
    jit->traces[at].sibling = jit->traces[parent].child;
    jit->traces[parent].child = at;
  }
}

/* Adds the sums of side traces to their parents, depth first. */
static void jit_sum_up_traces(const struct ljp_profile *p, struct ljp_jit *jit)
{
  struct ljp_jit_trace *traces = jit->traces;
  for (uint32_t at = traces[0].child; at;) {
    ljp_jit_add(&traces[at].tree, &traces[at].self);
    ljp_jit_add(&traces[at].tree, &traces[at].exit);
    if (traces[at].child) {
      at = traces[at].child;
      continue;
    }
    for (;;) {
      uint32_t parent = jit_parent(p, at), next = traces[at].sibling;
      if (parent) {
        ljp_jit_add(&traces[parent].tree, &traces[at].tree);
        traces[parent].shown |= traces[at].shown;
      }
      at = next ? next : parent;
      if (next || !at)
        break;
    }
  }
}

static const struct ljp_jit_trace *jit_sort_traces;

static int jit_by_tree(const void *a, const void *b)
{
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  const struct ljp_value *x = &jit_sort_traces[i].tree,
                         *y = &jit_sort_traces[k].tree;
  if (x->weight != y->weight)
    return x->weight > y->weight ? -1 : 1;
  if (x->count != y->count)
    return x->count > y->count ? -1 : 1;
  return i < k ? -1 : 1;
}

static bool jit_make_tree(const struct ljp_profile *p, struct ljp_jit *jit)
{
  uint32_t count = p->trace_count ? p->trace_count - 1 : 0;
  uint32_t *order = malloc(((size_t)count + 1) * sizeof *order);
  if (!order)
    return false;
  for (uint32_t i = 0; i < count; i++) {
    order[i] = i + 1;
    jit->traces[i + 1].shown |= p->traces[i + 1].known;
  }
  jit_link_traces(p, jit, order, count);
  jit_sum_up_traces(p, jit);
  jit_sort_traces = jit->traces;
  if (count)
    qsort(order, count, sizeof *order, jit_by_tree);
  jit_link_traces(p, jit, order, count);
  free(order);
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
    jit_count_samples(r, jit);
  if (ok && jit_make_tree(p, jit) && ljp_jit_make_events(p, jit))
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
  free(jit->blacklisted);
  *jit = (struct ljp_jit){0};
}

const char *ljp_jit_fate(const struct ljp_jit_trace *trace)
{
  static const char *const fates[] = {"alive", "freed", "flushed"};
  return fates[trace->fate];
}

void ljp_jit_each_trace(const struct ljp_report *r, const struct ljp_jit *jit,
                        void (*visit)(void *ctx, uint32_t at, unsigned depth),
                        void *ctx)
{
  unsigned depth = 0;
  for (uint32_t at = jit->traces[0].child; at;) {
    if (jit->traces[at].shown)
      visit(ctx, at, depth);
    if (jit->traces[at].child) {
      at = jit->traces[at].child;
      depth++;
      continue;
    }
    while (at && !jit->traces[at].sibling) {
      at = depth ? r->p->traces[at].parent : 0;
      depth -= depth > 0;
    }
    if (at)
      at = jit->traces[at].sibling;
  }
}

static const struct ljp_jit *jit_sort;

static int jit_by_function_time(const void *a, const void *b)
{
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  struct ljp_value x = ljp_jit_sum(jit_sort->functions[i]);
  struct ljp_value y = ljp_jit_sum(jit_sort->functions[k]);
  if (x.weight != y.weight)
    return x.weight > y.weight ? -1 : 1;
  if (x.count != y.count)
    return x.count > y.count ? -1 : 1;
  return i < k ? -1 : 1;
}

uint32_t *ljp_jit_functions(const struct ljp_report *r,
                            const struct ljp_jit *jit, uint32_t *count)
{
  uint32_t *order = malloc(((size_t)r->p->function_count + 1) * sizeof *order);
  *count = 0;
  for (uint32_t i = 0; order && i < r->p->function_count; i++) {
    struct ljp_value all = ljp_jit_sum(jit->functions[i]);
    if (!jit_is_empty(&all))
      order[(*count)++] = i;
  }
  jit_sort = jit;
  if (order && *count)
    qsort(order, *count, sizeof *order, jit_by_function_time);
  return order;
}

void ljp_jit_function_name(const struct ljp_report *r, uint32_t function,
                           char name[LJP_JIT_NAME_BYTES])
{
  if (function)
    ljp_function_name(r->p, function, name, LJP_JIT_NAME_BYTES);
  else
    snprintf(name, LJP_JIT_NAME_BYTES, "(no Lua function)");
}
