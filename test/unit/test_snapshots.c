/* Which heap snapshots of a stream are whole, and what is said of those that are not. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "parsers/stream/snapshots.h"
#include "src/base/heap_format.h"

enum { VM = 3, SLOT_BYTES = 8, NODE_BYTES = 24, TOLD = 80 };

static struct ljp_snapshots followed;
static struct ljp_snapshot told[TOLD];
static unsigned told_count;

static void tell(void *ctx, const struct ljp_snapshot *snapshot)
{
  assert_ptr_equal(ctx, told);
  assert_true(told_count < TOLD);
  assert_false(ljp_snapshot_is_whole(snapshot));
  told[told_count++] = *snapshot;
}

static int begin(void **unused)
{
  (void)unused;
  followed = (struct ljp_snapshots){.missing = tell, .ctx = told};
  told_count = 0;
  return 0;
}

static void take(struct ljp_item item)
{
  ljp_snapshots_take(&followed, &item);
}

static void put_moment(uint64_t id)
{
  take((struct ljp_item){.what = LJP_REC_HEAP_MOMENT,
                         .u.heap_moment = {.snapshot = id, .vm = VM}});
}

static void put_begin(uint64_t id)
{
  take((struct ljp_item){.what = LJP_REC_HEAP,
                         .u.heap = {.snapshot = id,
                                    .vm = VM,
                                    .slot_bytes = SLOT_BYTES,
                                    .node_bytes = NODE_BYTES}});
}

/* A table of 64 + 5 * 8 + 2 * 24 bytes, with a field and its key, and an item. */
static void put_object(uint64_t id)
{
  take((struct ljp_item){.what = LJP_REC_OBJECTS,
                         .u.object = {.snapshot = id,
                                      .type = LJP_MEM_TYPE_TABLE,
                                      .bytes = 64,
                                      .numbers = {5, 2}}});
  take((struct ljp_item){.what = LJP_ITEM_REF,
                         .u.ref = {.snapshot = id, .key = 1, .target = 2}});
  take((struct ljp_item){.what = LJP_ITEM_REF,
                         .u.ref = {.snapshot = id, .target = 2}});
}

enum { OBJECT_BYTES = 64 + 5 * SLOT_BYTES + 2 * NODE_BYTES, OBJECT_REFS = 3 };

static void put_end(uint64_t id, uint64_t objects, uint64_t refs,
                    uint64_t bytes)
{
  take((struct ljp_item){
      .what = LJP_REC_HEAP_END,
      .u.heap_end = {
          .snapshot = id, .objects = objects, .refs = refs, .bytes = bytes}});
}

static void put_whole(uint64_t id)
{
  put_begin(id);
  put_object(id);
  put_object(id);
  put_end(id, 2, 2 * OBJECT_REFS, 2 * OBJECT_BYTES);
}

static void finish(void)
{
  take((struct ljp_item){.what = LJP_ITEM_FINISH});
}

static void nothing_is_said_of_whole_snapshots(void **unused)
{
  (void)unused;
  put_moment(7);
  put_whole(7);
  put_whole(8);
  finish();
  assert_int_equal(told_count, 0);
  assert_int_equal(followed.begun, 2);
  assert_int_equal(followed.incomplete, 0);
}

static void an_object_a_reference_or_bytes_are_missing(void **unused)
{
  (void)unused;
  for (unsigned which = 0; which < 3; which++) {
    put_begin(10 + which);
    put_object(10 + which);
    put_end(10 + which, 1 + (which == 0), OBJECT_REFS + (which == 1),
            OBJECT_BYTES + (which == 2));
    assert_int_equal(told_count, which + 1);
    assert_int_equal(told[which].id, 10 + which);
    assert_int_equal(told[which].vm, VM);
    assert_int_equal(told[which].number, which + 1);
    assert_int_equal(told[which].objects, 1);
    assert_int_equal(told[which].refs, OBJECT_REFS);
    assert_int_equal(told[which].bytes, OBJECT_BYTES);
    assert_true(told[which].begins && told[which].ends);
  }
  finish();
  assert_int_equal(told_count, 3);
  assert_int_equal(followed.incomplete, 3);
}

