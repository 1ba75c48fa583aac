/*
** The lines of the helper's file, checked. They come from a program that may be
** anything.
*/
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/stacks/stacks.h"

#define LINES_MOST_BYTES (UINT64_C(512) << 20)
enum { LINES_MOST = 2000000 };

static const struct {
  const char *name;
  unsigned fields;
} lines_kinds[] = {
#define LJP_X(kind, name, fields) [LJP_STACKS_##kind] = {name, fields},
    LJP_JOIN_STACKS_LIST(LJP_X)
#undef LJP_X
};

/* The base of a field that is a number; 0: it is text. */
static int lines_base(enum ljp_join_stacks_line kind, unsigned field)
{
  switch (kind) {
  case LJP_STACKS_HEAD:
  case LJP_STACKS_GAP:
  case LJP_STACKS_END:
    return 10;
  case LJP_STACKS_THREAD:
    return field == 0 || (field >= 2 && field <= 5) ? 10 : 0;
  case LJP_STACKS_COROUTINE:
    return field == 1 ? 16 : 10;
  case LJP_STACKS_LUA:
    return field >= 2 ? 10 : 0;
  case LJP_STACKS_C:
    return 16;
  case LJP_STACKS_HOST:
    return field ? 10 : 16;
  default:
    return 0;
  }
}

/* Parses one line, which it changes. */
static bool lines_parse(struct ljp_stacks_text_line *line, char *text)
{
  char *next = strchr(text, '\t');
  unsigned kind = 0, field = 0;
  if (next)
    *next++ = '\0';
  while (kind < LJP_STACKS_LINES && strcmp(text, lines_kinds[kind].name) != 0)
    kind++;
  if (kind == LJP_STACKS_LINES)
    return false;
  memset(line, 0, sizeof *line);
  line->kind = (enum ljp_join_stacks_line)kind;
  for (; next && field < lines_kinds[kind].fields; field++) {
    char *end, *at = next;
    int base = lines_base(line->kind, field);
    /* The last field has the rest. */
    next = field + 1 < lines_kinds[kind].fields ? strchr(at, '\t') : NULL;
    if (next)
      *next++ = '\0';
    line->text[field] = at;
    if (!base)
      continue;
    errno = 0;
    line->number[field] = strtoull(at, &end, base);
    if (!isxdigit((unsigned char)*at) || *end || errno)
      return false;
  }
  return field == lines_kinds[kind].fields;
}

static const char *lines_split(struct ljp_stacks_lines *lines)
{
  size_t room = 0;
  for (char *at = lines->text, *end; *at; at = end + 1) {
    end = strchr(at, '\n');
    if (!end)
      return "its last line has no end";
    *end = '\0';
    if (lines->count == LINES_MOST)
      return "it has too many lines";
    if (lines->count == room) {
      room = room ? room * 2 : 256;
      struct ljp_stacks_text_line *list =
          realloc(lines->list, room * sizeof *list);
      if (!list)
        return "out of memory";
      lines->list = list;
    }
    if (!lines_parse(&lines->list[lines->count++], at))
      return "a line of an unknown kind";
  }
  if (!lines->count || lines->list[0].kind != LJP_STACKS_HEAD ||
      lines->list[0].number[0] != 1 ||
      lines->list[lines->count - 1].kind != LJP_STACKS_END)
    return "it is not whole";
  return NULL;
}

const char *ljp_stacks_lines_read(struct ljp_stacks_lines *lines, int fd)
{
  struct stat st;
  *lines = (struct ljp_stacks_lines){0};
  if (fstat(fd, &st) || (uint64_t)st.st_size > LINES_MOST_BYTES)
    return "it cannot be read";
  size_t size = (size_t)st.st_size, have = 0;
  lines->text = calloc(1, size + 1);
  if (!lines->text)
    return "out of memory";
  while (have < size) {
    ssize_t n = pread(fd, lines->text + have, size - have, (off_t)have);
    if (n <= 0)
      return "it cannot be read";
    have += (size_t)n;
  }
  if (memchr(lines->text, 0, size))
    return "a zero in its text";
  return lines_split(lines);
}

void ljp_stacks_lines_free(struct ljp_stacks_lines *lines)
{
  free(lines->list);
  free(lines->text);
  *lines = (struct ljp_stacks_lines){0};
}
