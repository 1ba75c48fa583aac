/*
** ljprof record -p PID --children: also records what descends from the program.
**
** A process of ours, the *family*, looks now and then which processes there are
** (tools/join/family.c), and makes a *recorder* for each that runs our library:
** one more ljprof -p, with a file of its own. So each of them is as independent of
** the others as if the user had typed it. The family and its recorders are a group
** of processes: the terminal's signals reach the first ljprof only, which passes
** their meaning on. They end with it, whatever ends it.
*/
#include <errno.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/own_path.h"
#include "tools/join/family.h"
#include "tools/join/find.h"
#include "tools/join/session.h"
#include "tools/record/record.h"
#include "tools/shared/command.h"

/* From the first ljprof: the program itself is not recorded any more. */
#define CHILDREN_ROOT_OVER SIGUSR1

enum state {
  NEW,      /* it may be about to execute another program */
  RECORDED, /* it has a recorder */
  FOREIGN,  /* it does not run our library */
  OVER      /* it was recorded, or could not be */
};

/* How a recorder ends. */
enum { RECORDER_DONE, RECORDER_FAILED, RECORDER_LEFT };

struct children {
  const struct ljp_record_plan *plan;
  struct ljp_family family;
  uint64_t until_ns; /* by ljp_record_now(); 0: no end */
  unsigned recorders, missed, foreign;
  bool ending, told_full;
};

/* -- A recorder ------------------------------------------------------------ */
/* All sessions end at the same time. */
static void children_set_time(struct ljp_record_plan *plan, uint64_t until_ns)
{
  static char left[32];
  uint64_t now = ljp_record_now();
  double seconds = until_ns > now ? (double)(until_ns - now) / 1e9 : 0;
  if (!until_ns)
    return;
  snprintf(left, sizeof left, "%.3f", seconds < 0.001 ? 0.001 : seconds);
  plan->set.value[LJP_SETTING_DURATION] = left;
}

static int children_run(const struct children *c, const struct ljp_relative *r)
{
  static struct ljp_record_plan plan;
  static struct ljp_talk talk;
  const struct ljp_goal goal = {.pid = r->pid};
  enum ljp_join_end end;
  /* The family's signals end this process, even while it joins the child. */
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  plan = *c->plan;
  plan.also = true;
  plan.force = false;
  if (!ljp_path_numbered(plan.path, sizeof plan.path, c->plan->path, r->number,
                         r->images > 0, ljp_record_rotates(&plan))) {
    ljp_command_error("record", "%s: %s", plan.path, strerror(ENAMETOOLONG));
    return RECORDER_FAILED;
  }
  if (ljp_talk_join(&talk, "record", &goal) >= 0)
    return RECORDER_FAILED;
  children_set_time(&plan, c->until_ns);
  int code = ljp_record_session(&plan, &talk, -1, NULL, NULL, &end);
  ljp_talk_leave(&talk);
  return code >= 0                    ? RECORDER_FAILED
         : end == LJP_JOIN_BY_PROGRAM ? RECORDER_DONE
                                      : RECORDER_LEFT;
}

/* In a child of this process that ends with it. */
static pid_t children_fork(void)
{
  pid_t parent = getpid();
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(RECORDER_LEFT);
  }
  return child;
}

/* The number in the file's name: that which the process itself has, unless one in
** another namespace has it, too. */
static pid_t children_number(const struct children *c,
                             const struct ljp_relative *r, pid_t own)
{
  static char path[PATH_MAX + 32];
  bool taken = false;
  for (size_t i = 0; i < c->family.count; i++)
    taken |= c->family.list[i].number == own;
  snprintf(path, sizeof path, "%s.%d", c->plan->path, (int)own);
  return taken || access(path, F_OK) == 0 ? r->pid : own;
}

static void children_record(struct children *c, struct ljp_relative *r,
                            pid_t own)
{
  if (!r->number)
    r->number = children_number(c, r, own);
  r->tried_device = r->device;
  r->tried_inode = r->inode;
  pid_t recorder = children_fork();
  if (recorder == 0)
    _exit(children_run(c, r));
  r->state = recorder > 0 ? RECORDED : OVER;
  r->helper = recorder > 0 ? recorder : 0;
  c->recorders += recorder > 0;
  if (recorder < 0)
    ljp_command_note("record", "process %d is not recorded: %s", (int)r->pid,
                     strerror(errno));
}

