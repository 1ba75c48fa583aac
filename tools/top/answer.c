/*
** Makes the text of a view: title and figures, notices, and the view itself.
*/
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parsers/base/whole.h"
#include "src/base/assert.h"
#include "tools/shared/units.h"
#include "tools/top/views.h"

bool ljp_top_begin(struct ljp_top_text *text, enum ljp_top_line kind)
{
  char first = (char)kind;
  if (text->is_file)
    return true;
  text->full |= text->out.len >
                LJP_TOP_TEXT_BYTES - LJP_TOP_LINE_BYTES - LJP_TOP_LAST_BYTES;
  if (!text->full)
    ljp_print_raw(&text->out, &first, 1);
  return !text->full;
}

void ljp_top_end(struct ljp_top_text *text)
{
  ljp_print_str(&text->out, "\n");
}

void ljp_top_last(struct ljp_top_text *text, const char *format, ...)
{
  char line[LJP_TOP_LAST_BYTES] = {LJP_TOP_LINE_ROW};
  va_list args;
  va_start(args, format);
  vsnprintf(line + 1, sizeof line - 2, format, args);
  va_end(args);
  ljp_print_str(&text->out, line);
  ljp_top_end(text);
}

void ljp_top_line(struct ljp_top_text *text, enum ljp_top_line kind,
                  const char *format, ...)
{
  char line[LJP_TOP_NAME_BYTES];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (!ljp_top_begin(text, kind))
    return;
  ljp_print_safe(&text->out,
                 ljp_str(line, n < 0                     ? 0
                               : (size_t)n < sizeof line ? (size_t)n
                                                         : sizeof line - 1));
  ljp_top_end(text);
}

/* -- The first lines -------------------------------------------------------- */

static void answer_state(struct ljp_print *out, const struct ljp_worker *w)
{
  const struct ljp_top_source *s = &w->source;
  const struct ljp_finish *f = &s->reader.finish;
  uint64_t size = s->file_bytes > s->read_bytes ? s->file_bytes : s->read_bytes;
  if (w->error[0])
    ljp_print_str(out, "cannot be read");
  else if (w->query.frozen)
    ljp_print_str(out, "frozen");
  else if (w->state)
    ljp_print_str(out, w->state);
  else if (!w->done && !s->follows)
    ljp_print_format(out, "reading %.0f %%",
                     size ? 100.0 * (double)s->read_bytes / (double)size : 0);
  else if (!w->done)
    ljp_print_str(out, "still recording");
  else if (!f->clean)
    ljp_print_str(out, "cut short");
  else
    ljp_print_str(out, f->closed == LJP_CLOSED_SEGMENT
                           ? "continued in the next file"
                           : "ended");
}

static void answer_name(struct ljp_print *out, const char *what,
                        const struct ljp_profile *p, uint32_t name, uint64_t id)
{
  struct ljp_str s = ljp_profile_name(p, name, what, id);
  ljp_print_format(out, ", %s %" PRIu64, what, id);
  if (!s.len)
    return;
  ljp_print_str(out, " ");
  s.len = s.len < 40 ? s.len : 40;
  ljp_print_safe(out, s);
}

static void answer_title(struct ljp_top_text *text, const struct ljp_worker *w,
                         const struct ljp_profile *p)
{
  enum { COMMAND = 60 };
  const struct ljp_top_query *q = &w->query;
  struct ljp_print *out = &text->out;
  const char *path = w->options->path, *base = strrchr(path, '/');
  struct ljp_str command = ljp_profile_str(p, p->command_line);
  char shown[COMMAND];
  uint32_t n = 0;
  for (; n < command.len && n < COMMAND; n++)
    shown[n] = command.data[n] ? command.data[n] : ' ';
  while (n && shown[n - 1] == ' ')
    n--;
  base = base ? base + 1 : path;
  if (!ljp_top_begin(text, LJP_TOP_LINE_TITLE))
    return;
  answer_state(out, w);
  if (w->copy.fd >= 0) {
    ljp_print_str(out, ", into ");
    ljp_print_safe(out, ljp_str(w->copy.path, strlen(w->copy.path)));
  }
  ljp_print_str(out, ljp_worker_seconds(w, q) ? ", last " : ", all ");
  ljp_units_time(out, w->span_ns);
  if (q->thread && q->thread < p->thread_count)
    answer_name(out, "thread", p, p->threads[q->thread].name,
                p->threads[q->thread].id);
  if (q->vm && q->vm < p->vm_count)
    answer_name(out, "VM", p, p->vms[q->vm].name, p->vms[q->vm].id);
  for (unsigned i = 0; i < p->options.labels.count; i++) {
    const char *label = p->options.labels.list[i];
    ljp_print_str(out, ", ");
    ljp_print_safe(out, ljp_str(label, strnlen(label, 60)));
  }
  if (!w->options->joined) {
    ljp_print_str(out, "  ");
    ljp_print_safe(out, ljp_str(base, strlen(base)));
  }
  if (p->pid)
    ljp_print_format(out, "  pid %" PRIu64 "  ", p->pid);
  ljp_print_safe(out, ljp_str(shown, n));
  ljp_top_end(text);
}

