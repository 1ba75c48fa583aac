/*
** See graph_read.h. Input is untrusted: nodes and references are counted as they
** come, and a target that is not there is dropped and counted.
*/
#include "parsers/heap/graph_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parsers/base/array.h"
#include "parsers/base/pages.h"
#include "parsers/heap/graph_ctypes.h"
#include "parsers/heap/graph_refs.h"
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
      !graph_grow(&g->small_bytes, sizeof *g->small_bytes, room) ||
      !graph_grow(&g->type, sizeof *g->type, room) ||
      !graph_grow(&g->flags, sizeof *g->flags, room) ||
      !graph_grow(&g->detail, sizeof *g->detail, room))
    return LJP_ERR_MEM;
  g->room = room;
  g->count++;
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

/* -- Two passes over the file ---------------------------------------------- */

enum { FFIDS = 1 << 16 /* For each session of a merged file. */ };

/* A later snapshot takes the earlier's place. */
static enum ljp_status graph_begin(struct ljp_graph *g,
                                   const struct ljp_item *item)
{
  g->head = item->u.heap;
  g->time_ns = item->time_ns;
  g->number = g->snapshots;
  g->ended = false;
  g->first_ffid = 0;
  g->ref_count = 0;
  g->ctype_count = g->ctypes_at = 0;
  g->count = g->large_count = 0;
  g->texts_len = 0;
  return graph_add_node(g);
}

static enum ljp_status graph_set_bytes(struct ljp_graph *g, uint32_t node,
                                       uint64_t bytes)
{
  g->small_bytes[node] = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
  if (bytes < UINT32_MAX)
    return LJP_OK;
  if (!ljp_array_reserve(&g->large, g->large_count, &g->large_room,
                         sizeof *g->large))
    return LJP_ERR_MEM;
  g->large[g->large_count++] = (struct ljp_graph_large){node, bytes};
  return LJP_OK;
}

/* Of a prototype: its line, then the names. */
static enum ljp_status graph_add_proto(struct ljp_graph *g,
                                       const struct ljp_rec_object *o,
                                       uint32_t *place)
{
  char room[sizeof(uint32_t) + LJP_HEAP_TEXT_MAX_BYTES];
  uint32_t line = (uint32_t)o->numbers[0];
  memcpy(room, &line, sizeof line);
  memcpy(room + sizeof line, o->text.data, o->text.len);
  const struct ljp_str text = {room, (uint32_t)sizeof line + o->text.len};
  return graph_add_text(g, text, place);
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
  if (o->type == LJP_MEM_TYPE_CTYPE && !g->ctypes_at)
    g->ctypes_at = i;
  status = graph_set_bytes(g, i,
                           ljp_heap_all_bytes(o->type, o->flags, o->bytes,
                                              o->numbers, g->head.slot_bytes,
                                              g->head.node_bytes));
  if (status)
    return status;
  g->detail[i] = (uint32_t)o->numbers[o->type == LJP_MEM_TYPE_THREAD ? 1 : 0];
  if (o->type == LJP_MEM_TYPE_FUNCTION && o->numbers[0] >= FFIDS) {
    g->first_ffid = o->numbers[0] - o->numbers[0] % FFIDS;
    g->detail[i] = (uint32_t)(o->numbers[0] % FFIDS);
  }
  if (o->type == LJP_MEM_TYPE_PROTO)
    return graph_add_proto(g, o, &g->detail[i]);
  return o->type == LJP_MEM_TYPE_STRING
             ? graph_add_text(g, o->text, &g->detail[i])
             : LJP_OK;
}

