/*
** The guard, its sentinel, and what both write to the terminal.
*/
#include "tools/top/guard.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <term.h>
#include <unistd.h>

enum { GUARD_BYTES = 512 };

static struct {
  int terminal;
  struct termios modes;   /* As they were. */
  char text[GUARD_BYTES]; /* Leaves the alternate screen, shows the cursor. */
  size_t len;
} guard;

static int guard_put(int c)
{
  if (guard.len < sizeof guard.text)
    guard.text[guard.len++] = (char)c;
  return c;
}

/* Prepares everything while nothing is wrong yet. */
static void guard_prepare(int terminal)
{
  static const char *const names[] = {"rmcup", "cnorm", "sgr0", "rmkx"};
  guard.terminal = terminal;
  tcgetattr(terminal, &guard.modes);
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = tigetstr(names[i]);
    if (text && text != (char *)-1)
      tputs(text, 1, guard_put);
  }
}

static void guard_write(void)
{
  size_t done = 0;
  while (done < guard.len) {
    ssize_t n = write(guard.terminal, guard.text + done, guard.len - done);
    if (n < 0 && errno != EINTR)
      break;
    done += n > 0 ? (size_t)n : 0;
  }
}

static void guard_restore(void)
{
  guard_write();
  tcsetattr(guard.terminal, TCSANOW, &guard.modes);
}

/* Whether the terminal still has the modes of the screen. If not, a shell has
** set its own. */
static bool guard_has_modes(const struct termios *screen)
{
  struct termios now;
  return tcgetattr(guard.terminal, &now) == 0 &&
         now.c_iflag == screen->c_iflag && now.c_oflag == screen->c_oflag &&
         now.c_lflag == screen->c_lflag &&
         memcmp(now.c_cc, screen->c_cc, sizeof now.c_cc) == 0;
}

/* Waits until both the guard and the screen are gone. */
_Noreturn static void guard_sentinel(int notes)
{
  struct ljp_guard_note note, screen = {0};
  bool shown = false;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  setsid();
  prctl(PR_SET_NAME, "ljprof-sentinel");
  for (;;) {
    ssize_t n = read(notes, &note, sizeof note);
    if (n == sizeof note && note.clean)
      _exit(0);
    if (n != sizeof note)
      break;
    screen = note;
    shown = true;
  }
  if (shown) {
    bool ours = guard_has_modes(&screen.modes);
    guard_write();
    if (ours)
      tcsetattr(guard.terminal, TCSANOW, &guard.modes);
  }
  _exit(0);
}

/* Whether a signal came from the terminal: then the screen has got it, too. */
static bool guard_from_terminal(const siginfo_t *info)
{
  return info->si_code == SI_KERNEL;
}

/* Waits for the screen. */
static int guard_wait(pid_t screen, const sigset_t *signals)
{
  siginfo_t info;
  int status;
  for (;;) {
    if (sigwaitinfo(signals, &info) < 0)
      continue;
    if (info.si_signo == SIGCONT)
      kill(screen, SIGCONT);
    else if (info.si_signo != SIGCHLD && !guard_from_terminal(&info))
      kill(screen, info.si_signo);
    pid_t pid = waitpid(screen, &status, WNOHANG | WUNTRACED);
    if (pid != screen)
      continue;
    if (!WIFSTOPPED(status))
      return status;
    guard_restore();
    raise(SIGSTOP);
  }
}

int ljp_guard_run(int terminal, int own, int (*screen)(int note_fd, void *ctx),
                  void *ctx)
{
  const int watched[] = {SIGCHLD, SIGTERM, SIGHUP,  SIGINT,
                         SIGQUIT, SIGTSTP, SIGCONT, SIGTTOU};
  sigset_t signals, before;
  int notes[2];
  pid_t sentinel, child = -1, parent = getpid();
  guard_prepare(terminal);
  sigemptyset(&signals);
  for (unsigned i = 0; i < sizeof watched / sizeof *watched; i++)
    sigaddset(&signals, watched[i]);
  sigprocmask(SIG_BLOCK, &signals, &before);
  if (pipe2(notes, O_CLOEXEC))
    return -1;
  sentinel = fork();
  if (sentinel == 0) {
    close(notes[1]);
    if (own >= 0)
      close(own);
    guard_sentinel(notes[0]);
  }
  close(notes[0]);
  if (sentinel > 0)
    child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_NAME, "ljprof-screen");
    if (getppid() != parent)
      _exit(1);
    _exit(screen(notes[1], ctx));
  }
  if (own >= 0)
    close(own);
  /* It stays blocked, so that modes can be set from the background. */
  sigdelset(&signals, SIGTTOU);
  int status = child > 0 ? guard_wait(child, &signals) : -1;
  if (child > 0 && WIFSIGNALED(status))
    guard_restore();
  const struct ljp_guard_note clean = {.clean = 1};
  ssize_t told = write(notes[1], &clean, sizeof clean);
  (void)told; /* If there is no sentinel any more, all is well, too. */
  close(notes[1]);
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (child < 0)
    return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
