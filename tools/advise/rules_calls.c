/*
** Rules about C code that calls Lua: table.sort with a comparator, functions
** that call through the C API, callbacks of the FFI.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/advise/advise.h"

enum { RULE_FUNCTIONS = 8 };

/* What is below the calls of table.sort by one Lua function. */
struct calls_sum {
  struct advise_value all, lua;
  uint32_t frame;
  uint32_t node; /* Of the C function. */
  uint64_t most;
};

static bool calls_builtin(const struct ljp_profile *p, uint32_t node,
                          const char *name)
{
  const struct ljp_profile_frame *f = &p->frames[p->nodes[node].frame];
  return f->kind == LJP_FRAME_BUILTIN &&
         ljp_str_same(ljp_profile_str(p, f->name),
                      (struct ljp_str){name, (uint32_t)strlen(name)});
}

void advise_rule_sorts(const struct advise_facts *a,
                       struct advise_findings *all)
{
  const struct ljp_profile *p = a->p;
  uint32_t *sort = calloc((size_t)p->node_count + 1, sizeof *sort);
  struct calls_sum *sums = calloc((size_t)p->function_count + 1, sizeof *sums);
  for (uint32_t i = 1; sort && i < p->node_count; i++)
    sort[i] = calls_builtin(p, i, "table.sort") ? i : sort[p->nodes[i].parent];
  for (uint32_t i = 0; sort && sums && i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    uint32_t s = sort[row->node], caller = s ? a->nodes[s].lua : 0;
    if (!caller || !advise_is_time(a, row))
      continue;
    struct advise_value v = advise_row_value(a, row);
    uint32_t frame = p->nodes[caller].frame;
    struct calls_sum *sum = &sums[p->frames[frame].function];
    advise_add(&sum->all, v);
    if (a->nodes[row->node].lua != caller)
      advise_add(&sum->lua, v); /* In the comparator. */
    if (v.weight > sum->most) {
      sum->most = v.weight;
      sum->frame = frame;
    }
  }
  for (uint32_t i = 1; sort && sums && i < p->function_count; i++) {
    struct advise_finding f = {.kind = LJP_ADVISE_SORT,
                               .function = i,
                               .frame = sums[i].frame,
                               .evidence = sums[i].lua,
                               .bound = sums[i].all};
    if (!f.evidence.count)
      continue;
    snprintf(f.text, sizeof f.text, "samples in the comparator");
    advise_found(a, all, &f);
  }
  all->no_memory |= !sort || !sums;
  free(sort);
  free(sums);
}

/* The node of the C function, called by Lua, for which a row enters or leaves a
** Lua function through the C API; 0: the row does something else. */
static uint32_t calls_crossed(const struct advise_facts *a,
                              const struct ljp_profile_row *row)
{
  const struct ljp_profile *p = a->p;
  const struct advise_node *n = &a->nodes[row->node];
  uint32_t at = 0;
  if (n->callee && n->marks & MARK_CALL)
    at = n->callee;
  else if (n->lua && !n->callee && advise_row_work(a, row) == WORK_EXIT)
    at = a->nodes[p->nodes[n->lua].parent].callee;
  struct ljp_str name = ljp_profile_str(p, p->frames[p->nodes[at].frame].name);
  bool ffi = name.len >= 4 && memcmp(name.data, "ffi.", 4) == 0;
  return a->nodes[at].lua && !ffi && !calls_builtin(p, at, "table.sort") ? at
                                                                         : 0;
}

/* All time below the calls of this C function by this Lua function. */
static struct advise_value calls_below(const struct advise_facts *a,
                                       uint32_t function, uint32_t called)
{
  const struct ljp_profile *p = a->p;
  struct advise_value sum = {0};
  bool *below = a->room.nodes;
  below[0] = false;
  for (uint32_t i = 1; i < p->node_count; i++) {
    const struct advise_node *n = &a->nodes[i];
    below[i] = below[p->nodes[i].parent] ||
               (n->callee == i && n->lua &&
                p->frames[p->nodes[i].frame].function == called &&
                p->frames[p->nodes[n->lua].frame].function == function);
  }
  for (uint32_t i = 0; i < p->row_count; i++)
    if (below[p->rows[i].node] && advise_is_time(a, &p->rows[i]))
      advise_add(&sum, advise_row_value(a, &p->rows[i]));
  return sum;
}

