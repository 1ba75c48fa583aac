/*
** Sums: what the rules ask of the facts. Each question is one or two passes
** over cells, nodes or rows.
*/
#include <string.h>

#include "tools/advise/advise.h"

void advise_add(struct advise_value *to, struct advise_value value)
{
  to->count += value.count;
  to->weight += value.weight;
  to->looks += value.looks;
}

static uint32_t sums_function(const struct advise_facts *a, uint32_t frame)
{
  return a->p->frames[frame].function;
}

struct advise_value advise_sum(const struct advise_facts *a, uint32_t function,
                               unsigned works)
{
  struct advise_value sum = {0};
  for (uint32_t i = 0; i < a->cell_count; i++) {
    const struct advise_cell *c = &a->cells[i];
    if ((works >> c->work & 1) &&
        (!function || sums_function(a, c->frame) == function))
      advise_add(&sum, c->value);
  }
  return sum;
}

/* The heaviest cell of the function with such work; NULL: none. */
static const struct advise_cell *sums_heaviest(const struct advise_facts *a,
                                               uint32_t function,
                                               unsigned works, bool calls)
{
  const struct advise_cell *best = NULL;
  for (uint32_t i = 0; i < a->cell_count; i++) {
    const struct advise_cell *c = &a->cells[i];
    if ((works >> c->work & 1) && sums_function(a, c->frame) == function &&
        (c->callee || !calls) &&
        (!best || c->value.weight > best->value.weight))
      best = c;
  }
  return best;
}

uint32_t advise_line(const struct advise_facts *a, uint32_t function,
                     unsigned works)
{
  const struct advise_cell *c = sums_heaviest(a, function, works, false);
  return c ? c->frame : 0;
}

uint32_t advise_callee(const struct advise_facts *a, uint32_t function,
                       unsigned works)
{
  const struct advise_cell *c = sums_heaviest(a, function, works, true);
  return c ? sums_function(a, c->callee) : 0;
}

struct advise_value advise_below(const struct advise_facts *a,
                                 uint32_t function)
{
  const struct ljp_profile *p = a->p;
  bool *below = a->room.nodes;
  struct advise_value sum = {0};
  below[0] = false;
  for (uint32_t i = 1; i < p->node_count; i++)
    below[i] = below[p->nodes[i].parent] ||
               sums_function(a, p->nodes[i].frame) == function;
  for (uint32_t i = 0; i < p->row_count; i++)
    if (below[p->rows[i].node] && advise_is_time(a, &p->rows[i]))
      advise_add(&sum, advise_row_value(a, &p->rows[i]));
  return sum;
}

enum { SUMS_CALLER = 1, SUMS_DIRECT = 2 };

/* Marks each function that calls one of these two (0: none), directly or not. */
static uint8_t *sums_callers(const struct advise_facts *a, uint32_t function,
                             uint32_t other)
{
  const struct ljp_profile *p = a->p;
  bool *above = a->room.nodes;
  uint8_t *callers = a->room.functions;
  memset(above, 0, (p->node_count + (size_t)1) * sizeof *above);
  memset(callers, 0, (p->function_count + (size_t)1) * sizeof *callers);
  for (uint32_t i = p->node_count; i-- > 1;) { /* Children come first. */
    uint32_t at = sums_function(a, p->nodes[i].frame);
    uint32_t parent = p->nodes[i].parent, outer = a->nodes[parent].lua;
    bool here = at == function || (other && at == other);
    if (above[i])
      callers[at] |= SUMS_CALLER;
    if (here && outer)
      callers[sums_function(a, p->nodes[outer].frame)] |= SUMS_DIRECT;
    if (above[i] || here)
      above[parent] = true;
  }
  return callers;
}

/* Whether the node runs in a trace that is a loop of its own: what calls it
** does not matter. */
static bool sums_loops(const struct advise_facts *a, uint32_t node)
{
  const struct ljp_profile_trace *t = &a->p->traces[a->nodes[node].trace];
  if (t->root)
    t = &a->p->traces[t->root];
  return ljp_str_same(ljp_profile_str(a->p, t->link_type),
                      (struct ljp_str){"loop", 4});
}

struct advise_value advise_around(const struct advise_facts *a,
                                  uint32_t function, uint32_t other, bool loops,
                                  unsigned everywhere)
{
  const struct ljp_profile *p = a->p;
  const uint8_t *callers = sums_callers(a, function, other);
  bool *below = a->room.nodes, *near = a->room.more_nodes;
  struct advise_value sum = {0};
  below[0] = near[0] = false;
  for (uint32_t i = 1; i < p->node_count; i++) {
    uint32_t at = sums_function(a, p->nodes[i].frame);
    below[i] =
        below[p->nodes[i].parent] || at == function || (other && at == other);
    near[i] = near[p->nodes[i].parent] || (callers[at] & SUMS_DIRECT);
  }
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    if (!advise_is_time(a, row))
      continue;
    const struct advise_node *n = &a->nodes[row->node];
    uint32_t at = n->lua ? sums_function(a, p->nodes[n->lua].frame) : 0;
    enum advise_work work = advise_row_work(a, row);
    bool loop =
        n->compiled && work == WORK_COMPILED && sums_loops(a, row->node);
    if ((below[row->node] && (loops || !loop)) || (near[row->node] && !loop) ||
        (at && callers[at] && !n->compiled) || (everywhere >> work & 1))
      advise_add(&sum, advise_row_value(a, row));
  }
  return sum;
}

bool advise_runs_below(const struct advise_facts *a, uint32_t function,
                       uint32_t outer)
{
  const struct ljp_profile *p = a->p;
  bool *below = a->room.nodes;
  bool found = false;
  below[0] = false;
  for (uint32_t i = 1; !found && i < p->node_count; i++) {
    uint32_t at = p->frames[p->nodes[i].frame].function;
    below[i] = below[p->nodes[i].parent] || at == outer;
    found = below[p->nodes[i].parent] && at == function;
  }
  return found;
}

uint32_t advise_functions(const struct advise_facts *a, unsigned works,
                          uint32_t *functions, uint32_t room)
{
  uint64_t *sums = a->room.sums;
  uint32_t count = 0;
  memset(sums, 0, (a->p->function_count + (size_t)1) * sizeof *sums);
  for (uint32_t i = 0; i < a->cell_count; i++)
    if (a->cells[i].frame && (works >> a->cells[i].work & 1))
      sums[sums_function(a, a->cells[i].frame)] += a->cells[i].value.weight;
  while (count < room) {
    uint32_t best = 0;
    for (uint32_t f = 1; f < a->p->function_count; f++)
      if (sums[f] > sums[best] || (!best && sums[f]))
        best = f;
    if (!best || !sums[best])
      break;
    functions[count++] = best;
    sums[best] = 0;
  }
  return count;
}

bool advise_builds(const struct advise_facts *a, uint32_t function,
                   unsigned works)
{
  const struct ljp_profile *p = a->p;
  uint64_t nested = 0, sum = 0;
  bool *below = a->room.nodes;
  below[0] = false;
  for (uint32_t i = 1; i < p->node_count; i++)
    below[i] = below[p->nodes[i].parent] ||
               p->frames[p->nodes[i].frame].function == function;
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    uint32_t lua = a->nodes[row->node].lua;
    if (!lua || !advise_is_time(a, row) ||
        p->frames[p->nodes[lua].frame].function != function ||
        !(works >> advise_row_work(a, row) & 1))
      continue;
    sum += row->weight;
    nested += below[p->nodes[lua].parent] ? row->weight : 0;
  }
  return nested > sum / 2 && a->marked.weight > a->freed.weight / 2;
}
