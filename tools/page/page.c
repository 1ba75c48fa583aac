/*
** Builds the page's data: interned frames, nodes and contexts, rows, curves, GC
** phases, marks and notices. Lists that a long session would make too long are
** thinned out.
*/
#include "tools/page/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"

#define LJP_PAGE_TEXT_BYTES (512u << 20)
#define LJP_PAGE_POINTS                                                        \
  8192u /* Limit of a curve; it is thinned out at twice this number. */
#define LJP_PAGE_GCS 16384u
#define LJP_PAGE_MARKS 4096u

static bool page_same_text(struct ljp_str a, struct ljp_str b)
{
  return a.len == b.len && (!a.len || memcmp(a.data, b.data, a.len) == 0);
}

enum ljp_status ljp_page_init(struct ljp_page *page)
{
  memset(page, 0, sizeof *page);
  ljp_arena_init(&page->texts, LJP_PAGE_TEXT_BYTES);
  for (int i = 0; i < LJP_PAGE_VIEWS; i++)
    ljp_rows_init(&page->rows[i]);
  struct ljp_page_frame root = {.name = ljp_str("All", 3),
                                .kind = LJP_PAGE_ROOT};
  struct ljp_page_context none = {.state = {0}};
  ljp_page_frame(page, &root);
  ljp_page_node(page, 0, 0, 0);
  ljp_page_context(page, &none);
  return page->failed;
}

void ljp_page_fini(struct ljp_page *page)
{
  for (size_t i = 0; i < page->curve_count; i++)
    free(page->curves[i].points);
#define LJP_X(type, member) free(page->member##s);
  LJP_PAGE_LISTS(LJP_X)
#undef LJP_X
  for (int i = 0; i < LJP_PAGE_VIEWS; i++)
    ljp_rows_fini(&page->rows[i]);
  free(page->sources);
  free(page->lua_nodes);
  free(page->slices);
  free(page->frame_index.slots);
  free(page->node_index.slots);
  free(page->context_index.slots);
  ljp_arena_fini(&page->texts);
}

struct ljp_str ljp_page_text(struct ljp_page *page, struct ljp_str text)
{
  bool no_memory = false;
  char *copy =
      text.len ? ljp_arena_take(&page->texts, text.len, &no_memory) : NULL;
  if (!copy) {
    if (text.len)
      page->failed = no_memory ? LJP_ERR_MEM : LJP_ERR_LIMIT;
    return (struct ljp_str){0};
  }
  memcpy(copy, text.data, text.len);
  return ljp_str(copy, text.len);
}

