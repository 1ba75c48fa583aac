/* New files: nothing of them shows before its time, and nothing is left of them
** if their time never comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "src/base/newfile.h"

static char dir[] = "/tmp/ljp-newfile-XXXXXX";
static char path[200];
static bool no_nameless, no_links; /* What the file system cannot do. */

int __real_openat(int folder, const char *name, int flags, ...);
int __wrap_openat(int folder, const char *name, int flags, ...);
int __wrap_openat(int folder, const char *name, int flags, ...)
{
  va_list args;
  va_start(args, flags);
  mode_t mode = va_arg(args, mode_t);
  va_end(args);
  if (no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return __real_openat(folder, name, flags, mode);
}

int __real_linkat(int from_dir, const char *from, int to_dir, const char *to,
                  int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to,
                  int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to,
                  int flags)
{
  if (!no_links)
    return __real_linkat(from_dir, from, to_dir, to, flags);
  errno = EACCES;
  return -1;
}

static const char *in_dir(const char *name)
{
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return path;
}

static int make_dir(void **state)
{
  (void)state;
  no_nameless = no_links = false;
  return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", dir);
  int result = system(command);
  strcpy(dir + strlen(dir) - 6, "XXXXXX");
  return result;
}

static void entries_are(const char *wanted)
{
  char command[300], got[200] = "";
  snprintf(command, sizeof command, "ls -A %s | tr '\\n' ' '", dir);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  got[fread(got, 1, sizeof got - 1, pipe)] = '\0';
  pclose(pipe);
  assert_string_equal(got, wanted);
}

static void content_is(const char *wanted)
{
  char got[200] = "";
  FILE *file = fopen(in_dir("new"), "r");
  assert_non_null(file);
  got[fread(got, 1, sizeof got - 1, file)] = '\0';
  fclose(file);
  assert_string_equal(got, wanted);
}

static int open_new(struct ljp_newfile *new)
{
  struct ljp_target found;
  int fd;
  assert_int_equal(ljp_target_find(&found, in_dir("new")), 0);
  assert_int_equal(ljp_newfile_open(new, &found, &fd), 0);
  free(found.path);
  assert_int_equal(write(fd, "first ", 6), 6);
  return fd;
}

static void old_file(mode_t mode)
{
  int fd = open(in_dir("new"), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  assert_int_equal(fchmod(fd, mode), 0);
  assert_int_equal(write(fd, "old", 3), 3);
  close(fd);
}

static void show_and_go_on(struct ljp_newfile *new, int fd)
{
  int old;
  assert_true(ljp_fd_mark(fd));
  assert_int_equal(ljp_newfile_show(new, fd, true, &old), 0);
  assert_false(ljp_newfile_hidden(new));
  assert_true(ljp_fd_marked(fd));
  assert_int_equal(write(fd, "second", 6), 6);
  close(fd);
  if (old >= 0)
    close(old);
  content_is("first second");
  entries_are("new ");
}

static void a_hidden_file_has_no_name(void **state)
{
  (void)state;
  struct ljp_newfile new;
  int fd = open_new(&new);
  entries_are("");
  show_and_go_on(&new, fd);
}

static void a_file_is_replaced_with_its_mode(void **state)
{
  (void)state;
  struct ljp_newfile new;
  struct stat st;
  for (int how = 0; how < 3; how++) {
    no_nameless = how == 1;
    no_links = how == 2;
    old_file(0604);
    int fd = open_new(&new);
    content_is("old");
    show_and_go_on(&new, fd);
    assert_int_equal(stat(in_dir("new"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0604);
  }
}

static void without_nameless_files_it_has_a_temporary_name(void **state)
{
  (void)state;
  struct ljp_newfile new;
  char name[64];
  no_nameless = true;
  int fd = open_new(&new);
  snprintf(name, sizeof name, "new.ljp-%ld-0 ", (long)getpid());
  entries_are(name);
  ljp_newfile_discard(&new);
  close(fd);
  entries_are("");
  fd = open_new(&new);
  show_and_go_on(&new, fd);
}

static void without_links_it_is_copied(void **state)
{
  (void)state;
  struct ljp_newfile new;
  no_links = true;
  int fd = open_new(&new);
  entries_are("");
  show_and_go_on(&new, fd);
}

static void a_file_that_came_meanwhile_is_kept_on_request(void **state)
{
  (void)state;
  struct ljp_newfile new;
  for (int how = 0; how < 3; how++) {
    no_nameless = how == 1;
    no_links = how == 2;
    int fd = open_new(&new);
    old_file(0600);
    assert_int_equal(ljp_newfile_show(&new, fd, false, NULL), EEXIST);
    assert_true(ljp_newfile_hidden(&new));
    ljp_newfile_discard(&new);
    close(fd);
    content_is("old");
    entries_are("new ");
    assert_int_equal(unlink(in_dir("new")), 0);
  }
}

static void a_name_that_is_a_folder_s_leaves_nothing(void **state)
{
  (void)state;
  struct ljp_newfile new;
  for (int how = 0; how < 3; how++) {
    no_nameless = how == 1;
    no_links = how == 2;
    int fd = open_new(&new);
    assert_int_equal(mkdir(in_dir("new"), 0700), 0);
    assert_int_equal(ljp_newfile_show(&new, fd, true, NULL), EISDIR);
    ljp_newfile_discard(&new);
    close(fd);
    entries_are("new ");
    assert_int_equal(rmdir(in_dir("new")), 0);
  }
}

static void a_process_that_is_killed_leaves_nothing(void **state)
{
  (void)state;
  struct ljp_newfile new;
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    open_new(&new);
    raise(SIGKILL);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status));
  entries_are("");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
  const struct CMUnitTest tests[] = {
      TEST(a_hidden_file_has_no_name),
      TEST(a_file_is_replaced_with_its_mode),
      TEST(without_nameless_files_it_has_a_temporary_name),
      TEST(without_links_it_is_copied),
      TEST(a_file_that_came_meanwhile_is_kept_on_request),
      TEST(a_name_that_is_a_folder_s_leaves_nothing),
      TEST(a_process_that_is_killed_leaves_nothing),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
