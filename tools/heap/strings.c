/*
** Strings: what they look like, who holds them, and the largest. LuaJIT has each
** string once in a VM, so a leak of strings is one of many different ones: keys of
** a cache, lines of a log.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"
#include "tools/heap/ids.h"
#include "tools/heap/view.h"
#include "tools/heap/ways.h"

enum { PATTERN = 64, SHOWN = 60, MAX_GROUPS = 1 << 20 };

/* Strings of one pattern: "user:#". */
struct strings_group {
  uint64_t objects, own, key;
  uint32_t example;
  uint32_t prefix; /* Bytes with which all of them begin. */
  struct ljp_heap_vote vote;
};

struct strings_groups {
  const struct ljp_graph *g;
  struct strings_group *list;
  uint32_t count, room;
  struct ljp_heap_ids ids;
};

static uint64_t strings_hash(const char *data, uint32_t len)
{
  uint64_t hash = ljp_hash_mix(len, 1);
  for (uint32_t i = 0; i < len; i++)
    hash = ljp_hash_mix(hash, (unsigned char)data[i]);
  return hash;
}

/* Patterns beyond the limit are one group, whose key is 0. */
static struct strings_group *strings_find(struct strings_groups *groups,
                                          uint32_t node)
{
  char pattern[PATTERN];
  struct ljp_str s = ljp_graph_string(groups->g, node);
  uint32_t len = ljp_heap_pattern(s, pattern, sizeof pattern);
  uint64_t key = strings_hash(pattern, len);
  if (groups->count >= MAX_GROUPS &&
      ljp_heap_ids_find(&groups->ids, key) == LJP_HEAP_NO_ID)
    key = 0;
  uint32_t id = ljp_heap_ids_add(&groups->ids, key);
  if (id == LJP_HEAP_NO_ID ||
      !ljp_array_reserve(&groups->list, id, &groups->room,
                         sizeof *groups->list))
    return NULL;
  if (id == groups->count)
    groups->list[groups->count++] =
        (struct strings_group){.key = key, .example = node, .prefix = s.len};
  return &groups->list[id];
}

static bool strings_add(struct strings_groups *groups,
                        struct ljp_heap_ways *ways, uint32_t node)
{
  const struct ljp_graph *g = groups->g;
  struct strings_group *group = strings_find(groups, node);
  uint32_t way = ljp_heap_way(ways, node);
  if (!group || way == UINT32_MAX)
    return false;
  struct ljp_str first = ljp_graph_string(g, group->example);
  struct ljp_str s = ljp_graph_string(g, node);
  uint32_t same = 0;
  while (same < group->prefix && same < s.len &&
         first.data[same] == s.data[same])
    same++;
  group->prefix = same;
  group->objects++;
  group->own += ljp_graph_own(g, node);
  ljp_heap_vote_add(&group->vote, way);
  return true;
}

static int strings_by_own(const void *a, const void *b)
{
  const struct strings_group *x = a, *y = b;
  if (x->own != y->own)
    return x->own < y->own ? 1 : -1;
  return x->example < y->example ? -1 : x->example > y->example;
}

/* The contents of one, the pattern of several. */
static void strings_text(const struct ljp_graph *g,
                         const struct strings_group *group,
                         struct ljp_heap_text *t)
{
  char pattern[PATTERN];
  struct ljp_str s = ljp_graph_string(g, group->example);
  if (!group->key) {
    ljp_heap_format(t, "strings of more than %d patterns", MAX_GROUPS);
    return;
  }
  if (!s.len) {
    ljp_heap_format(t, "strings whose contents are not in the snapshot");
    return;
  }
  if (group->objects > 1) {
    s.len = ljp_heap_pattern(s, pattern, sizeof pattern);
    s.data = pattern;
  }
  ljp_heap_format(t, "\"");
  ljp_heap_bytes(t, s, SHOWN);
  ljp_heap_format(t, s.len > SHOWN ? "\"..." : "\"");
}

