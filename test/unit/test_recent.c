/*
** The last seconds of a profile that is still being read: each sample is in one
** window, a part has just what was asked for, and the profile goes on.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "parsers/profile/recent.h"
#include "test/support/shape.h"

enum { F = 1, G, BLOCKS = 5 };

/* What is cut while the stream is read, before each block but the first. */
struct cut {
  struct ljp_profile *p;
  struct ljp_recent recent;
  unsigned blocks;
  bool looks; /* A part is made each time, too. */
  bool native;
};

static struct ljp_profile *open_part(struct cut *c, uint64_t from_ns, bool all,
                                     bool native)
{
  const struct ljp_recent_query query = {
      .from_ns = from_ns, .all = all, .native = native};
  struct ljp_profile *part;
  assert_int_equal(ljp_recent_open(&c->recent, c->p, &query, &part), LJP_OK);
  return part;
}

static uint64_t samples_of(const struct ljp_profile *part)
{
  assert_int_equal(part->totals.cpu_ns, part->totals.samples * 7);
  return part->totals.samples;
}

/* Called before each block; the cuts end at 100, 200 ... */
static void before_block(void *ctx, uint64_t bytes)
{
  struct cut *c = ctx;
  (void)bytes;
  if (c->blocks++)
    assert_int_equal(ljp_recent_cut(&c->recent, c->p, 100 * (c->blocks - 1)),
                     LJP_OK);
  if (c->looks)
    ljp_recent_close(c->p, open_part(c, 0, true, c->native));
}

/* Reads a stream whose n-th block (from 1) has n samples of f, and 10 * n of
** g, which f calls by a C function. */
static void read_blocks(struct cut *c)
{
  static struct ljp_reader reader;
  const struct ljp_profile_options options = {.symbols = {.no_files = true},
                                              .rates = true,
                                              .progress = before_block,
                                              .progress_ctx = c};
  begin();
  symbol(LIBMINE, 0x100, 0, "helper");
  symbol(LIBMINE, 0x101, 0, "helper");
  lua_function(F, "f", 10);
  lua_function(G, "g", 20);
  uint64_t f = frame(0, LJP_FRAME_LUA, F, 11);
  uint64_t helper = frame(f, LJP_FRAME_HOST, LIBMINE, 0x101);
  uint64_t g = frame(helper, LJP_FRAME_LUA, G, 21);
  for (unsigned i = 0; i < BLOCKS; i++) {
    sample(f, i + 1);
    sample(g, 10 * (i + 1));
    put_block(&stream, i, &payload);
    payload.len = 0;
  }
  put_end_block(&stream, BLOCKS);
  c->p = ljp_profile_new(&options);
  assert_non_null(c->p);
  assert_int_equal(ljp_reader_memory(&reader, stream.data, stream.len), LJP_OK);
  assert_int_equal(ljp_profile_add(c->p, &reader), LJP_OK);
  ljp_reader_fini(&reader);
}

static void end(struct cut *c)
{
  ljp_recent_fini(&c->recent);
  ljp_profile_free(c->p);
  shape_free();
}

static void a_part_has_the_samples_of_its_windows(void **state)
{
  (void)state;
  struct cut c = {0};
  read_blocks(&c);
  /* Window n ends at 100 * n and has block n. */
  for (unsigned first = 0; first <= BLOCKS; first++) {
    struct ljp_profile *part = open_part(&c, 100 * first, false, false);
    uint64_t blocks = 0;
    for (unsigned n = first + 1; n <= BLOCKS; n++)
      blocks += n;
    assert_int_equal(samples_of(part), 11 * blocks);
    assert_int_equal(count_at(part, "f a.lua:10"), blocks);
    assert_int_equal(count_at(part, "f a.lua:10;g a.lua:20"), 10 * blocks);
    assert_int_equal(ljp_recent_begin(&c.recent, 100 * first), 100 * first);
    ljp_recent_close(c.p, part);
  }
  end(&c);
}

static void everything_is_what_a_whole_profile_has(void **state)
{
  (void)state;
  struct cut c = {0};
  read_blocks(&c);
  struct ljp_profile *part = open_part(&c, 0, true, false);
  assert_int_equal(samples_of(part), samples);
  ljp_recent_close(c.p, part);
  part = open_part(&c, 0, true, true);
  assert_int_equal(samples_of(part), samples);
  assert_int_equal(count_at(part, "f a.lua:10;helper;g a.lua:20"), 150);
  ljp_recent_close(c.p, part);
  assert_int_equal(ljp_profile_finish(c.p), LJP_OK);
  assert_int_equal(c.p->totals.samples, samples);
  assert_int_equal(count_at(c.p, "f a.lua:10;helper;g a.lua:20"), 150);
  end(&c);
}

static void looking_changes_nothing(void **state)
{
  (void)state;
  for (int native = 0; native < 2; native++) {
    struct cut c = {.looks = true, .native = native};
    read_blocks(&c);
    assert_int_equal(ljp_profile_finish(c.p), LJP_OK);
    assert_int_equal(c.p->totals.samples, samples);
    assert_int_equal(count_at(c.p, "f a.lua:10"), 15);
    assert_int_equal(count_at(c.p, "f a.lua:10;helper;g a.lua:20"), 150);
    end(&c);
  }
}

static void only_the_newest_windows_are_kept(void **state)
{
  (void)state;
  struct cut c = {0};
  read_blocks(&c);
  for (unsigned i = 0; i < LJP_RECENT_WINDOWS - 1; i++)
    assert_int_equal(ljp_recent_cut(&c.recent, c.p, 100 * (BLOCKS + i + 1)),
                     LJP_OK);
  struct ljp_profile *part = open_part(&c, 0, false, false);
  assert_int_equal(samples_of(part), 11 * BLOCKS);
  assert_int_equal(ljp_recent_begin(&c.recent, 0), 100 * (BLOCKS - 1));
  ljp_recent_close(c.p, part);
  assert_int_equal(ljp_recent_cut(&c.recent, c.p, 100000), LJP_OK);
  part = open_part(&c, 0, false, false);
  assert_int_equal(samples_of(part), 0);
  ljp_recent_close(c.p, part);
  end(&c);
}

static void a_thread_that_is_not_there_has_nothing(void **state)
{
  (void)state;
  struct cut c = {0};
  read_blocks(&c);
  const struct ljp_recent_query query = {.all = true, .thread = 9};
  struct ljp_profile *part;
  assert_int_equal(ljp_recent_open(&c.recent, c.p, &query, &part), LJP_OK);
  assert_int_equal(samples_of(part), 0);
  ljp_recent_close(c.p, part);
  end(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_part_has_the_samples_of_its_windows),
      cmocka_unit_test(everything_is_what_a_whole_profile_has),
      cmocka_unit_test(looking_changes_nothing),
      cmocka_unit_test(only_the_newest_windows_are_kept),
      cmocka_unit_test(a_thread_that_is_not_there_has_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
