/*
** Writes a stream of made-up CPU samples: large_profile SAMPLES STACKS > FILE.
** For benchmarks of the reader and the views. The output is always the same.
*/
#include <stdio.h>
#include <stdlib.h>

#include "test/support/encode.h"
#include "test/support/random.h"

enum { PROTOS = 4000 };

static uint64_t random_below(uint64_t n)
{
  return (random_number() >> 20) % n;
}

static uint64_t next_seq;

static void write_block(struct buf *payload, uint32_t producer,
                        uint64_t time_ns)
{
  struct buf file = {0};
  struct ljp_block_head head = test_head(next_seq++);
  head.producer = producer;
  head.time_ns = time_ns;
  put_block_head(&file, head, payload);
  if (fwrite(file.data, 1, file.len, stdout) != file.len)
    exit(1);
  buf_free(&file);
}

static void write_definitions(struct buf *payload, struct buf *body)
{
  put_u(body, 1234);
  put_u(body, 1);
  put_u(body, TEST_TIME);
  put_u(body, UINT64_C(1700000000000000000));
  put_str(body, "/usr/bin/app");
  put_str(body, "app");
  put_record(payload, LJP_REC_PROCESS, body);
  for (unsigned t = 1; t <= 3; t++) {
    put_u(body, t);
    put_u(body, 1233 + t);
    put_str(body, t == 1 ? "main" : "worker");
    put_record(payload, LJP_REC_THREAD, body);
    put_u(body, t);
    put_u(body, LJP_PRODUCER_CPU);
    put_u(body, t);
    put_u(body, 1000000);
    put_record(payload, LJP_REC_PRODUCER, body);
  }
  for (unsigned i = 1; i <= PROTOS; i++) {
    char name[32], file[32];
    snprintf(name, sizeof name, "function_%u", i);
    snprintf(file, sizeof file, "@lib/module%u.lua", i % 61);
    put_u(body, i);
    put_u(body, i % 400 + 1);
    put_u(body, i % 400 + 20);
    put_u(body, 0);
    put_str(body, file);
    put_str(body, name);
    put_record(payload, LJP_REC_PROTO, body);
  }
  write_block(payload, 0, TEST_TIME);
}

/* Writes a tree with one leaf for each stack. Returns the ids of the leaves. */
static uint32_t *write_tree(struct buf *payload, struct buf *body,
                            uint32_t stacks, uint32_t *nodes)
{
  uint32_t room = stacks * 8 + 64, *depth = calloc(room, sizeof *depth);
  uint32_t *leaves = calloc(stacks, sizeof *leaves), n = 0;
  if (!depth || !leaves)
    abort();
  for (uint32_t found = 0; found < stacks && n + 8 < room;) {
    /* New branches start at old and at young nodes. */
    uint32_t up =
        n < 8 ? n
              : 1 + (uint32_t)random_below(random_below(3) ? n : n / 50 + 1);
    for (unsigned more = 1 + (unsigned)random_below(3); more; more--) {
      n++;
      put_s(body, 1);
      put_u(body, up ? n - up : n);
      put_u8(body,
             (unsigned)(random_below(4) ? LJP_FRAME_LUA : LJP_FRAME_LUA_INLINED)
                 << 4);
      put_u(body, 1 + random_below(random_below(2) ? PROTOS : 40));
      put_u(body, 1 + random_below(400));
      depth[n] = depth[up] + 1;
      up = n;
      if (body->len > 500000) {
        put_record(payload, LJP_REC_NODES, body);
        write_block(payload, 1, TEST_TIME);
        /* The first id of the next record is written in full. */
        put_s(body, n + 1);
        n++;
        put_u(body, 1);
        put_u8(body, LJP_FRAME_LUA << 4);
        put_u(body, 1);
        put_u(body, 1);
        depth[n] = depth[n - 1] + 1;
        up = n;
      }
    }
    if (depth[n] > 4)
      leaves[found++] = n;
  }
  put_record(payload, LJP_REC_NODES, body);
  write_block(payload, 1, TEST_TIME);
  free(depth);
  *nodes = n;
  return leaves;
}

int main(int argc, char **argv)
{
  struct buf payload = {0}, body = {0};
  uint64_t samples = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
  uint32_t stacks = argc > 2 ? (uint32_t)atoi(argv[2]) : 100000, nodes;
  if (argc != 3 || !samples || !stacks) {
    fprintf(stderr, "usage: large_profile SAMPLES STACKS > FILE\n");
    return 2;
  }
  write_definitions(&payload, &body);
  uint32_t *leaves = write_tree(&payload, &body, stacks, &nodes);
  uint64_t time_ns = TEST_TIME;
  for (uint64_t i = 0; i < samples;) {
    uint32_t producer = 1 + (uint32_t)(i / 20000 % 3);
    uint64_t base = time_ns, last_time = base, last_stack = 0;
    for (unsigned k = 0; k < 20000 && i < samples; k++, i++) {
      time_ns += 250000 + random_below(166667);
      uint64_t stack =
          leaves[i < stacks ? i : random_below(random_below(stacks) + 1)];
      put_u8(&body, 0x01 | 0x02 | 0x08);
      put_s(&body, (int64_t)(time_ns - last_time));
      put_s(&body, (int64_t)(stack - last_stack));
      put_u8(&body, (unsigned)(random_below(3) ? LJP_VMSTATE_TRACE
                                               : LJP_VMSTATE_INTERP));
      put_u(&body, 900000 + random_below(200000));
      last_time = time_ns;
      last_stack = stack;
    }
    put_record(&payload, LJP_REC_SAMPLES, &body);
    write_block(&payload, producer, base);
  }
  put_s(&body, (int64_t)(time_ns - TEST_TIME));
  put_u(&body, 0);
  put_u(&body, 0);
  put_str(&body, "stopped");
  put_record(&payload, LJP_REC_END, &body);
  write_block(&payload, 0, TEST_TIME);
  free(leaves);
  buf_free(&payload);
  buf_free(&body);
  return fflush(stdout) ? 1 : 0;
}
