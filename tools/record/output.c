/*
** The file that a recording will write. What can be known to prevent that is
** said before the program runs.
*/
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/target.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

static int output_refuse(const char *path, int error)
{
  ljp_command_error("record", "cannot write %s: %s (name another file with -o)",
                    path, strerror(error));
  return LJP_EXIT_FAILED;
}

/* The library follows links, and puts the other files of the recording beside
** the file that it finds. A regular file is replaced by a new one in the same
** folder, anything else is written to. */
static int output_follow_links(struct ljp_record_plan *plan)
{
  struct ljp_target found;
  int error = ljp_target_find(&found, plan->path);
  if (error)
    return output_refuse(plan->path, error);
  bool file = !found.there || S_ISREG(found.st.st_mode);
  if (faccessat(found.dir, file ? "." : found.name, file ? W_OK | X_OK : W_OK,
                AT_EACCESS))
    error = errno;
  close(found.dir);
  if (file)
    snprintf(plan->path, sizeof plan->path, "%s", found.path);
  free(found.path);
  if (error)
    return output_refuse(plan->path, error);
  bool report = plan->set.value[LJP_SETTING_REPORT];
  if (file || (!ljp_record_rotates(plan) && !report))
    return -1;
  ljp_command_error("record",
                    "%s is not a regular file, so %s: name another one with -o",
                    ljp_record_shown(plan->path),
                    report ? "no report can be made of it"
                           : "rotation would not leave it as it is");
  return LJP_EXIT_FAILED;
}

/* The absolute path of the output. */
static int output_make_path(struct ljp_record_plan *plan)
{
  char folder[PATH_MAX - 300] = "", name[256];
  const char *output = plan->output;
  if (!output) {
    ljp_record_default_name(plan, name, sizeof name);
    output = name;
  }
  if (output[0] != '/' && !getcwd(folder, sizeof folder)) {
    ljp_command_error("record", "cannot find the current directory: %s",
                      strerror(errno));
    return LJP_EXIT_FAILED;
  }
  int n = snprintf(plan->path, sizeof plan->path, "%s%s%s", folder,
                   *folder ? "/" : "", output);
  if (n < 0 || (size_t)n >= sizeof plan->path || !*output) {
    ljp_command_error("record", "%s: %s", output,
                      strerror(*output ? ENAMETOOLONG : ENOENT));
    return LJP_EXIT_FAILED;
  }
  return -1;
}

int ljp_record_find_output(struct ljp_record_plan *plan)
{
  if (ljp_settings_store(&plan->set))
    return ljp_record_find_store(plan);
  int code = output_make_path(plan);
  if (code >= 0)
    return code;
  if (lstat(plan->path, &plan->before)) {
    plan->before = (struct stat){0};
  } else if (S_ISDIR(plan->before.st_mode) || !plan->force) {
    ljp_command_error("record", "%s %s", ljp_record_shown(plan->path),
                      S_ISDIR(plan->before.st_mode)
                          ? "is a directory"
                          : "exists (use --force to replace it)");
    return LJP_EXIT_FAILED;
  }
  code = output_follow_links(plan);
  if (code >= 0)
    return code;
  if (plan->before.st_ino && lstat(plan->path, &plan->before))
    plan->before = (struct stat){0};
  /* plan->began is still 0: segments of any age count. */
  if (ljp_record_rotates(plan) && !plan->force && ljp_record_segments(plan)) {
    ljp_command_error("record",
                      "%s.s1 or another segment exists (use --force to "
                      "replace them)",
                      ljp_record_shown(plan->path));
    return LJP_EXIT_FAILED;
  }
  return -1;
}
