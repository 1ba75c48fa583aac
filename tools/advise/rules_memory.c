/*
** Rules about memory that is never freed. A line is a candidate if what it
** allocated throughout the recording has survived two collections or more, and
** if it still allocates in the last third: a program loads data until then.
**
** A heap that grows is collected each time it has doubled, so only a quarter of
** what leaks has survived two collections. Of the rest, as many objects will
** stay as of those whose fate is known.
*/
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "parsers/base/whole.h"
#include "tools/advise/advise.h"

/* Of 64 parts of the session, in how many something was allocated that is still
** alive; what a program loads at its start falls into one or two. */
enum { MEMORY_PARTS = 5, MEMORY_LEAST = 16 << 10, MEMORY_NOTE = 1 << 20 };

struct memory_sum {
  uint64_t bytes, objects, threads, thread_bytes, slices; /* Old ones. */
  bool late; /* Also allocated in the last third of the session. */
  /* Whatever its age: also what leaked just before the end. */
  uint64_t live_bytes, live_objects;
  uint64_t freed_objects; /* By collections, not by reallocations. */
  /* What holds other objects: parts of tables, stacks, the index of strings. */
  uint64_t list_bytes;
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
  sum->live_objects += s->memory.live_objects;
  sum->freed_objects += s->memory.free_objects;
  ljp_estimate_sum(&sum->live, &s->estimates.live);
  ljp_estimate_sum(&sum->old, &s->estimates.old);
  if (s->type == LJP_MEM_TYPE_ARRAY_PART || s->type == LJP_MEM_TYPE_HASH_PART ||
      s->type == LJP_MEM_TYPE_STRING_INDEX || s->type == LJP_MEM_TYPE_STACK)
    sum->list_bytes += s->memory.live_bytes;
  if (s->type == LJP_MEM_TYPE_THREAD)
    sum->threads += s->memory.old_objects;
  if (thread)
    sum->thread_bytes += s->memory.old_bytes;
}

/* How many of the objects whose fate is known have stayed, 0 to 1. */
static double memory_survival(const struct memory_sum *sum)
{
  double known = (double)sum->objects + (double)sum->freed_objects;
  return known > 0 ? (double)sum->objects / known : 0;
}

/* Where most is younger than two collections, and hardly anything was ever
** freed, the parts in which the older ones were allocated may be few. */
static bool memory_grows(const struct memory_sum *sum)
{
  bool younger =
      sum->live_bytes / 2 >= sum->bytes && memory_survival(sum) >= 0.9;
  return sum->late && __builtin_popcountll(sum->slices) >=
                          (younger ? MEMORY_PARTS / 2 : MEMORY_PARTS);
}

/* What has survived, with the part of what is younger that will stay. */
static double memory_stays(const struct memory_sum *sum, double old,
                           double live)
{
  return old + fmax(live - old, 0) * memory_survival(sum);
}

/* The lower bound of these bytes. Few samples tell little about a share. */
static double memory_stays_low(const struct memory_sum *sum, double stays,
                               double interval)
{
  double n = (double)sum->old.samples;
  double old = ljp_estimate_bytes(&sum->old, (double)sum->bytes, interval).low;
  double live =
      ljp_estimate_bytes(&sum->live, (double)sum->live_bytes, interval).low;
  double share = memory_survival(sum) * (interval > 0 ? n / (n + 4) : 1);
  return fmin(fmax(old, live * share), stays);
}

static void memory_judge(const struct advise_facts *a,
                         struct advise_findings *all, uint32_t frame,
                         const struct memory_sum *sum,
                         const struct memory_sum *function,
                         const struct memory_sum *all_lines)
{
  double live = (double)a->p->totals.memory.live_bytes;
  double bytes = memory_stays(sum, (double)sum->bytes, (double)sum->live_bytes);
  if (sum->bytes < MEMORY_LEAST || live <= 0 || !memory_grows(sum))
    return;
  uint64_t bound =
      function->live_bytes + all_lines->list_bytes - function->list_bytes;
  double whole = (double)bound;
  double interval = a->p->sampled_memory ? (double)a->p->sample_bytes : 0;
  struct ljp_bounds bounds =
      ljp_estimate_bytes(&function->live, whole, interval);
  double objects =
      memory_stays(sum, (double)sum->objects, (double)sum->live_objects);
  /* Of a coroutine and its stack, samples mostly hit the stack. */
  bool coroutines = sum->thread_bytes >= sum->bytes / 2;
  struct advise_finding f = {
      .kind = coroutines ? LJP_ADVISE_COROUTINES : LJP_ADVISE_LEAK,
      .function = a->p->frames[frame].function,
      .frame = frame,
      .memory = true,
      .bytes = ljp_whole(bytes),
      .bound_bytes = bound,
      .objects =
          (coroutines && sum->threads ? sum->threads : ljp_whole(objects)) /
          LJP_OBJECT,
      .bytes_low = bounds.low,
      .bytes_high = bounds.high};
  f.percent = fmin(100 * whole / live, 100);
  f.error = 100 * fmax(bounds.high - whole, whole - bounds.low) / live;
  f.evidence_percent = fmin(100 * bytes / live, 100);
  f.evidence_error =
      100 * (bytes - memory_stays_low(sum, bytes, interval)) / live;
  snprintf(f.text, sizeof f.text,
           "allocated here in %d of 64 parts of the recording, and alive after "
           "two collections or more (%.0f %%) or likely to stay",
           __builtin_popcountll(sum->slices), 100 * (double)sum->bytes / bytes);
  advise_found(a, all, &f);
}

/* The bound: what the function's lines allocated, since they often do so for
** one list, and the tables of others, since one of them is that list; and the
** index of strings, which shrinks when strings go. */
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

/* A VM's heap after its last collection, and after the largest one before. */
struct memory_heaps {
  uint64_t last, before;
  uint32_t ended;
};

static struct memory_heaps memory_heaps(const struct ljp_profile *p)
{
  struct memory_heaps heaps = {0};
  uint32_t end = p->gc_count;
  while (end && p->gc[end - 1].phase != LJP_GC_PAUSE)
    end--;
  for (uint32_t i = 0; i < end; i++) {
    const struct ljp_profile_gc *gc = &p->gc[i];
    if (gc->vm != p->gc[end - 1].vm)
      continue;
    if (gc->phase == LJP_GC_SWEEP)
      heaps.ended++;
    if (gc->phase != LJP_GC_PAUSE)
      continue;
    heaps.before = heaps.last > heaps.before ? heaps.last : heaps.before;
    heaps.last = gc->heap_bytes;
  }
  return heaps;
}

const char *ljp_advise_memory_note(const struct advise_facts *a,
                                   const struct advise_findings *all)
{
  struct memory_heaps heaps = memory_heaps(a->p);
  uint64_t samples = 0;
  if (!a->p->has_gc || a->p->totals.memory.live_bytes < MEMORY_NOTE ||
      advise_find(all, LJP_ADVISE_LEAK, 0) ||
      advise_find(all, LJP_ADVISE_COROUTINES, 0))
    return NULL;
  for (uint32_t i = 0; i < a->site_count; i++)
    samples += a->sites[i].estimates.live.samples;
  if (heaps.ended < 3)
    return "Fewer than 3 collections ended: memory that grows cannot be told "
           "from garbage. Record for longer, or call collectgarbage() a few "
           "times in the program.";
  if (a->p->sampled_memory && samples < 50 && heaps.last / 4 > heaps.before / 3)
    return "The heap grows, but fewer than 50 blocks that are alive were "
           "sampled: record with a smaller --sample, or with --every.";
  return NULL;
}
