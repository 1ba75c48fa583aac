/*
** Writes the text that 'perf script' prints: a block for each sample, a line
** for each frame, leaf first, with address, name and module.
**
**   comm pid/tid seconds.micros: period event:
**           7f0012345678 function (/path/module)
**
**           ...
**
** Samples of the same tick have the same time. Memory has no time: each stack
** is one block whose period is its objects or bytes. The format has no way to
** leave a time or a process out: where the file has none they are 0, and a
** comment says so.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/export/export.h"

struct perf {
  struct ljp_export *e;
  char **lines; /* By frame, made when first used. NULL: out of memory. */
};

static void perf_put_frame(const struct perf *w, struct ljp_print *out,
                           uint32_t frame)
{
  const struct ljp_profile *p = w->e->p;
  const struct ljp_profile_frame *f = &p->frames[frame];
  char name[LJP_FRAME_NAME_BYTES];
  struct ljp_str module = ljp_profile_str(p, p->modules[f->module].path);
  struct ljp_str file = ljp_profile_str(p, f->file);
  size_t n =
      ljp_frame_name(p, frame, w->e->how & ~LJP_NAME_SUFFIX, name, sizeof name);
  uint64_t address =
      f->module && ljp_frame_shape(f->kind) == LJP_SHAPE_ADDR && f->kind < 16
          ? f->offset
          : (uint64_t)f->line;
  ljp_print_format(out, "\t%16" PRIx64 " ", address);
  ljp_print_plain(out, ljp_str(name, n < sizeof name ? n : sizeof name - 1), 0);
  ljp_print_str(out, " (");
  if (f->kind == LJP_FRAME_KERNEL)
    ljp_print_str(out, "[kernel.kallsyms]");
  else if (module.len)
    ljp_print_plain(out, module, 0);
  else if (file.len)
    ljp_print_plain(out, file, 0);
  else
    ljp_print_plain(out,
                    ljp_str(ljp_profile_kind_text(f->kind),
                            strlen(ljp_profile_kind_text(f->kind))),
                    0);
  ljp_print_str(out, ")\n");
}

static void perf_keep_line(void *ctx, const char *data, size_t len)
{
  char **line = ctx;
  *line = strndup(data, len); /* The line arrives in one piece: it is short. */
}

static void perf_put_line(const struct perf *w, uint32_t frame)
{
  static struct ljp_print line;
  if (w->lines && !w->lines[frame]) {
    ljp_print_begin(&line, -1);
    line.sink = perf_keep_line;
    line.ctx = &w->lines[frame];
    perf_put_frame(w, &line, frame);
    ljp_print_end(&line);
  }
  if (w->lines && w->lines[frame])
    ljp_print_str(w->e->out, w->lines[frame]);
  else
    perf_put_frame(w, w->e->out, frame);
}

static void perf_put_sample(const struct perf *w, uint32_t row,
                            uint64_t time_ns, uint64_t period)
{
  static uint32_t path[LJP_EXPORT_DEPTH];
  const struct ljp_profile *p = w->e->p;
  struct ljp_print *out = w->e->out;
  const struct ljp_profile_context *c = &p->contexts[p->rows[row].context];
  const struct ljp_profile_thread *thread = &p->threads[c->thread];
  struct ljp_str comm = ljp_profile_str(p, thread->name);
  struct ljp_str exe = ljp_base_name(ljp_profile_str(p, p->executable));
  uint32_t depth;
  if (!comm.len)
    comm = exe.len ? exe : ljp_str("thread", 6);
  ljp_print_plain(out, comm, ' ');
  ljp_print_format(
      out,
      " %" PRIu64 "/%" PRIu64 " %" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s:\n",
      p->pid, thread->tid, time_ns / 1000000000, time_ns / 1000 % 1000000,
      period,
      w->e->value == LJP_VALUE_CPU || w->e->value == LJP_VALUE_SAMPLES
          ? "cpu-clock"
          : ljp_value_name(w->e->value));
  ljp_export_path(p, p->rows[row].node, path, &depth);
  while (depth)
    perf_put_line(w, p->nodes[path[--depth]].frame);
  ljp_print_str(out, "\n");
}

/* A point can hold several samples. They share its weight. */
static void perf_put_point(const struct perf *w,
                           const struct ljp_profile_point *point)
{
  const struct ljp_profile *p = w->e->p;
  uint64_t left = point->weight;
  uint64_t time = p->origin_ns + point->tick * p->tick_ns;
  for (uint64_t n = point->count; n; n--) {
    perf_put_sample(w, point->row, time, left / n);
    left -= left / n;
  }
}

static void perf_put_all(const struct perf *w)
{
  struct ljp_export *e = w->e;
  const struct ljp_profile *p = e->p;
  uint8_t kind =
      e->value <= LJP_VALUE_CPU ? LJP_PRODUCER_CPU : LJP_PRODUCER_WALL;
  ljp_export_start(e);
  for (uint32_t row = 0; row < p->row_count && ljp_value_is_memory(e->value);
       row++) {
    uint64_t value = ljp_export_value(e, row, e->value);
    if (value)
      perf_put_sample(w, row, p->origin_ns, value);
  }
  for (uint32_t i = 0; i < p->point_count && !ljp_value_is_memory(e->value);
       i++) {
    const struct ljp_profile_point *point = &p->points[i];
    if (!p->rows[point->row].memory &&
        p->contexts[p->rows[point->row].context].kind == kind)
      perf_put_point(w, point);
  }
}

enum ljp_status ljp_export_perf(struct ljp_export *e)
{
  const struct ljp_profile *p = e->p;
  struct perf w = {.e = e};
  w.lines = calloc(p->frame_count + (size_t)1, sizeof *w.lines);
  ljp_print_str(e->out, "# ljprof: ");
  ljp_print_plain(e->out, ljp_profile_str(p, p->command_line), 0);
  ljp_print_str(e->out, "\n");
  ljp_export_notices(e, "# ", "\n");
  if (p->recorded_by)
    ljp_print_format(e->out,
                     "# recorded by %s: the file has no times, processes or "
                     "threads; they are 0 here\n",
                     p->recorded_by);
  ljp_print_str(e->out, "#\n");
  perf_put_all(&w);
  for (uint32_t i = 0; w.lines && i < p->frame_count; i++)
    free(w.lines[i]);
  free(w.lines);
  return LJP_OK;
}
