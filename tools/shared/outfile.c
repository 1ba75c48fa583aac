/*
** See outfile.h.
*/
#include "tools/shared/outfile.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/assert.h"
#include "tools/shared/command.h"

/* The file that is open, for the signal handler. */
static const struct ljp_newfile *volatile outfile_now;

/* Only a file with a temporary name would be left. */
static void outfile_signal(int sig)
{
  const struct ljp_newfile *new = outfile_now;
  if (new &&new->temporary)
    unlinkat(new->folder.fd, new->temporary, 0);
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

/* No signal ends the command between a file's making and outfile_now. */
static void outfile_defer_signals(sigset_t *before)
{
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, before);
}

static void outfile_take_signals(const sigset_t *before)
{
  sigprocmask(SIG_SETMASK, before, NULL);
}

static int outfile_refuse(struct ljp_outfile *out, const char *why)
{
  ljp_command_error(out->command, "%s: %s", out->name, why);
  ljp_outfile_abort(out);
  return LJP_EXIT_FAILED;
}

int ljp_outfile_open(struct ljp_outfile *out, const char *command,
                     const char *path, bool force)
{
  struct ljp_target found;
  sigset_t before;
  *out = (struct ljp_outfile){
      .fd = -1, .command = command, .name = path, .force = force};
  ljp_newfile_init(&out->new);
  if (strcmp(path, "-") == 0) {
    out->fd = STDOUT_FILENO;
    return -1;
  }
  int error = ljp_target_find(&found, path);
  if (error)
    return outfile_refuse(out,
                          error == EISDIR ? "is a directory" : strerror(error));
  bool regular = !found.there || S_ISREG(found.st.st_mode);
  bool kept = found.there && regular && !force;
  if (kept || !regular) {
    if (!kept)
      out->fd = openat(found.dir, found.name,
                       O_WRONLY | O_CLOEXEC | O_NOCTTY |
                           (found.kernel_link ? 0 : O_NOFOLLOW));
    error = out->fd < 0 ? errno : 0;
    close(found.dir);
  } else {
    ljp_assert(!outfile_now);
    outfile_defer_signals(&before);
    error = ljp_newfile_open(&out->new, &found, &out->fd);
    if (!error) {
      outfile_now = &out->new;
      outfile_watch(outfile_signal);
    }
    outfile_take_signals(&before);
  }
  free(found.path);
  if (kept)
    return outfile_refuse(out, "exists (use --force to replace it)");
  return error ? outfile_refuse(out, strerror(error)) : -1;
}

/* Returns 0 or an errno. */
static int outfile_show(struct ljp_outfile *out)
{
  sigset_t before;
  if (fsync(out->fd) != 0)
    return errno;
  outfile_defer_signals(&before);
  int error = ljp_newfile_show(&out->new, out->fd, out->force, NULL);
  outfile_take_signals(&before);
  return error;
}

int ljp_outfile_commit(struct ljp_outfile *out, int error)
{
  if (!error && outfile_now)
    error = outfile_show(out);
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
  sigset_t before;
  outfile_defer_signals(&before);
  if (outfile_now)
    outfile_watch(SIG_DFL);
  outfile_now = NULL;
  ljp_newfile_discard(&out->new);
  outfile_take_signals(&before);
  if (out->fd >= 0 && out->fd != STDOUT_FILENO)
    close(out->fd);
  out->fd = -1;
}
