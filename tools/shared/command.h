/*
** What the subcommands of ljprof share: options, errors, exit codes.
** A command returns 0 (done, and nothing wrong with the data), 1 (something
** failed or is wrong) or 2 (called wrongly). An error is one line on stderr.
*/
#ifndef LJP_TOOLS_COMMAND_H
#define LJP_TOOLS_COMMAND_H

#include <stdbool.h>

#include "tools/shared/print.h"

enum { LJP_EXIT_OK = 0, LJP_EXIT_FAILED = 1, LJP_EXIT_USAGE = 2 };

#define LJP_COMMAND_LIST(_)                                                    \
  _(report, "show where time or memory went")                                  \
  _(annotate, "show source lines with their share")                            \
  _(record, "run a program and record it")                                     \
  _(dump, "show every record of a stream")                                     \
  _(check, "tell whether a file is whole, and what was lost")                  \
  _(embed, "store the names of machine code in a file")                        \
  _(merge, "join file segments, or the files of several workers")              \
  _(flame, "make a flame graph, as a page or a drawing")                       \
  _(diff, "compare two profiles")                                              \
  _(export, "write a profile in the format of another tool")

#define LJP_X(name, text) int ljp_command_##name(int argc, char **argv);
LJP_COMMAND_LIST(LJP_X)
#undef LJP_X

/* An error line: "ljprof NAME: ...". Text from outside is made safe. */
__attribute__((format(printf, 2, 3))) void
ljp_command_error(const char *name, const char *format, ...);

/* Something to know that is no error: "ljprof NAME: note: ...". */
__attribute__((format(printf, 2, 3))) void
ljp_command_note(const char *name, const char *format, ...);

struct ljp_flag {
  const char *option; /* "--json" */
  bool *set;          /* NULL: the option takes a value, "--to X" "--to=X": */
  const char **value;
};

/*
** Options of a command that takes flags and exactly one file. -1: go on with
** *file; else the command's exit code (help was asked for and shown, or an
** error was reported).
*/
int ljp_command_options(const char *name, const char *help, int argc,
                        char **argv, const struct ljp_flag *flags,
                        unsigned count, const char **file);

/* The same for one file or more; files[] has room for argc. */
int ljp_command_files(const char *name, const char *help, int argc, char **argv,
                      const struct ljp_flag *flags, unsigned count,
                      const char **files, unsigned *file_count);

/* Options, then a program to be run and its arguments, which are its own:
** *program is the rest of argv. */
int ljp_command_program(const char *name, const char *help, int argc,
                        char **argv, const struct ljp_flag *flags,
                        unsigned count, char ***program);

/* Ends output to stdout; a reader that went away is no failure. */
int ljp_command_end(const char *name, struct ljp_print *out, int code);

#endif
