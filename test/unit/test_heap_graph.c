/* The graph of a heap snapshot: what a made-up heap retains and by what paths;
** and no record, whatever it holds, does any harm. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "parsers/heap/dominators.h"
#include "parsers/heap/graph.h"
#include "src/base/block.h"
#include "src/writer/heap_writer.h"
#include "test/stream/fixed_process.h"
#include "tools/heap/kinds.h"

static struct {
  uint8_t data[1 << 20];
  size_t len;
} file;

static size_t take(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  assert_true(file.len + len <= sizeof file.data);
  memcpy(file.data + file.len, *data, len);
  file.len += len;
  return len;
}

/* The graph reads files. */
static enum ljp_status load_number(struct ljp_graph *g, uint32_t number)
{
  char path[64];
  int fd = memfd_create("heap", MFD_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, file.data, file.len), (ssize_t)file.len);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  enum ljp_status status = ljp_graph_load(g, path, number);
  close(fd);
  return status;
}

static enum ljp_status load(struct ljp_graph *g)
{
  return load_number(g, 0);
}

/* -- A small heap ---------------------------------------------------------- */

enum node {
  VM = 1,
  GLOBALS,
  CACHE, /* _G.cache */
  ENTRY, /* cache[1], which has the key "name" */
  NAME,
  FUNCTION, /* _G.get */
  PROTO,
  CHUNK,
  UPVALUE, /* of the function */
  HIDDEN,  /* its value */
  WEAK,    /* is held weakly by the cache only */
  GARBAGE,
  KEY_CACHE,
  KEY_GET,
  NODES
};

static uint64_t at(enum node node)
{
  return UINT64_C(0x10000) + (uint64_t)node * 64;
}

static struct ljp_heap_out *out;

static void object(enum node node, enum ljp_mem_type type, uint64_t bytes,
                   const char *text)
{
  const struct ljp_heap_object o = {.address = at(node),
                                    .bytes = bytes,
                                    .type = (uint8_t)type,
                                    .numbers = {type == LJP_MEM_TYPE_PROTO},
                                    .text = text,
                                    .text_bytes = strlen(text)};
  assert_true(out->object(out, &o));
}

static void put_tables(void)
{
  object(VM, LJP_MEM_TYPE_OTHER, 1000, "");
  out->ref(out, LJP_HEAP_HOW_ROOT, LJP_HEAP_ROOT_GLOBALS, at(GLOBALS));
  out->object_end(out);
  object(GLOBALS, LJP_MEM_TYPE_TABLE, 100, "");
  out->field(out, LJP_HEAP_HOW_FIELD, at(KEY_CACHE), at(CACHE));
  out->field(out, LJP_HEAP_HOW_FIELD, at(KEY_GET), at(FUNCTION));
  out->object_end(out);
  object(CACHE, LJP_MEM_TYPE_TABLE, 10, "");
  out->ref(out, LJP_HEAP_HOW_ITEM, 1, at(ENTRY));
  out->ref(out, LJP_HEAP_HOW_ITEM | LJP_HEAP_WEAK, 2, at(WEAK));
  out->object_end(out);
  object(ENTRY, LJP_MEM_TYPE_TABLE, 7, "");
  out->ref(out, LJP_HEAP_HOW_KEY, 0, at(NAME));
  out->ref(out, LJP_HEAP_HOW_METATABLE, 0, at(CACHE)); /* a cycle */
  out->object_end(out);
}

static void put_rest(void)
{
  object(FUNCTION, LJP_MEM_TYPE_FUNCTION, 40, "");
  out->ref(out, LJP_HEAP_HOW_PROTOTYPE, 0, at(PROTO));
  out->ref(out, LJP_HEAP_HOW_UPVALUE, 1, at(UPVALUE));
  out->object_end(out);
  static const char names[] = "first\0rows";
  const struct ljp_heap_object proto = {.address = at(PROTO),
                                        .bytes = 50,
                                        .type = LJP_MEM_TYPE_PROTO,
                                        .numbers = {12, 19},
                                        .text = names,
                                        .text_bytes = sizeof names};
  out->object(out, &proto);
  out->ref(out, LJP_HEAP_HOW_CHUNK, 0, at(CHUNK));
  out->object_end(out);
  object(UPVALUE, LJP_MEM_TYPE_UPVALUE, 48, "");
  out->ref(out, LJP_HEAP_HOW_VALUE, 0, at(HIDDEN));
  out->object_end(out);
  object(HIDDEN, LJP_MEM_TYPE_TABLE, 4000, "");
  out->object_end(out);
  object(WEAK, LJP_MEM_TYPE_TABLE, 3, "");
  out->object_end(out);
  object(GARBAGE, LJP_MEM_TYPE_TABLE, 5, "");
  out->ref(out, LJP_HEAP_HOW_ITEM, 1, at(HIDDEN));
  out->object_end(out);
  object(NAME, LJP_MEM_TYPE_STRING, 30, "name");
  out->object_end(out);
  object(CHUNK, LJP_MEM_TYPE_STRING, 31, "@app.lua");
  out->object_end(out);
  object(KEY_CACHE, LJP_MEM_TYPE_STRING, 32, "cache");
  out->object_end(out);
  object(KEY_GET, LJP_MEM_TYPE_STRING, 33, "a key");
  out->object_end(out);
}