static void children_reap(struct children *c)
{
  enum { MOST_IMAGES = 1000 };
  int status;
  pid_t recorder;
  while ((recorder = waitpid(-1, &status, WNOHANG)) > 0) {
    c->recorders--;
    for (size_t i = 0; i < c->family.count; i++) {
      struct ljp_relative *r = &c->family.list[i];
      if (r->helper != recorder)
        continue;
      bool done = WIFEXITED(status) && WEXITSTATUS(status) == RECORDER_DONE;
      r->failures +=
          WIFEXITED(status) && WEXITSTATUS(status) == RECORDER_FAILED;
      r->helper = 0;
      /* If it is still there, it has executed another program. */
      r->state = done && ++r->images < MOST_IMAGES ? NEW : OVER;
      r->looks = 0;
    }
  }
}

/* -- Who is recorded ------------------------------------------------------- */
/* NEW: not yet. RECORDED: it can be. */
static enum state children_judge(pid_t pid, struct ljp_proc_status *s)
{
  static struct ljp_found found;
  struct ljp_maps maps;
  /* A child of vfork() has the memory of its parent until it executes. */
  if (!ljp_proc_status(pid, 0, s) || strchr("ZXTt", s->state) ||
      (s->parent && syscall(SYS_kcmp, pid, s->parent, KCMP_VM, 0, 0) == 0))
    return NEW;
  int error = ljp_maps_read(&maps, pid);
  if (!error && maps.count)
    error = ljp_find(&found, pid, &maps);
  bool there = !error && maps.count;
  ljp_maps_free(&maps);
  if (error == EPERM || error == EACCES)
    return RECORDED; /* The recorder says what is in the way. */
  if (!there)
    return NEW;
  return found.note.kind == LJP_PLACE_NONE ? FOREIGN : RECORDED;
}

static void children_tell_foreign(struct children *c, pid_t pid,
                                  const char *comm)
{
  enum { TELL_MOST = 8 };
  if (c->foreign++ < TELL_MOST)
    ljp_command_note("record",
                     "process %d (%s), a child, does not run our library, and "
                     "is not recorded",
                     (int)pid, comm);
  else if (c->foreign == TELL_MOST + 1)
    ljp_command_note("record", "more children do not run our library");
}

/* A recorder has failed, and the process runs another program than the one that
** was tried. */
static bool children_again(const struct ljp_relative *r)
{
  enum { MOST_FAILURES = 8 };
  return r->state == OVER && r->failures && r->failures < MOST_FAILURES &&
         r->inode &&
         (r->device != r->tried_device || r->inode != r->tried_inode);
}

static void children_treat(struct children *c, struct ljp_relative *r)
{
  enum { SURE_LOOKS = 3 };
  struct ljp_proc_status status;
  /* It has executed another program. */
  if ((r->state == FOREIGN && r->looks == 1) || children_again(r))
    r->state = NEW;
  /* A process that was made a moment ago often executes a program at once. */
  if (r->state != NEW || r->looks < SURE_LOOKS)
    return;
  enum state state = children_judge(r->pid, &status);
  if (state == RECORDED)
    children_record(c, r, status.ns_pid);
  else if (state == FOREIGN)
    children_tell_foreign(c, r->pid, status.comm);
  if (state == FOREIGN)
    r->state = FOREIGN;
}

static void children_look(struct children *c)
{
  ljp_family_look(&c->family);
  if (c->family.full && !c->told_full)
    ljp_command_note("record", "there are more than %d children",
                     LJP_FAMILY_MOST);
  c->told_full |= c->family.full;
  for (size_t i = c->family.count; i-- > 0;) {
    struct ljp_relative *r = &c->family.list[i];
    if (r->there)
      children_treat(c, r);
    else if (!r->helper && !r->listed) {
      c->missed += r->state == NEW && !r->images;
      ljp_family_forget(&c->family, i);
    }
  }
}

/* -- The family ------------------------------------------------------------ */
static void children_stop(struct children *c)
{
  c->ending = true;
  for (size_t i = 0; i < c->family.count; i++)
    if (c->family.list[i].helper)
      kill(c->family.list[i].helper, SIGTERM);
}

