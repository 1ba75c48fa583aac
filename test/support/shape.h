/*
** Streams of a few stacks, made frame by frame, and the profiles made of them.
** For tests of one file each.
*/
#ifndef LJP_TEST_SUPPORT_SHAPE_H
#define LJP_TEST_SUPPORT_SHAPE_H

#include "parsers/profile/frame_name.h"
#include "parsers/profile/profile.h"
#include "test/support/encode.h"

static struct buf stream, payload, body;
static uint64_t last_node, samples;

enum { SORT = 1, FLOOR, LIBVM = 1, LIBMINE };

/* Appends an embedded symbol. level 0 is the innermost. */
static inline void symbol(uint64_t module, uint64_t address, uint64_t level,
                          const char *function)
{
  put_u(&body, module);
  put_u(&body, address);
  put_u(&body, level);
  put_u(&body, 10 + level);
  put_str(&body, function);
  put_str(&body, "some.c");
  put_record(&payload, LJP_REC_SYMBOL, &body);
}

static inline void module(uint64_t id, const char *path)
{
  put_u(&body, id);
  put_u(&body, 0);
  put_u(&body, 0);
  put_u(&body, 0x10000);
  put_u(&body, 0);
  put_str(&body, "");
  put_str(&body, path);
  put_record(&payload, LJP_REC_MODULE, &body);
}

static void builtin(uint64_t ffid, const char *name)
{
  put_u(&body, ffid);
  put_str(&body, name);
  put_record(&payload, LJP_REC_BUILTIN, &body);
}

/* Appends a Lua function, which begins in this line of a.lua. */
static inline void lua_function(uint64_t id, const char *name, uint64_t line)
{
  put_u(&body, id);
  put_u(&body, line);
  put_u(&body, line + 1);
  put_u(&body, 0);
  put_str(&body, "@a.lua");
  put_str(&body, name);
  put_record(&payload, LJP_REC_PROTO, &body);
}

static void begin(void)
{
  stream.len = payload.len = body.len = 0;
  last_node = samples = 0;
  module(LIBVM, "/lib/libvm.so");
  module(LIBMINE, "/lib/mine.so");
  builtin(SORT, "table.sort");
  builtin(FLOOR, "math.floor");
}

/* Puts a node with this parent (0: none) and returns its id. */
static uint64_t frame(uint64_t below, unsigned kind, uint64_t ref,
                      uint64_t value)
{
  uint64_t id = ++last_node;
  put_s(&body, (int64_t)id);
  put_u(&body, below ? id - below : id);
  put_u8(&body, kind << 4);
  if (ljp_frame_shape(kind) != LJP_SHAPE_NUM)
    put_u(&body, ref);
  put_u(&body, value);
  put_record(&payload, LJP_REC_NODES, &body);
  return id;
}

static void sample_in(uint64_t stack, unsigned state, uint64_t count)
{
  for (; count; count--) {
    put_u8(&body, LJP_SAMPLE_STACK | LJP_SAMPLE_WEIGHT | LJP_SAMPLE_STATE);
    put_s(&body, 1);
    put_s(&body, (int64_t)stack);
    put_u8(&body, state);
    put_u(&body, 7);
    put_record(&payload, LJP_REC_SAMPLES, &body);
    samples++;
  }
}

static void sample(uint64_t stack, uint64_t count)
{
  sample_in(stack, LJP_VMSTATE_UNKNOWN, count);
}

static inline struct ljp_profile *finish(void)
{
  static struct ljp_reader reader;
  static const struct ljp_profile_options options = {.no_symbols = true,
                                                     .points = true};
  struct ljp_profile *p = ljp_profile_new(&options);
  put_block(&stream, 0, &payload);
  put_end_block(&stream, 1);
  assert_non_null(p);
  assert_int_equal(ljp_reader_memory(&reader, stream.data, stream.len), LJP_OK);
  assert_int_equal(ljp_profile_add(p, &reader), LJP_OK);
  ljp_reader_fini(&reader);
  assert_int_equal(ljp_profile_finish(p), LJP_OK);
  assert_int_equal(p->totals.samples, samples);
  assert_int_equal(p->totals.cpu_ns, samples * 7);
  return p;
}

static inline size_t path_of(const struct ljp_profile *p, uint32_t node,
                             char *out, size_t room)
{
  size_t n = 0;
  if (p->nodes[node].parent) {
    n = path_of(p, p->nodes[node].parent, out, room);
    out[n++] = ';';
  }
  return n + ljp_frame_name(p, p->nodes[node].frame, 0, out + n, room - n);
}

/* The number of samples at the stack with these names. */
static inline uint64_t count_at(const struct ljp_profile *p, const char *path)
{
  char text[512];
  uint64_t count = 0;
  for (uint32_t i = 0; i < p->row_count; i++) {
    path_of(p, p->rows[i].node, text, sizeof text);
    if (strcmp(text, path) == 0)
      count += p->rows[i].count;
  }
  return count;
}

static void shape_free(void)
{
  buf_free(&stream);
  buf_free(&payload);
  buf_free(&body);
}

#endif
