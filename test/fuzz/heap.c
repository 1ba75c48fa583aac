/*
** Fuzz target: any bytes as a heap snapshot. The graph must be one (references
** lead to nodes, dominators form a tree), what is retained must add up, and each
** view must end; its JSON must be valid.
*/
#include <stdlib.h>

#include "parsers/heap/dominators.h"
#include "test/support/fuzz_stream.h"
#include "test/support/json.h"
#include "tools/heap/diff.h"
#include "tools/heap/view.h"

enum { TEXT_MAX = 1 << 22 };

static char text[TEXT_MAX];
static size_t len;
static struct ljp_print out;
static struct ljp_heap_view views[2];

static void keep(void *ctx, const char *data, size_t n)
{
  (void)ctx;
  if (len + n <= TEXT_MAX)
    memcpy(text + len, data, n);
  len += n;
}

static void check_graph(const struct ljp_graph *g)
{
  uint64_t held = 0;
  MUST(g->first[g->count] == g->ref_count);
  for (size_t e = 0; e < g->ref_count; e++)
    MUST(g->target[e] > 0 && g->target[e] < g->count);
  for (uint32_t i = 1; i < g->count; i++) {
    uint32_t up = g->dominator[i];
    uint64_t own = ljp_graph_own(g, i);
    MUST(g->first[i] <= g->first[i + 1]);
    MUST((up == LJP_DOMINATED_BY_NONE) == !ljp_graph_is_held(g, i));
    if (up == LJP_DOMINATED_BY_NONE) {
      MUST(g->retained[i] == own);
      continue;
    }
    held += own;
    MUST(up < g->count && up != i);
    MUST(g->holder[i] < g->count && g->target[g->held_by[i]] == i);
    MUST(g->first[g->holder[i]] <= g->held_by[i] &&
         g->held_by[i] < g->first[g->holder[i] + 1]);
  }
  MUST(g->retained[0] == held);
}

static void begin(struct ljp_heap_show *s, bool json)
{
  len = 0;
  ljp_print_begin(&out, -1);
  out.sink = keep;
  ljp_heap_show_begin(s, &out, json);
}

static void end(struct ljp_heap_show *s, enum ljp_status status)
{
  MUST(status == LJP_OK);
  ljp_heap_show_end(s);
  ljp_print_end(&out);
  MUST(len > 0);
  if (s->json && len <= TEXT_MAX)
    MUST(json_lines_valid(text, len));
}

static void show(bool json)
{
  static enum ljp_status (*const all[])(struct ljp_heap_view *,
                                        struct ljp_heap_show *) = {
      ljp_heap_overview,   ljp_heap_paths,      ljp_heap_retained_by,
      ljp_heap_dominators, ljp_heap_coroutines, ljp_heap_strings};
  struct ljp_heap_show s;
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
    begin(&s, json);
    end(&s, all[i](&views[0], &s));
  }
  begin(&s, json);
  end(&s, ljp_heap_diff(&views[1], &views[0], &s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  for (unsigned i = 0; i < 2; i++) {
    struct ljp_heap_view *v = &views[i];
    *v = (struct ljp_heap_view){
        .top = i ? 20 : 1000, .depth = LJP_HEAP_MAX_DEPTH, .pattern = "[a-z]"};
    enum ljp_status status =
        ljp_graph_load_memory(&v->graph, data, size, i ? 1 : 0);
    if (status) {
      MUST(status == LJP_ERR_FORMAT || status == LJP_ERR_VERSION);
      MUST(v->graph.error[0] != '\0');
    } else {
      check_graph(&v->graph);
      ljp_heap_add_up(v);
    }
  }
  if (views[0].graph.held_by && views[1].graph.held_by)
    show(size % 2);
  ljp_graph_fini(&views[0].graph);
  ljp_graph_fini(&views[1].graph);
  return 0;
}
