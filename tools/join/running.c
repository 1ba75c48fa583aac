/*
** See running.h.
*/
#include "tools/join/running.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/join/find.h"

static const char *running_word(const struct ljp_proc_status *s,
                                const struct ljp_join_place *note)
{
  if (note->kind == LJP_PLACE_OLD)
    return "old";
  if (note->kind == LJP_PLACE_NEW)
    return "newer";
  return s->state == 'T' ? "stopped" : s->tracer ? "traced" : "joins";
}

/* VMs, sessions and version: what the library has in the process's memory. */
static void running_shown(struct ljp_running *r,
                          const struct ljp_join_place *note)
{
  struct {
    uint32_t vms, sessions;
    int32_t client;
    char version[sizeof ljp_shown.version];
  } s;
  _Static_assert(sizeof s == sizeof(struct ljp_shown), "the same layout");
  if (note->kind != LJP_PLACE_GOOD ||
      !ljp_memory_read(r->pid, note->shown, &s, sizeof s))
    return;
  r->known = true;
  r->vms = s.vms;
  r->sessions = s.sessions;
  r->client = s.client;
  memcpy(r->version, s.version, sizeof r->version);
}

/* Returns an errno; 0 with an empty state: it does not run our library. */
static int running_look(pid_t pid, struct ljp_running *r)
{
  static struct ljp_found found;
  struct ljp_proc_status s;
  struct ljp_maps maps;
  *r = (struct ljp_running){.pid = pid};
  if (pid == getpid() || !ljp_proc_status(pid, 0, &s) || strchr("ZX", s.state))
    return 0;
  int error = ljp_maps_read(&maps, pid);
  if (!error)
    error = ljp_find(&found, pid, &maps);
  ljp_maps_free(&maps);
  if (error || found.note.kind == LJP_PLACE_NONE)
    return error;
  r->state = running_word(&s, &found.note);
  running_shown(r, &found.note);
  ljp_proc_command(pid, r->command, sizeof r->command);
  return 0;
}

static int running_by_number(const void *a, const void *b)
{
  const pid_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

int ljp_running_each(void (*take)(void *ctx, const struct ljp_running *program),
                     void *ctx, unsigned *hidden)
{
  static pid_t pids[1 << 16];
  struct ljp_running r;
  size_t n = 0;
  DIR *dir = opendir("/proc");
  *hidden = 0;
  if (!dir)
    return errno;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
    if (isdigit((unsigned char)entry->d_name[0]) &&
        n < sizeof pids / sizeof *pids)
      pids[n++] = (pid_t)atol(entry->d_name);
  closedir(dir);
  qsort(pids, n, sizeof *pids, running_by_number);
  for (size_t i = 0; i < n; i++) {
    int error = running_look(pids[i], &r);
    *hidden += error == EPERM || error == EACCES;
    if (r.state)
      take(ctx, &r);
  }
  return 0;
}
