/*
** Fills a page from a profile: rows over time, leaks, the collector's phases,
** marks, and facts about the session.
*/
#include "tools/page/load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parsers/base/array.h"
#include "parsers/profile/frame_name.h"
#include "tools/page/stacks.h"
#include "tools/shared/command.h"
#include "tools/shared/gc_phases.h"

struct load {
  struct ljp_page *page;
  const struct ljp_profile *p;
  struct ljp_page_stacks stacks;
  uint32_t *contexts; /* By those of the profile: the page's, + 1. */
  char *text;         /* Of labels. */
  uint32_t length, room;
};

static struct ljp_str load_thread_name(struct load *l, uint32_t number)
{
  const struct ljp_profile_thread *t = &l->p->threads[number];
  struct ljp_str name = ljp_profile_str(l->p, t->name);
  if (!number) /* Sampled memory, for one: it belongs to a VM, not a thread. */
    return ljp_str("", 0);
  return ljp_page_format(l->page, "%.*s (%" PRIu64 ")", (int)name.len,
                         name.len ? name.data : "", t->tid);
}

static struct ljp_str load_vm_name(struct load *l, uint32_t number)
{
  if (!number)
    return ljp_str("none", 4);
  struct ljp_str name = ljp_profile_str(l->p, l->p->vms[number].name);
  return name.len
             ? name
             : ljp_page_format(l->page, "VM %" PRIu64, l->p->vms[number].id);
}

/* Adds a text and its NUL to l->text. */
static void load_add_text(struct load *l, struct ljp_str s)
{
  for (uint32_t i = 0; i <= s.len; i++) {
    if (!ljp_array_reserve(&l->text, l->length, &l->room, 1)) {
      l->page->failed = LJP_ERR_MEM;
      return;
    }
    l->text[l->length++] = i < s.len ? s.data[i] : '\0';
  }
}

/* A set of labels as a LABELS record has it. Valid until the next call. */
static struct ljp_str load_labels(struct load *l, uint32_t labels)
{
  const struct ljp_profile *p = l->p;
  const struct ljp_profile_labels *set = &p->labels[labels];
  l->length = 0;
  if (labels && labels < LJP_LABELS_OWN) {
    load_add_text(l, ljp_str("", 0));
    load_add_text(l, ljp_profile_str(p, p->label_texts[labels]));
  }
  for (uint32_t i = 0; i < set->count; i++) {
    load_add_text(l, ljp_profile_str(p, p->label_pairs[set->first + i].key));
    load_add_text(l, ljp_profile_str(p, p->label_pairs[set->first + i].value));
  }
  return ljp_str(l->text, l->length);
}

/* The page's context of a row. Those that no row has are not in the page. */
static uint32_t load_context(struct load *l, const struct ljp_profile_row *row)
{
  const struct ljp_profile_context *c = &l->p->contexts[row->context];
  const char *state = ljp_profile_state_text(c->state);
  uint32_t *context = &l->contexts[row->context];
  if (!*context) {
    struct ljp_page_context to = {
        .thread = load_thread_name(l, c->thread),
        .vm = load_vm_name(l, c->vm),
        .state = state ? ljp_str(state, strlen(state))
                       : ljp_page_format(l->page, "state %u", c->state)};
    to.labels = load_labels(l, c->labels);
    *context = ljp_page_context(l->page, &to) + 1;
  }
  return *context - 1;
}

static void load_points(struct load *l)
{
  const struct ljp_profile *p = l->p;
  for (uint32_t i = 0; i < p->point_count; i++) {
    const struct ljp_profile_point *at = &p->points[i];
    const struct ljp_profile_row *row = &p->rows[at->row];
    ljp_page_row(l->page,
                 at->live ? LJP_PAGE_VIEW_LIVE
                          : ljp_page_stacks_view(&l->stacks, row),
                 at->tick * p->tick_ns, ljp_page_stacks_node(&l->stacks, row),
                 load_context(l, row), at->count, at->weight);
  }
}

/* Adds the rows of the reports on leaks and on the collector's time. */
static void load_untimed(struct load *l)
{
  for (uint32_t i = 0; i < l->p->row_count; i++) {
    const struct ljp_profile_row *row = &l->p->rows[i];
    const struct ljp_profile_memory *m = &l->p->memory[row->memory];
    if (row->memory && (m->old_objects || m->old_bytes))
      ljp_page_leak(l->page, l->stacks.nodes[row->node], load_context(l, row),
                    m->old_objects, m->old_bytes, m->slices);
    if (row->memory && m->gc_ns)
      ljp_page_row(l->page, LJP_PAGE_VIEW_GC_COST, 0,
                   l->stacks.nodes[row->node], load_context(l, row), 0,
                   m->gc_ns);
  }
}

static void load_gc_cost(struct load *l)
{
  static struct ljp_print text; /* Too large for the stack. */
  if (!l->p->options.gc_cost || !l->p->gc_cost.samples)
    return;
  ljp_print_begin(&text, -1);
  ljp_gc_phases(&text, &l->p->gc_cost);
  ljp_page_fact(l->page, "Garbage collector", ljp_str(text.buf, text.len));
}

