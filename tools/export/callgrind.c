/*
** Writes the format of callgrind: the own cost of each function by line, and
** the cost of each call from one function to another. Own costs add up to the
** totals. A stack counts once for a call that it contains several times
** (recursion). A sampling profiler does not know how often a function was
** called; the number of calls is the number of samples that contain the call.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "tools/export/export.h"

/* The own cost of a line (callee is NONE) or the cost of a call. The first
** three fields are the key. */
struct cost {
  uint32_t function, line, callee;
  uint64_t last_row; /* The row counted last, + 1: a row counts once. */
  uint64_t value[LJP_VALUE_COUNT];
  uint64_t seen;
};

enum { NONE = UINT32_MAX };

struct callgrind {
  struct ljp_export *e;
  enum ljp_value_id types[LJP_VALUE_COUNT];
  unsigned type_count;
  struct cost *costs;
  uint32_t count, room;
  uint32_t *slots; /* Size is room * 2. 0: free; else index + 1. */
  bool *named;     /* Functions whose name has been written. */
  uint64_t totals[LJP_VALUE_COUNT];
};

static uint32_t *callgrind_slot(const struct callgrind *c, uint32_t function,
                                uint32_t line, uint32_t callee)
{
  uint64_t hash =
      ((uint64_t)function << 32 | line) * UINT64_C(0x9e3779b97f4a7c15);
  hash = (hash ^ hash >> 29 ^ callee) * UINT64_C(0xbf58476d1ce4e5b9);
  uint32_t mask = c->room * 2 - 1, i = (uint32_t)(hash >> 32) & mask;
  for (; c->slots[i]; i = (i + 1) & mask) {
    const struct cost *cost = &c->costs[c->slots[i] - 1];
    if (cost->function == function && cost->line == line &&
        cost->callee == callee)
      break;
  }
  return &c->slots[i];
}

static bool callgrind_grow(struct callgrind *c)
{
  uint32_t room = c->room ? c->room * 2 : 1024;
  struct cost *costs =
      room > UINT32_C(1) << 28 ? NULL : realloc(c->costs, room * sizeof *costs);
  if (!costs)
    return false;
  c->costs = costs;
  free(c->slots);
  c->slots = calloc(room * (size_t)2, sizeof *c->slots);
  c->room = room;
  for (uint32_t i = 0; c->slots && i < c->count; i++)
    *callgrind_slot(c, costs[i].function, costs[i].line, costs[i].callee) =
        i + 1;
  return c->slots != NULL;
}

static struct cost *callgrind_cost(struct callgrind *c, uint32_t function,
                                   uint32_t line, uint32_t callee)
{
  if (c->count == c->room && !callgrind_grow(c))
    return NULL;
  ljp_assert(c->count < c->room);
  uint32_t *slot = callgrind_slot(c, function, line, callee);
  if (!*slot) {
    c->costs[c->count] =
        (struct cost){.function = function, .line = line, .callee = callee};
    *slot = ++c->count;
  }
  return &c->costs[*slot - 1];
}

static bool callgrind_add(struct callgrind *c, struct cost *cost, uint32_t row,
                          const uint64_t *values)
{
  if (!cost)
    return false;
  if (cost->last_row == (uint64_t)row + 1)
    return true;
  cost->last_row = (uint64_t)row + 1;
  cost->seen += c->e->p->rows[row].count ? c->e->p->rows[row].count : 1;
  for (unsigned i = 0; i < c->type_count; i++)
    cost->value[i] += values[i];
  return true;
}

static bool callgrind_add_row(struct callgrind *c, uint32_t row)
{
  static uint32_t path[LJP_EXPORT_DEPTH];
  const struct ljp_profile *p = c->e->p;
  uint64_t values[LJP_VALUE_COUNT], any = 0;
  uint32_t depth;
  for (unsigned i = 0; i < c->type_count; i++) {
    values[i] = ljp_export_value(c->e, row, c->types[i]);
    c->totals[i] += values[i];
    any |= values[i];
  }
  if (!any)
    return true;
  ljp_export_path(p, p->rows[row].node, path, &depth);
  const struct ljp_profile_frame *frame =
      &p->frames[depth ? p->nodes[path[depth - 1]].frame : 0];
  if (!callgrind_add(c, callgrind_cost(c, frame->function, frame->line, NONE),
                     row, values))
    return false;
  for (uint32_t i = 0; i + 1 < depth; i++) {
    const struct ljp_profile_frame *caller =
        &p->frames[p->nodes[path[i]].frame];
    const struct ljp_profile_frame *callee =
        &p->frames[p->nodes[path[i + 1]].frame];
    if (!callgrind_add(
            c,
            callgrind_cost(c, caller->function, caller->line, callee->function),
            row, values))
      return false;
  }
  return true;
}

