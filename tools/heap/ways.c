/*
** See ways.h.
*/
#include "tools/heap/ways.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/base/array.h"

enum {
  MAP_KEYS = 16,      /* A table with more string keys is a map. */
  BACK = 8,           /* Steps back in which a way is looked for again. */
  DEEP = 3,           /* Objects of one kind, held by each other: a tree. */
  MAX_WAYS = 1 << 20, /* Further ones end early. */
  STEPS = 40,
  HEX_DIGITS = 8, /* At least, in a hexadecimal number that is one. */
  TOKEN = 16      /* Characters, at least, of a token in which digits are. */
};

/* -- Patterns -------------------------------------------------------------- */

/* The length of what changes from one string to the next: a number, a token;
** 0: there is none at the beginning. */
static uint32_t ways_number(const char *at, uint32_t len)
{
  uint32_t digits = 0, hex = 0, decimals = 0, token = 0, mixed = 0;
  while (digits < len && isdigit((unsigned char)at[digits]))
    digits++;
  while (hex < len && (isxdigit((unsigned char)at[hex]) || at[hex] == '-'))
    decimals += isdigit((unsigned char)at[hex++]) != 0;
  while (hex && at[hex - 1] == '-')
    hex--;
  while (token < len && isalnum((unsigned char)at[token]))
    mixed += isdigit((unsigned char)at[token++]) != 0;
  if (token >= TOKEN && mixed > 1 && token > hex)
    return token;
  return hex >= HEX_DIGITS && decimals ? hex : digits;
}

uint32_t ljp_heap_pattern(struct ljp_str s, char *out, uint32_t room)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < s.len && n < room;) {
    uint32_t skip = ways_number(s.data + i, s.len - i);
    out[n++] = skip ? '#' : s.data[i];
    i += skip ? skip : 1;
  }
  return n;
}

/* -- Steps ----------------------------------------------------------------- */

static uint64_t ways_hash(const void *data, uint32_t len)
{
  uint64_t hash = ljp_hash_mix(len, 1), word;
  const char *p = data;
  for (; len; p += sizeof word) {
    uint32_t part = len < sizeof word ? len : (uint32_t)sizeof word;
    word = 0;
    memcpy(&word, p, part);
    hash = ljp_hash_mix(hash, word);
    len -= part;
  }
  return hash;
}

static bool ways_is_map(struct ljp_heap_ways *w, uint32_t node)
{
  const struct ljp_graph *g = w->g;
  uint8_t bit = (uint8_t)(1u << node % 8);
  if (!(w->map_known[node / 8] & bit)) {
    unsigned keys = 0;
    for (uint32_t e = g->first[node];
         e < g->first[node + 1] && keys <= MAP_KEYS; e++)
      keys += ljp_graph_how(g, e) == LJP_HEAP_HOW_FIELD;
    w->map_known[node / 8] |= bit;
    if (keys > MAP_KEYS)
      w->map[node / 8] |= bit;
  }
  return w->map[node / 8] & bit;
}

/* Tables whose keys are names, however many they are. */
static bool ways_has_names(const struct ljp_graph *g, uint32_t node)
{
  return ljp_heap_is_root(g, node, LJP_HEAP_ROOT_GLOBALS) ||
         ljp_heap_is_root(g, node, LJP_HEAP_ROOT_REGISTRY) ||
         ljp_heap_is_loaded(g, node);
}

#define ANY_KEY LJP_HEAP_HOW_ITEM

static uint64_t ways_field(struct ljp_heap_ways *w, uint32_t from, uint32_t e,
                           bool *merged)
{
  const struct ljp_graph *g = w->g;
  char pattern[LJP_HEAP_TEXT_MAX_BYTES];
  uint32_t key = g->name[e];
  struct ljp_str s = ljp_graph_string(g, key);
  *merged = true;
  if (s.len && ways_has_names(g, from)) {
    uint32_t len = ljp_heap_pattern(s, pattern, sizeof pattern);
    *merged = len != s.len || memcmp(pattern, s.data, len) != 0;
    return ljp_hash_mix(ways_hash(pattern, len), LJP_HEAP_HOW_FIELD);
  }
  /* What is large keeps its name. */
  if (g->type[key] != LJP_MEM_TYPE_STRING ||
      (ways_is_map(w, from) &&
       g->retained[g->target[e]] < g->head.heap_bytes / 64))
    return ANY_KEY;
  *merged = false;
  return ljp_hash_mix(key, LJP_HEAP_HOW_FIELD);
}

