/*
** See graph.h. Input is untrusted: nodes and references are counted as they
** come, and a target that is not there is dropped and counted.
*/
#include "parsers/heap/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parsers/base/pages.h"
#include "parsers/heap/dominators.h"
#include "parsers/stream/reader.h"

/* -- Memory ---------------------------------------------------------------- */

static bool graph_grow(void *array, size_t item_bytes, size_t room)
{
  void *grown = realloc(*(void **)array, room * item_bytes);
  if (!grown)
    return false;
  *(void **)array = grown;
  return true;
}

static enum ljp_status graph_add_node(struct ljp_graph *g)
{
  if (g->count < g->room) {
    g->count++;
    return LJP_OK;
  }
  uint32_t room = g->room ? g->room * 2 : 1024;
  if (room > LJP_GRAPH_MAX_NODES ||
      !graph_grow(&g->address, sizeof *g->address, room) ||
      !graph_grow(&g->bytes, sizeof *g->bytes, room) ||
      !graph_grow(&g->type, sizeof *g->type, room) ||
      !graph_grow(&g->flags, sizeof *g->flags, room) ||
      !graph_grow(&g->text, sizeof *g->text, room) ||
      !graph_grow(&g->line, sizeof *g->line, room))
    return LJP_ERR_MEM;
  g->room = room;
  g->count++;
  return LJP_OK;
}

static enum ljp_status graph_add_ref(struct ljp_graph *g, uint32_t target,
                                     unsigned how, uint32_t name)
{
  if (g->ref_count == g->ref_room) {
    size_t room = g->ref_room ? g->ref_room * 2 : 4096;
    if (room > UINT32_MAX || !graph_grow(&g->target, sizeof *g->target, room) ||
        !graph_grow(&g->name, sizeof *g->name, room) ||
        !graph_grow(&g->how, sizeof *g->how, room))
      return LJP_ERR_MEM;
    g->ref_room = room;
  }
  g->target[g->ref_count] = target;
  g->name[g->ref_count] = name;
  g->how[g->ref_count++] = (uint8_t)how;
  return LJP_OK;
}

static enum ljp_status graph_add_text(struct ljp_graph *g, struct ljp_str text,
                                      uint32_t *place)
{
  size_t bytes = sizeof text.len + text.len;
  *place = 0;
  if (!text.len)
    return LJP_OK;
  if (g->texts_len + bytes > g->texts_room) {
    size_t room = g->texts_room * 2 + bytes + 4096;
    if (room > UINT32_MAX || !graph_grow(&g->texts, 1, room))
      return LJP_ERR_MEM;
    g->texts_room = room;
  }
  if (!g->texts_len)
    g->texts_len = sizeof text.len; /* Place 0 is none. */
  if (g->texts_len + bytes > g->texts_room)
    return graph_add_text(g, text, place);
  *place = (uint32_t)g->texts_len;
  memcpy(g->texts + g->texts_len, &text.len, sizeof text.len);
  memcpy(g->texts + g->texts_len + sizeof text.len, text.data, text.len);
  g->texts_len += bytes;
  return LJP_OK;
}

struct ljp_str ljp_graph_text(const struct ljp_graph *g, uint32_t place)
{
  struct ljp_str text = {"", 0};
  if (place) {
    memcpy(&text.len, g->texts + place, sizeof text.len);
    text.data = g->texts + place + sizeof text.len;
  }
  return text;
}

/* -- Nodes by address ------------------------------------------------------ */

static uint32_t graph_slot(const struct ljp_graph *g, uint64_t address)
{
  return (uint32_t)((address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >>
                    g->slots_shift);
}

/* 0: there is no such object. */
static uint32_t graph_find(const struct ljp_graph *g, uint64_t address)
{
  uint32_t mask = (UINT32_C(1) << (64 - g->slots_shift)) - 1;
  for (uint32_t slot = graph_slot(g, address);; slot = (slot + 1) & mask)
    if (!g->slots[slot] || g->address[g->slots[slot]] == address)
      return g->slots[slot];
}

static enum ljp_status graph_index(struct ljp_graph *g)
{
  unsigned bits = 10;
  while (bits < 32 && (UINT64_C(1) << bits) < (uint64_t)g->count * 2)
    bits++;
  g->slots_shift = 64 - bits;
  g->slots = ljp_pages_items((size_t)1 << bits, sizeof *g->slots);
  if (!g->slots)
    return LJP_ERR_MEM;
  uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);
  for (uint32_t i = 1; i < g->count; i++) {
    uint32_t slot = graph_slot(g, g->address[i]);
    while (g->slots[slot] && g->address[g->slots[slot]] != g->address[i])
      slot = (slot + 1) & mask;
    if (!g->slots[slot]) /* Of two at one address, the first counts. */
      g->slots[slot] = i;
  }
  return LJP_OK;
}

