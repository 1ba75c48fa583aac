/*
** Fuzz target: any bytes as a stream, made into a profile and reported in every
** way. For all input, each event that the reader yields must be in one row;
** nodes and rows must refer to things that exist; every view must add up to the
** totals; JSON must be valid.
*/
#include <stdio.h>
#include <stdlib.h>

#include "parsers/profile/frame_name.h"
#include "test/support/fuzz_print.h"
#include "test/support/fuzz_stream.h"
#include "tools/report/groups.h"

static struct ljp_reader reader;

/* How many ways to group there are. */
#define ONE(name, option, of_frame) +1
enum { BYS = 0 LJP_BY_LIST(ONE) };
#undef ONE

static void check_tables(const struct ljp_profile *p, uint64_t samples,
                         uint64_t allocs)
{
  uint64_t seen = 0, seen_allocs = 0;
  char name[64];
  for (uint32_t i = 0; i < p->node_count; i++) {
    MUST(i == 0 || p->nodes[i].parent < i);
    MUST(p->nodes[i].frame < p->frame_count);
  }
  for (uint32_t i = 0; i < p->frame_count; i++) {
    MUST(p->frames[i].function < p->function_count);
    MUST(p->frames[i].module < p->module_count);
    ljp_frame_name(p, i, i % 8, name, sizeof name);
  }
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    MUST(row->node < p->node_count && row->context < p->context_count);
    MUST(row->memory < p->memory_count);
    const struct ljp_profile_context *c = &p->contexts[row->context];
    MUST(c->thread < p->thread_count && c->vm < p->vm_count);
    MUST(c->labels < p->label_count);
    if (c->kind == LJP_PRODUCER_MEMORY)
      seen_allocs += row->count;
    else
      seen += row->count;
  }
  for (uint32_t i = 0; i < p->point_count; i++)
    MUST(p->points[i].row < p->row_count);
  MUST(seen == samples);
  MUST(seen == p->totals.samples + p->totals.wall_samples);
  MUST(seen_allocs <= allocs && seen_allocs == p->totals.alloc_events);
}

/* The parts of the collector's time add up to the whole. */
static void check_gc_cost(const struct ljp_profile *p)
{
  const struct ljp_profile_gc_cost *c = &p->gc_cost;
  uint64_t parts = 0;
  for (uint32_t i = 1; i < p->memory_count; i++)
    parts += p->memory[i].gc_ns;
  MUST(parts == c->mark_ns + c->sweep_ns + c->unplaced_ns);
}

static void report(struct ljp_profile *p, unsigned measure, unsigned by,
                   bool json, bool tree)
{
  struct ljp_report r = {.p = p,
                         .by = (enum ljp_by)by,
                         .json = json,
                         .tree = tree,
                         .bottom_up = by % 2,
                         .lines = measure % 2,
                         .top = 40,
                         .out = &fuzz_print};
  const struct ljp_select_options select = {.measure =
                                                (enum ljp_measure)measure};
  struct ljp_value self = {0};
  struct ljp_groups groups;
  fuzz_print_begin();
  MUST(ljp_select(&r.select, p, &select, "fuzz") == 0);
  MUST(ljp_groups_make(&r, &groups));
  for (uint32_t i = 0; i < groups.count; i++) {
    ljp_value_add(&self, &groups.values[i].self);
  }
  MUST(self.count == r.select.total.count);
  MUST(self.weight == r.select.total.weight);
  ljp_groups_fini(&groups);
  MUST((r.places = ljp_report_places(&r)) != NULL);
  if (json)
    ljp_report_json_begin(&r);
  else
    ljp_report_head(&r);
  MUST(tree && ljp_by_of_frame(r.by) ? ljp_report_tree(&r)
                                     : ljp_report_table(&r));
  if (json)
    ljp_report_json_end(&r);
  fuzz_print_end(json);
  free(r.places);
  ljp_select_fini(&r.select);
}