/* Of a stack: the same variable of the same function at the same line. */
static uint64_t ways_stack(const struct ljp_graph *g, uint32_t from, uint32_t e)
{
  unsigned how = ljp_graph_how(g, e);
  uint32_t frame =
      how == LJP_HEAP_HOW_FRAME ? e : ljp_heap_frame_of(g, from, e);
  uint64_t key = how;
  if (how == LJP_HEAP_HOW_LOCAL) {
    struct ljp_str name = ljp_graph_text(g, g->name[e]);
    key = ljp_hash_mix(ways_hash(name.data, name.len), how);
  }
  if (frame == UINT32_MAX)
    return key;
  uint32_t function = g->target[frame];
  uint32_t proto = ljp_heap_follow(g, function, LJP_HEAP_HOW_PROTOTYPE);
  return ljp_hash_mix(ljp_hash_mix(key, proto ? proto : function),
                      g->name[frame]);
}

static uint64_t ways_step(struct ljp_heap_ways *w, uint32_t from, uint32_t e,
                          bool *merged)
{
  const struct ljp_graph *g = w->g;
  unsigned how = ljp_graph_how(g, e);
  *merged = false;
  switch (how) {
  case LJP_HEAP_HOW_FIELD:
    return ways_field(w, from, e, merged);
  case LJP_HEAP_HOW_ITEM:
  case LJP_HEAP_HOW_INTEGER:
    /* Of a metatype: it is one of a C type, not of many callbacks. */
    *merged = (int32_t)g->name[e] >= 0 ||
              !ljp_heap_is_root(g, from, LJP_HEAP_ROOT_FFI);
    return *merged ? ANY_KEY : ljp_hash_mix(g->name[e], how);
  case LJP_HEAP_HOW_NUMBER:
  case LJP_HEAP_HOW_POINTER:
    *merged = true;
    return ANY_KEY;
  case LJP_HEAP_HOW_BOOLEAN:
    return ljp_hash_mix(g->name[e], how);
  case LJP_HEAP_HOW_UPVALUE: {
    uint32_t proto = ljp_heap_follow(g, from, LJP_HEAP_HOW_PROTOTYPE);
    return ljp_hash_mix(ljp_hash_mix(g->name[e], how), proto);
  }
  case LJP_HEAP_HOW_FRAME:
  case LJP_HEAP_HOW_LOCAL:
  case LJP_HEAP_HOW_SLOT:
    return ways_stack(g, from, e);
  case LJP_HEAP_HOW_ROOT:
    return ljp_hash_mix(from ? g->name[e]
                             : 256u + (g->flags[g->target[e]] &
                                       (LJP_HEAP_PINNED | LJP_HEAP_FINAL)),
                        how);
  }
  return how;
}

/* -- Ways ------------------------------------------------------------------ */

enum ljp_status ljp_heap_ways_init(struct ljp_heap_ways *w,
                                   const struct ljp_graph *g,
                                   const struct ljp_heap_kinds *kinds)
{
  *w = (struct ljp_heap_ways){.g = g, .kinds = kinds};
  w->of = malloc(g->count * sizeof *w->of);
  w->map = calloc(g->count / 8 + 1, 1);
  w->map_known = calloc(g->count / 8 + 1, 1);
  if (!w->of || !w->map || !w->map_known || !ljp_index_reserve(&w->index) ||
      !ljp_array_reserve(&w->list, 0, &w->room, sizeof *w->list)) {
    ljp_heap_ways_fini(w);
    return LJP_ERR_MEM;
  }
  memset(w->of, 0xff, g->count * sizeof *w->of);
  w->of[0] = 0;
  w->list[w->count++] = (struct ljp_heap_way){.parent = 0};
  return LJP_OK;
}

void ljp_heap_ways_fini(struct ljp_heap_ways *w)
{
  free(w->of);
  free(w->map);
  free(w->map_known);
  free(w->list);
  free(w->stack);
  ljp_index_fini(&w->index);
  *w = (struct ljp_heap_ways){.list = NULL};
}

/* Is this step one of a list or a tree? The way in which such steps have been
** taken; 0: none. */
static uint32_t ways_back(const struct ljp_heap_ways *w, uint32_t up,
                          uint64_t key, uint32_t node)
{
  uint32_t kind = w->kinds->of[node], last = 0, same = 0;
  for (unsigned n = 0; n < BACK && up; n++, up = w->list[up].parent) {
    if (w->kinds->of[w->list[up].example] != kind)
      continue;
    if (w->list[up].key == key)
      return up;
    last = last ? last : up;
    if (++same == DEEP)
      return last;
  }
  return 0;
}

