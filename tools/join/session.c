/*
** See session.h. The output is made and named here, with this process's rights;
** the program gets a descriptor. A new file has no name until the session has
** started, and from then on it does not depend on this process.
*/
#include "tools/join/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "src/base/join.h"
#include "src/base/newfile.h"
#include "tools/join/lend.h"
#include "tools/join/sandbox.h"
#include "tools/shared/command.h"

struct output {
  int fd;
  struct ljp_newfile new;
  struct ljp_join_segments segments;
  struct ljp_join_snapshots snapshots;
  bool rotates;
  double until;   /* seconds; 0: the program ends the session */
  double overdue; /* when it should have done so long ago; 0: never */
};

static int session_refuse(const struct ljp_join_session *s, int error)
{
  ljp_command_error(s->command, "%s: %s", s->path, strerror(error));
  return LJP_EXIT_FAILED;
}

int ljp_join_session_begin(struct ljp_talk *talk, int fd, const char *path,
                           const char *request, const int *jitdump)
{
  enum { START_MS = 15000 };
  struct ljp_join_message m = {.type = LJP_JOIN_START, .fd = {fd}, .fds = 1};
  ljp_join_set_text(&m, 0, request);
  for (int i = 0; jitdump && i < 2; i++)
    m.fd[m.fds++] = jitdump[i];
  int refused = ljp_sandbox_refuse(talk);
  if (refused >= 0)
    return refused;
  ljp_lend_proc(talk);
  int error = ljp_talk_send(talk, &m);
  if (error == EMSGSIZE) {
    ljp_command_error(talk->command, "%s: %s", path, strerror(ENAMETOOLONG));
    return LJP_EXIT_FAILED;
  }
  int code = error ? ljp_talk_ended(talk, LJP_HEARD_END)
                   : ljp_talk_answer(talk, LJP_JOIN_STARTED, START_MS);
  if (code < 0)
    ljp_join_step("started");
  return code;
}

static int session_open(struct output *out, const struct ljp_join_session *s)
{
  struct ljp_target found;
  *out = (struct output){.fd = s->fd, .rotates = s->rotates};
  ljp_join_segments_init(&out->segments, s->command, s->path, s->keep);
  ljp_join_snapshots_init(&out->snapshots, s->command, s->snapshot_every_ms,
                          s->snapshot_last);
  ljp_newfile_init(&out->new);
  if (s->fd >= 0)
    return -1;
  int error = ljp_target_find(&found, s->path);
  if (error)
    return session_refuse(s, error);
  if (!found.there || S_ISREG(found.st.st_mode)) {
    error = ljp_newfile_open(&out->new, &found, &out->fd);
  } else {
    out->fd = openat(found.dir, found.name,
                     O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
                         (found.kernel_link ? 0 : O_NOFOLLOW));
    error = out->fd < 0 ? errno : 0;
    close(found.dir);
  }
  free(found.path);
  return error ? session_refuse(s, error) : -1;
}

static int session_refuse_links(const struct ljp_join_session *s)
{
  ljp_command_error(s->command,
                    "%s: this file system cannot name a file that is being "
                    "written: choose another folder with -o",
                    s->path);
  return LJP_EXIT_FAILED;
}

/* The session has started: the file gets its name. Where links are forbidden, it
** would be that of a copy, which misses what the program writes from now on: an
** old file stays then. */
static int session_show(struct output *out, const struct ljp_join_session *s)
{
  struct stat before, now;
  if (!ljp_newfile_hidden(&out->new))
    return -1;
  if (fstat(out->fd, &before))
    return session_refuse(s, errno);
  if (s->force && ljp_newfile_link(&out->new, out->fd))
    return session_refuse_links(s);
  int error = ljp_newfile_show(&out->new, out->fd, s->force, NULL);
  if (error)
    return session_refuse(s, error);
  if (!fstat(out->fd, &now) && now.st_ino == before.st_ino)
    return -1;
  unlink(s->path);
  return session_refuse_links(s);
}

static void session_close(struct output *out, const struct ljp_join_session *s)
{
  ljp_newfile_discard(&out->new);
  if (out->fd >= 0 && out->fd != s->fd)
    close(out->fd);
}

/* -- Its course ------------------------------------------------------------ */
static bool session_signalled(int signals)
{
  struct signalfd_siginfo info;
  return read(signals, &info, sizeof info) == sizeof info;
}

static double session_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void session_heard(struct ljp_talk *talk, struct output *out)
{
  if (talk->message.type != LJP_JOIN_SEGMENTS)
    ljp_join_snapshots_heard(&out->snapshots, talk);
  else if (out->rotates)
    ljp_join_segments_heard(&out->segments, talk);
}

