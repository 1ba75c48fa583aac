/*
** The messages between a client and a joined program: a round trip of each, and
** everything that must be refused.
*/
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/join_message.h"

static const struct {
  enum ljp_join_type type;
  enum ljp_join_side side;
  unsigned numbers, texts, least, most;
} kinds[] = {
#define LJP_X(name, number, side, numbers, texts, least, most)                 \
  {LJP_JOIN_##name, LJP_JOIN_SIDE_##side, numbers, texts, least, most},
    LJP_JOIN_LIST(LJP_X)
#undef LJP_X
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct ljp_join_message message_of(int i)
{
  struct ljp_join_message m = {.type = kinds[i].type, .serial = 4711};
  for (unsigned n = 0; n < kinds[i].numbers; n++)
    m.number[n] = UINT64_C(0x0123456789abcdef) * (n + 1);
  for (unsigned n = 0; n < kinds[i].texts; n++)
    ljp_join_set_text(&m, n, n ? "f\xc3\xbcr \xe2\x82\xac" : "first");
  m.fds = kinds[i].least;
  return m;
}

static void each_message_comes_back(void **state)
{
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    char data[LJP_JOIN_MESSAGE_BYTES];
    struct ljp_join_message m = message_of(i), got = {.fds = m.fds};
    size_t bytes = ljp_join_pack(&m, data);
    assert_true(bytes >= LJP_JOIN_HEAD_BYTES);
    assert_null(ljp_join_parse(&got, kinds[i].side, data, bytes));
    assert_int_equal(got.type, m.type);
    assert_int_equal(got.serial, 4711);
    assert_memory_equal(got.number, m.number, sizeof m.number);
    for (unsigned n = 0; n < kinds[i].texts; n++) {
      assert_int_equal(got.length[n], m.length[n]);
      assert_memory_equal(got.text[n], m.text[n], m.length[n]);
    }
  }
}

static void each_cut_and_each_extra_byte_is_refused(void **state)
{
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    char data[LJP_JOIN_MESSAGE_BYTES] = "";
    struct ljp_join_message m = message_of(i), got = {.fds = m.fds};
    size_t bytes = ljp_join_pack(&m, data);
    for (size_t n = 0; n < bytes; n++)
      assert_non_null(ljp_join_parse(&got, kinds[i].side, data, n));
    assert_non_null(ljp_join_parse(&got, kinds[i].side, data, bytes + 1));
    /* With a length that agrees, too. */
    if (bytes > LJP_JOIN_HEAD_BYTES) {
      data[8]--;
      assert_non_null(ljp_join_parse(&got, kinds[i].side, data, bytes - 1));
      data[8]++;
    }
    data[8]++;
    assert_non_null(ljp_join_parse(&got, kinds[i].side, data, bytes + 1));
  }
}

static void the_wrong_side_version_or_descriptors_are_refused(void **state)
{
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    char data[LJP_JOIN_MESSAGE_BYTES];
    struct ljp_join_message m = message_of(i), got = {.fds = m.fds};
    size_t bytes = ljp_join_pack(&m, data);
    assert_non_null(ljp_join_parse(
        &got,
        kinds[i].side == LJP_JOIN_SIDE_C ? LJP_JOIN_SIDE_T : LJP_JOIN_SIDE_C,
        data, bytes));
    data[2]++;
    assert_non_null(ljp_join_parse(&got, kinds[i].side, data, bytes));
    data[2]--;
    got.fds = kinds[i].most + 1;
    assert_non_null(ljp_join_parse(&got, kinds[i].side, data, bytes));
    if (kinds[i].least) {
      got.fds = kinds[i].least - 1;
      assert_non_null(ljp_join_parse(&got, kinds[i].side, data, bytes));
    }
    data[1] = 77;
    got.fds = m.fds;
    assert_non_null(ljp_join_parse(&got, kinds[i].side, data, bytes));
  }
}

