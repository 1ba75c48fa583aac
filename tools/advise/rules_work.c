/*
** Rules about what Lua code makes the VM do: strings, tables, functions, walks
** over tables, errors, system calls, locks.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/advise/advise.h"

enum { RULE_FUNCTIONS = 8 };

/* Such work at a function: where, how much, and what the remedy can save. */
static struct advise_finding work_finding(const struct advise_facts *a,
                                          enum ljp_advise_kind kind,
                                          uint32_t function, unsigned works)
{
  struct advise_finding f = {.kind = kind,
                             .function = function,
                             .frame = advise_line(a, function, works),
                             .evidence = advise_sum(a, function, works)};
  const unsigned allocating =
      WORK_BIT(STRING) | WORK_BIT(TABLE) | WORK_BIT(CLOSURE) | WORK_BIT(GROW);
  struct advise_value gc;
  f.bound = advise_bound(a, function, works, 0, &f.gc);
  /* A collection that the function's garbage causes may run in any other. */
  if (works & allocating)
    f.bound = advise_bound(a, function, works, WORK_BIT(GC), &gc);
  if (!(works & allocating) || works & WORK_BIT(GROW))
    f.whole = advise_sum(a, 0, works);
  return f;
}

/* How much of what a function allocates for these types dies young; 1 if the
** file does not tell, and garbage is being freed. */
static double work_temporary(const struct advise_facts *a, uint32_t function,
                             unsigned types, uint64_t *objects)
{
  double all = 0, temporary = 0;
  *objects = 0;
  for (uint32_t i = 0; i < a->site_count; i++) {
    const struct advise_site *s = &a->sites[i];
    if (!(types >> s->type & 1) || a->p->frames[s->frame].function != function)
      continue;
    all += (double)s->memory.alloc_bytes;
    temporary += (double)s->memory.temporary_bytes;
    *objects += s->memory.alloc_objects / LJP_OBJECT;
  }
  if (!all)
    return a->freed.weight ? 1 : 0;
  return temporary / all;
}

/* Whether the strings are new ones that stay: what is built once and kept must
** be built. Few of the samples of a string that is there already allocate. */
static bool work_keeps_strings(const struct advise_facts *a, uint32_t function,
                               struct advise_value strings)
{
  uint64_t news = 0, objects;
  for (uint32_t i = 0; i < a->p->row_count; i++) {
    const struct ljp_profile_row *row = &a->p->rows[i];
    const struct advise_node *n = &a->nodes[row->node];
    if (advise_is_time(a, row) && (n->marks & MARK_NEW) && n->lua &&
        a->p->frames[a->p->nodes[n->lua].frame].function == function &&
        advise_row_work(a, row) == WORK_STRING)
      news += advise_row_value(a, row).weight;
  }
  double young =
      work_temporary(a, function, 1u << LJP_MEM_TYPE_STRING, &objects);
  return news > strings.weight / 8 &&
         (objects ? young < 0.5 : a->freed.weight < news / 4);
}

/* Copying dominates where a long string grows by short pieces. */
void advise_rule_strings(const struct advise_facts *a,
                         struct advise_findings *all)
{
  const unsigned works = WORK_BIT(STRING);
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, works, functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    struct advise_finding f =
        work_finding(a, LJP_ADVISE_STRINGS, functions[i], works);
    uint64_t copies = 0;
    for (uint32_t k = 0; k < a->cell_count; k++)
      if (a->cells[k].work == WORK_STRING && a->cells[k].copies &&
          a->p->frames[a->cells[k].frame].function == functions[i])
        copies += a->cells[k].value.weight;
    snprintf(f.text, sizeof f.text,
             "building strings, %.0f %% of it copying bytes",
             100.0 * (double)copies / ((double)f.evidence.weight + 1));
    if (copies >= f.evidence.weight / 4) {
      f.kind = LJP_ADVISE_CONCAT;
      advise_add(&f.evidence, f.gc);
    } else if (work_keeps_strings(a, functions[i], f.evidence)) {
      continue;
    } else {
      f.whole = a->works[WORK_STRING];
    }
    advise_found(a, all, &f);
  }
}

