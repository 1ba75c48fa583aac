/*
** Command: the list of commands, their options, errors and exit codes. A
** command returns 0 (success), 1 (something failed, or the data is damaged) or
** 2 (wrong usage). It reports an error as one line on stderr.
*/
#ifndef LJP_TOOLS_COMMAND_H
#define LJP_TOOLS_COMMAND_H

#include <stdbool.h>

#include "tools/shared/print.h"

enum { LJP_EXIT_OK = 0, LJP_EXIT_FAILED = 1, LJP_EXIT_USAGE = 2 };

/* In the names that users type, '_' is '-'. */
#define LJP_COMMAND_LIST(_)                                                    \
  _(record, "run a program and record it")                                     \
  _(list, "list the programs that run our library")                            \
  _(status, "tell which session runs in a program")                            \
  _(stop, "end a session in a running program")                                \
  _(mark, "put a mark into the session that runs in a program")                \
  _(jitdump, "write compiled code of a running program for perf")              \
  _(dump_stacks, "show what a running program is doing now")                   \
  _(report, "show where time or memory went")                                  \
  _(advise, "say what is worth changing, and why")                             \
  _(top, "watch a recording live, in the terminal")                            \
  _(annotate, "show source lines with their share")                            \
  _(heap, "show what a heap snapshot holds, and what keeps it alive")          \
  _(flame, "make a flame graph, as a page or a drawing")                       \
  _(diff, "compare two profiles")                                              \
  _(expect, "check a profile against budgets, for CI")                         \
  _(export, "write a profile in the format of another tool")                   \
  _(push, "send profiles to Pyroscope, Parca or OpenTelemetry")                \
  _(embed, "store the names of machine code in a file")                        \
  _(merge, "join file segments, or the files of several workers")              \
  _(gather, "list, merge and prune the files of a service")                    \
  _(exporter, "write figures of sessions for Prometheus")                      \
  _(check, "tell whether a file is whole, and what was lost")                  \
  _(dump, "show every record of a file")

#define LJP_X(name, text) int ljp_command_##name(int argc, char **argv);
LJP_COMMAND_LIST(LJP_X)
#undef LJP_X

/* What the input "-" is called in what a command writes. */
extern const char *ljp_command_input;

/* Prints "ljprof NAME: ...". Unsafe bytes in arguments are escaped. */
__attribute__((format(printf, 2, 3))) void
ljp_command_error(const char *name, const char *format, ...);

/* The same for a note that is not an error: "ljprof NAME: note: ...". */
__attribute__((format(printf, 2, 3))) void
ljp_command_note(const char *name, const char *format, ...);

/* What the user may type next: "ljprof NAME: next: ...". No backslash is
** doubled, since that would be another command. */
__attribute__((format(printf, 2, 3))) void
ljp_command_next(const char *name, const char *format, ...);

/* An option that may be given several times ends with '+'. Its value is then an
** array of LJP_OPTION_TIMES, NULL before, which is filled from its beginning.
** An option whose values are words may list them, for shell completion: "--event
** cpu wall". The command itself checks the value. The word "-" hides an option
** that only leads to an error with advice. */
#define LJP_OPTION_TIMES 16u

struct ljp_flag {
  const char *option; /* "--json" */
  bool *set;          /* NULL: the option has a value, "--to X" or "--to=X". */
  const char **value;
};

/* The length of the option's name, which begins flag->option. */
size_t ljp_command_length(const struct ljp_flag *flag);

/*
** Parses the arguments of a command that takes flags and exactly one file. -1:
** go on with *file; else the exit code: help was requested and shown, or an
** error was reported. "--help=options" shows the flags themselves, one in a
** line with its words: man pages and shell completion are made from them.
*/
int ljp_command_options(const char *name, const char *help, int argc,
                        char **argv, const struct ljp_flag *flags,
                        unsigned count, const char **file);

/* The same for one or more files. files[] has room for argc. */
int ljp_command_files(const char *name, const char *help, int argc, char **argv,
                      const struct ljp_flag *flags, unsigned count,
                      const char **files, unsigned *file_count);

/* The same for any number of words, in place of files. */
int ljp_command_words(const char *name, const char *help, int argc, char **argv,
                      const struct ljp_flag *flags, unsigned count,
                      const char **words, unsigned *word_count);

/* The same for options followed by a program with its own arguments: *program
** is the rest of argv. It may be empty if an option has set *instead. */
int ljp_command_program(const char *name, const char *help, int argc,
                        char **argv, const struct ljp_flag *flags,
                        unsigned count, const char *const *instead,
                        char ***program);

/* The same for a command that takes options only. */
int ljp_command_plain(const char *name, const char *help, int argc, char **argv,
                      const struct ljp_flag *flags, unsigned count);

/* Ends output to stdout. If the reader closed the pipe, that is not a
** failure. */
int ljp_command_end(const char *name, struct ljp_print *out, int code);

#endif
