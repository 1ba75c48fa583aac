/*
** Rules about the trace compiler: what is interpreted, and why; traces that are
** left, stitched or thrown away.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/advise/advise.h"

enum { RULE_FUNCTIONS = 8 };

#define WORKS_SLOW (WORK_BIT(INTERPRETED) | WORK_BIT(EXIT) | WORK_BIT(CLOSURE))

/* The recording that tells most about why a function is interpreted: a cause
** before a consequence, then the most frequent. NULL: none was given up. */
static const struct advise_abort *
jit_main_abort(const struct advise_facts *a, uint32_t function, uint64_t *count)
{
  const struct advise_abort *best = NULL;
  *count = 0;
  for (uint32_t i = 0; i < a->abort_count; i++) {
    const struct advise_abort *b = &a->aborts[i];
    if (!b->reason || (b->function != function && b->at_function != function))
      continue;
    *count += b->count;
    if (!best || b->reason->weight > best->reason->weight ||
        (b->reason->weight == best->reason->weight && b->count > best->count))
      best = b;
  }
  return best;
}

static bool jit_is_blacklisted(const struct advise_facts *a, uint32_t function)
{
  for (uint32_t i = 0; i < a->abort_count; i++)
    if (function && !a->aborts[i].reason && a->aborts[i].function == function)
      return true;
  return false;
}

/* Whether the function was blacklisted before the session began: no recording
** began in it, and those of its callers ended at it. */
static bool jit_was_blacklisted(const struct advise_facts *a, uint32_t function)
{
  for (uint32_t i = 0; i < a->abort_count; i++) {
    const struct advise_abort *b = &a->aborts[i];
    if (b->reason && (b->function == function ||
                      (b->at_function == function && b->reason->weight)))
      return false;
  }
  return jit_is_blacklisted(a, function);
}

static void jit_abort_text(const struct advise_facts *a,
                           const struct advise_abort *b, bool blacklisted,
                           struct advise_finding *f)
{
  struct ljp_str text = ljp_profile_str(a->p, b->text);
  if (f->kind == LJP_ADVISE_BLACKLIST)
    snprintf(f->text, sizeof f->text,
             "%" PRIu64 " recording%s given up here, since the function was "
             "blacklisted before the recording began; the reason is not in the "
             "file",
             f->count, f->count == 1 ? "" : "s");
  else
    snprintf(f->text, sizeof f->text,
             "%" PRIu64 " recording%s given up, most with \"%.*s\"%s", f->count,
             f->count == 1 ? "" : "s", (int)(text.len < 200 ? text.len : 200),
             text.data,
             blacklisted ? "; it is blacklisted and will not be tried again"
                         : "");
}

static bool jit_is_stitched(const struct ljp_profile *p,
                            const struct ljp_profile_trace *t)
{
  return t->known && ljp_str_same(ljp_profile_str(p, t->link_type),
                                  (struct ljp_str){"stitch", 6});
}

/* Whether a trace that begins in the function was compiled; stitched: one that
** ends in a call that is not compiled. */
static bool jit_has_trace(const struct advise_facts *a, uint32_t function,
                          bool stitched)
{
  const struct ljp_profile *p = a->p;
  const struct ljp_profile_frame *f = &p->frames[p->functions[function].frame];
  for (uint32_t i = 1; i < p->trace_count; i++) {
    const struct ljp_profile_trace *t = &p->traces[i];
    if (t->file == f->file && t->name == f->name &&
        t->first_line == f->first_line && (!stitched || jit_is_stitched(p, t)))
      return true;
  }
  return false;
}

/* Recordings are given up in passing, too: the next attempt is compiled. Loops
** that call their own function are given up more often, though most of them is
** compiled in the end. */
static bool jit_is_passing(const struct advise_facts *a, uint32_t function,
                           const struct advise_abort *main, uint64_t count)
{
  bool mostly = advise_sum(a, function, WORK_BIT(COMPILED)).weight >
                advise_sum(a, function, WORKS_SLOW).weight;
  return main->reason->weight < 2 && (count < 4 || mostly) &&
         !jit_is_blacklisted(a, function) && jit_has_trace(a, function, false);
}

/* What is interpreted in the function, and what its closures cost in garbage:
** that a function is created is mostly why it is interpreted. */
static struct advise_value jit_slow(const struct advise_facts *a,
                                    uint32_t function, struct advise_value *gc)
{
  const unsigned closures = WORK_BIT(CLOSURE);
  struct advise_value sum = advise_sum(a, function, WORKS_SLOW), own = {0};
  struct advise_value created = advise_sum(a, function, closures);
  if (created.count)
    advise_bound(a, function, closures, 0, &own);
  if (created.weight < own.weight / 16) /* The garbage is of something else. */
    own = (struct advise_value){0};
  advise_add(&sum, own);
  advise_add(gc, own);
  return sum;
}

/* A collection that closures cause may run in any function that allocates. */
static struct advise_value jit_slow_bound(const struct advise_facts *a,
                                          uint32_t function,
                                          const struct advise_finding *f)
{
  return advise_around(a, function, f->function, false,
                       f->gc.count ? WORK_BIT(GC) : 0);
}

