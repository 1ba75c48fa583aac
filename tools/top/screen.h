/*
** Screen: shows answers and sends queries. It is a process of its own, which has
** the terminal and reads no file. One thread.
*/
#ifndef LJP_TOOLS_TOP_SCREEN_H
#define LJP_TOOLS_TOP_SCREEN_H

#include <stddef.h>

#include "tools/top/top.h"

enum ljp_prompt {
  LJP_PROMPT_NONE,
  LJP_PROMPT_FILTER,
  LJP_PROMPT_SAVE,
  LJP_PROMPT_PAGE,
  LJP_PROMPT_RECORD
};

struct ljp_screen {
  int worker, signals, notes, keys; /* Descriptors. */
  struct ljp_top_query query;
  bool unsent;                  /* The query is newer than what was sent. */
  struct ljp_top_answer answer; /* The newest view. */
  bool answered;
  bool worker_gone;
  bool help;
  bool help_hides; /* Not all of the help has room. */
  int help_scroll;
  int scroll, left; /* Rows and columns that are scrolled away. */
  int body_rows;    /* That the last drawing had room for. */
  enum ljp_prompt prompt;
  char input[LJP_TOP_PATH_BYTES];
  size_t input_len;
  char message[LJP_TOP_PATH_BYTES + 512]; /* In the last line. */
  bool quit;
};

/* screen.c: shows everything as it is now. */
void ljp_screen_draw(struct ljp_screen *s);

/* keys.c: takes a key of ncurses. */
void ljp_screen_key(struct ljp_screen *s, int key);

/* loop.c: runs the screen until the user quits. Returns the exit code. */
int ljp_screen_run(int worker, int notes, int keys,
                   const struct ljp_top_query *first);

#endif
