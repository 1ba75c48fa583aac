/* Fuzz target: any bytes as a stream, rewritten as 'ljprof merge' does it. The
** result must read back as the same items; with renumbered ids it must still be
** a stream. */
#include <sys/mman.h>
#include <unistd.h>

#include "parsers/stream/reader.h"
#include "test/support/fuzz_stream.h"
#include "tools/rewrite/objects_out.h"
#include "tools/rewrite/renumber.h"
#include "tools/rewrite/stream_out.h"

static struct ljp_reader first, second;

/* Findings about the stream. */
static bool is_left_out(unsigned what)
{
  return what >= LJP_ITEM_BLOCK && what != LJP_ITEM_REF;
}

static bool is_of_heap(unsigned what)
{
  return what == LJP_REC_OBJECTS || what == LJP_ITEM_REF;
}

/* Names an object again, whose references follow. */
static bool is_repeated(const struct ljp_item *item)
{
  return item->what == LJP_REC_OBJECTS &&
         item->u.object.type == LJP_MEM_TYPE_NONE;
}

/* The next item that comes from a record and is rewritten; NULL: there is
** none. */
static const struct ljp_item *next(struct ljp_reader *reader)
{
  const struct ljp_item *event;
  while (!ljp_reader_next(reader, &event) && event->what != LJP_ITEM_FINISH)
    if (!is_left_out(event->what) && !is_repeated(event))
      return event;
  return NULL;
}

static bool is_many(unsigned what)
{
  return what == LJP_REC_SAMPLES || what == LJP_REC_MEM ||
         what == LJP_REC_NODES;
}

/* Rewrites a stream. Returns false if epochs go back, which no writer does.
** Then the two streams cannot be compared: a block without usable records is
** not written, but it decides which node ids of later blocks are valid. */
static bool rewrite(struct ljp_stream_out *out, struct ljp_objects_out *objects,
                    struct ljp_reader *reader, struct ljp_renumber *map)
{
  const struct ljp_item *event;
  uint32_t epoch = 0;
  bool ascending = true;
  while (!ljp_reader_next(reader, &event) && event->what != LJP_ITEM_FINISH) {
    struct ljp_item moved;
    if (event->what == LJP_ITEM_BLOCK) {
      ascending = ascending && event->block->head.epoch >= epoch;
      epoch = event->block->head.epoch;
      ljp_objects_flush(objects);
      ljp_out_block_end(out);
      ljp_out_block(out, &event->block->head);
    }
    if (is_left_out(event->what))
      continue;
    ljp_renumber_item(map, event, &moved);
    if (is_of_heap(event->what)) {
      ljp_objects_put(objects, &moved);
      continue;
    }
    ljp_objects_flush(objects);
    if (is_many(event->what))
      ljp_out_event(out, &moved);
    else
      ljp_out_record(out, event->what, &moved.u);
  }
  ljp_objects_flush(objects);
  ljp_out_block_end(out);
  return ascending;
}

static void same_string(const char *a, const char *b)
{
  struct ljp_str x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  if (x.len != y.len || (x.len && memcmp(x.data, y.data, x.len) != 0))
    abort();
}

static void same_pairs(const char *a, const char *b)
{
  struct ljp_pairs x, y;
  uint64_t k, v, l, w;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  while (ljp_pairs_next(&x, &k, &v))
    if (!ljp_pairs_next(&y, &l, &w) || k != l || v != w)
      abort();
  if (ljp_pairs_next(&y, &l, &w))
    abort();
}

static void same_object(const struct ljp_rec_object *a,
                        const struct ljp_rec_object *b)
{
  same_string((const char *)&a->text, (const char *)&b->text);
  if (a->snapshot != b->snapshot || a->address != b->address ||
      a->bytes != b->bytes || a->type != b->type || a->flags != b->flags ||
      memcmp(a->numbers, b->numbers, sizeof a->numbers) != 0)
    abort();
}

static void same_ref(const struct ljp_rec_ref *a, const struct ljp_rec_ref *b)
{
  same_string((const char *)&a->name, (const char *)&b->name);
  if (a->snapshot != b->snapshot || a->object != b->object ||
      a->number != b->number || a->key != b->key || a->target != b->target ||
      a->how != b->how || a->flags != b->flags)
    abort();
}

static void same(const struct ljp_item *a, const struct ljp_item *b)
{
  unsigned count;
  if (a->what != b->what || a->time_ns != b->time_ns)
    abort();
  if (a->what == LJP_REC_OBJECTS) {
    same_object(&a->u.object, &b->u.object);
  } else if (a->what == LJP_ITEM_REF) {
    same_ref(&a->u.ref, &b->u.ref);
  } else if (a->what == LJP_REC_SAMPLES) {
    if (memcmp(&a->u.sample, &b->u.sample, sizeof a->u.sample) != 0)
      abort();
  } else if (a->what == LJP_REC_MEM) {
    if (memcmp(&a->u.mem, &b->u.mem, sizeof a->u.mem) != 0)
      abort();
  } else if (a->what == LJP_REC_NODES) {
    if (memcmp(&a->u.node, &b->u.node, sizeof a->u.node) != 0)
      abort();
  } else {
    const struct ljp_field *f = ljp_record_fields(a->what, &count);
    for (; count; count--, f++) {
      const char *x = (const char *)&a->u + f->offset;
      const char *y = (const char *)&b->u + f->offset;
      if (f->type == LJP_FIELD_STR)
        same_string(x, y);
      else if (f->type == LJP_FIELD_PAIRS)
        same_pairs(x, y);
      else if (memcmp(x, y, 8) != 0)
        abort();
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static int fd = -1;
  static uint8_t *bytes;
  enum { ROOM = 1 << 24 };
  struct ljp_stream_out out;
  struct ljp_objects_out *objects = ljp_objects_out_new(&out);
  struct ljp_renumber map = {0};
  if (fd < 0) {
    fd = memfd_create("rewritten", MFD_CLOEXEC);
    if (fd < 0 || !(bytes = malloc(ROOM)))
      abort();
  }
  for (int session = 0; session < 2; session++) {
    if (!objects || ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 ||
        !ljp_out_begin(&out, fd) || ljp_reader_memory(&first, data, size))
      abort();
    /* Missing blocks leave no gap here, because the blocks are renumbered. */
    bool comparable = rewrite(&out, objects, &first, &map);
    ljp_reader_fini(&first);
    ljp_out_end(&out);
    ssize_t n = pread(fd, bytes, ROOM, 0);
    if (n < 0 || out.error)
      abort();
    if (comparable && n && n < ROOM && session == 0 &&
        !ljp_reader_memory(&first, data, size) &&
        !ljp_reader_memory(&second, bytes, (size_t)n)) {
      const struct ljp_item *a, *b;
      do {
        a = next(&first);
        b = next(&second);
        if (a && b)
          same(a, b);
        else if (a || b)
          abort();
      } while (a);
      ljp_reader_fini(&first);
      ljp_reader_fini(&second);
    }
    ljp_renumber_session(&map, UINT64_C(1) << 40);
  }
  ljp_objects_out_free(objects);
  return 0;
}