void advise_rule_aborts(const struct advise_facts *a,
                        struct advise_findings *all)
{
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, WORKS_SLOW, functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; a->abort_count && i < n; i++) {
    uint64_t count;
    const struct advise_abort *b = jit_main_abort(a, functions[i], &count);
    if (!b || jit_was_blacklisted(a, functions[i]))
      continue;
    bool cause_unknown = jit_was_blacklisted(a, b->at_function);
    struct advise_finding f = {
        .kind = cause_unknown ? LJP_ADVISE_BLACKLIST : LJP_ADVISE_ABORT,
        .reason = cause_unknown ? NULL : b->reason,
        .function = b->at_function ? b->at_function : functions[i],
        .frame = b->at_frame,
        .count = count};
    if (advise_find(all, f.kind, f.function) ||
        (!cause_unknown && jit_is_passing(a, functions[i], b, count)))
      continue;
    if (!f.frame)
      f.frame = advise_line(a, functions[i], WORKS_SLOW);
    f.evidence = jit_slow(a, functions[i], &f.gc);
    if (f.function != functions[i])
      advise_add(&f.evidence, jit_slow(a, f.function, &f.gc));
    f.bound = jit_slow_bound(a, functions[i], &f);
    jit_abort_text(a, b, jit_is_blacklisted(a, functions[i]), &f);
    advise_found(a, all, &f);
  }
}

void advise_rule_blacklisted(const struct advise_facts *a,
                             struct advise_findings *all)
{
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, WORKS_SLOW, functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    if (!jit_was_blacklisted(a, functions[i]) ||
        advise_find(all, LJP_ADVISE_BLACKLIST, functions[i]))
      continue;
    struct advise_finding f = {.kind = LJP_ADVISE_BLACKLIST,
                               .function = functions[i],
                               .frame =
                                   advise_line(a, functions[i], WORKS_SLOW)};
    f.evidence = jit_slow(a, functions[i], &f.gc);
    f.bound = jit_slow_bound(a, functions[i], &f);
    snprintf(f.text, sizeof f.text,
             "the function was blacklisted before the recording began, so the "
             "reason is not in the file");
    advise_found(a, all, &f);
  }
}

/* Whether a trace that begins in the function, or in which the function was
** seen, ends in a call that is not compiled. */
static bool jit_stitches(const struct advise_facts *a, uint32_t function)
{
  const struct ljp_profile *p = a->p;
  if (jit_has_trace(a, function, true))
    return true;
  for (uint32_t i = 1; i < p->node_count; i++)
    if (p->frames[p->nodes[i].frame].function == function &&
        jit_is_stitched(p, &p->traces[a->nodes[i].trace]))
      return true;
  return false;
}

/* Functions that match patterns: Lua code that is compiled can do the same. */
static bool jit_matches_patterns(const struct ljp_profile *p, uint32_t function)
{
  static const char *const names[] = {
      "string.find", "string.match", "string.gmatch (iterator)", "string.gsub"};
  struct ljp_str name =
      ljp_profile_str(p, p->frames[p->functions[function].frame].name);
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if (ljp_str_same(name, (struct ljp_str){names[i], strlen(names[i])}))
      return true;
  return false;
}

/* What the function spends in a callee that matches patterns. */
static struct advise_value jit_matching(const struct advise_facts *a,
                                        uint32_t function)
{
  struct advise_value sum = {0};
  for (uint32_t i = 0; i < a->cell_count; i++) {
    const struct advise_cell *c = &a->cells[i];
    if (c->work == WORK_CALLED && c->callee &&
        a->p->frames[c->frame].function == function &&
        jit_matches_patterns(a->p, a->p->frames[c->callee].function))
      advise_add(&sum, c->value);
  }
  return sum;
}

/* Most of a program's time in patterns is as bad as many short calls. */
void advise_rule_stitching(const struct advise_facts *a,
                           struct advise_findings *all)
{
  const unsigned works = WORK_BIT(EXIT);
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n =
      advise_functions(a, works | WORK_BIT(CALLED), functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    if (!jit_stitches(a, functions[i]) ||
        advise_find(all, LJP_ADVISE_ABORT, functions[i]))
      continue;
    struct advise_finding f = {
        .kind = LJP_ADVISE_STITCH,
        .function = functions[i],
        .frame = advise_line(a, functions[i], works | WORK_BIT(CALLED)),
        .callee = advise_callee(a, functions[i],
                                works | WORK_BIT(CALLED) | WORK_BIT(KERNEL)),
        .evidence = advise_sum(a, functions[i], works)};
    struct advise_value matching = jit_matching(a, functions[i]);
    struct advise_value called = advise_sum(a, functions[i], WORK_BIT(CALLED));
    /* Where a call takes long, the way to it is not what costs; and no function
    ** that reads is compiled. */
    if ((!matching.count && f.evidence.weight < called.weight / 10) ||
        advise_reads(a->p, f.callee))
      continue;
    f.bound = advise_around(a, functions[i], 0, true, 0);
    snprintf(f.text, sizeof f.text,
             "leaving and entering compiled code around calls");
    if (matching.weight > a->all.weight / 2) {
      advise_add(&f.evidence, matching);
      snprintf(f.text, sizeof f.text,
               "matching patterns, and leaving and entering compiled code "
               "around it");
    }
    advise_found(a, all, &f);
  }
}

