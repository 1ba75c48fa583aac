/*
** Shows what jit.c has gathered as text; and in which order.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/frame_name.h"
#include "tools/report/jit.h"

enum { PLACES = 3 };

static const char *const kind_texts[] = {
#define LJP_X(name, key, text) text,
    LJP_JIT_LIST(LJP_X)
#undef LJP_X
};
const char *ljp_jit_fate(const struct ljp_jit_trace *trace)
{
  static const char *const fates[] = {"alive", "freed", "flushed"};
  return fates[trace->fate];
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

/* What the compiler itself took. */
static struct ljp_value compiling(const struct ljp_value kinds[LJP_JIT_KINDS])
{
  struct ljp_value all = {0};
  for (unsigned i = LJP_JIT_RECORD; i <= LJP_JIT_ASM; i++) {
    all.count += kinds[i].count;
    all.weight += kinds[i].weight;
  }
  return all;
}

static bool is_empty(const struct ljp_value *v)
{
  return !v->count && !v->weight;
}

/* -- Text --------------------------------------------------------------------- */

static void amount(const struct ljp_report *r, const struct ljp_value *v)
{
  char text[24];
  ljp_amount(r, v->weight, text);
  ljp_print_format(r->out, "%10s %6.2f%%", text, ljp_percent(r, v));
}

static void print_name(const struct ljp_report *r, uint32_t name)
{
  struct ljp_str s = ljp_profile_str(r->p, name);
  if (s.len)
    ljp_print_safe(r->out, s);
  else
    ljp_print_str(r->out, "function");
}

/* "name file:line" */
static void print_place(const struct ljp_report *r, uint32_t name,
                        uint32_t file, uint32_t line)
{
  if (!file) {
    ljp_print_str(r->out, "(unknown place)");
    return;
  }
  print_name(r, name);
  ljp_print_str(r->out, " ");
  ljp_print_safe(r->out, ljp_profile_str(r->p, file));
  ljp_print_format(r->out, ":%" PRIu32, line);
}

static void text_kinds(const struct ljp_report *r, const struct ljp_jit *jit)
{
  struct ljp_print *out = r->out;
  ljp_print_format(out, "%10s %7s %10s\n", "time", "%", "samples");
  for (unsigned i = 0; i < LJP_JIT_KINDS; i++) {
    amount(r, &jit->kinds[i]);
    ljp_print_format(out, " %10" PRIu64 "  %s\n", jit->kinds[i].count,
                     kind_texts[i]);
  }
  const uint64_t *e = jit->events;
  if (!jit->has_events) {
    ljp_print_str(out, "\nno trace events in the file: what was given up is "
                       "not known\n");
    return;
  }
  ljp_print_format(out,
                   "\nrecordings begun %" PRIu64 ", compiled %" PRIu64
                   ", given up %" PRIu64 "; there before %" PRIu64
                   "; flushes %" PRIu64 ", freed %" PRIu64
                   ", blacklisted %" PRIu64 "\n",
                   e[LJP_TRACE_START], e[LJP_TRACE_STOP], e[LJP_TRACE_ABORT],
                   e[LJP_TRACE_EXISTS], e[LJP_TRACE_FLUSH], e[LJP_TRACE_FREE],
                   e[LJP_TRACE_BLACKLIST]);
}