static void the_end_is_missing(void **unused)
{
  (void)unused;
  put_begin(1);
  put_object(1);
  assert_int_equal(told_count, 0); /* More may follow. */
  put_begin(2);
  assert_int_equal(told_count, 1);
  assert_int_equal(told[0].id, 1);
  assert_true(told[0].begins && !told[0].ends);
  put_object(2);
  finish();
  assert_int_equal(told_count, 2);
  assert_int_equal(told[1].id, 2);
  assert_int_equal(told[1].number, 2);
  finish(); /* All has been said. */
  assert_int_equal(told_count, 2);
  assert_int_equal(followed.begun, 2);
  assert_int_equal(followed.incomplete, 2);
}

static void the_beginning_is_missing(void **unused)
{
  (void)unused;
  put_object(4);
  put_end(4, 1, OBJECT_REFS, 64);
  assert_int_equal(told_count, 1);
  assert_true(!told[0].begins && told[0].ends && !told[0].announced);
  assert_int_equal(told[0].vm, 0);
  assert_int_equal(told[0].number, 0);
  put_end(5, 0, 0, 0);
  assert_int_equal(told_count, 2);
  put_whole(6);
  assert_int_equal(followed.begun, 1);
  assert_int_equal(followed.incomplete, 2);
  assert_int_equal(told_count, 2);
}

static void records_of_two_snapshots_are_not_added_up(void **unused)
{
  (void)unused;
  put_begin(1);
  put_object(1);
  put_object(2);
  put_end(2, 1, OBJECT_REFS, OBJECT_BYTES);
  assert_int_equal(told_count, 2);
  assert_int_equal(told[0].id, 1);
  assert_int_equal(told[0].objects, 1);
  assert_int_equal(told[1].id, 2);
  assert_int_equal(told[1].objects, 1);
}

/* A type of C, or whatever else is no object of the heap. */
static void a_record_without_a_type_is_no_object(void **unused)
{
  (void)unused;
  put_begin(1);
  take((struct ljp_item){
      .what = LJP_REC_OBJECTS,
      .u.object = {.snapshot = 1, .type = LJP_MEM_TYPE_NONE, .bytes = 100}});
  put_end(1, 0, 0, 0);
  assert_int_equal(told_count, 0);
}

static void announced_and_never_begun(void **unused)
{
  (void)unused;
  for (uint64_t id = 1; id <= 4; id++)
    put_moment(id);
  put_whole(1);
  put_whole(3);
  assert_int_equal(told_count, 0);
  finish();
  assert_int_equal(told_count, 2);
  for (unsigned i = 0; i < 2; i++) {
    assert_true(told[i].announced && !told[i].begins && !told[i].ends);
    assert_int_equal(told[i].vm, VM);
  }
  assert_int_equal(told[0].id + told[1].id, 2 + 4);
  assert_int_equal(followed.incomplete, 0);
  finish();
  assert_int_equal(told_count, 2);
}

static void more_are_announced_than_are_followed(void **unused)
{
  (void)unused;
  for (uint64_t id = 1; id <= LJP_SNAPSHOTS_MOMENTS + 9; id++)
    put_moment(id);
  finish();
  assert_int_equal(told_count, LJP_SNAPSHOTS_MOMENTS);
  assert_int_equal(told[LJP_SNAPSHOTS_MOMENTS - 1].id, LJP_SNAPSHOTS_MOMENTS);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(nothing_is_said_of_whole_snapshots, begin),
      cmocka_unit_test_setup(an_object_a_reference_or_bytes_are_missing, begin),
      cmocka_unit_test_setup(the_end_is_missing, begin),
      cmocka_unit_test_setup(the_beginning_is_missing, begin),
      cmocka_unit_test_setup(records_of_two_snapshots_are_not_added_up, begin),
      cmocka_unit_test_setup(a_record_without_a_type_is_no_object, begin),
      cmocka_unit_test_setup(announced_and_never_begun, begin),
      cmocka_unit_test_setup(more_are_announced_than_are_followed, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
