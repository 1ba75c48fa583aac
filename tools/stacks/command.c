/*
** ljprof dump-stacks -p PID.
*/
#include <unistd.h>

#include "tools/join/nameless.h"
#include "tools/shared/command.h"
#include "tools/stacks/outside.h"
#include "tools/stacks/stacks.h"

static const char stacks_help[] =
    "Usage: ljprof dump-stacks -p PID [OPTION]...\n"
    "Shows what the running program PID is doing now, even if it hangs: the "
    "stack of\n"
    "each thread, with Lua and C, and the stack of each suspended coroutine. "
    "Threads\n"
    "that run are stopped for a moment; the others are not.\n"
    "\n"
    "  -p, --pid PID  the program: its number (see ljprof list), or the path "
    "of the\n"
    "                 socket at which it listens (LJPROF_LISTEN)\n"
    "  --locals       show local variables of Lua functions, too; those of "
    "compiled\n"
    "                 code are not known\n"
    "  --json         print JSON\n"
    "  --help         show this help\n"
    "\n"
    "If the program cannot be joined because it hangs in malloc(), only its "
    "machine\n"
    "code is shown.\n"
    "\n"
    "Exit code: 0 success, 1 the program cannot be joined, 2 wrong usage.\n";

static const char stacks_name[] = "dump-stacks";

static int stacks_show(const struct ljp_talk *talk, int fd, bool json)
{
  static struct ljp_print out;
  struct ljp_stacks_lines lines;
  struct ljp_symbols *symbols = NULL;
  const char *wrong = ljp_stacks_lines_read(&lines, fd);
  int code = LJP_EXIT_OK;
  if (wrong) {
    ljp_command_error(stacks_name, "%s: what it wrote is damaged: %s",
                      talk->name, wrong);
    code = LJP_EXIT_FAILED;
  } else {
    symbols = ljp_stacks_name(&lines, talk->pid);
    ljp_print_begin(&out, STDOUT_FILENO);
    if (json)
      ljp_stacks_show_json(&out, talk, &lines);
    else
      ljp_stacks_show_text(&out, talk, &lines);
    code = ljp_command_end(stacks_name, &out, code);
  }
  if (symbols)
    ljp_symbols_free(symbols);
  ljp_stacks_lines_free(&lines);
  return code;
}

/* No helper can be had, although the program runs our library: it hangs in the
** allocator, for one. */
static void stacks_outside(const struct ljp_talk *talk, const bool json)
{
  if (!talk->pid || (!talk->visit.good && !*talk->visit.why) || json)
    return;
  ljp_command_note(stacks_name,
                   "only machine code can be shown, from outside of the "
                   "program");
  if (!ljp_stacks_outside(talk->pid))
    ljp_command_error(stacks_name, "%s: its threads cannot be read",
                      talk->name);
}

int ljp_command_dump_stacks(int argc, char **argv)
{
  static struct ljp_talk talk;
  struct ljp_nameless file = {.fd = -1};
  struct ljp_goal goal;
  const char *text = NULL;
  bool locals = false, json = false;
  const struct ljp_flag flags[] = {{"-p", NULL, &text},
                                   {"--pid", NULL, &text},
                                   {"--locals", &locals, NULL},
                                   {"--json", &json, NULL}};
  int code = ljp_command_plain(stacks_name, stacks_help, argc, argv, flags,
                               sizeof flags / sizeof *flags);
  if (code < 0)
    code = ljp_talk_goal(stacks_name, text, &goal);
  if (code >= 0)
    return code;
  code = ljp_nameless_open(&file, stacks_name);
  if (code >= 0)
    return code;
  code = ljp_talk_join(&talk, stacks_name, &goal);
  if (code < 0)
    code = ljp_stacks_take(&talk, file.fd, locals);
  if (code >= 0)
    stacks_outside(&talk, json);
  ljp_talk_leave(&talk);
  if (code < 0)
    code = stacks_show(&talk, file.fd, json);
  if (file.fd >= 0)
    close(file.fd);
  return code;
}
