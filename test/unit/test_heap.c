/* Records of heap snapshots: what the writer takes, the reader yields; numbers
** are those of RFC 7; damage is reported. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "parsers/stream/names.h"
#include "parsers/stream/reader.h"
#include "src/writer/heap_writer.h"
#include "test/stream/fixed_process.h"

/* -- A snapshot that the test makes up ------------------------------------- */

enum { OBJECTS = 1009, TEXT_LIMIT = 31, LONG_LIST = 30011 };
static const uint64_t base = UINT64_C(0x7f0000000000);

static struct {
  uint8_t *data;
  size_t len, room;
} file;

static size_t take(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  while (file.len + len > file.room) {
    file.room = file.room ? 2 * file.room : 4096;
    file.data = realloc(file.data, file.room);
  }
  memcpy(file.data + file.len, *data, len);
  file.len += len;
  return len;
}

static uint32_t state;
static uint32_t next(uint32_t below)
{
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

static uint64_t address(uint32_t i)
{
  return base + (uint64_t)i * 40;
}

static char *log_text;
static size_t log_len, log_room;
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
  va_list args;
  if (log_len + 8192 > log_room) {
    log_room = 2 * log_room + 16384;
    log_text = realloc(log_text, log_room);
  }
  va_start(args, format);
  log_len +=
      (size_t)vsnprintf(log_text + log_len, log_room - log_len, format, args);
  va_end(args);
}

/* One reference, to the writer if there is one, and into the log. */
static void put_ref(struct ljp_heap_out *out, uint32_t i)
{
  static const unsigned hows[] = {
      LJP_HEAP_HOW_KEY,       LJP_HEAP_HOW_ITEM,      LJP_HEAP_HOW_INTEGER,
      LJP_HEAP_HOW_NUMBER,    LJP_HEAP_HOW_METATABLE, LJP_HEAP_HOW_FRAME,
      LJP_HEAP_HOW_UPVALUE,   LJP_HEAP_HOW_ROOT,      LJP_HEAP_HOW_BOOLEAN,
      LJP_HEAP_HOW_TYPE_NAME,
  };
  unsigned how = hows[next(sizeof hows / sizeof *hows)];
  enum ljp_heap_shape shape = ljp_heap_shape(how);
  unsigned weak = next(5) ? 0 : LJP_HEAP_WEAK;
  uint64_t number = next(300), target = address(next(OBJECTS));
  if (shape == LJP_HEAP_SHAPE_PLAIN)
    number = 0;
  else if (shape == LJP_HEAP_SHAPE_BITS)
    number = number << 53 | i;
  else if (shape == LJP_HEAP_SHAPE_SIGNED && next(2))
    number = (uint64_t) - (int64_t)number;
  switch (next(8)) {
  case 0:
    how = LJP_HEAP_HOW_FIELD | weak | (next(2) ? LJP_HEAP_WEAK_KEY : 0);
    uint64_t key = address(next(7));
    assert_true(out->field(out, how, key, target));
    note("ref %x 0 %lx %lx ''\n", how, (long)key, (long)target);
    break;
  case 1:
    assert_true(
        out->named(out, LJP_HEAP_HOW_LOCAL, "some name", 4 + i % 6, target));
    note("ref %x 0 0 %lx '%.*s'\n", LJP_HEAP_HOW_LOCAL, (long)target,
         (int)(4 + i % 6), "some name");
    break;
  default:
    assert_true(out->ref(out, how | weak, number, target));
    note("ref %x %lx 0 %lx ''\n", how | weak, (long)number, (long)target);
  }
}

static void put_object(struct ljp_heap_out *out, uint32_t i, uint32_t refs)
{
  static const char text[] = "the contents of a string that is rather long";
  struct ljp_heap_object o = {.address = address(i),
                              .bytes = next(3000),
                              .type = (uint8_t)(1 + next(19)),
                              .flags = (uint8_t)(next(3) ? 0 : next(256)),
                              .text = text,
                              .text_bytes = next(TEXT_LIMIT)};
  unsigned count = ljp_heap_numbers(o.type);
  for (unsigned n = 0; n < count; n++)
    o.numbers[n] = (uint64_t)next(1000) << next(50);
  assert_true(out->object(out, &o));
  note("object %lx %lu %u %x %lx %lx %lx '%.*s'\n", (long)o.address,
       (long)o.bytes, o.type, o.flags, (long)o.numbers[0], (long)o.numbers[1],
       (long)o.numbers[2], ljp_heap_has_text(o.type) ? (int)o.text_bytes : 0,
       text);
  while (refs--)
    put_ref(out, i);
  assert_true(out->object_end(out));
}

