/*
** Writes a stream of a service whose requests have labels, by hand: samples of
** two threads, and memory of two tenants. Usage: labelled_stream FILE [MORE]
** MORE: samples that route /b has in addition, in another session, where the sets
** of labels have other ids.
*/
#include <stdio.h>

#include "test/support/encode.h"

static struct buf payload, body;
static uint64_t last_node, more;

enum { MODULE = 1, HANDLE = 1, RENDER, QUERY };
static uint64_t id_a_x = 1, id_b = 3; /* Of sets of labels. */
enum { ID_A_Y = 2 };

static void strings(unsigned tag, const uint64_t *numbers, unsigned count,
                    const char *one, const char *two)
{
  for (unsigned i = 0; i < count; i++)
    put_u(&body, numbers[i]);
  put_str(&body, one);
  if (two)
    put_str(&body, two);
  put_record(&payload, tag, &body);
}

static void labels(uint64_t id, const char *set, size_t len)
{
  put_u(&body, id);
  put_u(&body, len);
  put_bytes(&body, set, len);
  put_record(&payload, LJP_REC_LABELS, &body);
}

static void producer(uint64_t id, unsigned kind, uint64_t thread,
                     uint64_t interval)
{
  put_u(&body, id);
  put_u(&body, kind);
  put_u(&body, thread);
  put_u(&body, interval);
  put_record(&payload, LJP_REC_PRODUCER, &body);
}

static uint64_t node(uint64_t below, unsigned kind, uint64_t ref,
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

/* handle calls another function, which runs machine code. */
static uint64_t stack(uint64_t root, uint64_t called)
{
  uint64_t id = node(root, LJP_FRAME_LUA, HANDLE, 3);
  id = node(id, LJP_FRAME_LUA, called, 5 + called);
  return node(id, LJP_FRAME_HOST, MODULE, 0x100 * called);
}

static void samples(uint64_t at, unsigned count)
{
  for (; count; count--) {
    put_u8(&body, LJP_SAMPLE_STACK | LJP_SAMPLE_WEIGHT | LJP_SAMPLE_STATE |
                      LJP_SAMPLE_VM);
    put_s(&body, 1009);
    put_s(&body, (int64_t)at);
    put_u8(&body, LJP_VMSTATE_INTERP);
    put_u(&body, 1);
    put_u(&body, 1000003);
    put_record(&payload, LJP_REC_SAMPLES, &body);
  }
}

static void mem(unsigned op, uint64_t address, uint64_t size, uint64_t at)
{
  put_u8(&body, op | LJP_MEM_SIZE | LJP_MEM_STACK | LJP_MEM_STATE);
  put_s(&body, 101);
  put_s(&body, (int64_t)ljp_rotate_address(address));
  put_u(&body, size);
  put_s(&body, (int64_t)at);
  put_u8(&body, LJP_VMSTATE_INTERP);
  put_u(&body, 1);
  put_record(&payload, LJP_REC_MEM, &body);
}

static void gc(uint64_t heap, uint64_t cycle)
{
  put_s(&body, 211);
  put_u(&body, 1);
  put_u(&body, LJP_GC_PAUSE);
  put_u(&body, heap);
  put_u(&body, cycle);
  put_record(&payload, LJP_REC_GC, &body);
}

static void put_producers_block(struct buf *file, uint64_t seq,
                                unsigned producer_id)
{
  struct ljp_block_head head = test_head(seq);
  head.producer = producer_id;
  head.stream += more;
  put_block_head(file, head, &payload);
}

static void define(void)
{
  static const char a_x[] = "route\0/a\0tenant\0x";
  static const char a_y[] = "route\0/a\0tenant\0y";
  static const char b[] = "route\0/b";
  strings(LJP_REC_THREAD, (const uint64_t[]){1, 4242}, 2, "main", NULL);
  strings(LJP_REC_THREAD, (const uint64_t[]){2, 4243}, 2, "worker", NULL);
  strings(LJP_REC_VM, (const uint64_t[]){1, 1}, 2, "vm", NULL);
  producer(1, LJP_PRODUCER_CPU, 1, 1000003);
  producer(2, LJP_PRODUCER_CPU, 2, 1000003);
  producer(3, LJP_PRODUCER_MEMORY, 1, 0);
  strings(LJP_REC_MODULE, (const uint64_t[]){MODULE, 0, 0, 0x10000, 0}, 5, "",
          "/lib/mine.so");
  strings(LJP_REC_PROTO, (const uint64_t[]){HANDLE, 1, 9, 0}, 4, "@app.lua",
          "handle");
  strings(LJP_REC_PROTO, (const uint64_t[]){RENDER, 11, 19, 0}, 4, "@app.lua",
          "render");
  strings(LJP_REC_PROTO, (const uint64_t[]){QUERY, 21, 29, 0}, 4, "@app.lua",
          "query");
  labels(id_a_x, a_x, sizeof a_x);
  labels(ID_A_Y, a_y, sizeof a_y);
  labels(id_b, b, sizeof b);
}

int main(int argc, char **argv)
{
  struct buf file = {0};
  if (argc < 2) {
    fprintf(stderr, "usage: labelled_stream FILE [MORE]\n");
    return 2;
  }
  if (argc > 2 && (more = strtoul(argv[2], NULL, 10))) {
    id_a_x = 3;
    id_b = 1;
  }
  define();
  uint64_t ax = node(0, LJP_FRAME_LABELS, 0, id_a_x);
  uint64_t ay = node(0, LJP_FRAME_LABELS, 0, ID_A_Y);
  uint64_t b = node(0, LJP_FRAME_LABELS, 0, id_b);
  uint64_t render_ax = stack(ax, RENDER), query_ay = stack(ay, QUERY);
  uint64_t query_b = stack(b, QUERY), query = stack(0, QUERY);
  samples(render_ax, 31);
  samples(query_ay, 17);
  samples(query_b, 11 + (unsigned)more);
  put_producers_block(&file, 0, 1);
  samples(query_b, 7);
  samples(query, 5);
  samples(b, 3); /* Without a stack. */
  put_producers_block(&file, 1, 2);
  gc(0, 1);
  mem(LJP_MEM_ALLOC, 0x1000, 1009, render_ax);
  mem(LJP_MEM_ALLOC, 0x2000, 2003, query_ay);
  mem(LJP_MEM_ALLOC, 0x3000, 3001, query_b);
  mem(LJP_MEM_ALLOC, 0x4000, 4001, query_b);
  mem(LJP_MEM_ALLOC, 0x5000, 503, query);
  mem(LJP_MEM_FREE, 0x3000, 3001, query_ay); /* By another request. */
  gc(7516, 2);
  gc(7516, 4);
  put_producers_block(&file, 2, 3);
  put_s(&body, 11);
  put_u(&body, 0);
  put_u(&body, 0);
  put_str(&body, "stopped");
  put_record(&payload, LJP_REC_END, &body);
  put_producers_block(&file, 3, 0);
  FILE *out = fopen(argv[1], "wb");
  bool ok = out && fwrite(file.data, 1, file.len, out) == file.len;
  if (out && fclose(out))
    ok = false;
  if (!ok)
    perror(argv[1]);
  buf_free(&file);
  buf_free(&payload);
  buf_free(&body);
  return !ok;
}
