/*
** Windows over the rows of a profile, and parts made of them.
**
** A part borrows from its profile what is only read (modules, threads, VMs,
** contexts unless there are labels, traces, symbols) and the strings, which may grow; its frames, nodes
** and rows are its own. One thread a profile.
*/
#include "parsers/profile/recent.h"

#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "parsers/profile/intern.h"
#include "parsers/profile/labels.h"
#include "parsers/profile/pass.h"
#include "src/base/assert.h"

static struct ljp_recent_sums recent_sums(const struct ljp_profile *p,
                                          uint32_t row)
{
  const struct ljp_profile_row *r = &p->rows[row];
  return (struct ljp_recent_sums){r->count, r->weight,
                                  p->memory[r->memory].alloc_objects};
}

static void recent_drop_oldest(struct ljp_recent *r)
{
  r->entry_count -= r->windows[0].count;
  free(r->windows[0].entries);
  memmove(r->windows, r->windows + 1, --r->window_count * sizeof *r->windows);
}

enum ljp_status ljp_recent_cut(struct ljp_recent *r,
                               const struct ljp_profile *p, uint64_t now_ns)
{
  struct ljp_recent_window w = {.begin_ns = r->cut_ns, .end_ns = now_ns};
  uint32_t room = 0;
  while (r->seen_count < p->row_count) {
    if (!ljp_array_reserve(&r->seen, r->seen_count, &r->seen_room,
                           sizeof *r->seen))
      return LJP_ERR_MEM;
    r->seen[r->seen_count++] = (struct ljp_recent_sums){0};
  }
  /* What is beyond the limit comes into the next window. */
  for (uint32_t i = 0; i < p->row_count && w.count < LJP_RECENT_MAX_ENTRIES;
       i++) {
    struct ljp_recent_sums *seen = &r->seen[i];
    if (seen->count == p->rows[i].count && seen->weight == p->rows[i].weight)
      continue;
    const struct ljp_recent_sums now = recent_sums(p, i);
    if (!ljp_array_reserve(&w.entries, w.count, &room, sizeof *w.entries)) {
      free(w.entries);
      return LJP_ERR_MEM;
    }
    w.entries[w.count++] = (struct ljp_recent_entry){
        i,
        {now.count - seen->count, now.weight - seen->weight,
         now.objects - seen->objects}};
    *seen = now;
  }
  while (r->window_count && (r->window_count == LJP_RECENT_WINDOWS ||
                             r->entry_count + w.count > LJP_RECENT_MAX_ENTRIES))
    recent_drop_oldest(r);
  r->entry_count += w.count;
  r->windows[r->window_count++] = w;
  r->cut_ns = now_ns;
  return LJP_OK;
}

/* The first window that ends after a time. */
static uint32_t recent_first(const struct ljp_recent *r, uint64_t from_ns)
{
  uint32_t i = r->window_count;
  while (i && r->windows[i - 1].end_ns > from_ns)
    i--;
  return i;
}

uint64_t ljp_recent_begin(const struct ljp_recent *r, uint64_t from_ns)
{
  uint32_t first = recent_first(r, from_ns);
  return first < r->window_count ? r->windows[first].begin_ns : r->cut_ns;
}

/* -- Parts ----------------------------------------------------------------- */

struct part {
  struct ljp_profile *from, *to;
  const struct ljp_recent_query *query;
  uint32_t *nodes;  /* By node of the profile: that of the part; 0: none. */
  uint32_t *frames; /* Likewise, + 1. */
  uint32_t *path;
  uint32_t path_room;
};

/* The part's node for a node of the profile. */
static enum ljp_status part_node(struct part *part, uint32_t node, uint32_t *to)
{
  const struct ljp_profile *from = part->from;
  enum ljp_status status = LJP_OK;
  uint32_t depth = 0;
  for (; node > LJP_NODE_UNRECORDED && !part->nodes[node];
       node = from->nodes[node].parent) {
    if (!ljp_array_reserve(&part->path, depth, &part->path_room,
                           sizeof *part->path))
      return LJP_ERR_MEM;
    part->path[depth++] = node;
  }
  *to = node > LJP_NODE_UNRECORDED ? part->nodes[node] : node;
  while (depth && !status) {
    uint32_t child = part->path[--depth];
    uint32_t frame = from->nodes[child].frame;
    if (!part->frames[frame]) {
      uint32_t id;
      status = ljp_profile_intern_frame(part->to, &from->frames[frame], &id);
      part->frames[frame] = id + 1;
    }
    if (!status)
      status =
          ljp_profile_intern_node(part->to, *to, part->frames[frame] - 1, to);
    part->nodes[child] = *to;
  }
  return status;
}