static void note_ctype(uint64_t number, unsigned kind, uint64_t bytes,
                       uint64_t of)
{
  note("ctype %lu %u %lu %lu\n", (long)number, kind, (long)bytes, (long)of);
}

static void put_ctypes(struct ljp_heap_out *out)
{
  for (uint32_t i = 1; i < 67; i++) {
    const struct ljp_heap_ctype type = {.number = i * 3,
                                        .kind = (uint8_t)(1 + i % 18),
                                        .bytes = UINT64_C(1) << next(40),
                                        .of = next(200)};
    assert_true(out->ctype(out, &type));
    note_ctype(type.number, type.kind, type.bytes, type.of);
  }
}

/* Writes a stream with one snapshot into `file`, and its log. */
static struct ljp_heap_sums put_snapshot(uint32_t seed)
{
  static const struct ljp_writer_options options = {
      .stream = 77, .put_process = fixed_process};
  const struct ljp_heap_about about = {1, 3, LJP_HEAP_TAKEN_PLACE, TEXT_LIMIT};
  const struct ljp_heap_head head = {12345, 8, 24, 2};
  struct ljp_sink sink;
  struct ljp_writer *w;
  struct ljp_heap_writer *h;
  struct ljp_heap_sums sums;
  state = seed;
  file.len = log_len = 0;
  note("begin\n");
  ljp_sink_init_callback(&sink, take, NULL);
  assert_int_equal(ljp_writer_new(&w, &sink, &options), 0);
  assert_int_equal(ljp_writer_start(w, 1000), 0);
  assert_int_equal(ljp_heap_writer_new(&h, w), 0);
  struct ljp_heap_out *out = ljp_heap_writer_begin(h, &about, &head, 2000);
  put_ctypes(out);
  for (uint32_t i = 0; i < OBJECTS; i++)
    put_object(out, i, i == 500 ? LONG_LIST : next(4) ? next(9) : 0);
  assert_int_equal(ljp_heap_writer_end(h, 3000, &sums), 0);
  assert_int_equal(ljp_writer_put_end(w), 0);
  ljp_heap_writer_free(h);
  ljp_writer_free(w);
  ljp_sink_fini(&sink);
  return sums;
}

/* -- Reading it back ------------------------------------------------------- */

static struct {
  uint64_t objects, refs, bytes, bads, all_bytes;
  struct ljp_rec_heap heap;
  struct ljp_rec_heap_end end;
  bool clean;
} got;

static void got_object(const struct ljp_rec_object *o)
{
  if (o->type == LJP_MEM_TYPE_NONE)
    return;
  got.objects++;
  got.all_bytes +=
      ljp_heap_all_bytes(o->type, o->flags, o->bytes, o->numbers, 8, 24);
  note("object %lx %lu %u %x %lx %lx %lx '%.*s'\n", (long)o->address,
       (long)o->bytes, o->type, o->flags, (long)o->numbers[0],
       (long)o->numbers[1], (long)o->numbers[2], (int)o->text.len,
       o->text.data);
}

static void got_ref(const struct ljp_rec_ref *r)
{
  got.refs += r->key ? 2 : 1;
  note("ref %x %lx %lx %lx '%.*s'\n", (unsigned)(r->how | r->flags),
       (long)r->number, (long)r->key, (long)r->target, (int)r->name.len,
       r->name.data);
}

