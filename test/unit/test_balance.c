/* The balances of CPU time (sums by thread and reason, and its sentences) and
** of elapsed time, thread by thread. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "parsers/stream/balance.h"
#include "parsers/stream/elapsed.h"
#include "test/support/encode.h"

static struct buf payload, body;

static void put_thread(uint64_t id, const char *name)
{
  put_u(&body, id);
  put_u(&body, 4200 + id);
  put_str(&body, name);
  put_record(&payload, LJP_REC_THREAD, &body);
}

static void put_producer(uint64_t id, unsigned kind, uint64_t thread)
{
  put_u(&body, id);
  put_u(&body, kind);
  put_u(&body, thread);
  put_u(&body, 1000000);
  put_record(&payload, LJP_REC_PRODUCER, &body);
}

static void put_sample(uint64_t weight)
{
  put_u8(&body, LJP_SAMPLE_WEIGHT);
  put_s(&body, 1);
  put_u(&body, weight);
  put_record(&payload, LJP_REC_SAMPLES, &body);
}

static void put_unsampled(uint64_t thread, unsigned kind, uint64_t why,
                          uint64_t ns)
{
  put_s(&body, 3);
  put_u(&body, thread);
  put_u(&body, kind);
  put_u(&body, why);
  put_u(&body, ns);
  put_record(&payload, LJP_REC_UNSAMPLED, &body);
}

static void put_cpu_time(uint64_t ns)
{
  put_s(&body, 5);
  put_u(&body, ns);
  put_record(&payload, LJP_REC_CPU_TIME, &body);
}

static void put_elapsed(uint64_t thread, uint64_t ns)
{
  put_s(&body, 7);
  put_u(&body, thread);
  put_u(&body, ns);
  put_record(&payload, LJP_REC_ELAPSED, &body);
}

/* Puts what was written into a block of a producer, and reads the file. */
static void end_block(struct buf *file, uint64_t seq, uint32_t producer)
{
  struct ljp_block_head head = test_head(seq);
  head.producer = producer;
  put_block_head(file, head, &payload);
}

static void read_file(struct ljp_balance *b, const struct buf *file)
{
  static struct ljp_reader reader;
  const struct ljp_item *item;
  ljp_balance_init(b);
  assert_int_equal(ljp_reader_memory(&reader, file->data, file->len), LJP_OK);
  do {
    assert_int_equal(ljp_reader_next(&reader, &item), LJP_OK);
    assert_int_equal(ljp_balance_take(b, &reader.model, item, 0), LJP_OK);
  } while (item->what != LJP_ITEM_FINISH);
  assert_int_equal(reader.finish.bad_records, 0);
  assert_int_equal(ljp_balance_finish(b, &reader.model, 0), LJP_OK);
  ljp_reader_fini(&reader);
}

static void times_of_a_thread_and_reason_add_up(void **state)
{
  (void)state;
  struct buf file = {0};
  struct ljp_balance b;
  char text[LJP_BALANCE_TEXT_BYTES];
  put_thread(1, "main");
  put_thread(2, "worker");
  put_producer(1, LJP_PRODUCER_CPU, 1);
  put_producer(2, LJP_PRODUCER_WALL, 1);
  put_unsampled(2, LJP_PRODUCER_CPU, LJP_UNSAMPLED_BLOCKED, 100000007);
  put_unsampled(1, LJP_PRODUCER_CPU, LJP_UNSAMPLED_BLOCKED, 11);
  put_unsampled(2, LJP_PRODUCER_WALL, LJP_UNSAMPLED_BLOCKED, 1009);
  put_unsampled(2, LJP_PRODUCER_CPU, LJP_UNSAMPLED_BLOCKED, 23000000);
  put_unsampled(0, LJP_PRODUCER_CPU, LJP_UNSAMPLED_WRITER, 3000000);
  put_unsampled(0, LJP_PRODUCER_CPU, 1000003, 17);
  put_cpu_time(500000000);
  put_cpu_time(6);
  end_block(&file, 0, 0);
  put_sample(373999971);
  end_block(&file, 1, 1);
  put_sample(5);
  end_block(&file, 2, 2);
  read_file(&b, &file);
  assert_true(b.told);
  assert_int_equal(b.used_ns, 500000006);
  assert_int_equal(b.sampled_ns, 373999971);
  assert_int_equal(b.wall_ns, 5);
  assert_int_equal(b.gap_count, 5);
  assert_int_equal(b.gaps[0].ns, 123000007);
  assert_int_equal(b.unsampled_ns[LJP_UNSAMPLED_BLOCKED], 123000018);
  assert_int_equal(b.unsampled_ns[0], 17);
  assert_int_equal(ljp_balance_missing(&b), 123000035);
  assert_int_equal(ljp_balance_difference(&b), 0);
  assert_false(ljp_balance_off(&b));
  assert_string_equal(
      ljp_balance_text(&b, LJP_PRODUCER_CPU, LJP_UNSAMPLED_BLOCKED, text),
      "123.0 ms of CPU time (24.7 %) not sampled: the thread blocks the signal "
      "(thread 2 \"worker\" 123.0 ms, thread 1 \"main\" 0.00 ms)");
  assert_true(ljp_balance_matters(&b, LJP_PRODUCER_CPU, LJP_UNSAMPLED_BLOCKED));
  assert_false(ljp_balance_matters(&b, LJP_PRODUCER_CPU, LJP_UNSAMPLED_WRITER));
  assert_false(ljp_balance_matters(&b, LJP_PRODUCER_CPU, 0));
  assert_null(ljp_balance_text(&b, LJP_PRODUCER_CPU, LJP_UNSAMPLED_LAST, text));
  assert_string_equal(
      ljp_balance_text(&b, LJP_PRODUCER_WALL, LJP_UNSAMPLED_BLOCKED, text),
      "0.00 ms of elapsed time (99.5 %) not sampled: the thread blocks the "
      "signal (thread 2 \"worker\" 0.00 ms)");
  ljp_balance_fini(&b);
  buf_free(&file);
}

