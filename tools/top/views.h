/*
** Views: writes the text of a view, line by line, from a part of the profile. One
** thread, the worker's.
*/
#ifndef LJP_TOOLS_TOP_VIEWS_H
#define LJP_TOOLS_TOP_VIEWS_H

#include "tools/report/groups.h"
#include "tools/top/worker.h"

/* A line has room for a name, each byte of which may become four (\xNN), and for
** figures. */
enum {
  LJP_TOP_NAME_BYTES = 512,
  LJP_TOP_LINE_BYTES = 4 * LJP_TOP_NAME_BYTES + 256,
  LJP_TOP_LAST_BYTES = 128
};

struct ljp_top_text {
  struct ljp_print out; /* Into a file, or only into its buffer. */
  bool full;            /* A line did not fit. */
  bool is_file;         /* For people, not for the screen: lines have no kind,
                        ** and there may be any number. */
};

/* answer.c: writes the view that the query asks for. */
void ljp_worker_write(struct ljp_worker *w, struct ljp_top_text *text);

/* Begins a line. False: the text is full. */
bool ljp_top_begin(struct ljp_top_text *text, enum ljp_top_line kind);
void ljp_top_end(struct ljp_top_text *text);

/* The last line of a text that is full: at most LJP_TOP_LAST_BYTES. */
__attribute__((format(printf, 2, 3))) void
ljp_top_last(struct ljp_top_text *text, const char *format, ...);

/* A whole line of ours, without anything from the stream. */
__attribute__((format(printf, 3, 4))) void
ljp_top_line(struct ljp_top_text *text, enum ljp_top_line kind,
             const char *format, ...);

/* tables.c: rows by what the report is grouped by. */
void ljp_top_table(struct ljp_top_text *text, const struct ljp_worker *w,
                   struct ljp_profile *part);
/* The share of each state of the VM. */
void ljp_top_states(struct ljp_top_text *text, const struct ljp_worker *w,
                    struct ljp_profile *part);

/* curves.c */
void ljp_top_heap(struct ljp_top_text *text, const struct ljp_worker *w,
                  uint64_t from_ns);
void ljp_top_jit(struct ljp_top_text *text, const struct ljp_worker *w,
                 uint64_t from_ns);

/* The measure of views of time: CPU time, or wall-clock time if the file has
** nothing else. */
enum ljp_measure ljp_top_measure(const struct ljp_profile *p);

#endif