/* A function that calls Lua once, for all the work of the program, is no
** finding: only the time of entering and leaving is evidence. */
void advise_rule_api_calls(const struct advise_facts *a,
                           struct advise_findings *all)
{
  static const struct advise_reason gsub = {
      .anchor = "callbacks-from-c",
      .remedy = "give string.gsub a replacement string or a table in place of "
                "the function, or a pattern that matches longer pieces"};
  const struct ljp_profile *p = a->p;
  struct calls_sum *sums = calloc((size_t)p->function_count + 1, sizeof *sums);
  for (uint32_t i = 0; sums && i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    uint32_t at = advise_is_time(a, row) ? calls_crossed(a, row) : 0;
    if (!at)
      continue;
    struct advise_value v = advise_row_value(a, row);
    uint32_t frame = p->nodes[a->nodes[at].lua].frame;
    struct calls_sum *sum = &sums[p->frames[frame].function];
    advise_add(&sum->all, v);
    if (v.weight > sum->most) {
      sum->most = v.weight;
      sum->frame = frame;
      sum->node = at;
    }
  }
  all->no_memory |= !sums;
  for (uint32_t i = 1; sums && i < p->function_count; i++) {
    struct advise_finding f = {
        .kind = LJP_ADVISE_CALLBACK,
        .function = i,
        .frame = sums[i].frame,
        .callee = p->frames[p->nodes[sums[i].node].frame].function,
        .evidence = sums[i].all};
    if (!sums[i].node || f.evidence.weight < a->all.weight / 20)
      continue;
    if (calls_builtin(p, sums[i].node, "string.gsub"))
      f.reason = &gsub;
    f.bound = calls_below(a, i, f.callee);
    snprintf(f.text, sizeof f.text,
             "entering and leaving the Lua functions that C code calls");
    advise_found(a, all, &f);
  }
  free(sums);
}

/* The Lua function that called the C code that calls back, by the heaviest row
** of the callback; 0: unknown. */
static uint32_t calls_outer(const struct advise_facts *a, uint32_t function)
{
  const struct ljp_profile *p = a->p;
  for (uint32_t i = 1; i < p->node_count; i++) {
    uint32_t parent = p->nodes[i].parent;
    const struct ljp_profile_frame *f = &p->frames[p->nodes[i].frame];
    if (f->function == function &&
        p->frames[p->nodes[parent].frame].kind == LJP_FRAME_HOST &&
        a->nodes[parent].lua)
      return p->frames[p->nodes[a->nodes[parent].lua].frame].function;
  }
  return 0;
}

void advise_rule_callbacks(const struct advise_facts *a,
                           struct advise_findings *all)
{
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n =
      advise_functions(a, WORK_BIT(CALLBACK), functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    struct advise_finding f = {
        .kind = LJP_ADVISE_CALLBACK,
        .function = functions[i],
        .frame = advise_line(a, functions[i], WORK_ALL),
        .evidence = advise_sum(a, functions[i], WORK_BIT(CALLBACK)),
        .bound = advise_below(a, functions[i])};
    uint32_t outer = calls_outer(a, functions[i]);
    if (!outer) /* It called the C code that calls back. */
      continue;
    advise_add(&f.bound, advise_sum(a, outer, WORK_BIT(CALLED)));
    advise_add(&f.evidence, advise_sum(a, functions[i], WORK_BIT(EXIT)));
    snprintf(f.text, sizeof f.text,
             "entering and leaving a callback of the FFI");
    advise_found(a, all, &f);
  }
}
