/*
** The screen's loop: keys, signals, answers. Signals come by a descriptor, so
** nothing is interrupted in the middle of ncurses.
*/
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "tools/shared/command.h"
#include "tools/top/guard.h"
#include "tools/top/screen.h"

enum { LOOP_ESCAPE_MS = 25, LOOP_RETRY_MS = 100 };

static void loop_note(const struct ljp_screen *s, bool clean)
{
  struct ljp_guard_note note = {.clean = clean};
  tcgetattr(s->keys, &note.modes);
  ssize_t told = write(s->notes, &note, sizeof note);
  (void)told; /* Without a sentinel there is still the guard. */
}

/* The size of the terminal may have changed. */
static void loop_resize(struct ljp_screen *s)
{
  struct winsize size;
  if (ioctl(s->keys, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
    resizeterm(size.ws_row, size.ws_col);
  clearok(curscr, TRUE);
  s->query.cols = (uint16_t)COLS;
  s->query.rows = (uint16_t)LINES;
  s->query.what = LJP_TOP_SHOW;
  s->query.serial++;
  s->unsent = true;
}

/* Ctrl-Z: the shell gets its terminal back before this process stops. */
static void loop_stop(struct ljp_screen *s)
{
  endwin();
  raise(SIGSTOP);
  loop_resize(s);
}

static void loop_signals(struct ljp_screen *s)
{
  struct signalfd_siginfo info;
  while (read(s->signals, &info, sizeof info) == sizeof info)
    switch (info.ssi_signo) {
    case SIGWINCH:
      loop_resize(s);
      break;
    case SIGTSTP:
      loop_stop(s);
      break;
    case SIGCONT:
      reset_prog_mode();
      loop_resize(s);
      break;
    default:
      s->quit = true;
    }
}

/* Whether an answer can be believed. */
static bool loop_is_answer(const struct ljp_top_answer *a, size_t bytes)
{
  const size_t head = sizeof *a - sizeof a->text;
  return bytes >= head && a->text_bytes == bytes - head &&
         a->text_bytes <= sizeof a->text;
}

static void loop_answers(struct ljp_screen *s)
{
  static struct ljp_top_answer a;
  ssize_t n;
  while ((n = recv(s->worker, &a, sizeof a, MSG_DONTWAIT)) > 0) {
    if (!loop_is_answer(&a, (size_t)n))
      continue;
    if (a.text_bytes && a.text[0] == LJP_TOP_LINE_MESSAGE) {
      size_t len = a.text_bytes - 1;
      if (len >= sizeof s->message)
        len = sizeof s->message - 1;
      memcpy(s->message, a.text + 1, len);
      s->message[len] = '\0';
      s->message[strcspn(s->message, "\n")] = '\0';
      continue;
    }
    s->answer = a;
    s->answered = true;
  }
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
    s->worker_gone = true;
}

static void loop_send(struct ljp_screen *s)
{
  if (!s->unsent || s->worker_gone)
    return;
  if (send(s->worker, &s->query, sizeof s->query,
           MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof s->query) {
    s->unsent = false;
    s->query.what = LJP_TOP_SHOW;
  }
}

static void loop_keys(struct ljp_screen *s, short events)
{
  int key;
  if (events & (POLLHUP | POLLERR)) {
    s->quit = true;
    return;
  }
  while (!s->quit && (key = getch()) != ERR)
    if (key != KEY_RESIZE)
      ljp_screen_key(s, key);
}

static void loop_run(struct ljp_screen *s)
{
  while (!s->quit) {
    struct pollfd wait[] = {
        {.fd = s->keys, .events = POLLIN},
        {.fd = s->signals, .events = POLLIN},
        {.fd = s->worker_gone ? -1 : s->worker, .events = POLLIN}};
    loop_send(s);
    ljp_screen_draw(s);
    if (poll(wait, 3, s->unsent ? LOOP_RETRY_MS : -1) < 0)
      continue;
    if (wait[1].revents)
      loop_signals(s);
    if (wait[2].revents)
      loop_answers(s);
    if (wait[0].revents)
      loop_keys(s, wait[0].revents);
  }
}

int ljp_screen_run(int worker, int notes, int keys,
                   const struct ljp_top_query *first)
{
  static struct ljp_screen s;
  const int watched[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT,
                         SIGQUIT,  SIGTSTP, SIGCONT};
  sigset_t signals;
  sigemptyset(&signals);
  for (unsigned i = 0; i < sizeof watched / sizeof *watched; i++)
    sigaddset(&signals, watched[i]);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  s.worker = worker;
  s.notes = notes;
  s.keys = keys;
  s.query = *first;
  s.signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  setlocale(LC_CTYPE, "");
  s.query.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  FILE *in = fdopen(keys, "r");
  SCREEN *screen = in ? newterm(NULL, stdout, in) : NULL;
  if (s.signals < 0 || !screen) {
    ljp_command_error("top", "cannot use this terminal");
    return LJP_EXIT_FAILED;
  }
  set_escdelay(LOOP_ESCAPE_MS);
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  loop_note(&s, false);
  loop_resize(&s);
  loop_run(&s);
  endwin();
  loop_note(&s, true);
  return LJP_EXIT_OK;
}