/* -- Two passes over the file ---------------------------------------------- */

static void graph_begin(struct ljp_graph *g, const struct ljp_rec_heap *heap)
{
  g->head = *heap;
  g->ended = false;
  g->count = g->room ? 1 : 0; /* A later snapshot takes the earlier's place. */
  g->texts_len = 0;
}

static enum ljp_status graph_take_object(struct ljp_graph *g,
                                         const struct ljp_rec_object *o)
{
  if (o->type == LJP_MEM_TYPE_NONE || o->snapshot != g->head.snapshot)
    return LJP_OK;
  enum ljp_status status = graph_add_node(g);
  if (status)
    return status;
  uint32_t i = g->count - 1;
  g->address[i] = o->address;
  g->type[i] = o->type;
  g->flags[i] = o->flags;
  g->bytes[i] = ljp_heap_all_bytes(o->type, o->flags, o->bytes, o->numbers,
                                   g->head.slot_bytes, g->head.node_bytes);
  g->line[i] = (uint32_t)o->numbers[0];
  return graph_add_text(g, o->text, &g->text[i]);
}

static enum ljp_status graph_take_ref(struct ljp_graph *g,
                                      const struct ljp_rec_ref *r)
{
  uint32_t target = graph_find(g, r->target), name = (uint32_t)r->number;
  enum ljp_status status = LJP_OK;
  if (r->key) {
    name = graph_find(g, r->key);
    if (name)
      status =
          graph_add_ref(g, name,
                        LJP_HEAP_HOW_KEY |
                            (r->flags & LJP_HEAP_WEAK_KEY ? LJP_HEAP_WEAK : 0u),
                        name);
    else
      g->missing_refs++;
  } else if (r->name.len) {
    status = graph_add_text(g, r->name, &name);
  } else if (r->how == LJP_HEAP_HOW_INTEGER) {
    int64_t n = (int64_t)r->number;
    name = (uint32_t)(n > INT32_MAX   ? INT32_MAX
                      : n < INT32_MIN ? INT32_MIN
                                      : n);
  }
  if (status)
    return status;
  if (!target) {
    g->missing_refs++;
    return LJP_OK;
  }
  return graph_add_ref(g, target, r->how | (r->flags & LJP_HEAP_WEAK), name);
}

/* Moves to the node whose references follow. Those of a node may stand in
** several records, but next to each other. */
static bool graph_advance(struct ljp_graph *g, uint32_t *at, uint32_t node)
{
  if (!node || node < *at)
    return false;
  while (*at < node)
    g->first[++*at] = (uint32_t)g->ref_count;
  return true;
}

/* What keeps objects alive by itself. */
static enum ljp_status graph_add_roots(struct ljp_graph *g)
{
  enum ljp_status status = LJP_OK;
  for (uint32_t i = 1; i < g->count && !status; i++) {
    bool part = g->type[i] > LJP_MEM_TYPE_TRACE;
    bool held = g->flags[i] & (LJP_HEAP_PINNED | LJP_HEAP_FINAL);
    /* The main thread is pinned, and a root of the VM, too. */
    if (part || (held && g->type[i] != LJP_MEM_TYPE_THREAD))
      status = graph_add_ref(g, i, LJP_HEAP_HOW_ROOT, UINT32_MAX);
  }
  return status;
}

enum pass { PASS_OBJECTS, PASS_REFS };

static enum ljp_status graph_item(struct ljp_graph *g, enum pass pass,
                                  const struct ljp_item *item, uint32_t *at)
{
  switch (item->what) {
  case LJP_REC_HEAP:
    if (pass == PASS_OBJECTS) {
      graph_begin(g, &item->u.heap);
      return g->count ? LJP_OK : graph_add_node(g);
    }
    return LJP_OK;
  case LJP_REC_HEAP_END:
    if (item->u.heap_end.snapshot == g->head.snapshot) {
      g->end = item->u.heap_end;
      g->ended = true;
    }
    return LJP_OK;
  case LJP_REC_OBJECTS:
    return pass == PASS_OBJECTS && g->count
               ? graph_take_object(g, &item->u.object)
               : LJP_OK;
  case LJP_ITEM_REF:
    if (pass == PASS_REFS && item->u.ref.snapshot == g->head.snapshot &&
        graph_advance(g, at, graph_find(g, item->u.ref.object)))
      return graph_take_ref(g, &item->u.ref);
    return LJP_OK;
  }
  return LJP_OK;
}

