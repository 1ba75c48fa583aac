/*
** Writes an output file aside and renames it when it is complete.
*/
#include "tools/shared/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/assert.h"
#include "tools/shared/command.h"

/* The temporary file, for the signal handler to remove. */
static char *volatile outfile_temp;

static void outfile_signal(int sig)
{
  if (outfile_temp)
    unlink(outfile_temp);
  signal(sig, SIG_DFL);
  raise(sig);
}

static void outfile_watch(void (*handler)(int))
{
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction old;
    /* Ignored signals (nohup) stay ignored. */
    if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
      signal(signals[i], handler);
  }
}

static int outfile_refuse(struct ljp_outfile *out, const char *why)
{
  ljp_command_error(out->command, "%s: %s", out->name, why);
  ljp_outfile_abort(out);
  return LJP_EXIT_FAILED;
}

static int outfile_open_temp(struct ljp_outfile *out, mode_t mode)
{
  const char *slash = strrchr(out->path, '/');
  int folder = slash ? (int)(slash - out->path) + 1 : 0;
  const char *name = slash ? slash + 1 : out->path;
  if (!*name)
    return outfile_refuse(out, "is a directory");
  if (asprintf(&out->temp, "%.*s.%.200s.XXXXXX", folder, out->path, name) < 0) {
    out->temp = NULL;
    return outfile_refuse(out, strerror(ENOMEM));
  }
  int fd = mkostemp(out->temp, O_CLOEXEC);
  if (fd < 0) {
    int error = errno;
    free(out->temp);
    out->temp = NULL;
    return outfile_refuse(out, strerror(error));
  }
  ljp_assert(!outfile_temp);
  out->fd = fd;
  outfile_temp = out->temp;
  outfile_watch(outfile_signal);
  fchmod(fd, mode);
  return -1;
}

int ljp_outfile_open(struct ljp_outfile *out, const char *command,
                     const char *path, bool force)
{
  struct stat st;
  *out = (struct ljp_outfile){
      .fd = -1, .command = command, .name = path, .force = force};
  if (strcmp(path, "-") == 0) {
    out->fd = STDOUT_FILENO;
    return -1;
  }
  if (stat(path, &st) != 0) {
    mode_t mask = umask(0);
    umask(mask);
    out->path = strdup(path);
    return out->path ? outfile_open_temp(out, 0666 & ~mask)
                     : outfile_refuse(out, strerror(ENOMEM));
  }
  if (S_ISDIR(st.st_mode))
    return outfile_refuse(out, "is a directory");
  if (!S_ISREG(st.st_mode)) {
    out->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return out->fd < 0 ? outfile_refuse(out, strerror(errno)) : -1;
  }
  if (!force)
    return outfile_refuse(out, "exists (use --force to replace it)");
  out->path =
      realpath(path, NULL); /* The target, if path is a symbolic link. */
  return out->path ? outfile_open_temp(out, st.st_mode & 07777)
                   : outfile_refuse(out, strerror(errno));
}

/* Returns 0 or an errno. */
static int outfile_rename(const struct ljp_outfile *out)
{
  if (fsync(out->fd) != 0)
    return errno;
  if (!out->force) {
    /* Another process may have created the file meanwhile. */
    if (renameat2(AT_FDCWD, out->temp, AT_FDCWD, out->path, RENAME_NOREPLACE) ==
        0)
      return 0;
    if (errno != EINVAL && errno != ENOSYS)
      return errno;
    if (access(out->path, F_OK) == 0)
      return EEXIST;
  }
  return rename(out->temp, out->path) == 0 ? 0 : errno;
}

int ljp_outfile_commit(struct ljp_outfile *out, int error)
{
  if (!error && out->temp)
    error = outfile_rename(out);
  if (!error && out->temp) {
    outfile_temp = NULL;
    free(out->temp);
    out->temp = NULL;
  }
  bool quiet = error == EPIPE && out->fd == STDOUT_FILENO;
  ljp_outfile_abort(out);
  if (!error || quiet)
    return LJP_EXIT_OK;
  ljp_command_error(out->command, "%s: cannot write: %s", out->name,
                    strerror(error));
  return LJP_EXIT_FAILED;
}

void ljp_outfile_abort(struct ljp_outfile *out)
{
  if (out->temp) {
    unlink(out->temp);
    outfile_temp = NULL;
  }
  if (out->temp || out->path)
    outfile_watch(SIG_DFL);
  if (out->fd >= 0 && out->fd != STDOUT_FILENO)
    close(out->fd);
  free(out->temp);
  free(out->path);
  out->temp = out->path = NULL;
  out->fd = -1;
}
