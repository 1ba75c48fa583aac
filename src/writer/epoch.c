/*
** The writer's definitions: what is repeated in each epoch, what is asked for
** when an event first needs it, and the key block that opens an epoch.
** Invariant (RFC 1): whatever is referred to in an epoch has been written in
** it before; a node's epoch says so for the node, its payload and ancestors.
*/
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/writer/process.h"
#include "src/writer/writer_impl.h"

/* A stable ADDR payload: bit 55 set, module in 35-54, offset below; or, with
** bit 55 clear, an address without module. */
#define STABLE_MODULE (UINT64_C(1) << 55)
#define OFFSET_BITS 35
#define OFFSET_MASK ((UINT64_C(1) << OFFSET_BITS) - 1)
#define MODULE_MASK ((1u << 20) - 1)

struct ljp_body *ljp_writer_body(struct ljp_writer *w)
{
  w->body.len = 0;
  return &w->body;
}

enum ljp_status ljp_writer_block(struct ljp_writer *w, uint16_t flags)
{
  return ljp_out_block(&w->out, &w->builder, flags, w->now_ns);
}

static void make_room(struct ljp_writer *w)
{
  if (ljp_builder_full(&w->builder))
    ljp_writer_block(w, 0);
}

/* The body as a definition, without keeping it. */
static void put_def(struct ljp_writer *w, enum ljp_record tag)
{
  size_t len = ljp_body_record(&w->body, tag, w->record);
  ljp_builder_define(&w->builder, w->record, len);
}

struct ljp_def *ljp_writer_keep(struct ljp_writer *w, enum ljp_def_class class,
                                uint64_t key, uint64_t id, enum ljp_record tag)
{
  size_t len = ljp_body_record(&w->body, tag, w->record);
  return ljp_defs_put(&w->defs, class, key, id, w->record, len);
}

void ljp_writer_put(struct ljp_writer *w, struct ljp_def *def)
{
  if (!def || def->epoch == w->out.epoch)
    return;
  make_room(w);
  ljp_builder_define(&w->builder, def->record, def->len);
  def->epoch = w->out.epoch;
}

/* The body as a definition to be kept and written. Without memory to keep it,
** it is written all the same; a later epoch will lack it. */
static struct ljp_def *define(struct ljp_writer *w, enum ljp_def_class class,
                              uint64_t key, uint64_t id, enum ljp_record tag)
{
  struct ljp_def *def = ljp_writer_keep(w, class, key, id, tag);
  if (def) {
    ljp_writer_put(w, def);
  } else {
    make_room(w);
    put_def(w, tag);
  }
  return def;
}

struct ljp_body *ljp_writer_timed(struct ljp_writer *w, uint64_t time_ns)
{
  make_room(w);
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_s(b, (int64_t)(time_ns - ljp_builder_base(&w->builder, time_ns)));
  return b;
}

void ljp_writer_put_event(struct ljp_writer *w, enum ljp_record tag)
{
  ljp_builder_event(&w->builder, tag, w->body.data, w->body.len);
}

/* -- Things announced by the session -------------------------------------- */

void ljp_writer_add_info(struct ljp_writer *w, const char *key,
                         const char *value)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_str(b, key, strlen(key), 256);
  ljp_body_str(b, value, strlen(value), 4096);
  define(w, LJP_DEF_INFO, w->info_count++, 0, LJP_REC_INFO);
}

void ljp_writer_add_thread(struct ljp_writer *w, uint32_t id, uint32_t tid,
                           const char *name)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, id);
  ljp_body_u(b, tid);
  ljp_body_str(b, name, strlen(name), 256);
  define(w, LJP_DEF_THREAD, id, id, LJP_REC_THREAD);
}

void ljp_writer_add_vm(struct ljp_writer *w, uint32_t id, uint32_t thread,
                       const char *name)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, id);
  ljp_body_u(b, thread);
  ljp_body_str(b, name, strlen(name), 256);
  define(w, LJP_DEF_VM, id, id, LJP_REC_VM);
}

static void end_thing(struct ljp_writer *w, enum ljp_def_class class,
                      uint32_t id, enum ljp_record tag)
{
  struct ljp_def *def = ljp_defs_find(&w->defs, class, id);
  if (!def || def->ended)
    return;
  struct ljp_body *b = ljp_writer_timed(w, w->now_ns);
  ljp_body_u(b, id);
  ljp_writer_put_event(w, tag);
  def->ended = true;
}

