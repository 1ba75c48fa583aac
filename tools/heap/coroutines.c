/*
** Coroutines by the stack on which they wait: forgotten ones are many on one
** stack.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "tools/heap/ids.h"
#include "tools/heap/view.h"
#include "tools/heap/ways.h"

enum { FRAMES_SHOWN = 20, YIELDED = 1 /* LUA_YIELD */ };

struct coroutine_group {
  struct ljp_heap_group sums;
  uint32_t example;
  struct ljp_heap_vote vote;
};

struct coroutine_groups {
  const struct ljp_graph *g;
  const struct ljp_heap_sites *sites;
  struct coroutine_group *list;
  uint32_t count, room;
  struct ljp_heap_ids ids;
  uint32_t *of;
  uint64_t all, garbage;
};

static const char *coroutine_status(const struct ljp_graph *g, uint32_t node)
{
  uint32_t status = g->detail[node];
  if (ljp_heap_is_root(g, node, LJP_HEAP_ROOT_MAIN_THREAD))
    return "main";
  if (g->flags[node] & LJP_HEAP_RUNNING)
    return "running";
  if (status == YIELDED)
    return "suspended";
  if (status)
    return "failed";
  if (ljp_graph_ref(g, node, LJP_HEAP_HOW_FRAME) != UINT32_MAX)
    return "normal"; /* As coroutine.status() says: it has resumed another. */
  uint32_t slot = ljp_graph_ref(g, node, LJP_HEAP_HOW_SLOT);
  return slot != UINT32_MAX && g->type[g->target[slot]] == LJP_MEM_TYPE_FUNCTION
             ? "not begun"
             : "finished";
}

static uint32_t coroutine_function(const struct ljp_graph *g, uint32_t function)
{
  uint32_t proto = ljp_heap_follow(g, function, LJP_HEAP_HOW_PROTOTYPE);
  return proto ? proto : function;
}

/* A hash of the status and of what stands on the stack, with lines. */
static uint64_t coroutine_key(const struct ljp_graph *g, uint32_t node)
{
  const char *status = coroutine_status(g, node);
  uint64_t key = ljp_hash_mix((unsigned char)status[0],
                              (unsigned char)status[strlen(status) - 1]);
  bool frames = false;
  for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
    if (ljp_graph_how(g, e) != LJP_HEAP_HOW_FRAME)
      continue;
    key = ljp_hash_mix(key, coroutine_function(g, g->target[e]));
    key = ljp_hash_mix(key, g->name[e]);
    frames = true;
  }
  uint32_t slot = ljp_graph_ref(g, node, LJP_HEAP_HOW_SLOT);
  if (!frames && slot != UINT32_MAX)
    key = ljp_hash_mix(key, coroutine_function(g, g->target[slot]));
  return key;
}

static struct coroutine_group *coroutine_find(struct coroutine_groups *groups,
                                              uint32_t node)
{
  uint32_t id = ljp_heap_ids_add(&groups->ids, coroutine_key(groups->g, node));
  if (id == LJP_HEAP_NO_ID ||
      !ljp_array_reserve(&groups->list, id, &groups->room,
                         sizeof *groups->list))
    return NULL;
  if (id == groups->count)
    groups->list[groups->count++] = (struct coroutine_group){.example = node};
  groups->of[node] = id;
  return &groups->list[id];
}

static enum ljp_status coroutine_collect(struct coroutine_groups *groups,
                                         struct ljp_heap_ways *ways)
{
  const struct ljp_graph *g = groups->g;
  groups->of = malloc(g->count * sizeof *groups->of);
  if (!groups->of)
    return LJP_ERR_MEM;
  memset(groups->of, 0xff, g->count * sizeof *groups->of);
  for (uint32_t i = 1; i < g->count; i++) {
    if (g->type[i] != LJP_MEM_TYPE_THREAD ||
        !ljp_heap_sites_want(groups->sites, i))
      continue;
    groups->all++;
    if (!ljp_graph_is_held(g, i)) {
      groups->garbage++;
      continue;
    }
    struct coroutine_group *group = coroutine_find(groups, i);
    uint32_t way = ljp_heap_way(ways, i);
    if (!group || way == UINT32_MAX)
      return LJP_ERR_MEM;
    ljp_heap_vote_add(&group->vote, way);
  }
  return LJP_OK;
}

