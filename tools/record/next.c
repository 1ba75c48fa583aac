/*
** What the user may type next, once a program has been recorded.
*/
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/record/record.h"
#include "tools/shared/command.h"

enum { NEXT_NAME = 4 * PATH_MAX };

uint64_t ljp_record_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

const char *ljp_record_shown(const char *path)
{
  char folder[PATH_MAX];
  size_t len = getcwd(folder, sizeof folder) ? strlen(folder) : 0;
  return len && strncmp(path, folder, len) == 0 && path[len] == '/'
             ? path + len + 1
             : path;
}

/* A file's name as a user types it in this folder, for a shell. */
static void next_typed(const char *path, char out[NEXT_NAME])
{
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789_-+=./:@%,";
  char *at = out;
  path = ljp_record_shown(path);
  const char *quote = path[strspn(path, plain)] ? "'" : "";
  at += sprintf(at, "%s%s", quote, *path == '-' ? "./" : "");
  for (; *path && at < out + NEXT_NAME - 8; path++)
    at += sprintf(at, *path == '\'' ? "'\"'\"'" : "%c", *path);
  sprintf(at, "%s", quote);
}

/* Adds the files of one kind. first: the name of the first file of all. */
static size_t next_count(const struct ljp_record_plan *plan,
                         enum ljp_record_name kind, char first[PATH_MAX])
{
  glob_t found;
  size_t files = ljp_record_files(plan, kind, &found);
  if (!files)
    return 0;
  if (!*first)
    snprintf(first, PATH_MAX, "%s", found.gl_pathv[0]);
  globfree(&found);
  return files;
}

static void next_tell_report(const struct ljp_record_plan *plan)
{
  char first[PATH_MAX] = "", name[NEXT_NAME], base[NEXT_NAME];
  struct stat now;
  size_t files = 0;
  if (ljp_settings_store(&plan->set) && plan->events) {
    next_typed(plan->path, name);
    ljp_command_next("record", "ljprof gather %s", name);
    return;
  }
  if (!stat(plan->path, &now) && !S_ISREG(now.st_mode))
    return;
  if (ljp_record_replaced(plan)) {
    snprintf(first, sizeof first, "%s", plan->path);
    files++;
  }
  if (ljp_record_rotates(plan))
    files += next_count(plan, LJP_NAME_SEGMENT, first);
  files += next_count(plan, LJP_NAME_CHILD, first);
  files += next_count(plan, LJP_NAME_EXECUTED, first);
  next_typed(first, name);
  next_typed(plan->path, base);
  const char *asked =
      plan->set.value[LJP_SETTING_REPORT] ? "report" : "duration";
  if (files && plan->ran_on && plan->late_s > 0)
    ljp_command_note(
        "record",
        "the recording ended after %.1f s, not after %g s, as --%s "
        "asked, since it waited for heap snapshots; the program "
        "ran on",
        plan->late_s, ljp_record_duration(plan), asked);
  else if (files && plan->ran_on)
    ljp_command_note("record",
                     "the recording ended after %g s, as --%s asked; the "
                     "program ran on",
                     ljp_record_duration(plan), asked);
  if (files && plan->empty)
    ljp_command_note("record",
                     "no sample was taken, so there is nothing to report: let "
                     "the program work for longer, or sample more often "
                     "(--interval, --sample, --every)");
  else if (files > 1)
    ljp_command_next("record",
                     "ljprof report %s (of %zu files, which 'ljprof merge -o "
                     "FILE %s*' joins)",
                     name, files, base);
  else if (files)
    ljp_command_next("record", "ljprof report %s", name);
}

/* A process that the program forked, such as a daemon, may be running on. If its
** number belongs to another process by now, it has another file. */
static void next_tell_forked(const struct ljp_record_plan *plan,
                             const struct ljp_told *told)
{
  unsigned count = 0;
  pid_t first = 0;
  for (unsigned i = 0; plan->file.st_ino && i < told->forks; i++) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)told->forked[i]);
    if (stat(path, &st) || st.st_dev != plan->file.st_dev ||
        st.st_ino != plan->file.st_ino)
      continue;
    if (!count++)
      first = told->forked[i];
  }
  if (count)
    ljp_command_note("record",
                     "%s has ended, but %u process%s that it forked run%s on "
                     "without being recorded, such as %ld (--children records "
                     "them)",
                     plan->program[0], count, count == 1 ? "" : "es",
                     count == 1 ? "s" : "", (long)first);
}

void ljp_record_next(const struct ljp_record_plan *plan,
                     const struct ljp_told *told)
{
  const unsigned n = told->others;
  if (told->own && n && !plan->children && !plan->preload)
    ljp_command_note("record",
                     "%u process%s that %s started loaded our "
                     "libluajit-5.1.so.2, too (--children records them)",
                     n, n == 1 ? "" : "es", plan->program[0]);
  next_tell_forked(plan, told);
  next_tell_report(plan);
}
