/*
** The stacks of a joined program, from the client's side (ljprof dump-stacks):
** taken (take.c), read as lines (lines.c), with names of machine code
** (host_names.c), shown as text or JSON (text.c, json.c).
*/
#ifndef LJP_TOOLS_STACKS_H
#define LJP_TOOLS_STACKS_H

#include "parsers/symbols/symbols.h"
#include "src/base/join_stacks.h"
#include "tools/join/talk.h"
#include "tools/shared/print.h"

enum { LJP_STACKS_FIELDS = 8 };

/* A line of the helper's file. Its fields are checked: there are as many as the
** list says, and numbers are numbers. */
struct ljp_stacks_text_line {
  enum ljp_join_stacks_line kind;
  const char *text[LJP_STACKS_FIELDS];
  uint64_t number[LJP_STACKS_FIELDS]; /* of those that are numbers */
  /* Of machine code. */
  const struct ljp_symbol *symbol; /* NULL: not known */
  char place[80];                  /* "libc.so.6+0x1234" */
};

struct ljp_stacks_lines {
  char *text;
  struct ljp_stacks_text_line *list;
  size_t count;
};

/* Reads a file. NULL, or what is wrong with it. */
const char *ljp_stacks_lines_read(struct ljp_stacks_lines *lines, int fd);
void ljp_stacks_lines_free(struct ljp_stacks_lines *lines);

/* Takes the stacks of a joined program into a file. -1: done; else the exit
** code after reporting why not. */
int ljp_stacks_take(struct ljp_talk *talk, int fd, bool locals);

/* Finds names for the machine code of a process, if its memory can be read. The
** result is to be freed after the last use of the lines; NULL: no names. */
struct ljp_symbols *ljp_stacks_name(struct ljp_stacks_lines *lines, pid_t pid);

/* A frame's function and its place, as text. */
void ljp_stacks_function(const struct ljp_stacks_text_line *line, char *out,
                         size_t room);
void ljp_stacks_place(const struct ljp_stacks_text_line *line, char *out,
                      size_t room);

void ljp_stacks_show_text(struct ljp_print *out, const struct ljp_talk *talk,
                          const struct ljp_stacks_lines *lines);
void ljp_stacks_show_json(struct ljp_print *out, const struct ljp_talk *talk,
                          const struct ljp_stacks_lines *lines);

#endif
