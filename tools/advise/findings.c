/*
** Findings: which are worth a word, and in which order. The rules are called
** one after the other; a later rule sees what earlier ones found.
*/
#include <math.h>
#include <stdlib.h>

#include "parsers/base/array.h"
#include "tools/advise/advise.h"

static const struct {
  const char *name, *anchor, *title, *remedy;
  double least;
} kinds[] = {
#define LJP_X(name, text, anchor, least, title, remedy)                        \
  {text, anchor, title, remedy, least},
    LJP_ADVISE_LIST(LJP_X)
#undef LJP_X
};

const char *ljp_advise_name(enum ljp_advise_kind kind)
{
  return kinds[kind].name;
}

const char *ljp_advise_title(enum ljp_advise_kind kind)
{
  return kinds[kind].title;
}

double ljp_advise_least(enum ljp_advise_kind kind)
{
  return kinds[kind].least;
}

const char *ljp_advise_remedy(const struct advise_finding *f)
{
  return f->reason ? f->reason->remedy : kinds[f->kind].remedy;
}

const char *ljp_advise_anchor(const struct advise_finding *f)
{
  return f->reason ? f->reason->anchor : kinds[f->kind].anchor;
}

const char *ljp_advise_unit(const struct advise_facts *a,
                            const struct advise_finding *f)
{
  return f->memory ? "live memory" : a->wall ? "elapsed time" : "CPU time";
}

/* A share of the whole in percent, with the half width of its interval of
** 95 % (Wilson's, which holds for few samples, too). */
static double findings_share(const struct advise_facts *a,
                             const struct advise_value *v, double *error)
{
  double all = (double)a->all.weight, n = (double)a->all.looks;
  double share = all > 0 ? fmin((double)v->weight / all, 1) : 0, z = 1.96;
  *error = 100;
  if (n > 0)
    *error = 100 * z / (1 + z * z / n) *
             sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return 100 * share;
}

struct advise_finding *advise_found(const struct advise_facts *a,
                                    struct advise_findings *all,
                                    const struct advise_finding *finding)
{
  struct advise_finding f = *finding;
  if (!f.memory) {
    if (a->all.looks < LJP_ADVISE_SAMPLES)
      return NULL;
    if (f.bound.weight < f.evidence.weight)
      f.bound = f.evidence;
    if (f.bound.weight > a->all.weight)
      f.bound = a->all;
    f.percent = findings_share(a, &f.bound, &f.error);
    f.evidence_percent = findings_share(a, &f.evidence, &f.evidence_error);
  }
  double least = kinds[f.kind].least, error;
  if (!f.memory && findings_share(a, &f.whole, &error) - error >= least)
    least /= 2;
  if (f.evidence_percent - f.evidence_error < least || f.percent - f.error < 5)
    return NULL;
  if (!ljp_array_reserve(&all->list, all->count, &all->room,
                         sizeof *all->list)) {
    all->no_memory = true;
    return NULL;
  }
  all->list[all->count] = f;
  return &all->list[all->count++];
}

struct advise_finding *advise_find(const struct advise_findings *all,
                                   enum ljp_advise_kind kind, uint32_t function)
{
  for (uint32_t i = 0; i < all->count; i++)
    if (all->list[i].kind == kind &&
        (!function || all->list[i].function == function))
      return &all->list[i];
  return NULL;
}

/* The gain is between the evidence and the bound, on a scale of ratios. */
static double findings_gain(const struct advise_finding *f)
{
  return (f->percent - f->error) * (f->evidence_percent - f->evidence_error);
}

/* Memory that grows ends a program; time is only lost. */
static bool findings_is_serious(const struct advise_finding *f)
{
  return f->memory && f->evidence_percent - f->evidence_error >= 25;
}

static int findings_by_gain(const void *x, const void *y)
{
  const struct advise_finding *a = x, *b = y;
  if (findings_is_serious(a) != findings_is_serious(b))
    return findings_is_serious(a) ? -1 : 1;
  double left = findings_gain(a), right = findings_gain(b);
  if (left != right)
    return left > right ? -1 : 1;
  if (a->evidence_percent != b->evidence_percent)
    return a->evidence_percent > b->evidence_percent ? -1 : 1;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  return a->frame < b->frame ? -1 : a->frame > b->frame;
}

bool ljp_advise_judge(const struct advise_facts *a, struct advise_findings *all)
{
  static void (*const rules[])(const struct advise_facts *,
                               struct advise_findings *) = {
#define LJP_X(name) advise_rule_##name,
      LJP_ADVISE_RULE_LIST(LJP_X)
#undef LJP_X
  };
  *all = (struct advise_findings){0};
  for (unsigned i = 0; i < sizeof rules / sizeof *rules; i++)
    rules[i](a, all);
  if (all->count)
    qsort(all->list, all->count, sizeof *all->list, findings_by_gain);
  return !all->no_memory;
}

void ljp_advise_findings_fini(struct advise_findings *all)
{
  free(all->list);
  *all = (struct advise_findings){0};
}
