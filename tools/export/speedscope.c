/*
** Writes the format of speedscope: a list of frames, and for each thread a
** profile of samples with weights. CPU and wall-clock samples are in order of
** time.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/export/export.h"

struct speedscope {
  struct ljp_export *e;
  struct ljp_labels labels;
  uint64_t *rows; /* The value of each row; for values without a time. */
  uint64_t sum;
};

static void speedscope_put_string(struct ljp_print *out, const char *text)
{
  ljp_print_json(out, ljp_str(text, strlen(text)));
}

static void speedscope_put_frame(const struct speedscope *s, uint32_t label)
{
  struct ljp_print *out = s->e->out;
  const struct ljp_profile *p = s->e->p;
  const struct ljp_profile_frame *f = &p->frames[s->labels.frame[label]];
  char small[LJP_FRAME_NAME_BYTES], *text = small;
  size_t n =
      ljp_frame_name(p, s->labels.frame[label], s->e->how, small, sizeof small);
  if (n >= sizeof small && (text = malloc(n + 1)))
    ljp_frame_name(p, s->labels.frame[label], s->e->how, text, n + 1);
  if (!text) {
    text = small;
    n = sizeof small - 1;
  }
  ljp_print_str(out, label ? ",\n{\"name\":" : "\n{\"name\":");
  ljp_print_json(out, ljp_str(text, n));
  if (f->file) {
    ljp_print_str(out, ",\"file\":");
    ljp_print_json(out, ljp_profile_str(p, f->file));
  }
  uint32_t line = s->e->how & LJP_NAME_LINES ? f->line : f->first_line;
  if (line)
    ljp_print_format(out, ",\"line\":%u", line);
  ljp_print_str(out, "}");
  if (text != small)
    free(text);
}

static bool speedscope_is_of_thread(const struct speedscope *s, uint32_t row,
                                    uint32_t thread)
{
  const struct ljp_profile *p = s->e->p;
  return p->contexts[p->rows[row].context].thread == thread;
}

static bool speedscope_is_timed(const struct speedscope *s)
{
  return s->e->value <= LJP_VALUE_WALL && !s->e->p->recorded_by;
}

/* Whether a point counts for the exported value. */
static bool speedscope_is_counted(const struct speedscope *s,
                                  const struct ljp_profile_point *point)
{
  const struct ljp_profile *p = s->e->p;
  uint8_t kind = p->contexts[p->rows[point->row].context].kind;
  return !p->rows[point->row].memory &&
         kind == (s->e->value <= LJP_VALUE_CPU ? LJP_PRODUCER_CPU
                                               : LJP_PRODUCER_WALL);
}

static uint64_t speedscope_point_value(const struct speedscope *s,
                                       const struct ljp_profile_point *point)
{
  return s->e->value == LJP_VALUE_SAMPLES ||
                 s->e->value == LJP_VALUE_WALL_SAMPLES
             ? point->count
             : point->weight;
}

static void speedscope_put_stack(const struct speedscope *s, uint32_t row,
                                 bool first)
{
  static uint32_t path[LJP_EXPORT_DEPTH];
  const struct ljp_profile *p = s->e->p;
  uint32_t depth;
  ljp_export_path(p, p->rows[row].node, path, &depth);
  ljp_print_str(s->e->out, first ? "\n[" : ",\n[");
  for (uint32_t i = 0; i < depth; i++) {
    if (i)
      ljp_print_str(s->e->out, ",");
    ljp_print_dec(s->e->out, s->labels.of_frame[p->nodes[path[i]].frame]);
  }
  ljp_print_str(s->e->out, "]");
}

