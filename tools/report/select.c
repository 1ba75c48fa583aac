/*
** Selects rows by measure, and by regexes on the names of the frames in their
** stacks.
*/
#include "tools/report/select.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/pages.h"
#include "parsers/profile/frame_name.h"
#include "tools/shared/command.h"

bool ljp_measure_is_memory(enum ljp_measure measure)
{
  return measure >= LJP_MEASURE_ALLOC;
}

const char *ljp_measure_text(enum ljp_measure measure)
{
  switch (measure) {
#define LJP_X(name, option, count, weight, text)                               \
  case LJP_MEASURE_##name:                                                     \
    return text;
    LJP_MEASURE_LIST(LJP_X)
#undef LJP_X
  }
  return "";
}

const char *ljp_measure_option(enum ljp_measure measure)
{
  switch (measure) {
#define LJP_X(name, option, count, weight, text)                               \
  case LJP_MEASURE_##name:                                                     \
    return option;
    LJP_MEASURE_LIST(LJP_X)
#undef LJP_X
  }
  return "";
}

struct ljp_value ljp_select_row(const struct ljp_select *s,
                                enum ljp_measure measure,
                                const struct ljp_profile_row *row)
{
  static const struct ljp_profile_estimates exact;
  const struct ljp_profile_memory *m = &s->p->memory[row->memory];
  const struct ljp_profile_estimates *e =
      s->p->estimates && row->memory ? &s->p->estimates[row->memory] : &exact;
  unsigned kind = s->p->contexts[row->context].kind;
  const struct ljp_value recent = {m->recent_objects, m->recent_bytes,
                                   m->slices, e->recent};
  const struct ljp_estimate none = {0};
  switch (measure) {
  case LJP_MEASURE_CPU:
  case LJP_MEASURE_WALL:
    if (kind !=
        (measure == LJP_MEASURE_CPU ? LJP_PRODUCER_CPU : LJP_PRODUCER_WALL))
      break;
    return (struct ljp_value){row->count, row->weight, 0, none};
  case LJP_MEASURE_GC_COST:
    return (struct ljp_value){0, m->gc_ns, 0, none};
  case LJP_MEASURE_ALLOC:
    return (struct ljp_value){m->alloc_objects, m->alloc_bytes, 0, e->alloc};
  case LJP_MEASURE_LIVE:
    if (s->since)
      return recent;
    return (struct ljp_value){m->live_objects, m->live_bytes, 0, e->live};
  case LJP_MEASURE_LEAKS:
    if (s->since)
      return recent;
    return (struct ljp_value){m->old_objects, m->old_bytes, m->slices, e->old};
  case LJP_MEASURE_PEAK:
    return (struct ljp_value){m->peak_objects, m->peak_bytes, 0, e->peak};
  case LJP_MEASURE_CHURN:
    return (struct ljp_value){m->temporary_objects, m->temporary_bytes, 0,
                              e->temporary};
  }
  return (struct ljp_value){0};
}

static int select_compile(regex_t *regex, const char *pattern,
                          const char *option, const char *command)
{
  char why[256];
  int error = regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB);
  if (!error)
    return 0;
  regerror(error, regex, why, sizeof why);
  ljp_command_error(command, "%s: '%s' is not a regular expression: %s", option,
                    pattern, why);
  return LJP_EXIT_USAGE;
}

static int select_check_regex(const char *pattern, const char *option,
                              const char *command)
{
  regex_t regex;
  int code = pattern ? select_compile(&regex, pattern, option, command) : 0;
  if (pattern && !code)
    regfree(&regex);
  return code;
}

int ljp_select_check(const char *focus, const char *ignore, const char *command)
{
  int code = select_check_regex(focus, "--focus", command);
  return code ? code : select_check_regex(ignore, "--ignore", command);
}

/* Marks the frames whose names match. NULL: there is no pattern (*code is 0),
** or an error was reported (*code is the exit code). */
static uint8_t *select_match_frames(const struct ljp_profile *p,
                                    const char *pattern, const char *option,
                                    const char *command, int *code)
{
  char name[4096];
  regex_t regex;
  *code = 0;
  if (!pattern || (*code = select_compile(&regex, pattern, option, command)))
    return NULL;
  uint8_t *match = calloc(p->frame_count, 1);
  if (!match) {
    ljp_command_error(command, "out of memory");
    *code = LJP_EXIT_FAILED;
  }
  for (uint32_t i = 0; match && i < p->frame_count; i++) {
    ljp_frame_name(p, i, 0, name, sizeof name);
    match[i] = regexec(&regex, name, 0, NULL, 0) == 0;
  }
  regfree(&regex);
  return match;
}

/* Marks each node that matches or has a caller that matches. */
static uint8_t *select_spread(const struct ljp_profile *p, uint8_t *frames)
{
  uint8_t *nodes = calloc(p->node_count, 1);
  for (uint32_t i = 1; nodes && i < p->node_count; i++)
    nodes[i] = nodes[p->nodes[i].parent] | frames[p->nodes[i].frame];
  return nodes;
}

int ljp_select(struct ljp_select *s, const struct ljp_profile *p,
               const struct ljp_select_options *options, const char *command)
{
  uint8_t *focus = NULL, *ignore = NULL, *in = NULL, *out = NULL;
  uint32_t count = 0;
  int code;
  *s = (struct ljp_select){
      .p = p, .measure = options->measure, .since = p->options.since != NULL};
  focus = select_match_frames(p, options->focus, "--focus", command, &code);
  if (code)
    return code;
  ignore = select_match_frames(p, options->ignore, "--ignore", command, &code);
  if (code)
    goto end;
  code = LJP_EXIT_FAILED;
  s->rows = ljp_pages_items((size_t)p->row_count + 1, sizeof *s->rows);
  s->values = ljp_pages_items((size_t)p->row_count + 1, sizeof *s->values);
  s->value_of = ljp_pages_items(p->node_count, sizeof *s->value_of);
  s->in = calloc((size_t)p->row_count + 1, 1);
  if ((focus && !(in = select_spread(p, focus))) ||
      (ignore && !(out = select_spread(p, ignore))) || !s->rows || !s->values ||
      !s->value_of || !s->in) {
    ljp_command_error(command, "out of memory");
    goto end;
  }
  for (uint32_t i = 0; i < p->row_count; i++) {
    const struct ljp_profile_row *row = &p->rows[i];
    if ((in && !in[row->node]) || (out && out[row->node]))
      continue;
    s->in[i] = 1;
    struct ljp_value v = s->rows[i] = ljp_select_row(s, s->measure, row);
    if (!s->value_of[row->node])
      s->value_of[row->node] = ++count;
    ljp_value_add(&s->values[s->value_of[row->node]], &v);
    ljp_value_add(&s->total, &v);
  }
  code = 0;
end:
  free(focus);
  free(ignore);
  free(in);
  free(out);
  return code;
}

void ljp_select_fini(struct ljp_select *s)
{
  free(s->in);
  free(s->rows);
  free(s->values);
  free(s->value_of);
}
