/*
** Writes a heap snapshot in the format of Chrome DevTools, which other tools read,
** too. Sizes, references and their strength are those of `ljprof heap`, so
** dominators and retained sizes come out equal. Garbage hangs on a node of its
** own and keeps nothing else alive.
**
** An id is an address, so that it stays the same in later snapshots of a process:
** address / 8 mod 2^31, times two, plus one, since readers take only odd ids for
** objects of the program. The parts of an object have the next ids: every object
** with parts has more than 16 bytes. In a session's file, the number of an object's
** allocation takes the place of its address.
*/
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parsers/stream/reader.h"
#include "tools/export/export.h"
#include "tools/export/heapsnapshot.h"
#include "tools/shared/command.h"

enum { SNAPSHOT_ID_BITS = 31 };

const char *ljp_heapsnapshot_part(uint8_t type, unsigned part)
{
  return type == LJP_MEM_TYPE_TABLE    ? part ? "hash part" : "array part"
         : type == LJP_MEM_TYPE_THREAD ? "stack"
                                       : "buffer";
}

/* -- Parts of objects ------------------------------------------------------ */

/* Is it one of this many items of this size? It fits 32 bits then. */
static uint32_t snapshot_part_bytes(uint64_t count, uint64_t item_bytes)
{
  uint64_t bytes;
  return __builtin_mul_overflow(count, item_bytes, &bytes) || bytes > UINT32_MAX
             ? 0
             : (uint32_t)bytes;
}

static void snapshot_take_parts(struct ljp_heapsnapshot *s, uint32_t node,
                                const struct ljp_rec_object *o)
{
  const struct ljp_graph *g = s->g;
  uint64_t slot = g->head.slot_bytes;
  uint32_t first = 0, second = 0;
  if (o->type == LJP_MEM_TYPE_TABLE) {
    first = o->flags & LJP_HEAP_INSIDE
                ? 0
                : snapshot_part_bytes(o->numbers[0], slot);
    second = snapshot_part_bytes(o->numbers[1], g->head.node_bytes);
  } else if (o->type == LJP_MEM_TYPE_THREAD) {
    first = snapshot_part_bytes(o->numbers[0], slot);
  } else if (o->type == LJP_MEM_TYPE_USERDATA) {
    first = snapshot_part_bytes(o->numbers[1], 1);
  }
  if (o->type == LJP_MEM_TYPE_STRING) {
    s->part[0][node] = snapshot_part_bytes(o->numbers[0], 1);
    return;
  }
  if (ljp_graph_own(g, node) < (uint64_t)first + second)
    return;
  s->part[0][node] = first;
  s->part[1][node] = second;
  s->part_count += (first > 0) + (second > 0);
}

/* Reads the file once more: the graph has an object and its parts in one. */
static enum ljp_status snapshot_find_parts(struct ljp_heapsnapshot *s,
                                           const char *file)
{
  const struct ljp_graph *g = s->g;
  struct ljp_reader *reader = malloc(sizeof *reader);
  const struct ljp_item *item;
  uint32_t node = 0, number = 0;
  enum ljp_status status = reader ? ljp_reader_open(reader, file) : LJP_ERR_MEM;
  if (status) {
    free(reader);
    return status;
  }
  while (!(status = ljp_reader_next(reader, &item)) &&
         item->what != LJP_ITEM_FINISH) {
    if (item->what == LJP_REC_HEAP) {
      node = 0;
      number++;
    }
    if (item->what != LJP_REC_OBJECTS || number != g->number ||
        item->u.object.type == LJP_MEM_TYPE_NONE ||
        item->u.object.snapshot != g->head.snapshot)
      continue;
    if (++node < g->count && item->u.object.address == g->address[node])
      snapshot_take_parts(s, node, &item->u.object);
  }
  ljp_reader_fini(reader);
  free(reader);
  return status;
}

/* -- Nodes ----------------------------------------------------------------- */

static enum ljp_heapsnapshot_node snapshot_type(uint8_t type)
{
  switch (type) {
  case LJP_MEM_TYPE_NONE:
    return LJP_NODE_SYNTHETIC;
  case LJP_MEM_TYPE_STRING:
    return LJP_NODE_STRING;
  case LJP_MEM_TYPE_TABLE:
  case LJP_MEM_TYPE_THREAD:
    return LJP_NODE_OBJECT;
  case LJP_MEM_TYPE_FUNCTION:
    return LJP_NODE_CLOSURE;
  case LJP_MEM_TYPE_PROTO:
  case LJP_MEM_TYPE_TRACE:
    return LJP_NODE_CODE;
  }
  return LJP_NODE_NATIVE;
}

