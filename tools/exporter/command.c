/*
** ljprof exporter: options, and the files that it writes.
*/
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/settings.h"
#include "tools/exporter/exporter.h"
#include "tools/shared/command.h"
#include "tools/shared/outfile.h"

static const char help[] =
    "Usage: ljprof exporter --textfile FILE [OPTION]... DIR\n"
    "Writes figures of the sessions in a folder of 'ljprof record --ring', "
    "'--continuous'\n"
    "or '--service' for Prometheus: a file for the textfile collector of "
    "node_exporter.\n"
    "\n"
    "  --textfile FILE  write to FILE, whose name should end in '.prom' ('-': "
    "standard\n"
    "                   output); it is replaced in one step\n"
    "  --every TIME     write again every TIME (15s, 1m) until a signal comes\n"
    "                   (default: once)\n"
    "  --state FILE     keep the sums of files that were read in FILE, so "
    "that\n"
    "                   counters never go down (default: .NAME.state beside "
    "the file\n"
    "                   of --textfile)\n"
    "  --recent TIME    also show sessions that ended at most TIME ago "
    "(default 1h)\n"
    "  --help           show this help\n"
    "\n"
    "Exit code: 0 done; 1 something failed; 2 wrong usage.\n";

struct exporter_files {
  const char *text, *state; /* state NULL: none. */
  char room[PATH_MAX];
};

enum { STATE_BYTES = 64 << 20 };
static volatile sig_atomic_t exporter_ends;

static void exporter_end(int signal)
{
  (void)signal;
  exporter_ends = 1;
}

/* Without a state the counters begin anew. */
static void exporter_read_state(struct ljp_exporter *e, const char *path)
{
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  int error = fd < 0 ? errno : 0;
  char *text = NULL;
  size_t len = 0;
  ssize_t n = 1;
  if (error == ENOENT)
    return;
  if (!error && (fstat(fd, &st) || !S_ISREG(st.st_mode)))
    error = EINVAL;
  if (!error && st.st_size > STATE_BYTES)
    error = EFBIG;
  if (!error && !(text = malloc((size_t)st.st_size + 1)))
    error = ENOMEM;
  while (!error && n > 0 && len < (size_t)st.st_size) {
    n = read(fd, text + len, (size_t)st.st_size - len);
    len += n > 0 ? (size_t)n : 0;
    error = n < 0 && errno != EINTR ? errno : 0;
  }
  if (!error) {
    text[len] = '\0';
    if (strlen(text) != len || !ljp_exporter_parse_state(e, text))
      error = EILSEQ;
  }
  if (error)
    ljp_command_note("exporter", "%s: %s: the counters begin anew", path,
                     error == EILSEQ ? "it is damaged" : strerror(error));
  free(text);
  if (fd >= 0)
    close(fd);
}

/* Replaces the file in one step. Returns an exit code, or -1. */
static int exporter_put(const struct ljp_exporter *e, const char *path,
                        void (*put)(const struct ljp_exporter *e,
                                    struct ljp_print *out))
{
  static struct ljp_print out;
  struct ljp_outfile file;
  int code = ljp_outfile_open(&file, "exporter", path, true);
  if (code >= 0)
    return code;
  ljp_print_begin(&out, file.fd);
  put(e, &out);
  code = ljp_outfile_commit(&file, ljp_print_end(&out));
  return code == LJP_EXIT_OK ? -1 : code;
}

/* node_exporter runs as another user. */
static void exporter_open_to_all(const char *path)
{
  struct stat st;
  if (strcmp(path, "-") != 0 && !stat(path, &st) && S_ISREG(st.st_mode))
    chmod(path, 0644);
}

static int exporter_once(struct ljp_exporter *e, const struct exporter_files *f)
{
  int error = ljp_exporter_look(e), code = -1;
  if (error) {
    ljp_command_error("exporter", "%s: %s", e->store.path, strerror(error));
    return LJP_EXIT_FAILED;
  }
  /* First what the counters rest on. */
  if (f->state)
    code = exporter_put(e, f->state, ljp_exporter_put_state);
  if (code < 0)
    code = exporter_put(e, f->text, ljp_exporter_put_text);
  if (code < 0)
    exporter_open_to_all(f->text);
  return code;
}

static void exporter_name_state(struct exporter_files *f)
{
  if (f->state || strcmp(f->text, "-") == 0)
    return;
  const char *slash = strrchr(f->text, '/');
  const char *name = slash ? slash + 1 : f->text;
  int n = snprintf(f->room, sizeof f->room, "%.*s.%s.state",
                   (int)(name - f->text), f->text, name);
  if (n > 0 && (size_t)n < sizeof f->room)
    f->state = f->room;
}

static int exporter_check(const struct exporter_files *f, const char *every,
                          const char *recent)
{
  if (!f->text) {
    ljp_command_error(
        "exporter", "no file is given (--textfile FILE; '-': standard output)");
    return LJP_EXIT_USAGE;
  }
  const char *flag = every && ljp_setting_seconds(every) < 0.1   ? "--every"
                     : recent && ljp_setting_seconds(recent) < 0 ? "--recent"
                                                                 : NULL;
  if (!flag)
    return -1;
  ljp_command_error("exporter",
                    "%s is '%s', but must be a time, such as 15s, 1m or 1h",
                    flag, flag[2] == 'e' ? every : recent);
  return LJP_EXIT_USAGE;
}

/* A pause that a signal ends. (After a file was written, its signals have their
** default again.) */
static void exporter_pause(double seconds)
{
  const struct sigaction end = {.sa_handler = exporter_end};
  struct timespec t = {.tv_sec = (time_t)seconds,
                       .tv_nsec = (long)((seconds - (time_t)seconds) * 1e9)};
  sigset_t both, old;
  sigemptyset(&both);
  sigaddset(&both, SIGTERM);
  sigaddset(&both, SIGINT);
  /* A signal between the look and the wait must not be missed. */
  sigprocmask(SIG_BLOCK, &both, &old);
  sigaction(SIGTERM, &end, NULL);
  sigaction(SIGINT, &end, NULL);
  if (!exporter_ends)
    pselect(0, NULL, NULL, NULL, &t, &old);
  sigprocmask(SIG_SETMASK, &old, NULL);
}

int ljp_command_exporter(int argc, char **argv)
{
  static struct exporter_files files;
  struct ljp_exporter e = {.recent_s = 3600};
  const char *folder, *every = NULL, *recent = NULL;
  const struct ljp_flag flags[] = {{"--textfile", NULL, &files.text},
                                   {"--every", NULL, &every},
                                   {"--state", NULL, &files.state},
                                   {"--recent", NULL, &recent}};
  int code =
      ljp_command_options("exporter", help, argc, argv, flags, 4, &folder);
  if (code < 0)
    code = exporter_check(&files, every, recent);
  if (code >= 0)
    return code;
  exporter_name_state(&files);
  if (recent && ljp_setting_seconds(recent) < 1e9)
    e.recent_s = (uint64_t)ljp_setting_seconds(recent);
  int error = ljp_store_open(&e.store, folder);
  if (error) {
    ljp_command_error("exporter", "%s: %s", folder, strerror(error));
    return LJP_EXIT_FAILED;
  }
  if (files.state)
    exporter_read_state(&e, files.state);
  do {
    code = exporter_once(&e, &files);
    if (every)
      exporter_pause(ljp_setting_seconds(every));
  } while (every && !exporter_ends);
  ljp_store_close(&e.store);
  ljp_exporter_forget(&e);
  return code < 0 ? LJP_EXIT_OK : code;
}
