/*
** Finds the files of a recording by their names: file segments, the files of
** children and of programs that were executed later, and what processes left
** behind when they ended.
*/
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/record/record.h"

static bool files_is_since(const struct stat *st, const struct timespec *when)
{
  return st->st_mtim.tv_sec > when->tv_sec ||
         (st->st_mtim.tv_sec == when->tv_sec &&
          st->st_mtim.tv_nsec >= when->tv_nsec);
}

#define TEMPORARY ".ljp-"

static size_t files_digits(const char *text)
{
  return strspn(text, "0123456789");
}

/* What follows PATH in the name tells the kind. */
static enum ljp_record_name files_kind(const char *rest)
{
  const char *at = rest, *stem;
  bool executed = false;
  size_t n;
  while (*at == '.' && (n = files_digits(at + 1))) {
    at += 1 + n;
    executed = *at == '-' && (n = files_digits(at + 1));
    if (executed)
      at += 1 + n;
  }
  stem = at;
  if (*at == '.' && at[1] == 's' && (n = files_digits(at + 2)))
    at += 2 + n;
  if (strncmp(at, TEMPORARY, sizeof TEMPORARY - 1) == 0) {
    at += sizeof TEMPORARY - 1;
    size_t more = files_digits(at);
    n = more && at[more] == '-' ? files_digits(at + more + 1) : 0;
    return n && !at[more + 1 + n] ? LJP_NAME_TEMPORARY : LJP_NAME_OTHER;
  }
  if (*at || at == rest)
    return LJP_NAME_OTHER;
  return stem == rest ? LJP_NAME_SEGMENT
         : executed   ? LJP_NAME_EXECUTED
                      : LJP_NAME_CHILD;
}

size_t ljp_record_stem(const char *path)
{
  size_t len = strlen(path), digits = len;
  while (digits && path[digits - 1] >= '0' && path[digits - 1] <= '9')
    digits--;
  return digits >= 2 && path[digits - 1] == 's' && path[digits - 2] == '.'
             ? digits - 2
             : len;
}

/* By session. */
static int files_compare(const void *a, const void *b)
{
  const char *x = *(char *const *)a, *y = *(char *const *)b;
  size_t m = ljp_record_stem(x), n = ljp_record_stem(y);
  int order = memcmp(x, y, m < n ? m : n);
  return order ? order : m != n ? (m < n ? -1 : 1) : strcmp(x, y);
}

size_t ljp_record_files(const struct ljp_record_plan *plan,
                        enum ljp_record_name kind, glob_t *found)
{
  char pattern[2 * PATH_MAX + 16];
  struct stat st;
  size_t count = 0, len = strlen(plan->path), at = 0;
  for (size_t i = 0; i < len; i++) {
    if (strchr("*?[\\", plan->path[i]))
      pattern[at++] = '\\';
    pattern[at++] = plan->path[i];
  }
  snprintf(pattern + at, sizeof pattern - at, ".*[0-9]");
  if (glob(pattern, 0, NULL, found))
    return 0;
  for (size_t i = 0; i < found->gl_pathc; i++) {
    char *path = found->gl_pathv[i];
    if (files_kind(path + len) != kind || stat(path, &st) ||
        !S_ISREG(st.st_mode) || !files_is_since(&st, &plan->began))
      continue;
    found->gl_pathv[i] = found->gl_pathv[count];
    found->gl_pathv[count++] = path;
  }
  if (count)
    qsort(found->gl_pathv, count, sizeof *found->gl_pathv, files_compare);
  else
    globfree(found);
  return count;
}

size_t ljp_record_segments(const struct ljp_record_plan *plan)
{
  glob_t found;
  size_t count = ljp_record_files(plan, LJP_NAME_SEGMENT, &found);
  if (count)
    globfree(&found);
  return count;
}

void ljp_record_drop_segments(const struct ljp_record_plan *plan)
{
  static struct ljp_record_plan any;
  struct stat st;
  glob_t found;
  if (!plan->force || !ljp_record_rotates(plan))
    return;
  any = *plan;
  any.began = (struct timespec){0};
  size_t files = ljp_record_files(&any, LJP_NAME_SEGMENT, &found);
  for (size_t i = 0; i < files; i++)
    if (!lstat(found.gl_pathv[i], &st) && S_ISREG(st.st_mode) &&
        !files_is_since(&st, &plan->began))
      unlink(found.gl_pathv[i]);
  if (files)
    globfree(&found);
}

void ljp_record_clean(const struct ljp_record_plan *plan)
{
  glob_t found;
  size_t files = ljp_record_files(plan, LJP_NAME_TEMPORARY, &found);
  for (size_t i = 0; i < files; i++) {
    const char *path = found.gl_pathv[i];
    const char *number = path + strlen(path);
    while (strncmp(number, TEMPORARY, sizeof TEMPORARY - 1) != 0)
      number--;
    long pid = strtol(number + sizeof TEMPORARY - 1, NULL, 10);
    if (pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) && errno == ESRCH)
      unlink(path);
  }
  if (files)
    globfree(&found);
}