/* The message has an error, with which the session has ended. */
static enum ljp_join_end session_failed(const struct ljp_talk *talk)
{
  char why[600];
  ljp_join_text(&talk->message, 0, why, sizeof why);
  ljp_command_error(talk->command, "the session was ended by an error: %s",
                    why);
  return LJP_JOIN_BY_ERROR;
}

static enum ljp_join_end session_wrong(struct ljp_talk *talk)
{
  ljp_talk_ended(talk, LJP_HEARD_WRONG);
  return LJP_JOIN_BY_ERROR;
}

/* Does the user not want to wait for what began then? timeout(1) sends its signal
** twice: to the command, and at once to the group in which that is, too. */
static bool session_impatient(int signals, double since)
{
  const double twice_s = 0.5;
  return session_signalled(signals) && session_now() - since > twice_s;
}

/* The end has been asked for: waits for it. */
static enum ljp_join_end session_stop(struct ljp_talk *talk, int signals,
                                      struct output *out)
{
  enum { PATIENCE_S = 10, TURN_MS = 500 };
  struct ljp_join_message m = {.type = LJP_JOIN_STOP};
  const double asked = session_now(), until = asked + PATIENCE_S;
  ljp_join_step("stopping");
  ljp_talk_send(talk, &m);
  while (session_now() < until) {
    enum ljp_heard heard = ljp_talk_hear(talk, TURN_MS, signals);
    if (heard == LJP_HEARD_END)
      return LJP_JOIN_BY_PROGRAM;
    if (heard == LJP_HEARD_WRONG)
      return session_wrong(talk);
    if (session_impatient(signals, asked))
      break;
    if (heard != LJP_HEARD)
      continue;
    enum ljp_join_type type = talk->message.type;
    if (type == LJP_JOIN_STOPPED)
      return LJP_JOIN_BY_USER;
    if (type == LJP_JOIN_ENDED)
      return talk->message.length[0] ? session_failed(talk) : LJP_JOIN_BY_USER;
    if (type == LJP_JOIN_ERROR && talk->message.serial == m.serial)
      return session_failed(talk);
    session_heard(talk, out);
  }
  ljp_command_note(talk->command,
                   "%s has not ended the session yet, and does so when it can",
                   talk->name);
  return LJP_JOIN_LEFT_EARLY;
}

/* A program that exits ends its session first. */
static enum ljp_join_end session_ended(struct ljp_talk *talk)
{
  enum { DYING_MS = 500 };
  if (talk->message.length[0])
    return session_failed(talk);
  return ljp_talk_hear(talk, DYING_MS, -1) == LJP_HEARD_END
             ? LJP_JOIN_BY_PROGRAM
             : LJP_JOIN_BY_OTHERS;
}

/* Takes the last heap snapshots, if there are to be any, and then ends the session.
** by: what has brought the end. */
static enum ljp_join_end session_finish(struct ljp_talk *talk, int signals,
                                        struct output *out,
                                        enum ljp_join_end by)
{
  enum { TURN_MS = 500, PATIENCE = 4 };
  struct ljp_join_snapshots *s = &out->snapshots;
  const double began = session_now();
  bool told = false;
  s->due_ms = 0;
  for (int turns = 0; ljp_join_snapshots_busy(s) || s->last; turns++) {
    if (!ljp_join_snapshots_busy(s))
      ljp_join_snapshots_last(s, talk);
    enum ljp_heard heard = ljp_talk_hear(talk, TURN_MS, signals);
    if (heard == LJP_HEARD && talk->message.type == LJP_JOIN_ENDED)
      return session_ended(talk);
    if (heard == LJP_HEARD_END)
      return LJP_JOIN_BY_PROGRAM;
    if (heard == LJP_HEARD_WRONG)
      return session_wrong(talk);
    if (session_impatient(signals, began))
      break;
    if (heard == LJP_HEARD)
      session_heard(talk, out);
    ljp_join_snapshots_turn(s, talk);
    if (turns >= PATIENCE && !told)
      ljp_command_note(talk->command,
                       "waiting for a heap snapshot: Ctrl-C ends the recording "
                       "without it");
    told |= turns >= PATIENCE;
  }
  enum ljp_join_end end = session_stop(talk, signals, out);
  return end == LJP_JOIN_BY_USER ? by : end;
}

