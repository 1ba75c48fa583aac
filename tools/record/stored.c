/*
** Recordings into a store: the folder that --ring, --continuous and --service
** write to (src/base/store_name.h), and what is in it afterwards.
*/
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/record/record.h"
#include "tools/shared/command.h"
#include "tools/shared/store.h"

static int stored_refuse(const char *path, int error)
{
  ljp_command_error("record",
                    "cannot write into %s: %s (name another folder "
                    "with -o)",
                    path, strerror(error));
  return LJP_EXIT_FAILED;
}

int ljp_record_find_store(struct ljp_record_plan *plan)
{
  static char service[LJP_STORE_SERVICE_BYTES];
  char name[256], path[PATH_MAX];
  struct stat st;
  if (!plan->set.value[LJP_SETTING_SERVICE]) {
    ljp_record_program_name(plan, name, sizeof name);
    ljp_store_service_make(service, name);
    plan->set.value[LJP_SETTING_SERVICE] = service;
  }
  if (plan->output)
    snprintf(path, sizeof path, "%s", plan->output);
  else
    snprintf(path, sizeof path, "%s-profiles",
             plan->set.value[LJP_SETTING_SERVICE]);
  if (mkdir(path, 0777) && errno != EEXIST)
    return stored_refuse(path, errno);
  if (stat(path, &st))
    return stored_refuse(path, errno);
  if (!S_ISDIR(st.st_mode)) {
    ljp_command_error("record",
                      "%s is not a folder: --ring, --continuous and --service "
                      "write files of many processes into a folder (-o DIR)",
                      path);
    return LJP_EXIT_FAILED;
  }
  if (!realpath(path, plan->path) ||
      faccessat(AT_FDCWD, plan->path, W_OK | X_OK, AT_EACCESS))
    return stored_refuse(path, errno);
  return -1;
}

/* Is the segment of this recording? Its time is checked roughly, too: uptimes of
** an earlier boot may be larger. */
static bool stored_is_ours(const struct ljp_record_plan *plan,
                           const struct ljp_segment *s)
{
  enum { DAY_S = 86400 };
  return strcmp(s->made.service, plan->set.value[LJP_SETTING_SERVICE]) == 0 &&
         s->made.sequence && !s->merged && s->stream &&
         s->start_mono_ns >= plan->began_mono_ns &&
         s->start_wall_ns / 1000000000 + DAY_S >= (uint64_t)plan->began.tv_sec;
}

bool ljp_record_stored(const struct ljp_record_plan *plan,
                       bool (*take)(void *ctx, const char *path,
                                    uint32_t session),
                       void *ctx, struct ljp_stored *found)
{
  char path[PATH_MAX + 300];
  struct ljp_store store;
  uint64_t streams[64] = {0};
  bool done = true;
  *found = (struct ljp_stored){0};
  int error = ljp_store_open(&store, plan->path);
  if (!error)
    error = ljp_store_look(&store);
  for (size_t i = 0; !error && i < store.count; i++) {
    const struct ljp_segment *s = &store.segments[i];
    if (!stored_is_ours(plan, s))
      continue;
    unsigned n = found->processes < 64 ? found->processes : 64, k = 0;
    while (k < n && streams[k] != s->stream)
      k++;
    if (k == n) {
      if (n < 64)
        streams[n] = s->stream;
      found->processes++;
    }
    snprintf(path, sizeof path, "%s/%s", plan->path, s->name);
    if (!access(path, F_OK))
      done &= take(ctx, path, (uint32_t)i);
    found->files++;
    found->bytes += s->room;
  }
  if (error)
    ljp_command_error("record", "%s: %s", plan->path, strerror(error));
  ljp_store_close(&store);
  return done && !error;
}