void ljp_writer_end_vm(struct ljp_writer *w, uint32_t id)
{
  end_thing(w, LJP_DEF_VM, id, LJP_REC_VM_CLOSE);
}

void ljp_writer_end_thread(struct ljp_writer *w, uint32_t id)
{
  end_thing(w, LJP_DEF_THREAD, id, LJP_REC_THREAD_END);
}

void ljp_writer_add_producer(struct ljp_writer *w, struct ljp_producer *p,
                             uint64_t interval_ns)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, p->id);
  ljp_body_u(b, p->kind);
  ljp_body_u(b, p->thread);
  ljp_body_u(b, interval_ns);
  define(w, LJP_DEF_PRODUCER, p->id, p->id, LJP_REC_PRODUCER);
  struct ljp_source *source = calloc(1, sizeof *source);
  if (!source) {
    /* Its events cannot be drained: better none than a ring that fills up
    ** and blocks its producer. */
    atomic_store_explicit(&p->active, false, memory_order_relaxed);
    struct ljp_body *note = ljp_writer_timed(w, w->now_ns);
    static const char text[] = "out of memory: a producer is not recorded";
    ljp_body_u(note, LJP_NOTE_ERROR);
    ljp_body_str(note, text, sizeof text - 1, 256);
    ljp_writer_put_event(w, LJP_REC_NOTE);
    return;
  }
  source->producer = p;
  source->id = p->id;
  source->end = ljp_ring_tail(&p->ring);
  source->next = w->sources;
  w->sources = source;
}

/* -- Modules --------------------------------------------------------------- */

static void define_module(struct ljp_writer *w, const struct ljp_module *m)
{
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, m->id);
  ljp_body_u(b, m->bias);
  ljp_body_u(b, m->start);
  ljp_body_u(b, m->end - m->start);
  ljp_body_u(b, m->flags);
  ljp_body_str(b, (const char *)m->build_id, m->build_id_len,
               LJP_BUILD_ID_MAX_BYTES);
  ljp_body_str(b, m->path, strlen(m->path), 4096);
  define(w, LJP_DEF_MODULE, m->id, m->id, LJP_REC_MODULE);
}

void ljp_writer_look(struct ljp_writer *w)
{
  if (!w->options.fixed_facts)
    ljp_modules_look(&w->modules, w->now_ns);
  if (w->modules.generation == w->modules_announced)
    return;
  w->modules_announced = w->modules.generation;
  for (size_t i = 0; i < w->modules.count; i++) {
    const struct ljp_module *m = &w->modules.list[i];
    struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_MODULE, m->id);
    if (!m->gone_ns && !def) {
      define_module(w, m);
    } else if (m->gone_ns && def && !def->ended) {
      ljp_writer_put(w, def);
      struct ljp_body *b = ljp_writer_timed(w, w->now_ns);
      ljp_body_u(b, m->id);
      ljp_writer_put_event(w, LJP_REC_MODULE_GONE);
      def->ended = true;
    }
  }
  if (w->options.describe.modules_changed)
    w->options.describe.modules_changed(w->options.describe.ctx);
}

uint64_t ljp_writer_stable(struct ljp_writer *w, uint64_t word,
                           uint64_t time_ns, bool *settled)
{
  enum ljp_frame_shape shape = ljp_frame_shape(ljp_frame_kind(word));
  *settled = true;
  if (shape == LJP_SHAPE_LUA) {
    uint32_t ref = ljp_frame_proto_ref(word), number = ljp_writer_proto(w, ref);
    *settled = number || !ref;
    return ljp_frame_lua((enum ljp_frame_kind)ljp_frame_kind(word),
                         ljp_frame_flags(word), number, ljp_frame_line(word));
  }
  if (shape != LJP_SHAPE_ADDR)
    return word;
  uint64_t address = ljp_frame_payload(word) & ~STABLE_MODULE;
  uint64_t top = word & ~LJP_FRAME_PAYLOAD_MASK;
  if (w->addresses_generation != w->modules.generation) {
    memset(w->addresses, 0, sizeof w->addresses);
    w->addresses_generation = w->modules.generation;
  }
  size_t at =
      (address * UINT64_C(0x9e3779b97f4a7c15) >> 40) % LJP_ADDRESS_CACHE;
  if (w->addresses[at].word == address && address)
    return top | w->addresses[at].stable;
  uint64_t stable = address;
  const struct ljp_module *m =
      ljp_modules_find(&w->modules, address, time_ns, settled);
  if (m && m->id <= MODULE_MASK && address - m->bias <= OFFSET_MASK)
    stable =
        STABLE_MODULE | (uint64_t)m->id << OFFSET_BITS | (address - m->bias);
  if (*settled) {
    w->addresses[at].word = address;
    w->addresses[at].stable = stable;
  }
  return top | stable;
}

