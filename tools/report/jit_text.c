/*
** Prints `ljprof report --jit`: five tables.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/jit.h"

enum { PLACES = 3 };

static const char *const jit_text_kind_names[] = {
#define LJP_X(name, key, text) text,
    LJP_JIT_LIST(LJP_X)
#undef LJP_X
};

static bool jit_text_is_empty(const struct ljp_value *v)
{
  return !v->count && !v->weight;
}

/* Time in the trace compiler itself. */
static struct ljp_value
jit_text_compiling(const struct ljp_value kinds[LJP_JIT_KINDS])
{
  struct ljp_value all = {0};
  for (unsigned i = LJP_JIT_RECORD; i <= LJP_JIT_ASM; i++) {
    all.count += kinds[i].count;
    all.weight += kinds[i].weight;
  }
  return all;
}

static void jit_text_amount(const struct ljp_report *r,
                            const struct ljp_value *v)
{
  char text[24];
  ljp_amount(r, v->weight, text);
  ljp_print_format(r->out, "%10s %6.2f%%", text, ljp_percent(r, v));
}

static void jit_text_name(const struct ljp_report *r, uint32_t name)
{
  struct ljp_str s = ljp_profile_str(r->p, name);
  if (s.len)
    ljp_print_safe(r->out, s);
  else
    ljp_print_str(r->out, "function");
}

/* Prints "name file:line". */
static void jit_text_place(const struct ljp_report *r, uint32_t name,
                           uint32_t file, uint32_t line)
{
  if (!file && !name) {
    ljp_print_str(r->out, "(unknown place)");
    return;
  }
  jit_text_name(r, name);
  if (!file) /* A builtin. */
    return;
  ljp_print_str(r->out, " ");
  ljp_print_safe(r->out, ljp_profile_str(r->p, file));
  ljp_print_format(r->out, ":%" PRIu32, line);
}

static const char *jit_text_measured(const struct ljp_report *r)
{
  return ljp_is_untimed(r) ? "count" : "time";
}

static void jit_text_kinds(const struct ljp_report *r,
                           const struct ljp_jit *jit)
{
  struct ljp_print *out = r->out;
  ljp_print_format(out, "%10s %7s %10s\n", jit_text_measured(r), "%",
                   "samples");
  for (unsigned i = 0; i < LJP_JIT_KINDS; i++) {
    jit_text_amount(r, &jit->kinds[i]);
    ljp_print_format(out, " %10" PRIu64 "  %s\n", jit->kinds[i].count,
                     jit_text_kind_names[i]);
  }
  const uint64_t *e = jit->events;
  if (!jit->has_events) {
    ljp_print_str(out, "\nthe file has no trace events: aborted recordings are "
                       "unknown\n");
    return;
  }
  ljp_print_format(out,
                   "\nrecordings begun %" PRIu64 ", compiled %" PRIu64
                   ", given up %" PRIu64 "; traces from before %" PRIu64
                   "; flushes %" PRIu64 ", freed %" PRIu64
                   ", blacklisted %" PRIu64 "\n",
                   e[LJP_TRACE_START], e[LJP_TRACE_STOP], e[LJP_TRACE_ABORT],
                   e[LJP_TRACE_EXISTS], e[LJP_TRACE_FLUSH], e[LJP_TRACE_FREE],
                   e[LJP_TRACE_BLACKLIST]);
}