static int coroutine_by_retained(const void *a, const void *b)
{
  const struct coroutine_group *x = a, *y = b;
  if (x->sums.retained != y->sums.retained)
    return x->sums.retained < y->sums.retained ? 1 : -1;
  return x->example < y->example ? -1 : x->example > y->example;
}

static void coroutine_show_stack(const struct ljp_graph *g, uint32_t node,
                                 struct ljp_heap_show *s)
{
  unsigned frames = 0;
  uint32_t slot = ljp_graph_ref(g, node, LJP_HEAP_HOW_SLOT);
  ljp_heap_lines(s, "stack");
  for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
    struct ljp_heap_text line = {.len = 0};
    if (ljp_graph_how(g, e) != LJP_HEAP_HOW_FRAME)
      continue;
    if (frames++ == FRAMES_SHOWN) {
      ljp_heap_format(&line, "...");
      ljp_heap_lines_add(s, &line);
      break;
    }
    ljp_heap_describe_function(g, g->target[e], &line);
    if (g->name[e])
      ljp_heap_format(&line, " at line %" PRIu32, g->name[e]);
    ljp_heap_lines_add(s, &line);
  }
  if (!frames && slot != UINT32_MAX &&
      g->type[g->target[slot]] == LJP_MEM_TYPE_FUNCTION) {
    struct ljp_heap_text line = {.len = 0};
    ljp_heap_describe_function(g, g->target[slot], &line);
    ljp_heap_lines_add(s, &line);
  }
  ljp_heap_lines_end(s);
}

static void coroutine_show(const struct ljp_heap_view *v,
                           struct coroutine_groups *groups,
                           const struct ljp_heap_ways *ways,
                           struct ljp_heap_show *s)
{
  const struct ljp_graph *g = groups->g;
  ljp_heap_show_number(s, "all_coroutines", groups->all);
  ljp_heap_show_number(s, "garbage_coroutines", groups->garbage);
  ljp_heap_show_line(s,
                     "%" PRIu64 " coroutines on %" PRIu32
                     " different stacks; %" PRIu64 " of them are garbage",
                     groups->all, groups->count, groups->garbage);
  if (groups->count)
    qsort(groups->list, groups->count, sizeof *groups->list,
          coroutine_by_retained);
  ljp_heap_table(s, "coroutines",
                 "  retained      count     status  held by, and the stack, "
                 "innermost function first");
  for (uint32_t i = 0; i < groups->count && i < v->top; i++) {
    const struct coroutine_group *group = &groups->list[i];
    struct ljp_heap_text path = {.len = 0};
    ljp_heap_vote_text(ways, &group->vote,
                       group->sums.objects == 1 ? group->example : 0, !s->json,
                       &path);
    ljp_heap_row(s);
    ljp_heap_show_address(s, g->address[group->example]);
    ljp_heap_cell_bytes(s, "retained", group->sums.retained);
    ljp_heap_cell_count(s, "objects", group->sums.objects);
    ljp_heap_cell_word(s, "status", coroutine_status(g, group->example));
    ljp_heap_cell_text(s, "path", &path);
    coroutine_show_stack(g, group->example, s);
    ljp_heap_row_end(s);
  }
  ljp_heap_table_end(s);
}

enum ljp_status ljp_heap_coroutines(struct ljp_heap_view *v,
                                    struct ljp_heap_show *s)
{
  struct ljp_heap_kinds kinds;
  struct ljp_heap_ways ways = {.list = NULL};
  struct ljp_heap_tree tree;
  struct coroutine_groups groups = {.g = &v->graph, .sites = &v->sites};
  enum ljp_status status = ljp_heap_kinds_find(&v->graph, &kinds);
  if (!status)
    status = ljp_heap_ways_init(&ways, &v->graph, &kinds);
  if (!status)
    status = coroutine_collect(&groups, &ways);
  if (!status)
    status = ljp_heap_tree_init(&tree, &v->graph);
  if (!status) {
    ljp_heap_tree_add_up(&tree, &v->graph, groups.of, groups.list,
                         sizeof *groups.list);
    ljp_heap_tree_fini(&tree);
    ljp_heap_show_totals(v, s);
    coroutine_show(v, &groups, &ways, s);
  }
  free(groups.list);
  free(groups.of);
  ljp_heap_ids_fini(&groups.ids);
  ljp_heap_ways_fini(&ways);
  ljp_heap_kinds_fini(&kinds);
  return status;
}