static enum ljp_status graph_pass(struct ljp_graph *g, const char *path,
                                  enum pass pass)
{
  struct ljp_reader *reader = malloc(sizeof *reader);
  const struct ljp_item *item;
  uint32_t at = 0;
  if (!reader)
    return LJP_ERR_MEM;
  enum ljp_status status = ljp_reader_open(reader, path);
  bool open = !status;
  if (!status && pass == PASS_REFS)
    status = graph_add_roots(g);
  while (!status) {
    status = ljp_reader_next(reader, &item);
    if (status || item->what == LJP_ITEM_FINISH)
      break;
    status = graph_item(g, pass, item, &at);
  }
  if (!status && pass == PASS_REFS)
    graph_advance(g, &at, g->count);
  if (status)
    snprintf(g->error, sizeof g->error, "%s",
             reader->error[0] ? reader->error : ljp_status_text(status));
  if (open)
    ljp_reader_fini(reader);
  free(reader);
  return status;
}

/* -- Dominators and shortest paths ----------------------------------------- */

static enum ljp_status graph_dominate(struct ljp_graph *g)
{
  g->dominator = ljp_pages_items(g->count, sizeof *g->dominator);
  g->retained = malloc(g->count * sizeof *g->retained);
  if (!g->dominator || !g->retained)
    return LJP_ERR_MEM;
  memcpy(g->retained, g->bytes, g->count * sizeof *g->retained);
  const struct ljp_dominators_graph graph = {.count = g->count,
                                             .first = g->first,
                                             .target = g->target,
                                             .how = g->how,
                                             .ignored = LJP_HEAP_WEAK};
  return ljp_dominators(&graph, g->dominator, g->retained);
}

static bool graph_is_stack(unsigned how)
{
  return how == LJP_HEAP_HOW_FRAME || how == LJP_HEAP_HOW_LOCAL ||
         how == LJP_HEAP_HOW_SLOT;
}

/* Breadth first. A way through a stack is taken only where there is no other:
** what is also in a table will stay there when the function has returned. */
static enum ljp_status graph_find_paths(struct ljp_graph *g)
{
  uint32_t *queue = malloc(g->count * sizeof *queue), tail = 1;
  g->holder = malloc(g->count * sizeof *g->holder);
  g->held_by = malloc(g->count * sizeof *g->held_by);
  if (!queue || !g->holder || !g->held_by) {
    free(queue);
    return LJP_ERR_MEM;
  }
  memset(g->holder, 0xff, g->count * sizeof *g->holder);
  g->holder[0] = g->held_by[0] = queue[0] = 0;
  for (int stacks = 0; stacks < 2; stacks++) {
    for (uint32_t head = 0; head < tail; head++) {
      uint32_t node = queue[head];
      for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
        uint32_t to = g->target[e];
        if (g->how[e] & LJP_HEAP_WEAK || g->holder[to] != UINT32_MAX ||
            (!stacks && graph_is_stack(g->how[e])))
          continue;
        g->holder[to] = node;
        g->held_by[to] = e;
        queue[tail++] = to;
      }
    }
  }
  free(queue);
  return LJP_OK;
}

enum ljp_status ljp_graph_load(struct ljp_graph *g, const char *path)
{
  struct stat st;
  memset(g, 0, sizeof *g);
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
    snprintf(g->error, sizeof g->error,
             "is not a regular file, but must be read twice");
    return LJP_ERR_IO;
  }
  enum ljp_status status = graph_pass(g, path, PASS_OBJECTS);
  if (!status && g->count < 2) {
    snprintf(g->error, sizeof g->error,
             "it holds no heap snapshot; misc.memprof.snapshot(\"FILE\") "
             "writes one");
    return LJP_ERR_FORMAT;
  }
  if (!status) {
    g->address[0] = g->bytes[0] = 0;
    g->type[0] = g->flags[0] = 0;
    g->text[0] = g->line[0] = 0;
    g->first = ljp_pages_items((size_t)g->count + 1, sizeof *g->first);
    status = g->first ? graph_index(g) : LJP_ERR_MEM;
  }
  if (!status)
    status = graph_pass(g, path, PASS_REFS);
  free(g->slots);
  g->slots = NULL;
  if (!status)
    status = graph_dominate(g);
  if (!status)
    status = graph_find_paths(g);
  if (status && !g->error[0])
    snprintf(g->error, sizeof g->error, "%s", ljp_status_text(status));
  return status;
}

void ljp_graph_fini(struct ljp_graph *g)
{
  free(g->address);
  free(g->bytes);
  free(g->type);
  free(g->flags);
  free(g->text);
  free(g->line);
  free(g->first);
  free(g->target);
  free(g->how);
  free(g->name);
  free(g->texts);
  free(g->dominator);
  free(g->retained);
  free(g->holder);
  free(g->held_by);
}
