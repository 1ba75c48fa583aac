/*
** See heap.h. Here: what both tabs share, the tab References, and facts.
*/
#include "tools/page/heap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/profile/profile.h"
#include "tools/shared/units.h"

enum { HEAP_PATHS = 100 /* Each may be as long as the heap has objects. */ };

/* -- Boxes ----------------------------------------------------------------- */

static uint8_t heap_kind(uint8_t type)
{
  switch (type) {
  case LJP_MEM_TYPE_TABLE:
    return LJP_PAGE_TABLE;
  case LJP_MEM_TYPE_STRING:
    return LJP_PAGE_STRING;
  case LJP_MEM_TYPE_FUNCTION:
  case LJP_MEM_TYPE_UPVALUE:
  case LJP_MEM_TYPE_PROTO:
  case LJP_MEM_TYPE_TRACE:
    return LJP_PAGE_FUNCTION;
  case LJP_MEM_TYPE_THREAD:
    return LJP_PAGE_COROUTINE;
  case LJP_MEM_TYPE_USERDATA:
  case LJP_MEM_TYPE_CDATA:
    return LJP_PAGE_DATA;
  }
  return LJP_PAGE_VM;
}

uint32_t ljp_page_heap_box(struct ljp_page_heap *h, uint32_t parent,
                           uint32_t example, uint64_t count,
                           const struct ljp_heap_text *step)
{
  const struct ljp_graph *g = h->g;
  struct ljp_heap_text text = {.len = 0};
  struct ljp_str how = {step->data, (uint32_t)step->len};
  while (how.len && how.data[0] == ' ') {
    how.data++;
    how.len--;
  }
  while (how.len && how.data[how.len - 1] == ' ')
    how.len--;
  ljp_heap_bytes(&text, how, sizeof text.data);
  /* How an upvalue is held says all of it. */
  if (!how.len || g->type[example] != LJP_MEM_TYPE_UPVALUE) {
    ljp_heap_format(&text, how.len ? "  " : "");
    if (count == 1)
      ljp_heap_describe(g, example, &text);
    else
      ljp_heap_kind_name(g, &h->kinds.list[h->kinds.of[example]], &h->paths,
                         &text);
  }
  struct ljp_page_frame frame = {.name = ljp_str(text.data, text.len),
                                 .kind = heap_kind(g->type[example])};
  return ljp_page_node(h->page, parent, ljp_page_frame(h->page, &frame), 0);
}

uint32_t ljp_page_heap_rest(struct ljp_page_heap *h, uint32_t parent,
                            enum ljp_page_heap_rest rest)
{
  static const struct {
    const char *name;
    uint8_t kind;
  } rests[] = {[LJP_PAGE_HEAP_SMALLER] = {"(smaller ones)", LJP_PAGE_CUT},
               [LJP_PAGE_HEAP_DEEPER] = {"(deeper ones)", LJP_PAGE_CUT},
               [LJP_PAGE_HEAP_VM] = {"the VM itself", LJP_PAGE_VM}};
  struct ljp_page_frame frame = {
      .name = ljp_str(rests[rest].name, strlen(rests[rest].name)),
      .kind = rests[rest].kind};
  return ljp_page_node(h->page, parent, ljp_page_frame(h->page, &frame), 0);
}

void ljp_page_heap_row(struct ljp_page_heap *h, enum ljp_page_view view,
                       uint32_t box, uint64_t objects, uint64_t bytes)
{
  if (objects)
    ljp_page_row(h->page, view, 0, box, 0, objects * LJP_OBJECT, bytes);
}

bool ljp_page_heap_is_part(const struct ljp_graph *g, uint32_t node)
{
  return g->type[node] > LJP_MEM_TYPE_TRACE &&
         g->first[node] < g->first[node + 1];
}

/* -- References ------------------------------------------------------------ */

struct heap_way {
  uint64_t objects, own, total;
  uint32_t box;
  bool closed; /* Further ways go into the same box. */
};

static struct heap_way *heap_sum_ways(struct ljp_page_heap *h)
{
  const struct ljp_graph *g = h->g;
  for (uint32_t i = 1; i < g->count; i++)
    if (ljp_graph_is_held(g, i) && ljp_heap_way(&h->ways, i) == UINT32_MAX)
      return NULL;
  struct heap_way *ways = calloc(h->ways.count, sizeof *ways);
  for (uint32_t i = 1; ways && i < g->count; i++) {
    if (!ljp_graph_is_held(g, i))
      continue;
    struct heap_way *way = &ways[h->ways.of[i]];
    way->objects++;
    way->own += ljp_graph_own(g, i);
  }
  for (uint32_t w = h->ways.count; ways && w-- > 0;) {
    ways[w].total += ways[w].own;
    if (w)
      ways[h->ways.list[w].parent].total += ways[w].total;
  }
  return ways;
}