enum { SNAPSHOT_IDS = LJP_HEAPSNAPSHOT_PARTS + 1 /* Of an object. */ };

/* With births, addresses have half of the ids. */
static unsigned snapshot_address_bits(const struct ljp_heapsnapshot *s)
{
  return s->births.p ? SNAPSHOT_ID_BITS - 1 : SNAPSHOT_ID_BITS;
}

/* Would two objects get the same id? */
static void snapshot_choose_ids(struct ljp_heapsnapshot *s)
{
  const struct ljp_graph *g = s->g;
  uint64_t low = UINT64_MAX, high = 0;
  if (s->births.p)
    s->births.too_many =
        s->births.p->births.before >= LJP_HEAP_BIRTHS_FIRST_ID / SNAPSHOT_IDS;
  for (uint32_t i = 1; i < g->count; i++) {
    if (ljp_heap_births_id(&s->births, i, SNAPSHOT_IDS))
      continue;
    low = g->address[i] < low ? g->address[i] : low;
    high = g->address[i] > high ? g->address[i] : high;
  }
  s->numbered =
      high > low &&
      (high - low) >> (snapshot_address_bits(s) + LJP_HEAP_ALIGN_SHIFT) != 0;
}

static uint32_t snapshot_id(const struct ljp_heapsnapshot *s, uint32_t node,
                            unsigned part)
{
  uint64_t id = (uint64_t)node * SNAPSHOT_IDS;
  if (!s->numbered) {
    id = ljp_heap_births_id(&s->births, node, SNAPSHOT_IDS);
    if (!id)
      id = s->g->address[node] >> LJP_HEAP_ALIGN_SHIFT &
           ((UINT64_C(1) << snapshot_address_bits(s)) - 1);
  }
  return (uint32_t)((id + part) << 1 | 1);
}

static void snapshot_put_node(struct ljp_heapsnapshot *s,
                              enum ljp_heapsnapshot_node type, uint32_t name,
                              uint32_t id, uint64_t bytes, uint64_t edges,
                              uint32_t trace)
{
  const uint64_t fields[LJP_HEAPSNAPSHOT_NODE_FIELDS] = {
      type, name, id, bytes, edges, trace, 0};
  for (unsigned i = 0; i < LJP_HEAPSNAPSHOT_NODE_FIELDS; i++) {
    ljp_print_raw(s->out, i ? "," : "\n", 1);
    ljp_print_dec(s->out, fields[i]);
  }
}

static unsigned snapshot_parts(const struct ljp_heapsnapshot *s, uint32_t node)
{
  return (ljp_heapsnapshot_part_bytes(s, node, 0) > 0) +
         (ljp_heapsnapshot_part_bytes(s, node, 1) > 0);
}

static void snapshot_nodes(struct ljp_heapsnapshot *s)
{
  const struct ljp_graph *g = s->g;
  for (uint32_t i = 0; i < g->count; i++) {
    uint64_t edges = g->first[i + 1] - g->first[i] + snapshot_parts(s, i);
    if (i)
      ljp_print_raw(s->out, ",", 1);
    if (i == 0) /* Readers know the root by its id. */
      snapshot_put_node(s, LJP_NODE_SYNTHETIC, 0, 1, 0,
                        edges + (s->garbage > 0), 0);
    else
      snapshot_put_node(s, snapshot_type(g->type[i]), s->names.of_node[i],
                        snapshot_id(s, i, 0),
                        ljp_graph_own(g, i) -
                            ljp_heapsnapshot_part_bytes(s, i, 0) -
                            ljp_heapsnapshot_part_bytes(s, i, 1),
                        edges, ljp_heap_births_trace(&s->births, i));
  }
  if (s->garbage) {
    ljp_print_raw(s->out, ",", 1);
    snapshot_put_node(s, LJP_NODE_SYNTHETIC,
                      ljp_heap_names_add(&s->names, "(garbage)", 9), 3, 0,
                      s->garbage, 0);
  }
  for (uint32_t i = 1; s->part_count && i < g->count; i++) {
    for (unsigned part = 0; part < LJP_HEAPSNAPSHOT_PARTS; part++) {
      struct ljp_heap_text name = {.len = 0};
      uint32_t bytes = ljp_heapsnapshot_part_bytes(s, i, part);
      if (!bytes)
        continue;
      ljp_heap_format(&name, "(%s)", ljp_heapsnapshot_part(g->type[i], part));
      ljp_print_raw(s->out, ",", 1);
      snapshot_put_node(s, LJP_NODE_ARRAY,
                        ljp_heap_names_add(&s->names, name.data, name.len),
                        snapshot_id(s, i, part + 1), bytes, 0, 0);
    }
  }
}