static void read_back(const uint8_t *data, size_t len)
{
  static struct ljp_reader reader;
  const struct ljp_item *item;
  memset(&got, 0, sizeof got);
  log_len = 0;
  note("begin\n");
  assert_int_equal(ljp_reader_memory(&reader, data, len), 0);
  for (;;) {
    enum ljp_status status = ljp_reader_next(&reader, &item);
    if (status || item->what == LJP_ITEM_FINISH)
      break;
    if (item->what == LJP_REC_OBJECTS)
      got_object(&item->u.object);
    else if (item->what == LJP_ITEM_REF)
      got_ref(&item->u.ref);
    else if (item->what == LJP_REC_HEAP_TYPE)
      note_ctype(item->u.heap_type.number, (unsigned)item->u.heap_type.kind,
                 item->u.heap_type.bytes, item->u.heap_type.of);
    else if (item->what == LJP_REC_HEAP)
      got.heap = item->u.heap;
    else if (item->what == LJP_REC_HEAP_END)
      got.end = item->u.heap_end;
    got.bads += item->what == LJP_ITEM_BAD;
  }
  got.clean = item->what == LJP_ITEM_FINISH && item->u.finish.clean;
  ljp_reader_fini(&reader);
}

static void the_reader_yields_what_the_writer_took(void **unused)
{
  (void)unused;
  for (uint32_t seed = 1; seed <= 7; seed++) {
    struct ljp_heap_sums sums = put_snapshot(seed);
    char *wanted = log_text;
    log_text = NULL;
    log_len = log_room = 0;
    read_back(file.data, file.len);
    assert_string_equal(log_text, wanted);
    free(wanted);
    assert_true(got.clean && got.bads == 0);
    assert_int_equal(got.objects, sums.objects);
    assert_int_equal(got.refs, sums.refs);
    assert_true(got.all_bytes == sums.bytes);
    assert_int_equal(got.end.objects, OBJECTS);
    assert_int_equal(got.end.refs, sums.refs);
    assert_true(got.end.bytes == sums.bytes);
    assert_int_equal(got.heap.vm, 3);
    assert_int_equal(got.heap.taken, LJP_HEAP_TAKEN_PLACE);
    assert_int_equal(got.heap.heap_bytes, 12345);
    assert_int_equal(got.heap.phase, 2);
    assert_int_equal(got.heap.text_limit, TEXT_LIMIT);
  }
}

static void damaged_records_end_and_never_crash(void **unused)
{
  (void)unused;
  /* Whatever the bytes of a record: the decoder stops at its end. */
  struct ljp_heap_decoder *d = calloc(1, sizeof *d);
  static uint8_t bytes[257 + LJP_BLOCK_SLACK];
  struct ljp_item item;
  uint64_t bads = 0;
  state = 5;
  for (int round = 0; round < 20000; round++) {
    size_t len = 1 + next(256);
    for (size_t i = 0; i < len; i++)
      bytes[i] = (uint8_t)(next(2) ? next(256) : next(32));
    const uint8_t *p = bytes, *end = bytes + len;
    enum ljp_bad_reason bad = ljp_heap_decode_begin(d, &p, end);
    while (!bad && p < end) {
      const uint8_t *before = p;
      bad = ljp_heap_decode(d, &p, end, &item);
      assert_true(bad || p > before);
      assert_true(p <= end);
      if (!bad && item.what == LJP_ITEM_REF)
        assert_true(item.u.ref.target != 0);
    }
    bads += bad != 0;
  }
  assert_true(bads > 1000);
  free(d);
}

static void a_record_that_ends_in_references_is_malformed(void **unused)
{
  (void)unused;
  struct ljp_heap_decoder *d = calloc(1, sizeof *d);
  struct ljp_item item;
  static const uint8_t bytes[64] = {1,
                                    LJP_MEM_TYPE_UPVALUE | LJP_HEAP_HAS_REFS,
                                    32,
                                    40,
                                    LJP_HEAP_HOW_VALUE,
                                    8,
                                    LJP_HEAP_HOW_END};
  const uint8_t *p = bytes;
  assert_int_equal(ljp_heap_decode_begin(d, &p, bytes + 6), LJP_BAD_NONE);
  assert_int_equal(ljp_heap_decode(d, &p, bytes + 6, &item), LJP_BAD_NONE);
  assert_int_equal(item.u.object.address, 16 * 8);
  assert_int_equal(ljp_heap_decode(d, &p, bytes + 6, &item), LJP_BAD_NONE);
  assert_int_equal(item.what, LJP_ITEM_REF);
  assert_int_equal(item.u.ref.target, (16 + 2) * 8);
  assert_ptr_equal(p, bytes + 6);
  assert_int_equal(ljp_heap_decode_end(d), LJP_BAD_SHORT);
  assert_int_equal(ljp_heap_decode(d, &p, bytes + 7, &item), LJP_BAD_NONE);
  assert_int_equal(ljp_heap_decode_end(d), LJP_BAD_NONE);
  free(d);
}