/* Several snapshots; all but the first lack what put_rest() has. */
static void put_heaps(unsigned count)
{
  static const struct ljp_writer_options options = {
      .stream = 77, .put_process = fixed_process};
  struct ljp_heap_about about = {1, 1, LJP_HEAP_TAKEN_COPY, 64};
  const struct ljp_heap_head head = {5389, 8, 24, 0};
  struct ljp_sink sink;
  struct ljp_writer *w;
  struct ljp_heap_writer *h;
  struct ljp_heap_sums sums;
  file.len = 0;
  ljp_sink_init_callback(&sink, take, NULL);
  assert_int_equal(ljp_writer_new(&w, &sink, &options), 0);
  assert_int_equal(ljp_writer_start(w, 1000), 0);
  assert_int_equal(ljp_heap_writer_new(&h, w), 0);
  for (; about.snapshot <= count; about.snapshot++) {
    out = ljp_heap_writer_begin(h, &about, &head, 2000);
    put_tables();
    if (about.snapshot == 1)
      put_rest();
    assert_int_equal(ljp_heap_writer_end(h, 3000, &sums), 0);
  }
  assert_int_equal(ljp_writer_put_end(w), 0);
  ljp_heap_writer_free(h);
  ljp_writer_free(w);
  ljp_sink_fini(&sink);
}

static void put_heap(void)
{
  put_heaps(1);
}

static uint32_t find(const struct ljp_graph *g, enum node node)
{
  uint32_t i = 1;
  while (i < g->count && g->address[i] != at(node))
    i++;
  assert_true(i < g->count);
  return i;
}

static void check_node(const struct ljp_graph *g, enum node node,
                       enum node dominator, uint64_t retained, const char *path)
{
  struct ljp_heap_text text = {.len = 0};
  uint32_t i = find(g, node);
  assert_int_equal(g->retained[i], retained);
  assert_int_equal(g->dominator[i], dominator ? find(g, dominator) : 0);
  ljp_heap_path(g, i, &text);
  assert_string_equal(text.data, path);
}

static void a_heap_has_its_retained_sizes_and_paths(void **unused)
{
  (void)unused;
  struct ljp_graph g;
  put_heap();
  assert_int_equal(load(&g), LJP_OK);
  assert_int_equal(g.count, NODES);
  assert_true(g.ended && !g.missing_refs);
  check_node(&g, GLOBALS, VM, 100 + 47 + 4169 + 65, "_G");
  check_node(&g, CACHE, GLOBALS, 10 + 7 + 30, "_G.cache");
  check_node(&g, ENTRY, CACHE, 7 + 30, "_G.cache[1]");
  check_node(&g, NAME, ENTRY, 30, "_G.cache[1] <key>");
  check_node(&g, FUNCTION, GLOBALS, 40 + 50 + 31 + 48 + 4000, "_G[\"a key\"]");
  check_node(&g, HIDDEN, UPVALUE, 4000,
             "_G[\"a key\"] upvalue rows of function app.lua:12");
  const enum node lost[] = {WEAK, GARBAGE};
  for (unsigned i = 0; i < 2; i++) {
    struct ljp_heap_text text = {.len = 0};
    uint32_t node = find(&g, lost[i]);
    assert_int_equal(g.dominator[node], LJP_DOMINATED_BY_NONE);
    ljp_heap_path(&g, node, &text);
    assert_string_equal(text.data, "garbage");
  }
  struct ljp_heap_text text = {.len = 0};
  ljp_heap_describe(&g, find(&g, ENTRY), &text);
  assert_string_equal(text.data, "table {name}");
  ljp_graph_fini(&g);
}

static void check_kind(const struct ljp_graph *g,
                       const struct ljp_heap_kinds *kinds, const char *text,
                       uint64_t objects, uint64_t own, uint64_t retained)
{
  for (uint32_t i = 0; i < kinds->count; i++) {
    struct ljp_heap_text t = {.len = 0};
    const struct ljp_heap_kind *kind = &kinds->list[i];
    ljp_heap_kind_text(g, kind, &t);
    if (strcmp(t.data, text) != 0)
      continue;
    assert_int_equal(kind->sums.objects, objects);
    assert_int_equal(kind->sums.own, own);
    assert_int_equal(kind->sums.retained, retained);
    return;
  }
  fail_msg("no kind %s", text);
}

