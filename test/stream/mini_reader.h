/*
** The smallest strict reader of streams, for the tests of the writer: every
** rule of RFC 1 that the writer must keep is checked here, and the first broken
** one is told in error[]. Independent of parsers/, so that a misreading of
** the RFC in one of the two is seen. Not for untrusted input.
*/
#ifndef LJP_TEST_MINI_READER_H
#define LJP_TEST_MINI_READER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/block.h"

#ifdef LJP_HAVE_ZSTD
#include <zstd.h>
#endif

enum { MINI_IDS = 1 << 17, MINI_FRAMES = 2048 };

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
  uint64_t epoch_bytes, most_epoch_bytes; /* Raw; of the largest epoch. */
  bool have_seq, clean, segment_end;
  uint64_t records[64]; /* Records by tag. */
  uint64_t events[64];  /* Single events by tag, as TOTALS counts them. */
  uint64_t lost[16];    /* The last LOSS by reason, summed over producers. */
  uint64_t lost_of[64][16];
  uint64_t end_status, end_errno;
  uint64_t pid, last_time;
  uint32_t thread[4096], vm[4096], producer[4096], module[MINI_IDS]; /* Epoch */
  uint32_t proto[MINI_IDS], trace[4096], builtin[4096];
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

/* Frames of a stack, leaf first; the number of them. */
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
    /* Begun in the middle (a later segment): believe the first ones. */
    if (m->records[LJP_REC_TOTALS] == 1 && m->epoch != 1)
      m->events[tag] = count;
    if (tag >= 64 || m->events[tag] != count)
      MINI_FAIL("TOTALS says %llu of tag %llu, seen %llu",
                (unsigned long long)count, (unsigned long long)tag,
                (unsigned long long)m->events[tag & 63]);
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

static inline bool mini_record(struct mini *m, unsigned tag,
                               struct mini_cursor *c,
                               const struct ljp_block_head *h)
{
  uint64_t a, b, d;
  if (tag >= 64)
    MINI_FAIL("tag %u", tag);
  m->records[tag]++;
  struct mini_event e = {
      .tag = (uint8_t)tag, .time_ns = h->time_ns, .producer = h->producer};
  switch (tag) {
  case LJP_REC_PROCESS:
    m->pid = mini_u(c);
    return true;
  case LJP_REC_MODULE:
    a = mini_u(c);
    mini_u(c), mini_u(c), mini_u(c), mini_u(c);
    mini_str(c, NULL, 0);
    mini_str(c, m->module_path[a % 4096], 128);
    return !c->bad && mini_define(m, m->module, a, MINI_IDS);
  case LJP_REC_THREAD:
    return mini_define(m, m->thread, mini_u(c), 4096);
  case LJP_REC_VM:
    return mini_define(m, m->vm, mini_u(c), 4096);
  case LJP_REC_PRODUCER:
    a = mini_u(c), mini_u(c), b = mini_u(c);
    if (!mini_defined(m, m->thread, b))
      MINI_FAIL("producer of an undefined thread");
    return mini_define(m, m->producer, a, 4096);
  case LJP_REC_PROTO:
    a = mini_u(c), mini_u(c), mini_u(c), mini_u(c);
    mini_str(c, NULL, 0);
    mini_str(c, m->proto_name[a % MINI_IDS], 24);
    return !c->bad && mini_define(m, m->proto, a, MINI_IDS);
  case LJP_REC_TRACE:
    return mini_define(m, m->trace, mini_u(c), 4096);
  case LJP_REC_BUILTIN:
    return mini_define(m, m->builtin, mini_u(c), 4096);
  case LJP_REC_NODES:
    return mini_nodes(m, c);
  case LJP_REC_SAMPLES:
    return mini_samples(m, c, h);
  case LJP_REC_MEM:
    return mini_mem(m, c, h);
  case LJP_REC_LOSS:
    mini_s(c);
    a = mini_u(c), b = mini_u(c), d = mini_u(c);
    if (c->bad || a >= 64 || b >= 16 || d < m->lost_of[a][b])
      MINI_FAIL("malformed LOSS");
    m->lost[b] += d - m->lost_of[a][b];
    m->lost_of[a][b] = d;
    return true;
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
  case LJP_REC_INFO:
  case LJP_REC_OVERRUN:
    return true;
  case LJP_REC_MARK:
    e.time_ns += (uint64_t)mini_s(c);
    mini_u(c), mini_u(c), mini_s(c);
    mini_str(c, m->text, sizeof m->text);
    return !c->bad && mini_emit(m, &e);
  case LJP_REC_TRACE_EVENT:
    e.time_ns += (uint64_t)mini_s(c);
    e.vm = mini_u(c);
    a = mini_u(c), b = mini_u(c);
    if ((a == LJP_TRACE_STOP || a == LJP_TRACE_EXISTS) &&
        (b >= 4096 || !mini_defined(m, m->trace, b)))
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
    e.time_ns += (uint64_t)mini_s(c);
    e.size = mini_u(c);
    return !c->bad && mini_emit(m, &e);
  }
  MINI_FAIL("unknown tag %u", tag);
}

