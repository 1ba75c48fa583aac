/*
** Keys: what each does. A key changes the query, or only what is shown of the
** answer.
*/
#include <ctype.h>
#include <curses.h>
#include <stdio.h>
#include <string.h>

#include "tools/top/screen.h"

enum {
  KEY_CTRL_C = 3,
  KEY_TAB = 9,
  KEY_CTRL_L = 12,
  KEY_RETURN = 13,
  KEY_ESCAPE = 27,
  KEY_CTRL_U = 21,
  KEY_DEL = 127,
  KEYS_LEFT = 8,
  KEYS_MOST_LEFT = 1024
};

static void keys_ask(struct ljp_screen *s)
{
  s->query.what = LJP_TOP_SHOW;
  s->query.serial++;
  s->unsent = true;
}

static void keys_view(struct ljp_screen *s, unsigned view)
{
  s->query.view = (uint8_t)(view % LJP_TOP_VIEWS);
  s->scroll = s->left = 0;
  keys_ask(s);
}

/* Shows the next longer span. After everything comes the shortest one. */
static void keys_seconds(struct ljp_screen *s)
{
  static const uint32_t spans[] = {5, 10, 30, 60, 0};
  uint32_t now =
      s->query.seconds == LJP_TOP_AUTO ? s->answer.seconds : s->query.seconds;
  unsigned i = 0;
  while (now && spans[i] && spans[i] <= now)
    i++;
  s->query.seconds = spans[i];
  keys_ask(s);
}

/* Begins to ask for a line of text. */
static void keys_prompt(struct ljp_screen *s, enum ljp_prompt prompt,
                        const char *text)
{
  s->prompt = prompt;
  snprintf(s->input, sizeof s->input, "%s", text);
  s->input_len = strlen(s->input);
}

/* Sends a query that is not about what is shown. */
static void keys_act(struct ljp_screen *s, enum ljp_top_what what)
{
  snprintf(s->query.path, sizeof s->query.path, "%s", s->input);
  s->query.what = (uint8_t)what;
  s->query.serial++;
  s->unsent = true;
  snprintf(s->message, sizeof s->message, "%s", "writing ...");
}

static void keys_done(struct ljp_screen *s)
{
  enum ljp_prompt prompt = s->prompt;
  s->prompt = LJP_PROMPT_NONE;
  if (prompt == LJP_PROMPT_FILTER) {
    snprintf(s->query.filter, sizeof s->query.filter, "%.*s",
             (int)sizeof s->query.filter - 1, s->input);
    s->scroll = 0;
    keys_ask(s);
  } else if (s->input_len) {
    keys_act(s, prompt == LJP_PROMPT_SAVE   ? LJP_TOP_SAVE
                : prompt == LJP_PROMPT_PAGE ? LJP_TOP_PAGE
                                            : LJP_TOP_RECORD);
  }
}

static void keys_edit(struct ljp_screen *s, int key)
{
  size_t room = s->prompt == LJP_PROMPT_FILTER ? LJP_TOP_FILTER_BYTES
                                               : LJP_TOP_PATH_BYTES;
  if (key == KEY_RETURN || key == '\n' || key == KEY_ENTER)
    keys_done(s);
  else if (key == KEY_ESCAPE || key == KEY_CTRL_C)
    s->prompt = LJP_PROMPT_NONE;
  else if (key == KEY_CTRL_U)
    s->input_len = 0;
  else if ((key == KEY_BACKSPACE || key == KEY_DEL || key == '\b')) {
    while (s->input_len && ((uint8_t)s->input[--s->input_len] & 0xc0) == 0x80)
      ; /* The rest of a character. */
  } else if (key >= ' ' && key < 256 && s->input_len + 1 < room)
    s->input[s->input_len++] = (char)key;
  s->input[s->input_len] = '\0';
}