/* Builtins that make short strings. A text that table.concat makes is output. */
static bool work_formats(const struct advise_facts *a, uint32_t frame)
{
  static const char *const names[] = {"string.format", "string.lower",
                                      "string.upper", "tostring", "os.date"};
  struct ljp_str name = ljp_profile_str(a->p, a->p->frames[frame].name);
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if (a->p->frames[frame].kind == LJP_FRAME_BUILTIN &&
        ljp_str_same(name, (struct ljp_str){names[i], strlen(names[i])}))
      return true;
  return false;
}

/* Output must be formatted, and it is new each time. But where no memory is
** needed, the strings are there already: the same ones are made again. */
void advise_rule_formats(const struct advise_facts *a,
                         struct advise_findings *all)
{
  const unsigned works = WORK_BIT(CALLED);
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, works, functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    struct advise_finding f = {.kind = LJP_ADVISE_STRINGS,
                               .function = functions[i]};
    uint64_t news = advise_sum(a, functions[i], WORK_BIT(GC)).weight, most = 0;
    for (uint32_t k = 0; k < a->p->row_count; k++) {
      const struct ljp_profile_row *row = &a->p->rows[k];
      const struct advise_node *node = &a->nodes[row->node];
      uint32_t frame = a->p->nodes[node->lua].frame;
      if (!node->lua || !node->callee || !advise_is_time(a, row) ||
          a->p->frames[frame].function != functions[i] ||
          advise_row_work(a, row) != WORK_CALLED ||
          !work_formats(a, a->p->nodes[node->callee].frame))
        continue;
      struct advise_value v = advise_row_value(a, row);
      advise_add(&f.evidence, v);
      news += node->marks & MARK_NEW ? v.weight : 0;
      if (v.weight > most) {
        most = v.weight;
        f.frame = frame;
        f.callee = a->p->frames[a->p->nodes[node->callee].frame].function;
      }
    }
    if (!f.evidence.count || news > f.evidence.weight / 16 ||
        advise_find(all, LJP_ADVISE_STRINGS, functions[i]))
      continue;
    f.bound = advise_bound(a, functions[i], works, 0, &f.gc);
    snprintf(f.text, sizeof f.text, "building strings that are there already");
    advise_found(a, all, &f);
  }
}

/* Whether a function is table.insert or table.remove. A call that works at the
** end of the table moves nothing: it is compiled, or it is short. */
static bool work_moves(const struct advise_facts *a, uint32_t frame)
{
  static const char *const names[] = {"table.insert", "table.remove"};
  struct ljp_str name = ljp_profile_str(a->p, a->p->frames[frame].name);
  return a->p->frames[frame].kind == LJP_FRAME_BUILTIN &&
         (ljp_str_same(name, (struct ljp_str){names[0], strlen(names[0])}) ||
          ljp_str_same(name, (struct ljp_str){names[1], strlen(names[1])}));
}

/* Samples that move elements: in a compiled loop of the builtin itself. Where
** it is interpreted, calls that move nothing look the same: only if they are
** most of all samples, elements are moved. */
static struct advise_value work_moving(const struct advise_facts *a,
                                       uint32_t function)
{
  const struct ljp_profile *p = a->p;
  struct advise_value looped = {0}, slow = {0};
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    const struct advise_node *n = &a->nodes[row->node];
    if (!n->lua || !n->callee || !advise_is_time(a, row) ||
        p->frames[p->nodes[n->lua].frame].function != function ||
        !work_moves(a, p->nodes[n->callee].frame) ||
        advise_row_work(a, row) != WORK_CALLED)
      continue;
    uint32_t root = p->traces[n->trace].root;
    const struct ljp_profile_trace *t = &p->traces[root ? root : n->trace];
    struct ljp_str link = ljp_profile_str(p, t->link_type);
    if (!n->compiled)
      advise_add(&slow, advise_row_value(a, row));
    else if (ljp_str_same(link, (struct ljp_str){"loop", 4}) &&
             t->name == p->frames[p->nodes[n->callee].frame].name)
      advise_add(&looped, advise_row_value(a, row));
  }
  if (slow.weight > a->all.weight * 7 / 10)
    advise_add(&looped, slow);
  return looped;
}

