/*
** Recordings that were given up, from the trace events: by reason and place.
** Events know a function by its file, name and first line.
*/
#include <stdlib.h>

#include "tools/advise/advise.h"

static uint32_t traces_hash(uint32_t file, uint32_t name, uint32_t first_line)
{
  return ljp_hash_finish(
      ljp_hash_mix(ljp_hash_mix((uint64_t)file << 32 | name, 0), first_line));
}

static bool traces_index(const struct ljp_profile *p, struct ljp_index *index)
{
  for (uint32_t i = 1; i < p->function_count; i++) {
    const struct ljp_profile_frame *f = &p->frames[p->functions[i].frame];
    if (f->kind != LJP_FRAME_LUA && f->kind != LJP_FRAME_LUA_INLINED)
      continue;
    if (!ljp_index_reserve(index))
      return false;
    uint32_t hash = traces_hash(f->file, f->name, f->first_line);
    struct ljp_index_slot *slot = ljp_index_at(index, hash);
    while (slot->item)
      slot = ljp_index_next(index, slot);
    ljp_index_put(index, slot, hash, i);
  }
  return ljp_index_reserve(index);
}

static uint32_t traces_function(const struct ljp_profile *p,
                                const struct ljp_index *index,
                                const struct ljp_profile_trace_event *e)
{
  uint32_t hash = traces_hash(e->file, e->name, e->first_line);
  struct ljp_index_slot *slot = ljp_index_at(index, hash);
  for (; slot->item; slot = ljp_index_next(index, slot)) {
    const struct ljp_profile_frame *f =
        &p->frames[p->functions[slot->item - 1].frame];
    if (slot->hash == hash && f->file == e->file && f->name == e->name &&
        f->first_line == e->first_line)
      return slot->item - 1;
  }
  return 0;
}

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
  struct ljp_index index = {0};
  a->aborts = malloc(((size_t)p->trace_event_count + 1) * sizeof *a->aborts);
  bool ok = a->aborts && traces_index(p, &index);
  for (uint32_t i = 0; ok && i < p->trace_event_count; i++)
    traces_take(a, &p->trace_events[i],
                traces_function(p, &index, &p->trace_events[i]));
  ljp_index_fini(&index);
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