static void only_utf8_without_zeros_is_text(void **state)
{
  static const struct {
    const char *bytes;
    size_t length;
    bool good;
  } texts[] = {{"plain", 5, true},
               {"\xc3\xbc", 2, true},
               {"\xe2\x82\xac", 3, true},
               {"\xf0\x9f\x98\x80", 4, true},
               {"a\0b", 3, false},
               {"\xc3", 1, false},
               {"\x80", 1, false},
               {"\xc0\x80", 2, false},
               {"\xe0\x80\x80", 3, false},
               {"\xed\xa0\x80", 3, false},
               {"\xf4\x90\x80\x80", 4, false},
               {"\xff", 1, false},
               {"\xe2\x82", 2, false}};
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char data[LJP_JOIN_MESSAGE_BYTES];
    struct ljp_join_message m = {.type = LJP_JOIN_ERROR}, got = {.fds = 0};
    m.text[0] = texts[i].bytes;
    m.length[0] = (uint16_t)texts[i].length;
    size_t bytes = ljp_join_pack(&m, data);
    bool good = !ljp_join_parse(&got, LJP_JOIN_SIDE_T, data, bytes);
    assert_int_equal(good, texts[i].good);
  }
}

static void a_text_that_is_too_long_is_not_packed(void **state)
{
  static char text[LJP_JOIN_MESSAGE_BYTES + 1];
  char data[LJP_JOIN_MESSAGE_BYTES];
  struct ljp_join_message m = {.type = LJP_JOIN_ERROR};
  (void)state;
  memset(text, 'x', sizeof text - 1);
  ljp_join_set_text(&m, 0, text);
  assert_int_equal(ljp_join_pack(&m, data), 0);
  m.length[0] = LJP_JOIN_MESSAGE_BYTES - LJP_JOIN_HEAD_BYTES - 2;
  assert_int_equal(ljp_join_pack(&m, data), LJP_JOIN_MESSAGE_BYTES);
  assert_null(ljp_join_parse(&m, LJP_JOIN_SIDE_T, data, sizeof data));
}

static void descriptors_arrive_or_are_closed(void **state)
{
  int pair[2], files[2];
  char room[LJP_JOIN_MESSAGE_BYTES];
  const char *wrong = NULL;
  struct ljp_join_message m = {.type = LJP_JOIN_HELLO, .fds = 1}, got;
  (void)state;
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  assert_int_equal(pipe(files), 0);
  m.fd[0] = files[1];
  assert_int_equal(ljp_join_send(pair[0], &m), 0);
  assert_int_equal(
      ljp_join_receive(pair[1], LJP_JOIN_SIDE_C, room, &got, &wrong), 0);
  assert_int_equal(got.fds, 1);
  assert_int_equal(write(got.fd[0], "x", 1), 1);
  close(got.fd[0]);
  /* STATUS takes none: the copy is closed, so the pipe ends. */
  m.type = LJP_JOIN_STATUS;
  assert_int_equal(ljp_join_send(pair[0], &m), 0);
  close(files[1]);
  assert_int_equal(
      ljp_join_receive(pair[1], LJP_JOIN_SIDE_C, room, &got, &wrong), EPROTO);
  assert_non_null(wrong);
  assert_int_equal(got.fds, 0);
  assert_int_equal(read(files[0], room, 2), 1);
  assert_int_equal(read(files[0], room, 2), 0);
  assert_int_equal(
      ljp_join_receive(pair[1], LJP_JOIN_SIDE_C, room, &got, &wrong), EAGAIN);
  close(pair[0]);
  assert_int_equal(
      ljp_join_receive(pair[1], LJP_JOIN_SIDE_C, room, &got, &wrong),
      ECONNRESET);
  close(pair[1]);
  close(files[0]);
}

static void a_slow_reader_is_not_waited_for(void **state)
{
  int pair[2], error = 0;
  const struct ljp_join_message m = {.type = LJP_JOIN_PING};
  (void)state;
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  for (int i = 0; !error && i < 100000; i++)
    error = ljp_join_send(pair[0], &m);
  assert_int_equal(error, EAGAIN);
  close(pair[1]);
  error = ljp_join_send(pair[0], &m);
  assert_true(error == EPIPE || error == ECONNRESET);
  close(pair[0]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_message_comes_back),
      cmocka_unit_test(each_cut_and_each_extra_byte_is_refused),
      cmocka_unit_test(the_wrong_side_version_or_descriptors_are_refused),
      cmocka_unit_test(only_utf8_without_zeros_is_text),
      cmocka_unit_test(a_text_that_is_too_long_is_not_packed),
      cmocka_unit_test(descriptors_arrive_or_are_closed),
      cmocka_unit_test(a_slow_reader_is_not_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
