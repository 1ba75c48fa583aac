/*
** Draws. Every character that reaches ncurses has been looked at here: it has a
** width on the terminal, or is replaced.
*/
#include "tools/top/screen.h"

#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { SCREEN_COLS = 512 };

/* What '?' shows. */
static const char *const screen_help[] = {
    "Tab, Shift-Tab  next view, previous view",
    "1 2 3           functions, lines, stacks",
    "4 5 6           allocation sites, heap, JIT",
    "7 8             threads, VMs",
    "9 l             labels; l again: by the next key",
    "s               sort by own time, total time, name",
    "w               seconds that are shown: 5, 10, 30, 60, all",
    "t v             only one thread, only one VM; again: the next",
    "/               filter rows by a regular expression; Esc: all rows",
    "n               machine code, or only the program's functions",
    "f, space        freeze the view, go on",
    "arrows, PgUp, PgDn, Home, End   scroll",
    "S               save the view to a file",
    "p               flame graph page of the seconds that are shown",
    "r               record a running program into a file; again: no more",
    "q               quit",
    "",
    "any key closes this help",
};

/* Puts text on a row of the screen from its `skip`-th column on. */
static void screen_put(int y, int skip, const char *text, size_t len,
                       attr_t attr)
{
  wchar_t wide[SCREEN_COLS];
  int cols = COLS < SCREEN_COLS ? COLS : SCREEN_COLS, used = 0, n = 0;
  mbstate_t state = {0};
  while (len && used < cols) {
    wchar_t c;
    size_t bytes = mbrtowc(&c, text, len, &state);
    if (bytes == 0 || bytes > len) {
      c = L'?';
      bytes = 1;
      state = (mbstate_t){0};
    }
    text += bytes;
    len -= bytes;
    int width = wcwidth(c);
    if (width < 0) {
      c = L'?';
      width = 1;
    }
    if (!width || skip >= width) { /* A combining character may pile up. */
      skip -= width;
      continue;
    }
    skip = 0;
    if (used + width > cols)
      break;
    wide[n++] = c;
    used += width;
  }
  attrset(attr);
  mvaddnwstr(y, 0, wide, n);
  if (attr & A_REVERSE)
    for (; used < cols; used++)
      addch(' ');
  attrset(A_NORMAL);
}

static void screen_text(int y, const char *text, attr_t attr)
{
  screen_put(y, 0, text, strlen(text), attr);
}

/* The next line of an answer; its kind is at *line. False: there is none. */
static bool screen_next(const struct ljp_top_answer *answer, size_t *at,
                        const char **line, size_t *len)
{
  if (*at >= answer->text_bytes)
    return false;
  const char *begin = answer->text + *at;
  const char *end = memchr(begin, '\n', answer->text_bytes - *at);
  *line = begin;
  *len = end ? (size_t)(end - begin) : answer->text_bytes - *at;
  *at += *len + 1;
  return true;
}

static bool screen_is_body(char kind)
{
  return kind == LJP_TOP_LINE_HEAD || kind == LJP_TOP_LINE_ROW ||
         kind == LJP_TOP_LINE_PLAIN;
}

/* The bytes of whole figures that there is room for. */
static size_t screen_whole_figures(const char *text, size_t len)
{
  size_t room = (size_t)COLS;
  if (len <= room)
    return len;
  while (room && memcmp(text + room, "  ", 2) != 0)
    room--;
  return room ? room : len;
}

/* Draws title, figures and notices; returns the next free row. */
static int screen_draw_top(struct ljp_screen *s)
{
  const char *line;
  size_t at = 0, len;
  int y = 0;
  while (y < LINES - 2 && screen_next(&s->answer, &at, &line, &len))
    if (len && line[0] == LJP_TOP_LINE_TITLE)
      screen_put(y++, 0, line + 1, len - 1, A_REVERSE);
    else if (len && line[0] == LJP_TOP_LINE_FIGURES)
      screen_put(y++, 0, line + 1, screen_whole_figures(line + 1, len - 1),
                 A_NORMAL);
    else if (len && line[0] == LJP_TOP_LINE_NOTICE)
      screen_put(y++, 0, line, len, A_BOLD);
  return y;
}

