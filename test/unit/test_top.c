/*
** The worker of ljprof top: it answers every query about any file, whole or
** damaged, with text that a terminal can be given.
*/
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/random.h"
#include "test/support/shape.h"
#include "tools/top/views.h"

#define GOLDEN LJP_SOURCE_DIR "/test/data/"

struct worker {
  int fd;
  pid_t pid;
  uint32_t serial;
  struct ljp_top_answer answer;
};

static void start(struct worker *w, const char *path)
{
  static struct ljp_top_options options;
  int fds[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds),
                   0);
  options =
      (struct ljp_top_options){.path = path, .profile = {.no_symbols = true}};
  w->pid = fork();
  assert_true(w->pid >= 0);
  if (w->pid == 0) {
    close(fds[0]);
    ljp_top_worker(fds[1], &options);
  }
  close(fds[1]);
  w->fd = fds[0];
  w->serial = 0;
}

/* The worker goes when the screen goes; nothing else has ended it. */
static void stop(struct worker *w)
{
  int status;
  close(w->fd);
  assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
  assert_int_equal(status, 0);
}

/* Each line has a kind that the screen knows, and no character of it commands a
** terminal. */
static void check_text(const struct ljp_top_answer *a)
{
  bool begins = true;
  for (uint32_t i = 0; i < a->text_bytes; i++) {
    uint8_t c = (uint8_t)a->text[i];
    if (begins)
      assert_non_null(strchr("TF!HRPM", c));
    begins = c == '\n';
    assert_true(begins || (c >= ' ' && c != 0x7f));
  }
  assert_true(begins);
}

/* Asks, and waits for the answer to that. */
static void ask(struct worker *w, struct ljp_top_query query)
{
  query.serial = ++w->serial;
  assert_int_equal(send(w->fd, &query, sizeof query, MSG_NOSIGNAL),
                   sizeof query);
  do {
    ssize_t n = recv(w->fd, &w->answer, sizeof w->answer, 0);
    const size_t head = sizeof w->answer - sizeof w->answer.text;
    assert_true(n >= (ssize_t)head);
    assert_int_equal((size_t)n - head, w->answer.text_bytes);
    check_text(&w->answer);
  } while (w->answer.serial != w->serial);
}

static bool says(const struct worker *w, const char *text)
{
  return memmem(w->answer.text, w->answer.text_bytes, text, strlen(text));
}

static void ask_everything(struct worker *w)
{
  for (unsigned view = 0; view < LJP_TOP_VIEWS; view++)
    for (unsigned how = 0; how < 4; how++) {
      struct ljp_top_query q = {.view = (uint8_t)view,
                                .sort = (uint8_t)(how % LJP_TOP_SORTS),
                                .native = how == 1,
                                .seconds = how == 2 ? 5 : 0,
                                .thread = how == 3,
                                .vm = how == 3,
                                .cols = (uint16_t)(how * 40),
                                .rows = (uint16_t)(how * 12)};
      ask(w, q);
    }
}

static void every_view_of_each_file_is_answered(void **state)
{
  (void)state;
  static const char *const files[] = {
      GOLDEN "every-record.ljp",    GOLDEN "every-record-zstd.ljp",
      GOLDEN "killed.ljp",          GOLDEN "rotated.ljp",
      GOLDEN "vm-closed.ljp",       GOLDEN "heap.ljp",
      GOLDEN "small-table.ljp",     GOLDEN "embedded.ljp",
      GOLDEN "tarantool/README.md", /* None of these is a stream. */
      GOLDEN "no-such-file.ljp",    "/dev/null"};
  static struct worker w;
  for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
    start(&w, files[i]);
    ask_everything(&w);
    do
      ask(&w, (struct ljp_top_query){0});
    while (says(&w, "Treading"));
    if (i >= 8)
      assert_true(says(&w, "Tcannot be read"));
    stop(&w);
  }
}

static void damage_is_said_and_never_kills(void **state)
{
  (void)state;
  enum { ROOM = 1 << 16, TRIES = 200 };
  static uint8_t whole[ROOM], bytes[ROOM];
  static struct worker w;
  char path[] = "/tmp/ljprof-top.XXXXXX";
  int fd = open(GOLDEN "every-record.ljp", O_RDONLY | O_CLOEXEC);
  ssize_t size = read(fd, whole, ROOM);
  unsigned said = 0;
  assert_true(size > 1000 && size < ROOM);
  close(fd);
  int to = mkstemp(path);
  assert_true(to >= 0);
  for (unsigned i = 0; i < TRIES; i++) {
    memcpy(bytes, whole, (size_t)size);
    for (unsigned k = 0; k <= i % 5; k++)
      bytes[500 + random_number() % ((uint64_t)size - 500)] ^= 0x55;
    assert_int_equal(pwrite(to, bytes, (size_t)size, 0), size);
    start(&w, path);
    ask_everything(&w);
    do
      ask(&w, (struct ljp_top_query){0});
    while (says(&w, "Treading"));
    said += says(&w, "\n!the file is damaged");
    stop(&w);
  }
  assert_true(said > TRIES / 2);
  close(to);
  unlink(path);
}

/* Each byte of these names takes four on the screen. The one name that varies
** lets a row begin at every place near the end of the answer. */
static void longest_names_fill_an_answer_and_no_more(void **state)
{
  (void)state;
  enum { LONG = 600, FUNCTIONS = 30, STEP = 7 };
  static struct worker w;
  static char name[LONG + 1];
  char path[] = "/tmp/ljprof-top.XXXXXX";
  int to = mkstemp(path);
  uint32_t most = 0;
  assert_true(to >= 0);
  for (size_t len = 1; len < LJP_TOP_NAME_BYTES; len += STEP) {
    begin();
    for (uint64_t i = 0; i < FUNCTIONS; i++) {
      memset(name, 0xff, LONG);
      name[i ? LONG : len] = '\0';
      name[0] = (char)(0x80 + i);
      lua_function(i + 1, name, i + 1);
      sample(frame(0, LJP_FRAME_LUA, i + 1, i + 1), i ? 1 : 9);
    }
    put_block(&stream, 0, &payload);
    put_end_block(&stream, 1);
    assert_int_equal(ftruncate(to, 0), 0);
    assert_int_equal(pwrite(to, stream.data, stream.len, 0), stream.len);
    start(&w, path);
    do
      ask(&w, (struct ljp_top_query){0});
    while (says(&w, "Treading"));
    most = w.answer.text_bytes > most ? w.answer.text_bytes : most;
    stop(&w);
  }
  assert_true(most > LJP_TOP_TEXT_BYTES - LJP_TOP_LINE_BYTES);
  close(to);
  unlink(path);
  shape_free();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_view_of_each_file_is_answered),
      cmocka_unit_test(damage_is_said_and_never_kills),
      cmocka_unit_test(longest_names_fill_an_answer_and_no_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
