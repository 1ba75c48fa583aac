/*
** Parses options and prints errors for the commands.
*/
#include "tools/shared/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/nearest.h"

const char *ljp_command_input = "standard input";

static void command_line(const char *name, const char *what,
                         void (*print)(struct ljp_print *, struct ljp_str),
                         const char *format, va_list args)
{
  static struct ljp_print out; /* Too large for the stack. */
  char text[4096 + 512];
  int n = vsnprintf(text, sizeof text, format, args);
  if (n < 0)
    n = 0;
  if ((size_t)n >= sizeof text)
    n = sizeof text - 1;
  ljp_print_begin(&out, STDERR_FILENO);
  ljp_print_str(&out, *name ? "ljprof " : "ljprof");
  ljp_print_str(&out, name);
  ljp_print_str(&out, what);
  print(&out, ljp_str(text, (size_t)n));
  ljp_print_str(&out, "\n");
  ljp_print_end(&out);
}

void ljp_command_error(const char *name, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  command_line(name, ": ", ljp_print_safe, format, args);
  va_end(args);
}

void ljp_command_note(const char *name, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  command_line(name, ": note: ", ljp_print_safe, format, args);
  va_end(args);
}

void ljp_command_next(const char *name, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  command_line(name, ": next: ", ljp_print_source, format, args);
  va_end(args);
}

size_t ljp_command_length(const struct ljp_flag *flag)
{
  return strcspn(flag->option, "+ ");
}

/* The option that was probably meant by the first len bytes of arg: one that
** begins with them, or else the nearest. NULL: none is near. */
static const char *command_meant(const char *arg, size_t len,
                                 const struct ljp_flag *flags, unsigned count)
{
  enum { MIN_BYTES = 4, MAX_BYTES = 40 };
  static char word[MAX_BYTES + 1], option[MAX_BYTES + 1], best[MAX_BYTES + 1];
  const char *meant = NULL;
  if (len < MIN_BYTES || len > MAX_BYTES)
    return NULL;
  memcpy(word, arg, len);
  word[len] = '\0';
  unsigned least = ljp_nearest_limit(word + 2); /* Without the dashes. */
  for (unsigned f = 0; f < count; f++) {
    snprintf(option, sizeof option, "%.*s", (int)ljp_command_length(&flags[f]),
             flags[f].option);
    unsigned far = ljp_nearest_distance(word, option);
    if (strncmp(word, option, len) == 0)
      return option;
    if (far <= least && (!meant || far < least)) {
      least = far;
      meant = memcpy(best, option, sizeof best);
    }
  }
  return meant;
}

static int command_unknown(const char *name, const char *arg, size_t len,
                           const struct ljp_flag *flags, unsigned count)
{
  const char *meant = command_meant(arg, len, flags, count);
  ljp_command_error(name, "unknown option '%s'%s%s%s (see ljprof %s --help)",
                    arg, meant ? ": did you mean " : "", meant ? meant : "",
                    meant ? "?" : "", name);
  return LJP_EXIT_USAGE;
}

/* Keeps a value of an option. -1, or the exit code. */
static int command_value(const char *name, const struct ljp_flag *flag,
                         const char *value)
{
  unsigned i = 0;
  const size_t len = ljp_command_length(flag);
  if (flag->option[len] == '+') {
    while (i < LJP_OPTION_TIMES && flag->value[i])
      i++;
    if (i == LJP_OPTION_TIMES) {
      ljp_command_error(name, "option '%.*s' is given more than %u times",
                        (int)len, flag->option, LJP_OPTION_TIMES);
      return LJP_EXIT_USAGE;
    }
  }
  flag->value[i] = value;
  return -1;
}

/* Shows the help, or the options: a line "NAME", "NAME VALUE" or "NAME VALUE
** WORD...". */
static int command_help(const char *name, const char *help,
                        const struct ljp_flag *flags, unsigned count,
                        bool options)
{
  static struct ljp_print out;
  ljp_print_begin(&out, STDOUT_FILENO);
  if (!options)
    ljp_print_str(&out, help);
  for (unsigned f = 0; options && f < count; f++) {
    const size_t len = ljp_command_length(&flags[f]);
    const char *words = flags[f].option + len + (flags[f].option[len] == '+');
    if (strcmp(words, " -") != 0)
      ljp_print_format(&out, "%.*s%s%s\n", (int)len, flags[f].option,
                       flags[f].set ? "" : " VALUE", words);
  }
  return ljp_command_end(name, &out, LJP_EXIT_OK);
}