/* Looking takes two percent of a processor at most. */
static int children_pause(uint64_t look_ns)
{
  enum { LEAST_MS = 50, SHARE = 50 };
  uint64_t ms = look_ns * SHARE / 1000000;
  return ms > LEAST_MS ? (int)ms : LEAST_MS;
}

/* Is there anybody who is recorded, or may be? */
static bool children_wanted(const struct children *c)
{
  for (size_t i = 0; i < c->family.count; i++) {
    const struct ljp_relative *r = &c->family.list[i];
    if (r->there && (r->state == NEW || r->state == RECORDED))
      return true;
  }
  return c->family.root_there && !c->family.root_over;
}

static void children_follow(struct children *c, int signals)
{
  struct signalfd_siginfo info;
  struct pollfd wait = {.fd = signals, .events = POLLIN};
  int pause = 0;
  for (;;) {
    poll(&wait, 1, pause);
    while (read(signals, &info, sizeof info) == sizeof info)
      if (info.ssi_signo == CHILDREN_ROOT_OVER)
        c->family.root_over = true;
      else if (info.ssi_signo != SIGCHLD)
        children_stop(c);
    children_reap(c);
    uint64_t began = ljp_record_now();
    bool over = c->until_ns && began >= c->until_ns;
    if (!c->ending && !over)
      children_look(c);
    pause = children_pause(ljp_record_now() - began);
    if (!c->recorders && (c->ending || over || !children_wanted(c)))
      break;
  }
  if (c->missed)
    ljp_command_note("record",
                     "%u %s ended before %s could be joined, and %s not "
                     "recorded",
                     c->missed, c->missed == 1 ? "child" : "children",
                     c->missed == 1 ? "it" : "they",
                     c->missed == 1 ? "was" : "were");
}

pid_t ljp_record_children(const struct ljp_record_plan *plan,
                          const struct ljp_talk *talk)
{
  static const int taken[] = {SIGINT,  SIGTERM, SIGHUP,
                              SIGQUIT, SIGCHLD, CHILDREN_ROOT_OVER};
  static struct children c;
  sigset_t signals, before;
  double seconds = ljp_record_duration(plan);
  c = (struct children){.plan = plan};
  ljp_family_init(&c.family, talk->pid);
  c.until_ns = seconds > 0 ? ljp_record_now() + (uint64_t)(seconds * 1e9) : 0;
  fflush(NULL);
  sigemptyset(&signals);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    sigaddset(&signals, taken[i]);
  sigprocmask(SIG_BLOCK, &signals, &before);
  pid_t child = children_fork();
  if (child < 0)
    ljp_command_note("record", "no children are recorded: %s", strerror(errno));
  if (child) {
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
  }
  setpgid(0, 0);
  signal(SIGTTOU, SIG_IGN);
  close(talk->socket);
  close(talk->pidfd);
  close(talk->memory);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    signal(taken[i], SIG_DFL);
  int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd >= 0)
    children_follow(&c, fd);
  _exit(fd < 0);
}

/* -- The first ljprof ------------------------------------------------------ */
void ljp_record_children_end(pid_t family, bool now)
{
  enum { PATIENCE_MS = 500, TURN_MS = 50 };
  static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  struct signalfd_siginfo info;
  sigset_t signals, before;
  struct sigaction was;
  sigemptyset(&signals);
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
    if (!sigaction(ending[i], NULL, &was) && was.sa_handler != SIG_IGN)
      sigaddset(&signals, ending[i]);
  sigprocmask(SIG_BLOCK, &signals, &before);
  struct pollfd wait = {.fd =
                            signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK),
                        .events = POLLIN};
  kill(family, now ? SIGTERM : CHILDREN_ROOT_OVER);
  for (int ms = 0; waitpid(family, NULL, WNOHANG) == 0; ms += TURN_MS) {
    if (!now && ms == PATIENCE_MS)
      ljp_command_note("record", "its children are still being recorded: "
                                 "Ctrl-C ends that");
    poll(&wait, 1, TURN_MS);
    while (read(wait.fd, &info, sizeof info) == sizeof info) {
      kill(family, SIGTERM);
      now = true;
    }
  }
  if (wait.fd >= 0)
    close(wait.fd);
  sigprocmask(SIG_SETMASK, &before, NULL);
}