void advise_rule_shifting(const struct advise_facts *a,
                          struct advise_findings *all)
{
  const unsigned works = WORK_BIT(CALLED);
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, works, functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    struct advise_finding f = {.kind = LJP_ADVISE_SHIFT,
                               .function = functions[i]};
    /* The other end of the same table, often. */
    struct advise_value elsewhere = {0};
    uint64_t most = 0;
    for (uint32_t k = 0; k < a->cell_count; k++) {
      const struct advise_cell *c = &a->cells[k];
      if (!c->callee || !work_moves(a, c->callee))
        continue;
      if (a->p->frames[c->frame].function != functions[i]) {
        advise_add(&elsewhere, c->value);
        continue;
      }
      if (c->value.weight > most) {
        most = c->value.weight;
        f.frame = c->frame;
        f.callee = a->p->frames[c->callee].function;
      }
    }
    f.bound = advise_bound(a, functions[i], works, 0, &f.gc);
    advise_add(&f.bound, elsewhere);
    f.evidence = work_moving(a, functions[i]);
    snprintf(f.text, sizeof f.text, "samples in moving elements");
    advise_found(a, all, &f);
  }
}

/* The length is asked for before each t[#t + 1] = v. */
void advise_rule_growing(const struct advise_facts *a,
                         struct advise_findings *all)
{
  const unsigned works = WORK_BIT(GROW) | WORK_BIT(LENGTH);
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, WORK_BIT(GROW), functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    struct advise_finding f =
        work_finding(a, LJP_ADVISE_GROW, functions[i], works);
    if (advise_find(all, LJP_ADVISE_SHIFT, functions[i]))
      continue;
    snprintf(f.text, sizeof f.text,
             "samples in enlarging tables and in finding their length");
    advise_found(a, all, &f);
  }
}

static void work_temporaries(const struct advise_facts *a,
                             struct advise_findings *all,
                             enum ljp_advise_kind kind, unsigned works,
                             unsigned types, const char *what)
{
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, works, functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t objects;
    double young = work_temporary(a, functions[i], types, &objects);
    const struct advise_finding *given =
        advise_find(all, LJP_ADVISE_ABORT, functions[i]);
    if (young < 0.5 || advise_find(all, LJP_ADVISE_GROW, functions[i]) ||
        (given && kind == LJP_ADVISE_CLOSURES) ||
        ((!objects || young < 0.95) && advise_builds(a, functions[i], works)))
      continue;
    struct advise_finding f = work_finding(a, kind, functions[i], works);
    f.objects = objects;
    advise_add(&f.evidence, f.gc);
    if (objects)
      snprintf(f.text, sizeof f.text,
               "creating %s and collecting garbage; %.0f %% of the bytes are "
               "freed before long",
               what, 100 * young);
    else
      snprintf(f.text, sizeof f.text,
               "creating %s and collecting garbage (record with --memory to "
               "see how long they live)",
               what);
    advise_found(a, all, &f);
  }
}

void advise_rule_tables(const struct advise_facts *a,
                        struct advise_findings *all)
{
  work_temporaries(a, all, LJP_ADVISE_TABLES, WORK_BIT(TABLE),
                   ADVISE_TABLE_TYPES, "tables");
}