static enum ljp_status graph_take_ref(struct ljp_graph *g,
                                      struct ljp_graph_refs *t,
                                      const struct ljp_rec_ref *r)
{
  uint32_t name = (uint32_t)r->number;
  enum ljp_status status = LJP_OK;
  ljp_graph_refs_pair(t, g); /* A key and its value stay together. */
  if (r->key) {
    unsigned weak = r->flags & LJP_HEAP_WEAK_KEY ? LJP_HEAP_WEAK : 0u;
    status = ljp_graph_refs_add(t, g, r->key, LJP_HEAP_HOW_KEY | weak, 0, true);
    name = 0;
  } else if (r->name.len) {
    status = graph_add_text(g, r->name, &name);
  } else if (r->how == LJP_HEAP_HOW_INTEGER) {
    int64_t n = (int64_t)r->number;
    name = (uint32_t)(n > INT32_MAX   ? INT32_MAX
                      : n < INT32_MIN ? INT32_MIN
                                      : n);
  }
  return status ? status
                : ljp_graph_refs_add(t, g, r->target,
                                     r->how | (r->flags & LJP_HEAP_WEAK), name,
                                     false);
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

/* The node that is at an address: mostly the same as before, or the next. */
static uint32_t graph_node(const struct ljp_graph *g,
                           const struct ljp_graph_refs *t, uint32_t at,
                           uint64_t address)
{
  if (at && g->address[at] == address)
    return at;
  if (at + 1 < g->count && g->address[at + 1] == address)
    return at + 1;
  return ljp_heap_address(&t->nodes, address);
}

enum pass { PASS_OBJECTS, PASS_REFS };
enum { MAX_BEFORE = 1024 /* Snapshots after those know none before. */ };

struct graph_reading {
  struct ljp_graph *g;
  enum pass pass;
  uint32_t wanted;          /* 0: the last snapshot. */
  uint32_t at;              /* PASS_REFS: the node whose references come. */
  uint32_t begun;           /* PASS_REFS: snapshots, so far. */
  bool process;             /* A PROCESS came. */
  bool inside;              /* The snapshot that is wanted has begun. */
  uint64_t vms[MAX_BEFORE]; /* Of the first snapshots. */
  uint64_t moment;          /* The last snapshot that has a place. */
  struct ljp_graph_refs refs;
};

/* In a merged file each session has builtins of its own. */
static enum ljp_status graph_take_builtin(struct ljp_graph *g,
                                          const struct ljp_rec_builtin *b)
{
  uint64_t ffid = b->ffid - g->first_ffid;
  if (ffid >= LJP_GRAPH_MAX_BUILTINS)
    return LJP_OK;
  if (!g->builtins)
    g->builtins = calloc(LJP_GRAPH_MAX_BUILTINS, sizeof *g->builtins);
  if (!g->builtins)
    return LJP_ERR_MEM;
  char *name = g->builtins[ffid];
  uint32_t len = b->name.len < LJP_GRAPH_BUILTIN_BYTES - 1
                     ? b->name.len
                     : LJP_GRAPH_BUILTIN_BYTES - 1;
  memcpy(name, b->name.data, len);
  name[len] = '\0';
  return LJP_OK;
}

static enum ljp_status graph_take_head(struct graph_reading *r,
                                       const struct ljp_item *item)
{
  struct ljp_graph *g = r->g;
  if (r->pass == PASS_REFS) {
    r->begun++;
    return LJP_OK;
  }
  if (g->snapshots < MAX_BEFORE)
    r->vms[g->snapshots] = item->u.heap.vm;
  g->snapshots++;
  r->inside = !r->wanted || r->wanted == g->snapshots;
  if (!r->inside)
    return LJP_OK;
  g->before = g->snapshots <= MAX_BEFORE ? g->snapshots - 1 : 0;
  while (g->before && r->vms[g->before - 1] != item->u.heap.vm)
    g->before--;
  g->in_session = r->moment == item->u.heap.snapshot;
  return graph_begin(g, item);
}

/* In a merged file there are several; that of a snapshot stands before it. */
static void graph_take_process(struct graph_reading *r,
                               const struct ljp_rec_process *p)
{
  struct ljp_graph *g = r->g;
  if (r->pass == PASS_OBJECTS)
    g->processes += g->processes < 2 && (!g->processes || g->pid != p->pid);
  else if (r->process && r->begun >= g->number)
    return;
  r->process = true;
  g->pid = p->pid;
  /* What is added to a time: wraps around if the clock's zero was later. */
  g->wall_ns = p->anchor_wall_ns ? p->anchor_wall_ns - p->anchor_mono_ns : 0;
}

static enum ljp_status graph_item(struct graph_reading *r,
                                  const struct ljp_item *item)
{
  struct ljp_graph *g = r->g;
  switch (item->what) {
  case LJP_REC_PROCESS:
    graph_take_process(r, &item->u.process);
    return LJP_OK;
  case LJP_REC_BUILTIN:
    return r->pass == PASS_REFS ? graph_take_builtin(g, &item->u.builtin)
                                : LJP_OK;
  case LJP_REC_HEAP_MOMENT:
    r->moment = item->u.heap_moment.snapshot;
    g->any_begun = true;
    return LJP_OK;
  case LJP_REC_HEAP:
    return graph_take_head(r, item);
  case LJP_REC_HEAP_END:
    if (r->inside && item->u.heap_end.snapshot == g->head.snapshot) {
      g->end = item->u.heap_end;
      g->ended = true;
    }
    return LJP_OK;
  case LJP_REC_HEAP_TYPE:
    return r->inside && r->pass == PASS_OBJECTS
               ? ljp_graph_ctypes_take(g, &item->u.heap_type)
               : LJP_OK;
  case LJP_REC_OBJECTS:
    return r->inside && r->pass == PASS_OBJECTS
               ? graph_take_object(g, &item->u.object)
               : LJP_OK;
  case LJP_ITEM_REF:
    if (r->pass == PASS_OBJECTS && r->inside &&
        item->u.ref.snapshot == g->head.snapshot)
      g->ref_count += item->u.ref.key ? 2 : 1;
    if (r->pass == PASS_REFS && item->u.ref.snapshot == g->head.snapshot &&
        graph_advance(g, &r->at,
                      graph_node(g, &r->refs, r->at, item->u.ref.object)))
      return graph_take_ref(g, &r->refs, &item->u.ref);
    return LJP_OK;
  }
  return LJP_OK;
}

static enum ljp_status graph_run(struct graph_reading *r,
                                 struct ljp_reader *reader)
{
  const struct ljp_item *item;
  enum ljp_status status = LJP_OK;
  if (r->pass == PASS_REFS)
    status = ljp_graph_refs_begin(&r->refs, r->g);
  while (!status) {
    status = ljp_reader_next(reader, &item);
    if (status || item->what == LJP_ITEM_FINISH)
      break;
    status = graph_item(r, item);
  }
  if (!status && r->pass == PASS_REFS) {
    ljp_graph_refs_find(&r->refs, r->g);
    graph_advance(r->g, &r->at, r->g->count);
    if (r->g->missing_refs)
      ljp_graph_refs_drop_missing(r->g);
  }
  ljp_heap_addresses_fini(&r->refs.nodes);
  return status;
}

static enum ljp_status graph_pass(struct ljp_graph *g,
                                  const struct ljp_graph_source *source,
                                  enum pass pass, uint32_t wanted)
{
  struct graph_reading r = {.g = g, .pass = pass, .wanted = wanted};
  struct ljp_reader *reader = malloc(sizeof *reader);
  if (!reader)
    return LJP_ERR_MEM;
  enum ljp_status status =
      source->path ? ljp_reader_open(reader, source->path)
                   : ljp_reader_memory(reader, source->data, source->size);
  bool open = !status;
  if (!status)
    status = graph_run(&r, reader);
  if (status)
    snprintf(g->error, sizeof g->error, "%s",
             reader->error[0] ? reader->error : ljp_status_text(status));
  if (open)
    ljp_reader_fini(reader);
  free(reader);
  return status;
}

static enum ljp_status graph_check(struct ljp_graph *g, uint32_t wanted)
{
  if (!g->snapshots && g->any_begun)
    snprintf(g->error, sizeof g->error,
             "the session's heap snapshots are missing; ljprof check says why");
  else if (!g->snapshots)
    snprintf(g->error, sizeof g->error,
             "it holds no heap snapshot; misc.memprof.snapshot(\"FILE\") "
             "writes one");
  else if (wanted > g->snapshots)
    snprintf(g->error, sizeof g->error,
             "there is no snapshot %" PRIu32 ": it holds %" PRIu32
             ", numbered from 1",
             wanted, g->snapshots);
  else if (g->count < 2)
    snprintf(g->error, sizeof g->error, "snapshot %" PRIu32 " holds no object",
             g->number);
  else
    return LJP_OK;
  return LJP_ERR_FORMAT;
}

enum ljp_status ljp_graph_read(struct ljp_graph *g,
                               const struct ljp_graph_source *source,
                               uint32_t number)
{
  struct stat st;
  if (source->path && stat(source->path, &st) == 0 && !S_ISREG(st.st_mode)) {
    snprintf(g->error, sizeof g->error,
             "is not a regular file, but must be read twice");
    return LJP_ERR_IO;
  }
  enum ljp_status status = graph_pass(g, source, PASS_OBJECTS, number);
  if (!status)
    status = graph_check(g, number);
  if (status)
    return status;
  g->address[0] = g->small_bytes[0] = 0;
  g->type[0] = g->flags[0] = 0;
  g->detail[0] = 0;
  g->first = ljp_pages_items((size_t)g->count + 1, sizeof *g->first);
  if (!g->first)
    return LJP_ERR_MEM;
  status = graph_pass(g, source, PASS_REFS, number);
  if (!status)
    status = ljp_graph_ctypes_name(g);
  if (g->wall_ns)
    g->wall_ns += g->time_ns;
  return status;
}
