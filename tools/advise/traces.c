/*
** Recordings that were given up, from the trace events: by reason and place.
** Events know a function by its file, name and first line.
*/
#include <stdlib.h>

#include "parsers/profile/named_functions.h"
#include "tools/advise/advise.h"

static void traces_take(struct advise_facts *a,
                        const struct ljp_profile_trace_event *e,
                        uint32_t function)
{
  const struct ljp_profile *p = a->p;
  struct advise_abort *abort = &a->aborts[a->abort_count];
  if (e->what == LJP_TRACE_FLUSH)
    a->flushes++;
  else if (e->what == LJP_TRACE_STOP)
    a->compiled_traces++;
  else if (e->what == LJP_TRACE_FREE)
    a->freed_traces++;
  if (e->what != LJP_TRACE_ABORT && e->what != LJP_TRACE_BLACKLIST)
    return;
  *abort = (struct advise_abort){.file = e->file,
                                 .name = e->name,
                                 .first_line = e->first_line,
                                 .line = e->line,
                                 .function = function,
                                 .count = 1};
  if (e->what == LJP_TRACE_ABORT) {
    abort->reason = ljp_advise_reason(ljp_profile_str(p, e->reason));
    abort->text = e->reason;
    uint32_t lua = a->nodes[e->stack].lua;
    if (lua) {
      abort->at_frame = p->nodes[lua].frame;
      abort->at_function = p->frames[abort->at_frame].function;
    }
  }
  a->abort_count++;
}

static int traces_by_place(const void *x, const void *y)
{
  const struct advise_abort *a = x, *b = y;
  const uint32_t left[] = {a->text, a->at_frame, a->function, a->file,
                           a->name, a->line,     !a->reason};
  const uint32_t right[] = {b->text, b->at_frame, b->function, b->file,
                            b->name, b->line,     !b->reason};
  for (unsigned i = 0; i < sizeof left / sizeof *left; i++)
    if (left[i] != right[i])
      return left[i] < right[i] ? -1 : 1;
  return 0;
}

bool ljp_advise_collect_traces(struct advise_facts *a)
{
  const struct ljp_profile *p = a->p;
  struct ljp_index index;
  bool ok = ljp_named_functions_init(p, &index);
  a->aborts = malloc(((size_t)p->trace_event_count + p->blacklisted_count + 1) *
                     sizeof *a->aborts);
  ok = ok && a->aborts;
  for (uint32_t i = 0; ok && i < p->trace_event_count; i++) {
    const struct ljp_profile_trace_event *e = &p->trace_events[i];
    traces_take(a, e,
                ljp_named_function(p, &index, e->file, e->name, e->first_line));
  }
  for (uint32_t i = 0; ok && i < p->blacklisted_count; i++) {
    const struct ljp_profile_blacklisted *b = &p->blacklisted[i];
    a->aborts[a->abort_count++] =
        (struct advise_abort){.file = b->file,
                              .name = b->name,
                              .first_line = b->first_line,
                              .function = ljp_named_function(
                                  p, &index, b->file, b->name, b->first_line),
                              .count = 1};
  }
  ljp_named_functions_fini(&index);
  uint32_t n = 0;
  if (ok && a->abort_count)
    qsort(a->aborts, a->abort_count, sizeof *a->aborts, traces_by_place);
  for (uint32_t i = 0; ok && i < a->abort_count; i++)
    if (n && traces_by_place(&a->aborts[n - 1], &a->aborts[i]) == 0)
      a->aborts[n - 1].count += a->aborts[i].count;
    else
      a->aborts[n++] = a->aborts[i];
  a->abort_count = n;
  return ok;
}