/* The first address counts from 0, the next one from the one before it. */
static void an_address_that_cannot_be_is_malformed(void **unused)
{
  (void)unused;
  static const struct {
    uint8_t first, next; /* Zigzag: 32 is 16, 31 is -16. */
    enum ljp_bad_reason bad;
  } tries[] = {
      {32, 2, LJP_BAD_NONE},     {32, 29, LJP_BAD_NONE},
      {32, 31, LJP_BAD_ADDRESS}, /* 0 */
      {32, 33, LJP_BAD_ADDRESS}, /* below 0 */
      {0, 2, LJP_BAD_ADDRESS},   {1, 2, LJP_BAD_ADDRESS},
  };
  for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
    struct ljp_heap_decoder *d = calloc(1, sizeof *d);
    struct ljp_item item;
    const uint8_t bytes[] = {1,  LJP_MEM_TYPE_UPVALUE, tries[i].first,
                             40, LJP_MEM_TYPE_UPVALUE, tries[i].next,
                             40};
    const uint8_t *p = bytes, *end = bytes + sizeof bytes;
    assert_int_equal(ljp_heap_decode_begin(d, &p, end), LJP_BAD_NONE);
    enum ljp_bad_reason bad = ljp_heap_decode(d, &p, end, &item);
    if (!bad)
      bad = ljp_heap_decode(d, &p, end, &item);
    assert_int_equal(bad, tries[i].bad);
    free(d);
  }
}

/* -- The lists ------------------------------------------------------------- */

static void the_lists_are_in_the_rfc(void **unused)
{
  (void)unused;
  char row[600];
  static char rfc[1 << 16];
  FILE *f = fopen(LJP_SOURCE_DIR "/doc/rfc/0007-heap-snapshots.md", "rb");
  assert_non_null(f);
  assert_true(fread(rfc, 1, sizeof rfc - 1, f) > 1000);
  fclose(f);
#define MUST_HAVE                                                              \
  if (!strstr(rfc, row))                                                       \
  fail_msg("the RFC lacks: %s", row)
#define LJP_X(name, number, shape, text)                                       \
  snprintf(row, sizeof row, "| %s | %d | %s |", #name, number, #shape);        \
  MUST_HAVE;
  LJP_HEAP_HOW_LIST(LJP_X)
#undef LJP_X
#define LJP_X(name, number, text)                                              \
  snprintf(row, sizeof row, "| %s | 0x%02x |", #name, number);                 \
  MUST_HAVE;
  LJP_HEAP_FLAG_LIST(LJP_X)
#undef LJP_X
  size_t n;
#define ADD(name, number, text)                                                \
  n += (size_t)snprintf(row + n, sizeof row - n, "%d %s, ", number, #name);
#define LIST(list, name)                                                       \
  n = (size_t)snprintf(row, sizeof row, "| `%s` | ", name);                    \
  list(ADD) snprintf(row + n - 2, sizeof row - n + 2, " |");                   \
  MUST_HAVE;
  LIST(LJP_HEAP_ROOT_LIST, "HEAP_ROOT")
  LIST(LJP_HEAP_TAKEN_LIST, "HEAP_TAKEN")
  LIST(LJP_HEAP_CTYPE_LIST, "HEAP_CTYPE")
#undef LIST
#undef ADD
#undef MUST_HAVE
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_reader_yields_what_the_writer_took),
      cmocka_unit_test(damaged_records_end_and_never_crash),
      cmocka_unit_test(a_record_that_ends_in_references_is_malformed),
      cmocka_unit_test(an_address_that_cannot_be_is_malformed),
      cmocka_unit_test(the_lists_are_in_the_rfc),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(file.data);
  free(log_text);
  return failed;
}
