/*
** Writes the trace event format of chrome://tracing and Perfetto: slices of
** functions, GC phases, the size of the heap, and marks. A function has one
** slice for consecutive samples that contain it.
**
** The own time of a slice is the weight of its samples, so that sums are right:
** consecutive samples are placed end to end. A gap of more than two intervals
** ends all slices.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "src/base/assert.h"
#include "tools/export/export.h"

struct open_slice {
  uint32_t label;
  uint64_t start;
};

struct lane {
  struct open_slice *open;
  uint32_t depth;
  uint64_t cursor; /* End of the time covered so far. */
  bool used;
};

struct chrome {
  struct ljp_export *e;
  struct ljp_labels labels;
  struct lane *lanes; /* By thread. */
  uint64_t slack;
  bool any; /* An event has been written. */
};

enum { GC_LANE = 1 << 30, MICRO = 1000 };

static void chrome_put_time(struct ljp_print *out, const char *key, uint64_t ns)
{
  ljp_print_format(out, ",\"%s\":%" PRIu64 ".%03u", key, ns / MICRO,
                   (unsigned)(ns % MICRO));
}

/* Begins an event. The caller writes its name and other members. */
static void chrome_begin(struct chrome *c, const char *phase, uint64_t tid)
{
  ljp_print_format(c->e->out,
                   "%s{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64,
                   c->any ? ",\n" : "\n", phase, c->e->p->pid, tid);
  c->any = true;
}

static void chrome_put_name(struct chrome *c, struct ljp_str name)
{
  ljp_print_str(c->e->out, ",\"name\":");
  ljp_print_json(c->e->out, name);
}

static uint64_t chrome_tid(const struct chrome *c, uint32_t thread)
{
  const struct ljp_profile_thread *t = &c->e->p->threads[thread];
  return t->tid ? t->tid : thread;
}

static void chrome_close_slices(struct chrome *c, uint32_t thread,
                                uint32_t depth)
{
  const struct ljp_profile *p = c->e->p;
  struct lane *lane = &c->lanes[thread];
  while (lane->depth > depth) {
    const struct open_slice *slice = &lane->open[--lane->depth];
    uint32_t frame = c->labels.frame[slice->label];
    char name[LJP_FRAME_NAME_BYTES];
    size_t n = ljp_frame_name(p, frame, c->e->how, name, sizeof name);
    chrome_begin(c, "X", chrome_tid(c, thread));
    chrome_put_name(c, ljp_str(name, n < sizeof name ? n : sizeof name - 1));
    ljp_print_str(c->e->out, ",\"cat\":");
    const char *kind = ljp_profile_kind_text(p->frames[frame].kind);
    ljp_print_json(c->e->out, ljp_str(kind, strlen(kind)));
    chrome_put_time(c->e->out, "ts", slice->start);
    chrome_put_time(c->e->out, "dur", lane->cursor - slice->start);
    ljp_print_str(c->e->out, "}");
  }
}

static bool chrome_put_point(struct chrome *c,
                             const struct ljp_profile_point *point)
{
  static uint32_t path[LJP_EXPORT_DEPTH];
  const struct ljp_profile *p = c->e->p;
  const struct ljp_profile_row *row = &p->rows[point->row];
  uint32_t thread = p->contexts[row->context].thread, depth, same = 0;
  struct lane *lane = &c->lanes[thread];
  uint64_t time = point->tick * p->tick_ns;
  if (!lane->open &&
      !(lane->open = calloc(LJP_EXPORT_DEPTH, sizeof *lane->open)))
    return false;
  if (!lane->used || time > lane->cursor + c->slack) {
    chrome_close_slices(c, thread, 0);
    lane->cursor = time;
    lane->used = true;
  }
  ljp_export_path(p, row->node, path, &depth);
  while (same < depth && same < lane->depth &&
         lane->open[same].label ==
             c->labels.of_frame[p->nodes[path[same]].frame])
    same++;
  chrome_close_slices(c, thread, same);
  ljp_assert(lane->depth == same && depth <= LJP_EXPORT_DEPTH);
  for (; lane->depth < depth; lane->depth++)
    lane->open[lane->depth] = (struct open_slice){
        c->labels.of_frame[p->nodes[path[lane->depth]].frame], lane->cursor};
  lane->cursor += point->weight;
  return true;
}

