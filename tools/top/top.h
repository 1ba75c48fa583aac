/*
** Top: the live view, in three processes.
**
**   guard    the process that was started: it puts the terminal right when the
**            screen dies, whatever killed it (guard.h)
**   screen   its child: keyboard and ncurses; it reads no file (screen.h)
**   worker   reads the stream, makes the profile and the text of views; it has no
**            terminal (worker.h)
**
** The screen sends queries, each of which is all that the user has chosen; the
** worker answers with a view, and sends a new one when there is something new.
** Both are single messages of a SOCK_SEQPACKET pair. The worker reads untrusted
** bytes, so the screen trusts no view: lengths are checked, and characters that
** would command the terminal are not shown.
*/
#ifndef LJP_TOOLS_TOP_H
#define LJP_TOOLS_TOP_H

#include <stdbool.h>
#include <stdint.h>

/* Name, title, what it shows. */
#define LJP_TOP_VIEW_LIST(_)                                                   \
  _(FUNCTIONS, "functions", "time by function")                                \
  _(LINES, "lines", "time by line")                                            \
  _(STACKS, "stacks", "time by stack")                                         \
  _(SITES, "sites", "memory allocated, by line")                               \
  _(HEAP, "heap", "size of the heap, phases of the collector")                 \
  _(JIT, "jit", "states of the VM, the JIT compiler")                          \
  _(THREADS, "threads", "time by thread")                                      \
  _(VMS, "vms", "time by VM")                                                  \
  _(LABELS, "labels", "time by the program's labels")

enum ljp_top_view {
#define LJP_X(name, title, text) LJP_TOP_##name,
  LJP_TOP_VIEW_LIST(LJP_X)
#undef LJP_X
      LJP_TOP_VIEWS
};

enum ljp_top_sort { LJP_TOP_OWN, LJP_TOP_TOTAL, LJP_TOP_NAME, LJP_TOP_SORTS };

/* What the worker is to do with a view. */
enum ljp_top_what {
  LJP_TOP_SHOW,
  LJP_TOP_SAVE,  /* Write it to a file. */
  LJP_TOP_PAGE,  /* Make a flame graph page of its seconds. */
  LJP_TOP_RECORD /* Record into a file from now on; without a path: no more. */
};

/* Can what is shown be recorded into a file that stays? */
enum ljp_top_records { LJP_TOP_IS_FILE, LJP_TOP_CAN_RECORD, LJP_TOP_RECORDS };

/* In place of seconds: the last ten while the file is recorded, else all. */
#define LJP_TOP_AUTO 255u

#define LJP_TOP_FILTER_BYTES 201u
#define LJP_TOP_PATH_BYTES 1024u

struct ljp_top_query {
  uint32_t serial; /* Grows with each query. */
  uint8_t what, view, sort;
  bool native, frozen;
  bool utf8;           /* The terminal shows UTF-8. */
  uint16_t cols, rows; /* Of the screen. */
  uint32_t seconds;    /* The span that is shown; 0: everything; or AUTO. */
  uint32_t thread, vm; /* By their numbers in the profile; 0: all. */
  uint32_t label; /* Which key of labels LABELS shows, modulo their number. */
  char filter[LJP_TOP_FILTER_BYTES]; /* A regex on names; "": all rows. */
  char path[LJP_TOP_PATH_BYTES];     /* The file to write. */
};

/* The text consists of lines. Each begins with its kind (enum ljp_top_line) and
** ends with a newline. */
#define LJP_TOP_TEXT_BYTES 49152u
struct ljp_top_answer {
  uint32_t serial;      /* Of the query; only SHOW has more than a message. */
  uint32_t next_thread; /* After that of the query, with events; 0: none. */
  uint32_t next_vm;
  uint32_t records; /* enum ljp_top_records */
  uint32_t seconds; /* The span that is shown; 0: everything. */
  uint32_t text_bytes;
  char text[LJP_TOP_TEXT_BYTES];
};

enum ljp_top_line {
  LJP_TOP_LINE_TITLE = 'T',
  LJP_TOP_LINE_FIGURES = 'F',
  LJP_TOP_LINE_NOTICE = '!', /* Damage. */
  LJP_TOP_LINE_HEAD = 'H',   /* Of the columns. */
  LJP_TOP_LINE_ROW = 'R',
  LJP_TOP_LINE_PLAIN = 'P',  /* Other text; scrolls with the rows. */
  LJP_TOP_LINE_MESSAGE = 'M' /* What SAVE, PAGE or RECORD did. */
};

#endif
