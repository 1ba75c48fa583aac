/*
** ljprof: finds the command by its name and runs it. The commands are listed in
** tools/shared/command.h.
*/
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/nearest.h"
#include "tools/shared/command.h"

static struct {
  char name[16];
  const char *text;
  int (*run)(int argc, char **argv);
} commands[] = {
#define LJP_X(name, text) {#name, text, ljp_command_##name},
    LJP_COMMAND_LIST(LJP_X)
#undef LJP_X
};
enum { COMMANDS = sizeof commands / sizeof *commands };

#ifdef LJP_NO_ANALYZER
#define MAIN_NO_ANALYZER                                                       \
  "This ljprof was built without the analyzer: only record, list, status, "    \
  "stop, mark, jitdump, check and dump "                                       \
  "work.\nFor the other commands, copy files to a machine with a full "        \
  "ljprof.\n\n"
#else
#define MAIN_NO_ANALYZER
#endif

static int main_help(void)
{
  static struct ljp_print out;
  ljp_print_begin(&out, STDOUT_FILENO);
  ljp_print_str(&out,
                "Usage: ljprof COMMAND [OPTION]... FILE\n"
                "Records and shows profiles of programs that use LuaJIT.\n\n"
                "  ljprof record app.lua   run a script, and record it\n"
                "  ljprof report FILE      show where its time went\n\n"
                "Commands:\n");
  for (int i = 0; i < COMMANDS; i++)
    ljp_print_format(&out, "  %-11s %s\n", commands[i].name, commands[i].text);
  ljp_print_str(&out,
                "\n"
                "  ljprof help COMMAND     show the help of a command\n"
                "  ljprof --version        show the version\n\n"
                "FILE may be '-' for standard input, except for embed, merge "
                "and push. All\ncommands that read files, except top, heap, "
                "embed and merge, also read those\nof Tarantool's memprof and "
                "sysprof.\n\n" MAIN_NO_ANALYZER
                "Exit code: 0 success, 1 failure or damaged data, 2 wrong "
                "usage.\n");
  return ljp_command_end("", &out, LJP_EXIT_OK);
}

static int main_version(void)
{
  static struct ljp_print out;
  ljp_print_begin(&out, STDOUT_FILENO);
  ljp_print_format(&out, "ljprof %s (stream format %d.%d)\n", LJP_VERSION,
                   LJP_FORMAT_MAJOR, LJP_FORMAT_MINOR);
  return ljp_command_end("", &out, LJP_EXIT_OK);
}

static int main_unknown(const char *name)
{
  int nearest = 0;
  size_t len = strlen(name);
  bool script = len > 4 && strcmp(name + len - 4, ".lua") == 0;
  for (int i = 1; i < COMMANDS; i++)
    if (ljp_nearest_distance(name, commands[i].name) <
        ljp_nearest_distance(name, commands[nearest].name))
      nearest = i;
  if (access(name, F_OK) == 0)
    ljp_command_error("", "'%s' is a file, not a command: type 'ljprof %s %s'",
                      name, script ? "record" : "report", name);
  else if (ljp_nearest_distance(name, commands[nearest].name) <=
           ljp_nearest_limit(name))
    ljp_command_error("", "unknown command '%s'; did you mean '%s'?", name,
                      commands[nearest].name);
  else
    ljp_command_error("", "unknown command '%s' (see ljprof --help)", name);
  return LJP_EXIT_USAGE;
}

/* The command of this name; -1: none. */
static int main_find(const char *name)
{
  int i = COMMANDS - 1;
  while (i >= 0 && strcmp(name, commands[i].name) != 0)
    i--;
  return i;
}

int main(int argc, char **argv)
{
  /* A closed pipe must show as EPIPE, so that a command can end quietly. */
  signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < COMMANDS; i++)
    for (char *at = commands[i].name; (at = strchr(at, '_')) != NULL;)
      *at = '-';
  if (argc < 2) {
    ljp_command_error("", "no command given (see ljprof --help)");
    return LJP_EXIT_USAGE;
  }
  bool help = strcmp(argv[1], "help") == 0;
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      (help && argc < 3))
    return main_help();
  if (strcmp(argv[1], "--version") == 0)
    return main_version();
  int command = main_find(argv[help ? 2 : 1]);
  char *help_of[] = {argv[help ? 2 : 1], "--help", NULL};
  if (command < 0)
    return main_unknown(argv[help ? 2 : 1]);
  /* Who started us may ignore it: the status of our children would be lost. The
  ** program that `record` runs goes on to ignore it. */
  if (strcmp(commands[command].name, "record") != 0)
    signal(SIGCHLD, SIG_DFL);
  return help ? commands[command].run(2, help_of)
              : commands[command].run(argc - 1, argv + 1);
}
