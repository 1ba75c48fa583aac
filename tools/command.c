/*
** Helpers of the subcommands.
*/
#include "tools/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void ljp_command_error(const char *name, const char *format, ...)
{
  static struct ljp_print out; /* Large; an error ends the command. */
  char text[4096 + 512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (n < 0)
    n = 0;
  if ((size_t)n >= sizeof text)
    n = sizeof text - 1;
  ljp_print_begin(&out, STDERR_FILENO);
  ljp_print_str(&out, *name ? "ljprof " : "ljprof");
  ljp_print_str(&out, name);
  ljp_print_str(&out, ": ");
  ljp_print_safe(&out, ljp_str(text, (size_t)n));
  ljp_print_str(&out, "\n");
  ljp_print_end(&out);
}

int ljp_command_options(const char *name, const char *help, int argc,
                        char **argv, const struct ljp_flag *flags,
                        unsigned count, const char **file)
{
  bool options = true;
  *file = NULL;
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    unsigned f = 0;
    if (options && strcmp(arg, "--") == 0) {
      options = false;
      continue;
    }
    if (!options || arg[0] != '-' || arg[1] == '\0') {
      if (*file) {
        ljp_command_error(name, "one file at a time, '%s' is too much", arg);
        return LJP_EXIT_USAGE;
      }
      *file = arg;
      continue;
    }
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
      static struct ljp_print out;
      ljp_print_begin(&out, STDOUT_FILENO);
      ljp_print_str(&out, help);
      return ljp_command_end(name, &out, LJP_EXIT_OK);
    }
    while (f < count && strcmp(arg, flags[f].option) != 0)
      f++;
    if (f == count) {
      ljp_command_error(name, "unknown option '%s' (see ljprof %s --help)", arg,
                        name);
      return LJP_EXIT_USAGE;
    }
    *flags[f].set = true;
  }
  if (!*file) {
    ljp_command_error(name, "no file given ('-' is standard input)");
    return LJP_EXIT_USAGE;
  }
  return -1;
}

int ljp_command_end(const char *name, struct ljp_print *out, int code)
{
  int error = ljp_print_end(out);
  if (error && error != EPIPE) {
    ljp_command_error(name, "cannot write: %s", strerror(error));
    return LJP_EXIT_FAILED;
  }
  return code;
}