/* The way that continues `up` by this step; UINT32_MAX: no memory. */
static uint32_t ways_add(struct ljp_heap_ways *w, uint32_t up, uint32_t node)
{
  bool merged;
  uint64_t key = ways_step(w, w->g->holder[node], w->g->held_by[node], &merged);
  uint32_t hash = ljp_hash_finish(ljp_hash_mix(key, up));
  struct ljp_index_slot *slot = ljp_index_at(&w->index, hash);
  for (; slot->item; slot = ljp_index_next(&w->index, slot)) {
    const struct ljp_heap_way *way = &w->list[slot->item - 1];
    if (slot->hash == hash && way->key == key && way->parent == up)
      return slot->item - 1;
  }
  uint32_t back = ways_back(w, up, key, node);
  if (back) {
    w->list[back].again = true;
    return back;
  }
  if (w->count == MAX_WAYS) {
    w->list[up].again = true;
    return up;
  }
  if (!ljp_array_reserve(&w->list, w->count, &w->room, sizeof *w->list))
    return UINT32_MAX;
  w->list[w->count] = (struct ljp_heap_way){
      .key = key, .parent = up, .example = node, .merged = merged};
  struct ljp_heap_way *new = &w->list[w->count];
  new->steps = w->list[up].steps + 1;
  new->front = new->steps <= STEPS / 2 ? w->count : w->list[up].front;
  ljp_index_put(&w->index, slot, hash, w->count);
  return ljp_index_reserve(&w->index) ? w->count++ : UINT32_MAX;
}

uint32_t ljp_heap_way(struct ljp_heap_ways *w, uint32_t node)
{
  uint32_t depth = 0;
  for (; w->of[node] == UINT32_MAX; node = w->g->holder[node]) {
    if (!ljp_array_reserve(&w->stack, depth, &w->stack_room, sizeof *w->stack))
      return UINT32_MAX;
    w->stack[depth++] = node;
  }
  uint32_t way = w->of[node];
  while (depth && way != UINT32_MAX) {
    node = w->stack[--depth];
    way = w->of[node] = ways_add(w, way, node);
  }
  return way;
}

/* -- Text ------------------------------------------------------------------ */

static void ways_merged_text(const struct ljp_graph *g, uint32_t node,
                             struct ljp_heap_text *t)
{
  uint32_t e = g->held_by[node];
  char pattern[LJP_HEAP_TEXT_MAX_BYTES];
  if (ljp_heap_is_root(g, g->holder[node], LJP_HEAP_ROOT_FFI)) {
    ljp_heap_format(t, " callback *");
  } else if (ljp_graph_how(g, e) == LJP_HEAP_HOW_FIELD &&
             ways_has_names(g, g->holder[node])) {
    struct ljp_str s = ljp_graph_string(g, g->name[e]);
    ljp_heap_format(t, "[\"");
    s.len = ljp_heap_pattern(s, pattern, sizeof pattern);
    s.data = pattern;
    ljp_heap_bytes(t, s, 60);
    ljp_heap_format(t, "\"]");
  } else {
    ljp_heap_format(t, "[*]");
  }
}

void ljp_heap_way_step_text(const struct ljp_heap_ways *w, uint32_t way,
                            struct ljp_heap_text *t)
{
  const struct ljp_heap_way *step = &w->list[way];
  if (step->merged)
    ways_merged_text(w->g, step->example, t);
  else
    ljp_heap_step(w->g, w->g->holder[step->example],
                  w->g->held_by[step->example], t);
  if (step->again)
    ljp_heap_format(t, " ... ");
}

void ljp_heap_way_text(const struct ljp_heap_ways *w, uint32_t way,
                       struct ljp_heap_text *t)
{
  uint32_t steps[STEPS] = {0}, count = 0, all = w->list[way].steps;
  for (uint32_t at = way; at; at = w->list[at].parent) {
    if (count == STEPS / 2 && w->list[at].steps > STEPS / 2)
      at = w->list[at].front;
    steps[count++] = at;
  }
  bool cut = count < all;
  for (uint32_t at = 0; count; at = steps[count]) {
    uint32_t at_way = steps[--count];
    const struct ljp_heap_way *step = &w->list[at_way];
    if (cut && step->parent != at) {
      ljp_heap_format(t, " ... ");
      cut = false;
    }
    ljp_heap_way_step_text(w, at_way, t);
  }
  while (t->len && t->data[t->len - 1] == ' ')
    t->data[--t->len] = '\0';
  if (!t->len)
    ljp_heap_format(t, "the VM itself");
}

void ljp_heap_vote_text(const struct ljp_heap_ways *w,
                        const struct ljp_heap_vote *vote, uint32_t alone,
                        bool also_others, struct ljp_heap_text *t)
{
  if (alone)
    ljp_heap_path(w->g, alone, t);
  else
    ljp_heap_way_text(w, vote->way, t);
  if (vote->mixed && also_others)
    ljp_heap_format(t, " (and in other ways)");
}
