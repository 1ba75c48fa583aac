/*
** ljprof top: parses the options, checks the file and the terminal, and starts
** the processes.
*/
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <term.h>
#include <unistd.h>

#include "tools/shared/command.h"
#include "tools/top/guard.h"
#include "tools/top/screen.h"
#include "tools/top/worker.h"

static const char help[] =
    "Usage: ljprof top [OPTION]... FILE\n"
    "Shows in the terminal where time and memory go: live, while FILE is still "
    "being\n"
    "recorded, or of a recording that has ended.\n"
    "\n"
    "Views: functions, lines, stacks, allocation sites, heap, JIT compiler, "
    "threads,\n"
    "VMs. Press '?' for the keys.\n"
    "\n"
    "  --seconds N    show the last N seconds, at most 60 (default: 10 while "
    "the\n"
    "                 file is recorded, else everything; 0: everything)\n"
    "  --native       show machine code (otherwise that counts for the "
    "function of\n"
    "                 the program that made it run)\n"
    "  --no-symbols   do not look up names of machine code\n"
    "  --help         show this help\n"
    "\n"
    "FILE may be '-' for standard input; keys are then read from the "
    "terminal.\n"
    "\n"
    "Exit code: 0 success, 1 failure, 2 wrong usage or no terminal.\n";

struct command {
  struct ljp_top_options options;
  struct ljp_top_query first;
  int keys;
};

/* Whether the file can be watched at all; else the exit code, after reporting
** the error. -1: go on. */
static int command_check(const struct command *c)
{
  static struct ljp_reader reader; /* Too large for the stack. */
  const struct ljp_item *item;
  char why[LJP_INPUT_ERROR_BYTES];
  struct ljp_input input;
  struct stat st;
  if (strcmp(c->options.path, "-") == 0 ||
      (stat(c->options.path, &st) == 0 && S_ISFIFO(st.st_mode)))
    return -1; /* It can be read once. */
  if (ljp_input_open(&input, c->options.path, why)) {
    ljp_command_error("top", "%s: %s", c->options.path, why);
    return LJP_EXIT_FAILED;
  }
  int code = -1;
  enum ljp_status status = ljp_reader_input(&reader, &input);
  do
    status = status ? status : ljp_reader_next(&reader, &item);
  while (!status && item->what == LJP_ITEM_GAP);
  if (status) {
    ljp_command_error("top", "%s: %s", c->options.path, reader.error);
    code = LJP_EXIT_FAILED;
  }
  ljp_reader_fini(&reader);
  return code;
}

static int command_parse(struct command *c, const char *seconds)
{
  char *end;
  if (!seconds)
    return -1;
  errno = 0;
  unsigned long n = strtoul(seconds, &end, 10);
  if (errno || *end || end == seconds || *seconds == '-' || n > 60) {
    ljp_command_error("top", "--seconds: '%s' is not a number from 0 to 60",
                      seconds);
    return LJP_EXIT_USAGE;
  }
  c->first.seconds = (uint32_t)n;
  return -1;
}

/* Opens the keyboard. -1: go on; else the exit code. */
static int command_terminal(struct command *c)
{
  bool piped = strcmp(c->options.path, "-") == 0;
  const char *term = getenv("TERM");
  int error;
  c->keys = piped ? open("/dev/tty", O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  if (!isatty(STDOUT_FILENO) || c->keys < 0 || !isatty(c->keys)) {
    ljp_command_error("top", "needs a terminal ('ljprof report' does not)");
    return LJP_EXIT_USAGE;
  }
  if (!term || setupterm(term, STDOUT_FILENO, &error) == ERR ||
      !tigetstr("cup") || tigetstr("cup") == (char *)-1) {
    ljp_command_error("top", "the terminal '%s' cannot place the cursor (TERM)",
                      term ? term : "");
    return LJP_EXIT_USAGE;
  }
  return -1;
}

static int command_screen(int notes, void *ctx)
{
  struct command *c = ctx;
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
    ljp_command_error("top", "no socket: %s", strerror(errno));
    return LJP_EXIT_FAILED;
  }
  pid_t worker = fork();
  if (worker == 0) {
    close(fds[0]);
    close(notes);
    ljp_top_worker(fds[1], &c->options);
  }
  close(fds[1]);
  if (worker < 0) {
    ljp_command_error("top", "no process: %s", strerror(errno));
    return LJP_EXIT_FAILED;
  }
  return ljp_screen_run(fds[0], notes, c->keys, &c->first);
}

int ljp_command_top(int argc, char **argv)
{
  static struct command c;
  const char *seconds = NULL;
  const struct ljp_flag flags[] = {
      {"--seconds", NULL, &seconds},
      {"--native", &c.first.native, NULL},
      {"--no-symbols", &c.options.no_symbols, NULL}};
  c.first.seconds = LJP_TOP_AUTO;
  int code =
      ljp_command_options("top", help, argc, argv, flags, 3, &c.options.path);
  if (code >= 0 || (code = command_parse(&c, seconds)) >= 0 ||
      (code = command_terminal(&c)) >= 0 || (code = command_check(&c)) >= 0)
    return code;
  code = ljp_guard_run(STDOUT_FILENO, command_screen, &c);
  if (code < 0) {
    ljp_command_error("top", "no process: %s", strerror(errno));
    return LJP_EXIT_FAILED;
  }
  return code;
}
