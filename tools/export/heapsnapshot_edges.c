/*
** The edges of a .heapsnapshot file: what kind of edge a reference is, and how
** it is called. Paths through them read like those of `ljprof heap`.
*/
#include <inttypes.h>
#include <string.h>

#include "parsers/stream/names.h"
#include "tools/export/heapsnapshot.h"

/* Numbers below have a name where the format wants one. */
enum { EDGES_NUMBERS = 100000 };

struct edges {
  struct ljp_heapsnapshot *s;
  bool any;
  uint32_t node;   /* Whose edges are written. */
  uint32_t target; /* Of the edge. */
  /* The frame to which local variables belong. */
  uint32_t frame, line;
  /* Names of upvalues that follow, and the number of the first of them. */
  struct ljp_str upvalues;
  uint32_t upvalue;
};

static uint32_t edges_name(struct edges *e, const struct ljp_heap_text *text)
{
  return ljp_heap_names_add(&e->s->names, text->data, text->len);
}

static uint32_t edges_plain(struct edges *e, const char *text)
{
  return ljp_heap_names_add(&e->s->names, text, strlen(text));
}

static void edges_put(struct edges *e, enum ljp_heapsnapshot_edge type,
                      uint32_t name)
{
  struct ljp_print *out = e->s->out;
  ljp_print_str(out, e->any ? ",\n" : "\n");
  ljp_print_dec(out, type);
  ljp_print_raw(out, ",", 1);
  ljp_print_dec(out, name);
  ljp_print_raw(out, ",", 1);
  ljp_print_dec(out, (uint64_t)e->target * LJP_HEAPSNAPSHOT_NODE_FIELDS);
  e->any = true;
}

/* -- Names ----------------------------------------------------------------- */

/* "[17]", as a name. */
static uint32_t edges_number(struct edges *e, const char *format, int64_t n)
{
  struct ljp_heap_text text = {.len = 0};
  if (n >= EDGES_NUMBERS || n <= -EDGES_NUMBERS)
    ljp_heap_format(&text, "[number]");
  else
    ljp_heap_format(&text, format, n);
  return edges_name(e, &text);
}

/* The key of a field: a string's contents, "[table {a, b}]". */
static uint32_t edges_key(struct edges *e, uint32_t key)
{
  const struct ljp_graph *g = e->s->g;
  struct ljp_heap_text text = {.len = 0};
  if (g->type[key] == LJP_MEM_TYPE_STRING)
    return e->s->names.of_node[key];
  ljp_heap_format(&text, "[");
  ljp_heap_names_put(&e->s->names, e->s->names.of_node[key], &text);
  ljp_heap_format(&text, key ? "]" : "unknown]");
  return edges_name(e, &text);
}

/* The prototype has the names of upvalues one after the other, each with a NUL;
** a function has its upvalues by rising number. */
static uint32_t edges_upvalue(struct edges *e, uint32_t number)
{
  while (e->upvalues.len && e->upvalue < number) {
    const char *end = memchr(e->upvalues.data, '\0', e->upvalues.len);
    uint32_t len =
        end ? (uint32_t)(end - e->upvalues.data) + 1 : e->upvalues.len;
    e->upvalues.data += len;
    e->upvalues.len -= len;
    e->upvalue++;
  }
  if (!e->upvalues.len || e->upvalue != number)
    return edges_number(e, "upvalue %" PRId64, number);
  const char *end = memchr(e->upvalues.data, '\0', e->upvalues.len);
  size_t len = end ? (size_t)(end - e->upvalues.data) : e->upvalues.len;
  return ljp_heap_names_add(&e->s->names, e->upvalues.data, len);
}

/* "x of function app.lua:30 at line 35". */
static uint32_t edges_local(struct edges *e, const char *what,
                            struct ljp_str name)
{
  struct ljp_heap_text text = {.len = 0};
  ljp_heap_format(&text, "%s", what);
  ljp_heap_bytes(&text, name, 200);
  if (e->frame) {
    ljp_heap_format(&text, " of ");
    ljp_heap_names_put(&e->s->names, e->s->names.of_node[e->frame], &text);
    if (e->line)
      ljp_heap_format(&text, " at line %" PRIu32, e->line);
  }
  return edges_name(e, &text);
}

static uint32_t edges_root(struct edges *e, uint32_t number)
{
  const struct ljp_graph *g = e->s->g;
  const char *name = ljp_name_heap_root(number);
  if (e->node)
    return edges_plain(e, number == LJP_HEAP_ROOT_GLOBALS ? "_G"
                          : name                          ? name
                                                          : "root");
  if (g->type[e->target] > LJP_MEM_TYPE_TRACE)
    return e->s->names.of_node[e->target];
  return edges_plain(e, g->flags[e->target] & LJP_HEAP_PINNED
                            ? "pinned"
                            : "waits for its finalizer");
}

/* -- References ------------------------------------------------------------ */

