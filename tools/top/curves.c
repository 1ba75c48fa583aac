/*
** Views of what happens over time: the heap, and the trace compiler.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parsers/base/whole.h"
#include "parsers/stream/names.h"
#include "tools/shared/units.h"
#include "tools/top/views.h"

enum {
  CURVE_MAX_COLS = 400,
  CURVE_MAX_ROWS = 100,
  CURVE_AXIS = 11, /* Columns of the scale. */
  CURVE_REST = 8,  /* Rows of the screen that the curve leaves. */
  CURVE_REASONS = 5
};

/* A column of the curve. */
struct curve_column {
  uint64_t bytes; /* The largest size. */
  uint32_t phases;
};

/* Divides the ticks of a span among columns. */
static void curve_columns(const struct ljp_series *s, uint64_t from_ns,
                          unsigned cols, struct curve_column *columns,
                          uint64_t *highest)
{
  uint32_t first = (uint32_t)(from_ns / s->tick_ns);
  if (first >= s->count)
    first = s->count ? s->count - 1 : 0;
  const uint64_t ticks = s->count - first;
  *highest = 0;
  for (unsigned i = 0; i < cols; i++) {
    uint64_t at = i * ticks / cols, end = (i + 1) * ticks / cols;
    columns[i] = (struct curve_column){0};
    do { /* A tick may take several columns. */
      const struct ljp_series_tick *tick = &s->ticks[first + at];
      if (tick->heap_bytes > columns[i].bytes)
        columns[i].bytes = tick->heap_bytes;
      columns[i].phases |= tick->phases;
    } while (++at < end);
    if (columns[i].bytes > *highest)
      *highest = columns[i].bytes;
  }
}

/* The part of a cell that is filled, in eighths. */
static void curve_cell(struct ljp_print *out, uint64_t eighths, bool utf8)
{
  static const char *const blocks[] = {" ",
                                       "\xe2\x96\x81",
                                       "\xe2\x96\x82",
                                       "\xe2\x96\x83",
                                       "\xe2\x96\x84",
                                       "\xe2\x96\x85",
                                       "\xe2\x96\x86",
                                       "\xe2\x96\x87",
                                       "\xe2\x96\x88"};
  unsigned n = eighths > 8 ? 8 : (unsigned)eighths;
  ljp_print_str(out, utf8 ? blocks[n] : n >= 4 ? "#" : n ? "." : " ");
}

static void curve_row(struct ljp_top_text *text, const struct ljp_worker *w,
                      const struct curve_column *columns, unsigned cols,
                      uint64_t highest, unsigned row, unsigned rows)
{
  static struct ljp_print scale;   /* Too large for the stack. */
  unsigned above = rows - 1 - row; /* Full rows below this one. */
  if (!ljp_top_begin(text, LJP_TOP_LINE_PLAIN))
    return;
  ljp_print_begin(&scale, -1);
  if (row == 0 || row == rows / 2)
    ljp_units_bytes(&scale, ljp_whole((double)highest * (rows - row) / rows));
  ljp_print_format(&text->out, "%10.*s ", (int)scale.len, scale.buf);
  for (unsigned i = 0; i < cols; i++) {
    double height = (double)columns[i].bytes / (double)highest * rows - above;
    curve_cell(&text->out,
               height <= 0   ? 0
               : height >= 1 ? 8
                             : (uint64_t)(height * 8 + 0.5),
               w->query.utf8);
  }
  ljp_top_end(text);
}

/* A letter for the phases that were entered in a column. */
static char curve_phase(uint32_t phases)
{
  static const struct {
    uint8_t phase;
    char letter;
  } order[] = {{LJP_GC_CLOSED, 'x'},      {LJP_GC_FINALIZE, 'f'},
               {LJP_GC_ATOMIC, 'a'},      {LJP_GC_SWEEP, 's'},
               {LJP_GC_SWEEPSTRING, 's'}, {LJP_GC_PROPAGATE, 'm'},
               {LJP_GC_PAUSE, '.'}};
  for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
    if (phases & UINT32_C(1) << order[i].phase)
      return order[i].letter;
  return ' ';
}