/* For how long a message is waited for. */
static int session_wait_ms(const struct output *out)
{
  enum { SILENT_MS = 3000 };
  double left = out->until - session_now();
  int ms = ljp_join_snapshots_wait_ms(&out->snapshots);
  if (ms < 0 || ms > SILENT_MS)
    ms = SILENT_MS;
  if (out->until > 0 && left * 1000 < ms)
    ms = left > 0 ? (int)(left * 1000) + 1 : 0;
  return ms;
}

static bool session_is_halted(const struct ljp_talk *talk)
{
  struct ljp_proc_status s;
  return ljp_proc_status(talk->pid, 0, &s) && s.state == 'T';
}

enum { OVERDUE_S = 10 };

/* Should the program have ended the session long ago? Not while it is stopped, and
** for some time afterwards. */
static bool session_is_overdue(const struct ljp_talk *talk, struct output *out)
{
  if (!(out->overdue > 0) || session_now() < out->overdue)
    return false;
  if (!session_is_halted(talk)) {
    ljp_command_error(
        talk->command,
        "%s does not end the session, whose time is over, and does "
        "so when it can: 'ljprof dump-stacks -p %d' shows where "
        "its threads wait",
        talk->name, (int)talk->pid);
    return true;
  }
  out->overdue = session_now() + OVERDUE_S;
  return false;
}

/* Nothing has come: says so once, if the program is stopped. */
static void session_silent(const struct ljp_talk *talk, bool *told)
{
  if (*told || !session_is_halted(talk))
    return;
  *told = true;
  ljp_command_note(talk->command,
                   "%s is stopped by a signal: the recording goes on when it "
                   "does",
                   talk->name);
}

static enum ljp_join_end session_follow(struct ljp_talk *talk, int signals,
                                        struct output *out)
{
  bool told = false;
  for (;;) {
    enum ljp_heard heard = ljp_talk_hear(talk, session_wait_ms(out), signals);
    if (heard == LJP_HEARD && talk->message.type == LJP_JOIN_ENDED)
      return session_ended(talk);
    if (heard == LJP_HEARD_WRONG)
      return session_wrong(talk);
    if (session_signalled(signals))
      return session_finish(talk, signals, out, LJP_JOIN_BY_USER);
    if (heard == LJP_HEARD_END)
      return LJP_JOIN_BY_PROGRAM;
    if (heard == LJP_HEARD)
      session_heard(talk, out);
    else
      session_silent(talk, &told);
    if (out->until > 0 && session_now() >= out->until)
      return session_finish(talk, signals, out, LJP_JOIN_BY_OTHERS);
    if (session_is_overdue(talk, out))
      return LJP_JOIN_BY_ERROR;
    ljp_join_segments_retry(&out->segments, talk);
    ljp_join_snapshots_turn(&out->snapshots, talk);
  }
}

static int session_start(struct ljp_talk *talk, struct output *out,
                         const struct ljp_join_session *s)
{
  int code =
      ljp_join_session_begin(talk, out->fd, s->path, s->request, s->jitdump);
  return code < 0 ? session_show(out, s) : code;
}

int ljp_join_session_run(struct ljp_talk *talk,
                         const struct ljp_join_session *session,
                         enum ljp_join_end *end)
{
  static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  struct output out;
  struct sigaction was;
  sigset_t signals, before;
  sigemptyset(&signals);
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
    if (!sigaction(ending[i], NULL, &was) && was.sa_handler != SIG_IGN)
      sigaddset(&signals, ending[i]);
  sigprocmask(SIG_BLOCK, &signals, &before);
  int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  int code =
      fd < 0 ? session_refuse(session, errno) : session_open(&out, session);
  if (fd >= 0 && code < 0)
    code = session_start(talk, &out, session);
  if (code < 0) {
    ljp_command_note(
        session->command, "recording %s%s", talk->name,
        session->also ? ", too" : ": Ctrl-C ends it, and the program runs on");
    if (session->started)
      session->started(session->started_ctx);
    ljp_join_snapshots_start(&out.snapshots);
    if (session->snapshot_end_ms)
      out.until = session_now() + (double)session->snapshot_end_ms / 1000;
    else if (session->duration_ms)
      out.overdue =
          session_now() + (double)session->duration_ms / 1000 + OVERDUE_S;
    *end = session_follow(talk, fd, &out);
    if (out.snapshots.last)
      ljp_command_note(session->command,
                       "no heap snapshot was taken at the end");
    ljp_join_segments_end(&out.segments, *end != LJP_JOIN_LEFT_EARLY);
  }
  if (fd >= 0) {
    session_close(&out, session);
    /* What came when the session had ended does not end this process. */
    while (session_signalled(fd))
      ;
    close(fd);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  return code;
}