/* Writes the stacks of a thread, or with weights set their weights. Returns
** the sum of the weights. */
static uint64_t speedscope_put_list(const struct speedscope *s, uint32_t thread,
                                    bool weights)
{
  const struct ljp_profile *p = s->e->p;
  uint64_t sum = 0;
  bool first = true;
  uint32_t count = speedscope_is_timed(s) ? p->point_count : p->row_count;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t row = speedscope_is_timed(s) ? p->points[i].row : i;
    uint64_t value = !speedscope_is_timed(s) ? s->rows[row]
                     : speedscope_is_counted(s, &p->points[i])
                         ? speedscope_point_value(s, &p->points[i])
                         : 0;
    if (!value || !speedscope_is_of_thread(s, row, thread))
      continue;
    sum += value;
    if (weights) {
      ljp_print_str(s->e->out, first ? "" : ",");
      ljp_print_dec(s->e->out, value);
    } else {
      speedscope_put_stack(s, row, first);
    }
    first = false;
  }
  return sum;
}

static bool speedscope_has_thread(const struct speedscope *s, uint32_t thread)
{
  const struct ljp_profile *p = s->e->p;
  for (uint32_t row = 0; row < p->row_count; row++)
    if (s->rows[row] && speedscope_is_of_thread(s, row, thread))
      return true;
  return false;
}

static void speedscope_put_profile(struct speedscope *s, uint32_t thread,
                                   bool first)
{
  struct ljp_print *out = s->e->out;
  const struct ljp_profile *p = s->e->p;
  struct ljp_str name = ljp_profile_str(p, p->threads[thread].name);
  const char *unit = ljp_value_unit(s->e->value);
  char label[512];
  if (p->recorded_by)
    snprintf(label, sizeof label, "%s", ljp_value_name(s->e->value));
  else
    snprintf(label, sizeof label, "%s, thread %u%s%.*s",
             ljp_value_name(s->e->value), (unsigned)p->threads[thread].tid,
             name.len ? " " : "", (int)(name.len < 400 ? name.len : 400),
             name.len ? name.data : "");
  ljp_print_str(out, first ? "\n{\"type\":\"sampled\",\"name\":"
                           : ",\n{\"type\":\"sampled\",\"name\":");
  speedscope_put_string(out, label);
  ljp_print_format(out, ",\"unit\":\"%s\",\"startValue\":0,\"samples\":[",
                   strcmp(unit, "count") ? unit : "none");
  uint64_t sum = speedscope_put_list(s, thread, false);
  ljp_print_str(out, "],\"weights\":[");
  speedscope_put_list(s, thread, true);
  ljp_print_str(out, "],\"endValue\":");
  ljp_print_dec(out, sum);
  ljp_print_str(out, "}");
}

enum ljp_status ljp_export_speedscope(struct ljp_export *e)
{
  const struct ljp_profile *p = e->p;
  struct speedscope s = {.e = e};
  bool first = true;
  enum ljp_status status = ljp_labels_make(&s.labels, e);
  if (status)
    return status;
  s.rows = calloc(p->row_count + 1, sizeof *s.rows);
  if (!s.rows) {
    ljp_labels_free(&s.labels);
    return LJP_ERR_MEM;
  }
  ljp_export_start(e);
  for (uint32_t row = 0; row < p->row_count; row++)
    s.rows[row] = ljp_export_value(e, row, e->value);
  ljp_print_str(
      e->out, "{\"$schema\":\"https://www.speedscope.app/"
              "file-format-schema.json\",\n\"exporter\":\"ljprof\",\"name\":");
  ljp_print_json(e->out, ljp_profile_str(p, p->executable));
  ljp_print_str(e->out, ",\"activeProfileIndex\":0,\n\"notices\":[");
  for (uint32_t i = 0; ljp_profile_notice(p, i); i++) {
    ljp_print_str(e->out, i ? ",\n" : "\n");
    speedscope_put_string(e->out, ljp_profile_notice(p, i));
  }
  ljp_print_str(e->out, "],\n\"shared\":{\"frames\":[");
  for (uint32_t i = 0; i < s.labels.count; i++)
    speedscope_put_frame(&s, i);
  ljp_print_str(e->out, "]},\n\"profiles\":[");
  for (uint32_t thread = 0; thread < p->thread_count; thread++)
    if (speedscope_has_thread(&s, thread)) {
      speedscope_put_profile(&s, thread, first);
      first = false;
    }
  ljp_print_str(e->out, "]}\n");
  free(s.rows);
  ljp_labels_free(&s.labels);
  return LJP_OK;
}