static void curve_vms(struct ljp_top_text *text, const struct ljp_series *s)
{
  ljp_top_line(text, LJP_TOP_LINE_HEAD, "%12s  %-14s %10s  vm", "heap", "phase",
               "cycle");
  for (uint32_t i = 0; i <= s->vm_count && i <= LJP_SERIES_VMS; i++) {
    const struct ljp_series_vm *vm =
        &s->vms[i == s->vm_count ? LJP_SERIES_VMS : i];
    static struct ljp_print size;
    if (i == s->vm_count && !vm->heap_bytes)
      break;
    ljp_print_begin(&size, -1);
    ljp_units_bytes(&size, vm->heap_bytes);
    const char *phase = ljp_name_shown(LJP_SHOW_GC_PHASE, vm->phase);
    if (i == s->vm_count)
      ljp_top_line(text, LJP_TOP_LINE_ROW, "%12.*s  (other VMs)", (int)size.len,
                   size.buf);
    else
      ljp_top_line(text, LJP_TOP_LINE_ROW,
                   "%12.*s  %-14s %10" PRIu64 "  VM %" PRIu64, (int)size.len,
                   size.buf, phase ? phase : "?", vm->cycle, vm->id);
  }
}

void ljp_top_heap(struct ljp_top_text *text, const struct ljp_worker *w,
                  uint64_t from_ns)
{
  static struct curve_column columns[CURVE_MAX_COLS];
  const struct ljp_series *s = &w->series;
  unsigned cols =
      w->query.cols > CURVE_AXIS + 10u ? w->query.cols - CURVE_AXIS : 10;
  unsigned rows =
      w->query.rows > CURVE_REST + 4u ? w->query.rows - CURVE_REST : 4;
  uint64_t highest;
  if (!s->vm_count) {
    ljp_top_line(text, LJP_TOP_LINE_PLAIN,
                 "the file has no heap sizes ('ljprof record --memory' records "
                 "them)");
    return;
  }
  cols = cols < CURVE_MAX_COLS ? cols : CURVE_MAX_COLS;
  rows = rows < CURVE_MAX_ROWS ? rows : CURVE_MAX_ROWS;
  curve_columns(s, from_ns, cols, columns, &highest);
  struct ljp_series_tick sum = ljp_series_sum(s, from_ns);
  for (unsigned row = 0; row < rows && highest; row++)
    curve_row(text, w, columns, cols, highest, row, rows);
  if (ljp_top_begin(text, LJP_TOP_LINE_PLAIN)) {
    ljp_print_str(&text->out, "    phases ");
    for (unsigned i = 0; i < cols; i++) {
      char letter = curve_phase(columns[i].phases);
      ljp_print_raw(&text->out, &letter, 1);
    }
    ljp_top_end(text);
  }
  ljp_top_line(
      text, LJP_TOP_LINE_PLAIN,
      "m mark, a atomic, s sweep, f finalize, . pause, x closed; %" PRIu32
      " cycle%s",
      sum.cycles, sum.cycles == 1 ? "" : "s");
  curve_vms(text, s);
}

void ljp_top_jit(struct ljp_top_text *text, const struct ljp_worker *w,
                 uint64_t from_ns)
{
  const struct ljp_series *s = &w->series;
  struct ljp_series_tick sum = ljp_series_sum(s, from_ns);
  double seconds = w->span_ns ? (double)w->span_ns / 1e9 : 1;
  ljp_top_line(text, LJP_TOP_LINE_PLAIN,
               "traces compiled %.1f/s  aborted %.1f/s  flushed %.1f/s  "
               "functions blacklisted %" PRIu32,
               sum.traces / seconds, sum.aborts / seconds,
               sum.flushes / seconds, sum.blacklisted);
  if (s->reason_count)
    ljp_top_line(text, LJP_TOP_LINE_HEAD, "%9s  %s", "aborts",
                 "why (since the recording began)");
  uint32_t order[LJP_SERIES_REASONS] = {0};
  for (uint32_t i = 0; i < s->reason_count; i++)
    order[i] = i;
  for (uint32_t i = 0; i < s->reason_count && i < CURVE_REASONS; i++) {
    for (uint32_t k = i + 1; k < s->reason_count; k++)
      if (s->reasons[order[k]].count > s->reasons[order[i]].count) {
        uint32_t more = order[k];
        order[k] = order[i];
        order[i] = more;
      }
    const struct ljp_series_reason *r = &s->reasons[order[i]];
    if (!ljp_top_begin(text, LJP_TOP_LINE_ROW))
      return;
    ljp_print_format(&text->out, "%9" PRIu64 "  ", r->count);
    ljp_print_safe(&text->out, ljp_str(r->text, r->text_len));
    ljp_top_end(text);
  }
}
