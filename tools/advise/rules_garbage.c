/*
** Rules about garbage: collections that the program asks for, and what makes
** the others cost much.
*/
#include <stdio.h>
#include <string.h>

#include "tools/advise/advise.h"

enum { RULE_FUNCTIONS = 8 };

/* Collections that the program asks for. */
void advise_rule_collecting(const struct advise_facts *a,
                            struct advise_findings *all)
{
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, WORK_BIT(GC), functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    struct advise_finding f = {.kind = LJP_ADVISE_COLLECT,
                               .function = functions[i]};
    uint64_t most = 0;
    for (uint32_t k = 0; k < a->cell_count; k++) {
      const struct advise_cell *c = &a->cells[k];
      if (!c->callee || a->p->frames[c->frame].function != functions[i] ||
          !ljp_str_same(ljp_profile_str(a->p, a->p->frames[c->callee].name),
                        (struct ljp_str){"collectgarbage", 14}))
        continue;
      advise_add(&f.evidence, c->value);
      if (c->value.weight > most) {
        most = c->value.weight;
        f.frame = c->frame;
      }
    }
    if (!f.evidence.count)
      continue;
    /* No call of collectgarbage() is compiled, so what is around it costs more,
    ** too. Fewer collections leave what is in the caches. */
    f.gc = f.evidence;
    f.bound = advise_around(a, functions[i], 0, true, WORK_BIT(GC));
    snprintf(f.text, sizeof f.text, "samples in collectgarbage()");
    advise_found(a, all, &f);
  }
}

/* Whether other findings account for most of the collector's time, or functions
** are most of what is created, and a finding tells of some. */
static bool garbage_is_explained(const struct advise_facts *a,
                                 const struct advise_findings *all)
{
  struct advise_value sum = {0};
  const unsigned works = WORK_BIT(STRING) | WORK_BIT(TABLE) | WORK_BIT(CLOSURE);
  bool closures = advise_find(all, LJP_ADVISE_CLOSURES, 0);
  struct advise_value created = advise_sum(a, 0, works);
  for (uint32_t i = 0; i < all->count; i++) {
    advise_add(&sum, all->list[i].gc);
    closures |= all->list[i].kind == LJP_ADVISE_ABORT && all->list[i].gc.count;
  }
  if (closures && a->works[WORK_CLOSURE].weight > created.weight / 2)
    return true;
  return sum.weight > a->works[WORK_GC].weight / 2 ||
         advise_find(all, LJP_ADVISE_CALLBACK, 0);
}

/* The line whose objects are freed most: collecting them costs time. NULL: the
** file has no memory events. */
static const struct advise_site *
garbage_most_freed(const struct advise_facts *a)
{
  const struct advise_site *most = NULL;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < a->site_count; i++) {
    const struct ljp_profile_memory *m = &a->sites[i].memory;
    if (m->alloc_bytes <= m->live_bytes)
      continue;
    if (m->alloc_bytes - m->live_bytes > bytes) {
      bytes = m->alloc_bytes - m->live_bytes;
      most = &a->sites[i];
    }
  }
  return most;
}

/* Whether most of what is allocated stays, or, if the file has no memory events,
** the collector finds hardly anything to free: it is data. */
static bool garbage_stays(const struct advise_facts *a)
{
  const struct ljp_profile_memory *m = &a->p->totals.memory;
  if (a->site_count)
    return m->live_bytes > m->alloc_bytes / 2;
  return a->freed.weight < a->works[WORK_GC].weight / 16;
}

/* Whether most of the garbage is input that was read. */
static bool garbage_is_input(const struct advise_facts *a)
{
  uint64_t sum = 0;
  for (uint32_t i = 0; i < a->cell_count; i++) {
    const struct advise_cell *c = &a->cells[i];
    if (c->work == WORK_GC && c->callee &&
        advise_reads(a->p, a->p->frames[c->callee].function))
      sum += c->value.weight;
  }
  return sum > a->works[WORK_GC].weight / 2;
}

/* Whether a line's tables, where they are freed, have mostly outlived a
** collection: they were a part of something larger. */
static bool garbage_is_structure(const struct advise_site *site)
{
  const struct ljp_profile_memory *m = &site->memory;
  return (ADVISE_TABLE_TYPES >> site->type & 1) &&
         m->temporary_bytes < (m->alloc_bytes - m->live_bytes) / 2;
}

/* Allocating costs time, too: all the time of the function that allocates, and
** elsewhere the time of what only allocates. */
void advise_rule_garbage(const struct advise_facts *a,
                         struct advise_findings *all)
{
  const unsigned works = WORK_BIT(GC);
  uint32_t function;
  if (garbage_is_explained(a, all) ||
      !advise_functions(a, works, &function, 1) ||
      advise_find(all, LJP_ADVISE_ABORT, function) || garbage_stays(a) ||
      garbage_is_input(a))
    return;
  struct advise_finding f = {.kind = LJP_ADVISE_GC,
                             .function = function,
                             .frame = advise_line(a, function, works),
                             .evidence = a->works[WORK_GC]};
  const struct advise_site *site = garbage_most_freed(a);
  if (site) {
    f.frame = site->frame;
    f.function = a->p->frames[f.frame].function;
  }
  if (advise_builds(a, f.function, works | WORK_BIT(TABLE)) ||
      (site && garbage_is_structure(site)))
    return;
  f.bound = advise_bound(a, f.function, site ? WORK_ALL : works,
                         works | WORK_BIT(TABLE) | WORK_BIT(CLOSURE) |
                             WORK_BIT(STRING) | WORK_BIT(GROW),
                         &f.gc);
  snprintf(f.text, sizeof f.text,
           site ? "most of what is freed is allocated by this line"
                : "most collections happen here (record with --memory to see "
                  "what allocates)");
  advise_found(a, all, &f);
}
