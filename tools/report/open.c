/*
** Opens a profile by the options that report and annotate share.
*/
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parsers/heap/graph.h"
#include "parsers/profile/labels.h"
#include "tools/report/report.h"
#include "tools/shared/progress.h"
#include "tools/shared/time_range.h"

/* Whether memory is the measure of a selection without samples. If nothing is
** selected at all, that is said of the samples. */
static bool open_has_memory(const struct ljp_profile *p)
{
  const struct ljp_profile_totals *t = &p->totals;
  bool samples =
      p->recorded[LJP_PRODUCER_CPU] || p->recorded[LJP_PRODUCER_WALL];
  return p->has_memory &&
         (t->alloc_events || t->free_events || !t->filtered || !samples);
}

/* The measure: as requested, or the first that the file has. p: NULL before
** the file is read. */
static int open_choose_measure(const struct ljp_report_options *c,
                               const char *command, const struct ljp_profile *p,
                               enum ljp_measure *chosen)
{
  unsigned count = 0;
  for (unsigned i = 0; i < LJP_MEASURES; i++)
    if (c->measures[i]) {
      *chosen = (enum ljp_measure)i;
      count++;
    }
  if (count > 1) {
    ljp_command_error(command, "only one of --cpu, --wall, --gc-cost, --alloc, "
                               "--live, --leaks, --peak and --churn can be "
                               "given");
    return LJP_EXIT_USAGE;
  }
  if (c->jit && ljp_measure_is_memory(*chosen)) {
    ljp_command_error(command, "--jit needs --cpu or --wall, not --%s",
                      ljp_measure_option(*chosen));
    return LJP_EXIT_USAGE;
  }
  if (!count && p)
    *chosen = p->totals.samples                ? LJP_MEASURE_CPU
              : p->totals.wall_samples         ? LJP_MEASURE_WALL
              : open_has_memory(p) && !c->jit  ? LJP_MEASURE_ALLOC
              : p->recorded[LJP_PRODUCER_CPU]  ? LJP_MEASURE_CPU
              : p->recorded[LJP_PRODUCER_WALL] ? LJP_MEASURE_WALL
                                               : LJP_MEASURE_CPU;
  return 0;
}

static bool open_is_terminal(void)
{
  const char *term = getenv("TERM"), *none = getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && !(none && *none) && term &&
         strcmp(term, "dumb") != 0;
}

/* Sees whether the file has a heap snapshot. */
static enum ljp_status open_observe(void *ctx, const struct ljp_reader *reader,
                                    const struct ljp_item *item)
{
  (void)reader;
  if (item->what == LJP_REC_HEAP_MOMENT)
    *(bool *)ctx = true;
  return LJP_OK;
}

static void open_close_graph(struct ljp_report *r)
{
  if (r->graph)
    ljp_graph_fini(r->graph);
  free(r->graph);
  r->graph = NULL;
}

/* Reads the snapshot, and the file again for what its objects are. Without it
** the report is the same, but for the holders. */
static enum ljp_status open_heap(struct ljp_report *r, const char *file,
                                 struct ljp_profile_options *options,
                                 char *error)
{
  r->graph = calloc(1, sizeof *r->graph);
  if (!r->graph)
    return LJP_ERR_MEM;
  if (ljp_graph_load(r->graph, file, 0)) {
    ljp_command_note("report",
                     "holders are not shown: the heap snapshot of %s: "
                     "%s",
                     file, r->graph->error);
    open_close_graph(r);
    return LJP_OK;
  }
  options->births = r->graph->head.snapshot;
  options->observe = NULL;
  options->progress = NULL;
  ljp_profile_free(r->p);
  return ljp_profile_load(file, options, &r->p, error);
}