static inline bool mini_block(struct mini *m, const struct ljp_block_head *h,
                              const uint8_t *payload)
{
  uint8_t *raw = NULL;
  if (m->have_seq && h->seq != m->next_seq)
    MINI_FAIL("block %llu where %llu should be", (unsigned long long)h->seq,
              (unsigned long long)m->next_seq);
  if (m->have_seq && h->stream != m->stream)
    MINI_FAIL("another stream");
  if (m->clean)
    MINI_FAIL("a block after END");
  if (h->flags & LJP_BLOCK_KEY) {
    if (h->epoch <= m->epoch)
      MINI_FAIL("epoch %u after %llu", h->epoch, (unsigned long long)m->epoch);
    m->epoch = h->epoch;
    m->epoch_bytes = 0;
    m->key_blocks++;
  }
  if (h->epoch != m->epoch || !h->stream)
    MINI_FAIL("block of epoch %u in %llu", h->epoch,
              (unsigned long long)m->epoch);
  m->have_seq = true;
  m->next_seq = h->seq + 1;
  m->stream = h->stream;
  m->segment_end = false;
  m->blocks++;
  m->raw_bytes += h->raw_len;
  m->stored_bytes += h->stored_len;
  m->epoch_bytes += h->raw_len;
  if (m->epoch_bytes > m->most_epoch_bytes)
    m->most_epoch_bytes = m->epoch_bytes;
#ifdef LJP_HAVE_ZSTD
  if (h->flags & LJP_BLOCK_ZSTD) {
    raw = malloc(h->raw_len + 1u);
    m->zstd_blocks++;
    if (ZSTD_decompress(raw, h->raw_len, payload, h->stored_len) !=
        h->raw_len) {
      free(raw);
      MINI_FAIL("not one zstd frame of raw_len bytes");
    }
    payload = raw;
  }
#endif
  struct mini_cursor c = {.p = payload, .end = payload + h->raw_len};
  bool first = true, ok = true;
  while (ok && c.p < c.end) {
    uint64_t tag = mini_u(&c), len = mini_u(&c);
    if (c.bad || len > (uint64_t)(c.end - c.p)) {
      ok = false;
      break;
    }
    struct mini_cursor body = {.p = c.p, .end = c.p + len};
    if (first && (h->flags & LJP_BLOCK_KEY) && tag != LJP_REC_EPOCH)
      ok = false;
    first = false;
    ok = ok && mini_record(m, (unsigned)tag, &body, h) && !body.bad;
    c.p += len;
  }
  free(raw);
  if (!ok)
    MINI_FAIL("malformed record in block %llu", (unsigned long long)h->seq);
  return true;
}

/* Reads whole blocks from the start of data; false if a rule is broken. Bytes
** after the last whole block are no error: see end_offset. */
static inline bool mini_read(struct mini *m, const uint8_t *data, size_t len)
{
  size_t at = 0;
  struct ljp_block_head h;
  m->end_offset = 0;
  while (len - at >= LJP_BLOCK_HEAD_BYTES &&
         ljp_block_head_get(data + at, &h) == LJP_OK &&
         h.stored_len <= len - at - LJP_BLOCK_HEAD_BYTES &&
         ljp_crc32c(0, data + at + LJP_BLOCK_HEAD_BYTES, h.stored_len) ==
             h.payload_crc) {
    if (!mini_block(m, &h, data + at + LJP_BLOCK_HEAD_BYTES))
      return false;
    at += LJP_BLOCK_HEAD_BYTES + h.stored_len;
    m->end_offset = at;
  }
  return true;
}

static inline bool mini_read_file(struct mini *m, const char *path,
                                  uint64_t *file_bytes)
{
  FILE *f = fopen(path, "rb");
  if (!f)
    MINI_FAIL("cannot open the file");
  size_t len = 0, room = 1 << 16, n;
  uint8_t *data = malloc(room);
  while ((n = fread(data + len, 1, room - len, f)) > 0) {
    len += n;
    if (len == room)
      data = realloc(data, room *= 2);
  }
  fclose(f);
  if (file_bytes)
    *file_bytes = len;
  bool ok = mini_read(m, data, len);
  free(data);
  return ok;
}

#endif