/* How many bytes a way needs for a box, so that there are not too many. */
static uint64_t heap_least(const struct ljp_page_heap *h,
                           const struct heap_way *ways)
{
  uint64_t least = h->bytes / LJP_PAGE_HEAP_PARTS + 1;
  for (;; least *= 2) {
    uint32_t boxes = 0;
    for (uint32_t w = 0; w < h->ways.count; w++)
      boxes += ways[w].total >= least;
    if (boxes <= LJP_PAGE_HEAP_BOXES)
      return least;
  }
}

static void heap_place_way(struct ljp_page_heap *h, struct heap_way *ways,
                           uint32_t w, uint64_t least)
{
  const struct ljp_heap_way *of = &h->ways.list[w];
  const struct heap_way *up = &ways[of->parent];
  struct heap_way *way = &ways[w];
  struct ljp_heap_text step = {.len = 0};
  h->depth[w] = h->depth[of->parent] + 1;
  way->box = up->box;
  way->closed = up->closed;
  if (!of->parent && h->g->type[of->example] > LJP_MEM_TYPE_TRACE) {
    uint32_t vm = ljp_page_heap_rest(h, 0, LJP_PAGE_HEAP_VM);
    ljp_page_heap_row(h, LJP_PAGE_VIEW_REFERENCES, vm, way->objects, way->own);
    h->depth[w] = 0;
    return;
  }
  if (!way->closed &&
      (way->total < least || h->depth[w] > LJP_PAGE_HEAP_DEPTH)) {
    way->closed = true;
    way->box = ljp_page_heap_rest(h, up->box,
                                  way->total < least ? LJP_PAGE_HEAP_SMALLER
                                                     : LJP_PAGE_HEAP_DEEPER);
  }
  if (!way->closed) {
    ljp_heap_way_step_text(&h->ways, w, &step);
    way->box = ljp_page_heap_box(h, up->box, of->example, way->objects, &step);
  }
  ljp_page_heap_row(h, LJP_PAGE_VIEW_REFERENCES, way->box, way->objects,
                    way->own);
}

static enum ljp_status heap_references(struct ljp_page_heap *h)
{
  struct heap_way *ways = heap_sum_ways(h);
  h->depth = calloc(h->ways.count, sizeof *h->depth);
  if (!ways || !h->depth) {
    free(ways);
    return LJP_ERR_MEM;
  }
  uint64_t least = heap_least(h, ways);
  for (uint32_t w = 1; w < h->ways.count; w++)
    heap_place_way(h, ways, w, least);
  free(ways);
  return h->page->failed;
}

/* -- Facts ----------------------------------------------------------------- */

static void heap_facts(struct ljp_page_heap *h)
{
  static struct ljp_print text; /* Too large for the stack. */
  struct ljp_page *page = h->page;
  const struct ljp_graph *g = h->g;
  uint64_t garbage = 0, garbage_bytes = 0;
  for (uint32_t i = 1; i < g->count; i++) {
    if (ljp_graph_is_held(g, i)) {
      h->bytes += ljp_graph_own(g, i);
    } else {
      garbage++;
      garbage_bytes += ljp_graph_own(g, i);
    }
  }
  ljp_print_begin(&text, -1);
  if (g->snapshots > 1)
    ljp_print_format(&text, "the last one of %" PRIu32 ": ", g->snapshots);
  ljp_print_format(&text, "%" PRIu64 " objects, ", g->count - 1 - garbage);
  ljp_units_amount(&text, h->bytes, "bytes");
  if (garbage) {
    ljp_print_format(&text, ", and %" PRIu64 " objects of garbage, ", garbage);
    ljp_units_amount(&text, garbage_bytes, "bytes");
    ljp_print_str(&text, ", which are not shown");
  }
  ljp_page_fact(page, "Heap snapshot", ljp_str(text.buf, text.len));
  if (!g->ended || g->end.objects != g->count - 1 || g->missing_refs)
    ljp_page_notice(page, true,
                    ljp_page_format(page,
                                    "The heap snapshot is damaged: %" PRIu64
                                    " references lead nowhere, %s",
                                    g->missing_refs,
                                    g->ended ? "objects may be missing"
                                             : "its end is missing"));
}

enum ljp_status ljp_page_heap(struct ljp_page *page, const struct ljp_graph *g)
{
  struct ljp_page_heap h = {.page = page, .g = g, .paths = HEAP_PATHS};
  bool empty = true;
  for (int i = 0; i < LJP_PAGE_VIEWS; i++)
    empty = empty && !page->rows[i].count;
  page->untimed = page->untimed || empty;
  heap_facts(&h);
  enum ljp_status status = ljp_heap_kinds_find(g, &h.kinds);
  if (!status)
    status = ljp_heap_ways_init(&h.ways, g, &h.kinds);
  if (!status) {
    status = heap_references(&h);
    if (!status)
      status = ljp_page_heap_retained(&h);
    ljp_heap_ways_fini(&h.ways);
    free(h.depth);
  }
  ljp_heap_kinds_fini(&h.kinds);
  if (status)
    page->failed = status;
  return page->failed;
}
