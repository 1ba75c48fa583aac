/*
** Rules about memory that is never freed. A line is a candidate if what it
** allocated throughout the recording has survived two collections or more, and
** if it still allocates in the last third: a program loads data until then.
*/
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/advise/advise.h"

/* Of 64 parts of the session, in how many something was allocated that is still
** alive; what a program loads at its start falls into one or two. */
enum { MEMORY_PARTS = 5, MEMORY_LEAST = 16 << 10 };

struct memory_sum {
  uint64_t bytes, objects, threads, thread_bytes, slices;
  bool late; /* Also allocated in the last third of the session. */
  /* Whatever its age: also what leaked just before the end. */
  uint64_t live_bytes;
  uint64_t list_bytes; /* Parts of tables, stacks: what holds other objects. */
  struct ljp_estimate live, old;
};

static void memory_take(struct memory_sum *sum, const struct advise_site *s)
{
  bool thread = s->type == LJP_MEM_TYPE_THREAD || s->type == LJP_MEM_TYPE_STACK;
  sum->bytes += s->memory.old_bytes;
  sum->objects += s->memory.old_objects;
  sum->slices |= s->memory.old_bytes ? s->memory.slices : 0;
  sum->late |= s->memory.late;
  sum->live_bytes += s->memory.live_bytes;
  ljp_estimate_sum(&sum->live, &s->estimates.live);
  ljp_estimate_sum(&sum->old, &s->estimates.old);
  if (s->type == LJP_MEM_TYPE_ARRAY_PART || s->type == LJP_MEM_TYPE_HASH_PART ||
      s->type == LJP_MEM_TYPE_STACK)
    sum->list_bytes += s->memory.live_bytes;
  if (s->type == LJP_MEM_TYPE_THREAD)
    sum->threads += s->memory.old_objects;
  if (thread)
    sum->thread_bytes += s->memory.old_bytes;
}

static void memory_judge(const struct advise_facts *a,
                         struct advise_findings *all, uint32_t frame,
                         const struct memory_sum *sum,
                         const struct memory_sum *function,
                         const struct memory_sum *all_lines)
{
  double live = (double)a->p->totals.memory.live_bytes;
  double bytes = (double)sum->bytes;
  if (bytes < MEMORY_LEAST || live <= 0 ||
      __builtin_popcountll(sum->slices) < MEMORY_PARTS || !sum->late)
    return;
  uint64_t bound =
      function->live_bytes + all_lines->list_bytes - function->list_bytes;
  double whole = (double)bound;
  double interval = a->p->sampled_memory ? (double)a->p->sample_bytes : 0;
  struct ljp_bounds bounds =
      ljp_estimate_bytes(&function->live, whole, interval);
  struct ljp_bounds seen = ljp_estimate_bytes(&sum->old, bytes, interval);
  /* Of a coroutine and its stack, samples mostly hit the stack. */
  bool coroutines = sum->thread_bytes >= sum->bytes / 2;
  struct advise_finding f = {
      .kind = coroutines ? LJP_ADVISE_COROUTINES : LJP_ADVISE_LEAK,
      .function = a->p->frames[frame].function,
      .frame = frame,
      .memory = true,
      .bytes = sum->bytes,
      .bound_bytes = bound,
      .objects = (coroutines && sum->threads ? sum->threads : sum->objects) /
                 LJP_OBJECT,
      .bytes_low = bounds.low,
      .bytes_high = bounds.high};
  f.percent = fmin(100 * whole / live, 100);
  f.error = 100 * fmax(bounds.high - whole, whole - bounds.low) / live;
  f.evidence_percent = fmin(100 * bytes / live, 100);
  f.evidence_error = 100 * fmax(bytes - seen.low, 0) / live;
  snprintf(f.text, sizeof f.text,
           "allocated here in %d of 64 parts of the recording, and alive "
           "after two collections or more",
           __builtin_popcountll(sum->slices));
  advise_found(a, all, &f);
}

/* The bound: what the function's lines allocated, since they often do so for
** one list, and the tables of others, since one of them is that list. */
void advise_rule_leaks(const struct advise_facts *a,
                       struct advise_findings *all)
{
  const struct ljp_profile *p = a->p;
  struct memory_sum *lines = NULL, *functions = NULL, whole = {0};
  if (!a->site_count)
    return;
  lines = calloc((size_t)p->frame_count + 1, sizeof *lines);
  functions = calloc((size_t)p->function_count + 1, sizeof *functions);
  all->no_memory |= !lines || !functions;
  for (uint32_t i = 0; lines && functions && i < a->site_count; i++) {
    uint32_t frame = a->sites[i].frame;
    memory_take(&whole, &a->sites[i]);
    memory_take(&lines[frame], &a->sites[i]);
    memory_take(&functions[p->frames[frame].function], &a->sites[i]);
  }
  for (uint32_t i = 1; lines && functions && i < p->frame_count; i++) {
    unsigned kind = p->frames[i].kind;
    if (kind == LJP_FRAME_LUA || kind == LJP_FRAME_LUA_INLINED)
      memory_judge(a, all, i, &lines[i], &functions[p->frames[i].function],
                   &whole);
  }
  free(lines);
  free(functions);
}