static void text_trace(const struct ljp_report *r, const struct ljp_jit *jit,
                       uint32_t at, unsigned depth)
{
  const struct ljp_profile_trace *t = &r->p->traces[at];
  const struct ljp_jit_trace *j = &jit->traces[at];
  struct ljp_str link = ljp_profile_str(r->p, t->link_type);
  struct ljp_print *out = r->out;
  amount(r, &j->self);
  ljp_print_str(out, " ");
  amount(r, &j->exit);
  ljp_print_str(out, " ");
  amount(r, &j->tree);
  ljp_print_format(out, "  %*s", (int)(depth < 40 ? depth : 40) * 2, "");
  if (t->parent)
    ljp_print_format(out, "exit %" PRIu32 ": ", t->parent_exit);
  if (!t->known) {
    ljp_print_format(out, "(unknown trace %" PRIu64 ")\n", t->id);
    return;
  }
  ljp_print_format(out, "trace %" PRIu32 " ", t->number);
  print_place(r, t->name, t->file, t->line);
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
  ljp_print_format(out, ", %" PRIu64 " bytes", t->code_bytes);
  if (t->snapshots)
    ljp_print_format(out, ", %" PRIu32 " exits", t->snapshots);
  if (j->blamed)
    ljp_print_format(out, ", %" PRIu32 " side trace%s given up", j->blamed,
                     j->blamed == 1 ? "" : "s");
  if (t->truncated)
    ljp_print_format(out, ", %" PRIu32 " mark%s left out", t->marks_cut,
                     t->marks_cut == 1 ? "" : "s");
  if (j->fate)
    ljp_print_format(out, ", %s", ljp_jit_fate(j));
  ljp_print_str(out, "\n");
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

struct text_traces {
  const struct ljp_report *r;
  const struct ljp_jit *jit;
  uint32_t shown, hidden;
  struct ljp_value rest;
};

static void text_visit(void *ctx, uint32_t at, unsigned depth)
{
  struct text_traces *t = ctx;
  const struct ljp_jit_trace *j = &t->jit->traces[at];
  if (t->r->top && (t->shown == t->r->top || is_empty(&j->tree))) {
    t->hidden++;
    t->rest.count += j->self.count + j->exit.count;
    t->rest.weight += j->self.weight + j->exit.weight;
    return;
  }
  if (!t->shown)
    ljp_print_format(t->r->out, "\n%10s %7s %10s %7s %10s %7s  %s\n", "self",
                     "%", "leaving", "%", "with side", "%",
                     "traces, and the side traces of their exits");
  text_trace(t->r, t->jit, at, depth);
  t->shown++;
}

static void text_traces(const struct ljp_report *r, const struct ljp_jit *jit)
{
  struct text_traces t = {.r = r, .jit = jit};
  ljp_jit_each_trace(r, jit, text_visit, &t);
  if (!t.hidden)
    return;
  ljp_print_str(r->out, t.shown ? "" : "\n");
  amount(r, &t.rest);
  ljp_print_format(r->out, "  in %" PRIu32 " more trace%s (--top 0: all)\n",
                   t.hidden, t.hidden == 1 ? "" : "s");
}

static const struct ljp_jit *sort_jit;

static int by_time(const void *a, const void *b)
{
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  struct ljp_value x = ljp_jit_sum(sort_jit->functions[i]);
  struct ljp_value y = ljp_jit_sum(sort_jit->functions[k]);
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
    if (!is_empty(&all))
      order[(*count)++] = i;
  }
  sort_jit = jit;
  if (order && *count)
    qsort(order, *count, sizeof *order, by_time);
  return order;
}

static double share(const struct ljp_value *part, const struct ljp_value *all)
{
  if (all->weight)
    return 100.0 * (double)part->weight / (double)all->weight;
  return all->count ? 100.0 * (double)part->count / (double)all->count : 0;
}

void ljp_jit_function_name(const struct ljp_report *r, uint32_t function,
                           char name[LJP_JIT_NAME_BYTES])
{
  if (function)
    ljp_function_name(r->p, function, name, LJP_JIT_NAME_BYTES);
  else
    snprintf(name, LJP_JIT_NAME_BYTES, "(no Lua function)");
}

