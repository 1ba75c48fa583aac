/*
** ljprof list: the programs on this machine that run our library. Looks at
** their memory, and stops nothing.
*/
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/join/running.h"
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

struct list {
  struct ljp_print out;
  unsigned programs;
};

static void list_program(void *ctx, const struct ljp_running *r)
{
  struct list *l = ctx;
  struct ljp_print *out = &l->out;
  char vms[16] = "-", sessions[48] = "";
  const char *version = r->known ? r->version : "-";
  if (!l->programs++)
    ljp_print_str(out, "    PID  STATE    VMS  SESSIONS                    "
                       "VERSION  COMMAND\n");
  ljp_print_format(out, "%7d  %-7s  ", (int)r->pid, r->state);
  if (r->known)
    snprintf(vms, sizeof vms, "%" PRIu32, r->vms);
  list_session(sessions, sizeof sessions, "cpu", r->sessions & LJP_SHOWN_CPU,
               r->sessions, r->client);
  list_session(sessions, sizeof sessions, "memory",
               r->sessions & LJP_SHOWN_MEMORY, r->sessions, r->client);
  if (!*sessions)
    strcpy(sessions, "-");
  ljp_print_format(out, "%3s  %-26s  ", vms, sessions);
  size_t len = strnlen(version, sizeof r->version);
  ljp_print_safe(out, ljp_str(version, len));
  ljp_print_format(out, "%*s  ", len < 7 ? (int)(7 - len) : 0, "");
  ljp_print_safe(out, ljp_str(r->command, strlen(r->command)));
  ljp_print_str(out, "\n");
}

int ljp_command_list(int argc, char **argv)
{
  static struct list l;
  unsigned hidden;
  int code = ljp_command_plain("list", list_help, argc, argv, NULL, 0);
  if (code >= 0)
    return code;
  ljp_print_begin(&l.out, STDOUT_FILENO);
  int error = ljp_running_each(list_program, &l, &hidden);
  if (error) {
    ljp_command_error("list", "/proc: %s", strerror(error));
    return LJP_EXIT_FAILED;
  }
  code = ljp_command_end("list", &l.out, LJP_EXIT_OK);
  if (!l.programs)
    ljp_command_note("list", "no program runs our library");
  if (hidden)
    ljp_command_note("list", "%u process%s could not be looked at%s", hidden,
                     hidden == 1 ? "" : "es",
                     geteuid() ? " (this may need root)" : "");
  return code;
}