static int callgrind_by_function(const void *a, const void *b)
{
  const struct cost *x = a, *y = b;
  if (x->function != y->function)
    return x->function < y->function ? -1 : 1;
  if (x->callee != y->callee) /* Own costs come first. */
    return x->callee + 1 < y->callee + 1 ? -1 : 1;
  return x->line < y->line ? -1 : x->line > y->line;
}

/* Writes "ob=", "fl=" and "fn=", or the same for a callee. A name is written
** only once and then referred to by its number. */
static void callgrind_put_function(struct callgrind *c, uint32_t function,
                                   const char *prefix)
{
  const struct ljp_profile *p = c->e->p;
  struct ljp_print *out = c->e->out;
  const struct ljp_profile_frame *f = &p->frames[p->functions[function].frame];
  char name[LJP_FRAME_NAME_BYTES];
  struct ljp_str file = ljp_profile_str(p, f->file);
  struct ljp_str module = ljp_profile_str(p, p->modules[f->module].path);
  ljp_print_format(out, "%sob=", prefix);
  ljp_print_plain(out, module.len ? module : ljp_str("???", 3), 0);
  ljp_print_format(out, *prefix ? "\n%sfi=" : "\n%sfl=", prefix);
  ljp_print_plain(out, file.len ? file : ljp_str("???", 3), 0);
  ljp_print_format(out, "\n%sfn=(%" PRIu32 ")", prefix, function + 1);
  if (!c->named[function]) {
    size_t n = ljp_function_name(p, function, name, sizeof name);
    ljp_print_str(out, " ");
    ljp_print_plain(out, ljp_str(name, n < sizeof name ? n : sizeof name - 1),
                    0);
    c->named[function] = true;
  }
  ljp_print_str(out, "\n");
}

static void callgrind_put_costs(const struct callgrind *c,
                                const struct cost *cost)
{
  ljp_print_dec(c->e->out, cost->line);
  for (unsigned i = 0; i < c->type_count; i++) {
    ljp_print_str(c->e->out, " ");
    ljp_print_dec(c->e->out, cost->value[i]);
  }
  ljp_print_str(c->e->out, "\n");
}

static void callgrind_put_totals(const struct callgrind *c, const char *name)
{
  ljp_print_str(c->e->out, name);
  for (unsigned i = 0; i < c->type_count; i++) {
    ljp_print_str(c->e->out, " ");
    ljp_print_dec(c->e->out, c->totals[i]);
  }
  ljp_print_str(c->e->out, "\n");
}

static void callgrind_put_all(struct callgrind *c)
{
  const struct ljp_profile *p = c->e->p;
  struct ljp_print *out = c->e->out;
  ljp_print_str(out, "# callgrind format\nversion: 1\ncreator: ljprof\ncmd: ");
  ljp_print_plain(out, ljp_profile_str(p, p->command_line), 0);
  ljp_print_str(out, "\n");
  ljp_export_notices(c->e, "desc: Notice: ", "\n");
  ljp_print_str(out, "positions: line\nevents:");
  for (unsigned i = 0; i < c->type_count; i++)
    ljp_print_format(out, " %s", ljp_value_name(c->types[i]));
  ljp_print_str(out, "\n");
  callgrind_put_totals(c, "summary:");
  for (uint32_t i = 0; i < c->count; i++) {
    const struct cost *cost = &c->costs[i];
    if (!i || cost[-1].function != cost->function) {
      ljp_print_str(out, "\n");
      callgrind_put_function(c, cost->function, "");
    }
    if (cost->callee != NONE) {
      callgrind_put_function(c, cost->callee, "c");
      ljp_print_format(out, "calls=%" PRIu64 " 0\n", cost->seen);
    }
    callgrind_put_costs(c, cost);
  }
  ljp_print_str(out, "\n");
  callgrind_put_totals(c, "totals:");
}

enum ljp_status ljp_export_callgrind(struct ljp_export *e)
{
  struct callgrind c = {.e = e};
  bool ok = true;
  for (unsigned v = 0; v < LJP_VALUE_COUNT; v++)
    if (e->asked ? v == e->value : e->has[v])
      c.types[c.type_count++] = (enum ljp_value_id)v;
  c.named = calloc(e->p->function_count + 1, sizeof *c.named);
  ok = c.named != NULL;
  ljp_export_start(e);
  for (uint32_t row = 0; ok && row < e->p->row_count; row++)
    ok = callgrind_add_row(&c, row);
  if (ok && c.count)
    qsort(c.costs, c.count, sizeof *c.costs, callgrind_by_function);
  if (ok)
    callgrind_put_all(&c);
  free(c.named);
  free(c.costs);
  free(c.slots);
  return ok ? LJP_OK : LJP_ERR_MEM;
}
