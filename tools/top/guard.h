/*
** Guard: puts the terminal right when the screen dies without having done so.
**
** The guard is the process that was started; the screen is its child, so the
** shell goes on only when the terminal is right. If the guard is killed, the
** screen ends itself. If both are killed at once, a sentinel acts, which is in a
** session of its own.
*/
#ifndef LJP_TOOLS_TOP_GUARD_H
#define LJP_TOOLS_TOP_GUARD_H

#include <termios.h>

/* What the screen tells the sentinel. */
struct ljp_guard_note {
  int clean;            /* The terminal is right; nothing is left to do. */
  struct termios modes; /* Else: those that the screen has set. */
};

/* Runs the screen in a child process and returns its exit code; after a signal
** has ended it, 128 and the signal's number. note_fd: where the screen writes
** its notes. own: a descriptor that only the screen keeps; -1: none. -1: no
** process could be made (errno). */
int ljp_guard_run(int terminal, int own, int (*screen)(int note_fd, void *ctx),
                  void *ctx);

#endif
