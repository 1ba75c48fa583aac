/*
** ljprof mark -p PID NAME.
*/
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/join/talk.h"
#include "tools/shared/command.h"

enum { ANSWER_MS = 10000, MARK_BYTES = LJP_JOIN_MESSAGE_BYTES - 14 };

static const char mark_help[] =
    "Usage: ljprof mark -p PID NAME\n"
    "Puts a mark with this name on the timeline of the session that runs in "
    "the\n"
    "program PID, whoever started it. Flame graph pages show marks, and "
    "'ljprof\n"
    "report --since NAME' counts the memory that was allocated after a mark.\n"
    "\n"
    "  -p, --pid PID  the program: its number (see ljprof list), or the path "
    "of the\n"
    "                 socket at which it listens (LJPROF_LISTEN)\n"
    "  --help         show this help\n"
    "\n"
    "Exit code: 0 success, 1 no session runs or the program cannot be joined, "
    "2\n"
    "wrong usage.\n";

/* The message with the name, as the program will read it. -1: it can be sent;
** else the exit code. */
static int mark_make(struct ljp_join_message *m, const char *name)
{
  char data[LJP_JOIN_MESSAGE_BYTES];
  struct ljp_join_message read = {0};
  *m = (struct ljp_join_message){.type = LJP_JOIN_MARK};
  ljp_join_set_text(m, 0, name);
  size_t bytes = ljp_join_pack(m, data);
  if (!*name)
    ljp_command_error("mark", "NAME is empty (see ljprof mark --help)");
  else if (!bytes)
    ljp_command_error("mark", "NAME has %zu bytes, but a mark has at most %d",
                      strlen(name), (int)MARK_BYTES);
  else if (ljp_join_parse(&read, LJP_JOIN_SIDE_C, data, bytes))
    ljp_command_error("mark", "NAME is '%s', but must be UTF-8", name);
  else
    return -1;
  return LJP_EXIT_USAGE;
}

static int mark_parse(int argc, char **argv, struct ljp_goal *goal,
                      struct ljp_join_message *m)
{
  const char *text = NULL;
  const struct ljp_flag flags[] = {{"-p", NULL, &text}, {"--pid", NULL, &text}};
  const char **words = calloc((size_t)argc + 1, sizeof *words);
  unsigned count = 0;
  if (!words) {
    ljp_command_error("mark", "out of memory");
    return LJP_EXIT_FAILED;
  }
  int code =
      ljp_command_words("mark", mark_help, argc, argv, flags, 2, words, &count);
  if (code < 0)
    code = ljp_talk_goal("mark", text, goal);
  if (code < 0 && count != 1) {
    ljp_command_error(
        "mark",
        count ? "unexpected argument '%s': a mark has one NAME, in quotes"
              : "NAME of the mark is missing (see ljprof mark --help)%s",
        count ? words[1] : "");
    code = LJP_EXIT_USAGE;
  }
  if (code < 0)
    code = mark_make(m, words[0]);
  free((void *)words);
  return code;
}

int ljp_command_mark(int argc, char **argv)
{
  static struct ljp_talk talk;
  struct ljp_join_message m;
  struct ljp_goal goal;
  int code = mark_parse(argc, argv, &goal, &m);
  if (code < 0)
    code = ljp_talk_join(&talk, "mark", &goal);
  if (code >= 0)
    return code;
  ljp_talk_send(&talk, &m);
  code = ljp_talk_answer(&talk, LJP_JOIN_MARKED, ANSWER_MS);
  ljp_talk_leave(&talk);
  return code < 0 ? LJP_EXIT_OK : code;
}