struct ljp_str ljp_page_format(struct ljp_page *page, const char *format, ...)
{
  char text[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (n < 0)
    n = 0;
  return ljp_page_text(
      page,
      ljp_str(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1));
}

/* Makes room for one more element. False: out of memory. */
static bool page_more(struct ljp_page *page, void *list, size_t count,
                      size_t *room, size_t size)
{
  void **data = list;
  if (count < *room)
    return true;
  size_t wanted = *room ? *room * 2 : 64;
  void *grown = realloc(*data, wanted * size);
  if (!grown) {
    page->failed = LJP_ERR_MEM;
    return false;
  }
  *data = grown;
  *room = wanted;
  return true;
}

#define LJP_MORE(page, member)                                                 \
  page_more(page, &(page)->member##s, (page)->member##_count,                  \
            &(page)->member##_room, sizeof *(page)->member##s)

static uint64_t page_mix(uint64_t hash, uint64_t x)
{
  hash = (hash ^ x) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

static uint64_t page_mix_text(uint64_t hash, struct ljp_str s)
{
  for (uint32_t i = 0; i < s.len; i++)
    hash = (hash ^ (uint8_t)s.data[i]) * UINT64_C(0x100000001b3);
  return page_mix(hash, s.len);
}

static uint64_t page_hash_frame(const struct ljp_page *page, size_t i)
{
  const struct ljp_page_frame *f = &page->frames[i];
  uint64_t hash = page_mix(f->kind, f->line);
  return page_mix_text(page_mix_text(page_mix_text(hash, f->name), f->file),
                       f->module);
}

static uint64_t page_hash_node(const struct ljp_page *page, size_t i)
{
  const struct ljp_page_node *n = &page->nodes[i];
  return page_mix(page_mix(page_mix(1, n->parent), n->frame), n->line);
}

static uint64_t page_hash_context(const struct ljp_page *page, size_t i)
{
  const struct ljp_page_context *c = &page->contexts[i];
  uint64_t h = page_mix_text(page_mix_text(1, c->thread), c->vm);
  return page_mix_text(page_mix_text(h, c->state), c->labels);
}

static bool page_same_frame(const struct ljp_page *page, size_t i, size_t j)
{
  const struct ljp_page_frame *a = &page->frames[i], *b = &page->frames[j];
  return a->kind == b->kind && a->line == b->line &&
         page_same_text(a->name, b->name) && page_same_text(a->file, b->file) &&
         page_same_text(a->module, b->module);
}

static bool page_same_node(const struct ljp_page *page, size_t i, size_t j)
{
  const struct ljp_page_node *a = &page->nodes[i], *b = &page->nodes[j];
  return a->parent == b->parent && a->frame == b->frame && a->line == b->line;
}

static bool page_same_context(const struct ljp_page *page, size_t i, size_t j)
{
  const struct ljp_page_context *a = &page->contexts[i];
  const struct ljp_page_context *b = &page->contexts[j];
  return page_same_text(a->thread, b->thread) && page_same_text(a->vm, b->vm) &&
         page_same_text(a->state, b->state) &&
         page_same_text(a->labels, b->labels);
}

/* How to hash and compare the elements of a list. */
struct entries {
  uint64_t (*hash)(const struct ljp_page *page, size_t i);
  bool (*same)(const struct ljp_page *page, size_t i, size_t j);
};

static bool page_grow_index(struct ljp_page *page, struct ljp_page_index *index,
                            size_t count, const struct entries *of)
{
  if (index->slots && count * 2 <= index->mask)
    return true;
  size_t size = index->slots ? (index->mask + 1) * 2 : 1024;
  uint32_t *slots = calloc(size, sizeof *slots);
  if (!slots) {
    page->failed = LJP_ERR_MEM;
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    size_t at = of->hash(page, i) & (size - 1);
    while (slots[at])
      at = (at + 1) & (size - 1);
    slots[at] = (uint32_t)i + 1;
  }
  free(index->slots);
  index->slots = slots;
  index->mask = size - 1;
  return true;
}

/* Finds the element that equals list[count]. If there is none, list[count]
** becomes an element and *fresh is true. */
static uint32_t page_intern(struct ljp_page *page, struct ljp_page_index *index,
                            size_t count, const struct entries *of, bool *fresh)
{
  *fresh = false;
  if (count >= UINT32_MAX - 1 || !page_grow_index(page, index, count, of))
    return 0;
  size_t at = of->hash(page, count) & index->mask;
  for (; index->slots[at]; at = (at + 1) & index->mask)
    if (of->same(page, index->slots[at] - 1, count))
      return index->slots[at] - 1;
  index->slots[at] = (uint32_t)count + 1;
  *fresh = true;
  return (uint32_t)count;
}

uint32_t ljp_page_frame(struct ljp_page *page,
                        const struct ljp_page_frame *frame)
{
  static const struct entries of = {page_hash_frame, page_same_frame};
  bool fresh;
  if (!LJP_MORE(page, frame))
    return 0;
  struct ljp_page_frame *to = &page->frames[page->frame_count];
  *to = *frame;
  uint32_t i =
      page_intern(page, &page->frame_index, page->frame_count, &of, &fresh);
  if (fresh) {
    page->frame_count++;
    to->name = ljp_page_text(page, frame->name);
    to->file = ljp_page_text(page, frame->file);
    to->module = ljp_page_text(page, frame->module);
  }
  return i;
}

uint32_t ljp_page_node(struct ljp_page *page, uint32_t parent, uint32_t frame,
                       uint32_t line)
{
  static const struct entries of = {page_hash_node, page_same_node};
  bool fresh;
  if (!LJP_MORE(page, node))
    return 0;
  ljp_assert(!page->node_count ||
             (parent < page->node_count && frame < page->frame_count));
  page->nodes[page->node_count] =
      (struct ljp_page_node){.parent = parent, .frame = frame, .line = line};
  uint32_t i =
      page_intern(page, &page->node_index, page->node_count, &of, &fresh);
  page->node_count += fresh;
  return i;
}

uint32_t ljp_page_context(struct ljp_page *page,
                          const struct ljp_page_context *context)
{
  static const struct entries of = {page_hash_context, page_same_context};
  bool fresh;
  if (!LJP_MORE(page, context))
    return 0;
  struct ljp_page_context *to = &page->contexts[page->context_count];
  *to = *context;
  uint32_t i =
      page_intern(page, &page->context_index, page->context_count, &of, &fresh);
  if (fresh) {
    page->context_count++;
    to->thread = ljp_page_text(page, context->thread);
    to->vm = ljp_page_text(page, context->vm);
    to->state = ljp_page_text(page, context->state);
    to->labels = ljp_page_text(page, context->labels);
  }
  return i;
}

static void page_reach(struct ljp_page *page, uint64_t time_ns)
{
  if (time_ns > page->end_ns)
    page->end_ns = time_ns;
}

void ljp_page_row(struct ljp_page *page, enum ljp_page_view view,
                  uint64_t time_ns, uint32_t node, uint32_t context,
                  uint64_t count, uint64_t weight)
{
  page_reach(page, time_ns);
  enum ljp_status status =
      ljp_rows_add(&page->rows[view], time_ns, node, context, count, weight);
  if (status)
    page->failed = status;
}

void ljp_page_leak(struct ljp_page *page, uint32_t node, uint32_t context,
                   uint64_t count, uint64_t weight, uint64_t slices)
{
  if (node >= page->slice_count) { /* Room for all nodes that there are. */
    uint64_t *grown =
        realloc(page->slices, page->node_count * sizeof *page->slices);
    if (!grown) {
      page->failed = LJP_ERR_MEM;
      return;
    }
    memset(grown + page->slice_count, 0,
           (page->node_count - page->slice_count) * sizeof *grown);
    page->slices = grown;
    page->slice_count = page->node_count;
  }
  page->slices[node] |= slices;
  ljp_page_row(page, LJP_PAGE_VIEW_LEAK, 0, node, context, count, weight);
}

/* Keeps the lowest and the highest of each four points, in order. */
static void page_thin_out(struct ljp_page_curve *c)
{
  size_t kept = 0;
  for (size_t i = 0; i < c->count; i += 4) {
    size_t n = c->count - i < 4 ? c->count - i : 4, low = i, high = i;
    for (size_t j = i; j < i + n; j++) {
      low = c->points[j].value < c->points[low].value ? j : low;
      high = c->points[j].value >= c->points[high].value ? j : high;
    }
    struct ljp_page_point first = c->points[low < high ? low : high];
    struct ljp_page_point second = c->points[low < high ? high : low];
    c->points[kept++] = first;
    if (low != high)
      c->points[kept++] = second;
  }
  c->count = kept;
}

void ljp_page_point(struct ljp_page *page, struct ljp_str curve,
                    uint64_t time_ns, uint64_t value)
{
  size_t i = 0;
  while (i < page->curve_count && !page_same_text(page->curves[i].name, curve))
    i++;
  if (i == page->curve_count) {
    if (i == 64 ||
        !LJP_MORE(page, curve)) /* More curves could not be told apart. */
      return;
    page->curves[page->curve_count++] =
        (struct ljp_page_curve){.name = ljp_page_text(page, curve)};
  }
  struct ljp_page_curve *c = &page->curves[i];
  if (c->count >= LJP_PAGE_POINTS * 2)
    page_thin_out(c);
  if (page_more(page, &c->points, c->count, &c->room, sizeof *c->points))
    c->points[c->count++] =
        (struct ljp_page_point){.time_ns = time_ns, .value = value};
  page_reach(page, time_ns);
}

/* Joins phases whose distance is too small to be seen. The longer one
** determines the kind of phase. */
static void page_join_gc(struct ljp_page *page)
{
  uint64_t near = page->end_ns / LJP_PAGE_GCS + 1;
  for (; page->gc_count > LJP_PAGE_GCS / 2 && near < UINT64_MAX / 4;
       near *= 2) {
    size_t kept = 0;
    for (size_t i = 0; i < page->gc_count; i++) {
      struct ljp_page_gc *g = &page->gcs[i];
      struct ljp_page_gc *last = kept ? &page->gcs[kept - 1] : NULL;
      uint64_t end = last ? last->start_ns + last->length_ns : 0;
      if (last && last->length_ns < near && g->length_ns < near &&
          g->start_ns < end + near) {
        if (g->length_ns > last->length_ns)
          last->phase = g->phase;
        if (g->start_ns + g->length_ns > end)
          last->length_ns = g->start_ns + g->length_ns - last->start_ns;
      } else {
        page->gcs[kept++] = *g;
      }
    }
    page->gc_count = kept;
  }
}

void ljp_page_gc(struct ljp_page *page, uint64_t start_ns, uint64_t length_ns,
                 uint8_t phase)
{
  if (page->gc_count >= LJP_PAGE_GCS && !page->gc_full)
    page_join_gc(page);
  /* So many long phases occur in damaged files only. */
  page->gc_full = page->gc_count >= LJP_PAGE_GCS;
  if (!page->gc_full && LJP_MORE(page, gc))
    page->gcs[page->gc_count++] = (struct ljp_page_gc){
        .start_ns = start_ns, .length_ns = length_ns, .phase = phase};
  page_reach(page, start_ns + length_ns);
}

void ljp_page_mark(struct ljp_page *page, uint64_t time_ns, struct ljp_str text)
{
  page_reach(page, time_ns);
  if (page->mark_count < LJP_PAGE_MARKS && LJP_MORE(page, mark))
    page->marks[page->mark_count++] = (struct ljp_page_mark){
        .time_ns = time_ns, .text = ljp_page_text(page, text)};
}

void ljp_page_notice(struct ljp_page *page, bool error, struct ljp_str text)
{
  if (LJP_MORE(page, notice))
    page->notices[page->notice_count++] = (struct ljp_page_notice){
        .error = error, .text = ljp_page_text(page, text)};
}

void ljp_page_fact(struct ljp_page *page, const char *name,
                   struct ljp_str value)
{
  if (LJP_MORE(page, fact))
    page->facts[page->fact_count++] =
        (struct ljp_page_fact){.name = ljp_str(name, strlen(name)),
                               .value = ljp_page_text(page, value)};
}

uint64_t ljp_page_finish(struct ljp_page *page)
{
  uint64_t tick_ns = LJP_ROWS_TICK_NS;
  while (page->end_ns / tick_ns > 250000)
    tick_ns = ljp_rows_next_tick(tick_ns);
  for (int i = 0; i < LJP_PAGE_VIEWS; i++)
    if (page->rows[i].tick_ns > tick_ns)
      tick_ns = page->rows[i].tick_ns;
  for (int i = 0; i < LJP_PAGE_VIEWS; i++)
    ljp_rows_finish(&page->rows[i], tick_ns);
  return tick_ns;
}

const char *ljp_page_unit(const struct ljp_page *page, enum ljp_page_view view)
{
  static const char *const units[] = {
#define LJP_X(key, id, name, unit, counts) unit,
      LJP_PAGE_VIEW_LIST(LJP_X)
#undef LJP_X
  };
  bool samples = view == LJP_PAGE_VIEW_CPU || view == LJP_PAGE_VIEW_WALL;
  return page->untimed && samples ? "samples" : units[view];
}
