/*
** The records of a block, for mini_reader.h: decodes each, and checks that
** whatever it refers to is defined in its epoch.
*/
#ifndef LJP_TEST_MINI_RECORDS_H
#define LJP_TEST_MINI_RECORDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/block.h"

enum { MINI_IDS = 1 << 17, MINI_FRAMES = 2049 };

struct mini_node {
  uint64_t parent, first, second;
  uint32_t epoch;
  uint8_t kind, flags;
};

struct mini_event {
  uint8_t tag;
  uint64_t time_ns, vm, state, weight, cut, stack;
  uint64_t op, what, address, size, old_address, old_size;
  uint32_t producer;
};

struct mini {
  char error[200];
  uint64_t blocks, key_blocks, zstd_blocks, next_seq, stream, epoch, segment;
  uint64_t raw_bytes, stored_bytes;
  uint64_t epoch_bytes,
      most_epoch_bytes; /* Raw; `most` is the largest epoch's. */
  bool have_seq, clean, segment_end;
  uint64_t records[LJP_RECORD_TAGS]; /* Records by tag. */
  uint64_t events
      [LJP_RECORD_TAGS]; /* Single events by tag, as TOTALS counts them. */
  uint64_t lost[16];     /* The last LOSS by reason, summed over producers. */
  uint64_t lost_of[64][16];
  uint64_t unsampled[16]; /* Time by reason. */
  uint64_t cpu_ns;        /* That the process has used. */
  uint64_t elapsed_ns;    /* Of all threads. */
  uint64_t end_status, end_errno;
  uint64_t pid, last_time, begin_time; /* Of the first block. */
  uint32_t thread[4096], vm[4096], producer[4096], module[MINI_IDS]; /* Epoch */
  uint32_t proto[MINI_IDS], trace[4096], builtin[4096], labels[MINI_IDS];
  char module_path[4096][128];
  char proto_name[MINI_IDS][24];
  struct mini_node *nodes; /* By id. */
  uint64_t node_base, max_node;
  void (*on_event)(void *ctx, struct mini *m, const struct mini_event *e);
  void *ctx;
  char text[5000];     /* Of the last MARK or NOTE. */
  uint64_t end_offset; /* After the last whole block. */
};

static inline struct mini *mini_new(void)
{
  struct mini *m = calloc(1, sizeof *m);
  m->nodes = calloc(MINI_IDS * 8, sizeof *m->nodes);
  return m;
}

static inline void mini_free(struct mini *m)
{
  free(m->nodes);
  free(m);
}

#define MINI_FAIL(...)                                                         \
  do {                                                                         \
    if (!m->error[0])                                                          \
      snprintf(m->error, sizeof m->error, __VA_ARGS__);                        \
    return false;                                                              \
  } while (0)

struct mini_cursor {
  const uint8_t *p, *end;
  bool bad;
};

static inline uint64_t mini_u(struct mini_cursor *c)
{
  uint64_t v = 0;
  const uint8_t *p = c->bad ? NULL : ljp_get_varint(c->p, c->end, &v);
  if (p)
    c->p = p;
  else
    c->bad = true;
  return p ? v : 0;
}

static inline int64_t mini_s(struct mini_cursor *c)
{
  return ljp_unzigzag(mini_u(c));
}

static inline uint8_t mini_byte(struct mini_cursor *c)
{
  if (c->bad || c->p >= c->end) {
    c->bad = true;
    return 0;
  }
  return *c->p++;
}

static inline void mini_str(struct mini_cursor *c, char *out, size_t room)
{
  uint64_t n = mini_u(c);
  if (c->bad || n > (uint64_t)(c->end - c->p)) {
    c->bad = true;
    return;
  }
  if (out) {
    size_t k = n < room - 1 ? (size_t)n : room - 1;
    memcpy(out, c->p, k);
    out[k] = 0;
  }
  c->p += n;
}

static inline bool mini_defined(struct mini *m, const uint32_t *table,
                                uint64_t id)
{
  return id == 0 || table[id] == m->epoch;
}

/* Sets out to the frames of a stack, leaf first; returns their number. */
static inline unsigned mini_stack(const struct mini *m, uint64_t id,
                                  const struct mini_node **out)
{
  unsigned n = 0;
  for (; id; id = m->nodes[id].parent)
    if (n < MINI_FRAMES)
      out[n++] = &m->nodes[id];
  return n;
}