static bool chrome_put_samples(struct chrome *c)
{
  const struct ljp_profile *p = c->e->p;
  uint8_t kind =
      c->e->value <= LJP_VALUE_CPU ? LJP_PRODUCER_CPU : LJP_PRODUCER_WALL;
  c->slack = 2 * (p->interval_ns[kind] > p->tick_ns ? p->interval_ns[kind]
                                                    : p->tick_ns);
  bool ok = true;
  for (uint32_t i = 0; ok && i < p->point_count; i++) {
    const struct ljp_profile_row *row = &p->rows[p->points[i].row];
    if (!row->memory && p->contexts[row->context].kind == kind)
      ok = chrome_put_point(c, &p->points[i]);
  }
  for (uint32_t thread = 0; thread < p->thread_count; thread++) {
    struct ljp_str name = ljp_profile_str(p, p->threads[thread].name);
    chrome_close_slices(c, thread, 0);
    free(c->lanes[thread].open);
    if (!c->lanes[thread].used || !name.len)
      continue;
    chrome_begin(c, "M", chrome_tid(c, thread));
    ljp_print_str(c->e->out, ",\"name\":\"thread_name\",\"args\":{\"name\":");
    ljp_print_json(c->e->out, name);
    ljp_print_str(c->e->out, "}}");
  }
  return ok;
}

/* A phase lasts until the next phase of the VM. A pause is not a phase. */
static void chrome_put_gc(struct chrome *c)
{
  const struct ljp_profile *p = c->e->p;
  uint32_t *last = calloc(p->vm_count + 1, sizeof *last);
  for (uint32_t i = 0; last && i < p->gc_count; i++) {
    const struct ljp_profile_gc *gc = &p->gc[i];
    const struct ljp_profile_gc *before =
        last[gc->vm] ? &p->gc[last[gc->vm] - 1] : NULL;
    if (before && before->phase != LJP_GC_PAUSE &&
        before->phase != LJP_GC_CLOSED && gc->time_ns >= before->time_ns) {
      const char *phase = ljp_name_shown(LJP_SHOW_GC_PHASE, before->phase);
      chrome_begin(c, "X", GC_LANE + (uint64_t)gc->vm);
      chrome_put_name(
          c, ljp_str(phase ? phase : "GC", strlen(phase ? phase : "GC")));
      ljp_print_str(c->e->out, ",\"cat\":\"GC\"");
      chrome_put_time(c->e->out, "ts", before->time_ns);
      chrome_put_time(c->e->out, "dur", gc->time_ns - before->time_ns);
      ljp_print_str(c->e->out, "}");
    }
    if (!last[gc->vm]) {
      chrome_begin(c, "M", GC_LANE + (uint64_t)gc->vm);
      ljp_print_str(c->e->out,
                    ",\"name\":\"thread_name\",\"args\":{\"name\":\"GC\"}}");
    }
    last[gc->vm] = i + 1;
    chrome_begin(c, "C", 0);
    ljp_print_format(c->e->out, ",\"name\":\"heap of VM %" PRIu64 "\"",
                     p->vms[gc->vm].id);
    chrome_put_time(c->e->out, "ts", gc->time_ns);
    ljp_print_format(c->e->out, ",\"args\":{\"bytes\":%" PRIu64 "}}",
                     gc->phase == LJP_GC_CLOSED ? 0 : gc->heap_bytes);
  }
  free(last);
}

static void chrome_put_marks(struct chrome *c)
{
  const struct ljp_profile *p = c->e->p;
  for (uint32_t i = 0; i < p->mark_count; i++) {
    const struct ljp_profile_mark *mark = &p->marks[i];
    chrome_begin(c, "i", chrome_tid(c, mark->thread));
    chrome_put_name(c, ljp_profile_str(p, mark->text));
    chrome_put_time(c->e->out, "ts", mark->time_ns);
    ljp_print_format(c->e->out,
                     ",\"s\":\"p\",\"args\":{\"value\":%" PRId64 "}}",
                     mark->value);
  }
}

enum ljp_status ljp_export_chrome(struct ljp_export *e)
{
  const struct ljp_profile *p = e->p;
  struct chrome c = {.e = e};
  enum ljp_status status = ljp_labels_make(&c.labels, e);
  if (status)
    return status;
  c.lanes = calloc(p->thread_count + 1, sizeof *c.lanes);
  ljp_print_str(e->out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{"
                        "\"creator\":\"ljprof\",\"executable\":");
  ljp_print_json(e->out, ljp_profile_str(p, p->executable));
  for (uint32_t i = 0; ljp_profile_notice(p, i); i++) {
    const char *text = ljp_profile_notice(p, i);
    ljp_print_format(e->out, ",\"notice %" PRIu32 "\":", i + 1);
    ljp_print_json(e->out, ljp_str(text, strlen(text)));
  }
  ljp_print_str(e->out, "},\n\"traceEvents\":[");
  bool ok = c.lanes && chrome_put_samples(&c);
  chrome_put_gc(&c);
  chrome_put_marks(&c);
  ljp_print_str(e->out, "]}\n");
  free(c.lanes);
  ljp_labels_free(&c.labels);
  return ok ? LJP_OK : LJP_ERR_MEM;
}
