/*
** ljprof list: the programs on this machine that run our library. Looks at
** their memory, and stops nothing.
*/
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/shown.h"
#include "tools/join/find.h"
#include "tools/shared/command.h"

static const char list_help[] =
    "Usage: ljprof list\n"
    "Lists the programs on this machine that run our library. STATE is one of "
    "these:\n"
    "  joins     'ljprof record -p PID' may join it\n"
    "  old       its library is too old to be joined\n"
    "  newer     its library is newer than this ljprof\n"
    "  stopped   it is stopped by a signal\n"
    "  traced    a debugger traces it\n"
    "SESSIONS: 'cpu' and 'memory' are sessions that the program has started; "
    "'cpu:PID'\n"
    "and 'memory:PID' were started by the ljprof with this PID. 'ljprof status "
    "-p PID'\n"
    "tells more. Only root sees programs of other users.\n"
    "\n"
    "  --help  show this help\n"
    "\n"
    "Exit code: 0, even if there is no such program; 2 wrong usage.\n";

struct list_counts {
  unsigned ours, hidden;
};

static const char *list_word(const struct ljp_proc_status *s,
                             const struct ljp_join_place *note)
{
  if (note->kind == LJP_PLACE_OLD)
    return "old";
  if (note->kind == LJP_PLACE_NEW)
    return "newer";
  return s->state == 'T' ? "stopped" : s->tracer ? "traced" : "joins";
}

/* Adds a session to the text, if it runs. */
static void list_session(char *text, size_t room, const char *name,
                         uint32_t which, uint32_t sessions, int32_t client)
{
  size_t at = strlen(text);
  if (!which)
    return;
  at += (size_t)snprintf(text + at, room - at, "%s%s", at ? "," : "", name);
  if (sessions & which << LJP_SHOWN_SHIFT)
    snprintf(text + at, room - at, ":%" PRId32, client);
}

/* VMs, sessions and version: what the library has in the process's memory. */
static void list_shown(struct ljp_print *out, pid_t pid,
                       const struct ljp_join_place *note)
{
  struct {
    uint32_t vms, sessions;
    int32_t client;
    char version[sizeof ljp_shown.version];
  } s;
  _Static_assert(sizeof s == sizeof(struct ljp_shown), "the same layout");
  char vms[16] = "-", sessions[48] = "";
  if (note->kind != LJP_PLACE_GOOD ||
      !ljp_memory_read(pid, note->shown, &s, sizeof s)) {
    memset(&s, 0, sizeof s);
    strcpy(s.version, "-");
  } else {
    snprintf(vms, sizeof vms, "%" PRIu32, s.vms);
    list_session(sessions, sizeof sessions, "cpu", s.sessions & LJP_SHOWN_CPU,
                 s.sessions, s.client);
    list_session(sessions, sizeof sessions, "memory",
                 s.sessions & LJP_SHOWN_MEMORY, s.sessions, s.client);
  }
  if (!*sessions)
    strcpy(sessions, "-");
  ljp_print_format(out, "%3s  %-26s  ", vms, sessions);
  size_t len = strnlen(s.version, sizeof s.version);
  ljp_print_safe(out, ljp_str(s.version, len));
  ljp_print_format(out, "%*s  ", len < 7 ? (int)(7 - len) : 0, "");
}

static void list_process(struct ljp_print *out, struct list_counts *counts,
                         pid_t pid)
{
  static struct ljp_found found;
  struct ljp_proc_status s;
  struct ljp_maps maps;
  char command[200];
  if (pid == getpid() || !ljp_proc_status(pid, 0, &s) || strchr("ZX", s.state))
    return;
  int error = ljp_maps_read(&maps, pid);
  if (!error)
    error = ljp_find(&found, pid, &maps);
  ljp_maps_free(&maps);
  counts->hidden += error == EPERM || error == EACCES;
  if (error || found.note.kind == LJP_PLACE_NONE)
    return;
  if (!counts->ours++)
    ljp_print_str(out, "    PID  STATE    VMS  SESSIONS                    "
                       "VERSION  COMMAND\n");
  ljp_proc_command(pid, command, sizeof command);
  ljp_print_format(out, "%7d  %-7s  ", (int)pid, list_word(&s, &found.note));
  list_shown(out, pid, &found.note);
  ljp_print_safe(out, ljp_str(command, strlen(command)));
  ljp_print_str(out, "\n");
}

static int list_by_number(const void *a, const void *b)
{
  const pid_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

int ljp_command_list(int argc, char **argv)
{
  static struct ljp_print out;
  static pid_t pids[1 << 16];
  struct list_counts counts = {0, 0};
  size_t n = 0;
  int code = ljp_command_plain("list", list_help, argc, argv, NULL, 0);
  if (code >= 0)
    return code;
  DIR *dir = opendir("/proc");
  if (!dir) {
    ljp_command_error("list", "/proc: %s", strerror(errno));
    return LJP_EXIT_FAILED;
  }
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
    if (isdigit((unsigned char)entry->d_name[0]) &&
        n < sizeof pids / sizeof *pids)
      pids[n++] = (pid_t)atol(entry->d_name);
  closedir(dir);
  qsort(pids, n, sizeof *pids, list_by_number);
  ljp_print_begin(&out, STDOUT_FILENO);
  for (size_t i = 0; i < n; i++)
    list_process(&out, &counts, pids[i]);
  code = ljp_command_end("list", &out, LJP_EXIT_OK);
  if (!counts.ours)
    ljp_command_note("list", "no program runs our library");
  if (counts.hidden)
    ljp_command_note("list", "%u process%s could not be looked at%s",
                     counts.hidden, counts.hidden == 1 ? "" : "es",
                     geteuid() ? " (this may need root)" : "");
  return code;
}
