/*
** Fuzz target: any bytes as a stream, judged by ljprof advise. For all input,
** shares and errors are sensible, places exist, and JSON and SARIF are valid.
** One input in two is judged as if its samples had named VM functions.
*/
#include <math.h>

#include "test/support/fuzz_print.h"
#include "test/support/fuzz_stream.h"
#include "tools/advise/advise.h"

static struct ljp_reader reader;

static void print(const struct advise_output *o, bool json,
                  void (*show)(const struct advise_output *))
{
  fuzz_print_begin();
  show(o);
  fuzz_print_end(json);
}

/* Findings stand in the order of these two (tools/advise/findings.c). */
static bool is_serious(const struct advise_finding *f)
{
  return f->memory && f->evidence_percent - f->evidence_error >= 25;
}

static double gain(const struct advise_finding *f)
{
  return (f->percent - f->error) * (f->evidence_percent - f->evidence_error);
}

static void check(const struct advise_facts *a,
                  const struct advise_findings *all)
{
  struct advise_value sum = {0};
  for (unsigned i = 0; i < WORKS; i++)
    advise_add(&sum, a->works[i]);
  MUST(sum.count == a->all.count && sum.weight == a->all.weight);
  for (uint32_t i = 0; i < all->count; i++) {
    const struct advise_finding *f = &all->list[i];
    MUST(f->function < a->p->function_count && f->frame < a->p->frame_count);
    MUST(f->callee < a->p->function_count);
    MUST(f->percent >= 0 && f->percent <= 100);
    MUST(f->evidence_percent >= 0 && f->evidence_percent <= 100);
    MUST(isfinite(f->error) && f->error >= 0);
    MUST(i == 0 || is_serious(&f[-1]) > is_serious(f) ||
         (is_serious(&f[-1]) == is_serious(f) && gain(&f[-1]) >= gain(f)));
  }
}

/* What the names of machine code would tell. */
static void mark(struct advise_facts *a, size_t size)
{
  for (uint32_t i = 1; i < a->p->node_count; i++)
    a->nodes[i].marks |= (uint16_t)(1u << (i + size) % 15);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const struct ljp_profile_options options = {.no_symbols = true,
                                              .trace_stacks = true};
  struct ljp_profile *p = ljp_profile_new(&options);
  struct advise_findings findings;
  struct advise_facts facts;
  MUST(p && ljp_reader_memory(&reader, data, size) == LJP_OK);
  if (ljp_profile_add(p, &reader) == LJP_OK) {
    MUST(ljp_profile_finish(p) == LJP_OK);
    MUST(ljp_advise_collect(p, &facts));
    if (size % 2)
      mark(&facts, size);
    MUST(ljp_advise_judge(&facts, &findings));
    if (!(size % 2))
      check(&facts, &findings);
    const struct advise_output o = {&facts, &findings, "fuzz", &fuzz_print};
    print(&o, false, ljp_advise_text);
    print(&o, true, ljp_advise_json);
    print(&o, true, ljp_advise_sarif);
    ljp_advise_findings_fini(&findings);
    ljp_advise_facts_fini(&facts);
  }
  ljp_reader_fini(&reader);
  ljp_profile_free(p);
  return 0;
}