static void objects_have_kinds(void **unused)
{
  (void)unused;
  struct ljp_graph g;
  struct ljp_heap_kinds kinds;
  struct ljp_heap_tree tree;
  put_heap();
  assert_int_equal(load(&g), LJP_OK);
  assert_int_equal(ljp_heap_kinds_find(&g, &kinds), LJP_OK);
  assert_int_equal(ljp_heap_tree_init(&tree, &g), LJP_OK);
  ljp_heap_tree_add_up(&tree, &g, kinds.of, kinds.list, sizeof *kinds.list);
  ljp_heap_tree_fini(&tree);
  /* The cache, and garbage, which retains itself only. */
  check_kind(&g, &kinds, "table of items", 2, 10 + 5, 10 + 7 + 30 + 5);
  check_kind(&g, &kinds, "table with the metatable _G.cache", 1, 7, 7 + 30);
  check_kind(&g, &kinds, "table {a key, cache}", 1, 100, 100 + 47 + 4169 + 65);
  check_kind(&g, &kinds, "table of plain values, or empty", 2, 4003, 4003);
  check_kind(&g, &kinds, "function app.lua:12", 1, 40, 4169);
  check_kind(&g, &kinds, "string", 4, 30 + 31 + 32 + 33, 30 + 31 + 32 + 33);
  ljp_heap_kinds_fini(&kinds);
  ljp_graph_fini(&g);
}

static void a_snapshot_of_several_is_chosen(void **unused)
{
  (void)unused;
  struct ljp_graph g;
  put_heaps(3);
  assert_int_equal(load_number(&g, 1), LJP_OK);
  assert_int_equal(g.count, NODES);
  assert_true(g.number == 1 && g.snapshots == 3 && g.ended && !g.missing_refs);
  check_node(&g, CACHE, GLOBALS, 10 + 7 + 30, "_G.cache");
  ljp_graph_fini(&g);
  for (uint32_t number = 0; number < 4; number += 2) { /* 0: the last one. */
    assert_int_equal(load_number(&g, number), LJP_OK);
    assert_int_equal(g.count, 1 + 4);
    assert_true(g.number == (number ? number : 3) && g.ended);
    assert_int_equal(g.before, g.number - 1);
    ljp_graph_fini(&g);
  }
  assert_int_equal(load_number(&g, 4), LJP_ERR_FORMAT);
  assert_string_equal(g.error,
                      "there is no snapshot 4: it holds 3, numbered from 1");
  ljp_graph_fini(&g);
}

/* -- Hostile records ------------------------------------------------------- */

static uint32_t state;
static uint32_t next(uint32_t below)
{
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

/* Changes bytes of payloads, and makes the checksums right again. */
static void spoil(void)
{
  for (size_t block = 0; block < file.len;) {
    struct ljp_block_head head = {0};
    assert_int_equal(ljp_block_head_get(file.data + block, &head), LJP_OK);
    uint8_t *payload = file.data + block + LJP_BLOCK_HEAD_BYTES;
    for (unsigned n = next(4); n && head.stored_len > 300; n--)
      payload[next(head.stored_len)] ^= (uint8_t)(1u << next(8));
    head.payload_crc = ljp_crc32c(0, payload, head.stored_len);
    ljp_block_head_put(file.data + block, &head);
    block += LJP_BLOCK_HEAD_BYTES + head.stored_len;
  }
}

static void spoiled_records_do_no_harm(void **unused)
{
  (void)unused;
  unsigned loaded = 0;
  for (unsigned round = 0; round < 3000; round++) {
    struct ljp_graph g;
    put_heap();
    state = round;
    spoil();
    if (load(&g) == LJP_OK) {
      loaded++;
      struct ljp_heap_kinds kinds;
      assert_int_equal(ljp_heap_kinds_find(&g, &kinds), LJP_OK);
      for (uint32_t i = 0; i < kinds.count; i++) {
        struct ljp_heap_text text = {.len = 0};
        ljp_heap_kind_text(&g, &kinds.list[i], &text);
      }
      ljp_heap_kinds_fini(&kinds);
      for (uint32_t i = 1; i < g.count; i++) {
        struct ljp_heap_text text = {.len = 0};
        ljp_heap_path(&g, i, &text);
        ljp_heap_describe(&g, i, &text);
        assert_true(text.len < sizeof text.data && !text.data[text.len]);
      }
    } else {
      assert_true(g.error[0] != '\0');
    }
    ljp_graph_fini(&g);
  }
  assert_true(loaded > 1000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_heap_has_its_retained_sizes_and_paths),
      cmocka_unit_test(objects_have_kinds),
      cmocka_unit_test(a_snapshot_of_several_is_chosen),
      cmocka_unit_test(spoiled_records_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