/* -- Places ---------------------------------------------------------------- */

/* Of functions and prototypes: the first line, and the string with the chunk's
** name as the script. chunk: the chunk of each prototype, found here. */
static void snapshot_locations(struct ljp_heapsnapshot *s, uint32_t *chunk)
{
  const struct ljp_graph *g = s->g;
  bool any = false;
  memset(chunk, 0, g->count * sizeof *chunk);
  for (uint32_t i = 1; i < g->count; i++)
    if (g->type[i] == LJP_MEM_TYPE_PROTO)
      chunk[i] = ljp_heap_follow(g, i, LJP_HEAP_HOW_CHUNK);
  for (uint32_t i = 1; i < g->count; i++) {
    uint32_t proto = g->type[i] == LJP_MEM_TYPE_PROTO ? i
                     : g->type[i] == LJP_MEM_TYPE_FUNCTION
                         ? ljp_heap_follow(g, i, LJP_HEAP_HOW_PROTOTYPE)
                         : 0;
    uint32_t line = proto ? ljp_graph_line(g, proto) : 0;
    if (!line || !chunk[proto])
      continue;
    ljp_print_format(s->out, "%s\n%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",0",
                     any ? "," : "", (uint64_t)i * LJP_HEAPSNAPSHOT_NODE_FIELDS,
                     chunk[proto], line - 1);
    any = true;
  }
}

/* -- The file -------------------------------------------------------------- */

static uint64_t snapshot_node_count(const struct ljp_heapsnapshot *s)
{
  return (uint64_t)s->g->count + (s->garbage > 0) + s->part_count;
}

static uint64_t snapshot_edge_count(const struct ljp_heapsnapshot *s)
{
  return (uint64_t)s->g->first[s->g->count] + s->part_count +
         (s->garbage ? (uint64_t)s->garbage + 1 : 0);
}

static void snapshot_head(struct ljp_heapsnapshot *s)
{
#define LJP_X(name, text) ",\"" text "\""
  static const char node_types[] = LJP_HEAPSNAPSHOT_NODES(LJP_X);
  static const char edge_types[] = LJP_HEAPSNAPSHOT_EDGES(LJP_X);
#undef LJP_X
  struct ljp_print *out = s->out;
  ljp_print_str(out,
                "{\"snapshot\":{\"meta\":{\"node_fields\":[\"type\",\"name\","
                "\"id\",\"self_size\",\"edge_count\",\"trace_node_id\","
                "\"detachedness\"],\"node_types\":[[");
  ljp_print_str(out, node_types + 1);
  ljp_print_str(out, "],\"string\",\"number\",\"number\",\"number\","
                     "\"number\",\"number\"],\"edge_fields\":[\"type\","
                     "\"name_or_index\",\"to_node\"],\"edge_types\":[[");
  ljp_print_str(out, edge_types + 1);
  ljp_print_str(out,
                "],\"string_or_number\",\"node\"],"
                "\"trace_function_info_fields\":[\"function_id\",\"name\","
                "\"script_name\",\"script_id\",\"line\",\"column\"],"
                "\"trace_node_fields\":[\"id\",\"function_info_index\","
                "\"count\",\"size\",\"children\"],"
                "\"sample_fields\":[\"timestamp_us\",\"last_assigned_id\"],"
                "\"location_fields\":[\"object_index\",\"script_id\",\"line\","
                "\"column\"]},");
  ljp_print_format(out,
                   "\"node_count\":%" PRIu64 ",\"edge_count\":%" PRIu64
                   ",\"trace_function_count\":%" PRIu32 "},\n\"nodes\":[",
                   snapshot_node_count(s), snapshot_edge_count(s),
                   s->births.p ? s->births.frames + 1 : 0);
}