/* Compiled code returns to interpreted code if its caller is not compiled, and
** to C code that called it. */
static bool jit_explained(const struct advise_facts *a,
                          const struct advise_findings *all, uint32_t function)
{
  for (uint32_t i = 0; i < all->count; i++)
    if ((all->list[i].kind == LJP_ADVISE_ABORT ||
         all->list[i].kind == LJP_ADVISE_CALLBACK) &&
        (all->list[i].function == function ||
         advise_runs_below(a, function, all->list[i].function)))
      return true;
  return false;
}

/* A trace that is left at once saves nothing: the bound has compiled time, too.
*/
void advise_rule_exits(const struct advise_facts *a,
                       struct advise_findings *all)
{
  uint32_t functions[RULE_FUNCTIONS];
  uint32_t n = advise_functions(a, WORK_BIT(EXIT), functions, RULE_FUNCTIONS);
  for (uint32_t i = 0; i < n; i++) {
    if (jit_explained(a, all, functions[i]) || jit_stitches(a, functions[i]))
      continue;
    struct advise_finding f = {
        .kind = LJP_ADVISE_EXITS,
        .function = functions[i],
        .frame = advise_line(a, functions[i], WORK_BIT(EXIT)),
        .evidence = advise_sum(a, functions[i], WORK_BIT(EXIT)),
        .bound = advise_around(a, functions[i], 0, true, 0)};
    snprintf(f.text, sizeof f.text, "samples in leaving traces");
    advise_found(a, all, &f);
  }
}

/* Where functions are called while they are compiled: a frame; 0: unknown. */
static uint32_t jit_compiling_caller(const struct advise_facts *a)
{
  const struct ljp_profile *p = a->p;
  uint64_t *sums = a->room.sums;
  uint32_t best = 0;
  memset(sums, 0, (p->frame_count + (size_t)1) * sizeof *sums);
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    uint32_t lua = a->nodes[row->node].lua;
    uint32_t caller = lua ? a->nodes[p->nodes[lua].parent].lua : 0;
    if (!advise_is_time(a, row) || advise_row_work(a, row) != WORK_COMPILER)
      continue;
    uint32_t frame = p->nodes[caller ? caller : lua].frame;
    sums[frame] += row->weight;
    if (frame && (!best || sums[frame] > sums[best]))
      best = frame;
  }
  return best;
}

static bool jit_loads(const struct ljp_profile *p, uint32_t frame)
{
  static const char *const names[] = {"load", "loadstring", "loadfile",
                                      "dofile"};
  struct ljp_str name = ljp_profile_str(p, p->frames[frame].name);
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if (p->frames[frame].kind == LJP_FRAME_BUILTIN &&
        ljp_str_same(name, (struct ljp_str){names[i], strlen(names[i])}))
      return true;
  return false;
}

/* The line that spends most in loading code: a frame; 0: none does. */
static uint32_t jit_loading_line(const struct advise_facts *a)
{
  const struct advise_cell *best = NULL;
  for (uint32_t i = 0; i < a->cell_count; i++) {
    const struct advise_cell *c = &a->cells[i];
    if (c->frame && c->callee && jit_loads(a->p, c->callee) &&
        (!best || c->value.weight > best->value.weight))
      best = c;
  }
  return best ? best->frame : 0;
}

/* All traces are thrown away at a limit, or each with the function that it
** belongs to. */
void advise_rule_traces(const struct advise_facts *a,
                        struct advise_findings *all)
{
  static const struct advise_reason loaded = {
      .anchor = "too-many-traces",
      .remedy =
          "keep the function that load() returns, and call it again: each "
          "copy is compiled anew"};
  bool short_lived =
      a->freed_traces >= 100 && a->freed_traces >= a->compiled_traces / 2;
  uint32_t frame = 0;
  if (a->flushes >= 3 || short_lived)
    frame = jit_compiling_caller(a);
  if (!frame)
    return;
  struct advise_finding f = {.kind = LJP_ADVISE_TRACES,
                             .function = a->p->frames[frame].function,
                             .frame = frame,
                             .evidence = a->works[WORK_COMPILER],
                             .bound =
                                 advise_below(a, a->p->frames[frame].function),
                             .count = a->compiled_traces};
  snprintf(f.text, sizeof f.text,
           "%" PRIu64 " traces compiled, %" PRIu64
           " freed again, all thrown away %" PRIu64 " times",
           a->compiled_traces, a->freed_traces, a->flushes);
  uint32_t loads = short_lived && !a->flushes ? jit_loading_line(a) : 0;
  if (loads) {
    f.frame = loads;
    f.function = a->p->frames[loads].function;
    f.reason = &loaded;
  }
  advise_found(a, all, &f);
}