/* -- What describe() is asked for ------------------------------------------ */

void ljp_writer_need_trace(struct ljp_writer *w, uint64_t id)
{
  struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_TRACE, id);
  if (!def) {
    struct ljp_trace_info info;
    memset(&info, 0, sizeof info);
    if (!w->options.describe.trace ||
        !w->options.describe.trace(w->options.describe.ctx, id, &info))
      return;
    uint32_t place =
        info.place ? ljp_writer_proto(w, ljp_frame_proto_ref(info.place)) : 0;
    uint64_t proto = ljp_writer_need_proto(w, place);
    struct ljp_body *b = ljp_writer_body(w);
    const uint64_t fields[] = {id,
                               info.vm,
                               info.number,
                               info.parent,
                               info.parent_exit,
                               info.root,
                               proto,
                               info.place ? ljp_frame_line(info.place) : 0,
                               info.link,
                               info.code_address,
                               info.code_bytes};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
      ljp_body_u(b, fields[i]);
    ljp_body_str(b, info.link_type,
                 strnlen(info.link_type, sizeof info.link_type),
                 sizeof info.link_type);
    ljp_body_u(b, info.ir_count);
    ljp_body_u(b, info.snapshots);
    ljp_body_u(b, info.marks);
    ljp_body_u(b, info.flags);
    ljp_body_u(b, info.marks_cut);
    def = define(w, LJP_DEF_TRACE, id, id, LJP_REC_TRACE);
    if (def)
      def->proto = place;
    return;
  }
  ljp_writer_need_proto(w, def->proto);
  ljp_writer_put(w, def);
}

static void need_builtin(struct ljp_writer *w, uint64_t ffid)
{
  struct ljp_def *def = ljp_defs_find(&w->defs, LJP_DEF_BUILTIN, ffid);
  if (!def) {
    char name[LJP_NAME_BYTES] = "";
    if (!w->options.describe.builtin ||
        !w->options.describe.builtin(w->options.describe.ctx, ffid, name))
      return;
    struct ljp_body *b = ljp_writer_body(w);
    ljp_body_u(b, ffid);
    ljp_body_str(b, name, strnlen(name, sizeof name), sizeof name);
    define(w, LJP_DEF_BUILTIN, ffid, ffid, LJP_REC_BUILTIN);
    return;
  }
  ljp_writer_put(w, def);
}

static void write_node(struct ljp_writer *w, uint32_t index)
{
  struct ljp_node *node = &w->nodes.nodes[index];
  unsigned kind = ljp_frame_kind(node->word);
  uint64_t first = ljp_frame_payload(node->word), second = 0;
  switch (ljp_frame_shape(kind)) {
  case LJP_SHAPE_LUA:
    second = ljp_frame_line(node->word);
    first = ljp_writer_need_proto(w, ljp_frame_proto_ref(node->word));
    break;
  case LJP_SHAPE_ADDR:
    second = first & OFFSET_MASK;
    if (first & STABLE_MODULE) {
      first = first >> OFFSET_BITS & MODULE_MASK;
      ljp_writer_put(w, ljp_defs_find(&w->defs, LJP_DEF_MODULE, first));
    } else {
      second = first;
      first = 0;
    }
    break;
  case LJP_SHAPE_NUM:
    if (kind == LJP_FRAME_BUILTIN)
      need_builtin(w, first);
    else if (kind == LJP_FRAME_TRACE)
      ljp_writer_need_trace(w, first);
    break;
  }
  make_room(w);
  ljp_builder_node(&w->builder, ljp_intern_id(&w->nodes, index),
                   ljp_intern_id(&w->nodes, node->parent), kind,
                   ljp_frame_flags(node->word), first, second);
  node->epoch = w->out.epoch;
}