/* How many lines of the body there are. */
static int screen_body_lines(const struct ljp_screen *s)
{
  const char *line;
  size_t at = 0, len;
  int count = 0;
  while (screen_next(&s->answer, &at, &line, &len))
    count += len && screen_is_body(line[0]);
  return count;
}

static void screen_draw_body(struct ljp_screen *s, int y)
{
  const char *line;
  size_t at = 0, len;
  int n = 0, count = screen_body_lines(s);
  s->body_rows = LINES - 1 - y;
  int most = count > s->body_rows ? count - s->body_rows : 0;
  int scroll = s->scroll < most ? s->scroll : most;
  if (s->answer.serial == s->query.serial) /* Else more lines may come. */
    s->scroll = scroll;
  bool first = true;
  while (y < LINES - 1 && screen_next(&s->answer, &at, &line, &len)) {
    if (!len || !screen_is_body(line[0]))
      continue;
    bool head = line[0] == LJP_TOP_LINE_HEAD;
    bool stays = first && head; /* The first heading does not scroll away. */
    first = false;
    if (n++ < scroll + (scroll ? 1 : 0) && !stays)
      continue;
    screen_put(y++, s->left, line + 1, len - 1, head ? A_BOLD : A_NORMAL);
  }
}

static void screen_draw_last(const struct ljp_screen *s)
{
  static const char *const views[] = {
#define LJP_X(name, title, text) title,
      LJP_TOP_VIEW_LIST(LJP_X)
#undef LJP_X
  };
  static const char *const prompts[] = {
      "", "filter (regex): ", "save as: ", "page (.html): ", "record into: "};
  char line[LJP_TOP_PATH_BYTES + 600];
  if (s->prompt) {
    snprintf(line, sizeof line, "%s%s_", prompts[s->prompt], s->input);
    int over = (int)strlen(line) - COLS + 1;
    screen_put(LINES - 1, over > 0 ? over : 0, line, strlen(line), A_REVERSE);
    return;
  }
  if (s->worker_gone)
    snprintf(line, sizeof line,
             "the process that reads the file has died  q quit");
  else if (s->message[0])
    snprintf(line, sizeof line, "%s", s->message);
  else
    snprintf(
        line, sizeof line,
        "[%s]%s%s%s Tab view s sort w time / filter f freeze%s ? help q quit",
        views[s->query.view], s->query.filter[0] ? " /" : "", s->query.filter,
        s->query.frozen ? " FROZEN" : "",
        s->answered && s->answer.records != LJP_TOP_IS_FILE ? " r record" : "");
  screen_text(LINES - 1, line, A_REVERSE);
}

static void screen_draw_help(struct ljp_screen *s)
{
  const int lines = (int)(sizeof screen_help / sizeof *screen_help);
  int room = LINES - 2;
  s->help_hides = lines > room;
  room -= s->help_hides;
  if (s->help_scroll > lines - room)
    s->help_scroll = lines - room;
  if (s->help_scroll < 0 || !s->help_hides)
    s->help_scroll = 0;
  screen_text(0, "ljprof top: keys", A_REVERSE);
  for (int i = 0; i < room && i + s->help_scroll < lines; i++)
    screen_text(i + 2, screen_help[i + s->help_scroll], A_NORMAL);
  if (s->help_hides && LINES > 1)
    screen_text(LINES - 1, "arrows scroll, another key closes", A_REVERSE);
}

void ljp_screen_draw(struct ljp_screen *s)
{
  erase();
  if (s->help) {
    screen_draw_help(s);
  } else if (s->answered) {
    screen_draw_body(s, screen_draw_top(s));
  } else {
    screen_text(0, "reading ...", A_REVERSE);
  }
  if (LINES > 1 && !s->help)
    screen_draw_last(s);
  refresh();
}