static enum ljp_status part_add(struct part *part, uint32_t from_row,
                                const struct ljp_recent_sums *sums)
{
  const struct ljp_profile_row *from = &part->from->rows[from_row];
  const struct ljp_profile_context *c = &part->from->contexts[from->context];
  struct ljp_profile *to = part->to;
  enum ljp_status status;
  uint32_t node, row, memory;
  if ((part->query->thread && c->thread != part->query->thread) ||
      (part->query->vm && c->vm != part->query->vm) ||
      (!sums->count && !sums->weight))
    return LJP_OK;
  if ((status = part_node(part, from->node, &node)) ||
      (status = ljp_profile_intern_row(to, node, from->context, &row)))
    return status;
  to->rows[row].count += sums->count;
  to->rows[row].weight += sums->weight;
  if (!from->memory)
    return LJP_OK;
  if ((status = ljp_profile_intern_memory(to, row, &memory)))
    return status;
  to->memory[memory].alloc_objects += sums->objects;
  to->memory[memory].alloc_bytes += sums->weight;
  return LJP_OK;
}

static enum ljp_status part_fill(struct part *part,
                                 const struct ljp_recent *recent)
{
  const struct ljp_recent_query *q = part->query;
  enum ljp_status status = LJP_OK;
  for (uint32_t i = 0; q->all && i < part->from->row_count && !status; i++) {
    const struct ljp_recent_sums sums = recent_sums(part->from, i);
    status = part_add(part, i, &sums);
  }
  for (uint32_t w = q->all ? recent->window_count
                           : recent_first(recent, q->from_ns);
       w < recent->window_count && !status; w++)
    for (uint32_t i = 0; i < recent->windows[w].count && !status; i++)
      status = part_add(part, recent->windows[w].entries[i].row,
                        &recent->windows[w].entries[i].sums);
  return status;
}

/* A profile that has what `p` lends, and nothing of its own. NULL: no memory. */
static struct ljp_profile *part_new(const struct ljp_profile *p, bool native)
{
  struct ljp_profile *part = malloc(sizeof *part);
  if (!part)
    return NULL;
  *part = *p;
  part->frames = NULL;
  part->functions = NULL;
  part->nodes = NULL;
  part->rows = NULL;
  part->memory = NULL;
  part->estimates = NULL;
  part->sites = NULL;
  part->gc = NULL;
  part->marks = NULL;
  part->trace_events = NULL;
  part->blacklisted = NULL;
  part->points = NULL;
  part->notices = NULL;
  part->frame_count = part->function_count = part->node_count = 0;
  part->row_count = part->memory_count = part->gc_count = part->mark_count = 0;
  part->trace_event_count = part->point_count = part->notice_count = 0;
  part->blacklisted_count = 0;
  part->births = (struct ljp_births){0};
  part->balance = (struct ljp_balance){0};
  part->totals = (struct ljp_profile_totals){0};
  part->options.lua_view = !native;
  part->pass = calloc(1, sizeof *part->pass);
  if (!part->pass) {
    free(part);
    return NULL;
  }
  part->pass->too_many_names = p->pass->too_many_names;
  if (p->has_labels) { /* It will have contexts of its own. */
    part->contexts =
        malloc(((size_t)p->context_count + 1) * sizeof *part->contexts);
    if (!part->contexts) {
      free(part->pass);
      free(part);
      return NULL;
    }
    memcpy(part->contexts, p->contexts,
           p->context_count * sizeof *part->contexts);
    part->pass->context_room = p->context_count;
  }
  return part;
}

void ljp_recent_close(struct ljp_profile *p, struct ljp_profile *part)
{
  p->strings = part->strings; /* They have grown. */
  if (part->pass)
    ljp_profile_free_pass(part);
  if (part->contexts != p->contexts)
    free(part->contexts);
  free(part->frames);
  free(part->functions);
  free(part->nodes);
  free(part->rows);
  free(part->memory);
  free(part->estimates);
  free(part->sites);
  free(part->gc);
  free(part);
}

enum ljp_status ljp_recent_open(const struct ljp_recent *recent,
                                struct ljp_profile *p,
                                const struct ljp_recent_query *query,
                                struct ljp_profile **out)
{
  struct part part = {.from = p, .query = query};
  enum ljp_status status = LJP_ERR_MEM;
  part.to = part_new(p, query->native);
  part.nodes = ljp_pages_items(p->node_count, sizeof *part.nodes);
  part.frames = ljp_pages_items(p->frame_count, sizeof *part.frames);
  if (part.to && part.nodes && part.frames &&
      !(status = ljp_profile_init_nodes(part.to)) &&
      !(status = part_fill(&part, recent)) &&
      !(status = ljp_profile_rebuild(part.to))) {
    ljp_profile_free_pass(part.to);
    if (!query->native)
      status = ljp_profile_fold(part.to, NULL);
  }
  free(part.nodes);
  free(part.frames);
  free(part.path);
  if (status && part.to) {
    ljp_recent_close(p, part.to);
    part.to = NULL;
  }
  *out = part.to;
  return status;
}

void ljp_recent_fini(struct ljp_recent *r)
{
  while (r->window_count)
    recent_drop_oldest(r);
  free(r->seen);
  *r = (struct ljp_recent){0};
}