static enum ljp_heapsnapshot_edge edges_type(unsigned how, uint32_t name)
{
  switch (how) {
  case LJP_HEAP_HOW_ITEM:
    return LJP_EDGE_ELEMENT;
  case LJP_HEAP_HOW_INTEGER:
    return (int32_t)name >= 0 ? LJP_EDGE_ELEMENT : LJP_EDGE_PROPERTY;
  case LJP_HEAP_HOW_FIELD:
  case LJP_HEAP_HOW_NUMBER:
  case LJP_HEAP_HOW_BOOLEAN:
  case LJP_HEAP_HOW_POINTER:
  case LJP_HEAP_HOW_ROOT:
    return LJP_EDGE_PROPERTY;
  case LJP_HEAP_HOW_UPVALUE:
  case LJP_HEAP_HOW_LOCAL:
  case LJP_HEAP_HOW_SLOT:
    return LJP_EDGE_CONTEXT;
  }
  return LJP_EDGE_INTERNAL;
}

static uint32_t edges_reference_name(struct edges *e, unsigned how,
                                     uint32_t name)
{
  const char *text = ljp_name_heap_how(how);
  switch (how) {
  case LJP_HEAP_HOW_FIELD:
    return edges_key(e, name);
  case LJP_HEAP_HOW_ITEM:
    return edges_number(e, "[%" PRId64 "]", name);
  case LJP_HEAP_HOW_INTEGER:
    return edges_number(e, "[%" PRId64 "]", (int32_t)name);
  case LJP_HEAP_HOW_BOOLEAN:
    return edges_plain(e, name ? "[true]" : "[false]");
  case LJP_HEAP_HOW_NUMBER:
    return edges_plain(e, "[number]");
  case LJP_HEAP_HOW_POINTER:
    return edges_plain(e, "[light userdata]");
  case LJP_HEAP_HOW_UPVALUE:
    return edges_upvalue(e, name);
  case LJP_HEAP_HOW_CONSTANT:
    return edges_number(e, "constant %" PRId64, name);
  case LJP_HEAP_HOW_TYPE_NAME:
    return edges_number(e, "C type %" PRId64, name);
  case LJP_HEAP_HOW_FRAME:
    return edges_local(e, "frame", (struct ljp_str){"", 0});
  case LJP_HEAP_HOW_LOCAL:
    return edges_local(e, "local ", ljp_graph_text(e->s->g, name));
  case LJP_HEAP_HOW_SLOT:
    return edges_local(e, "a temporary", (struct ljp_str){"", 0});
  case LJP_HEAP_HOW_ROOT:
    return edges_root(e, name);
  }
  return edges_plain(e, text ? text : "reference");
}

static void edges_of_reference(struct edges *e, uint32_t r)
{
  const struct ljp_graph *g = e->s->g;
  unsigned how = ljp_graph_how(g, r);
  uint32_t name = g->name[r];
  enum ljp_heapsnapshot_edge type = edges_type(how, name);
  e->target = g->target[r];
  if (how == LJP_HEAP_HOW_FRAME) {
    e->frame = e->target;
    e->line = name;
  }
  /* What garbage refers to, it does not keep alive. */
  if (g->how[r] & LJP_HEAP_WEAK ||
      (!ljp_graph_is_held(g, e->node) && ljp_graph_is_held(g, e->target)))
    type = LJP_EDGE_WEAK;
  edges_put(e, type,
            type == LJP_EDGE_ELEMENT ? name
                                     : edges_reference_name(e, how, name));
}

static void edges_of_node(struct edges *e, uint32_t node, uint32_t *part)
{
  const struct ljp_graph *g = e->s->g;
  e->node = node;
  e->frame = e->line = e->upvalue = 0;
  e->upvalues = (struct ljp_str){"", 0};
  if (g->type[node] == LJP_MEM_TYPE_FUNCTION) {
    uint32_t proto = ljp_heap_follow(g, node, LJP_HEAP_HOW_PROTOTYPE);
    e->upvalues = ljp_graph_upvalues(g, proto);
  }
  for (uint32_t r = g->first[node]; r < g->first[node + 1]; r++)
    edges_of_reference(e, r);
  for (unsigned i = 0; i < LJP_HEAPSNAPSHOT_PARTS; i++) {
    if (!ljp_heapsnapshot_part_bytes(e->s, node, i))
      continue;
    e->target = (*part)++;
    edges_put(e, LJP_EDGE_INTERNAL,
              edges_plain(e, ljp_heapsnapshot_part(g->type[node], i)));
  }
  if (!node && e->s->garbage) {
    e->target = g->count;
    edges_put(e, LJP_EDGE_INTERNAL, edges_plain(e, "garbage"));
  }
}

enum ljp_status ljp_heapsnapshot_edges(struct ljp_heapsnapshot *s)
{
  const struct ljp_graph *g = s->g;
  struct edges e = {.s = s};
  uint32_t part = g->count + (s->garbage > 0), number = 0;
  for (uint32_t i = 0; i < g->count; i++)
    edges_of_node(&e, i, &part);
  for (uint32_t i = 1; s->garbage && i < g->count; i++) {
    if (ljp_graph_is_held(g, i))
      continue;
    e.target = i;
    edges_put(&e, LJP_EDGE_ELEMENT, number++);
  }
  return s->names.no_memory ? LJP_ERR_MEM : LJP_OK;
}