/* Time and bytes of a part. */
struct answer_sums {
  uint64_t time_ns, gc_ns, samples, bytes;
};

static struct answer_sums answer_sum(const struct ljp_profile *part)
{
  struct answer_sums sums = {0};
  unsigned time = ljp_top_measure(part) == LJP_MEASURE_CPU ? LJP_PRODUCER_CPU
                                                           : LJP_PRODUCER_WALL;
  for (uint32_t i = 0; i < part->row_count; i++) {
    const struct ljp_profile_row *row = &part->rows[i];
    const struct ljp_profile_context *c = &part->contexts[row->context];
    if (c->kind == time) {
      sums.time_ns += row->weight;
      sums.samples += row->count;
      sums.gc_ns += c->state == LJP_VMSTATE_GC ? row->weight : 0;
    }
    if (row->memory)
      sums.bytes += part->memory[row->memory].alloc_bytes;
  }
  return sums;
}

static double answer_share(uint64_t part, uint64_t whole)
{
  return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void answer_figures(struct ljp_top_text *text,
                           const struct ljp_worker *w,
                           const struct ljp_profile *part, uint64_t from_ns)
{
  struct answer_sums sums = answer_sum(part);
  struct ljp_series_tick rare = ljp_series_sum(&w->series, from_ns);
  double seconds = w->span_ns ? (double)w->span_ns / 1e9 : 1;
  struct ljp_print *out = &text->out;
  uint64_t lost = 0;
  for (size_t i = 0; i < w->source.reader.tally.loss_count; i++)
    if (!w->source.reader.tally.losses[i].overrun)
      lost += w->source.reader.tally.losses[i].count;
  if (!ljp_top_begin(text, LJP_TOP_LINE_FIGURES))
    return;
  bool cpu = ljp_top_measure(part) == LJP_MEASURE_CPU;
  ljp_print_format(out, "%s %.1f%%  GC %.1f%%", cpu ? "CPU" : "wall",
                   answer_share(sums.time_ns, w->span_ns),
                   answer_share(sums.gc_ns, sums.time_ns));
  ljp_print_str(out, "  alloc ");
  ljp_units_bytes(out, ljp_whole((double)sums.bytes / seconds));
  ljp_print_str(out, "/s  heap ");
  if (w->series.last_bytes)
    ljp_units_bytes(out, w->series.last_bytes);
  else
    ljp_print_str(out, "-");
  ljp_print_format(out, "  aborts %.1f/s  lost %" PRIu64 "  samples %" PRIu64,
                   rare.aborts / seconds, lost, sums.samples);
  ljp_top_end(text);
}

/* What is wrong with the file. */
static void answer_notices(struct ljp_top_text *text,
                           const struct ljp_worker *w)
{
  const struct ljp_finish *f = &w->source.reader.finish;
  const struct ljp_top_joined *joined = w->options->joined;
  if (w->error[0])
    ljp_top_line(text, LJP_TOP_LINE_NOTICE, "%s", w->error);
  if (f->gaps || f->bad_records)
    ljp_top_line(text, LJP_TOP_LINE_NOTICE,
                 "the file is damaged: %" PRIu64 " gap%s of %" PRIu64
                 " bytes, %" PRIu64 " malformed record%s",
                 f->gaps, f->gaps == 1 ? "" : "s", f->gap_bytes, f->bad_records,
                 f->bad_records == 1 ? "" : "s");
  if (joined && joined->why[0])
    ljp_top_line(text, LJP_TOP_LINE_NOTICE, "the session was ended: %s",
                 joined->why);
  else if (f->status)
    ljp_top_line(text, LJP_TOP_LINE_NOTICE,
                 "the session was ended by an error: %s",
                 ljp_status_text((enum ljp_status)f->status));
}

/* -- The whole --------------------------------------------------------------- */

static void answer_view(struct ljp_top_text *text, const struct ljp_worker *w,
                        struct ljp_profile *part, uint64_t from_ns)
{
  answer_figures(text, w, part, from_ns);
  answer_notices(text, w);
  switch (w->query.view) {
  case LJP_TOP_HEAP:
    ljp_top_heap(text, w, from_ns);
    break;
  case LJP_TOP_JIT:
    ljp_top_jit(text, w, from_ns);
    ljp_top_states(text, w, part);
    break;
  default:
    ljp_top_table(text, w, part);
  }
}

/* The part of the profile that the query asks for. from_ns: where it begins. */
static struct ljp_profile *answer_part(struct ljp_worker *w, uint64_t *from_ns)
{
  const struct ljp_top_query *q = &w->query;
  const uint64_t span = ljp_worker_seconds(w, q) * UINT64_C(1000000000);
  uint64_t now = ljp_worker_now(w);
  struct ljp_recent_query query = {
      .from_ns = now > span ? now - span : 0,
      .all = !span,
      .native = q->native,
      .thread = q->thread < w->p->thread_count ? q->thread : 0,
      .vm = q->vm < w->p->vm_count ? q->vm : 0,
  };
  struct ljp_profile *part;
  if (query.all)
    query.from_ns = 0;
  else
    now = w->recent.cut_ns;
  *from_ns = query.all ? 0 : ljp_recent_begin(&w->recent, query.from_ns);
  w->span_ns = now > *from_ns ? now - *from_ns : 0;
  return ljp_recent_open(&w->recent, w->p, &query, &part) ? NULL : part;
}

void ljp_worker_write(struct ljp_worker *w, struct ljp_top_text *text)
{
  uint64_t from_ns;
  struct ljp_profile *part = answer_part(w, &from_ns);
  /* While a part is open, the profile must not be used. */
  answer_title(text, w, part ? part : w->p);
  if (part) {
    answer_view(text, w, part, from_ns);
    ljp_recent_close(w->p, part);
  } else {
    ljp_top_line(text, LJP_TOP_LINE_NOTICE, "out of memory");
  }
}

/* The thread and the VM after those of the query, of those that have events. */
static void answer_next(const struct ljp_worker *w,
                        struct ljp_top_answer *answer)
{
  const struct ljp_profile *p = w->p;
  const struct ljp_top_query *q = &w->query;
  answer->next_thread = answer->next_vm = 0;
  for (uint32_t i = 0; i < p->context_count; i++) {
    const struct ljp_profile_context *c = &p->contexts[i];
    if (c->thread > q->thread &&
        (!answer->next_thread || c->thread < answer->next_thread))
      answer->next_thread = c->thread;
    if (c->vm > q->vm && (!answer->next_vm || c->vm < answer->next_vm))
      answer->next_vm = c->vm;
  }
}

void ljp_worker_answer(struct ljp_worker *w, struct ljp_top_answer *answer)
{
  static struct ljp_top_text text; /* Too large for the stack. */
  ljp_print_begin(&text.out, -1);
  text.full = text.is_file = false;
  answer_next(w, answer);
  ljp_worker_write(w, &text);
  answer->serial = w->query.serial;
  answer->seconds = ljp_worker_seconds(w, &w->query);
  answer->records = w->copy.fd >= 0      ? LJP_TOP_RECORDS
                    : w->options->joined ? LJP_TOP_CAN_RECORD
                                         : LJP_TOP_IS_FILE;
  ljp_assert(text.out.len <= sizeof answer->text);
  answer->text_bytes = (uint32_t)text.out.len;
  memcpy(answer->text, text.out.buf, text.out.len);
}