static inline bool mini_nodes(struct mini *m, struct mini_cursor *c)
{
  uint64_t id = 0;
  while (c->p < c->end && !c->bad) {
    id += (uint64_t)mini_s(c);
    uint64_t up = mini_u(c);
    uint8_t kind = mini_byte(c);
    struct mini_node node = {
        .kind = kind >> 4, .flags = kind & 15, .epoch = (uint32_t)m->epoch};
    node.first = mini_u(c);
    if (ljp_frame_shape(node.kind) != LJP_SHAPE_NUM)
      node.second = mini_u(c);
    if (c->bad || !id || !up || up > id || id >= MINI_IDS * 8u)
      MINI_FAIL("malformed node %llu", (unsigned long long)id);
    if (id < m->node_base || id - m->node_base >= LJP_EPOCH_MAX_NODES)
      MINI_FAIL("node id %llu out of the epoch", (unsigned long long)id);
    node.parent = id - up;
    if (node.parent && m->nodes[node.parent].epoch != m->epoch)
      MINI_FAIL("parent of %llu not defined", (unsigned long long)id);
    if (ljp_frame_shape(node.kind) == LJP_SHAPE_LUA &&
        !mini_defined(m, m->proto, node.first))
      MINI_FAIL("prototype %llu not defined", (unsigned long long)node.first);
    if (ljp_frame_shape(node.kind) == LJP_SHAPE_ADDR &&
        !mini_defined(m, m->module, node.first))
      MINI_FAIL("module %llu not defined", (unsigned long long)node.first);
    if (node.kind == LJP_FRAME_LABELS &&
        (node.parent || node.first >= MINI_IDS || !node.first ||
         !mini_defined(m, m->labels, node.first)))
      MINI_FAIL("labels %llu not defined or not a root",
                (unsigned long long)node.first);
    const struct mini_node *old = &m->nodes[id];
    if (old->kind && (old->kind != node.kind || old->parent != node.parent ||
                      old->first != node.first || old->second != node.second ||
                      old->flags != node.flags))
      MINI_FAIL("node %llu changed its meaning", (unsigned long long)id);
    m->nodes[id] = node;
    m->max_node = id > m->max_node ? id : m->max_node;
  }
  return !c->bad;
}

static inline bool mini_emit(struct mini *m, struct mini_event *e)
{
  if (e->stack && m->nodes[e->stack].epoch != m->epoch)
    MINI_FAIL("stack %llu not defined", (unsigned long long)e->stack);
  if (!mini_defined(m, m->vm, e->vm))
    MINI_FAIL("vm %llu not defined", (unsigned long long)e->vm);
  if (!mini_defined(m, m->producer, e->producer))
    MINI_FAIL("producer %u not defined", e->producer);
  m->events[e->tag]++;
  m->last_time = e->time_ns;
  if (m->on_event)
    m->on_event(m->ctx, m, e);
  return true;
}

static inline bool mini_samples(struct mini *m, struct mini_cursor *c,
                                const struct ljp_block_head *h)
{
  struct mini_event e = {
      .tag = LJP_REC_SAMPLES, .time_ns = h->time_ns, .producer = h->producer};
  while (c->p < c->end && !c->bad) {
    uint8_t first = mini_byte(c);
    if (first & 0x60)
      MINI_FAIL("reserved bits in a sample");
    e.time_ns += (uint64_t)mini_s(c);
    if (first & LJP_SAMPLE_STACK)
      e.stack += (uint64_t)mini_s(c);
    if (first & LJP_SAMPLE_STATE)
      e.state = mini_byte(c);
    if (first & LJP_SAMPLE_VM)
      e.vm = mini_u(c);
    if (first & LJP_SAMPLE_WEIGHT)
      e.weight = mini_u(c);
    e.cut = first & LJP_SAMPLE_CUT ? mini_byte(c) : 0;
    if (c->bad || !mini_emit(m, &e))
      MINI_FAIL("malformed sample");
  }
  return !c->bad;
}

static inline bool mini_mem(struct mini *m, struct mini_cursor *c,
                            const struct ljp_block_head *h)
{
  struct mini_event e = {
      .tag = LJP_REC_MEM, .time_ns = h->time_ns, .producer = h->producer};
  uint64_t rotated = 0;
  while (c->p < c->end && !c->bad) {
    uint8_t first = mini_byte(c);
    e.op = first & 3;
    if (e.op == 3)
      MINI_FAIL("reserved bits in a memory event");
    e.time_ns += (uint64_t)mini_s(c);
    rotated += (uint64_t)mini_s(c);
    e.address = ljp_unrotate_address(rotated);
    if (first & LJP_MEM_SIZE)
      e.size = mini_u(c);
    e.old_address = e.old_size = 0;
    if (e.op == LJP_MEM_REALLOC) {
      e.old_address = ljp_unrotate_address(rotated + (uint64_t)mini_s(c));
      e.old_size = mini_u(c);
    }
    if (first & LJP_MEM_STACK)
      e.stack += (uint64_t)mini_s(c);
    if (first & LJP_MEM_STATE) {
      e.state = mini_byte(c);
      e.vm = mini_u(c);
    }
    if (first & LJP_MEM_WEIGHT)
      e.weight = mini_u(c);
    if (first & LJP_MEM_WHAT)
      e.what = mini_byte(c);
    if (c->bad || !mini_emit(m, &e))
      MINI_FAIL("malformed memory event");
  }
  return !c->bad;
}

