/*
** The pass over a file of Tarantool's profilers: its events become rows of the
** profile, without a detour over a stream of ours. Samples go to
** tarantool_samples.c, memory events to tarantool_heap.c. One thread a profile.
*/
#include <stdio.h>

#include "parsers/profile/pass.h"
#include "parsers/profile/points.h"
#include "parsers/profile/tarantool_heap.h"
#include "parsers/profile/tarantool_samples.h"
#include "src/base/assert.h"

struct tarantool_pass {
  struct ljp_profile *p;
  struct ljp_tarantool_symbols symbols;
  struct ljp_tarantool_samples samples;
  struct ljp_tarantool_heap heap;
};

/* -- The pass -------------------------------------------------------------- */

static enum ljp_status tarantool_read(struct tarantool_pass *t,
                                      struct ljp_tarantool_reader *reader)
{
  const struct ljp_tarantool_event *e;
  struct ljp_profile *p = t->p;
  enum ljp_status status;
  uint64_t told = 0;
  for (;;) {
    if ((status = ljp_tarantool_heap_read(&t->heap, reader)) ||
        (status = ljp_tarantool_samples_read(&t->samples, reader)) ||
        (status = ljp_tarantool_next(reader, &e)))
      break;
    switch (e->what) {
    case LJP_TARANTOOL_HEAD:
      status = ljp_tarantool_symbols_whole(&t->symbols, p);
      break;
    case LJP_TARANTOOL_MEMORY:
      if (!p->options.no_memory)
        status = ljp_tarantool_heap_take(&t->heap, &e->u.memory);
      break;
    case LJP_TARANTOOL_SAMPLE:
      if (!p->options.no_samples)
        status = ljp_tarantool_samples_take(&t->samples, &e->u.sample);
      break;
    case LJP_TARANTOOL_SYMBOL:
      status = ljp_tarantool_symbols_add(&t->symbols, p, &e->u.symbol);
      break;
    case LJP_TARANTOOL_FINISH:
      p->source_bytes = e->offset;
      return LJP_OK;
    }
    if (LJP_UNLIKELY(status))
      break;
    if (LJP_UNLIKELY(e->offset - told >= 1u << 20) && p->options.progress) {
      told = e->offset;
      p->options.progress(p->options.progress_ctx, told);
    }
  }
  snprintf(p->error, sizeof p->error, "%s%s",
           status == LJP_ERR_FORMAT || status == LJP_ERR_VERSION
               ? "a file of Tarantool's profilers: "
               : "",
           status == LJP_ERR_MEM ? ljp_status_text(status) : reader->error);
  return status;
}

/* Options that select what such files do not have. */
static enum ljp_status tarantool_check_options(struct ljp_profile *p)
{
  const char *option = p->pass->filters_time ? "times"
                       : p->options.thread   ? "threads"
                                             : NULL;
  if (!option)
    return LJP_OK;
  snprintf(p->error, sizeof p->error,
           "a file of Tarantool's profilers: it has no %s to select by",
           option);
  return LJP_ERR_USE;
}

/* What views that show times get: everything at time 0. */
static enum ljp_status tarantool_add_points(struct ljp_profile *p)
{
  enum ljp_status status = LJP_OK;
  for (uint32_t i = 0; i < p->row_count && !status; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    if (row->count || row->weight)
      status = ljp_profile_add_point(
          p, 0, i, row->memory ? row->count * LJP_OBJECT : row->count,
          row->weight, false);
  }
  return status;
}

/* The whole file was read, or what can be read of it. */
static enum ljp_status
tarantool_finish(struct tarantool_pass *t,
                 const struct ljp_tarantool_reader *reader)
{
  struct ljp_profile *p = t->p;
  enum ljp_status status;
  if (!reader->whole)
    snprintf(p->pass->ends, sizeof p->pass->ends, "%s", reader->error);
  else if (reader->rest)
    snprintf(p->pass->ends, sizeof p->pass->ends,
             "%llu bytes after the end of the events were not read",
             (unsigned long long)reader->rest);
  if ((status = ljp_tarantool_heap_finish(&t->heap)) ||
      (status = ljp_tarantool_symbols_note(&t->symbols, p)) ||
      (p->options.points && (status = tarantool_add_points(p))))
    snprintf(p->error, sizeof p->error, "%s", ljp_status_text(status));
  return status;
}

enum ljp_status ljp_profile_add_tarantool(struct ljp_profile *p,
                                          struct ljp_tarantool_reader *reader)
{
  enum ljp_status status = tarantool_check_options(p);
  struct tarantool_pass *t = NULL;
  ljp_assert(!p->pass->begun);
  if (status)
    return status;
  if (!(t = calloc(1, sizeof *t)) ||
      ljp_tarantool_heap_init(&t->heap, p, &t->symbols) ||
      ljp_tarantool_samples_init(&t->samples, p, &t->symbols)) {
    snprintf(p->error, sizeof p->error, "%s", ljp_status_text(LJP_ERR_MEM));
    if (t)
      ljp_tarantool_heap_fini(&t->heap);
    free(t);
    return LJP_ERR_MEM;
  }
  t->p = p;
  p->pass->begun = true;
  p->source_count = 1;
  status = tarantool_read(t, reader);
  p->has_memory = reader->memory;
  if (!status)
    status = tarantool_finish(t, reader);
  p->has_memory = reader->memory; /* even if it has no event */
  p->recorded_by =
      reader->memory ? "Tarantool's memprof" : "Tarantool's sysprof";
  ljp_tarantool_symbols_fini(&t->symbols);
  ljp_tarantool_heap_fini(&t->heap);
  ljp_tarantool_samples_fini(&t->samples);
  free(t);
  return status;
}