static bool text_functions(const struct ljp_report *r,
                           const struct ljp_jit *jit)
{
  uint32_t count, *order = ljp_jit_functions(r, jit, &count);
  char name[LJP_JIT_NAME_BYTES];
  if (!order)
    return false;
  ljp_print_format(r->out, "\n%10s %7s %9s %9s %9s %7s %7s  %s\n", "time", "%",
                   "compiled", "interpr.", "compiling", "exits", "GC",
                   "functions, with what they call that is not Lua");
  for (uint32_t i = 0; i < count && (!r->top || i < r->top); i++) {
    const struct ljp_value *kinds = jit->functions[order[i]];
    struct ljp_value all = ljp_jit_sum(kinds), compiler = compiling(kinds);
    amount(r, &all);
    ljp_print_format(r->out, " %8.2f%% %8.2f%% %8.2f%% %6.2f%% %6.2f%%  ",
                     share(&kinds[LJP_JIT_COMPILED], &all),
                     share(&kinds[LJP_JIT_INTERPRETED], &all),
                     share(&compiler, &all), share(&kinds[LJP_JIT_EXIT], &all),
                     share(&kinds[LJP_JIT_GC], &all));
    ljp_jit_function_name(r, order[i], name);
    ljp_print_safe(r->out, ljp_str(name, strlen(name)));
    ljp_print_str(r->out, "\n");
  }
  free(order);
  return true;
}

static void text_where(const struct ljp_report *r,
                       const struct ljp_jit_place *place, int indent)
{
  struct ljp_print *out = r->out;
  ljp_print_format(out, "%*s%8" PRIu32 "  ", indent, "", place->count);
  print_place(r, place->name, place->file, place->line);
  if (place->parent)
    ljp_print_format(out, ", exit %" PRIu32 " of trace %" PRIu32,
                     place->parent_exit, r->p->traces[place->parent].number);
  if (place->at) {
    const struct ljp_profile_frame *f = &r->p->frames[place->at];
    ljp_print_str(out, "; given up at ");
    print_place(r, f->name, f->file, f->line);
  }
  ljp_print_str(out, "\n");
}

static void text_reasons(const struct ljp_report *r, const struct ljp_jit *jit)
{
  struct ljp_print *out = r->out;
  if (jit->reason_count)
    ljp_print_format(out, "\n%10s %7s %9s  %s\n", "lost", "%", "count",
                     "why recordings were given up, and where");
  for (uint32_t i = 0; i < jit->reason_count && (!r->top || i < r->top); i++) {
    const struct ljp_jit_reason *reason = &jit->reasons[i];
    struct ljp_str text = ljp_profile_str(r->p, reason->reason);
    amount(r, &reason->lost);
    ljp_print_format(out, " %9" PRIu32 "  ", reason->count);
    if (text.len)
      ljp_print_safe(out, text);
    else
      ljp_print_str(out, "(reason not known)");
    ljp_print_str(out, "\n");
    uint32_t most = r->top ? PLACES : reason->places;
    for (uint32_t k = 0; k < reason->places && k < most; k++)
      text_where(r, &jit->places[reason->first + k], 22);
    if (reason->places > most)
      ljp_print_format(out, "%22s%8s  and %" PRIu32 " more places\n", "", "",
                       reason->places - most);
  }
  if (jit->reason_count)
    ljp_print_str(out, "(lost: interpreting and compiling the functions named, "
                       "for each reason)\n");
}

static void text_black(const struct ljp_report *r, const struct ljp_jit *jit)
{
  struct ljp_print *out = r->out;
  if (jit->black_count)
    ljp_print_format(out, "\n%10s %7s %9s  %s\n", "interpr.", "%", "count",
                     "blacklisted: never compiled again");
  for (uint32_t i = 0; i < jit->black_count && (!r->top || i < r->top); i++) {
    const struct ljp_jit_place *place = &jit->black[i];
    struct ljp_value none = {0};
    amount(r, place->function
                  ? &jit->functions[place->function][LJP_JIT_INTERPRETED]
                  : &none);
    text_where(r, place, 2);
  }
}

bool ljp_jit_show(const struct ljp_report *r)
{
  struct ljp_jit jit;
  if (!ljp_jit_make(r, &jit))
    return false;
  bool ok = true;
  if (r->json) {
    ok = ljp_jit_json(r, &jit);
  } else {
    ljp_report_head(r);
    text_kinds(r, &jit);
    text_traces(r, &jit);
    ok = text_functions(r, &jit);
    text_reasons(r, &jit);
    text_black(r, &jit);
  }
  ljp_jit_fini(&jit);
  return ok;
}