static void jit_text_trace(const struct ljp_report *r,
                           const struct ljp_jit *jit, uint32_t at,
                           unsigned depth)
{
  const struct ljp_profile_trace *t = &r->p->traces[at];
  const struct ljp_jit_trace *j = &jit->traces[at];
  struct ljp_str link = ljp_profile_str(r->p, t->link_type);
  struct ljp_print *out = r->out;
  jit_text_amount(r, &j->self);
  ljp_print_str(out, " ");
  jit_text_amount(r, &j->exit);
  ljp_print_str(out, " ");
  jit_text_amount(r, &j->tree);
  ljp_print_format(out, "  %*s", (int)(depth < 40 ? depth : 40) * 2, "");
  if (t->parent)
    ljp_print_format(out, "exit %" PRIu32 ": ", t->parent_exit);
  if (!t->known) {
    ljp_print_format(out, "(unknown trace %" PRIu64 ")\n", t->id);
    return;
  }
  ljp_print_format(out, "trace %" PRIu32 " ", t->number);
  jit_text_place(r, t->name, t->file, t->line);
  if (t->link && t->link != at) {
    ljp_print_str(out, "  ");
    ljp_print_safe(out, link);
    ljp_print_format(out, " -> trace %" PRIu32, r->p->traces[t->link].number);
  } else if (link.len) {
    ljp_print_str(out, "  ");
    ljp_print_safe(out, link);
  }
  if (t->ir_count)
    ljp_print_format(out, ", %" PRIu32 " IR", t->ir_count);
  if (t->code_bytes)
    ljp_print_format(out, ", %" PRIu64 " bytes", t->code_bytes);
  if (t->snapshots)
    ljp_print_format(out, ", %" PRIu32 " exits", t->snapshots);
  if (j->given_up)
    ljp_print_format(out, ", %" PRIu32 " side trace%s given up", j->given_up,
                     j->given_up == 1 ? "" : "s");
  if (t->truncated)
    ljp_print_format(out, ", %" PRIu32 " mark%s left out", t->marks_cut,
                     t->marks_cut == 1 ? "" : "s");
  if (j->fate)
    ljp_print_format(out, ", %s", ljp_jit_fate(j));
  ljp_print_str(out, "\n");
}

struct text_traces {
  const struct ljp_report *r;
  const struct ljp_jit *jit;
  uint32_t shown, hidden;
  struct ljp_value rest;
};

static void jit_text_visit(void *ctx, uint32_t at, unsigned depth)
{
  struct text_traces *t = ctx;
  const struct ljp_jit_trace *j = &t->jit->traces[at];
  if (t->r->top && (t->shown == t->r->top || jit_text_is_empty(&j->tree))) {
    t->hidden++;
    t->rest.count += j->self.count + j->exit.count;
    t->rest.weight += j->self.weight + j->exit.weight;
    return;
  }
  if (!t->shown)
    ljp_print_format(t->r->out, "\n%10s %7s %10s %7s %10s %7s  %s\n", "self",
                     "%", "leaving", "%", "with side", "%",
                     "traces, with the side traces of their exits");
  jit_text_trace(t->r, t->jit, at, depth);
  t->shown++;
}

static void jit_text_traces(const struct ljp_report *r,
                            const struct ljp_jit *jit)
{
  struct text_traces t = {.r = r, .jit = jit};
  ljp_jit_each_trace(r, jit, jit_text_visit, &t);
  if (!t.hidden)
    return;
  ljp_print_str(r->out, t.shown ? "" : "\n");
  jit_text_amount(r, &t.rest);
  ljp_print_format(r->out,
                   "  in %" PRIu32 " more trace%s (--top 0 shows all)\n",
                   t.hidden, t.hidden == 1 ? "" : "s");
}

static double jit_text_share(const struct ljp_value *part,
                             const struct ljp_value *all)
{
  if (all->weight)
    return 100.0 * (double)part->weight / (double)all->weight;
  return all->count ? 100.0 * (double)part->count / (double)all->count : 0;
}

static bool jit_text_functions(const struct ljp_report *r,
                               const struct ljp_jit *jit)
{
  uint32_t count, *order = ljp_jit_functions(r, jit, &count);
  char name[LJP_JIT_NAME_BYTES];
  if (!order)
    return false;
  ljp_print_format(r->out, "\n%10s %7s %9s %9s %9s %7s %7s  %s\n",
                   jit_text_measured(r), "%", "compiled", "interpr.",
                   "compiling", "exits", "GC",
                   "functions, including the C functions they call");
  for (uint32_t i = 0; i < count && (!r->top || i < r->top); i++) {
    const struct ljp_value *kinds = jit->functions[order[i]];
    struct ljp_value all = ljp_jit_sum(kinds),
                     compiler = jit_text_compiling(kinds);
    jit_text_amount(r, &all);
    ljp_print_format(r->out, " %8.2f%% %8.2f%% %8.2f%% %6.2f%% %6.2f%%  ",
                     jit_text_share(&kinds[LJP_JIT_COMPILED], &all),
                     jit_text_share(&kinds[LJP_JIT_INTERPRETED], &all),
                     jit_text_share(&compiler, &all),
                     jit_text_share(&kinds[LJP_JIT_EXIT], &all),
                     jit_text_share(&kinds[LJP_JIT_GC], &all));
    ljp_jit_function_name(r, order[i], name);
    ljp_print_safe(r->out, ljp_str(name, strlen(name)));
    ljp_print_str(r->out, "\n");
  }
  free(order);
  return true;
}

