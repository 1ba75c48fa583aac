/* The space that the files of a service take in a store. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/store_lock.h"
#include "src/base/store_room.h"

static char folder[] = "/tmp/ljprof-room.XXXXXX";

static char *in_folder(const char *name)
{
  static char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static int set_up(void **state)
{
  (void)state;
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
  char command[100];
  (void)state;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

/* A file of a service, with the number and so many pages. */
static char *put(const char *service, unsigned sequence, unsigned pid,
                 unsigned pages)
{
  struct ljp_store_name name = {
      .time_s = 1795832100 - sequence, .sequence = sequence, .pid = pid};
  static char text[LJP_STORE_NAME_BYTES];
  strcpy(name.service, service);
  ljp_store_name_put(text, &name);
  int fd = open(in_folder(text), O_WRONLY | O_CREAT | O_EXCL, 0600);
  assert_true(fd >= 0);
  /* The last page is begun only. */
  assert_int_equal(ftruncate(fd, pages ? pages * 4096 - 4095 : 0), 0);
  close(fd);
  return text;
}

static bool there(const char *name)
{
  return access(in_folder(name), F_OK) == 0;
}

static struct ljp_store_room looked(enum ljp_store_look what)
{
  struct ljp_store_room room;
  assert_int_equal(ljp_store_room_look(&room, folder, "web", what), 0);
  return room;
}

static void a_look_counts_the_files_of_one_service(void **state)
{
  (void)state;
  put("web", 7, 1, 3);
  put("web", 11, 2, 5);
  put("web", 13, 0, 2); /* merged */
  put("web2", 99, 1, 17);
  close(open(in_folder("web.ljp"), O_WRONLY | O_CREAT, 0600));
  struct ljp_store_room room = looked(LJP_STORE_SIZES);
  assert_int_equal(room.count, 3);
  assert_int_equal(room.bytes, 10 * 4096);
  assert_int_equal(room.last, 13);
  assert_int_equal(room.writers, 0);
  ljp_store_room_free(&room);
  room = looked(LJP_STORE_NAMES);
  assert_int_equal(room.last, 13);
  ljp_store_room_free(&room);
}

static void removed(void *ctx, const char *name, uint64_t bytes, int error)
{
  char *all = ctx;
  struct ljp_store_name n;
  assert_true(ljp_store_name_parse(name, &n));
  assert_int_equal(error, 0);
  assert_int_equal(bytes % 4096, 0);
  sprintf(all + strlen(all), "%u ", (unsigned)n.sequence);
}

static void the_oldest_go_until_the_rest_fits(void **state)
{
  (void)state;
  char all[200] = "";
  for (unsigned i = 1; i <= 6; i++)
    put("web", i, i % 2 + 1, i);
  struct ljp_store_room room = looked(LJP_STORE_SIZES);
  assert_int_equal(room.bytes, 21 * 4096);
  /* Without the first three: 15 pages. */
  assert_int_equal(ljp_store_room_prune(&room, 15 * 4096, removed, all), 0);
  assert_string_equal(all, "1 2 3 ");
  assert_int_equal(room.bytes, 15 * 4096);
  assert_int_equal(room.count, 3);
  assert_int_equal(ljp_store_room_prune(&room, 15 * 4096, removed, all), 0);
  assert_string_equal(all, "1 2 3 ");
  ljp_store_room_free(&room);
}

/* Each container's first process has number 1. */
static void processes_with_one_number_are_each_counted(void **state)
{
  (void)state;
  enum { PROCESSES = 20 };
  int fd[PROCESSES];
  for (unsigned i = 0; i < PROCESSES; i++) {
    put("web", 3 * i + 1, 1, 1);
    fd[i] = open(in_folder(put("web", 3 * i + 2, 1, 1)), O_WRONLY | O_CLOEXEC);
    assert_int_equal(ljp_store_lock(fd[i]), 0);
    put("web", 3 * i + 3, 0, 1); /* merged */
  }
  put("web", 200, 1, 1);
  struct ljp_store_room room = looked(LJP_STORE_SIZES);
  assert_int_equal(room.writers, PROCESSES);
  ljp_store_room_free(&room);
  for (unsigned i = 0; i < PROCESSES; i++)
    close(fd[i]);
}

static void a_file_that_is_written_stays(void **state)
{
  (void)state;
  char first[LJP_STORE_NAME_BYTES];
  strcpy(first, put("web", 1, 5, 4));
  int fd = open(in_folder(first), O_WRONLY | O_CLOEXEC);
  assert_int_equal(ljp_store_lock(fd), 0);
  put("web", 2, 6, 4);
  struct ljp_store_room room = looked(LJP_STORE_SIZES);
  assert_int_equal(room.writers, 1);
  assert_int_equal(ljp_store_room_prune(&room, 0, NULL, NULL), 0);
  assert_int_equal(room.bytes, 4 * 4096);
  assert_true(there(first));
  ljp_store_room_free(&room);
  close(fd);
  room = looked(LJP_STORE_SIZES);
  assert_int_equal(room.count, 1);
  assert_int_equal(ljp_store_room_prune(&room, 0, NULL, NULL), 0);
  assert_false(there(first));
  ljp_store_room_free(&room);
}

/* Both have looked before either removes anything. */
static void two_pruners_remove_no_more_than_one(void **state)
{
  (void)state;
  for (unsigned i = 1; i <= 40; i++)
    put("web", i, i, 1);
  struct ljp_store_room room = looked(LJP_STORE_SIZES);
  pid_t child = fork();
  assert_true(child >= 0);
  int error = ljp_store_room_prune(&room, 23 * 4096, NULL, NULL);
  bool done = !error && room.count == 23 && room.bytes == 23 * 4096;
  if (child == 0)
    _exit(done ? 0 : 1);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(done && status == 0);
  ljp_store_room_free(&room);
  room = looked(LJP_STORE_SIZES);
  assert_int_equal(room.count, 23);
  assert_int_equal(room.files[0].sequence, 18);
  ljp_store_room_free(&room);
}

static void what_cannot_be_looked_at_stays_and_is_told(void **state)
{
  (void)state;
  if (geteuid() == 0)
    skip();
  char name[LJP_STORE_NAME_BYTES];
  strcpy(name, put("web", 1, 5, 4));
  chmod(in_folder(name), 0);
  struct ljp_store_room room = looked(LJP_STORE_SIZES);
  assert_int_equal(ljp_store_room_prune(&room, 0, NULL, NULL), EACCES);
  assert_true(there(name));
  ljp_store_room_free(&room);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
  (void)state;
  struct ljp_store_room room;
  assert_int_equal(
      ljp_store_room_look(&room, in_folder("x"), "web", LJP_STORE_NAMES),
      ENOENT);
  assert_int_equal(ljp_store_room_look(&room, folder, "a/b", LJP_STORE_NAMES),
                   EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(a_look_counts_the_files_of_one_service),
      TEST(the_oldest_go_until_the_rest_fits),
      TEST(processes_with_one_number_are_each_counted),
      TEST(a_file_that_is_written_stays),
      TEST(two_pruners_remove_no_more_than_one),
      TEST(what_cannot_be_looked_at_stays_and_is_told),
      TEST(a_folder_that_is_not_there_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