/* Everything in the file is a number of 32 bits. */
static enum ljp_status snapshot_check(const struct ljp_heapsnapshot *s,
                                      const char *file)
{
  const struct ljp_graph *g = s->g;
  for (uint32_t i = 1; i < g->count; i++) {
    if (ljp_graph_own(g, i) <= UINT32_MAX)
      continue;
    ljp_command_error("export",
                      "%s: the object at 0x%" PRIx64 " has %" PRIu64
                      " bytes; the format heapsnapshot has sizes below 4 GiB",
                      file, g->address[i], ljp_graph_own(g, i));
    return LJP_ERR_LIMIT;
  }
  uint64_t nodes = snapshot_node_count(s), edges = snapshot_edge_count(s);
  if (nodes > UINT32_MAX / LJP_HEAPSNAPSHOT_NODE_FIELDS ||
      edges > UINT32_MAX / LJP_HEAPSNAPSHOT_EDGE_FIELDS) {
    ljp_command_error("export",
                      "%s: %" PRIu64 " nodes and %" PRIu64
                      " edges; the format heapsnapshot has at most %u and %u",
                      file, nodes, edges,
                      UINT32_MAX / LJP_HEAPSNAPSHOT_NODE_FIELDS,
                      UINT32_MAX / LJP_HEAPSNAPSHOT_EDGE_FIELDS);
    return LJP_ERR_LIMIT;
  }
  return LJP_OK;
}

static void snapshot_notes(const struct ljp_heapsnapshot *s)
{
  const struct ljp_graph *g = s->g;
  if (!g->ended || g->end.objects != g->count - 1 || g->missing_refs)
    ljp_command_note("export",
                     "the snapshot is damaged: %s; %" PRIu64
                     " references lead nowhere",
                     !g->ended                        ? "its end is missing"
                     : g->end.objects != g->count - 1 ? "objects are missing"
                                                      : "it is complete",
                     g->missing_refs);
  if (s->numbered)
    ljp_command_note("export",
                     "the heap spans too many addresses: "
                     "ids cannot be compared with another snapshot's");
  if (s->births.p && s->births.count < g->count - 1)
    ljp_command_note("export",
                     "%" PRIu32 " of %" PRIu32
                     " objects have an allocation in the session; the others "
                     "were allocated before it%s",
                     s->births.count, g->count - 1,
                     s->births.p->sampled_memory ? ", or not sampled" : "");
  if (s->births.too_many)
    ljp_command_note("export", "the session has too many allocations for ids: "
                               "ids are addresses, and there is no timeline");
  if (s->names.left_out)
    ljp_command_note("export",
                     "%" PRIu64 " names are left out: there are too many "
                     "different ones",
                     s->names.left_out);
}

static enum ljp_status snapshot_write(struct ljp_heapsnapshot *s)
{
  snapshot_head(s);
  snapshot_nodes(s);
  ljp_print_str(s->out, "],\n\"edges\":[");
  enum ljp_status status = ljp_heapsnapshot_edges(s);
  if (status)
    return status;
  ljp_print_str(s->out, "],\n\"trace_function_infos\":[");
  if (s->births.p)
    ljp_heap_births_functions(&s->births, &s->names, s->out);
  ljp_print_str(s->out, "],\n\"trace_tree\":[");
  if (s->births.p)
    ljp_heap_births_tree(&s->births, s->out);
  ljp_print_str(s->out, "],\n\"samples\":[");
  if (s->births.p && !s->numbered && !s->births.too_many)
    status = ljp_heap_births_samples(&s->births, s->g, SNAPSHOT_IDS, s->out);
  ljp_print_str(s->out, "],\n\"locations\":[");
  snapshot_locations(s, s->part[1]); /* Parts are written. */
  ljp_print_str(s->out, "],\n\"strings\":[");
  ljp_heap_names_write(&s->names, s->out);
  ljp_print_str(s->out, "]}\n");
  return s->names.no_memory ? LJP_ERR_MEM : status;
}

enum ljp_status ljp_export_heapsnapshot(struct ljp_export *e)
{
  const struct ljp_graph *g = e->graph;
  struct ljp_heapsnapshot s = {.g = g, .out = e->out};
  for (unsigned i = 0; i < LJP_HEAPSNAPSHOT_PARTS; i++)
    s.part[i] = calloc(g->count, sizeof *s.part[i]);
  for (uint32_t i = 1; i < g->count; i++)
    s.garbage += !ljp_graph_is_held(g, i);
  enum ljp_status status =
      ljp_heap_births_load(&s.births, g, e->file, e->no_symbols, e->label_key);
  snapshot_choose_ids(&s);
  if (!status)
    status =
        s.part[0] && s.part[1] ? snapshot_find_parts(&s, e->file) : LJP_ERR_MEM;
  if (!status)
    status = snapshot_check(&s, e->file);
  if (!status)
    status = ljp_heap_names_init(&s.names, g, s.part[0]);
  if (!status)
    status = snapshot_write(&s);
  if (!status)
    snapshot_notes(&s);
  ljp_heap_births_fini(&s.births);
  ljp_heap_names_fini(&s.names);
  for (unsigned i = 0; i < LJP_HEAPSNAPSHOT_PARTS; i++)
    free(s.part[i]);
  return status;
}
