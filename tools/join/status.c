/*
** ljprof status -p PID and ljprof stop -p PID.
*/
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "tools/join/talk.h"
#include "tools/shared/command.h"

enum { ANSWER_MS = 10000 };

static const char status_help[] =
    "Usage: ljprof status -p PID\n"
    "Joins the program PID for a moment, and tells which session runs in it.\n"
    "\n"
    "  -p, --pid PID  the program: its number (see ljprof list), or the path "
    "of the\n"
    "                 socket at which it listens (LJPROF_LISTEN)\n"
    "  --help         show this help\n"
    "\n"
    "Exit code: 0 success, 1 the program cannot be joined, 2 wrong usage.\n";

static const char stop_help[] =
    "Usage: ljprof stop -p PID\n"
    "Ends the session that another 'ljprof record -p PID' has started; that "
    "command\n"
    "then ends, too. A session that the program started itself goes on.\n"
    "\n"
    "  -p, --pid PID  the program: its number (see ljprof list), or the path "
    "of the\n"
    "                 socket at which it listens (LJPROF_LISTEN)\n"
    "  --help         show this help\n"
    "\n"
    "Exit code: 0 success, 1 there is no such session or the program cannot "
    "be\n"
    "joined, 2 wrong usage.\n";

static int status_join(struct ljp_talk *talk, const char *command,
                       const char *help, int argc, char **argv)
{
  const char *text = NULL;
  struct ljp_goal goal;
  const struct ljp_flag flags[] = {{"-p", NULL, &text}, {"--pid", NULL, &text}};
  int code = ljp_command_plain(command, help, argc, argv, flags, 2);
  if (code < 0)
    code = ljp_talk_goal(command, text, &goal);
  return code >= 0 ? code : ljp_talk_join(talk, command, &goal);
}

static void status_owner(struct ljp_print *out,
                         const struct ljp_join_message *m, uint64_t client)
{
  if (client)
    ljp_print_format(out,
                     ", started by ljprof (process %" PRIu64 ") %.1f s ago",
                     client, (double)m->number[7] / 1e9);
  else
    ljp_print_str(out, ", started by the program");
}

static void status_show(struct ljp_print *out, const struct ljp_talk *talk)
{
  const struct ljp_join_message *m = &talk->message;
  const bool cpu = m->number[1] & LJP_JOIN_SESSION_CPU;
  char state[32], timer[32], path[1100];
  ljp_join_text(m, 0, state, sizeof state);
  ljp_join_text(m, 1, timer, sizeof timer);
  ljp_join_text(m, 2, path, sizeof path);
  ljp_print_safe(out, ljp_str(talk->name, strlen(talk->name)));
  ljp_print_format(out, ": library ");
  ljp_print_safe(out, ljp_str(talk->version, strlen(talk->version)));
  ljp_print_format(out, ", %" PRIu64 " VM%s\n", m->number[0],
                   m->number[0] == 1 ? "" : "s");
  if (cpu) {
    ljp_print_str(out, "CPU session: ");
    ljp_print_safe(out, ljp_str(state, strlen(state)));
    status_owner(out, m, m->number[2]);
    ljp_print_format(out,
                     ": %" PRIu64 " samples of %" PRIu64 " thread%s, %" PRIu64
                     " lost, %" PRIu64 " bytes, timer ",
                     m->number[4], m->number[6], m->number[6] == 1 ? "" : "s",
                     m->number[5], m->number[3]);
    ljp_print_safe(out, ljp_str(timer, strlen(timer)));
    ljp_print_str(out, *path ? ", into " : "");
    ljp_print_safe(out, ljp_str(path, strlen(path)));
    ljp_print_str(out, "\n");
  }
  if (m->number[1] & LJP_JOIN_SESSION_MEMORY) {
    ljp_print_str(out, "memory session: ");
    ljp_print_safe(
        out, ljp_str(cpu ? "running" : state, strlen(cpu ? "running" : state)));
    status_owner(out, m, m->number[8]);
    ljp_print_format(out, ": %" PRIu64 " events", m->number[9]);
    if (!cpu) {
      ljp_print_format(out, ", %" PRIu64 " lost, %" PRIu64 " bytes",
                       m->number[5], m->number[3]);
      ljp_print_str(out, *path ? ", into " : "");
      ljp_print_safe(out, ljp_str(path, strlen(path)));
    }
    ljp_print_str(out, "\n");
  }
  if (!m->number[1])
    ljp_print_str(out, "no session\n");
}

int ljp_command_status(int argc, char **argv)
{
  static struct ljp_talk talk;
  static struct ljp_print out;
  struct ljp_join_message m = {.type = LJP_JOIN_STATUS};
  int code = status_join(&talk, "status", status_help, argc, argv);
  if (code >= 0)
    return code;
  ljp_talk_send(&talk, &m);
  code = ljp_talk_answer(&talk, LJP_JOIN_STATE, ANSWER_MS);
  if (code < 0) {
    ljp_print_begin(&out, STDOUT_FILENO);
    status_show(&out, &talk);
    code = ljp_command_end("status", &out, LJP_EXIT_OK);
  }
  ljp_talk_leave(&talk);
  return code;
}

int ljp_command_stop(int argc, char **argv)
{
  static struct ljp_talk talk;
  static struct ljp_print out;
  struct ljp_join_message m = {.type = LJP_JOIN_STOP, .number = {1}};
  int code = status_join(&talk, "stop", stop_help, argc, argv);
  if (code >= 0)
    return code;
  ljp_talk_send(&talk, &m);
  code = ljp_talk_answer(&talk, LJP_JOIN_STOPPED, ANSWER_MS);
  if (code < 0) {
    ljp_print_begin(&out, STDOUT_FILENO);
    const uint64_t *sums = talk.message.number;
    ljp_print_format(&out, "stopped: %" PRIu64 " samples, ", sums[1]);
    if (sums[3])
      ljp_print_format(&out, "%" PRIu64 " memory events, ", sums[3]);
    ljp_print_format(&out, "%" PRIu64 " lost, %" PRIu64 " bytes\n", sums[2],
                     sums[0]);
    code = ljp_command_end("stop", &out, LJP_EXIT_OK);
  }
  ljp_talk_leave(&talk);
  return code;
}