static inline bool mini_totals(struct mini *m, struct mini_cursor *c)
{
  for (uint64_t n = mini_u(c); n && !c->bad; n--) {
    uint64_t tag = mini_u(c), count = mini_u(c);
    /* In a later file segment read alone: take the first TOTALS as given. */
    if (m->records[LJP_REC_TOTALS] == 1 && m->epoch != 1 &&
        tag < LJP_RECORD_TAGS)
      m->events[tag] = count;
    if (tag >= LJP_RECORD_TAGS || m->events[tag] != count)
      MINI_FAIL(
          "TOTALS says %llu of tag %llu, seen %llu", (unsigned long long)count,
          (unsigned long long)tag,
          (unsigned long long)(tag < LJP_RECORD_TAGS ? m->events[tag] : 0));
  }
  return !c->bad;
}

static inline bool mini_define(struct mini *m, uint32_t *table, uint64_t id,
                               uint64_t limit)
{
  if (!id || id >= limit)
    MINI_FAIL("id %llu out of the mini reader's range", (unsigned long long)id);
  table[id] = (uint32_t)m->epoch;
  return true;
}

/* Pairs of texts that end with NUL, sorted by key. */
static inline bool mini_labels(struct mini *m, struct mini_cursor *c)
{
  char text[65536], *last = NULL;
  uint64_t len = mini_u(c);
  if (c->bad || len != (uint64_t)(c->end - c->p) || len >= sizeof text)
    MINI_FAIL("malformed LABELS");
  memcpy(text, c->p, (size_t)len);
  text[len] = 0;
  for (char *at = text; at < text + len;) {
    char *key = at, *value = key + strlen(key) + 1;
    at = value >= text + len ? text + len + 1 : value + strlen(value) + 1;
    if (at > text + len || (last && strcmp(last, key) >= 0))
      MINI_FAIL("LABELS are not sorted pairs");
    last = key;
  }
  c->p = c->end;
  return true;
}

static inline bool mini_definition(struct mini *m, unsigned tag,
                                   struct mini_cursor *c)
{
  uint64_t id = mini_u(c), thread;
  switch (tag) {
  case LJP_REC_PROCESS:
    m->pid = id;
    return true;
  case LJP_REC_MODULE:
    mini_u(c), mini_u(c), mini_u(c), mini_u(c);
    mini_str(c, NULL, 0);
    mini_str(c, m->module_path[id % 4096], 128);
    return !c->bad && mini_define(m, m->module, id, MINI_IDS);
  case LJP_REC_THREAD:
    return mini_define(m, m->thread, id, 4096);
  case LJP_REC_VM:
    return mini_define(m, m->vm, id, 4096);
  case LJP_REC_PRODUCER:
    mini_u(c), thread = mini_u(c);
    if (!mini_defined(m, m->thread, thread))
      MINI_FAIL("producer of an undefined thread");
    return mini_define(m, m->producer, id, 4096);
  case LJP_REC_PROTO:
    mini_u(c), mini_u(c), mini_u(c);
    mini_str(c, NULL, 0);
    mini_str(c, m->proto_name[id % MINI_IDS], 24);
    return !c->bad && mini_define(m, m->proto, id, MINI_IDS);
  case LJP_REC_TRACE:
    return mini_define(m, m->trace, id, 4096);
  case LJP_REC_BUILTIN:
    return mini_define(m, m->builtin, id, 4096);
  case LJP_REC_LABELS:
    return !c->bad && mini_labels(m, c) &&
           mini_define(m, m->labels, id, MINI_IDS);
  case LJP_REC_INFO:
    return true;
  }
  MINI_FAIL("unknown definition %u", tag);
}

static inline bool mini_loss(struct mini *m, struct mini_cursor *c)
{
  mini_s(c);
  uint64_t producer = mini_u(c), reason = mini_u(c), count = mini_u(c);
  if (c->bad || producer >= 64 || reason >= 16 ||
      count < m->lost_of[producer][reason])
    MINI_FAIL("malformed LOSS");
  m->lost[reason] += count - m->lost_of[producer][reason];
  m->lost_of[producer][reason] = count;
  return true;
}

static inline bool mini_structure(struct mini *m, unsigned tag,
                                  struct mini_cursor *c)
{
  switch (tag) {
  case LJP_REC_EPOCH:
    m->segment = mini_u(c);
    mini_u(c);
    m->node_base = mini_u(c);
    return !c->bad;
  case LJP_REC_TOTALS:
    return mini_totals(m, c);
  case LJP_REC_SEGMENT_END:
    return m->segment_end = true;
  case LJP_REC_END:
    mini_s(c);
    m->end_status = mini_u(c);
    m->end_errno = mini_u(c);
    m->clean = true;
    return !c->bad;
  }
  MINI_FAIL("unknown structure %u", tag);
}