static void strings_show_patterns(const struct ljp_heap_view *v,
                                  struct strings_groups *groups,
                                  const struct ljp_heap_ways *ways,
                                  struct ljp_heap_show *s)
{
  const struct ljp_graph *g = groups->g;
  if (groups->count)
    qsort(groups->list, groups->count, sizeof *groups->list, strings_by_own);
  ljp_heap_table(s, "patterns",
                 "       own    strings     prefix  what they look like (#: "
                 "numbers), and who holds most of them");
  for (uint32_t i = 0; i < groups->count && i < v->top; i++) {
    const struct strings_group *group = &groups->list[i];
    struct ljp_heap_text what = {.len = 0}, path = {.len = 0};
    strings_text(g, group, &what);
    ljp_heap_vote_text(ways, &group->vote,
                       group->objects == 1 ? group->example : 0, !s->json,
                       &path);
    ljp_heap_row(s);
    ljp_heap_show_address(s, g->address[group->example]);
    ljp_heap_cell_bytes(s, "own", group->own);
    ljp_heap_cell_count(s, "objects", group->objects);
    ljp_heap_cell_bytes(s, "prefix_bytes",
                        group->prefix * (group->objects - 1));
    ljp_heap_cell_text(s, "pattern", &what);
    ljp_heap_cell_text(s, "path", &path);
    ljp_heap_row_end(s);
  }
  ljp_heap_table_end(s);
}

/* -- The largest ----------------------------------------------------------- */

struct strings_large {
  uint32_t *list; /* Largest first. */
  uint32_t count, room;
};

static void strings_keep_large(struct strings_large *large,
                               const struct ljp_graph *g, uint32_t node)
{
  uint64_t own = ljp_graph_own(g, node);
  uint32_t at = large->count;
  if (at == large->room) {
    if (ljp_graph_own(g, large->list[at - 1]) >= own)
      return;
    at--;
  } else {
    large->count++;
  }
  for (; at && ljp_graph_own(g, large->list[at - 1]) < own; at--)
    large->list[at] = large->list[at - 1];
  large->list[at] = node;
}

static void strings_show_large(const struct ljp_graph *g,
                               const struct strings_large *large,
                               struct ljp_heap_show *s)
{
  ljp_heap_table(s, "largest", "       own  largest strings");
  for (uint32_t i = 0; i < large->count; i++) {
    struct ljp_heap_text what = {.len = 0}, path = {.len = 0};
    ljp_heap_describe(g, large->list[i], &what);
    ljp_heap_path(g, large->list[i], &path);
    ljp_heap_row(s);
    ljp_heap_show_address(s, g->address[large->list[i]]);
    ljp_heap_cell_bytes(s, "own", ljp_graph_own(g, large->list[i]));
    ljp_heap_cell_text(s, "path", &path);
    ljp_heap_cell_text(s, "object", &what);
    ljp_heap_row_end(s);
  }
  ljp_heap_table_end(s);
}

/* -- The view -------------------------------------------------------------- */

static enum ljp_status strings_view(const struct ljp_heap_view *v,
                                    const struct ljp_heap_kinds *kinds,
                                    struct strings_groups *groups,
                                    struct ljp_heap_show *s)
{
  const struct ljp_graph *g = groups->g;
  struct ljp_heap_ways ways;
  struct ljp_heap_found found = {.bits = calloc(g->count / 8 + 1, 1)};
  struct strings_large large = {malloc(v->top * sizeof *large.list), 0, v->top};
  enum ljp_status status = ljp_heap_ways_init(&ways, g, kinds);
  bool ok = !status && found.bits && large.list;
  for (uint32_t i = 1; ok && i < g->count; i++) {
    if (g->type[i] != LJP_MEM_TYPE_STRING || !ljp_graph_is_held(g, i) ||
        !ljp_heap_sites_want(&v->sites, i))
      continue;
    found.bits[i / 8] |= (uint8_t)(1u << i % 8);
    strings_keep_large(&large, g, i);
    ok = strings_add(groups, &ways, i);
  }
  if (ok) {
    strings_show_patterns(v, groups, &ways, s);
    status = ljp_heap_show_ways(v, kinds, &found, s);
    strings_show_large(g, &large, s);
  }
  ljp_heap_ways_fini(&ways);
  ljp_heap_found_fini(&found);
  free(large.list);
  return ok ? status : LJP_ERR_MEM;
}

enum ljp_status ljp_heap_strings(struct ljp_heap_view *v,
                                 struct ljp_heap_show *s)
{
  struct ljp_heap_kinds kinds;
  struct strings_groups groups = {.g = &v->graph};
  enum ljp_status status = ljp_heap_kinds_find(&v->graph, &kinds);
  if (!status) {
    ljp_heap_show_totals(v, s);
    status = strings_view(v, &kinds, &groups, s);
  }
  free(groups.list);
  ljp_heap_ids_fini(&groups.ids);
  ljp_heap_kinds_fini(&kinds);
  return status;
}