static void load_gc(struct load *l)
{
  const struct ljp_profile *p = l->p;
  struct ljp_profile_gc *last = calloc(p->vm_count + 1, sizeof *last);
  if (!last) {
    l->page->failed = LJP_ERR_MEM;
    return;
  }
  for (uint32_t i = 0; i < p->gc_count; i++) {
    const struct ljp_profile_gc *g = &p->gc[i];
    struct ljp_profile_gc *before = &last[g->vm];
    if (before->time_ns && before->phase != LJP_GC_PAUSE &&
        before->phase != LJP_GC_CLOSED)
      ljp_page_gc(l->page, before->time_ns, g->time_ns - before->time_ns,
                  before->phase);
    ljp_page_point(l->page, load_vm_name(l, g->vm), g->time_ns,
                   g->phase == LJP_GC_CLOSED ? 0 : g->heap_bytes);
    *before = *g;
  }
  free(last);
  for (uint32_t i = 0; i < p->mark_count; i++)
    ljp_page_mark(l->page, p->marks[i].time_ns,
                  ljp_profile_str(p, p->marks[i].text));
}

static void load_facts(struct load *l, const char *file)
{
  const struct ljp_profile *p = l->p;
  struct ljp_page *page = l->page;
  struct ljp_str command = ljp_profile_str(p, p->command_line);
  const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
  char shown[160] = "", when[40] = "";
  time_t seconds = (time_t)(p->origin_wall_ns / 1000000000);
  struct tm tm;
  uint32_t n = 0;
  if (strcmp(file, "-") == 0)
    base = ljp_command_input;
  page->title = ljp_page_text(page, ljp_str(base, strlen(base)));
  for (; n < command.len && n < sizeof shown - 4; n++)
    shown[n] = command.data[n] ? command.data[n] : ' ';
  while (n && shown[n - 1] == ' ')
    n--;
  bool cut = n && n < command.len - 1;
  if (p->origin_wall_ns && gmtime_r(&seconds, &tm))
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &tm);
  page->subtitle =
      p->recorded_by
          ? ljp_page_format(page, "recorded by %s", p->recorded_by)
          : ljp_page_format(page, "%.*s%s%s%s", (int)n, shown, cut ? "..." : "",
                            n && *when ? " \xc2\xb7 " : "", when);
  if (p->recorded_by) {
    ljp_page_fact(page, "Recorded by",
                  ljp_str(p->recorded_by, strlen(p->recorded_by)));
  } else {
    ljp_page_fact(page, "Program", ljp_profile_str(p, p->executable));
    ljp_page_fact(page, "Process", ljp_page_format(page, "%" PRIu64, p->pid));
  }
  uint64_t missing = ljp_balance_missing(&p->balance);
  char amount[LJP_BALANCE_TIME_BYTES];
  if (missing)
    ljp_page_fact(
        page, "CPU time not sampled",
        ljp_page_format(page, "%s", ljp_balance_time(missing, amount)));
  for (uint32_t i = 0; ljp_profile_notice(p, i); i++)
    ljp_page_notice(
        page, false,
        ljp_str(ljp_profile_notice(p, i), strlen(ljp_profile_notice(p, i))));
}

enum ljp_status ljp_page_load(struct ljp_page *page,
                              const struct ljp_profile *profile,
                              const char *file)
{
  struct load l = {.page = page, .p = profile};
  l.contexts = calloc(profile->context_count + 1, sizeof *l.contexts);
  if (!l.contexts)
    page->failed = LJP_ERR_MEM;
  else if (!ljp_page_stacks_init(&l.stacks, page, profile, true)) {
    page->end_ns = profile->end_ns;
    page->untimed = profile->recorded_by;
    page->estimated = profile->sampled_memory;
    load_points(&l);
    load_untimed(&l);
    load_gc(&l);
    load_facts(&l, file);
    load_gc_cost(&l);
  }
  ljp_page_stacks_fini(&l.stacks);
  free(l.contexts);
  free(l.text);
  return page->failed;
}

enum ljp_status ljp_page_load_lua(struct ljp_page *page, struct ljp_profile *p)
{
  const size_t rows = (size_t)p->row_count + 1;
  uint32_t *row_map = calloc(rows, sizeof *row_map);
  uint32_t *native = calloc(rows, sizeof *native);
  struct ljp_page_stacks stacks = {0};
  enum ljp_status status = LJP_ERR_MEM;
  if (row_map && native &&
      !(status = ljp_page_stacks_init(&stacks, page, p, true))) {
    for (uint32_t i = 0; i + 1 < rows; i++)
      native[i] = ljp_page_stacks_node(&stacks, &p->rows[i]);
    ljp_page_stacks_fini(&stacks);
    stacks = (struct ljp_page_stacks){0};
    page->lua_count = page->node_count;
    page->lua_nodes = calloc(page->lua_count, sizeof *page->lua_nodes);
    status = page->lua_nodes ? ljp_profile_fold(p, row_map) : LJP_ERR_MEM;
    if (!status && !(status = ljp_page_stacks_init(&stacks, page, p, true)))
      for (uint32_t i = 0; i + 1 < rows; i++)
        page->lua_nodes[native[i]] =
            ljp_page_stacks_node(&stacks, &p->rows[row_map[i]]);
  }
  ljp_page_stacks_fini(&stacks);
  free(row_map);
  free(native);
  if (status)
    page->failed = status;
  return page->failed;
}