/* An event that is alone in its record. */
static inline bool mini_single(struct mini *m, unsigned tag,
                               struct mini_cursor *c,
                               const struct ljp_block_head *h)
{
  struct mini_event e = {
      .tag = (uint8_t)tag, .time_ns = h->time_ns, .producer = h->producer};
  uint64_t what, trace;
  e.time_ns += (uint64_t)mini_s(c);
  switch (tag) {
  case LJP_REC_MARK:
    mini_u(c), mini_u(c), mini_s(c);
    mini_str(c, m->text, sizeof m->text);
    return !c->bad && mini_emit(m, &e);
  case LJP_REC_TRACE_EVENT:
    e.vm = mini_u(c);
    what = mini_u(c), trace = mini_u(c);
    if ((what == LJP_TRACE_STOP || what == LJP_TRACE_EXISTS) &&
        (trace >= 4096 || !mini_defined(m, m->trace, trace)))
      MINI_FAIL("trace of a trace event not defined");
    if (!mini_defined(m, m->proto, mini_u(c)))
      MINI_FAIL("prototype of a trace event not defined");
    mini_u(c), mini_u(c), mini_str(c, NULL, 0);
    mini_u(c), mini_u(c);
    e.stack = mini_u(c);
    return !c->bad && mini_emit(m, &e);
  case LJP_REC_GC:
  case LJP_REC_VMSTATE:
  case LJP_REC_INTERVAL:
  case LJP_REC_MODULE_GONE:
  case LJP_REC_VM_CLOSE:
  case LJP_REC_THREAD_END:
  case LJP_REC_NOTE:
  case LJP_REC_HEAP_MOMENT:
    e.size = mini_u(c);
    return !c->bad && mini_emit(m, &e);
  case LJP_REC_UNSAMPLED:
    if (!mini_defined(m, m->thread, mini_u(c)))
      MINI_FAIL("thread of unsampled time not defined");
    mini_u(c), what = mini_u(c);
    m->unsampled[what % 16] += mini_u(c);
    return !c->bad && mini_emit(m, &e);
  case LJP_REC_CPU_TIME:
    m->cpu_ns += mini_u(c);
    return !c->bad && mini_emit(m, &e);
  case LJP_REC_ELAPSED:
    if (!mini_defined(m, m->thread, mini_u(c)))
      MINI_FAIL("thread of elapsed time not defined");
    m->elapsed_ns += mini_u(c);
    return !c->bad && mini_emit(m, &e);
  }
  MINI_FAIL("unknown event %u", tag);
}

/* What is alive when a file segment begins. It is no event of TOTALS. */
static inline bool mini_held(struct mini *m, unsigned tag,
                             struct mini_cursor *c,
                             const struct ljp_block_head *h)
{
  struct mini_event e = {
      .tag = (uint8_t)tag, .time_ns = h->time_ns, .producer = h->producer};
  e.time_ns += (uint64_t)mini_s(c);
  e.vm = mini_u(c);
  if (tag == LJP_REC_HELD) {
    e.weight = mini_u(c);
    e.state = (uint8_t)mini_u(c);
    e.size = mini_u(c);
  } else {
    e.address = mini_u(c);
    e.size = mini_u(c);
    e.weight = mini_u(c);
    e.stack = mini_u(c);
    e.what = mini_u(c);
    e.state = (uint8_t)mini_u(c);
    e.old_size = mini_u(c);
  }
  bool fine = !c->bad && mini_emit(m, &e);
  m->events[tag] = 0;
  return fine;
}

static inline bool mini_record(struct mini *m, unsigned tag,
                               struct mini_cursor *c,
                               const struct ljp_block_head *h)
{
  if (tag >= 64 && tag != LJP_REC_HELD && tag != LJP_REC_LIVE)
    MINI_FAIL("tag %u", tag);
  m->records[tag]++;
  if (tag == LJP_REC_NODES)
    return mini_nodes(m, c);
  if (tag >= 64)
    return mini_held(m, tag, c, h);
  if (tag < 32)
    return mini_definition(m, tag, c);
  if (tag >= 48)
    return mini_structure(m, tag, c);
  if (tag == LJP_REC_SAMPLES)
    return mini_samples(m, c, h);
  if (tag == LJP_REC_MEM)
    return mini_mem(m, c, h);
  if (tag == LJP_REC_LOSS)
    return mini_loss(m, c);
  if (tag == LJP_REC_OVERRUN)
    return true;
  return mini_single(m, tag, c, h);
}

#endif