int ljp_report_open(const struct ljp_report_options *c, const char *command,
                    const char *file, struct ljp_report *r)
{
  struct ljp_select_options select = {.focus = c->focus, .ignore = c->ignore};
  struct ljp_profile_options options = {.no_symbols = c->no_symbols,
                                        .thread = c->thread,
                                        .since = c->since,
                                        .trace_stacks = c->jit,
                                        .lua_view = !c->native,
                                        .progress = ljp_progress_bytes};
  char error[LJP_READER_ERROR_BYTES + 64];
  struct ljp_progress progress;
  int code;
  if ((code = open_choose_measure(c, command, NULL, &select.measure)) ||
      (code = ljp_label_options(command, &c->labels, &options)) ||
      (c->time && (code = ljp_time_range(command, c->time, &options.from_ns,
                                         &options.to_ns))) ||
      (code = ljp_select_check(c->focus, c->ignore, command)))
    return code;
  options.label_key = c->label_key;
  if (select.measure == LJP_MEASURE_GC_COST &&
      (c->time || c->thread || options.labels.count)) {
    ljp_command_error(command,
                      "--gc-cost divides the collector's time over "
                      "the whole session, so %s cannot be given with "
                      "it",
                      c->time     ? "--time"
                      : c->thread ? "--thread"
                                  : "--label");
    return LJP_EXIT_USAGE;
  }
  if (c->last_lines) {
    options.observe = ljp_last_lines_take;
    options.observe_ctx = c->last_lines;
  }
  bool leaks = select.measure == LJP_MEASURE_LEAKS, heap = false;
  if (leaks && !options.observe && strcmp(file, "-") != 0) {
    options.observe = open_observe;
    options.observe_ctx = &heap;
  }
  options.gc_cost = select.measure == LJP_MEASURE_GC_COST;
  options.since_old = options.since && select.measure == LJP_MEASURE_LEAKS;
  r->path = file;
  r->color = open_is_terminal();
  options.progress_ctx = &progress;
  ljp_progress_begin(&progress, file);
  enum ljp_status status = ljp_profile_load(file, &options, &r->p, error);
  ljp_progress_end(&progress);
  if (!status && heap)
    status = open_heap(r, file, &options, error);
  if (status) {
    ljp_command_error(command, "%s: %s", file, error);
    open_close_graph(r);
    return LJP_EXIT_FAILED;
  }
  if (c->label_key)
    r->label_key =
        ljp_labels_key(r->p, ljp_str(c->label_key, strlen(c->label_key)));
  open_choose_measure(c, command, r->p, &select.measure);
  for (unsigned i = 0; i < LJP_MEASURES; i++)
    r->chosen |= c->measures[i];
  code = ljp_select(&r->select, r->p, &select, command);
  if (code)
    ljp_report_close(r);
  return code;
}

int ljp_report_fold(const struct ljp_report_options *c, const char *command,
                    struct ljp_report *r)
{
  struct ljp_select_options select = {
      .measure = r->select.measure, .focus = c->focus, .ignore = c->ignore};
  ljp_select_fini(&r->select);
  r->select = (struct ljp_select){0};
  if (ljp_profile_fold(r->p, NULL)) {
    ljp_command_error(command, "out of memory");
    return LJP_EXIT_FAILED;
  }
  return ljp_select(&r->select, r->p, &select, command);
}

const char *ljp_report_lacks(const struct ljp_report *r)
{
  const struct ljp_profile *p = r->p;
  if (ljp_measure_is_memory(r->select.measure))
    return p->has_memory ? NULL
                         : "the file has no memory events ('ljprof record "
                           "--memory' records them)";
  if (r->select.measure == LJP_MEASURE_GC_COST)
    return p->has_memory && p->recorded[LJP_PRODUCER_CPU] && !p->recorded_by
               ? NULL
               : "the time of the collector needs CPU samples and memory "
                 "events "
                 "in one file ('ljprof record --memory' records both)";
  if (p->recorded_by)
    return NULL;
  if (r->select.measure == LJP_MEASURE_WALL)
    return p->recorded[LJP_PRODUCER_WALL]
               ? NULL
               : "the file has no wall-clock samples ('ljprof record --event "
                 "wall' takes them)";
  return p->recorded[LJP_PRODUCER_CPU]
             ? NULL
             : "the file has no CPU samples ('ljprof record' takes them, "
               "without --no-cpu and --event wall)";
}

void ljp_report_close(struct ljp_report *r)
{
  free(r->places);
  ljp_select_fini(&r->select);
  ljp_profile_free(r->p);
  r->p = NULL;
  open_close_graph(r);
}