static void only_the_largest_of_many_threads_are_named(void **state)
{
  (void)state;
  struct buf file = {0};
  struct ljp_balance b;
  char text[LJP_BALANCE_TEXT_BYTES];
  const unsigned many = LJP_BALANCE_MAX_GAPS + 100;
  uint64_t sum = 0;
  for (unsigned i = 1; i <= many; i++) {
    uint64_t ns = i == 1009 ? 7000000000 : 1000000;
    put_unsampled(i, LJP_PRODUCER_CPU, LJP_UNSAMPLED_NO_TIMER, ns);
    sum += ns;
  }
  end_block(&file, 0, 0);
  read_file(&b, &file);
  assert_int_equal(b.unsampled_ns[LJP_UNSAMPLED_NO_TIMER], sum);
  assert_true(b.gap_count <= LJP_BALANCE_MAX_GAPS + 1);
  assert_string_equal(
      ljp_balance_text(&b, LJP_PRODUCER_CPU, LJP_UNSAMPLED_NO_TIMER, text),
      "11.195 s of CPU time (100.0 %) not sampled: the thread has no timer "
      "(thread 1009 7.000 s, thread 1 1.00 ms, thread 2 1.00 ms, thread 3 1.00 "
      "ms, thread 4 1.00 ms, thread 5 1.00 ms and 4090 more)");
  ljp_balance_fini(&b);
  buf_free(&file);
}