void advise_rule_closures(const struct advise_facts *a,
                          struct advise_findings *all)
{
  work_temporaries(a, all, LJP_ADVISE_CLOSURES, WORK_BIT(CLOSURE),
                   1u << LJP_MEM_TYPE_FUNCTION | 1u << LJP_MEM_TYPE_UPVALUE,
                   "functions");
}

void advise_rule_pairs(const struct advise_facts *a,
                       struct advise_findings *all)
{
  const unsigned works = WORK_BIT(NEXT);
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, works, functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    struct advise_finding f =
        work_finding(a, LJP_ADVISE_PAIRS, functions[i], works);
    /* One table is walked in several functions. */
    f.bound = advise_bound(a, 0, works, 0, &f.gc);
    snprintf(f.text, sizeof f.text,
             "samples in the step from one key to the next (the file does not "
             "tell arrays from other tables)");
    advise_found(a, all, &f);
  }
}

/* What is done under pcall is below the throwing function's callers. */
void advise_rule_errors(const struct advise_facts *a,
                        struct advise_findings *all)
{
  const unsigned works = WORK_BIT(THROW);
  uint32_t function;
  if (!advise_functions(a, works, &function, 1))
    return;
  struct advise_finding f = {
      .kind = LJP_ADVISE_ERRORS,
      .function = function,
      .frame = advise_line(a, function, works),
      .evidence = a->works[WORK_THROW],
      .bound = advise_sum(a, 0,
                          works | WORK_BIT(INTERPRETED) | WORK_BIT(CALLED) |
                              WORK_BIT(EXIT) | WORK_BIT(COMPILED) |
                              WORK_BIT(GC) | WORK_BIT(STRING))};
  snprintf(f.text, sizeof f.text, "throwing and catching errors");
  advise_found(a, all, &f);
}

/* No call into the kernel is compiled, so what is around it costs more, too. */
void advise_rule_kernel(const struct advise_facts *a,
                        struct advise_findings *all)
{
  const unsigned works = WORK_BIT(KERNEL);
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, works, functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    struct advise_finding f = {.kind = LJP_ADVISE_KERNEL,
                               .function = functions[i],
                               .frame = advise_line(a, functions[i], works),
                               .callee = advise_callee(a, functions[i], works)};
    /* Page faults of the VM's own work have no callee. */
    if (!f.callee || advise_reads(a->p, f.callee))
      continue;
    struct advise_value calls = {0};
    for (uint32_t k = 0; k < a->cell_count; k++) {
      const struct advise_cell *c = &a->cells[k];
      if (a->p->frames[c->frame].function != functions[i])
        continue;
      if (c->callee && a->p->frames[c->callee].function == f.callee) {
        advise_add(&calls, c->value);
        if (c->work == WORK_KERNEL)
          advise_add(&f.evidence, c->value);
      } else if (!c->callee) {
        advise_add(&f.bound, c->value);
      }
    }
    advise_add(&f.bound, calls);
    if (f.evidence.weight < calls.weight / 2) /* It does buffer. */
      continue;
    snprintf(f.text, sizeof f.text, "samples in the kernel");
    advise_found(a, all, &f);
  }
}

void advise_rule_locks(const struct advise_facts *a,
                       struct advise_findings *all)
{
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n =
      a->wall ? advise_functions(a, WORK_BIT(LOCK), functions, RULE_FUNCTIONS)
              : 0;
  for (uint32_t i = 0; i < n; i++) {
    struct advise_finding f = {
        .kind = LJP_ADVISE_LOCK,
        .function = functions[i],
        .frame = advise_line(a, functions[i], WORK_BIT(LOCK)),
        .callee = advise_callee(a, functions[i], WORK_BIT(LOCK)),
        .evidence = advise_sum(a, functions[i], WORK_BIT(LOCK))};
    f.bound = f.evidence;
    snprintf(f.text, sizeof f.text, "waiting in a lock of the C library");
    advise_found(a, all, &f);
  }
}