/* Scrolling; false: the key is another one. */
static bool keys_scroll(struct ljp_screen *s, int key)
{
  int page = s->body_rows > 2 ? s->body_rows - 2 : 1;
  switch (key) {
  case KEY_DOWN:
  case 'j':
    s->scroll++;
    break;
  case KEY_UP:
  case 'k':
    s->scroll--;
    break;
  case KEY_NPAGE:
    s->scroll += page;
    break;
  case KEY_PPAGE:
    s->scroll -= page;
    break;
  case KEY_HOME:
    s->scroll = s->left = 0;
    break;
  case KEY_END:
    s->scroll = INT16_MAX;
    break;
  case KEY_RIGHT:
    s->left += s->left < KEYS_MOST_LEFT ? KEYS_LEFT : 0;
    break;
  case KEY_LEFT:
    s->left -= s->left ? KEYS_LEFT : 0;
    break;
  default:
    return false;
  }
  if (s->scroll < 0)
    s->scroll = 0;
  return true;
}

static void keys_record(struct ljp_screen *s)
{
  if (!s->answered || s->answer.records == LJP_TOP_IS_FILE) {
    snprintf(s->message, sizeof s->message, "%s",
             "r records a running program (-p PID); this is a file already");
  } else if (s->answer.records == LJP_TOP_CAN_RECORD) {
    keys_prompt(s, LJP_PROMPT_RECORD, "top.ljp");
  } else {
    s->input[0] = '\0';
    keys_act(s, LJP_TOP_RECORD);
  }
}

/* Keys that change the query. */
static void keys_change(struct ljp_screen *s, int key)
{
  struct ljp_top_query *q = &s->query;
  switch (key) {
  case 's':
    q->sort = (uint8_t)((q->sort + 1) % LJP_TOP_SORTS);
    break;
  case 'n':
    q->native = !q->native;
    break;
  case 't':
    q->thread = s->answer.next_thread;
    break;
  case 'v':
    q->vm = s->answer.next_vm;
    break;
  case 'l':
    q->label += q->view == LJP_TOP_LABELS;
    keys_view(s, LJP_TOP_LABELS);
    return;
  case 'f':
  case ' ':
    q->frozen = !q->frozen;
    break;
  case KEY_ESCAPE:
    q->filter[0] = '\0';
    break;
  default:
    return;
  }
  keys_ask(s);
}

/* While the help is shown: it scrolls if it has not enough room. */
static void keys_help(struct ljp_screen *s, int key)
{
  enum { PAGE = 8 };
  int by = key == KEY_DOWN    ? 1
           : key == KEY_UP    ? -1
           : key == KEY_NPAGE ? PAGE
           : key == KEY_PPAGE ? -PAGE
           : key == KEY_END   ? INT16_MAX
           : key == KEY_HOME  ? -INT16_MAX
                              : 0;
  s->quit = key == KEY_CTRL_C;
  if (by && s->help_hides)
    s->help_scroll += by;
  else
    s->help = false;
}

void ljp_screen_key(struct ljp_screen *s, int key)
{
  s->message[0] = '\0';
  if (s->prompt) {
    keys_edit(s, key);
    return;
  }
  if (s->help) {
    keys_help(s, key);
    return;
  }
  if (keys_scroll(s, key))
    return;
  if (key >= '1' && key < '1' + LJP_TOP_VIEWS) {
    keys_view(s, (unsigned)(key - '1'));
    return;
  }
  switch (key) {
  case 'q':
  case 'Q':
  case KEY_CTRL_C:
    s->quit = true;
    break;
  case KEY_TAB:
    keys_view(s, s->query.view + 1u);
    break;
  case KEY_BTAB:
    keys_view(s, s->query.view + LJP_TOP_VIEWS - 1u);
    break;
  case 'w':
    keys_seconds(s);
    break;
  case '/':
    keys_prompt(s, LJP_PROMPT_FILTER, s->query.filter);
    break;
  case 'S':
    keys_prompt(s, LJP_PROMPT_SAVE, "top.txt");
    break;
  case 'p':
    keys_prompt(s, LJP_PROMPT_PAGE, "top.html");
    break;
  case 'r':
    keys_record(s);
    break;
  case '?':
  case 'h':
    s->help = true;
    s->help_scroll = 0;
    break;
  case KEY_CTRL_L:
    clearok(curscr, TRUE);
    break;
  default:
    keys_change(s, key);
  }
}