static void a_balance_that_is_off_is_told(void **state)
{
  (void)state;
  static const struct {
    uint64_t used, sampled;
    const char *text;
  } cases[] = {
      {1000000000, 979000000,
       "21.0 ms of the 1.000 s of CPU time that the process used are neither "
       "sampled nor explained"},
      {1000000000, 1021000000,
       "the process used 1.000 s of CPU time, 21.0 ms less than the file "
       "accounts for"},
      {1000000000, 980000001, NULL},
      {2000000000, 1961000000, NULL},
      {10000000, 1, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct buf file = {0};
    struct ljp_balance b;
    char text[LJP_BALANCE_TEXT_BYTES];
    put_cpu_time(cases[i].used);
    end_block(&file, 0, 0);
    put_sample(cases[i].sampled);
    end_block(&file, 1, 7);
    read_file(&b, &file);
    assert_int_equal(ljp_balance_off(&b), cases[i].text != NULL);
    if (cases[i].text)
      assert_string_equal(ljp_balance_off_text(&b, text), cases[i].text);
    ljp_balance_fini(&b);
    buf_free(&file);
  }
}

/* Streams of 1.2 and before. */
static void an_old_stream_says_how_much_but_not_why(void **state)
{
  (void)state;
  struct buf file = {0};
  struct ljp_balance b;
  char text[LJP_BALANCE_TEXT_BYTES];
  put_str(&body, "cpu.unsampled_ns");
  put_str(&body, "492000001");
  put_record(&payload, LJP_REC_INFO, &body);
  end_block(&file, 0, 0);
  read_file(&b, &file);
  assert_false(b.told);
  assert_int_equal(ljp_balance_difference(&b), 0);
  assert_int_equal(ljp_balance_missing(&b), 492000001);
  assert_string_equal(ljp_balance_text(&b, LJP_PRODUCER_CPU, 0, text),
                      "492.0 ms of CPU time (100.0 %) not sampled: for a "
                      "reason that is not known");
  ljp_balance_fini(&b);
  buf_free(&file);
}

static void elapsed_time_adds_up_by_thread(void **state)
{
  (void)state;
  static struct ljp_reader reader;
  const struct ljp_item *item;
  struct buf file = {0};
  struct ljp_elapsed e = {0};
  put_thread(1, "main");
  put_thread(2, "worker");
  put_producer(1, LJP_PRODUCER_WALL, 1);
  put_producer(2, LJP_PRODUCER_CPU, 2);
  put_unsampled(1, LJP_PRODUCER_WALL, LJP_UNSAMPLED_LAST, 3000017);
  put_unsampled(2, LJP_PRODUCER_WALL, LJP_UNSAMPLED_BLOCKED, 97000001);
  put_unsampled(2, LJP_PRODUCER_CPU, LJP_UNSAMPLED_BLOCKED, 1009);
  put_unsampled(3, LJP_PRODUCER_WALL, LJP_UNSAMPLED_BLOCKED, 1013);
  end_block(&file, 0, 0);
  put_sample(1000003);
  end_block(&file, 1, 1);
  put_sample(5);
  end_block(&file, 2, 2);
  put_elapsed(1, 4000000);
  put_elapsed(1, 21);
  put_elapsed(2, 117000003);
  end_block(&file, 3, 0);
  assert_int_equal(ljp_reader_memory(&reader, file.data, file.len), LJP_OK);
  do {
    assert_int_equal(ljp_reader_next(&reader, &item), LJP_OK);
    assert_int_equal(ljp_elapsed_take(&e, &reader.model, item), LJP_OK);
  } while (item->what != LJP_ITEM_FINISH);
  assert_int_equal(reader.finish.bad_records, 0);
  assert_int_equal(e.count, 3);
  assert_int_equal(e.threads[0].id, 1);
  assert_int_equal(e.threads[0].sampled_ns, 1000003);
  assert_int_equal(ljp_elapsed_difference(&e.threads[0]), 1);
  assert_false(ljp_elapsed_off(&e.threads[0]));
  assert_int_equal(e.threads[1].sampled_ns, 0);
  assert_int_equal(ljp_elapsed_difference(&e.threads[1]), 20000002);
  assert_true(ljp_elapsed_off(&e.threads[1]));
  assert_false(e.threads[2].told);
  assert_int_equal(ljp_elapsed_difference(&e.threads[2]), 0);
  ljp_elapsed_fini(&e);
  ljp_reader_fini(&reader);
  buf_free(&file);
}

/* Samples of the time that the first CPU_TIME of a later file tells of may be in
** the file before. */
static void a_later_file_may_lack_samples_at_its_beginning(void **state)
{
  (void)state;
  for (uint64_t segment = 0; segment < 2; segment++) {
    struct ljp_balance b;
    struct ljp_item item = {.what = LJP_REC_EPOCH, .u.epoch.segment = segment};
    ljp_balance_init(&b);
    assert_int_equal(ljp_balance_take(&b, NULL, &item, 0), LJP_OK);
    item =
        (struct ljp_item){.what = LJP_REC_CPU_TIME, .u.cpu_time.ns = 90000000};
    assert_int_equal(ljp_balance_take(&b, NULL, &item, 0), LJP_OK);
    assert_int_equal(ljp_balance_off(&b), !segment);
    item.u.cpu_time.ns = 19000000;
    assert_int_equal(ljp_balance_take(&b, NULL, &item, 0), LJP_OK);
    assert_int_equal(ljp_balance_off(&b), !segment);
    item.u.cpu_time.ns = 3000000;
    assert_int_equal(ljp_balance_take(&b, NULL, &item, 0), LJP_OK);
    assert_true(ljp_balance_off(&b));
    b.sampled_ns = b.used_ns;
    assert_false(ljp_balance_off(&b));
    b.sampled_ns += 109000000;
    assert_int_equal(ljp_balance_off(&b), !segment);
    ljp_balance_fini(&b);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(times_of_a_thread_and_reason_add_up),
      cmocka_unit_test(only_the_largest_of_many_threads_are_named),
      cmocka_unit_test(a_balance_that_is_off_is_told),
      cmocka_unit_test(an_old_stream_says_how_much_but_not_why),
      cmocka_unit_test(a_later_file_may_lack_samples_at_its_beginning),
      cmocka_unit_test(elapsed_time_adds_up_by_thread),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  buf_free(&payload);
  buf_free(&body);
  return failed;
}