/* Takes the option at argv[*i] with its value. -1: go on; else the exit
** code. */
static int command_option(const char *name, const char *help, int argc,
                          char **argv, int *i, const struct ljp_flag *flags,
                          unsigned count)
{
  const char *arg = argv[*i];
  size_t len = strcspn(arg, "=");
  unsigned f = 0;
  if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0 ||
      strcmp(arg, "--help=options") == 0)
    return command_help(name, help, flags, count, arg[len] == '=');
  while (f < count && (ljp_command_length(&flags[f]) != len ||
                       strncmp(arg, flags[f].option, len) != 0))
    f++;
  if (f == count)
    return command_unknown(name, arg, len, flags, count);
  if (flags[f].set && arg[len]) {
    ljp_command_error(name, "option '%.*s' takes no value", (int)len, arg);
    return LJP_EXIT_USAGE;
  }
  if (flags[f].set) {
    *flags[f].set = true;
    return -1;
  }
  if (arg[len])
    return command_value(name, &flags[f], arg + len + 1);
  if (*i + 1 < argc)
    return command_value(name, &flags[f], argv[++*i]);
  ljp_command_error(name, "option '%s' needs a value", arg);
  return LJP_EXIT_USAGE;
}

int ljp_command_words(const char *name, const char *help, int argc, char **argv,
                      const struct ljp_flag *flags, unsigned count,
                      const char **words, unsigned *word_count)
{
  bool options = true;
  *word_count = 0;
  for (int i = 1; i < argc; i++) {
    if (options && strcmp(argv[i], "--") == 0) {
      options = false;
      continue;
    }
    if (!options || argv[i][0] != '-' || argv[i][1] == '\0') {
      words[(*word_count)++] = argv[i];
      continue;
    }
    int code = command_option(name, help, argc, argv, &i, flags, count);
    if (code >= 0)
      return code;
  }
  return -1;
}

int ljp_command_files(const char *name, const char *help, int argc, char **argv,
                      const struct ljp_flag *flags, unsigned count,
                      const char **files, unsigned *file_count)
{
  int code = ljp_command_words(name, help, argc, argv, flags, count, files,
                               file_count);
  if (code >= 0 || *file_count)
    return code;
  ljp_command_error(name, "no file given ('-': standard input)");
  return LJP_EXIT_USAGE;
}

int ljp_command_plain(const char *name, const char *help, int argc, char **argv,
                      const struct ljp_flag *flags, unsigned count)
{
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] != '-') {
      ljp_command_error(name, "unexpected argument '%s' (see ljprof %s --help)",
                        argv[i], name);
      return LJP_EXIT_USAGE;
    }
    int code = command_option(name, help, argc, argv, &i, flags, count);
    if (code >= 0)
      return code;
  }
  return -1;
}

int ljp_command_program(const char *name, const char *help, int argc,
                        char **argv, const struct ljp_flag *flags,
                        unsigned count, const char *const *instead,
                        char ***program)
{
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; i++) {
    if (strcmp(argv[i], "--") == 0) {
      i++;
      break;
    }
    int code = command_option(name, help, argc, argv, &i, flags, count);
    if (code >= 0)
      return code;
  }
  *program = argv + i;
  if (i >= argc && !*instead) {
    ljp_command_error(name, "no program given (see ljprof %s --help)", name);
    return LJP_EXIT_USAGE;
  }
  return -1;
}

int ljp_command_options(const char *name, const char *help, int argc,
                        char **argv, const struct ljp_flag *flags,
                        unsigned count, const char **file)
{
  unsigned files = 0;
  const char **list = calloc((size_t)argc + 1, sizeof *list);
  if (!list) {
    ljp_command_error(name, "out of memory");
    return LJP_EXIT_FAILED;
  }
  int code =
      ljp_command_files(name, help, argc, argv, flags, count, list, &files);
  if (code < 0 && files > 1) {
    ljp_command_error(
        name, "unexpected argument '%s': this command takes one file", list[1]);
    code = LJP_EXIT_USAGE;
  }
  *file = list[0];
  free((void *)list);
  return code;
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
