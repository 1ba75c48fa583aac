/*
** Fuzz target: any bytes as a file of Tarantool's profilers, read event by
** event, made into a profile and reported. For all input, the offsets grow,
** each event is counted in one row, and what is allocated is freed or live.
*/
#include <stdio.h>
#include <stdlib.h>

#include "parsers/profile/frame_name.h"
#include "parsers/tarantool/walk.h"
#include "test/support/must.h"
#include "tools/report/groups.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ljp_print out;

static void drop(void *ctx, const char *data, size_t len)
{
  (void)ctx;
  (void)data;
  (void)len;
}

/* Walks a sample; both stacks must end within it. */
static void walk(const struct ljp_tarantool_sample *s)
{
  struct ljp_tarantool_walk at = ljp_tarantool_walk(s);
  struct ljp_tarantool_frame frame;
  uint64_t address;
  if (s->state == LJP_LJP_TRACE) {
    ljp_tarantool_trace(s);
    return;
  }
  while (ljp_tarantool_has_guest(s->state) && ljp_tarantool_guest(&at, &frame))
    MUST(at.at < s->bytes + s->size);
  while (ljp_tarantool_host(&at, &address))
    MUST(at.at < s->bytes + s->size);
  MUST(at.at == s->bytes + s->size);
}

struct counts {
  uint64_t samples, allocs, frees, reallocs;
  bool whole, failed;
};

static struct counts read_all(const uint8_t *data, size_t size)
{
  struct ljp_tarantool_reader reader;
  const struct ljp_tarantool_event *e;
  struct counts n = {0};
  uint64_t before = 0;
  enum ljp_status status;
  MUST(ljp_tarantool_memory(&reader, data, size) == LJP_OK);
  while (!(status = ljp_tarantool_next(&reader, &e)) &&
         e->what != LJP_TARANTOOL_FINISH) {
    MUST(e->offset >= before && e->offset < size);
    before = e->offset + 1;
    if (e->what == LJP_TARANTOOL_SAMPLE) {
      walk(&e->u.sample);
      n.samples++;
    } else if (e->what == LJP_TARANTOOL_MEMORY) {
      const struct ljp_tarantool_memory *m = &e->u.memory;
      bool failed = m->kind != LJP_LJM_FREE && !m->address && m->size;
      n.allocs += m->kind == LJP_LJM_ALLOC && !failed;
      n.reallocs += m->kind == LJP_LJM_REALLOC && !failed;
      n.frees += m->kind == LJP_LJM_FREE;
    } else if (e->what == LJP_TARANTOOL_SYMBOL && e->u.symbol.text.len) {
      MUST(e->u.symbol.text.len <= size);
    }
  }
  n.failed = status != LJP_OK;
  n.whole = reader.whole;
  MUST((!n.failed && n.whole) || reader.error[0]);
  ljp_tarantool_fini(&reader);
  return n;
}

static void check(const struct ljp_profile *p, const struct counts *n)
{
  uint64_t samples = 0, allocs = 0, frees = 0;
  const struct ljp_profile_memory *m = &p->totals.memory;
  char name[64];
  for (uint32_t i = 0; i < p->frame_count; i++)
    ljp_frame_name(p, i, i % 8, name, sizeof name);
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    MUST(row->node < p->node_count && row->memory < p->memory_count);
    if (p->contexts[row->context].kind == LJP_PRODUCER_MEMORY)
      allocs += row->count;
    else
      samples += row->count;
    if (row->memory && p->sites)
      frees += p->sites[row->memory].frees;
  }
  MUST(samples == n->samples && samples == p->totals.samples);
  MUST(allocs == n->allocs && p->totals.realloc_events == n->reallocs);
  MUST(frees == n->frees && p->totals.free_events == n->frees);
  MUST(m->alloc_bytes + p->totals.before_free_bytes ==
       m->free_bytes + m->live_bytes);
}

static void report(struct ljp_profile *p, unsigned measure, unsigned by,
                   bool json, bool tree)
{
  struct ljp_report r = {.p = p,
                         .by = (enum ljp_by)by,
                         .json = json,
                         .lines = measure % 2,
                         .top = 40,
                         .out = &out};
  const struct ljp_select_options select = {.measure =
                                                (enum ljp_measure)measure};
  ljp_print_begin(&out, -1);
  out.sink = drop;
  MUST(ljp_select(&r.select, p, &select, "fuzz") == 0);
  MUST((r.places = ljp_report_places(&r)) != NULL);
  if (json)
    ljp_report_json_begin(&r);
  else
    ljp_report_head(&r);
  MUST(tree && ljp_by_of_frame(r.by) ? ljp_report_tree(&r)
                                     : ljp_report_table(&r));
  if (json)
    ljp_report_json_end(&r);
  ljp_print_end(&out);
  free(r.places);
  ljp_select_fini(&r.select);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const struct ljp_profile_options options = {.no_symbols = true,
                                              .points = size % 2};
  struct ljp_tarantool_reader reader;
  struct counts n = read_all(data, size);
  struct ljp_profile *p = ljp_profile_new(&options);
  MUST(p && ljp_tarantool_memory(&reader, data, size) == LJP_OK);
  if (ljp_profile_add_tarantool(p, &reader) == LJP_OK) {
    MUST(!n.failed && ljp_profile_finish(p) == LJP_OK);
    check(p, &n);
    unsigned any = data[size / 2];
    report(p, any % 7, any % 11, false, any & 1);
    report(p, (any + 1) % 7, (any + 3) % 11, true, any & 2);
  } else {
    MUST(n.failed && p->error[0]);
  }
  ljp_tarantool_fini(&reader);
  ljp_profile_free(p);
  return 0;
}