bool ljp_writer_need_node(struct ljp_writer *w, uint32_t index)
{
  unsigned n = 0;
  for (uint32_t i = index;
       i != LJP_NO_NODE && w->nodes.nodes[i].epoch != w->out.epoch;
       i = w->nodes.nodes[i].parent) {
    if (n == LJP_STACK_MAX_FRAMES)
      return false;
    w->path[n++] = i;
  }
  while (n)
    write_node(w, w->path[--n]);
  return w->out.status == LJP_OK;
}

/* -- Epochs ---------------------------------------------------------------- */

void ljp_writer_put_totals(struct ljp_writer *w)
{
  struct ljp_body *b = ljp_writer_body(w);
  uint64_t n = 0;
#define LJP_X(name, tag, text, event) n += event;
  LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  ljp_body_u(b, n);
#define LJP_X(name, tag, text, event)                                          \
  if (event) {                                                                 \
    ljp_body_u(b, tag);                                                        \
    ljp_body_u(b, w->out.totals[tag]);                                         \
  }
  LJP_RECORD_LIST(LJP_X)
#undef LJP_X
  put_def(w, LJP_REC_TOTALS);
}

static void put_process(struct ljp_writer *w)
{
  struct ljp_body *b = ljp_writer_body(w);
  if (w->options.fixed_facts) {
    static const char argv[] = "example\0--flag";
    ljp_body_u(b, 4242);
    ljp_body_u(b, 1);
    ljp_body_u(b, 1000000007);
    ljp_body_u(b, UINT64_C(1700000000000000000));
    ljp_body_str(b, "/usr/bin/example", 16, 4096);
    ljp_body_str(b, argv, sizeof argv, 4096);
  } else {
    ljp_process_put(b);
  }
  put_def(w, LJP_REC_PROCESS);
}

static void put_lasting(struct ljp_writer *w, enum ljp_def_class class)
{
  for (uint32_t i = 0; i < w->defs.capacity; i++) {
    struct ljp_def *def = &w->defs.slots[i];
    if (def->key >> 60 == class && !def->ended)
      ljp_writer_put(w, def);
  }
}

static void put_loss(struct ljp_writer *w, const struct ljp_source *source)
{
  for (int reason = 1; reason < LJP_LOSS_COUNT; reason++) {
    if (!source->lost[reason])
      continue;
    struct ljp_body *b = ljp_writer_timed(w, w->now_ns);
    ljp_body_u(b, source->id);
    ljp_body_u(b, (uint64_t)reason);
    ljp_body_u(b, source->lost[reason]);
    put_def(w, LJP_REC_LOSS);
  }
  if (source->overruns) {
    struct ljp_body *b = ljp_writer_timed(w, w->now_ns);
    ljp_body_u(b, source->id);
    ljp_body_u(b, source->overruns);
    put_def(w, LJP_REC_OVERRUN);
  }
}

/* The builder's records belong to the epoch before and are written first. */
enum ljp_status ljp_writer_epoch(struct ljp_writer *w, enum ljp_epoch_why why)
{
  uint32_t producer = w->builder.producer;
  ljp_writer_block(w, 0);
  bool clear = why == LJP_EPOCH_TABLE;
  ljp_defs_purge(&w->defs, clear);
  if (clear) {
    ljp_intern_clear(&w->nodes);
    ljp_refs_clear(&w->refs);
  }
  w->out.epoch++;
  w->out.epoch_bytes = 0;
  w->epoch_start_ns = w->now_ns;
  ljp_builder_reset(&w->builder, 0);
  struct ljp_body *b = ljp_writer_body(w);
  ljp_body_u(b, w->out.segment);
  ljp_body_u(b, why);
  ljp_body_u(b, w->nodes.base);
  put_def(w, LJP_REC_EPOCH);
  ljp_writer_put_totals(w);
  put_process(w);
  /* The part of the key block that must be whole is small; from here on a
  ** full block may go out, and the rest follow in the next. */
  ljp_writer_block(w, LJP_BLOCK_KEY);
  put_lasting(w, LJP_DEF_INFO);
  put_lasting(w, LJP_DEF_MODULE);
  put_lasting(w, LJP_DEF_THREAD);
  put_lasting(w, LJP_DEF_VM);
  put_lasting(w, LJP_DEF_PRODUCER);
  for (const struct ljp_source *s = w->sources; s; s = s->next)
    put_loss(w, s);
  ljp_writer_block(w, 0);
  ljp_builder_reset(&w->builder, producer);
  return w->out.status;
}