/* Turns the profile to the Lua view, twice: the second time changes nothing. */
static void check_fold(struct ljp_profile *p, uint64_t samples, uint64_t allocs)
{
  uint64_t bytes = p->totals.memory.live_bytes, live = 0;
  MUST(ljp_profile_fold(p, NULL) == LJP_OK);
  check_tables(p, samples, allocs);
  uint32_t rows = p->row_count, memory = p->memory_count;
  for (uint32_t i = 0; i < rows; i++)
    live += p->memory[p->rows[i].memory].live_bytes;
  MUST(live == bytes);
  MUST(ljp_profile_fold(p, NULL) == LJP_OK);
  MUST(p->row_count == rows && p->memory_count == memory);
  check_gc_cost(p);
}

/* Profiles divided and filtered by the first label of the file: each event is in
** the one, and counted or excluded in the other. */
static void check_labels(const struct ljp_profile *of, const uint8_t *data,
                         size_t size, uint64_t samples, uint64_t allocs)
{
  static char key[LJP_STRING_MAX_BYTES + 1], label[2 * sizeof key];
  const struct ljp_profile_label_pair *pair = of->label_pairs;
  if (!of->label_pair_count)
    return;
  const struct ljp_str k = ljp_profile_str(of, pair->key);
  const struct ljp_str v = ljp_profile_str(of, pair->value);
  snprintf(key, sizeof key, "%.*s", (int)k.len, k.len ? k.data : "");
  snprintf(label, sizeof label, "%s=%.*s", key, (int)v.len,
           v.len ? v.data : "");
  for (int filter = 0; filter < 2; filter++) {
    struct ljp_profile_options options = {.no_symbols = true,
                                          .lua_view = size % 2,
                                          .label_key = key,
                                          .label_frames = !filter};
    if (filter)
      options.labels = (struct ljp_label_filter){{label}, 1};
    struct ljp_profile *p = ljp_profile_new(&options);
    MUST(p && ljp_reader_memory(&reader, data, size) == LJP_OK);
    MUST(ljp_profile_add(p, &reader) == LJP_OK);
    enum ljp_status status = ljp_profile_finish(p);
    MUST(!status || (status == LJP_ERR_USE && strchr(key, '=')));
    if (!status && !filter)
      check_tables(p, samples, allocs);
    else if (!status)
      MUST(p->totals.samples + p->totals.wall_samples <= samples &&
           p->totals.samples + p->totals.wall_samples + p->totals.filtered >=
               samples);
    ljp_reader_fini(&reader);
    ljp_profile_free(p);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const struct ljp_profile_options options = {
      .no_symbols = true, .points = size % 2, .gc_cost = true};
  const struct ljp_item *e;
  uint64_t samples = 0, allocs = 0;
  MUST(ljp_reader_memory(&reader, data, size) == LJP_OK);
  while (!ljp_reader_next(&reader, &e) && e->what != LJP_ITEM_FINISH) {
    samples += e->what == LJP_REC_SAMPLES;
    allocs += e->what == LJP_REC_MEM && e->u.mem.op == LJP_MEM_ALLOC;
  }
  ljp_reader_fini(&reader);
  struct ljp_profile *p = ljp_profile_new(&options);
  MUST(p && ljp_reader_memory(&reader, data, size) == LJP_OK);
  if (ljp_profile_add(p, &reader) == LJP_OK) {
    MUST(ljp_profile_finish(p) == LJP_OK);
    check_tables(p, samples, allocs);
    check_gc_cost(p);
    unsigned any = size ? data[size / 2] : 0;
    report(p, any % LJP_MEASURES, any % BYS, false, any & 1);
    report(p, (any + 1) % LJP_MEASURES, (any + 3) % BYS, true, any & 2);
    check_fold(p, samples, allocs);
    report(p, any % LJP_MEASURES, any % BYS, any & 4, any & 1);
  } else {
    MUST(p->error[0]);
  }
  ljp_reader_fini(&reader);
  if (!p->error[0])
    check_labels(p, data, size, samples, allocs);
  ljp_profile_free(p);
  return 0;
}
