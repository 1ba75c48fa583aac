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

static const struct {
  const char *name, *text;
  int (*run)(int argc, char **argv);
} commands[] = {
#define LJP_X(name, text) {#name, text, ljp_command_##name},
    LJP_COMMAND_LIST(LJP_X)
#undef LJP_X
};
enum { COMMANDS = sizeof commands / sizeof *commands };

#ifdef LJP_NO_ANALYZER
#define MAIN_NO_ANALYZER                                                       \
  "This ljprof was built without the analyzer: only record, check and dump "   \
  "work.\nFor the other commands, copy files to a machine with a whole "       \
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
                "Commands:\n");
  for (int i = 0; i < COMMANDS; i++)
    ljp_print_format(&out, "  %-8s %s\n", commands[i].name, commands[i].text);
  ljp_print_str(&out,
                "\n"
                "  ljprof COMMAND --help   show the help of a command\n"
                "  ljprof --version        show the version\n\n"
                "FILE may be '-' for standard input. All commands but record, "
                "embed and merge\nalso read files of Tarantool's memprof and "
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
  for (int i = 1; i < COMMANDS; i++)
    if (ljp_nearest_distance(name, commands[i].name) <
        ljp_nearest_distance(name, commands[nearest].name))
      nearest = i;
  ljp_command_error("", "unknown command '%s'; did you mean '%s'?", name,
                    commands[nearest].name);
  return LJP_EXIT_USAGE;
}

int main(int argc, char **argv)
{
  /* A closed pipe must show as EPIPE, so that a command can end quietly. */
  signal(SIGPIPE, SIG_IGN);
  if (argc < 2) {
    ljp_command_error("", "no command given (see ljprof --help)");
    return LJP_EXIT_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      strcmp(argv[1], "help") == 0)
    return main_help();
  if (strcmp(argv[1], "--version") == 0)
    return main_version();
  for (int i = 0; i < COMMANDS; i++)
    if (strcmp(argv[1], commands[i].name) == 0)
      return commands[i].run(argc - 1, argv + 1);
  return main_unknown(argv[1]);
}
