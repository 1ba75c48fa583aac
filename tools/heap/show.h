/*
** Show: the same calls make tables for people or one JSON object. A table is a
** list of rows; a cell is a column of the text or a key of the row's object. One
** thread.
*/
#ifndef LJP_TOOLS_HEAP_SHOW_H
#define LJP_TOOLS_HEAP_SHOW_H

#include "tools/heap/heap.h"

struct ljp_heap_show {
  struct ljp_print *out;
  bool json;
  bool comma; /* JSON: something stands before, so a comma comes next. */
};

void ljp_heap_show_begin(struct ljp_heap_show *s, struct ljp_print *out,
                         bool json);
void ljp_heap_show_end(struct ljp_heap_show *s);

/* Of the JSON object only. */
void ljp_heap_show_number(struct ljp_heap_show *s, const char *key,
                          uint64_t number);
void ljp_heap_show_signed(struct ljp_heap_show *s, const char *key,
                          int64_t number);
void ljp_heap_show_bool(struct ljp_heap_show *s, const char *key, bool value);
void ljp_heap_show_string(struct ljp_heap_show *s, const char *key,
                          const char *text);
void ljp_heap_show_address(struct ljp_heap_show *s, uint64_t address);

/* Of the text only. */
__attribute__((format(printf, 2, 3))) void
ljp_heap_show_line(struct ljp_heap_show *s, const char *format, ...);
/* "4.48 MiB", where a sentence needs it. */
void ljp_heap_amount(struct ljp_heap_text *t, uint64_t bytes);

/* heads: those of the columns, as wide as cells make them (10). */
void ljp_heap_table(struct ljp_heap_show *s, const char *key,
                    const char *heads);
void ljp_heap_table_end(struct ljp_heap_show *s);
void ljp_heap_row(struct ljp_heap_show *s);
void ljp_heap_row_end(struct ljp_heap_show *s);
void ljp_heap_cell_bytes(struct ljp_heap_show *s, const char *key,
                         uint64_t bytes);
/* With its sign. */
void ljp_heap_cell_change(struct ljp_heap_show *s, const char *key,
                          int64_t bytes);
void ljp_heap_cell_count(struct ljp_heap_show *s, const char *key,
                         uint64_t count);
void ljp_heap_cell_count_change(struct ljp_heap_show *s, const char *key,
                                int64_t count);
/* As wide as it is, after two spaces. */
void ljp_heap_cell_text(struct ljp_heap_show *s, const char *key,
                        const struct ljp_heap_text *t);
/* Ten characters wide. */
void ljp_heap_cell_word(struct ljp_heap_show *s, const char *key,
                        const char *word);
/* A list of lines in a row, each below the row. */
void ljp_heap_lines(struct ljp_heap_show *s, const char *key);
void ljp_heap_lines_add(struct ljp_heap_show *s,
                        const struct ljp_heap_text *line);
void ljp_heap_lines_end(struct ljp_heap_show *s);
/* Of the text only: two spaces a level. */
void ljp_heap_cell_indent(struct ljp_heap_show *s, unsigned levels);

#endif
