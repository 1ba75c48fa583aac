/*
** ljprof top: parses the options, checks the file and the terminal, and starts
** the processes.
*/
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <term.h>
#include <unistd.h>

#include "tools/shared/command.h"
#include "tools/shared/labels.h"
#include "tools/top/guard.h"
#include "tools/top/screen.h"
#include "tools/top/worker.h"

static const char help[] =
    "Usage: ljprof top [OPTION]... FILE\n"
    "       ljprof top [OPTION]... -p PID\n"
    "Shows in the terminal where time and memory go: live, while FILE is still "
    "being\n"
    "recorded, or of a recording that has ended. With -p: joins a running "
    "program,\n"
    "shows its CPU samples and, with --memory, its allocations, and leaves the "
    "program\n"
    "as it was when the view ends.\n"
    "\n"
    "Views: functions, lines, stacks, allocation sites, heap, JIT compiler, "
    "threads,\n"
    "VMs, labels. Press '?' for the keys.\n"
    "\n"
    "  --seconds N    show the last N seconds, at most 60 (default: 10 while "
    "the\n"
    "                 file is recorded, else everything; 0: everything)\n"
    "  --native       show machine code (otherwise that counts for the "
    "function of\n"
    "                 the program that made it run)\n"
    "  --no-symbols   do not look up names of machine code\n"
    "  --label KEY=VALUE  show only time and memory with this label\n"
    "\n"
    "A running program:\n"
    "  -p, --pid PID  join the program PID (see ljprof list); with a '/': the "
    "path of\n"
    "                 the socket at which it listens (LJPROF_LISTEN)\n"
    "  --room BYTES   disk space for the recording (with a unit; default "
    "256M): a\n"
    "                 quarter is kept for pages; the recording ends if the "
    "view does\n"
    "                 not keep up\n"
    "  --duration TIME  end the recording after TIME (10, 500ms, 5m, 1h)\n"
    "  --memory       also record allocations\n"
    "  --sample BYTES, --max-samples N, --every\n"
    "                 which of them, as for ljprof record\n"
    "  --interval, --event, --timer, --threads, --signal, --max-overhead, "
    "--depth,\n"
    "  --flush        as for ljprof record\n"
    "\n"
    "  --help         show this help\n"
    "\n"
    "FILE may be '-' for standard input; keys are then read from the "
    "terminal.\n"
    "\n"
    "Exit code: 0 success, 1 failure, 2 wrong usage or no terminal.\n";

struct command {
  struct ljp_top_options options;
  struct ljp_record_plan plan; /* Of the session in a joined program. */
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

static int command_parse_room(struct command *c, const char *room)
{
  const double least = 64 << 10, most = 1e15;
  double bytes = room ? ljp_setting_bytes(room) : (double)LJP_TOP_ROOM_BYTES;
  if (room && !c->plan.pid) {
    ljp_command_error("top", "--room is for a running program (-p PID)");
    return LJP_EXIT_USAGE;
  }
  if (!(bytes >= least && bytes <= most)) {
    ljp_command_error("top",
                      "--room is '%s', but must be a number of bytes from 64k "
                      "to 1e15, such as 100M",
                      room);
    return LJP_EXIT_USAGE;
  }
  c->plan.room = (uint64_t)bytes;
  return -1;
}

static int command_parse_seconds(struct command *c, const char *seconds)
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

/* Is a program named in place of a file? */
static bool command_joins(int argc, char **argv)
{
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "-p") == 0 || strncmp(argv[i], "-p=", 3) == 0 ||
        strcmp(argv[i], "--pid") == 0 || strncmp(argv[i], "--pid=", 6) == 0)
      return true;
  return false;
}

static int command_parse(struct command *c, int argc, char **argv)
{
  enum { OWN = 7 };
  struct ljp_label_options labels = {0};
  const char *seconds = NULL, *room = NULL;
  struct ljp_flag flags[OWN + LJP_RECORD_VIEW_FLAGS] = {
      {"--seconds", NULL, &seconds},
      {"--native", &c->first.native, NULL},
      {"--no-symbols", &c->options.profile.no_symbols, NULL},
      LJP_LABEL_FLAG(labels),
      {"-p", NULL, &c->plan.pid},
      {"--pid", NULL, &c->plan.pid},
      {"--room", NULL, &room}};
  c->plan.command = "top";
  unsigned count = OWN + ljp_record_view_flags(&c->plan, flags + OWN);
  int code = command_joins(argc, argv)
                 ? ljp_command_plain("top", help, argc, argv, flags, count)
                 : ljp_command_options("top", help, argc, argv, flags, count,
                                       &c->options.path);
  if (code < 0 &&
      (code = ljp_label_options("top", &labels, &c->options.profile)) == 0)
    code = command_parse_seconds(c, seconds);
  if (code < 0)
    code = ljp_record_view_check(&c->plan);
  return code < 0 ? command_parse_room(c, room) : code;
}

/* Opens the keyboard. -1: go on; else the exit code. */
static int command_terminal(struct command *c)
{
  bool piped = !c->plan.pid && strcmp(c->options.path, "-") == 0;
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

/* The view has ended, and the terminal is right: the worker ends the session. */
static void command_await_end(const struct command *c, int worker)
{
  struct pollfd end = {.fd = worker};
  shutdown(worker, SHUT_WR);
  if (poll(&end, 1, LJP_TOP_LEAVE_MS) == 0)
    ljp_command_note(
        "top", "%s has not ended the session yet, and does so when it can",
        c->options.joined->name);
}

static int command_screen(int notes, void *ctx)
{
  struct command *c = ctx;
  struct ljp_top_joined *joined = c->options.joined;
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
  if (joined)
    close(joined->socket);
  if (worker < 0) {
    ljp_command_error("top", "no process: %s", strerror(errno));
    return LJP_EXIT_FAILED;
  }
  int code = ljp_screen_run(fds[0], notes, c->keys, &c->first);
  if (joined)
    command_await_end(c, fds[0]);
  return code;
}

/* Joins the program, or looks at the file. -1: go on; else the exit code. */
static int command_open(struct command *c)
{
  static struct ljp_top_joined joined;
  if (!c->plan.pid)
    return command_check(c);
  c->options.joined = &joined;
  c->options.path = joined.file.path;
  return ljp_top_join(&joined, &c->plan);
}

int ljp_command_top(int argc, char **argv)
{
  static struct command c;
  c.first.seconds = LJP_TOP_AUTO;
  int code = command_parse(&c, argc, argv);
  if (code >= 0 || (code = command_terminal(&c)) >= 0 ||
      (code = command_open(&c)) >= 0)
    return code;
  const struct ljp_top_joined *joined = c.options.joined;
  code = ljp_guard_run(STDOUT_FILENO, joined ? joined->socket : -1,
                       command_screen, &c);
  if (code < 0) {
    ljp_command_error("top", "no process: %s", strerror(errno));
    return LJP_EXIT_FAILED;
  }
  return code;
}