static void jit_text_site(const struct ljp_report *r,
                          const struct ljp_jit_place *place, int indent)
{
  struct ljp_print *out = r->out;
  ljp_print_format(out, "%*s%8" PRIu32 "  ", indent, "", place->count);
  jit_text_place(r, place->name, place->file, place->line);
  if (place->parent)
    ljp_print_format(out, ", exit %" PRIu32 " of trace %" PRIu32,
                     place->parent_exit, r->p->traces[place->parent].number);
  if (place->at) {
    const struct ljp_profile_frame *f = &r->p->frames[place->at];
    ljp_print_str(out, "; given up at ");
    jit_text_place(r, f->name, f->file, f->line);
  }
  ljp_print_str(out, "\n");
}

static void jit_text_reasons(const struct ljp_report *r,
                             const struct ljp_jit *jit)
{
  struct ljp_print *out = r->out;
  if (jit->reason_count)
    ljp_print_format(out, "\n%10s %7s %9s  %s\n", "lost", "%", "count",
                     "why recordings were given up, and where");
  for (uint32_t i = 0; i < jit->reason_count && (!r->top || i < r->top); i++) {
    const struct ljp_jit_reason *reason = &jit->reasons[i];
    struct ljp_str text = ljp_profile_str(r->p, reason->reason);
    jit_text_amount(r, &reason->lost);
    ljp_print_format(out, " %9" PRIu32 "  ", reason->count);
    if (text.len)
      ljp_print_safe(out, text);
    else
      ljp_print_str(out, "(unknown reason)");
    ljp_print_str(out, "\n");
    uint32_t most = r->top ? PLACES : reason->places;
    for (uint32_t k = 0; k < reason->places && k < most; k++)
      jit_text_site(r, &jit->places[reason->first + k], 22);
    if (reason->places > most)
      ljp_print_format(out, "%22s%8s  and %" PRIu32 " more places\n", "", "",
                       reason->places - most);
  }
  if (jit->reason_count)
    ljp_print_str(out, "(lost: time for interpreting and compiling these "
                       "functions, counted for each reason)\n");
}

static void jit_text_blacklisted(const struct ljp_report *r,
                                 const struct ljp_jit *jit)
{
  struct ljp_print *out = r->out;
  if (jit->blacklisted_count)
    ljp_print_format(out, "\n%10s %7s %9s %9s  %s\n", "interpr.", "%",
                     "compiled", "count",
                     "blacklisted: no trace begins there again (others may run "
                     "through it)");
  for (uint32_t i = 0; i < jit->blacklisted_count && (!r->top || i < r->top);
       i++) {
    const struct ljp_jit_place *place = &jit->blacklisted[i];
    struct ljp_value none = {0};
    const struct ljp_value *kinds =
        place->function ? jit->functions[place->function] : NULL;
    struct ljp_value all = kinds ? ljp_jit_sum(kinds) : none;
    jit_text_amount(r, kinds ? &kinds[LJP_JIT_INTERPRETED] : &none);
    ljp_print_format(
        out, " %8.2f%%",
        jit_text_share(kinds ? &kinds[LJP_JIT_COMPILED] : &none, &all));
    jit_text_site(r, place, 2);
  }
}

bool ljp_jit_text(const struct ljp_report *r, const struct ljp_jit *jit)
{
  ljp_report_head(r);
  jit_text_kinds(r, jit);
  jit_text_traces(r, jit);
  bool ok = jit_text_functions(r, jit);
  jit_text_reasons(r, jit);
  jit_text_blacklisted(r, jit);
  return ok;
}
